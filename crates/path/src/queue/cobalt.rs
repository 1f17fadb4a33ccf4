//! COBALT: CoDel and BLUE side by side, for each queue of CAKE ["Piece of CAKE" 2018, §III-C; Palmei et al. 2019].
//!
//! CoDel's law sets the times of the signals, `interval / sqrt(n)` apart. Unlike the state machine of RFC 8289, that of COBALT has no
//! first interval apart from the others: the count rises with each signal and falls by one each time that a signal would be due
//! while the delay is short, so that a queue that fills again resumes with the frequency that had controlled it. BLUE drops at
//! random, whatever the ECN field says: its probability rises when the queue overflows and falls when it is empty, for
//! traffic that does not respond to CoDel.

use super::codel::Law;
use skyhaul_base::{Duration, Instant};

/// What a queue is held to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) law: Law,
    /// Time that a full packet takes.
    pub(super) full_packet: Duration,
}

/// A delay of this many full packets is none.
const FEW_PACKETS: u64 = 4;

/// A probability, in units of 2^-32.
type Share = u32;
/// What an overflow adds to BLUE's probability: 1/256.
pub(super) const INCREMENT: Share = 1 << 24;
/// What an empty queue takes off it: 1/4096.
pub(super) const DECREMENT: Share = 1 << 20;

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Send,
    Mark,
    Drop,
}

/// The state of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Cobalt {
    /// Signals of the current series, less those that were due while the delay was short.
    count: u32,
    dropping: bool,
    /// When the next signal is due; without a series, until when the state is kept.
    next: Instant,
    /// BLUE's probability.
    blue: Share,
    /// When it has last changed.
    changed: Instant,
}

impl Cobalt {
    /// The next signal after one at `t`, or after the beginning of a series.
    fn advance(&mut self, law: &Law, t: Instant) {
        self.next = law.next(t, self.count.max(1));
    }

