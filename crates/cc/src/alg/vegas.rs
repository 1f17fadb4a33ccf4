//! TCP Vegas.
//!
//! *Idea*: estimate the number of queued segments instead of waiting for a drop. Once per RTT, the throughput that the
//! window would give on an empty path (`window / base RTT`) is compared with the measured one; the difference times the
//! base RTT is the number of segments queued. Below `alpha`, the window grows by one segment per RTT; above `beta`, it
//! shrinks by one. Slow start doubles the window only every other RTT, so that the comparison sees a constant window,
//! and ends when more than `gamma` segments are queued. A single duplicate acknowledgement causes a retransmission if
//! the oldest segment is older than a fine-grained timeout. *Sources*: Brakmo, O'Malley, Peterson, "TCP Vegas: new
//! techniques for congestion detection and avoidance" (SIGCOMM 1994); Brakmo, Peterson, IEEE JSAC 13(8), 1995.
//! Arithmetic and constants are those of ns-2's `Agent/TCP/Vegas` (the default) or of Linux's `tcp_vegas`, which keeps
//! its own loss recovery.

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, AckKind, Cx, Phase, Signal, Start};
use crate::parts::backlog::{Backlog, nanos};
use crate::parts::fine_timeout::FineTimeout;
use crate::parts::growth;
use crate::parts::inflation::Inflation;
use crate::rules::{InitialWindow, InvalidInitialWindow, Rules, SharedRules};
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant, math};

/// The implementation whose arithmetic is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Flavour {
    /// ns-2's: average RTT of a round, fine-grained retransmission, reduction by a quarter.
    #[default]
    Ns2,
    /// Linux's: minimum RTT of a round, slow start in every RTT, the sender's own recovery, reduction by half.
    Linux,
}

skyhaul_base::options! {
    /// Options of TCP Vegas.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// The implementation whose arithmetic is followed.
        flavour: Flavour = Flavour::default(),
        /// The window grows while fewer segments than this are queued. Default 1 (`ns2`) or 2 (`linux`).
        alpha: Option<f64> = None,
        /// The window shrinks while more segments than this are queued. Default 3 (`ns2`) or 4 (`linux`).
        beta: Option<f64> = None,
        /// Slow start ends when more segments than this are queued. Default 1.
        gamma: Option<f64> = None,
        /// Loss recovery; default `reno` (`ns2`) or `sack` (`linux`).
        recovery: Option<RecoveryMode> = None,
        /// Initial window; by default that of the endpoint preset.
        initial_window: Option<InitialWindow> = None,
    }
}

/// Why options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each displays as a sentence that names the option and says what to write instead"
)]
pub enum Invalid {
    #[error("alpha and beta must be numbers of segments with 0 <= alpha <= beta")]
    AlphaBeta,
    #[error("gamma must be a number of segments, 0 or more")]
    Gamma,
    #[error("recovery: TCP Vegas is defined with \"reno\", \"newreno\", \"sack\" or \"prr\"")]
    Recovery,
    #[error(transparent)]
    InitialWindow(#[from] InvalidInitialWindow),
}

impl Config {
    fn alpha(&self) -> f64 {
        self.alpha.unwrap_or(if self.flavour == Flavour::Ns2 { 1.0 } else { 2.0 })
    }
    fn beta(&self) -> f64 {
        self.beta.unwrap_or(if self.flavour == Flavour::Ns2 { 3.0 } else { 4.0 })
    }
    fn gamma(&self) -> f64 {
        self.gamma.unwrap_or(1.0)
    }
    fn recovery(&self) -> RecoveryMode {
        self.recovery.unwrap_or(if self.flavour == Flavour::Ns2 {
            RecoveryMode::Reno
        } else {
            RecoveryMode::Sack
        })
    }
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<Vegas>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        let (alpha, beta, gamma) = (self.alpha(), self.beta(), self.gamma());
        if !(alpha.is_finite() && alpha >= 0.0 && beta.is_finite() && alpha <= beta) {
            return Err(Invalid::AlphaBeta);
        }
        if !(gamma.is_finite() && gamma >= 0.0) {
            return Err(Invalid::Gamma);
        }
        if self.recovery == Some(RecoveryMode::Tahoe) {
            return Err(Invalid::Recovery);
        }
        if let Some(window) = self.initial_window {
            window.validate()?;
        }
        Ok(())
    }
    fn build(&self, rules: SharedRules) -> Box<Vegas> {
        Box::new(Vegas::new(self, rules))
    }
}

/// TCP Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    config: Config,
    rules: SharedRules,
    cwnd: f64,
    ssthresh: f64,
    infl: Inflation,
    fine: FineTimeout,
    /// The round being measured.
    backlog: Backlog,
    /// Growth per acknowledgement in this round, segments (ns-2 flavour).
    step: f64,
    /// Slow start grows in this round (ns-2 flavour: in every other round).
    grows: bool,

    /// Duplicate ACKs in a row.
    dupacks: u32,
    /// Number of acknowledgements on which the head is still to be checked after a retransmission (ns-2's `v_worried_`).
    worried: u8,
    /// Time of the last window reduction: losses of data sent before belong to the same congestion.
    reduced: Option<Instant>,
    /// The current acknowledgement has made this control request a retransmission of the head.
    head_requested: bool,
    /// Window before the last reduction, for undo.
    before: Window,
}

