//! CoDel: controlled delay active queue management [RFC 8289].
//!
//! A packet is dropped or marked when it leaves the queue: first if packets have waited longer than `target`
//! throughout the last `interval`, then again after `interval / sqrt(n)` for the n-th signal in a series, until a
//! packet waits for less.
//!
//! The interval should be near the maximum RTT, and the target 5 to 10 % of it [RFC 8289 §3.2]. The RFC's 100 ms
//! and 5 ms suit terrestrial paths; over a geostationary satellite they would signal long before a sender could
//! react. The defaults in files therefore follow from the path ([`Model::for_path`], *our choice*); those of
//! [`Config`] are the RFC's.

use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use super::options::{self, Invalid, USUAL_RTT, round_trip};
use super::waiting::{Signal, Timed, Waiting};
use crate::packet::{DropReason, PacketView};
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant, math};

skyhaul_base::options! {
    /// Marks or drops packets at the head while the queueing delay stays too long.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Config {
        /// Target queueing delay; by default 5 % of `interval`, with the kinds "pie" and "dual-pi2" 15 ms for each 100 ms of the
        /// longest base RTT of the flows on the link, at least 15 ms.
        target: Duration as Time = Law::RFC.target,
        /// Interval for which the delay must exceed the target; the longest base RTT of the flows on the link by default,
        /// rounded up to 10 ms, at least 100 ms.
        interval: Duration as Time = Law::RFC.interval,
        /// Mark ECN-capable packets instead of dropping them; true by default.
        ecn: bool = true,
        /// Mark or drop low priority instead of high priority; false by default.
        class_aware: bool = false,
    }
}

impl Model for Config {
    const KEYS: &'static [Key] = &[options::TARGET, options::INTERVAL, options::ECN, options::CLASS_AWARE];
    const SEES_ALL: bool = true;
    type Order<P> = Box<Codel<P>>;
    type Invalid = Invalid;

    fn validate(&self, _: Limit) -> Result<(), Invalid> {
        self.law().validate()
    }
    fn build<P>(&self) -> Box<Codel<P>> {
        let waiting = Waiting::new(self.class_aware);
        Box::new(Codel { waiting, control: Control::default(), law: self.law(), largest: 0 })
    }
    fn marks(&self) -> bool {
        self.ecn
    }
    fn words(&self) -> &'static str {
        "controlled delay (CoDel)"
    }
    fn ignores_priority(&self) -> bool {
        !self.class_aware
    }
    fn round_trip(&self) -> Option<(&'static str, Duration)> {
        Some((options::INTERVAL.name, self.interval))
    }
    fn for_path(self, rtt: Duration, written: &dyn Fn(&str) -> bool) -> Self {
        let Law { target, interval, .. } = self.law().for_path(rtt, written);
        Self { target, interval, ..self }
    }
}

impl Config {
    fn law(&self) -> Law {
        Law { target: self.target, interval: self.interval, ecn: self.ecn }
    }
}

/// Limits on the waiting time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Law {
    pub(super) target: Duration,
    pub(super) interval: Duration,
    pub(super) ecn: bool,
}

impl Law {
    /// The times of the RFC, which suit paths of up to 100 ms [RFC 8289 §4.2, §4.3].
    pub(super) const RFC: Self = Self { target: Duration::from_millis(5), interval: USUAL_RTT, ecn: true };

    /// The times for a path with this base RTT: what is not `written` in the file follows from it, the target from
    /// the interval [RFC 8289 §3.2].
    pub(super) fn for_path(self, rtt: Duration, written: &dyn Fn(&str) -> bool) -> Self {
        let interval = if written(options::INTERVAL.name) { self.interval } else { round_trip(rtt) };
        let target = if written(options::TARGET.name) { self.target } else { interval / 20 };
        Self { target, interval, ..self }
    }

    pub(super) fn validate(&self) -> Result<(), Invalid> {
        options::some_time(options::TARGET.name, self.target, "a time such as \"30 ms\"")?;
        options::some_time(options::INTERVAL.name, self.interval, "a time such as \"600 ms\"")?;
        if self.target < self.interval { Ok(()) } else { Err(Invalid::TargetAboveInterval) }
    }
    /// When the next signal is due, after the `count`-th of a series [RFC 8289 §5.6].
    pub(super) fn next(&self, t: Instant, count: u32) -> Instant {
        t + self.interval.mul_f64(1.0 / math::sqrt(f64::from(count)))
    }
}

/// The state of the control law [RFC 8289 §5].
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// When packets will have waited too long throughout one interval; `None` while they do not.
    first_above: Option<Instant>,
    /// When the next signal is due, while signals are sent.
    drop_next: Instant,
    /// Number of signals in the current series; more if the series began with the rate of the one before it.
    count: u32,
    /// `count` at the start of the series.
    last_count: u32,
    dropping: bool,
}

