//! TCP-Peach+.
//!
//! *Idea*: TCP-Peach whose probes are useful. A *NIL* segment is low-priority like a dummy but carries data not yet
//! acknowledged, in turn: where it arrives it may fill a hole, and its answer tells of a free slot all the same.
//! A connection starts by spreading `rwnd - 1` of them over the first RTT (Jump Start). After a loss the window is
//! halved once for the whole window of data; while the pipe is too full for data, each acknowledgement clocks out
//! one NIL segment, at most half a window of them, and each that is answered opens the window by one (Quick Recovery).
//! *Source*: Akyildiz, Zhang, Fang, "TCP-Peach+: enhancement of TCP-Peach for satellite IP networks", IEEE
//! Communications Letters 6(7), 2002 — cited as \[Peach+\]; what it takes over from TCP-Peach is cited as \[Peach\].
//! Where the letter is silent or contradicts itself, the choice is a numbered resolution `Q n` and a named option:
//!
//! - Q1 The loop of Fig. 3 has no wait: it is run once per received acknowledgement.
//! - Q2 `adsn` falls when a NIL segment is sent and again when one is answered (text and figure agree): literal,
//!   not below zero; `nil-ack-decrements = false` counts only those sent.
//! - Q3 A partial acknowledgement subtracts what it acknowledges, so the counter keeps the lost original for ever:
//!   `pipe = "counter"` subtracts that one too (as ns-2 does), `"counter-literal"` does not, and the default
//!   `"rfc6675"` recomputes the pipe from the scoreboard.
//! - Q4 `amountacked` also covers what answers to NIL segments report; counted once, when first reported.
//! - Q5 The letter has no guard: answers count from the first on, so a bottleneck that idles while no data is sent
//!   restores the window after congestion too. `guard = "peach"` brings TCP-Peach's `wdsn` back.
//! - Q6 `HighData` is the end of everything ever sent when the loss is found.
//! - Q7 "round = 64" is read as rwnd = 64.
//! - Q8 No NIL segment while the application has nothing to send.
//! - Q9 A peer that does not answer turns the control into Reno, as with TCP-Peach.
//! - Q10 The retransmission timer restarts when `SND.UNA` advances or a retransmission of it leaves (the sender's
//!   rule): restarting it on each selective acknowledgement could postpone a timeout for ever.
//! - Q11 A NIL segment that filled a hole is still overhead; how many did is the variable `repaired`.
//!
//! Two more where the figure leaves a choice: `pipe` starts at FlightSize less what the duplicates report, the
//! figure's `2*cwnd - ndupacks` when the old window was even and in full use; and `maxburst` limits every
//! acknowledgement (the letter's definition), not only those within Quick Recovery (its figure).

use crate::CongestionControl;
use crate::action::{Pipe, Policy, ProbeSource, RecoveryMode, Window};
use crate::alg::reno::{self, Reno};
use crate::event::{Ack, AckKind, Clock, Cx, Phase, ProbeEvent, ProbeSupport, Signal, Start, Transmit};
use crate::parts::growth;
use crate::parts::inflation::Inflation;
use crate::parts::train;
use crate::rules::{HalvingBase, SharedRules};
use skyhaul_base::{Duration, math};

/// How the window opens at the start, after a timeout, after idling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Opening {
    /// Jump Start \[Peach+ §I-B\].
    Jump,
    /// Reno's slow start.
    Slow,
}

/// Answers to NIL segments that do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Guard {
    /// None: each opens the window by one (\[Peach+\], literally).
    None,
    /// As in TCP-Peach: twice the halved window of NIL segments, of whose answers the first half does not count.
    Peach,
}

/// The estimate of what is in the network during Quick Recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PipeRule {
    /// From the scoreboard (RFC 6675).
    Rfc6675,
    /// The counter of \[Peach+\] Fig. 3; partial acknowledgements also take the lost original out of it.
    Counter,
    /// The counter of \[Peach+\] Fig. 3 as printed.
    CounterLiteral,
}

/// Options of TCP-Peach+. Except for `pipe`, the defaults are the literal text of the letter.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, rename_all = "kebab-case", deny_unknown_fields)
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Opening of a connection. `slow` is the ablation without Jump Start.
    pub start: Opening,
    /// Opening after a timeout. The letter is silent; `jump` (default) by analogy with TCP-Peach.
    pub on_rto: Opening,
    /// Opening after an idle period longer than the RTO.
    pub on_idle: Opening,
    /// Send NIL segments after a loss. `false` is the ablation without Quick Recovery's probing.
    pub quick_recovery: bool,
    /// The pipe of Quick Recovery: `rfc6675` (default), `counter`, `counter-literal`. Q3.
    pub pipe: PipeRule,
    /// Answers that do not count: `none` (default, literal) or `peach`. Q5.
    pub guard: Guard,
    /// An answer to a NIL segment also lowers `adsn` (default, literal). Q2.
    pub nil_ack_decrements: bool,
    /// Most data segments per acknowledgement (default 4); 0 is unlimited.
    pub max_burst: u32,
    /// Cut the halved window to whole segments (default).
    pub integer_halving: bool,
    /// What is halved: `min(cwnd, rwnd)` (default) or FlightSize.
    pub halving_base: HalvingBase,
    /// Ignore answers to NIL segments of an earlier episode where probes carry ids. Off by default: the letter
    /// counts every one.
    pub strict_epoch: bool,
    /// Jump Start sends no more NIL segments than there is data to follow them.
    pub limit_to_app: bool,
    /// Most segments of a Jump Start, the data segment included; none by default.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub probe_cap: Option<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            start: Opening::Jump,
            on_rto: Opening::Jump,
            on_idle: Opening::Jump,
            quick_recovery: true,
            pipe: PipeRule::Rfc6675,
            guard: Guard::None,
            nil_ack_decrements: true,
            max_burst: 4,
            integer_halving: true,
            halving_base: HalvingBase::Window,
            strict_epoch: false,
            limit_to_app: false,
            probe_cap: None,
        }
    }
}

