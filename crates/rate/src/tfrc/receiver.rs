//! The receiver of TFRC (RFC 5348 §6).

use super::{Config, Intervals, loss_at};
use crate::highest::Highest;
use crate::loss::{Arrival, Gap, Losses};
use crate::meter::Meter;
use crate::option::Feedback;
use crate::packet::{Data, Report, ReportBody};
use skyhaul_base::{Duration, Instant};
use std::collections::VecDeque;

/// RTT assumed for a loss before any packet has carried one.
const UNKNOWN_RTT: Duration = Duration::from_millis(500);
/// In a longer gap, only the first loss event and those of the last this many packets or RTTs are found: eight closed
/// intervals and the open one give the loss event rate.
const EVENTS_OF_A_GAP: u32 = 64;

/// The receiver.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    config: Config,
    losses: Losses,
    intervals: Intervals,
    meter: Meter,
    highest: Highest,
    /// RTT of the last report: the span of the next measurement (R_m-1).
    window: Duration,
    timer: Instant,
    /// The timer has expired without anything to report.
    owed: bool,
    /// Loss event rate of the last report.
    loss: f64,
    /// Maximum receive rate so far.
    most: f64,
    /// Size of the largest packet.
    segment: u32,
    lost: u64,
    /// Packets lost by the channel according to an oracle and not yet declared lost, ascending.
    excused: VecDeque<u64>,
    due: Option<Report>,
}

