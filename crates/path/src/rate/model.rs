//! What a rate provides that changes by itself, or with what there is to send; each has a file of its own.

use crate::param::Invalid;
use crate::trace::{Broken, End};
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::Debug;
use skyhaul_base::{Duration, Instant, Rate};

/// A rate as a function of time.
pub trait Model: Debug + Eq + Sized {
    /// The rate in use.
    type Run;
    /// What its file is, for the schema.
    const FILE: &'static str;
    /// Where what follows the end of the file cannot be chosen: why.
    const NO_END: Option<&'static str>;
    /// What a file says.
    ///
    /// # Errors
    /// The line and what to write instead.
    fn read(text: &str, end: End) -> Result<Self, Broken>;
    /// A file that says the same, and what follows its end where that can be chosen.
    fn write(&self) -> (String, Option<End>);
    /// The last time of the file.
    fn last(&self) -> Duration;
    /// The mean rate over the period of a model that repeats, or up to its last change; at least 1 bit/s.
    fn mean(&self) -> Rate;
    /// Bits that can leave until `t`, from the start of the run.
    fn bits_until(&self, t: Instant) -> f64;
    /// The rate at the start of the run.
    fn run(self: &Arc<Self>) -> Self::Run;
}

/// A rate that depends on what there is to send, in plain values.
///
/// Its documentation is that of the schema of scenario files; the keys there are its fields.
pub trait Table: Clone + Debug + Eq {
    /// The rate in use.
    type Run;
    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    fn validate(&self) -> Result<(), Invalid>;
    /// The rate while there is always something to send.
    fn mean(&self) -> Rate;
    /// What it does in a few words, for reports, which say how they write a rate.
    fn words(&self, rate: &dyn Fn(Rate) -> String) -> String;
    /// The rate at the start of the run.
    fn run(self: &Arc<Self>) -> Self::Run;
}

/// A rate in use.
pub(super) trait Sending {
    /// What it follows.
    type Model;
    /// When the last byte of a packet leaves that is at the head from `start` on; `waited` if it was there before.
    fn send(&mut self, start: Instant, size: u32, waited: bool) -> Instant;
    /// What it follows.
    fn model(&self) -> &Arc<Self::Model>;
}
