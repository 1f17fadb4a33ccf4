//! Packets that arrive too long after the previous one.
//!
//! Papadimitriou, Tsaoussidis 2007, Algorithm 1: packet i is delayed if it arrives more than a threshold after
//! packet i − 1. The source does not define the case where packet i − 1 is missing; it is not counted here. A
//! second count compares with the packet that arrived before, whatever its number.
//!
//! A packet's arrival time is needed only by the next one in number. So what is known are *runs* of consecutive
//! packets, each with the time of its last one, and usually one run.

use skyhaul_base::{Duration, Instant};
use std::collections::VecDeque;

/// Maximum distance in number at which reordered packets still find their neighbours.
const WINDOW: u64 = 4096;
/// Not known: nothing is late after this.
const NEVER: Instant = Instant::MAX;

/// Consecutive packets that arrived.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The first one.
    from: u64,
    /// The one after the last.
    to: u64,
    /// When the last one arrived.
    at: Instant,
}

/// Counts packets that arrive late after the previous one.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    threshold: Duration,
    /// The run with the highest numbers; empty before the first packet.
    top: Run,
    /// When the last packet arrived.
    last: Instant,
    /// Packets that arrived.
    pub(super) received: u64,
    /// Late after the previous one in number.
    pub(super) by_number: u64,
    /// Late after the previous one in time.
    pub(super) by_arrival: u64,
    /// The other runs, ascending.
    below: VecDeque<Run>,
    /// Packets before this one are unknown.
    floor: u64,
}

impl Gaps {
    pub(super) fn new(threshold: Duration) -> Self {
        Self {
            threshold,
            top: Run { from: 0, to: 0, at: NEVER },
            last: NEVER,
            received: 0,
            by_number: 0,
            by_arrival: 0,
            below: VecDeque::new(),
            floor: 0,
        }
    }

    /// Packet `number` arrived for the first time. Later packets are compared with it, but it enters the counts
    /// only if it `counts`.
    #[inline]
    pub(super) fn arrived(&mut self, now: Instant, number: u64, counts: bool) {
        let before = if number == self.top.to {
            // Usually the next one.
            self.top.to = number.saturating_add(1);
            core::mem::replace(&mut self.top.at, now)
        } else {
            self.among(now, number)
        };
        let last = core::mem::replace(&mut self.last, now);
        if counts {
            self.received += 1;
            // Most are not.
            if self.is_late(now, before) {
                self.by_number += 1;
            }
            if self.is_late(now, last) {
                self.by_arrival += 1;
            }
        }
    }

    /// Whether a packet is late that arrived after one at `before`.
    #[inline(always)]
    pub(super) fn is_late(&self, now: Instant, before: Instant) -> bool {
        now.since(before) > self.threshold
    }
    /// Packets are late that arrive later than this after the one before.
    #[inline(always)]
    pub(super) fn threshold(&self) -> Duration {
        self.threshold
    }
    /// When the last packet arrived; nothing is late after what it returns before the first one.
    #[inline]
    pub(super) fn last(&self) -> Instant {
        self.last
    }
    /// The next packets arrived in order, so many of them late and the last one at this time, after all [others](Self::agrees).
    #[inline]
    pub(super) fn in_order(&mut self, packets: u64, late: u64, last: Instant) {
        self.top.to += packets;
        (self.top.at, self.last) = (last, last);
        self.received += packets;
        self.by_number += late;
        self.by_arrival += late;
    }
    /// Whether nothing but the last packet, before `next`, which arrived at `last`, matters for the next one.
    pub(super) fn agrees(&self, next: u64, last: Instant) -> bool {
        (self.top.to, self.top.at, self.last) == (next, last, last)
    }

    /// The arrival time of the packet before `number`, which does not continue the highest run.
    #[inline(never)]
    fn among(&mut self, now: Instant, number: u64) -> Instant {
        let Run { from, to, .. } = self.top;
        let one = Run { from: number, to: number.saturating_add(1), at: now };
        if number < to {
            return self.below(one);
        }
        if number >= to.saturating_add(WINDOW) {
            // A packet so far ahead has no neighbours here.
            self.below.clear();
            self.floor = number;
        } else if to > from {
            self.below.push_back(self.top);
        }
        self.top = one;
        self.forget();
        NEVER
    }

