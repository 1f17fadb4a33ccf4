//! Changes of a directed link over time by themselves: its satellite moves, it rains.
//!
//! A course produces changes one after the other, on demand, possibly for ever. They are rare, so courses are boxed
//! and live in the modules of their models.

use crate::change::Change;
use core::fmt::Debug;
use skyhaul_base::Instant;

/// Changes of a directed link, in order of time. If the link's initial state differs from its configuration, the
/// first change is due at the start of the run.
pub trait Course: Debug + Send {
    /// When the next change is due; [`Instant::MAX`] means never. It does not decrease.
    fn next(&self) -> Instant;
    /// The next change. Not called after [`Self::next`] returned never.
    fn take(&mut self) -> Change;
}