impl Vegas {
    /// A TCP Vegas control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        let rules = rules.into();
        let initial_window = config.initial_window.unwrap_or(rules.initial_window);
        let start = Window { cwnd: 1.0, ssthresh: f64::INFINITY };
        Self {
            rules: rules.adapted(Rules { initial_window, ..*rules }),
            config: config.clone(),
            cwnd: start.cwnd,
            ssthresh: start.ssthresh,
            infl: Inflation::default(),
            fine: FineTimeout::default(),
            backlog: Backlog::default(),
            step: 0.0,
            grows: true,
            dupacks: 0,
            worried: 0,
            reduced: None,
            head_requested: false,
            before: start,
        }
    }

    fn ns2(&self) -> bool {
        self.config.flavour == Flavour::Ns2
    }

    fn inflates(&self) -> bool {
        matches!(self.config.recovery(), RecoveryMode::Reno | RecoveryMode::NewReno)
    }

    /// Growth, limited to the receive window if the preset says so.
    fn grow(&mut self, cx: &Cx<'_>, to: f64) {
        self.cwnd = growth::capped(&self.rules, cx.path, to, self.cwnd);
    }

    /// ns-2: evaluates the round that has just ended.
    fn judge_round(&mut self, cx: &Cx<'_>) {
        let Some(queued) = self.backlog.queued(cx.now, cx.path) else { return };
        if self.cwnd < self.ssthresh {
            self.grows = !self.grows;
            self.step = 0.0;
            if self.grows {
                if queued > self.config.gamma() {
                    self.ssthresh = 2.0;
                    self.cwnd = (self.cwnd - self.cwnd / 8.0).max(2.0);
                } else {
                    self.step = 1.0;
                }
            }
        } else if queued > self.config.beta() {
            self.cwnd = (self.cwnd - 1.0).max(2.0);
            self.step = 0.0;
        } else if queued < self.config.alpha() {
            self.step = 1.0 / self.cwnd;
        } else {
            self.step = 0.0;
        }
    }

    fn ns2_advance(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        if self.backlog.is_over() {
            self.judge_round(cx);
            self.backlog.begin(cx.now, cx.path.in_flight());
        }
        if self.step >= 1.0 && self.cwnd >= self.ssthresh {
            self.step = 0.0;
        }
        // No growth if the data in flight is more than two segments short of the window.
        if self.step > 0.0 && ack.cwnd_limited && self.cwnd - (cx.path.in_flight() + 1.0) <= 2.0 {
            self.grow(cx, self.cwnd + self.step);
        }
        if let Some(rtt) = ack.rtt {
            self.backlog.sample(rtt);
            self.fine.sample(rtt);
        }
        if self.worried > 0 {
            self.worried -= 1;
            if self.head_expired(cx) {
                // Part of congestion that was already answered: no reduction.
                self.request_head(cx);
            } else {
                self.worried = 0;
            }
        }
    }

    fn linux_advance(&mut self, cx: &Cx<'_>, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.backlog.sample(rtt);
        }
        if self.backlog.is_over() {
            let (count, rtt) = self.backlog.least();
            let rtt = nanos(rtt);
            self.backlog.begin(cx.now, cx.path.in_flight());
            let Some(base) = self.backlog.base.filter(|_| count > 2).map(nanos) else {
                // Two samples or fewer probably stem from delayed acknowledgements: behave like Reno.
                return self.reno(cx, ack);
            };
            let queued = math::floor(self.cwnd * (rtt - base) / base);
            if self.cwnd < self.ssthresh {
                if queued > self.config.gamma() {
                    self.cwnd = self.cwnd.min(math::floor(self.cwnd * base / rtt) + 1.0);
                    self.ssthresh = self.ssthresh.min(self.cwnd);
                } else {
                    self.reno(cx, ack);
                }
            } else if queued > self.config.beta() {
                self.cwnd -= 1.0;
                self.ssthresh = self.ssthresh.min(self.cwnd);
            } else if queued < self.config.alpha() && ack.cwnd_limited {
                self.grow(cx, self.cwnd + 1.0);
            }
            self.cwnd = self.cwnd.max(2.0);
            // `tcp_current_ssthresh`: three quarters of a window in use are known to be safe.
            self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
        } else if self.cwnd < self.ssthresh {
            self.reno(cx, ack);
        }
    }

    fn reno(&mut self, cx: &Cx<'_>, ack: &Ack) {
        if ack.cwnd_limited {
            self.cwnd = growth::grown(&self.rules, cx.path, self.cwnd, self.ssthresh, ack.acked);
        }
    }

    /// Window and threshold without the inflation of a recovery.
    fn deflated(&self) -> Window {
        Window { cwnd: self.infl.without(self.cwnd), ssthresh: self.ssthresh }
    }

    fn request_head(&mut self, cx: &mut Cx<'_>) {
        self.head_requested = true;
        cx.act.retransmit_head = true;
    }

    fn head_expired(&self, cx: &Cx<'_>) -> bool {
        cx.path.head.is_some_and(|h| self.fine.expired(h.age))
    }

    /// ns-2's reaction to the loss of the head: no reduction if the head was sent before the last one.
    fn reduce(&mut self, cx: &Cx<'_>) {
        let (age, repeated) =
            cx.path.head.map_or((Duration::ZERO, false), |h| (h.age, h.retransmissions > 0));
        self.fine.back_off(repeated);
        self.worried = 2;
        if self.reduced.is_some_and(|t| cx.now - age <= t) {
            return;
        }
        self.infl.end(&mut self.cwnd);
        self.before = self.window();
        let w = math::floor(self.cwnd.min(cx.path.rwnd));
        self.cwnd = match w {
            w if w <= 3.0 => 2.0,
            w if repeated => math::floor(w / 2.0),
            w => w - math::floor(w / 4.0),
        };
        // ssthresh only ends slow start, and after a loss there is none until the next timeout.
        self.ssthresh = 2.0;
        self.step = 0.0;
        self.reduced = Some(cx.now);
    }
}

