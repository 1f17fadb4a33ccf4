//! Arbitrary sequences of events in the documented order, and what every algorithm must keep through them.
//!
//! The model counts segments like a sender, but its network is whatever the [`Op`]s say. Two instances of the
//! algorithm are built and shown the same; they must ask the same, hold the same window and print the same state:
//! an algorithm is a function of what it is shown. [`survive`] panics with the number of the operation otherwise.

use super::{Stage, ack};
use crate::event::{
    Ack, AckKind, Blocked, Clock, Head, Lost, Phase, ProbeEvent, ProbeSupport, RateSample, Sent, Signal,
    Start, Transmit,
};
use crate::{
    Actions, CongestionControl, Cx, PathCache, PathState, Policy, RecoveryEnd, RecoveryMode, Rules, Train,
};
use alloc::format;
use alloc::vec::Vec;
use skyhaul_base::{Duration, Instant, Rate, Rng};

/// One thing that happens. Numbers are cut to what is possible at that moment, and an operation that is not
/// possible at all is left out: every sequence is a valid one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// An acknowledgement that advances by this many segments and answers this many probes.
    Advance {
        /// Segments.
        segments: u8,
        /// Answers to probes that it carries.
        probes: u8,
        /// Time since the previous operation, ms.
        after: u8,
    },
    /// A duplicate acknowledgement; the third in a row reveals a loss.
    Duplicate {
        /// With selective news.
        sack: bool,
        /// The loss, if it reveals one, is declared to be corruption.
        corruption: bool,
        /// Time since the previous operation, ms.
        after: u8,
    },
    /// Answers to probes alone.
    Probes {
        /// How many.
        count: u8,
        /// They left before the current episode began.
        stale: bool,
        /// Time since the previous operation, ms.
        after: u8,
    },
    /// An acknowledgement of one segment with an ECN echo.
    Ecn,
    /// The retransmission timer expires.
    Timeout,
    /// The time asked for with [`Actions::wake_at`] comes, or else time passes.
    Wake,
    /// The peer turns out not to answer probes.
    Unsupported,
    /// The last reduction proves spurious.
    Undo,
    /// The application's data runs out, or this many segments are added; 255 is endless.
    Write(u8),
    /// The peer's window changes to this many segments.
    Window(u8),
    /// Nothing is outstanding for a long time.
    Idle,
}

impl From<[u8; 4]> for Op {
    /// Every code is an operation: for generators and fuzzers.
    fn from([kind, a, b, c]: [u8; 4]) -> Self {
        let sack = a % 2 == 0;
        match kind % 32 {
            0..=12 => {
                Self::Advance { segments: a % 8 + 1, probes: if b < 200 { 0 } else { b % 4 }, after: c }
            }
            13..=19 => Self::Duplicate { sack, corruption: b >= 230, after: c },
            20..=23 => Self::Probes { count: a % 8 + 1, stale: b >= 200, after: c },
            24 => Self::Ecn,
            25 => Self::Timeout,
            26 => Self::Wake,
            27 if a < 32 => Self::Unsupported,
            27 => Self::Advance { segments: u8::MAX, probes: 0, after: c },
            28 => Self::Undo,
            29 => Self::Write(if a % 2 == 0 { u8::MAX } else { b % 100 }),
            30 => Self::Window(if a < 64 { a % 4 } else { a }),
            _ => Self::Idle,
        }
    }
}

/// `n` operations of stream `seed`, for drivers without a generator of their own.
#[must_use]
pub fn ops(seed: u64, n: usize) -> Vec<Op> {
    let mut rng = Rng::stream(seed, "cc.testing.ops");
    (0..n).map(|_| Op::from((rng.next_u64() as u32).to_le_bytes())).collect()
}

/// What the algorithm asked for, episode by episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Trains of probes, with the peer's window at that time.
    pub trains: Vec<(f64, Train)>,
    /// Recoveries.
    pub recoveries: Vec<Episode>,
    /// The greatest window.
    pub highest_cwnd: f64,
}

/// A recovery and what followed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// Slow start threshold after the reduction.
    pub ssthresh: f64,
    /// Probes asked for until the next reduction or start.
    pub probes: u32,
    /// The peer was known to answer when it began.
    pub capable: bool,
}

