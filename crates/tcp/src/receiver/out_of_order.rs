//! Data beyond a gap, and the order in which it is reported (RFC 2018, RFC 2883).

use alloc::collections::VecDeque;

/// Ranges of the stream beyond `RCV.NXT`.
#[derive(Clone, Debug, Default)]
pub(super) struct OutOfOrder {
    /// Disjoint and ascending.
    ranges: VecDeque<(u64, u64)>,
    /// The ranges reported last, most recent first; empty ones mean none. A range changes only when a segment joins it, and is
    /// then the most recent.
    recent: [(u64, u64); 4],
    /// Data received twice, to be reported.
    pub(super) duplicate: Option<(u64, u64)>,
    /// Segments beyond the gap so far. Counted only if the peer asks for fewer acknowledgements than one per two segments: then
    /// the first of them are acknowledged immediately (RFC 5690 §4.6).
    pub(super) segments_beyond: u32,
    /// SNACK: if holes are repeated, the next one is the first that ends beyond this offset.
    next_named: u64,
    /// SNACK: the highest end of a hole that has been named.
    named_to: u64,
}

impl OutOfOrder {
    /// Whether nothing lies beyond a gap.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
    /// Number of ranges.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }
    /// Memory use of the ranges, bytes.
    pub(super) fn held(&self) -> usize {
        self.ranges.capacity() * size_of::<(u64, u64)>()
    }
    pub(super) fn trim(&mut self) {
        self.ranges.shrink_to_fit();
    }
    /// Whether `[from, to)` would be a separate range.
    pub(super) fn is_apart(&self, from: u64, to: u64) -> bool {
        let next = self.ranges.partition_point(|&(_, e)| e < from);
        self.ranges.get(next).is_none_or(|&(s, _)| s > to)
    }
    /// End of the last range; 0 without any.
    pub(super) fn end(&self) -> u64 {
        self.ranges.back().map_or(0, |r| r.1)
    }
    /// Whether nothing is left to remember.
    pub(super) fn is_over(&self) -> bool {
        self.is_empty() && self.duplicate.is_none()
    }

    /// Forgets all ranges.
    pub(super) fn forget(&mut self) {
        self.ranges = VecDeque::new();
        self.recent = [(0, 0); 4];
    }

    /// Adds `[from, to)`, which lies beyond `nxt`. Returns its first part that was already present.
    pub(super) fn insert(&mut self, from: u64, to: u64, nxt: u64) -> Option<(u64, u64)> {
        let ranges = &mut self.ranges;
        // An arrival beyond the last range needs no search.
        let first = match ranges.back() {
            Some(&(_, e)) if e < from => ranges.len(),
            _ => ranges.partition_point(|&(_, e)| e < from),
        };
        let (mut merged, mut known) = ((from, to), None);
        let mut last = first;
        while let Some(&(s, e)) = ranges.get(last) {
            if s > to {
                break;
            }
            if known.is_none() && s.max(from) < e.min(to) {
                known = Some((s.max(from), e.min(to)));
            }
            merged = (merged.0.min(s), merged.1.max(e));
            last += 1;
        }
        if last == first {
            ranges.insert(first, merged);
        } else {
            ranges[first] = merged;
            if last > first + 1 {
                ranges.drain(first + 1..last);
            }
        }
        self.report_first(merged, nxt);
        known
    }

    /// RFC 2018 §4: the block with the segment that triggered the acknowledgement comes first, then the blocks
    /// reported most recently.
    fn report_first(&mut self, range: (u64, u64), nxt: u64) {
        let mut recent = [range, (0, 0), (0, 0), (0, 0)];
        let others = self.recent.iter().filter(|r| r.1 > nxt && !(range.0 <= r.0 && r.1 <= range.1));
        for (place, other) in recent[1..].iter_mut().zip(others) {
            *place = *other;
        }
        self.recent = recent;
    }

    /// `RCV.NXT` has reached `nxt`: removes ranges that are now in order. Returns the new `RCV.NXT`.
    pub(super) fn advance(&mut self, mut nxt: u64) -> u64 {
        while let Some(&(s, e)) = self.ranges.front() {
            if s > nxt {
                break;
            }
            nxt = nxt.max(e);
            self.ranges.pop_front();
        }
        nxt
    }

    /// The hole to name now: a new one first, otherwise one after the other from the lowest, so that a lost SNACK
    /// is repeated. `nxt` is the start of the lowest hole.
    pub(super) fn hole(&mut self, nxt: u64) -> Option<(u64, u64)> {
        let last = self.ranges.len().checked_sub(1)?;
        let hole_before = |i: usize| {
            let from = if i == 0 { nxt } else { self.ranges[i - 1].1 };
            (from, self.ranges[i].0)
        };
        let newest = hole_before(last);
        if newest.1 > self.named_to {
            self.named_to = newest.1;
            return Some(newest);
        }
        let at = self.next_named;
        let next = self.ranges.partition_point(|&(s, _)| s <= at);
        let hole = hole_before(if next > last { 0 } else { next });
        self.next_named = hole.1;
        Some(hole)
    }

    /// The range that contains this byte.
    pub(super) fn range_of(&self, point: u64) -> Option<(u64, u64)> {
        let i = self.ranges.partition_point(|&(_, e)| e <= point);
        self.ranges.get(i).copied().filter(|&(s, _)| s <= point)
    }

    /// The ranges reported last, most recent first.
    pub(super) fn recent(&self, nxt: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.recent.iter().copied().filter(move |r| r.1 > nxt)
    }
}
