//! Burst sizes: how many data segments leave at once.

use alloc::vec::Vec;
use skyhaul_base::{Instant, math};

/// Burst sizes up to this, in segments, are counted exactly, larger ones to an eighth of an octave.
const EXACT: u32 = 32;

/// Bursts of data segments released by one event (an acknowledgement, a timer, a write of the application),
/// including retransmissions: their number and sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Bursts of one segment.
    pub(super) single: u64,
    /// Segments in bursts of two or more.
    pub(super) segments: u64,
    /// Bursts of two or more segments.
    many: u64,
    /// Size of the largest of them, segments.
    largest: u32,
    /// Their number by size class; see [`size_class`].
    sizes: Vec<u32>,
}

/// Size class of a size of two or more.
fn size_class(size: u32) -> usize {
    if size <= EXACT {
        return size as usize - 2;
    }
    let octave = size.ilog2();
    let eighth = (size >> (octave - 3)) & 7;
    (EXACT - 1 + 8 * (octave - EXACT.ilog2()) + eighth) as usize
}

/// Largest size in the class.
fn class_max(class: usize) -> u32 {
    let class = class as u32;
    if class + 2 <= EXACT {
        return class + 2;
    }
    let (octave, eighth) = ((class + 1 - EXACT) / 8 + EXACT.ilog2(), (class + 1 - EXACT) % 8);
    // Below 2^32 even for the last class of the highest octave.
    ((u64::from(9 + eighth) << (octave - 3)) - 1) as u32
}

impl Bursts {
    /// Counts a burst of `size` segments, two or more.
    #[inline]
    pub(super) fn note(&mut self, size: u32) {
        self.many += 1;
        self.segments += u64::from(size);
        self.largest = self.largest.max(size);
        let at = size_class(size);
        match self.sizes.get_mut(at) {
            Some(count) => *count = count.saturating_add(1),
            None => self.note_first(at),
        }
    }

    /// Counts the first burst of a size class, for which there is no counter yet.
    #[cold]
    #[inline(never)]
    fn note_first(&mut self, at: usize) {
        self.sizes.resize(at, 0);
        self.sizes.push(1);
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

    /// Number of bursts.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.single + self.many
    }
    /// Largest burst, segments; 0 if nothing was sent.
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
    /// Quantile `q` of the burst size, segments: exact up to 32, to an eighth of an octave above. `None` if nothing
    /// was sent.
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
                return Some(class_max(i).min(self.largest));
            }
            left -= u64::from(*n);
        }
        Some(self.largest)
    }
}

/// What is counted of bursts.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// Bursts of more than one segment.
    pub(super) sizes: Bursts,
    /// When a segment last left regardless of the window: what the send loop adds at that time is part of the same
    /// burst.
    pub(super) forced: Option<Instant>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_in_order_and_at_most_an_eighth_wide() {
        let mut last = 0;
        for size in 2..100_000 {
            let at = size_class(size);
            assert!(at == last || at == last + 1, "{size}");
            assert!(
                class_max(at) >= size && f64::from(class_max(at)) <= f64::from(size) * 1.125,
                "{size}: {}",
                class_max(at)
            );
            assert!(size > EXACT || class_max(at) == size);
            last = at;
        }
        assert_eq!(class_max(size_class(u32::MAX)), u32::MAX);
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
