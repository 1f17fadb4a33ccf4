//! What happened, line by line.

use super::side::Side;
use skyhaul_base::Instant;
use skyhaul_path::DropReason;
use skyhaul_tcp::{Rejected, Segment};

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentEvent {
    /// Its endpoint sent it.
    Sent,
    /// It reached an endpoint.
    Arrived,
    /// The fault function lost it.
    Lost,
    /// The link lost it.
    Dropped(DropReason),
    /// It reached an endpoint, which refused it.
    Refused(Rejected),
}

/// A line of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// When.
    pub at: Instant,
    /// The endpoint that sent it or received it; for losses, the one that sent it.
    pub side: Side,
    /// What.
    pub event: SegmentEvent,
    /// The segment.
    pub segment: Segment,
}