impl Control {
    /// The queue is empty: the last packet was sent at once.
    pub(super) fn idle(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// Whether the packet at the head has waited since `since` and packets have waited too long for an interval,
    /// with `backlog` bytes behind it [RFC 8289 §5.6].
    fn is_above(&mut self, law: &Law, now: Instant, since: Instant, backlog: u64, largest: u32) -> bool {
        if now.since(since) < law.target || backlog <= largest.into() {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + law.interval);
                false
            }
            Some(first) => now >= first,
        }
    }

    /// Takes the next packet to serve [RFC 8289 §5.5]. With a backlog of at most `largest`, the size of the largest
    /// packet, nothing is dropped. As in Linux, a mark replaces a drop and ends the series for this packet.
    pub(super) fn dequeue<P: PacketView>(
        &mut self,
        law: &Law,
        waiting: &mut Waiting<P>,
        largest: u32,
        (at, held): (&mut Moment<'_>, &mut Load),
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        let now = at.now;
        let Some(Timed { mut since, mut packet, .. }) = waiting.pop() else {
            self.idle();
            return None;
        };
        let mut above = self.is_above(law, now, since, waiting.bytes(), largest);
        let begins = above && !self.dropping;
        self.dropping &= above;
        while begins || (self.dropping && now >= self.drop_next) {
            let size = packet.size();
            let signal = waiting.signal(at, packet, law.ecn, held, lost);
            let marked = matches!(signal, Signal::Marked(_));
            packet = match signal {
                Signal::Marked(p) => p,
                Signal::Spared(p) => {
                    above = self.is_above(law, now, since, waiting.bytes(), largest);
                    p
                }
                Signal::Dropped => {
                    held.remove(size);
                    let Some(next) = waiting.pop() else {
                        self.idle();
                        return None;
                    };
                    since = next.since;
                    above = self.is_above(law, now, since, waiting.bytes(), largest);
                    next.packet
                }
            };
            if begins {
                // A series that starts soon after the last one begins with the rate that had controlled the queue.
                let delta = self.count.wrapping_sub(self.last_count);
                let soon = now.since(self.drop_next) < law.interval * 16;
                self.count = if delta > 1 && soon { delta } else { 1 };
                self.last_count = self.count;
                self.drop_next = law.next(now, self.count);
                self.dropping = true;
                break;
            }
            self.count += 1;
            self.dropping = above;
            if above {
                self.drop_next = law.next(self.drop_next, self.count);
            }
            if marked {
                break;
            }
        }
        Some(packet)
    }
}

/// The packets that wait, and the control of their delay.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    waiting: Waiting<P>,
    control: Control,
    law: Law,
    /// Size of the largest packet so far.
    largest: u32,
}

