//! The scoreboard's part of time-based loss detection (RFC 8985): segments in flight in the order of transmission,
//! and losses declared segment by segment.
//!
//! The list is linked through entries that stay in step with the scoreboard's ring. A segment leaves it when it is
//! delivered or declared lost, and returns to the end when it is retransmitted, each in constant time. The first
//! segment is always the one sent longest ago, so no search is needed.

use super::{LOST, RTX, SACKED, Scoreboard, Sent};
use alloc::collections::VecDeque;
use skyhaul_base::Instant;

/// No segment.
const NONE: u64 = u64::MAX;

/// Neighbours in the list, by absolute index.
#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u64,
    next: u64,
    linked: bool,
}

/// Segments in flight in the order `(last sent, end)` of RFC 8985 §6.2 (`RACK_sent_after`). Segments are identified
/// by their absolute index, which stays valid when older ones leave the scoreboard.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    links: VecDeque<Link>,
    /// Absolute index of the first link.
    base: u64,
    head: u64,
    tail: u64,
    /// The last segment known to lie before the limit of [`Self::last_before`].
    cursor: u64,
    /// Segments examined, to compare the cost with the number of acknowledgements.
    #[cfg(test)]
    pub(crate) steps: u64,
}

impl Order {
    pub(crate) fn new() -> Self {
        Self {
            links: VecDeque::new(),
            base: 0,
            head: NONE,
            tail: NONE,
            cursor: NONE,
            #[cfg(test)]
            steps: 0,
        }
    }

    /// An empty list, for a scoreboard that starts with the segment `base`.
    pub(crate) fn beginning_at(base: u64) -> Self {
        Self { base, ..Self::new() }
    }

    fn at(&mut self, segment: u64) -> &mut Link {
        #[cfg(test)]
        {
            self.steps += 1;
        }
        &mut self.links[(segment - self.base) as usize]
    }

    #[cfg(test)]
    pub(crate) fn after(&self, segment: u64) -> Option<u64> {
        Some(self.links[(segment - self.base) as usize].next).filter(|s| *s != NONE)
    }

    /// Memory use, bytes.
    pub(crate) fn held(&self) -> usize {
        self.links.capacity() * size_of::<Link>()
    }
    /// Releases unused memory.
    pub(crate) fn trim(&mut self) {
        self.links.shrink_to_fit();
    }

    /// The segment sent longest ago.
    pub(crate) fn head(&self) -> Option<u64> {
        (self.head != NONE).then_some(self.head)
    }

    /// The segment was sent or retransmitted just now.
    pub(crate) fn sent(&mut self, board: &Scoreboard, segment: u64) {
        while self.base + self.links.len() as u64 <= segment {
            self.links.push_back(Link { prev: NONE, next: NONE, linked: false });
        }
        self.remove(segment);
        // Time does not go back, so the search from the tail passes only segments sent at the same time.
        self.enter(board, segment, self.tail);
    }

    /// Whether the segment is in flight.
    pub(crate) fn holds(&self, segment: u64) -> bool {
        segment.checked_sub(self.base).and_then(|i| self.links.get(i as usize)).is_some_and(|l| l.linked)
    }

    /// Puts these segments back in flight, with their old send times. The latest is entered first, and each one
    /// searches from the position of the previous one, so that nothing is passed twice.
    pub(crate) fn revive(&mut self, board: &Scoreboard, segments: &mut [u64]) {
        segments.sort_unstable_by_key(|s| core::cmp::Reverse(board.sent_at(*s)));
        let mut from = self.tail;
        for &mut segment in segments {
            self.enter(board, segment, from);
            from = segment;
        }
    }

    /// Enters a segment into the list after its predecessor, which is `from` or earlier.
    fn enter(&mut self, board: &Scoreboard, segment: u64, from: u64) {
        let key = board.sent_at(segment);
        let mut prev = from;
        while prev != NONE && board.sent_at(prev) > key {
            prev = self.at(prev).prev;
        }
        let next = if prev == NONE { self.head } else { self.at(prev).next };
        *self.at(segment) = Link { prev, next, linked: true };
        if prev == NONE {
            self.head = segment;
        } else {
            self.at(prev).next = segment;
        }
        if next == NONE {
            self.tail = segment;
        } else {
            self.at(next).prev = segment;
        }
    }

    /// The segment is no longer in flight.
    pub(crate) fn remove(&mut self, segment: u64) {
        let Link { prev, next, linked } = *self.at(segment);
        if !linked {
            return;
        }
        self.at(segment).linked = false;
        if prev == NONE {
            self.head = next;
        } else {
            self.at(prev).next = next;
        }
        if next == NONE {
            self.tail = prev;
        } else {
            self.at(next).prev = prev;
        }
        if self.cursor == segment {
            self.cursor = prev;
        }
    }

    /// The oldest `n` segments leave the scoreboard.
    pub(crate) fn popped(&mut self, n: usize) {
        for _ in 0..n {
            self.remove(self.base);
            self.links.pop_front();
            self.base += 1;
        }
    }

    /// The last segment in flight that was sent before `limit`. `limit` never decreases between calls, so each
    /// segment is passed once.
    pub(crate) fn last_before(&mut self, board: &Scoreboard, limit: (Instant, u64)) -> Option<u64> {
        let mut next = if self.cursor == NONE { self.head } else { self.at(self.cursor).next };
        while next != NONE && board.sent_at(next) < limit {
            self.cursor = next;
            next = self.at(next).next;
        }
        (self.cursor != NONE).then_some(self.cursor)
    }
}

impl Scoreboard {
    /// Absolute index of the oldest segment: the number of segments that have left the scoreboard at the front.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    fn absolute(&self, segment: u64) -> Option<&Sent> {
        self.ring.get(segment.checked_sub(self.base)? as usize)
    }

    /// When the segment was last sent, and its end: the order of RFC 8985 §6.2.
    pub(crate) fn sent_at(&self, segment: u64) -> (Instant, u64) {
        self.absolute(segment).map_or((Instant::ZERO, 0), |s| (s.last_sent, s.end()))
    }

    /// Whether the segment is lost and has not been retransmitted since.
    pub(crate) fn awaits_repair(&self, segment: u64) -> bool {
        self.absolute(segment).is_some_and(|s| s.flags & (LOST | RTX | SACKED) == LOST)
    }

    /// Marks the unacknowledged segment at `index` as lost, with its retransmission if there is one. Returns the
    /// bytes of that retransmission.
    pub(crate) fn mark_lost(&mut self, index: usize) -> u64 {
        let s = &mut self.ring[index];
        debug_assert!(!s.has(SACKED));
        let span = u64::from(s.span);
        let again = if s.has(RTX) { span } else { 0 };
        self.lost += if s.has(LOST) { 0 } else { span };
        self.rtx -= again;
        s.flags = s.flags & !RTX | LOST;
        self.total_lost += span;
        again
    }

    /// Discards all SACK information (RFC 2018 §8); calls `forgotten` with each affected segment.
    pub(crate) fn forget_sacked(&mut self, mut forgotten: impl FnMut(usize)) {
        for (i, s) in self.ring.iter_mut().enumerate() {
            s.skip = 0;
            if s.has(SACKED) {
                let span = u64::from(s.span);
                self.lost += if s.has(LOST) { span } else { 0 };
                self.rtx += if s.has(RTX) { span } else { 0 };
                s.flags &= !SACKED;
                forgotten(i);
            }
        }
        self.sacked = 0;
        self.above_bytes = 0;
        self.above_runs = 0;
        self.judge = self.base;
        self.high_sacked = self.una;
    }
}
