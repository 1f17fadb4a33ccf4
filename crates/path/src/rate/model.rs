//! Interface of rates that vary with time or with the traffic; each has its own file.

use crate::param::Invalid;
use crate::trace::{Broken, End};
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::Debug;
use skyhaul_base::{Duration, Instant, Rate};

/// A rate as a function of time.
pub trait Model: Debug + Eq + Sized {
    /// The running rate.
    type Run;
    /// A description of its file, for the schema.
    const FILE: &'static str;
    /// Why the behaviour after the end of the file cannot be chosen, if it cannot.
    const NO_END: Option<&'static str>;
    /// Parses a file.
    ///
    /// # Errors
    /// The line and what to write instead.
    fn read(text: &str, end: End) -> Result<Self, Broken>;
    /// An equivalent file, and the behaviour after its end if that can be chosen.
    fn write(&self) -> (String, Option<End>);
    /// The last time of the file.
    fn last(&self) -> Duration;
    /// The mean rate over the period if the model repeats, or up to its last change; at least 1 bit/s.
    fn mean(&self) -> Rate;
    /// Bits that can leave until `t`, from the start of the run.
    fn bits_until(&self, t: Instant) -> f64;
    /// The rate at the start of the run.
    fn run(self: &Arc<Self>) -> Self::Run;
}

/// A rate that depends on the traffic, in plain values.
///
/// Its doc comments become those of the schema of scenario files; its fields are the keys.
pub trait Table: Clone + Debug + Eq {
    /// The running rate.
    type Run;
    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self) -> Result<(), Invalid>;
    /// The rate under saturation.
    fn mean(&self) -> Rate;
    /// A short description for reports, which choose the format of rates.
    fn words(&self, rate: &dyn Fn(Rate) -> String) -> String;
    /// The rate at the start of the run.
    fn run(self: &Arc<Self>) -> Self::Run;
}

/// A running rate.
pub(super) trait Sending {
    /// Its model.
    type Model;
    /// When the last bit leaves of a packet of `size` bytes that the transmitter can send from `start` on. `waited`: the
    /// packet arrived before `start`.
    fn send(&mut self, start: Instant, size: u32, waited: bool) -> Instant;
    /// Its model.
    fn model(&self) -> &Arc<Self::Model>;
}
