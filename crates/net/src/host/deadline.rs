//! Deadlines of connections.

use skyhaul_base::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Capacity that is never released.
const KEPT: usize = 1024;

/// Deadlines of many connections, kept lazily. An entry is added only when a deadline becomes earlier; a postponed
/// one is noticed when its entry comes up. The retransmission timer, which every acknowledgement postpones,
/// therefore costs nothing.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, u32, u32)>>,
}

impl Deadlines {
    /// Sets the deadline of the connection in `slot` to `at`.
    pub(super) fn arm(&mut self, at: Instant, slot: u32, generation: u32) {
        if at < Instant::MAX {
            self.heap.push(Reverse((at, slot, generation)));
        }
    }
    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
    /// Memory use, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.heap.capacity() * size_of::<Reverse<(Instant, u32, u32)>>()
    }
    /// The earliest deadline; it may have been postponed since.
    pub(super) fn next(&self) -> Instant {
        self.heap.peek().map_or(Instant::MAX, |Reverse((at, ..))| *at)
    }
    /// The next connection whose deadline is at or before `now`.
    pub(super) fn due(&mut self, now: Instant) -> Option<(u32, u32)> {
        if self.next() > now {
            return None;
        }
        let first = self.heap.pop();
        // Releases the memory of a past peak.
        if self.heap.capacity() > KEPT && self.heap.len() < self.heap.capacity() / 4 {
            self.heap.shrink_to(self.heap.capacity() / 2);
        }
        first.map(|Reverse((_, slot, generation))| (slot, generation))
    }
}