/// Runs two instances of an algorithm through `ops`.
///
/// # Panics
/// If one of the invariants does not hold; the message says which, and after which operation.
pub fn survive<C: CongestionControl>(build: impl Fn() -> C, rules: &Rules, ops: &[Op]) -> Report {
    let mut model = Model::new(build(), build(), rules);
    for (i, &op) in ops.iter().enumerate() {
        model.step = i;
        model.apply(op);
    }
    model.report
}

/// As [`survive`], for algorithms that can be copied: half way through a copy takes over, and must end in the
/// state of the original.
///
/// # Panics
/// As [`survive`].
pub fn survive_copied<C: CongestionControl + Clone>(
    build: impl Fn() -> C,
    rules: &Rules,
    ops: &[Op],
) -> Report {
    let mut model = Model::new(build(), build(), rules);
    for (i, &op) in ops.iter().enumerate() {
        if i == ops.len() / 2 {
            model.twin = model.stage.cc.clone();
        }
        model.step = i;
        model.apply(op);
    }
    model.report
}

struct Model<C> {
    stage: Stage<C>,
    twin: C,
    rules: Rules,
    report: Report,
    step: usize,
    policy: Policy,

    /// Outstanding segments, and how many of them were sent again since a timeout (`SND.NXT`).
    outstanding: u32,
    next: u32,
    sacked: u32,
    lost: u32,
    dupacks: u32,
    backoff: u32,
    /// Segments to acknowledge until the recovery ends; until another loss is believed; until the round ends.
    recovery: u32,
    guard: u32,
    round: u32,
    round_delivered: u64,
    head_sent: Instant,
    head_again: u32,

    credit: u32,
    train: u32,
    wake: Option<Instant>,
    retransmit_head: bool,
    rewind: bool,
    sent: u32,
}

impl<C: CongestionControl> Model<C> {
    fn new(cc: C, twin: C, rules: &Rules) -> Self {
        let policy = cc.policy();
        let mut model = Self {
            stage: Stage::new(cc, 64.0),
            twin,
            rules: *rules,
            report: Report::default(),
            step: 0,
            policy,
            outstanding: 0,
            next: 0,
            sacked: 0,
            lost: 0,
            dupacks: 0,
            backoff: 0,
            recovery: 0,
            guard: 0,
            round: 0,
            round_delivered: 0,
            head_sent: Instant::ZERO,
            head_again: 0,
            credit: 0,
            train: 0,
            wake: None,
            retransmit_head: false,
            rewind: false,
            sent: 0,
        };
        model.stage.path.sack = rules.initial_window != Rules::NS2_2004.initial_window;
        model.stage.path.probes = if policy.probes { ProbeSupport::Unknown } else { ProbeSupport::No };
        let cached = (policy.path_cache != PathCache::Unused).then_some(PathState {
            cwnd: 20.0,
            ssthresh: 64.0,
            srtt: Some(Duration::from_millis(550)),
            rttvar: Duration::from_millis(20),
        });
        let start = Start::Established { rtt: Some(Duration::from_millis(550)), syn_lost: false, cached };
        model.call("on_start", |cc, cx| cc.on_start(cx, &start));
        model.policy = model.stage.cc.policy();
        model.transmit(Clock::App);
        model
    }