    /// A packet of this queue was dropped because all queues together are full: BLUE's probability rises, once per target.
    pub(super) fn overflow(&mut self, law: &Law, now: Instant) {
        if now.since(self.changed) > law.target {
            self.blue = self.blue.saturating_add(INCREMENT);
            self.changed = now;
        }
        self.dropping = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// The queue was found empty: BLUE's probability falls, once per target, and the count by what is due.
    pub(super) fn empty(&mut self, law: &Law, now: Instant) {
        if self.blue > 0 && now.since(self.changed) > law.target {
            self.blue = self.blue.saturating_sub(DECREMENT);
            self.changed = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.next {
            self.count -= 1;
            self.advance(law, self.next);
        }
    }

    /// Whether the state is that of a queue that has never been used.
    pub(super) fn is_at_rest(&self, now: Instant) -> bool {
        self.blue == 0 && self.count == 0 && now >= self.next
    }

    /// Judges a packet that has waited since `since`. The `last` of its queue is not dropped. `draw` is uniform.
    pub(super) fn judge(
        &mut self,
        limits: &Limits,
        (now, since): (Instant, Instant),
        (ect, last): (bool, bool),
        draw: u32,
    ) -> Verdict {
        let law = &limits.law;
        let waited = now.since(since);
        let above = waited > law.target && waited > limits.full_packet * FEW_PACKETS;
        let mut late = now > self.next;
        let mut due = self.count > 0 && now >= self.next;
        if above {
            if !self.dropping {
                self.dropping = true;
                self.advance(law, now);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let signal = due && self.dropping;
        if signal {
            self.count = self.count.saturating_add(1);
            self.advance(law, self.next);
            late = now > self.next;
        } else {
            while due {
                self.count -= 1;
                self.advance(law, self.next);
                late = now > self.next;
                due = self.count > 0 && now >= self.next;
            }
        }
        let drop = draw < self.blue || signal && !ect;
        if self.count == 0 {
            self.next = now + law.interval;
        } else if late && !drop {
            self.next = now;
        }
        match (drop && !last, signal && ect) {
            (true, _) => Verdict::Drop,
            (false, true) => Verdict::Mark,
            (false, false) => Verdict::Send,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ms;
    use super::*;
    use alloc::vec::Vec;

    const LIMITS: Limits = Limits { law: Law::RFC, full_packet: Duration::from_millis(1) };
    /// BLUE never drops at this draw, unless its probability is 1.
    const SPARED: u32 = u32::MAX;

    /// Judges a packet each millisecond up to `until`, all of which have waited for `waited` ms; returns the times of the signals.
    fn signals(c: &mut Cobalt, (from, until): (u64, u64), waited: u64) -> Vec<u64> {
        let hit =
            |t: &u64| c.judge(&LIMITS, (ms(*t), ms(*t - waited)), (true, false), SPARED) == Verdict::Mark;
        (from..until).filter(hit).collect()
    }

    #[test]
    fn signals_follow_the_law_of_codel() {
        // Above the target from 1000 ms on: due at 1100, then 100/√2, 100/√3 … ms after one another, each at the next packet.
        let mut c = Cobalt::default();
        assert!(signals(&mut c, (990, 1000), 0).is_empty());
        assert_eq!(signals(&mut c, (1000, 1410), 6), [1100, 1171, 1229, 1279, 1324, 1364, 1402]);
        assert_eq!(c.count, 8);
        // At exactly the target, or at four full packets, nothing is above it.
        for waited in [4, 5] {
            assert!(signals(&mut Cobalt::default(), (1000, 3000), waited).is_empty());
        }
        let slow = Limits { full_packet: Duration::from_millis(2), ..LIMITS };
        let mut c = Cobalt::default();
        for t in 1000..3000 {
            assert_eq!(c.judge(&slow, (ms(t), ms(t - 8)), (true, false), SPARED), Verdict::Send);
        }
    }

    #[test]
    fn the_count_falls_at_the_times_of_the_law_and_a_new_series_goes_on_there() {
        let mut c = Cobalt::default();
        assert!(signals(&mut c, (990, 1000), 0).is_empty());
        assert_eq!(signals(&mut c, (1000, 1410), 6).len(), 7);
        // The next signals would be due at 1437.1 ms, 100/√7 = 37.8 ms later at 1474.9 and 100/√6 = 40.8 ms later at 1515.8 ms: as
        // long as the delay is short the packets after these times lower the count instead.
        for (t, count) in [(1437, 8), (1438, 7), (1474, 7), (1475, 6), (1516, 5)] {
            assert!(signals(&mut c, (t, t + 1), 0).is_empty());
            assert_eq!(c.count, count, "{t}");
        }
        // The delay is long again: the next signal comes after 100/√5 = 44.7 ms, not after 100.
        assert_eq!(signals(&mut c, (1520, 1600), 6)[0], 1565);
    }

    #[test]
    fn packets_that_cannot_be_marked_are_dropped_unless_they_are_the_last() {
        let judged = |ect, last| {
            let mut c = Cobalt { count: 1, dropping: true, next: ms(100), ..Cobalt::default() };
            c.judge(&LIMITS, (ms(100), ms(50)), (ect, last), SPARED)
        };
        assert_eq!(judged(false, false), Verdict::Drop);
        assert_eq!([judged(true, false), judged(true, true)], [Verdict::Mark; 2]);
        assert_eq!(judged(false, true), Verdict::Send);
    }

    #[test]
    fn blue_rises_with_overflows_once_per_target_and_falls_when_the_queue_is_empty() {
        let (law, mut c) = (Law::RFC, Cobalt::default());
        // 1/256 each, if more than 5 ms have passed: at 10, 16, 22, … ms.
        for t in 10..40 {
            c.overflow(&law, ms(t));
        }
        assert_eq!((c.blue, c.changed), (5 * INCREMENT, ms(34)));
        assert!(c.dropping && c.count == 1 && !c.is_at_rest(ms(10_000)));
        // 1/4096 each on the way down: 80 of them.
        let mut steps = 0;
        for t in 35..2000 {
            let before = c.blue;
            c.empty(&law, ms(t));
            steps += u32::from(c.blue < before);
            assert!(c.blue == before || before - c.blue == DECREMENT);
        }
        assert_eq!((c.blue, steps), (0, 5 * 16));
        assert!(!c.dropping && c.count == 0 && c.is_at_rest(ms(2000)));
        // At 1 it stays.
        let mut full = Cobalt { blue: u32::MAX - 5, ..Cobalt::default() };
        full.overflow(&law, ms(100));
        assert_eq!(full.blue, u32::MAX);
    }

    #[test]
    fn blue_drops_at_its_probability_whatever_the_ecn_field_says() {
        for (ect, draw, expected) in [
            (false, 5 * INCREMENT - 1, Verdict::Drop),
            (true, 5 * INCREMENT - 1, Verdict::Drop),
            (true, 5 * INCREMENT, Verdict::Send),
        ] {
            let mut c = Cobalt { blue: 5 * INCREMENT, ..Cobalt::default() };
            assert_eq!(c.judge(&LIMITS, (ms(10), ms(10)), (ect, false), draw), expected);
            // Never the last packet of its queue.
            assert_eq!(c.judge(&LIMITS, (ms(10), ms(10)), (ect, true), draw), Verdict::Send);
        }
        // Where CoDel would mark and BLUE drops, the packet is dropped.
        let mut c = Cobalt { count: 1, dropping: true, next: ms(100), blue: INCREMENT, ..Cobalt::default() };
        assert_eq!(c.judge(&LIMITS, (ms(100), ms(50)), (true, false), 0), Verdict::Drop);
    }
}
