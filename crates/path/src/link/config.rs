//! Configuration of a link, and its random streams.

use crate::arq;
use crate::delay::Delay;
use crate::error;
use crate::fec;
use crate::param::Refusal;
use crate::queue::QueueConfig;
use crate::rate;
use skyhaul_base::Rng;

/// Configuration of a link.
#[derive(Clone, Debug, Default)]
pub struct LinkConfig {
    /// Rate of the transmitter.
    pub rate: rate::Config,
    /// The queue before the transmitter.
    pub queue: QueueConfig,
    /// Propagation delay.
    pub delay: Delay,
    /// Packets may be reordered in flight; otherwise an arrival waits for the previous one.
    pub allow_reorder: bool,
    /// Losses of the channel.
    pub error: error::Config,
    /// The channel never corrupts pure acknowledgements, and its error model does not see them.
    pub spares_acks: bool,
    /// A link that goes down loses the packets in flight.
    pub drop_inflight: bool,
    /// Each packet is sent over two paths at once, with the delays of [`crate::Change::Path`], and the first copy
    /// counts.
    pub two_paths: bool,
    /// Forward error correction; with two paths only that of a modem.
    pub fec: Option<fec::Config>,
    /// ARQ for the remaining losses; not with two paths.
    pub arq: Option<arq::Config>,
}

impl LinkConfig {
    /// Refuses an invalid code or ARQ.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    pub fn validate(&self) -> Result<(), InvalidRepair> {
        self.fec.as_ref().map_or(Ok(()), fec::Config::validate).map_err(InvalidRepair::Fec)?;
        self.arq.map_or(Ok(()), |arq| arq.validate()).map_err(InvalidRepair::Arq)
    }
    /// The losses of transmissions: those of the channel, or the residual ones after a code in the modem.
    #[must_use]
    pub fn losses(&self) -> error::Config {
        self.fec.as_ref().and_then(|fec| fec.code().residual).unwrap_or_else(|| self.error.clone())
    }
}

/// Why the repair of a link is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InvalidRepair {
    /// The code is invalid.
    #[error(transparent)]
    Fec(fec::Invalid),
    /// The ARQ is invalid.
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
    /// For losses by rain and shadowing.
    pub fade: Rng,
    /// For the queue.
    pub queue: Rng,
}

impl Streams {
    /// The streams `<link>.error`, `<link>.delay`, `<link>.fade-loss` and `<link>.queue` of run `seed`. The fade
    /// itself draws from `<link>.fade`, which does not belong to the link.
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