impl<P: PacketView> Order<P> for Codel<P> {
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        self.largest = self.largest.max(p.size());
        self.waiting.admit(at.now, p, held, limit, lost)
    }
    fn dequeue(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        self.control.dequeue(&self.law, &mut self.waiting, self.largest, (at, held), lost)
    }
    fn pass(&mut self, _: &mut Moment<'_>, p: P, _: Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        self.largest = self.largest.max(p.size());
        self.control.idle();
        Some(p)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Pkt, data, ms, probe};
    use super::*;
    use alloc::vec::Vec;

    /// The values of RFC 8289.
    fn stock() -> Config {
        Config { target: Duration::from_millis(5), interval: Duration::from_millis(100), ..Config::default() }
    }

    /// Serves a packet each 10 ms after `from` up to `until`, both in milliseconds; returns the times of losses and marks.
    fn drops(q: &mut Bench, from: u64, until: u64) -> Vec<u64> {
        let mut times = Vec::new();
        for t in (from + 10..=until).step_by(10) {
            let before = q.lost.len() + q.marks as usize;
            q.leave(ms(t)).expect("enough wait");
            times.extend((before..q.lost.len() + q.marks as usize).map(|_| t));
        }
        times
    }

    /// RFC 8289 §5 by hand: packets wait for longer than 5 ms from 10 ms on, so the first drop is at 10 + 100 ms. The next
    /// are due 100, 100/√2, 100/√3… ms after one another: at 210, 280.7, 338.4, 388.4, 433.2, 474.0, 511.8 and 547.1 ms. Each
    /// happens when the next packet leaves.
    const SERIES: [u64; 9] = [110, 210, 290, 340, 390, 440, 480, 520, 550];

    #[test]
    fn drops_follow_the_control_law() {
        let mut q = Bench::of(stock());
        (0..200).for_each(|id| assert!(q.arrive(ms(0), data(id))));
        assert_eq!(drops(&mut q, 0, 570), SERIES);
        // The head is lost: ten packets leave up to 100 ms, and the eleventh would have at 110 ms.
        assert_eq!(q.lost[..2], [(10, DropReason::Aqm), (21, DropReason::Aqm)]);
    }

    #[test]
    fn a_series_that_begins_soon_starts_where_the_last_one_was() {
        let mut q = Bench::of(stock());
        (0..200).for_each(|id| assert!(q.arrive(ms(0), data(id))));
        assert_eq!(drops(&mut q, 0, 550), SERIES);
        while q.leave(ms(551)).is_some() {}
        assert_eq!(q.lost.len(), SERIES.len());
        // The ninth drop was the eighth after the first: the series starts at 8, so the next are due 100/√8 = 35.4 and then
        // 100/√9 = 33.3 ms later: at 745.4 and 778.7 ms.
        (200..300).for_each(|id| assert!(q.arrive(ms(600), data(id))));
        assert_eq!(drops(&mut q, 600, 800), [710, 750, 780]);
        while q.leave(ms(801)).is_some() {}
        // 16 intervals after that it starts afresh: 100 ms, then 70.7 ms.
        (300..400).for_each(|id| assert!(q.arrive(ms(2500), data(id))));
        assert_eq!(drops(&mut q, 2500, 2800), [2610, 2710, 2790]);
    }

    #[test]
    fn the_delay_must_exceed_the_target_for_a_whole_interval() {
        let mut q = Bench::of(stock());
        (0..3).for_each(|id| assert!(q.arrive(ms(0), data(id))));
        assert!(q.leave(ms(10)).is_some());
        assert!(q.arrive(ms(107), data(3)) && q.arrive(ms(107), data(4)));
        assert!(q.leave(ms(108)).is_some() && q.leave(ms(108)).is_some());
        // Above since 10 ms, but this one has waited for 2 ms.
        assert_eq!(q.leave(ms(109)).map(|p| p.id), Some(3));
        (5..9).for_each(|id| assert!(q.arrive(ms(109), data(id))));
        assert!(q.leave(ms(120)).is_some() && q.leave(ms(219)).is_some());
        assert_eq!(q.lost, []);
        // Above from 120 ms on.
        assert!(q.leave(ms(220)).is_some());
        assert_eq!(q.lost.len(), 1);
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let mut q = Bench::of(stock());
        let mut t = 0;
        (0..2).for_each(|id| assert!(q.arrive(ms(t), data(id))));
        for id in 2..100 {
            // A full packet waits behind each, for 20 ms and more.
            t += 20;
            assert!(q.leave(ms(t)).is_some());
            assert!(q.arrive(ms(t), data(id)));
        }
        assert_eq!(q.lost, []);
    }

    #[test]
    fn packets_that_allow_it_are_marked_at_the_same_times() {
        let mut q = Bench::of(stock());
        (0..200).for_each(|id| assert!(q.arrive(ms(0), Pkt { ect: true, ..data(id) })));
        assert_eq!(drops(&mut q, 0, 570), SERIES);
        assert_eq!((q.lost.len(), q.marks), (0, 9));
        let mut q = Bench::of(Config { ecn: false, ..stock() });
        (0..200).for_each(|id| assert!(q.arrive(ms(0), Pkt { ect: true, ..data(id) })));
        assert_eq!(drops(&mut q, 0, 570), SERIES);
        assert_eq!((q.lost.len(), q.marks), (9, 0));
    }

    #[test]
    fn low_priority_is_dropped_in_the_place_of_data() {
        let mut q = Bench::of(Config { class_aware: true, ..stock() });
        (0..200).for_each(|id| assert!(q.arrive(ms(0), if id % 50 == 49 { probe(id) } else { data(id) })));
        assert_eq!(drops(&mut q, 0, 570), SERIES);
        let lost: Vec<_> = q.lost.iter().map(|l| l.0).collect();
        // The four probes first, from the head; then data, the head of which has moved on by one packet per 10 ms.
        assert_eq!(lost[..4], [49, 99, 149, 199]);
        assert_eq!(lost[4], 38);
    }

    #[test]
    fn a_packet_that_passes_ends_the_series() {
        let mut q = Bench::of(stock());
        (0..30).for_each(|id| assert!(q.arrive(ms(0), data(id))));
        assert_eq!(drops(&mut q, 0, 150), [110]);
        while q.leave(ms(151)).is_some() {}
        assert_eq!(q.pass(ms(205), data(30)), Some(data(30)));
        (31..60).for_each(|id| assert!(q.arrive(ms(206), data(id))));
        // Without it the series would go on at 210 ms.
        assert_eq!(drops(&mut q, 206, 306), [0; 0]);
        assert_eq!(drops(&mut q, 306, 326), [316]);
    }
}