    /// Raises one event on both instances and checks what came of it.
    fn call(&mut self, name: &str, event: impl Fn(&mut C, &mut Cx<'_>)) {
        self.refresh();
        let before = self.stage.cwnd();
        let mut rng = self.stage.rng.clone();
        let mut theirs = Actions::default();
        let cx = &mut Cx { now: self.stage.now, path: &self.stage.path, rng: &mut rng, act: &mut theirs };
        event(&mut self.twin, cx);
        let act = self.stage.call(event);

        let at = format!("{name} at operation {}: {:?}", self.step, self.stage.cc);
        assert_eq!(act, theirs, "not a function of its inputs: {at}");
        assert_eq!(
            format!("{:?}", self.stage.cc),
            format!("{:?}", self.twin),
            "not a function of its inputs: {at}"
        );
        self.check_window(name, before, &at);
        self.check_requests(&act, &at);
        self.carry_out(&act);
    }

    fn check_window(&mut self, name: &str, before: f64, at: &str) {
        let w = self.stage.cc.window();
        assert!(w.cwnd.is_finite() && w.cwnd >= 1.0, "cwnd {} in {at}", w.cwnd);
        assert!(w.ssthresh > 0.0, "ssthresh {} in {at}", w.ssthresh);
        if let Some(rate) = self.stage.cc.pacing() {
            assert!(rate.bits_per_sec() > 0, "a pacing rate of zero in {at}");
        }
        self.report.highest_cwnd = self.report.highest_cwnd.max(w.cwnd);
        // The first window and a reduction have floors of their own, and inflation is no growth.
        let growth = !matches!(name, "on_start" | "on_congestion" | "on_timeout");
        if self.rules.cap_at_rwnd && growth && self.stage.path.phase != Phase::Recovery {
            let limit = before.max(self.stage.path.rwnd).max(4.0) + 1e-9;
            assert!(
                w.cwnd <= limit,
                "cwnd {} beyond the peer's window {} in {at}",
                w.cwnd,
                self.stage.path.rwnd
            );
        }
    }

    fn check_requests(&mut self, act: &Actions, at: &str) {
        let probes = act.probe_now.is_some() || act.train.is_some();
        assert!(
            !probes || self.stage.path.probes != ProbeSupport::No,
            "probes that cannot be answered in {at}"
        );
        assert!(!probes || self.policy.probes, "probes that the policy did not ask for in {at}");
        assert!(act.probe_now.is_none_or(|(_, n)| n > 0), "no probes at all in {at}");
        assert!(act.train.is_none_or(|t| t.count > 0), "an empty train in {at}");
        assert!(act.wake_at.is_none_or(|t| t >= self.stage.now), "a wake-up in the past in {at}");
        assert!(!act.retransmit_head || self.outstanding > 0, "nothing to retransmit in {at}");
    }

    fn carry_out(&mut self, act: &Actions) {
        if act.stop_probes {
            self.train = 0;
        }
        if let Some(train) = act.train {
            self.train = train.count;
            self.report.trains.push((self.stage.path.rwnd, train));
        }
        if let Some((_, n)) = act.probe_now {
            self.credit += n;
            if let Some(last) = self.report.recoveries.last_mut() {
                last.probes += n;
            }
        }
        if let Some(at) = act.wake_at {
            self.wake = (at < Instant::MAX).then_some(at);
        }
        self.retransmit_head |= act.retransmit_head;
        self.rewind |= act.rewind;
    }

    fn refresh(&mut self) {
        let lost_again = self.lost.min(self.outstanding - self.sacked);
        let p = &mut self.stage.path;
        p.in_flight = f64::from(self.next);
        p.pipe = f64::from(self.next.saturating_sub(self.sacked + lost_again));
        p.app_limited = p.queued == 0.0;
        let age = self.stage.now - self.head_sent;
        p.head = (self.outstanding > 0).then_some(Head { age, retransmissions: self.head_again });
    }

    fn pass(&mut self, ms: u8) {
        self.stage.now += Duration::from_millis(u64::from(ms));
        // A train sends as time passes.
        let due = self.train.min(u32::from(ms) / 8);
        self.train -= due;
        self.credit += due;
    }

    fn smss(&self) -> u64 {
        u64::from(self.stage.path.smss)
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Advance { segments, probes, after } => {
                self.pass(after);
                let n = u32::from(segments).min(self.outstanding);
                if n > 0 {
                    self.advance(n, u32::from(probes), false, after);
                }
            }
            Op::Duplicate { sack, corruption, after } => {
                self.pass(after);
                if self.outstanding > 0 {
                    self.duplicate(sack, corruption);
                }
            }
            Op::Probes { count, stale, after } => {
                self.pass(after);
                if self.answer(u32::from(count), stale) {
                    self.transmit(Clock::Probe);
                }
            }
            Op::Ecn if self.outstanding > 0 => self.advance(1, 0, true, 1),
            Op::Timeout if self.outstanding > 0 => self.timeout(),
            Op::Wake => match self.wake.take() {
                Some(at) => {
                    self.stage.now = self.stage.now.max(at);
                    self.call("on_wake", |cc, cx| cc.on_wake(cx));
                    self.transmit(Clock::Timer);
                }
                None => self.stage.now += Duration::from_secs(2),
            },
            Op::Unsupported if self.stage.path.probes == ProbeSupport::Unknown => {
                self.stage.path.probes = ProbeSupport::No;
                (self.train, self.credit) = (0, 0);
                self.call("on_probe", |cc, cx| cc.on_probe(cx, ProbeEvent::Unsupported));
                self.policy = self.stage.cc.policy();
                assert!(!self.policy.probes, "still wants probes");
                self.transmit(Clock::Ack);
            }
            Op::Undo if !self.report.recoveries.is_empty() => {
                if self.stage.path.phase == Phase::Recovery {
                    self.stage.path.phase = Phase::Open;
                    self.call("on_recovered", |cc, cx| cc.on_recovered(cx));
                }
                self.call("on_undo", |cc, cx| cc.on_undo(cx));
                self.transmit(Clock::Ack);
            }
            Op::Write(n) => {
                let queued = &mut self.stage.path.queued;
                *queued = match n {
                    u8::MAX => f64::INFINITY,
                    _ if queued.is_finite() => *queued + f64::from(n),
                    _ => f64::from(n),
                };
                self.transmit(Clock::App);
            }
            Op::Window(n) => {
                self.stage.path.rwnd = f64::from(n);
                self.transmit(Clock::Ack);
            }
            Op::Idle if self.outstanding == 0 => {
                self.stage.now += Duration::from_secs(5);
                self.report.recoveries.clear();
                self.call("on_start", |cc, cx| cc.on_start(cx, &Start::Idle));
                self.transmit(Clock::App);
            }
            Op::Ecn | Op::Timeout | Op::Unsupported | Op::Undo | Op::Idle => {}
        }
        assert_eq!(self.stage.cc.policy(), self.policy, "the policy changed at operation {}", self.step);
    }

