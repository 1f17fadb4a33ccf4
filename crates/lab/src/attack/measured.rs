//! The numbers of a run.

use serde::{Deserialize, Serialize};

/// What is measured in a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    /// Goodput of the candidate, or of the flow in its place, bit/s.
    pub(super) candidate_bit_s: f64,
    /// Goodput of all neighbours together, bit/s.
    pub(super) neighbours_bit_s: f64,
    /// Mean queueing delay, s.
    pub(super) queue_s: f64,
    /// Share of payload in a full packet.
    pub(super) payload: f64,
    /// The candidate received no acknowledgement in the second half of the time from its start to the end of the run.
    pub(super) silent: bool,
}
