//! Timers, repairs and their undoing over paths from 20 ms to 10 s, with every congestion control: what a rule says in round
//! trips or timeouts holds at each of them.

use crate::common::{explain, iss};

use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Config as Control, NAMES, Phase, RecoveryMode};
use skyhaul_tcp::config::Keepalive;
use skyhaul_tcp::{Config, Counted, Event, Flags, State};
use skyhaul_testkit::pair::{Act, Handshake, is_pure_ack};
use skyhaul_testkit::{Pair, SegmentEvent, Setup, Side, Verdict};
use std::collections::BTreeMap;

const C: Side = Side::Client;
const S: Side = Side::Server;
/// Milliseconds.
const ROUND_TRIPS: [u64; 4] = [20, 100, 600, 10_000];
/// The receiver's window, segments.
const WINDOW: u64 = 20;

/// A flow over one path.
struct Flow {
    name: String,
    rtt: Duration,
    config: Config,
    cc: Control,
}

impl Flow {
    /// The pair at time zero, with `n` segments to send.
    fn begin(&self, n: u64) -> Pair<Counted> {
        let mut setup = Setup::new(self.config, &self.cc, self.rtt / 2);
        setup.handshake = Handshake::Skipped(Some(self.rtt));
        let mut p = setup.build();
        p.send(C, n * self.mss(), true);
        p.send(S, 0, true);
        p
    }
    fn mss(&self) -> u64 {
        u64::from(self.config.mss)
    }
    /// Whether a spurious reduction is undone: probes that carry missing data would be false evidence, and BBR's window
    /// follows from its model of the path.
    fn undoes(&self) -> bool {
        let undoes = self.config.f_rto || self.config.eifel;
        let modelled = matches!(self.cc, Control::Bbr(_) | Control::Bbr3(_));
        undoes && !modelled && self.cc.policy(&self.config.rules).is_some_and(|p| !p.probes)
    }
}

/// Every congestion control over every path: losses found by duplicates, with and without timestamps, and by time.
fn flows() -> Vec<Flow> {
    let plain = Config { timestamps: false, eifel: false, ..Config::modern() };
    let ends = [("modern", Config::modern()), ("unstamped", plain), ("host", Config::host())];
    let mut all = Vec::new();
    for (end, config) in ends {
        for ms in ROUND_TRIPS {
            for name in NAMES {
                let config = Config { max_retransmissions: 0, receive_autotuning: false, ..config };
                all.push(Flow {
                    name: format!("{end}/{name} over {ms} ms"),
                    rtt: Duration::from_millis(ms),
                    config: Config { receive_buffer: WINDOW * u64::from(config.mss), ..config },
                    cc: Control::by_name(name).expect("known"),
                });
            }
        }
    }
    all
}

/// Watches the retransmission timer of the client: when it expires, the oldest segment has had a whole timeout since it
/// left last, and since the last progress.
struct Timer<'a> {
    flow: &'a Flow,
    seen: usize,
    departures: BTreeMap<u64, Instant>,
    una: u64,
    advanced: Instant,
    rto: Duration,
    phase: Phase,
    timeouts: Vec<Instant>,
}

impl<'a> Timer<'a> {
    fn new(flow: &'a Flow) -> Self {
        let (una, rto, phase) = (0, Duration::ZERO, Phase::Open);
        let (departures, timeouts) = (BTreeMap::new(), Vec::new());
        Self { flow, seen: 0, departures, una, advanced: Instant::ZERO, rto, phase, timeouts }
    }

    fn look(&mut self, p: &Pair<Counted>) {
        let (s, now) = (p.conn(C).snapshot(), p.now());
        if p.conn(C).counters().timeouts > self.timeouts.len() as u64 {
            let left = self.departures.get(&self.una).copied().unwrap_or(Instant::ZERO);
            // The impatient variant of RFC 6582 §4 lets the timer run through a recovery on purpose.
            let mode = self.flow.cc.policy(&self.flow.config.rules).map(|p| p.recovery);
            let impatient = self.phase == Phase::Recovery && mode == Some(RecoveryMode::NewReno);
            let since = left.max(self.advanced);
            assert!(
                impatient || now >= since + self.rto,
                "{}: a timeout at {now:?}, {:?} after {since:?}, of {:?}\n{}",
                self.flow.name,
                now - since,
                self.rto,
                explain(p)
            );
            self.timeouts.push(now);
        }
        for e in &p.log[self.seen..] {
            if e.side == C && e.event == SegmentEvent::Sent && e.segment.len > 0 && !e.segment.mark.is_probe()
            {
                self.departures.insert(u64::from(e.segment.seq.0.wrapping_sub(iss(C))), e.at);
            }
        }
        self.seen = p.log.len();
        if s.una > self.una {
            (self.una, self.advanced) = (s.una, now);
        }
        (self.rto, self.phase) = (s.rto, s.phase);
    }

