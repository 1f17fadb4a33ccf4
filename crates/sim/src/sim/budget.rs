//! The memory of a run: counted by what the simulator holds, so that a run ends at the same event on every machine.

use crate::result::Ended;

/// Minimum number of events between two counts. A run exceeds its limit at most by what the events since the last
/// count have added.
pub(crate) const EVENTS_BETWEEN_COUNTS: u64 = 4096;

/// The limit, and when to count again.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Memory that the run may hold, bytes.
    pub(crate) limit: u64,
    /// Number of the event after which to count.
    pub(crate) next: u64,
    /// The end of the run, once the limit has been exceeded.
    pub(crate) ended: Option<Ended>,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, next: EVENTS_BETWEEN_COUNTS, ended: None }
    }
}
