//! What describes a link, and its random streams.

use crate::arq;
use crate::delay::Delay;
use crate::error;
use crate::fec;
use crate::param::Refusal;
use crate::queue::QueueConfig;
use crate::rate;
use skyhaul_base::Rng;

/// Everything that describes a link.
#[derive(Clone, Debug, Default)]
pub struct LinkConfig {
    /// Rate of the transmitter.
    pub rate: rate::Config,
    /// The queue in front of the transmitter.
    pub queue: QueueConfig,
    /// Propagation delay.
    pub delay: Delay,
    /// True if packets may overtake each other in flight; otherwise an arrival waits for the one before it.
    pub allow_reorder: bool,
    /// Losses of the channel.
    pub error: error::Config,
    /// True if a link that goes down loses what is in flight.
    pub drop_inflight: bool,
    /// Each packet leaves over two ways at once, with the delays of [`crate::Change::Way`], and the first copy counts.
    pub two_ways: bool,
    /// Forward error correction; of two ways only that of a modem.
    pub fec: Option<fec::Config>,
    /// Repeats on request of what that leaves; not of two ways.
    pub arq: Option<arq::Config>,
}

impl LinkConfig {
    /// Refuses a code or repeats that make no sense.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    pub fn validate(&self) -> Result<(), InvalidRepair> {
        self.fec.as_ref().map_or(Ok(()), fec::Config::validate).map_err(InvalidRepair::Fec)?;
        self.arq.map_or(Ok(()), |arq| arq.validate()).map_err(InvalidRepair::Arq)
    }
    /// The losses of transmissions: those of the channel, or what a code in the modem leaves of them.
    #[must_use]
    pub fn losses(&self) -> error::Config {
        self.fec.as_ref().and_then(|fec| fec.code().residual).unwrap_or_else(|| self.error.clone())
    }
}

/// Why the repair of a link makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InvalidRepair {
    /// The code does not.
    #[error(transparent)]
    Fec(fec::Invalid),
    /// The repeats do not.
    #[error(transparent)]
    Arq(arq::NoWindow),
}

impl Refusal for InvalidRepair {
    fn key(&self) -> &'static str {
        match self {
            Self::Fec(e) => e.key(),
            Self::Arq(e) => e.key(),
        }
    }
}

/// The random streams of a link, one per purpose.
#[derive(Clone, Debug)]
pub struct Streams {
    /// For the error model.
    pub error: Rng,
    /// For jitter.
    pub delay: Rng,
    /// For what rain and shadowing lose.
    pub fade: Rng,
    /// For the queue.
    pub queue: Rng,
}

impl Streams {
    /// The streams `<link>.error`, `<link>.delay`, `<link>.fade-loss` and `<link>.queue` of run `seed`. The fade itself draws
    /// from `<link>.fade`, which is not this link's to draw from.
    #[must_use]
    pub fn named(seed: u64, link: &str) -> Self {
        let stream = |purpose| Rng::stream(seed, &alloc::format!("{link}.{purpose}"));
        Self {
            error: stream("error"),
            delay: stream("delay"),
            fade: stream("fade-loss"),
            queue: stream("queue"),
        }
    }
}
