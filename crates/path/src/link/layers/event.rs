//! What happens on a link that repairs besides transmissions.

use core::cmp::Ordering;
use skyhaul_base::Instant;

/// What happens; the order is that of things that happen at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A transmission has, or would have, arrived.
    Arrive {
        /// Its block.
        block: u32,
        /// The packet; `None` for parity.
        packet: Option<u32>,
        /// The channel has not lost it.
        whole: bool,
        /// Which of two ways it takes; 0 where there is one.
        way: u8,
    },
    /// The receiver learns that a packet was given up.
    Skip(u64),
    /// The sender learns that a packet has arrived.
    Answered,
    /// The sender learns that a packet has not.
    Overdue(u32),
    /// The time to fill these blocks is over.
    Filled(u64),
}

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) at: Instant,
    /// How many events were known before.
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