    /// The same, for a packet that was overtaken: the run that it continues, or a new one.
    fn below(&mut self, one: Run) -> Instant {
        self.forget();
        let number = one.from;
        if number < self.floor {
            return NEVER;
        }
        let place = self.below.partition_point(|r| r.to < number);
        let before = self.below.get(place).copied().filter(|r| r.to == number);
        let run = Run { from: before.map_or(number, |b| b.from), ..one };
        // The run after the gap, which may be filled now.
        let next = place + usize::from(before.is_some());
        let above = self.below.get_mut(next).unwrap_or(&mut self.top);
        if above.from == run.to {
            above.from = run.from;
            if before.is_some() {
                self.below.remove(place);
            }
        } else if let Some(known) = self.below.get_mut(place).filter(|_| before.is_some()) {
            *known = run;
        } else {
            self.below.insert(place, run);
        }
        before.map_or(NEVER, |b| b.at)
    }

    /// Forgets packets too far below the highest one to have neighbours.
    fn forget(&mut self) {
        self.floor = self.floor.max(self.top.to.saturating_sub(WINDOW));
        while self.below.front().is_some_and(|r| r.to <= self.floor) {
            self.below.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Rng;
    use std::collections::BTreeMap;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn the_worked_example() {
        let mut g = Gaps::new(Duration::from_millis(100));
        for (number, ms) in [(0, 0), (1, 50), (2, 160), (4, 300), (3, 310)] {
            g.arrived(at(ms), number, true);
        }
        // By number 2 and 3 are late, and 4 has no neighbour; by arrival 2 and 4 are, and 3 is not.
        assert_eq!((g.received, g.by_number, g.by_arrival), (5, 2, 2));
    }

    #[test]
    fn exactly_the_threshold_is_not_late_and_nothing_is_nothing() {
        let mut g = Gaps::new(Duration::from_millis(100));
        assert_eq!(g.received, 0);
        g.arrived(at(0), 0, true);
        g.arrived(at(100), 1, true);
        assert_eq!(g.by_number, 0);
        g.arrived(at(201), 2, false);
        assert_eq!((g.received, g.by_number), (2, 0), "known, but not counted");
        g.arrived(at(400), 3, true);
        assert_eq!((g.received, g.by_number), (3, 1));
    }

    #[test]
    fn a_naive_table_counts_the_same_under_loss_and_reordering() {
        let mut rng = Rng::stream(1, "gaps");
        for _ in 0..50 {
            let mut packets: Vec<(u64, u64)> = Vec::new();
            for number in 0..500 {
                if rng.unit() < 0.9 {
                    packets.push((number * 20 + rng.below(400), number));
                }
            }
            packets.sort_unstable();
            let mut g = Gaps::new(Duration::from_millis(100));
            let mut table: BTreeMap<u64, u64> = BTreeMap::new();
            let mut late = 0;
            for &(ms, number) in &packets {
                g.arrived(at(ms), number, true);
                late += u64::from(
                    number.checked_sub(1).and_then(|n| table.get(&n)).is_some_and(|t| ms - t > 100),
                );
                table.insert(number, ms);
            }
            let by_arrival = packets.windows(2).filter(|w| w[1].0 - w[0].0 > 100).count() as u64;
            assert_eq!((g.by_number, g.by_arrival), (late, by_arrival));
            assert!(late > 0);
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut g = Gaps::new(Duration::from_millis(1));
        for number in (0..100_000).step_by(2) {
            g.arrived(at(number), number, true);
            assert!(g.below.len() as u64 <= WINDOW);
        }
        for number in 1_000_000..1_010_000 {
            g.arrived(at(number), number, true);
        }
        assert!(g.below.is_empty());
        g.arrived(at(2_000_000), u64::MAX, true);
        assert!(g.below.is_empty() && g.by_number == 0);
    }
}
