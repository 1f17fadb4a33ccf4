//! What a directed link becomes by itself as time passes: its satellite moves, it rains.
//!
//! A course tells of changes one after the other, made when they are asked for, and may go on for ever. Few come in a
//! second, so that courses are boxed and live in the crates and modules of what they follow.

use crate::change::Change;
use core::fmt::Debug;
use skyhaul_base::Instant;

/// Changes of a directed link, in the order of time. The first is due at the start of the run if the link does not start
/// as its configuration says.
pub trait Course: Debug + Send {
    /// When the next change is due; [`Instant::MAX`] for never. It does not decrease.
    fn next(&self) -> Instant;
    /// The next change. Not called once [`Self::next`] is never.
    fn take(&mut self) -> Change;
}
