//! What the path does to segments on purpose, before a link sees them.

use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::Segment;

/// A segment that an endpoint is about to give to its link.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    /// When.
    pub now: Instant,
    /// Segments that left this side before it.
    pub index: u64,
    /// Ordinary data segments (retransmissions included, probes not) that left this side before it.
    pub data_index: u64,
    /// Probes that left this side before it.
    pub probe_index: u64,
    /// The segment.
    pub segment: &'a Segment,
}

impl Departure<'_> {
    /// It carries payload and is no probe.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.segment.len > 0 && !self.segment.mark.is_probe()
    }
}

/// What a test does to a departure, in the sense of a netfilter verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// To the link.
    Deliver,
    /// To the link, marked by a queue of the path (ECN) if it may be.
    Mark,
    /// Nowhere.
    Lose,
    /// To the link, and so many copies after it.
    Copies(u32),
    /// To the link after a pause: others may overtake it.
    Late(Duration),
}

/// Decides the verdict on each departure.
pub type Faults = Box<dyn FnMut(&Departure<'_>) -> Verdict>;
