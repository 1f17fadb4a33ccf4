//! What a rate that changes by itself provides; each has a file of its own.

use alloc::sync::Arc;
use core::fmt::Debug;
use skyhaul_base::{Instant, Rate};

/// A rate as a function of time.
pub trait Model: Debug + Eq {
    /// The rate in use.
    type Run;
    /// The mean rate over the period of a model that repeats, or up to its last change; at least 1 bit/s.
    fn mean(&self) -> Rate;
    /// Bits that can leave until `t`, from the start of the run.
    fn bits_until(&self, t: Instant) -> f64;
    /// The rate at the start of the run.
    fn run(self: &Arc<Self>) -> Self::Run;
}

/// A rate in use.
pub(super) trait Sending {
    /// What it follows.
    type Model: Model;
    /// When the last byte of a packet leaves that is at the head from `start` on; `waited` if it was there before.
    fn send(&mut self, start: Instant, size: u32, waited: bool) -> Instant;
    /// What it follows.
    fn model(&self) -> &Arc<Self::Model>;
}
