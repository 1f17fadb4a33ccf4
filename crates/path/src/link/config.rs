//! What describes a link, and its random streams.

use crate::delay::Delay;
use crate::error;
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
    /// The streams `<link>.error`, `<link>.delay`, `<link>.fade` and `<link>.queue` of run `seed`.
    #[must_use]
    pub fn named(seed: u64, link: &str) -> Self {
        let stream = |purpose| Rng::stream(seed, &alloc::format!("{link}.{purpose}"));
        Self { error: stream("error"), delay: stream("delay"), fade: stream("fade"), queue: stream("queue") }
    }
}
