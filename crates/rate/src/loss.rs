//! Detects lost packets: a packet is lost once three packets with higher numbers have arrived (RFC 5348 §5.1).

use skyhaul_base::{Duration, Instant};
use std::collections::VecDeque;

/// Packets with higher numbers after which a packet counts as lost (NDUPACK).
const OVERTAKEN_BY: usize = 3;

/// A run of lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The first lost packet.
    pub(crate) first: u64,
    /// The first packet after it that arrived.
    pub(crate) end: u64,
    /// Arrival of the last packet before the gap; if there is none, arrival of packet `end`.
    before: Instant,
    /// Arrival of the first packet after the gap.
    after: Instant,
}

impl Gap {
    /// Number of lost packets.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.first
    }
    /// Nominal arrival time of packet `number`: interpolated between the neighbours of the gap (§5.2).
    pub(crate) fn time_of(&self, number: u64) -> Instant {
        let steps = u128::from(self.end - self.first) + 1;
        let step = u128::from(number.saturating_sub(self.first)) + 1;
        let span = u128::from((self.after - self.before).as_nanos());
        self.before + Duration::from_nanos(u64::try_from(span * step / steps).unwrap_or(u64::MAX))
    }
    /// The first packet of the gap whose nominal arrival is later than `t`.
    pub(crate) fn first_after(&self, t: Instant) -> Option<u64> {
        let (mut low, mut high) = (self.first, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.time_of(middle) > t { high = middle } else { low = middle + 1 }
        }
        (low < self.end).then_some(low)
    }
}

/// Status of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It arrives for the first time, and was not declared lost.
    New,
    /// Every packet up to its number has arrived or was declared lost: it is a lost packet after all, or a duplicate.
    Late,
    /// It is a duplicate of a packet beyond a gap.
    Again,
}

/// The order of arriving packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    /// The lowest number that has neither arrived nor been declared lost.
    next: u64,
    /// Arrival time of the last packet before `next` that has arrived; `None` if there is none.
    before: Option<Instant>,
    /// Packets from `next` on that have arrived, in the order of their numbers.
    pending: VecDeque<(u64, Instant)>,
}

impl Losses {
    /// Packet `number` arrives.
    pub(crate) fn arrived(&mut self, now: Instant, number: u64) -> Arrival {
        if number < self.next {
            return Arrival::Late;
        }
        let at = self.pending.partition_point(|(n, _)| *n < number);
        if self.pending.get(at).is_some_and(|(n, _)| *n == number) {
            return Arrival::Again;
        }
        self.pending.insert(at, (number, now));
        Arrival::New
    }

    /// The next gap whose packets are now declared lost. To be called until it returns `None`.
    pub(crate) fn poll(&mut self) -> Option<Gap> {
        while let Some(&(first, time)) = self.pending.front() {
            if first > self.next {
                if self.pending.len() < OVERTAKEN_BY {
                    return None;
                }
                let before = self.before.unwrap_or(time).min(time);
                let gap = Gap { first: self.next, end: first, before, after: time };
                self.next = first;
                return Some(gap);
            }
            self.pending.pop_front();
            self.before = Some(time);
            self.next = first.saturating_add(1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_packet_is_lost_after_three_later_ones() {
        let mut l = Losses::default();
        for n in [0, 1, 3, 4] {
            assert_eq!(l.arrived(at(10 * n), n), Arrival::New);
            assert_eq!(l.poll(), None);
        }
        assert_eq!(l.arrived(at(40), 4), Arrival::Again);
        assert_eq!(l.poll(), None, "a duplicate does not count as a later packet");
        l.arrived(at(50), 5);
        let gap = l.poll().unwrap();
        assert_eq!((gap.first, gap.end, gap.len(), gap.time_of(2)), (2, 3, 1, at(20)));
        assert_eq!(l.poll(), None);
        assert_eq!(l.arrived(at(60), 2), Arrival::Late);
    }

    #[test]
    fn reordering_by_less_loses_nothing() {
        let mut l = Losses::default();
        for n in [1, 2, 0, 5, 3, 4, 7, 8, 6] {
            l.arrived(at(n), n);
            assert_eq!(l.poll(), None, "after {n}");
        }
    }

    #[test]
    fn times_within_a_gap_lie_between_its_neighbours() {
        let mut l = Losses::default();
        for (n, t) in [(0, 0), (10, 100), (12, 120), (13, 130)] {
            l.arrived(at(t), n);
        }
        let gap = l.poll().unwrap();
        assert_eq!((gap.first, gap.end), (1, 10));
        assert_eq!((gap.time_of(1), gap.time_of(9)), (at(10), at(90)));
        assert_eq!((gap.first_after(at(35)), gap.first_after(at(90))), (Some(4), None));
        // 11 is overtaken by 12 and 13 only.
        assert_eq!(l.poll(), None);
        l.arrived(at(140), 14);
        assert_eq!(l.poll().map(|g| (g.first, g.end)), Some((11, 12)));
    }

    #[test]
    fn the_first_packets_may_be_lost() {
        let mut l = Losses::default();
        for n in [2, 3, 4] {
            l.arrived(at(n), n);
        }
        let gap = l.poll().unwrap();
        assert_eq!((gap.first, gap.end, gap.time_of(0)), (0, 2, at(2)));
    }

    #[test]
    fn a_gap_of_any_length_is_one_gap() {
        let mut l = Losses::default();
        for n in [0, u64::MAX - 2, u64::MAX - 1, u64::MAX] {
            l.arrived(at(1), n);
        }
        let gap = l.poll().unwrap();
        assert_eq!((gap.first, gap.end), (1, u64::MAX - 2));
        assert_eq!(gap.first_after(at(0)), Some(1));
        assert_eq!(l.poll(), None);
    }
}
