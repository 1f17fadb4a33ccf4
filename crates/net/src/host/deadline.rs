//! When connections want to be called.

use skyhaul_base::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Deadlines that there is always room for.
const KEPT: usize = 1024;

/// Deadlines of many connections, lazily kept: an entry is added only when a deadline moves towards now; one that has
/// moved away is found out when it comes up. The retransmission timer, which moves away with every acknowledgement,
/// costs nothing that way.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, u32, u32)>>,
}

impl Deadlines {
    /// The connection in `slot` wants to be called at `at`.
    pub(super) fn arm(&mut self, at: Instant, slot: u32, generation: u32) {
        if at < Instant::MAX {
            self.heap.push(Reverse((at, slot, generation)));
        }
    }
    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.heap.capacity() * size_of::<Reverse<(Instant, u32, u32)>>()
    }
    /// The first deadline; a connection may have put it off since.
    pub(super) fn next(&self) -> Instant {
        self.heap.peek().map_or(Instant::MAX, |Reverse((at, ..))| *at)
    }
    /// The next connection to be called by `now`.
    pub(super) fn due(&mut self, now: Instant) -> Option<(u32, u32)> {
        if self.next() > now {
            return None;
        }
        let first = self.heap.pop();
        // What a crowd needed is given back.
        if self.heap.capacity() > KEPT && self.heap.len() < self.heap.capacity() / 4 {
            self.heap.shrink_to(self.heap.capacity() / 2);
        }
        first.map(|Reverse((_, slot, generation))| (slot, generation))
    }
}