    /// Everything up to `until`.
    fn run(&mut self, p: &mut Pair<Counted>, until: Instant) {
        while p.next_event().is_some_and(|t| t <= until) {
            p.step();
            self.look(p);
        }
        p.run_until(until);
    }
    /// How often the timer has expired since.
    fn since(&self, at: Instant) -> usize {
        self.timeouts.iter().filter(|t| **t > at).count()
    }
}

/// Runs to the end, no later than `limit`.
fn end(p: &mut Pair<Counted>, timer: &mut Timer<'_>, limit: Instant) {
    while !p.finished() && p.next_event().is_some_and(|t| t <= limit) {
        p.step();
        timer.look(p);
    }
    let name = &timer.flow.name;
    assert!(p.finished(), "{name}: not over at {limit:?}\n{}", explain(p));
}

#[test]
fn after_a_blackout_the_repair_takes_a_few_round_trips() {
    for flow in flows() {
        // Two round trips and a timeout, and many timeouts.
        for many in [false, true] {
            let mut p = flow.begin(400);
            let mut timer = Timer::new(&flow);
            let from = Instant::ZERO + flow.rtt * 8;
            timer.run(&mut p, from);
            let before = p.conn(C).snapshot();
            let to = from + if many { before.rto * 20 } else { flow.rtt * 2 + before.rto };
            for side in Side::BOTH {
                p.faults(
                    side,
                    move |d| if d.now >= from && d.now < to { Verdict::Lose } else { Verdict::Deliver },
                );
            }
            timer.run(&mut p, to);
            // Each timeout lasts twice as long as the one before.
            let most = if many { 5 } else { 2 };
            assert!(timer.since(from) <= most, "{}: {:?}", flow.name, timer.timeouts);
            // The timer that runs when it ends is one of those; the repair itself needs at most another one.
            let next = p.conn(C).next_timeout();
            end(&mut p, &mut timer, next + flow.rtt * 100 + Duration::from_secs(10));
            assert!(
                timer.since(to) <= 2,
                "{}, many: {many}: it ends at {to:?}: {:?}\n{}",
                flow.name,
                timer.timeouts,
                explain(&p)
            );
        }
    }
}

#[test]
fn a_delay_that_looks_like_a_loss_changes_little() {
    for flow in flows() {
        let mut p = flow.begin(400);
        let mut timer = Timer::new(&flow);
        let from = Instant::ZERO + flow.rtt * 8;
        timer.run(&mut p, from);
        let (before, repeated) = (p.conn(C).snapshot(), p.conn(C).counters().retransmissions);
        // Beyond the first timeout, which a tail loss probe may have put off.
        let to = from + flow.rtt * 2 + before.rto * 2;
        p.faults(
            C,
            move |d| {
                if d.now >= from && d.now < to { Verdict::Late(to - d.now) } else { Verdict::Deliver }
            },
        );
        timer.run(&mut p, to + flow.rtt * 2);
        let (after, count) = (p.conn(C).snapshot(), p.conn(C).counters());
        assert!(timer.since(from) > 0, "{}: no timeout\n{}", flow.name, explain(&p));
        if flow.undoes() {
            assert!(
                after.cwnd >= before.cwnd * 0.7 && after.phase == Phase::Open,
                "{}: {before:?}, then {after:?}\n{}",
                flow.name,
                explain(&p)
            );
            assert!(count.retransmissions <= repeated + 4, "{}: {count:?}", flow.name);
        }
        end(&mut p, &mut timer, to + flow.rtt * 100 + Duration::from_secs(10));
        assert!(timer.since(to + flow.rtt * 2) <= 1, "{}: {:?}", flow.name, timer.timeouts);
    }
}

