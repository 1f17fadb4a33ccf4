//! Interface of a delay model; each has its own file.

use core::fmt::Debug;
use skyhaul_base::{Duration, Instant, Rng};

/// A delay model, which is its own configuration: it has no state.
///
/// Its fields are the keys in scenario files, and its doc comments those of their schema.
pub trait Model: Clone + Debug + Eq {
    /// The minimum delay.
    fn base(&self) -> Duration;
    /// The parameter for the spread above the minimum; zero if there is none.
    fn spread(&self) -> Duration;
    /// The minimum delay of a packet whose last bit leaves at `departure`.
    fn base_at(&self, _departure: Instant) -> Duration {
        self.base()
    }
    /// The delay of all packets, if it is constant and draws nothing.
    fn constant(&self) -> Option<Duration> {
        None
    }
    /// The delay of a packet whose last bit leaves at `departure`. The number of draws is always the same.
    fn sample(&self, departure: Instant, rng: &mut Rng) -> Duration;
}
