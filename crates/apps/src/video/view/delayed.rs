//! Packets that arrive too long after the previous one.
//!
//! Papadimitriou, Tsaoussidis 2007, Algorithm 1: packet i is delayed if it arrives more than a threshold after
//! packet i − 1. The source does not define the case where packet i − 1 is missing; it is not counted here. A
//! second count compares with the packet that arrived before, whatever its number.

use skyhaul_base::{Duration, Instant};
use std::collections::BTreeMap;

/// Maximum distance from the highest number at which reordered packets are still compared with their neighbours.
const WINDOW: u64 = 4096;

/// Counts packets that arrive late after the previous one.
#[derive(Clone, Debug)]
pub(super) struct Delayed {
    threshold: Duration,
    /// When packets arrived, by number, until the next one in number arrives or the window has passed.
    times: BTreeMap<u64, Instant>,
    /// When the last packet arrived.
    last: Option<Instant>,
    /// Packets that arrived.
    pub(super) received: u64,
    /// Late after the previous one in number.
    pub(super) by_number: u64,
    /// Late after the previous one in time.
    pub(super) by_arrival: u64,
}

impl Delayed {
    pub(super) fn new(threshold: Duration) -> Self {
        Self { threshold, times: BTreeMap::new(), last: None, received: 0, by_number: 0, by_arrival: 0 }
    }

    /// Packet `number` arrived for the first time. Later packets are compared with it, but it enters the counts
    /// only if it `counts`.
    pub(super) fn arrived(&mut self, now: Instant, number: u64, counts: bool) {
        let previous = number.checked_sub(1).and_then(|n| self.times.remove(&n));
        let last = self.last.replace(now);
        if counts {
            let late = |before: Option<Instant>| before.is_some_and(|t| now.since(t) > self.threshold);
            self.received += 1;
            self.by_number += u64::from(late(previous));
            self.by_arrival += u64::from(late(last));
        }
        self.times.insert(number, now);
        let highest = self.times.last_key_value().map_or(number, |(n, _)| *n);
        while self.times.first_key_value().is_some_and(|(n, _)| highest - n >= WINDOW) {
            self.times.pop_first();
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
        let mut g = Delayed::new(Duration::from_millis(100));
        for (number, ms) in [(0, 0), (1, 50), (2, 160), (4, 300), (3, 310)] {
            g.arrived(at(ms), number, true);
        }
        // By number 2 and 3 are late, and 4 has no neighbour; by arrival 2 and 4 are, and 3 is not.
        assert_eq!((g.received, g.by_number, g.by_arrival), (5, 2, 2));
    }

    #[test]
    fn a_gap_of_exactly_the_threshold_is_not_late() {
        let mut g = Delayed::new(Duration::from_millis(100));
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
            let mut g = Delayed::new(Duration::from_millis(100));
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
        let mut g = Delayed::new(Duration::from_millis(1));
        for number in (0..100_000).step_by(2).chain(1_000_000..1_010_000) {
            g.arrived(at(number), number, true);
            assert!(g.times.len() as u64 <= WINDOW);
        }
        assert_eq!(g.times.len(), 1);
        g.arrived(at(2_000_000), u64::MAX, true);
        assert_eq!((g.times.len(), g.by_number), (1, 0));
    }
}