impl Config {
    /// Refuses options outside their domain.
    ///
    /// # Errors
    /// Names the option and what to write instead.
    pub fn validate(&self) -> Result<(), &'static str> {
        if self.probe_cap == Some(0) {
            return Err("probe-cap counts the data segment too: 1 or more, or leave it out");
        }
        Ok(())
    }
}

/// TCP-Peach+.
#[derive(Clone, Debug)]
pub struct PeachPlus {
    cwnd: f64,
    ssthresh: f64,
    /// NIL segments that Quick Recovery may still send.
    adsn: u32,
    /// Answers that do not count (only with the guard of TCP-Peach).
    wdsn: u32,
    /// The acknowledgement being processed is the one that found the loss: it clocks no NIL segment.
    just_entered: bool,
    /// `ssthresh` stems from a loss, not from the last Jump Start.
    lost_before: bool,
    /// The peer does not answer: everything is delegated to Reno.
    legacy: bool,
    /// NIL segments that delivered data.
    repaired: u32,
    config: Config,
    /// The preset; growth and halving follow the paper whatever it says.
    rules: SharedRules,
    /// Window before the last reduction, and whether `ssthresh` stemmed from a loss, for undo.
    before: (Window, bool),
    reno: Reno,
}

impl PeachPlus {
    /// A TCP-Peach+ control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        let rules = rules.into();
        Self {
            cwnd: 1.0,
            ssthresh: 1.0,
            adsn: 0,
            wdsn: 0,
            just_entered: false,
            lost_before: false,
            legacy: false,
            repaired: 0,
            config: config.clone(),
            before: (Window { cwnd: 1.0, ssthresh: 1.0 }, false),
            reno: Reno::new(&reno::Config::default(), &rules, RecoveryMode::Sack),
            rules,
        }
    }

    /// \[Peach+ §I-B\], Fig. 2.
    fn jump_start(&mut self, cx: &mut Cx<'_>, handshake_rtt: Option<Duration>) {
        self.opened(1.0, 1.0); // With ssthresh at 1 congestion avoidance holds from the start.
        self.lost_before = false;
        let (cap, limit) = (self.config.probe_cap, self.config.limit_to_app);
        train::open(cx, ProbeSource::UnackedRoundRobin, handshake_rtt, cap, limit);
    }

    fn slow_start(&mut self, cx: &mut Cx<'_>, cwnd: f64, ssthresh: f64) {
        cx.act.stop_probes = true;
        self.opened(cwnd, ssthresh);
    }

    fn opened(&mut self, cwnd: f64, ssthresh: f64) {
        self.cwnd = cwnd;
        self.ssthresh = ssthresh;
        self.adsn = 0;
        self.wdsn = 0;
        self.just_entered = false;
    }

    fn initial(&self, cx: &Cx<'_>) -> f64 {
        self.rules.initial_window.segments(cx.path.smss).max(1.0)
    }

    /// "cwnd := min(cwnd + 1, rwnd)", as in TCP-Peach.
    #[inline]
    fn grown(&self, cx: &Cx<'_>) -> f64 {
        growth::within_rwnd(cx.path, growth::per_ack(self.cwnd, self.ssthresh), self.cwnd)
    }

    fn half(&self, cx: &Cx<'_>) -> f64 {
        growth::part(self.config.halving_base, self.config.integer_halving, cx.path, self.cwnd, 0.5)
    }

    /// What an undo of the reduction that follows restores.
    fn remember(&mut self) {
        let before = Window { cwnd: self.cwnd, ssthresh: self.ssthresh };
        self.before = (before, self.lost_before);
    }
}

impl CongestionControl for PeachPlus {
    #[inline]
    fn window(&self) -> Window {
        if self.legacy { self.reno.window() } else { Window { cwnd: self.cwnd, ssthresh: self.ssthresh } }
    }