    /// Answers to probes: never more than were sent. False if there were none.
    fn answer(&mut self, count: u32, stale: bool) -> bool {
        let count = count.min(self.credit);
        if count == 0 || self.stage.path.probes == ProbeSupport::No {
            return false;
        }
        self.credit -= count;
        self.stage.path.probes = ProbeSupport::Yes;
        let event = ProbeEvent::Acked { count, stale, newly_acked: 0 };
        self.call("on_probe", |cc, cx| cc.on_probe(cx, event));
        true
    }

    fn sample(&self, newly: u32, after: u8) -> Option<RateSample> {
        let interval = Duration::from_millis(u64::from(after) + 20);
        let delivered = (u64::from(newly) + u64::from(after) / 8) * self.smss();
        self.policy.rate_samples.then_some(())?;
        Some(RateSample {
            delivered,
            interval,
            rate: Rate::from_bytes_over(delivered as f64, interval).filter(|_| after % 16 != 9),
            app_limited: self.stage.path.queued == 0.0,
            prior_delivered: self.stage.path.delivered.saturating_sub(delivered).max(self.round_delivered),
            lost: u64::from(after % 3) * u64::from(self.lost) * self.smss(),
            in_flight: u64::from(self.outstanding + newly) * self.smss(),
        })
    }

    /// `n` segments are marked lost.
    fn lose(&mut self, n: u32) {
        for i in 0..n {
            self.stage.path.lost += self.smss();
            if self.policy.loss_events {
                let lost = Lost {
                    len: self.stage.path.smss,
                    in_flight: u64::from(self.outstanding) * self.smss(),
                    lost: u64::from(i + 1) * self.smss(),
                    app_limited: self.stage.path.queued == 0.0,
                    same_gap: i % 3 > 0,
                };
                self.call("on_lost", |cc, cx| cc.on_lost(cx, &lost));
            }
        }
    }

    /// What the receiver reports: any rate, and sometimes none.
    fn receiver_rate(&self, n: u32, after: u8) -> Option<Rate> {
        let reports = self.policy.receiver_rate && after % 5 != 0;
        reports.then(|| Rate::from_bits_per_sec(u64::from(n) * (u64::from(after) << (after % 31))))
    }

