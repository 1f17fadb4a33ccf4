//! The memory of a run: counted by what the simulator holds, so that a run ends at the same event on every machine.

use crate::result::Ended;

/// Events between two counts, at least. A run exceeds its limit by what they add at most.
pub(crate) const OFTEN: u64 = 4096;

/// The limit, and when to count again.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Bytes.
    pub(crate) limit: u64,
    /// Number of the event after which to count.
    pub(crate) next: u64,
    pub(crate) ended: Option<Ended>,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, next: OFTEN, ended: None }
    }
}
