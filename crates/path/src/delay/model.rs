//! What a delay provides; each has a file of its own.

use core::fmt::Debug;
use skyhaul_base::{Duration, Instant, Rng};

/// A delay, which is its own configuration: it keeps no state.
///
/// Its documentation is that of the schema of scenario files; the keys there are its fields.
pub trait Model: Clone + Debug + Eq {
    /// The smallest delay.
    fn base(&self) -> Duration;
    /// The parameter that says how far delays spread beyond the smallest; zero if they do not.
    fn spread(&self) -> Duration;
    /// The smallest delay of a packet whose last bit leaves at `departure`.
    fn base_at(&self, _departure: Instant) -> Duration {
        self.base()
    }
    /// The delay of all packets, if it is always the same and draws nothing.
    fn constant(&self) -> Option<Duration> {
        None
    }
    /// The delay of a packet whose last bit leaves at `departure`. It draws the same number whatever comes of it.
    fn sample(&self, departure: Instant, rng: &mut Rng) -> Duration;
}