impl CongestionControl for Vegas {
    #[inline]
    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    fn policy(&self) -> Policy {
        Policy { recovery: self.config.recovery(), watch_head: true, ..Policy::default() }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        let iw = self.rules.initial_window.segments(cx.path.smss).max(1.0);
        match *start {
            Start::Established { syn_lost, .. } => {
                self.cwnd = if syn_lost { 1.0 } else { iw };
                self.ssthresh = growth::initial_ssthresh(&self.rules, cx.path);
            }
            Start::Idle => {
                if self.rules.restart_after_idle {
                    self.cwnd = self.cwnd.min(iw);
                }
                if !self.ns2() {
                    self.backlog.base = None;
                }
            }
        }
        self.backlog.begin(cx.now, 0.0);
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        self.head_requested = false;
        if let AckKind::Duplicate { count, .. } = ack.kind {
            self.dupacks = count;
            if self.inflates() && cx.path.phase == Phase::Recovery {
                self.infl.add(&mut self.cwnd, 1.0);
            }
            if self.ns2() && cx.path.phase != Phase::Loss && self.head_expired(cx) {
                self.reduce(cx);
                self.request_head(cx);
            }
            return;
        }
        self.backlog.acked(ack.acked);
        self.dupacks = 0;
        match (ack.kind, cx.path.phase) {
            (AckKind::Partial, _) if self.inflates() && self.rules.partial_deflation => {
                self.infl.partial(&mut self.cwnd, ack.acked);
            }
            (AckKind::New | AckKind::Full, _) if self.ns2() => {
                self.infl.end(&mut self.cwnd);
                self.ns2_advance(cx, ack);
            }
            (AckKind::New, Phase::Open) => self.linux_advance(cx, ack),
            (AckKind::New, Phase::Loss) => self.reno(cx, ack),
            _ => {}
        }
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if self.ns2() && signal != Signal::Ecn {
            // The request to retransmit the head came with the reduction.
            if !self.head_requested {
                self.reduce(cx);
            }
            if self.inflates() && self.reduced == Some(cx.now) {
                self.infl.add(&mut self.cwnd, f64::from(self.dupacks));
            }
            return;
        }
        self.before = self.deflated();
        self.ssthresh = growth::half(&self.rules, cx.path, self.before.cwnd);
        self.cwnd = self.ssthresh;
        self.infl.clear();
        if self.inflates() && signal != Signal::Ecn {
            self.infl.add(&mut self.cwnd, self.rules.inflate_ndup);
        }
    }

    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.infl.end(&mut self.cwnd);
        if !self.ns2() {
            self.backlog.begin(cx.now, cx.path.in_flight());
        }
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        if backoff <= 1 {
            self.before = self.deflated();
            // In ns-2, the inflation of a recovery that the timeout ends is part of the window that is halved
            // (`VegasTcpAgent::timeout`: cwnd_ holds it, not dupwnd_); it is no capacity of the path.
            let cwnd = if self.ns2() { self.cwnd } else { self.before.cwnd };
            self.ssthresh = growth::half(&self.rules, cx.path, cwnd);
        }
        self.infl.clear();
        self.cwnd = if self.ns2() { 2.0 } else { 1.0 };
        self.reduced = Some(cx.now);
        self.worried = 0;
        self.dupacks = 0;
        if self.ns2() {
            // The round continues: retransmissions carry no information about the path, and the acknowledgement
            // that repairs the loss covers data that arrived long before. In ns-2, too, only an acknowledgement
            // ends a round.
            return;
        }
        self.backlog.begin(cx.now, 0.0);
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.infl.end(&mut self.cwnd);
        let to = self.cwnd.max(self.before.cwnd);
        self.grow(cx, to);
        self.ssthresh = self.ssthresh.max(self.before.ssthresh);
    }

    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("base_rtt", self.backlog.base_rtt());
        out("fine_timeout", self.fine.timeout().as_secs_f64());
    }
}

#[cfg(test)]
mod tests;
