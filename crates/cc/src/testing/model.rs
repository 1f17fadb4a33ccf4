//! Random sequences of events in the documented order, and the invariants of every algorithm.
//!
//! The model counts segments like a sender, but the [`Op`]s control its network. Two instances of the algorithm get
//! the same inputs. They must make the same requests and have the same window and the same printed state: an
//! algorithm depends only on its inputs. Otherwise [`survive`] panics with the number of the operation.

mod checks;
mod network;
mod ops;

use super::Stage;
use crate::event::{Clock, Head, Phase, ProbeEvent, ProbeSupport, Start};
use crate::{CongestionControl, PathCache, PathState, Policy, Rules, Train};
use alloc::vec::Vec;
pub use ops::{Op, ops};
use skyhaul_base::{Duration, Instant};

/// The requests of the algorithm, by episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Trains of probes, with the receive window at that time.
    pub trains: Vec<(f64, Train)>,
    /// Recoveries and timeouts.
    pub recoveries: Vec<Episode>,
    /// Maximum window.
    pub highest_cwnd: f64,
}

/// A recovery or a timeout, and its consequences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Episode {
    /// Slow start threshold after the reduction; 0 for a timeout.
    pub ssthresh: f64,
    /// Probes requested until the next reduction or start.
    pub probes: u32,
    /// The peer was known to answer probes when the recovery began; false for a timeout.
    pub capable: bool,
}

/// Runs two instances of an algorithm through `ops`.
///
/// # Panics
/// If an invariant does not hold; the message names it and the operation.
pub fn survive<C: CongestionControl>(build: impl Fn() -> C, rules: &Rules, ops: &[Op]) -> Report {
    let mut model = Model::new(build(), build(), rules);
    for (i, &op) in ops.iter().enumerate() {
        model.step = i;
        model.apply(op);
    }
    model.report
}

/// As [`survive`], for algorithms that can be copied: half way through, a copy takes over and must end in the state
/// of the original.
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

    /// Outstanding segments, and how many of them lie below `SND.NXT`, which go-back-N sets back to `SND.UNA`.
    outstanding: u32,
    next: u32,
    sacked: u32,
    lost: u32,
    dupacks: u32,
    backoff: u32,
    /// Segments to acknowledge until the recovery ends, until another loss is accepted, and until the round ends.
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
        // Without SACK under one of the presets, so that tests over all presets cover both.
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

    fn refresh(&mut self) {
        let lost = self.lost.min(self.outstanding - self.sacked);
        let p = &mut self.stage.path;
        p.set_in_flight(f64::from(self.next));
        p.set_pipe(f64::from(self.next.saturating_sub(self.sacked + lost)));
        p.app_limited = p.queued_bytes == 0;
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
                    self.recovered();
                }
                self.call("on_undo", |cc, cx| cc.on_undo(cx));
                self.transmit(Clock::Ack);
            }
            Op::Write(n) => {
                let path = &mut self.stage.path;
                path.set_queued(match n {
                    u8::MAX => f64::INFINITY,
                    _ if path.queued_bytes < u64::MAX => path.queued() + f64::from(n),
                    _ => f64::from(n),
                });
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
        let policy = self.stage.cc.policy();
        // RTT samples may be given up; the sender learns of it at the end of a recovery.
        assert!(
            self.policy.rtt_samples || !policy.rtt_samples,
            "RTT samples asked for at operation {}",
            self.step
        );
        let but_for_samples = Policy { rtt_samples: self.policy.rtt_samples, ..policy };
        assert_eq!(but_for_samples, self.policy, "the policy changed at operation {}", self.step);
    }

    /// The repair is complete.
    fn recovered(&mut self) {
        self.stage.path.phase = Phase::Open;
        self.call("on_recovered", |cc, cx| cc.on_recovered(cx));
        self.policy.rtt_samples = self.stage.cc.policy().rtt_samples;
    }
}

#[cfg(test)]
mod tests;
