//! How many data segments leave at once.

use super::Engine;
use crate::store::Store;
use alloc::vec::Vec;
use skyhaul_base::{Instant, math};

/// Sizes up to this one are told apart exactly, larger ones to an eighth of an octave.
const EXACT: u32 = 32;

/// Data segments that one event (an acknowledgement, a timer, a write of the application) lets go at once, retransmissions
/// included: how many such bursts there were, and of what size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Bursts of one segment.
    single: u64,
    /// Segments in all others.
    segments: u64,
    /// The others: how many, and the largest.
    many: u64,
    largest: u32,
    /// How many of each size, by [`place`].
    sizes: Vec<u32>,
}

/// Where a size of two or more is counted.
fn place(size: u32) -> usize {
    if size <= EXACT {
        return size as usize - 2;
    }
    let octave = size.ilog2();
    let eighth = (size >> (octave - 3)) & 7;
    (EXACT - 1 + 8 * (octave - EXACT.ilog2()) + eighth) as usize
}

/// The largest size that is counted there.
fn most(place: usize) -> u32 {
    let place = place as u32;
    if place + 2 <= EXACT {
        return place + 2;
    }
    let (octave, eighth) = ((place + 1 - EXACT) / 8 + EXACT.ilog2(), (place + 1 - EXACT) % 8);
    // Less than 2^32 also for the last one of the highest octave.
    ((u64::from(9 + eighth) << (octave - 3)) - 1) as u32
}

impl Bursts {
    /// A burst of `size` segments, two or more.
    fn note(&mut self, size: u32) {
        let at = place(size);
        if self.sizes.len() <= at {
            self.sizes.resize(at + 1, 0);
        }
        self.sizes[at] = self.sizes[at].saturating_add(1);
        self.many += 1;
        self.segments += u64::from(size);
        self.largest = self.largest.max(size);
    }

    /// Adds those of another connection.
    pub fn merge(&mut self, other: &Self) {
        if self.sizes.len() < other.sizes.len() {
            self.sizes.resize(other.sizes.len(), 0);
        }
        self.sizes.iter_mut().zip(&other.sizes).for_each(|(a, b)| *a = a.saturating_add(*b));
        self.single += other.single;
        self.many += other.many;
        self.segments += other.segments;
        self.largest = self.largest.max(other.largest);
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.single + self.many
    }
    /// Segments of the largest; 0 if nothing was sent.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.largest.max(u32::from(self.single > 0))
    }
    /// Mean size in segments; `None` if nothing was sent.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let all = self.count();
        (all > 0).then(|| (self.single + self.segments) as f64 / all as f64)
    }
    /// The least size that a share `q` of them does not exceed, in segments: exactly up to 32, to an eighth of an octave
    /// above. `None` if nothing was sent.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u32> {
        let all = self.count();
        if all == 0 {
            return None;
        }
        let mut left = (math::ceil(all as f64 * q) as u64).clamp(1, all);
        if left <= self.single {
            return Some(1);
        }
        left -= self.single;
        for (i, n) in self.sizes.iter().enumerate() {
            if left <= u64::from(*n) {
                return Some(most(i).min(self.largest));
            }
            left -= u64::from(*n);
        }
        Some(self.largest)
    }
}

/// Keeps the count.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// Bursts of more than one segment.
    sizes: Bursts,
    /// When a segment left last that no window was asked for: what the send loop adds at that moment is one burst with it.
    forced: Option<Instant>,
}

impl<S: Store> Engine<S> {
    /// A segment leaves before the send loop runs.
    #[cold]
    pub(super) fn note_forced(&mut self, now: Instant) {
        self.aside().bursts.forced = Some(now);
    }

    /// The send loop has let `sent` segments go.
    #[inline]
    pub(super) fn note_burst(&mut self, now: Instant, sent: u32) {
        let forced = match &mut self.aside {
            Some(aside) if sent > 0 => aside.bursts.forced.take().is_some_and(|at| at == now),
            _ => false,
        };
        let size = sent + u32::from(forced);
        if size > 1 {
            self.aside().bursts.sizes.note(size);
        }
    }

    /// As [`Self::note_burst`], of two segments or more, where nothing was forced.
    #[inline(never)]
    pub(super) fn note_ordinary_burst(&mut self, sent: u32) {
        self.aside().bursts.sizes.note(sent);
    }

    /// All so far.
    pub(super) fn bursts(&self) -> Bursts {
        let many = self.aside.as_ref().map_or_else(Bursts::default, |a| a.bursts.sizes.clone());
        Bursts { single: self.counters.segments_sent.saturating_sub(many.segments), ..many }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_apart_and_none_is_below_its_place() {
        let mut last = 0;
        for size in 2..100_000 {
            let at = place(size);
            assert!(at == last || at == last + 1, "{size}");
            assert!(
                most(at) >= size && f64::from(most(at)) <= f64::from(size) * 1.125,
                "{size}: {}",
                most(at)
            );
            assert!(size > EXACT || most(at) == size);
            last = at;
        }
        assert_eq!(most(place(u32::MAX)), u32::MAX);
    }

    #[test]
    fn mean_largest_and_quantiles() {
        let mut b = Bursts { single: 90, ..Bursts::default() };
        assert_eq!((b.mean(), b.largest(), b.quantile(0.99)), (Some(1.0), 1, Some(1)));
        (0..9).for_each(|_| b.note(2));
        b.note(40);
        assert_eq!((b.count(), b.largest()), (100, 40));
        assert_eq!(b.mean(), Some((90.0 + 18.0 + 40.0) / 100.0));
        assert_eq!([0.0, 0.5, 0.9, 0.91, 0.99, 1.0].map(|q| b.quantile(q)), [1, 1, 1, 2, 2, 40].map(Some));
        let mut both = Bursts { single: 10, ..Bursts::default() };
        both.merge(&b);
        both.merge(&Bursts::default());
        assert_eq!((both.count(), both.largest(), both.quantile(1.0)), (110, 40, Some(40)));
        let none = Bursts::default();
        assert_eq!((none.mean(), none.largest(), none.quantile(0.99)), (None, 0, None));
    }
}