    fn advance(&mut self, n: u32, probes: u32, ece: bool, after: u8) {
        let had_sack = self.sacked.min(n);
        self.outstanding -= n;
        self.next = self.next.max(n) - n;
        self.sacked = (self.sacked - had_sack).min(self.outstanding);
        self.lost = self.lost.saturating_sub(n).min(self.outstanding - self.sacked);
        self.dupacks = 0;
        self.guard = self.guard.saturating_sub(n);
        self.recovery = self.recovery.saturating_sub(n);
        let valid = self.head_again == 0;
        (self.head_sent, self.head_again) = (self.stage.now - Duration::from_millis(u64::from(after)), 0);
        self.stage.path.delivered += u64::from(n - had_sack) * self.smss();
        self.round = self.round.saturating_sub(n);
        if self.round == 0 {
            self.stage.path.round += 1;
            self.round = self.outstanding.max(1);
            self.round_delivered = self.stage.path.delivered;
        }
        let rtt = Duration::from_millis(100 + u64::from(after) * 2);
        let rtt = (valid && self.stage.path.phase != Phase::Loss).then_some(rtt);
        if let Some(r) = rtt {
            let p = &mut self.stage.path;
            p.srtt = Some(p.srtt.map_or(r, |s| (s * 7 + r) / 8));
            p.min_rtt = Some(p.min_rtt.map_or(r, |m| m.min(r)));
            self.backoff = 0;
        }
        let recovering = self.stage.path.phase == Phase::Recovery;
        let ends = recovering && self.recovery == 0;
        let kind = match (recovering, ends) {
            (false, _) => AckKind::New,
            (true, false) => AckKind::Partial,
            (true, true) => AckKind::Full,
        };
        let rate = self.sample(n, after);
        let receiver_rate = self.receiver_rate(n, after);
        let cwnd_limited = after % 7 != 0;
        let event = Ack { rtt, rate, receiver_rate, ece, cwnd_limited, ..ack(kind, f64::from(n)) };
        self.call("on_ack", |cc, cx| cc.on_ack(cx, &event));
        self.stage.path.after_timeout &= self.stage.cwnd() < self.stage.ssthresh();
        self.answer(probes, false);
        if ends {
            self.stage.path.phase = Phase::Open;
            self.call("on_recovered", |cc, cx| cc.on_recovered(cx));
        } else if recovering && self.policy.recovery == RecoveryMode::NewReno {
            (self.head_sent, self.head_again) = (self.stage.now, 1);
        }
        if self.stage.path.phase == Phase::Loss && self.guard == 0 {
            self.stage.path.phase = Phase::Open;
        }
        let open = self.stage.path.phase == Phase::Open;
        if core::mem::take(&mut self.retransmit_head) && self.outstanding > 0 && self.guard == 0 {
            self.judge_head(Signal::Loss);
        } else if ece && open && self.guard == 0 {
            self.guard = self.outstanding;
            self.call("on_congestion", |cc, cx| cc.on_congestion(cx, Signal::Ecn));
        }
        self.transmit(if probes > 0 { Clock::Probe } else { Clock::Ack });
    }

    fn duplicate(&mut self, sack: bool, corruption: bool) {
        self.dupacks += 1;
        let new_sack = sack && self.sacked + 1 < self.outstanding;
        let mut newly = 0;
        if new_sack {
            self.sacked += 1;
            newly = 1;
            self.stage.path.delivered += self.smss();
        }
        let mut lost = 0;
        if self.sacked >= 3 && self.lost == 0 {
            lost = 1;
            self.lost = 1;
            self.lose(1);
        }
        let event = Ack {
            sacked: f64::from(newly),
            lost: f64::from(lost),
            rate: if newly > 0 { self.sample(1, 3) } else { None },
            ..ack(AckKind::Duplicate { count: self.dupacks, new_sack, dsack: false }, 0.0)
        };
        self.call("on_ack", |cc, cx| cc.on_ack(cx, &event));
        let open = self.stage.path.phase == Phase::Open && self.guard == 0;
        let asked = core::mem::take(&mut self.retransmit_head);
        if open && (self.dupacks >= 3 || asked) {
            self.judge_head(if corruption { Signal::Corruption } else { Signal::Loss });
        } else if asked {
            (self.head_sent, self.head_again) = (self.stage.now, self.head_again + 1);
        }
        self.transmit(Clock::Ack);
    }

    /// The head is lost: outside of a recovery one begins.
    fn judge_head(&mut self, signal: Signal) {
        let again = self.head_again + 1;
        if self.stage.path.phase != Phase::Open {
            (self.head_sent, self.head_again) = (self.stage.now, again);
            return;
        }
        let capable = self.stage.path.probes == ProbeSupport::Yes;
        self.report.recoveries.push(Episode { ssthresh: 0.0, probes: 0, capable });
        self.train = 0;
        self.call("on_congestion", |cc, cx| cc.on_congestion(cx, signal));
        let ssthresh = self.stage.ssthresh();
        if let Some(last) = self.report.recoveries.last_mut() {
            last.ssthresh = ssthresh;
        }
        (self.head_sent, self.head_again) = (self.stage.now, again);
        if self.policy.recovery == RecoveryMode::Tahoe {
            self.guard = self.outstanding;
            self.go_back();
            return;
        }
        self.stage.path.phase = Phase::Recovery;
        let one = self.policy.recovery == RecoveryMode::Reno
            || self.policy.recovery_end == RecoveryEnd::TriggeringSegment;
        self.recovery = if one { 1 } else { self.outstanding };
    }