#[test]
fn the_end_of_a_transfer_is_repaired_by_a_probe_or_one_timeout() {
    let mut late = Vec::new();
    for flow in flows() {
        let n = 60;
        let mut p = flow.begin(n);
        let mut timer = Timer::new(&flow);
        // The last three segments and the FIN, when they are sent first.
        let first = (n - 3) * flow.mss() + 1;
        let mut highest = first;
        p.faults(C, move |d| {
            let end = u64::from(d.segment.seq.0.wrapping_sub(iss(C))) + u64::from(d.segment.len);
            let end = end + u64::from(d.segment.flags.has(Flags::FIN));
            let new = end > highest;
            highest = highest.max(end);
            if new { Verdict::Lose } else { Verdict::Deliver }
        });
        let limit = Instant::ZERO + flow.rtt * 100 + Duration::from_secs(10);
        end(&mut p, &mut timer, limit);
        let probes = p.conn(C).counters().loss_probes;
        // RFC 8985 §6.2 step 2: the delivery of a repeated segment counts only after the smallest round trip. Where pacing
        // spreads segments so far that every acknowledgement is delayed, the probe's own, which is not, comes too early.
        match p.conn(C).sender().rack() {
            Some(rack) if rack.min_rtt() != Some(flow.rtt) => late.push(flow.name.clone()),
            Some(_) if flow.config.tail_loss_probe => assert!(
                probes >= 1 && timer.since(Instant::ZERO + flow.rtt * 2) == 0,
                "{}: {:?}\n{}",
                flow.name,
                timer.timeouts,
                explain(&p)
            ),
            _ => {}
        }
        // Before the first measurement a timeout of one second is too short for a path of 10 s.
        let repairs = timer.since(Instant::ZERO + flow.rtt * 2);
        assert!(repairs <= 2, "{}: {:?}\n{}", flow.name, timer.timeouts, explain(&p));
        // The answers to a control's own probes may show a loss before.
        let probing = flow.cc.policy(&flow.config.rules).is_some_and(|p| p.probes);
        if probes == 0 || (probing && p.conn(C).counters().recoveries > 0) {
            continue;
        }
        // RFC 8985 §7.2: two smoothed round trips after the last segment or acknowledgement, and what a lone segment's
        // acknowledgement may be delayed; or when the retransmission timer would expire, which is more than one.
        let last: Vec<_> = p.sent(C).filter(|e| e.segment.flags.has(Flags::FIN)).map(|e| e.at).collect();
        let acks = p.arrived(C).filter(|e| is_pure_ack(&e.segment) && e.at < last[1]);
        let acked = acks.map(|e| e.at).max().unwrap_or(Instant::ZERO);
        let waited = last[1] - last[0].max(acked);
        let most = flow.rtt * 2 + flow.config.delayed_ack.delay * 3;
        assert!(waited > flow.rtt && waited <= most, "{}: {waited:?}", flow.name);
    }
    assert!(late.len() <= 5, "{late:?}");
}

#[test]
fn a_lost_window_update_is_found_out_by_probes_that_back_off() {
    for flow in flows() {
        let mut p = flow.begin(3 * WINDOW);
        p.reads_by_hand(S);
        let mut timer = Timer::new(&flow);
        // The window closes; the update that answers the reading is lost.
        let open = Instant::ZERO + flow.rtt * 100 + Duration::from_secs(10);
        let half = flow.rtt / 4;
        p.at(open, S, Act::ReadEagerly);
        p.faults(S, move |d| {
            if is_pure_ack(d.segment) && d.now >= open && d.now < open + half {
                Verdict::Lose
            } else {
                Verdict::Deliver
            }
        });
        timer.run(&mut p, open);
        let probes: Vec<Instant> = p
            .sent(C)
            .filter(|e| {
                e.segment.len == 0 && e.segment.seq.0.wrapping_sub(iss(C)) as u64 == WINDOW * flow.mss()
            })
            .map(|e| e.at)
            .collect();
        assert!(
            probes.len() >= 3 && probes.len() as u64 == p.conn(C).counters().window_probes,
            "{}: {probes:?}\n{}",
            flow.name,
            explain(&p)
        );
        for w in probes.windows(3) {
            let (one, two) = (w[1] - w[0], w[2] - w[1]);
            let longest = flow.config.rto.max;
            assert!(
                two >= (one * 2).min(longest) && two <= one * 2 + flow.rtt,
                "{}: {one:?}, then {two:?}",
                flow.name
            );
        }
        let asked = p.conn(C).next_timeout();
        assert!(asked < Instant::MAX, "{}: nothing will ask", flow.name);
        end(&mut p, &mut timer, asked + flow.rtt * 100 + Duration::from_secs(10));
        assert!(timer.since(open) == 0, "{}: {:?}", flow.name, timer.timeouts);
    }
}

#[test]
fn keepalives_hold_a_silent_connection_and_end_a_dead_one() {
    for flow in flows() {
        // Old segments are answered at a limited rate (RFC 5961 §7).
        let (idle, interval) = ((flow.rtt * 20).max(Duration::from_secs(2)), flow.rtt * 3);
        let mut setup = Setup::new(flow.config, &flow.cc, flow.rtt / 2);
        setup.config[0].keepalive = Keepalive { idle, interval, probes: 3 };
        setup.handshake = Handshake::Skipped(Some(flow.rtt));
        let mut p: Pair<Counted> = setup.build();
        p.send(C, 5 * flow.mss(), false);
        let dead = Instant::ZERO + idle * 20;
        p.run_until(dead);
        let asked = p.sent(C).filter(|e| is_pure_ack(&e.segment)).count();
        assert!((15..=21).contains(&asked), "{}: {asked} questions", flow.name);
        assert_eq!(p.conn(C).state(), State::Established, "{}", flow.name);
        p.faults(C, |_| Verdict::Lose);
        p.faults(S, |_| Verdict::Lose);
        p.run_until(dead + idle + interval * 3 + flow.rtt * 2);
        assert_eq!(p.conn(C).state(), State::Closed, "{}", flow.name);
        assert!(p.end(C).events.contains(&Event::TimedOut), "{}", flow.name);
    }
}
