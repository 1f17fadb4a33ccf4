//! Short segments among outstanding data that is otherwise in full ones.
//!
//! A write usually ends in a short segment. Between the ends of two short segments all others are full, so these
//! ends, the segment size and both ends of the data describe every segment.

use alloc::collections::VecDeque;

/// Stands for the end of a short segment where there is none: an offset beyond all data.
const NOWHERE: u64 = u64::MAX;

/// The ends of the outstanding short segments, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct Shorts(VecDeque<u64>);

/// Segments up to an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AckedCount {
    /// How many; the last one ends where the acknowledgement does.
    pub(super) segments: usize,
    /// How many of these are short.
    pub(super) short: usize,
}

impl Shorts {
    /// There are none.
    pub(super) const NONE: Self = Self(VecDeque::new());

    /// The end of the first one; beyond all data if there is none.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.0.front().copied().unwrap_or(NOWHERE)
    }
    /// A short segment was sent.
    #[inline]
    pub(super) fn push(&mut self, end: u64) {
        self.0.push_back(end);
    }
    /// The first one is acknowledged; returns the end of the one after it, as [`Self::first`].
    #[inline]
    pub(super) fn pop_first(&mut self) -> u64 {
        self.0.pop_front();
        self.first()
    }
    /// The first `n` are acknowledged.
    #[inline]
    pub(super) fn pop(&mut self, n: usize) {
        self.0.drain(..n);
    }

    /// The start and end of each segment of `[una, max)`: full ones of `smss` bytes unless a short one ends earlier.
    pub(super) fn segments(&self, una: u64, max: u64, smss: u32) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut at, mut next) = (una, 0);
        core::iter::from_fn(move || {
            let from = at;
            let short = self.0.get(next).copied().unwrap_or(NOWHERE);
            at = (from + u64::from(smss)).min(short).min(max);
            next += usize::from(at == short);
            (from < at).then_some((from, at))
        })
    }

    /// Counts the segments of `[una, ack)`; `None` if the last one reaches beyond `ack`.
    pub(super) fn acked(&self, una: u64, ack: u64, smss: u32) -> Option<AckedCount> {
        let smss = u64::from(smss);
        let (mut at, mut found) = (una, AckedCount { segments: 0, short: 0 });
        while let Some(&end) = self.0.get(found.short).filter(|end| **end <= ack) {
            found.segments += (end - at).div_ceil(smss) as usize;
            found.short += 1;
            at = end;
        }
        let next = self.0.get(found.short).copied().unwrap_or(NOWHERE);
        let full = (ack - at) / smss;
        let whole = at + full * smss == ack && ack < next;
        found.segments += full as usize;
        whole.then_some(found)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
    /// How many fit without growth.
    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }
    /// Releases unused memory.
    pub(super) fn trim(&mut self) {
        if self.0.is_empty() {
            self.0 = VecDeque::new();
        }
    }
}