    fn timeout(&mut self) {
        self.stage.now += Duration::from_secs(1);
        self.backoff += 1;
        let backoff = self.backoff;
        self.report.recoveries.push(Episode { ssthresh: 0.0, probes: 0, capable: false });
        self.call("on_timeout", |cc, cx| cc.on_timeout(cx, backoff));
        self.stage.path.phase = Phase::Loss;
        self.stage.path.after_timeout = true;
        self.guard = self.outstanding;
        self.lose(self.outstanding - self.sacked - self.lost.min(self.outstanding - self.sacked));
        (self.head_sent, self.head_again) = (self.stage.now, self.head_again + 1);
        self.go_back();
        self.transmit(Clock::Timer);
    }

    fn go_back(&mut self) {
        (self.next, self.sacked, self.lost, self.dupacks, self.recovery) = (0, 0, 0, 0, 0);
    }

    fn transmit(&mut self, clock: Clock) {
        self.sent = 0;
        let blocked = loop {
            if self.policy.max_burst > 0 && self.sent >= self.policy.max_burst {
                break Blocked::Burst;
            }
            self.refresh();
            let by_pipe = self.stage.path.phase == Phase::Recovery
                && self.policy.recovery.uses_pipe()
                && !self.policy.gate_on_flight;
            let used = if by_pipe { self.stage.path.pipe } else { f64::from(self.next) };
            if used + 1.0 > self.stage.cwnd() {
                break Blocked::Cwnd;
            }
            let again = self.next < self.outstanding;
            if again {
                self.next += 1;
            } else if f64::from(self.outstanding) + 1.0 > self.stage.path.rwnd {
                break Blocked::Rwnd;
            } else if self.stage.path.queued < 1.0 {
                break Blocked::App;
            } else {
                if self.outstanding == 0 {
                    (self.head_sent, self.head_again) = (self.stage.now, 0);
                }
                self.stage.path.queued -= 1.0;
                self.outstanding += 1;
                self.next += 1;
            }
            self.sent += 1;
            if self.policy.sent_events {
                let sent = Sent { len: self.stage.path.smss, retransmission: again };
                self.call("on_sent", |cc, cx| cc.on_sent(cx, &sent));
            }
        };
        let transmit = Transmit { sent: self.sent, clock, blocked };
        self.call("on_transmit", |cc, cx| cc.on_transmit(cx, &transmit));
        if core::mem::take(&mut self.rewind) && self.outstanding > 0 {
            self.stage.path.phase = Phase::Loss;
            self.guard = self.outstanding;
            self.go_back();
        }
        self.retransmit_head = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alg::peach::{self, LeftoverAdsn, Opening, Peach, WdsnOnLoss};
    use crate::alg::{bbr, bbr3, cubic, fast_start, reno, vegas};
    use crate::{Config, NAMES};
    use proptest::prelude::*;

    const PRESETS: [Rules; 4] = [Rules::NS2_2001, Rules::NS2_2004, Rules::RFC, Rules::MODERN];

    fn any_ops() -> impl Strategy<Value = Vec<Op>> {
        prop::collection::vec(any::<[u8; 4]>().prop_map(Op::from), 1..300)
    }
    fn any_rules() -> impl Strategy<Value = Rules> {
        (0..PRESETS.len(), any::<bool>()).prop_map(|(i, cap_at_rwnd)| Rules { cap_at_rwnd, ..PRESETS[i] })
    }
    fn any_peach() -> impl Strategy<Value = peach::Config> {
        let modes = prop::sample::select(vec![RecoveryMode::Reno, RecoveryMode::NewReno, RecoveryMode::Sack]);
        let opening = || prop::sample::select(vec![Opening::Sudden, Opening::Slow]);
        (modes, opening(), opening(), opening(), any::<[bool; 8]>()).prop_map(
            |(recovery, start, on_rto, on_idle, b)| {
                let one = |x, y: (_, _)| if x { y.0 } else { y.1 };
                peach::Config {
                    recovery,
                    recovery_end: if b[0] {
                        RecoveryEnd::AllOutstanding
                    } else {
                        RecoveryEnd::TriggeringSegment
                    },
                    start,
                    on_rto,
                    on_idle,
                    integer_halving: b[1],
                    wdsn_on_loss: if b[2] { WdsnOnLoss::Overwrite } else { WdsnOnLoss::Accumulate },
                    nackseg: b[3].then_some(peach::Nackseg::FlightSize),
                    dummies: b[4]
                        .then_some(one(b[5], (peach::Dummies::EveryAck, peach::Dummies::WhenBlocked))),
                    leftover_adsn: if b[6] { LeftoverAdsn::Drop } else { LeftoverAdsn::Keep },
                    limit_to_app: b[7],
                    ..peach::Config::default()
                }
            },
        )
    }
    use alloc::vec;

    /// \[Peach §III-B, III-C\]: `rwnd - 1` dummies per start, at most twice the halved window per loss, in pairs.
    fn check_budget(config: &peach::Config, report: &Report) {
        for &(rwnd, train) in &report.trains {
            let all = rwnd as u32 - 1;
            assert!(train.count == all || config.limit_to_app && train.count < all, "{train:?} of {rwnd}");
        }
        for e in &report.recoveries {
            assert!(e.probes % 2 == 0 && e.probes <= 2 * e.ssthresh as u32, "{e:?}");
            assert!(e.capable || e.probes == 0, "{e:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn every_algorithm_survives(ops in any_ops(), rules in any_rules()) {
            for name in NAMES {
                let config = Config::by_name(name).expect("a listed name");
                survive(|| config.build(&rules), &rules, &ops);
            }
        }

        #[test]
        fn a_copy_continues_like_the_original(ops in any_ops(), rules in any_rules()) {
            survive_copied(|| reno::Reno::new(&reno::Config::default(), &rules, RecoveryMode::NewReno), &rules, &ops);
            survive_copied(|| vegas::Vegas::new(&vegas::Config::default(), &rules), &rules, &ops);
            survive_copied(|| cubic::Cubic::new(&cubic::Config::default(), &rules), &rules, &ops);
            let cached = fast_start::Config { cached_window: Some(20.0), ..Default::default() };
            survive_copied(|| fast_start::FastStart::new(&cached, &rules), &rules, &ops);
            survive_copied(|| bbr::Bbr::new(&bbr::Config::default(), &rules), &rules, &ops);
            survive_copied(|| bbr3::Bbr3::new(&bbr3::Config::default(), &rules), &rules, &ops);
            survive_copied(|| Peach::new(&peach::Config::default(), &rules), &rules, &ops);
        }

        #[test]
        fn peach_keeps_its_budget_whatever_its_options(
            ops in any_ops(), rules in any_rules(), config in any_peach()
        ) {
            // Peach caps at the peer's window whatever the preset says (R15); a legacy peer makes it the preset's.
            prop_assume!(config.validate().is_ok());
            let report = survive_copied(|| Peach::new(&config, &rules), &rules, &ops);
            check_budget(&config, &report);
        }

        #[test]
        fn vegas_with_linux_arithmetic_survives(ops in any_ops(), rules in any_rules()) {
            let config = vegas::Config { flavour: vegas::Flavour::Linux, ..vegas::Config::default() };
            survive_copied(|| vegas::Vegas::new(&config, &rules), &rules, &ops);
        }
    }

    #[test]
    fn the_model_reaches_every_kind_of_event() {
        // Otherwise the tests above prove nothing.
        let rules = Rules::NS2_2001;
        let reports: Vec<_> = (0..50)
            .map(|seed| {
                survive(|| Config::by_name("peach").expect("listed").build(&rules), &rules, &ops(seed, 400))
            })
            .collect();
        let episodes = || reports.iter().flat_map(|r| &r.recoveries);
        assert!(episodes().any(|e| e.probes > 0));
        assert!(episodes().filter(|e| e.capable).count() > 50);
        assert!(reports.iter().map(|r| r.trains.len()).sum::<usize>() > 100);
        assert!(reports.iter().any(|r| r.highest_cwnd >= 64.0));
    }
}