impl Receiver {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            losses: Losses::default(),
            intervals: Intervals::new(config.discounting),
            meter: Meter::default(),
            highest: Highest::default(),
            window: UNKNOWN_RTT,
            timer: Instant::MAX,
            owed: false,
            loss: 0.0,
            most: 0.0,
            segment: 1,
            lost: 0,
            excused: VecDeque::new(),
            due: None,
        }
    }

    /// A packet arrives; `marked`: it was ECN-marked.
    pub(crate) fn handle(&mut self, now: Instant, data: &Data, marked: bool) {
        let arrival = self.losses.arrived(now, data.number);
        if arrival == Arrival::Again {
            return;
        }
        self.segment = self.segment.max(data.size);
        self.highest.arrived(now, data);
        self.meter.arrived(now, data.size, self.window.max(self.rtt()));
        let withdrawn = arrival == Arrival::Late && self.intervals.take_back(data.number);
        if withdrawn {
            self.lost = self.lost.saturating_sub(1);
        }
        // Any other late packet belongs to a loss event already, or is a duplicate.
        if marked && (withdrawn || arrival == Arrival::New) {
            self.lose(now, data.number, now);
            self.intervals.confirm();
        }
        while let Some(gap) = self.losses.poll() {
            self.lost = self.lost.saturating_add(gap.len());
            self.give_up(now, &gap);
        }
        let every = self.config.feedback == Feedback::Packet || self.highest.rtt().is_none();
        if every || self.owed || self.timer == Instant::MAX || self.loss_event_rate() > self.loss {
            self.report(now);
        }
    }

    /// An oracle reports that the channel lost this packet: with `ignore-corruption` it starts no loss event.
    pub(crate) fn excuse(&mut self, number: u64) {
        if self.config.ignore_corruption {
            // Losses are out of order only if several links lose packets.
            let at = self.excused.partition_point(|n| *n < number);
            if self.excused.get(at) != Some(&number) {
                self.excused.insert(at, number);
            }
        }
    }
    /// The first lost packet of a gap, from `number` on, that was not lost by the channel.
    fn blamed(&self, mut number: u64, gap: &Gap) -> Option<u64> {
        let from = self.excused.partition_point(|n| *n < number);
        for excused in self.excused.range(from..) {
            if *excused != number {
                break;
            }
            number += 1;
        }
        (number < gap.end).then_some(number)
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.timer
    }
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.timer > now {
            return;
        }
        self.timer = Instant::MAX;
        if self.meter.has_news() {
            self.report(now);
        } else {
            self.owed = true;
        }
    }
    pub(crate) fn poll(&mut self) -> Option<Report> {
        self.due.take()
    }
    /// The current loss event rate.
    pub(crate) fn loss_event_rate(&self) -> f64 {
        self.highest.number().map_or(0.0, |highest| self.intervals.loss_event_rate(highest))
    }
    pub(crate) fn events(&self) -> u64 {
        self.intervals.events()
    }
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    fn rtt(&self) -> Duration {
        self.highest.rtt().unwrap_or(UNKNOWN_RTT)
    }

    /// All packets of a gap are lost: finds those that start loss events.
    fn give_up(&mut self, now: Instant, gap: &Gap) {
        let rtt = self.rtt();
        let end = gap.time_of(gap.end);
        let last = gap.first_after(end - rtt * u64::from(EVENTS_OF_A_GAP)).unwrap_or(gap.end);
        let last = last.min(gap.end.saturating_sub(EVENTS_OF_A_GAP.into()));
        let mut number = self.blamed(gap.first, gap);
        while let Some(n) = number {
            self.lose(now, n, gap.time_of(n));
            if let Some(next) = self.blamed(n + 1, gap) {
                // Another loss of the same event, if any: the event is then not a single loss.
                self.lose(now, next, gap.time_of(next));
            }
            let blind = self.intervals.blind_until(rtt).unwrap_or(now);
            number = gap.first_after(blind).and_then(|n| self.blamed(n.max(last), gap));
        }
        let judged = self.excused.partition_point(|n| *n < gap.end);
        self.excused.drain(..judged);
    }

    fn lose(&mut self, now: Instant, number: u64, time: Instant) {
        let rtt = self.rtt();
        let Self { intervals, meter, config, most, segment, .. } = self;
        intervals.lost(number, time, rtt, || {
            // The interval before the first loss must correspond to the rate at that time (§6.3.1).
            let (r, s) = (rtt.as_secs_f64(), f64::from(*segment));
            let target = meter.rate(now, rtt).max(*most).max(0.5 * s / r);
            1.0 / loss_at(target, s, r, config.timeout(r))
        });
    }

    /// A report is due (§6.2).
    fn report(&mut self, now: Instant) {
        if self.highest.number().is_none() {
            return;
        }
        let received = self.meter.rate(now, self.window);
        self.meter.report(now);
        self.most = self.most.max(received);
        self.loss = self.loss_event_rate();
        self.window = self.rtt();
        self.timer = self.highest.next_report(now);
        self.owed = false;
        let body = ReportBody::Tfrc { received: received as f32, loss: self.loss as f32 };
        self.due = self.highest.report(now, body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }
    fn data(number: u64, ms: u64, rtt: Option<u64>) -> Data {
        Data { number, sent_at: at(ms), rtt: rtt.map(Duration::from_millis), size: 1000 }
    }
    fn body(r: Option<Report>) -> (f32, f32) {
        match r.expect("a report").body {
            ReportBody::Tfrc { received, loss } => (received, loss),
            ReportBody::Ssvp { .. } => unreachable!(),
        }
    }

    #[test]
    fn the_first_packet_is_reported_at_once_and_then_once_per_round_trip_time() {
        let mut r = Receiver::new(Config::default());
        r.handle(at(300), &data(0, 0, None), false);
        let first = r.poll().unwrap();
        assert_eq!((first.echo, first.held, body(Some(first))), (at(0), Duration::ZERO, (0.0, 0.0)));
        r.handle(at(900), &data(1, 600, Some(500)), false);
        assert_eq!(body(r.poll()), (1000.0 / 0.6, 0.0), "the timer did not run: at once");
        for (n, t) in [(2, 1000), (3, 1100), (4, 1200), (5, 1300)] {
            r.handle(at(t), &data(n, t - 300, Some(500)), false);
            assert_eq!((r.poll(), r.next_timeout()), (None, at(1400)));
        }
        r.handle_timeout(at(1400));
        let second = r.poll().unwrap();
        assert_eq!((second.echo, second.held), (at(1000), Duration::from_millis(100)));
        assert_eq!(body(Some(second)), (8000.0, 0.0));
        // Nothing arrives: no report, but one for the next packet, over all that time.
        r.handle_timeout(at(1900));
        assert_eq!((r.poll(), r.next_timeout()), (None, Instant::MAX));
        r.handle(at(2400), &data(6, 2100, Some(500)), false);
        assert_eq!(body(r.poll()), (1000.0, 0.0));
    }

    #[test]
    fn a_new_loss_event_is_reported_at_once_and_others_of_its_round_trip_time_are_not() {
        let mut r = Receiver::new(Config::default());
        let mut reports = Vec::new();
        for n in (0..60).filter(|n| ![20, 22, 40].contains(n)) {
            let now = at(n * 100);
            r.handle_timeout(now);
            reports.extend(r.poll().map(|_| (n, "timer")));
            r.handle(now, &data(n, n * 100, Some(1000)), false);
            reports.extend(r.poll().map(|_| (n, "packet")));
        }
        let early: Vec<u64> = reports.iter().filter(|(_, why)| *why == "packet").map(|(n, _)| *n).collect();
        // 20 is given up when 21, 23 and 24 are there, 40 with 43; 22 belongs to the event of 20.
        assert_eq!(early, [0, 24, 43]);
        assert_eq!((r.events(), r.lost()), (2, 3));
        // The first interval stands for the receive rate before it, ten packets in the 1.1 s until somebody looked at the
        // timer; the second is 20 packets long.
        let first = 1.0 / loss_at(10_000.0 / 1.1, 1000.0, 1.0, 4.0);
        let expected = 2.0 / (first + 20.0);
        assert!((r.loss_event_rate() - expected).abs() < 1e-9, "{} {expected}", r.loss_event_rate());
    }

    #[test]
    fn the_first_interval_stands_for_the_rate_before_the_loss() {
        // 40 kB/s: a packet every 25 ms at a round-trip time of 0.55 s.
        let mut r = Receiver::new(Config::default());
        for n in (0..104).filter(|n| *n != 100) {
            r.handle_timeout(at(n * 25));
            r.handle(at(n * 25), &data(n, n * 25, Some(550)), false);
        }
        assert_eq!(r.events(), 1);
        let interval = 1.0 / r.loss_event_rate();
        assert!((interval - 340.0).abs() < 1.0, "{interval}");
    }

    #[test]
    fn a_mark_is_a_loss_when_it_arrives_and_a_late_packet_none() {
        let mut r = Receiver::new(Config::default());
        (0..20).for_each(|n| r.handle(at(n * 10), &data(n, n * 10, Some(50)), n == 10));
        assert_eq!((r.events(), r.lost()), (1, 0));
        let mut r = Receiver::new(Config::default());
        for n in [0, 1, 2, 4, 5, 6] {
            r.handle(at(n * 10), &data(n, n * 10, Some(50)), false);
        }
        assert_eq!((r.events(), r.lost()), (1, 1));
        r.handle(at(70), &data(3, 30, Some(50)), false);
        assert_eq!((r.events(), r.lost(), r.loss_event_rate()), (0, 0, 0.0));
    }

    #[test]
    fn a_duplicate_of_a_marked_packet_changes_nothing() {
        for (duplicate_marked, rtt) in [(false, 50), (true, 50), (true, 1)] {
            let mut r = Receiver::new(Config::default());
            (0..20).for_each(|n| r.handle(at(n * 10), &data(n, n * 10, Some(rtt)), n == 10));
            let before = r.loss_event_rate();
            r.handle(at(200), &data(10, 100, Some(rtt)), duplicate_marked);
            assert_eq!((r.events(), r.lost(), r.loss_event_rate()), (1, 0, before));
        }
        // A packet that was declared lost and arrives late with a mark.
        let mut r = Receiver::new(Config::default());
        for n in [0, 1, 2, 4, 5, 6] {
            r.handle(at(n * 10), &data(n, n * 10, Some(50)), false);
        }
        r.handle(at(70), &data(3, 30, Some(50)), true);
        assert_eq!((r.events(), r.lost()), (1, 0));
    }

    #[test]
    fn what_an_oracle_excuses_is_no_loss_event() {
        let oracle = Config { ignore_corruption: true, ..Config::default() };
        let events = |config: Config, excused: &[u64]| {
            let mut r = Receiver::new(config);
            for n in (0..60).filter(|n| ![20, 21, 40].contains(n)) {
                // It knows at once what the channel does.
                excused.iter().filter(|e| **e < n).for_each(|e| r.excuse(*e));
                r.handle(at(n * 100), &data(n, n * 100, Some(1000)), false);
            }
            (r.events(), r.lost())
        };
        assert_eq!(events(oracle, &[]), (2, 3));
        assert_eq!(events(oracle, &[20, 21]), (1, 3));
        assert_eq!(events(oracle, &[20]), (2, 3), "21 met a full queue");
        assert_eq!(events(oracle, &[20, 21, 40]), (0, 3));
        assert_eq!(events(Config::default(), &[20, 21, 40]), (2, 3), "nobody asked");
    }

    #[test]
    fn the_end_of_a_long_outage_determines_the_loss_event_rate() {
        let mut r = Receiver::new(Config::default());
        (0..50).for_each(|n| r.handle(at(n * 10), &data(n, n * 10, Some(100)), false));
        (2050..2053).for_each(|n| r.handle(at(n * 10), &data(n, n * 10, Some(100)), false));
        // 200 round-trip times without arrivals; an event is 110 ms, or 11 packets, after the one before.
        assert!((r.loss_event_rate() - 1.0 / 11.0).abs() < 1e-9, "{}", r.loss_event_rate());
        assert_eq!(r.lost(), 2000);
        // A packet every ten round-trip times: each lost one is an event.
        let mut r = Receiver::new(Config::default());
        for n in (0..10).chain(1010..1013) {
            r.handle(at(n * 1000), &data(n, n * 1000, Some(100)), false);
        }
        // I_0 = 4 > 2 · 1: DF = 2 · 1 / 4 = 0.5; (1 + 0.5 · 5) / (4 + 0.5 · 5).
        assert!((r.loss_event_rate() - 3.5 / 6.5).abs() < 1e-9, "{}", r.loss_event_rate());
    }

    #[test]
    fn an_outage_of_many_round_trip_times_is_many_events() {
        let mut r = Receiver::new(Config::default());
        (0..50).for_each(|n| r.handle(at(n * 10), &data(n, n * 10, Some(100)), false));
        (150..160).for_each(|n| r.handle(at(n * 10), &data(n, n * 10, Some(100)), false));
        // A second of losses, a round-trip time of 100 ms: events at 500, 610, 720, … ms.
        assert_eq!((r.events(), r.lost()), (10, 100));
        // A number far ahead is not counted through.
        for n in [1 << 60, (1 << 60) + 1, (1 << 60) + 2] {
            r.handle(at(3_600_000), &data(n, 3_600_000, Some(1)), false);
        }
        assert!(r.events() <= 10 + u64::from(EVENTS_OF_A_GAP) + 2);
    }
}
