//! The numbers of one run of a case.

use serde::{Deserialize, Serialize};

/// What is measured in a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    /// Goodput of the candidate, or of the flow in its place, bit/s; 0 in a run of the neighbours alone.
    pub(super) candidate_bit_s: f64,
    /// Goodput of all neighbours together, bit/s; 0 without neighbours.
    pub(super) neighbours_bit_s: f64,
    /// Mean queueing delay in the direction of the data, s: the mean queue length times the transmission time of a full packet.
    pub(super) queue_s: f64,
    /// Share of payload in a full packet, from 0 to 1.
    pub(super) payload: f64,
    /// The candidate, or the flow in its place, received no acknowledgement in the second half of the time from its start to
    /// the end of the run.
    pub(super) silent: bool,
}
