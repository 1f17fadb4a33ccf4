//! Events of a link with repair, besides transmissions.

use core::cmp::Ordering;
use skyhaul_base::Instant;

/// The kind of event, in the order of simultaneous events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A transmission arrives, or would have arrived.
    Arrive {
        /// Its block.
        block: u32,
        /// The packet; `None` for parity.
        packet: Option<u32>,
        /// The channel has not lost it.
        survived: bool,
        /// Which of two paths it takes; 0 if there is only one.
        path: u8,
    },
    /// The receiver learns that a packet was given up.
    Skip(u64),
    /// The sender learns that a packet has arrived.
    Answered,
    /// The sender learns that a packet has not arrived.
    Overdue(u32),
    /// The fill time of this group of blocks is over.
    Filled(u64),
}

/// A future event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at: Instant,
    /// Number of events created before it.
    pub(super) created: u64,
    pub(super) what: What,
}

impl Event {
    fn key(&self) -> (Instant, u8, u64) {
        let rank = match self.what {
            What::Arrive { .. } => 0,
            What::Skip(_) => 1,
            What::Answered => 2,
            What::Overdue(_) => 3,
            What::Filled(_) => 4,
        };
        (self.at, rank, self.created)
    }
}

// `BinaryHeap` keeps its greatest element on top, hence the reversed order.
impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