    fn policy(&self) -> Policy {
        if self.legacy {
            return self.reno.policy();
        }
        Policy {
            pipe: match self.config.pipe {
                PipeRule::Rfc6675 => Pipe::Scoreboard,
                PipeRule::Counter => Pipe::Counter { partial_extra: true },
                PipeRule::CounterLiteral => Pipe::Counter { partial_extra: false },
            },
            max_burst: self.config.max_burst,
            probes: true,
            transmit_events: true,
            rtt_samples: false,
            ..Policy::default()
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        if cx.path.probes == ProbeSupport::No {
            self.legacy = true;
        }
        if self.legacy {
            return self.reno.on_start(cx, start);
        }
        match *start {
            Start::Established { rtt, .. } if self.config.start == Opening::Jump => self.jump_start(cx, rtt),
            Start::Established { .. } => {
                let (iw, ssthresh) = (self.initial(cx), growth::initial_ssthresh(&self.rules, cx.path));
                self.slow_start(cx, iw, ssthresh);
            }
            Start::Idle if self.config.on_idle == Opening::Jump => self.jump_start(cx, None),
            Start::Idle => self.cwnd = self.cwnd.min(self.initial(cx)),
        }
    }

    #[inline]
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        if self.legacy {
            return self.reno.on_ack(cx, ack);
        }
        if let (AckKind::New | AckKind::Full, Phase::Open | Phase::Loss, true) =
            (ack.kind, cx.path.phase, ack.cwnd_limited)
        {
            self.cwnd = self.grown(cx);
        }
    }

    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        if self.legacy {
            return;
        }
        match event {
            ProbeEvent::Acked { count, stale, newly_acked } => {
                self.repaired += u32::from(newly_acked > 0);
                if stale && self.config.strict_epoch {
                    return;
                }
                let guarded = count.min(self.wdsn);
                self.wdsn -= guarded;
                let free = f64::from(count - guarded);
                self.cwnd = (self.cwnd + free).min(cx.path.rwnd.max(self.cwnd));
                if self.config.nil_ack_decrements {
                    self.adsn = self.adsn.saturating_sub(count);
                }
            }
            ProbeEvent::Unsupported => {
                self.legacy = true;
                cx.act.stop_probes = true;
                cx.act.wake_at = Some(skyhaul_base::Instant::MAX);
                let ssthresh = if self.lost_before { self.ssthresh } else { growth::peers_window(cx.path) };
                self.reno.take_over(Window { cwnd: self.cwnd, ssthresh }, Inflation::default());
            }
        }
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if self.legacy {
            return self.reno.on_congestion(cx, signal);
        }
        self.remember();
        cx.act.stop_probes = true;
        self.lost_before = true;
        let half = self.half(cx);
        self.opened(half, half);
        if signal == Signal::Ecn {
            return; // An ECN echo halves without probing, as in TCP-Peach (R21).
        }
        let whole = math::floor(half) as u32;
        let (adsn, wdsn) = match self.config.guard {
            Guard::None => (whole, 0),
            Guard::Peach => (2 * whole, whole),
        };
        self.wdsn = wdsn;
        if self.config.quick_recovery && cx.path.probes == ProbeSupport::Yes {
            self.adsn = adsn;
            self.just_entered = true;
        }
    }

    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        if self.legacy {
            return self.reno.on_recovered(cx);
        }
        self.adsn = 0;
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        if self.legacy {
            return self.reno.on_timeout(cx, backoff);
        }
        if backoff <= 1 {
            self.remember();
        }
        match self.config.on_rto {
            Opening::Jump => self.jump_start(cx, None),
            Opening::Slow => {
                let ssthresh = if backoff <= 1 { self.half(cx) } else { self.ssthresh };
                self.slow_start(cx, 1.0, ssthresh);
                self.lost_before = true;
            }
        }
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        if self.legacy {
            return self.reno.on_undo(cx);
        }
        let (before, lost_before) = self.before;
        cx.act.stop_probes = true;
        self.adsn = 0;
        self.wdsn = 0;
        self.cwnd = growth::within_rwnd(cx.path, self.cwnd.max(before.cwnd), self.cwnd);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        self.lost_before = lost_before;
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        !self.legacy && self.adsn > 0
    }

    fn on_transmit(&mut self, cx: &mut Cx<'_>, transmit: &Transmit) {
        if self.legacy || self.adsn == 0 || core::mem::take(&mut self.just_entered) {
            return;
        }
        let clocked = matches!(transmit.clock, Clock::Ack | Clock::Probe);
        // One where no data could go (Fig. 3), and not for data that is not there (Q8).
        if clocked && transmit.sent == 0 && cx.path.queued > 0.0 {
            cx.act.probe_now = Some((ProbeSource::UnackedRoundRobin, 1));
            self.adsn -= 1;
        }
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        // Nothing answered, neither as a capable nor as a legacy receiver.
        if !self.legacy && !self.lost_before && cx.path.probes == ProbeSupport::Unknown {
            self.ssthresh = growth::peers_window(cx.path);
        }
    }

    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("wdsn", f64::from(self.wdsn));
        out("adsn", f64::from(self.adsn));
        out("repaired", f64::from(self.repaired));
    }
}

#[cfg(test)]
mod tests;
