//! Common code of Reno's relatives: the start, artificial inflation, the window during and after a reduction, the
//! timeout, undo. Each relative defines its growth and its thresholds; [`Frame`] does the rest according to RFC 5681 and
//! RFC 6582.

use crate::action::{Policy, RecoveryMode, Window};
use crate::event::{Ack, AckKind, Cx, Phase, Signal, Start};
use crate::parts::growth;
use crate::parts::inflation::Inflation;
use crate::rules::{HalvingBase, SharedRules};

/// The window of a relative of Reno.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Congestion window, with inflation.
    pub cwnd: f64,
    /// Slow start threshold.
    pub ssthresh: f64,
    /// Window arithmetic of the endpoint.
    pub rules: SharedRules,
    recovery: RecoveryMode,
    infl: Inflation,
    /// Window, without inflation, that the last reduction set.
    reduced: f64,
    /// Window before the last reduction, for undo.
    before: Window,
}

/// A recovery mode without fast recovery, for which the control is not defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("recovery: this control is defined with \"reno\", \"newreno\", \"sack\" or \"prr\"")]
pub struct NoFastRecovery;

/// Refuses recovery modes without fast recovery.
///
/// # Errors
/// Says what to write instead.
pub fn check_recovery(recovery: RecoveryMode) -> Result<(), NoFastRecovery> {
    match recovery {
        RecoveryMode::Tahoe => Err(NoFastRecovery),
        _ => Ok(()),
    }
}

impl Frame {
    /// A window that has not started.
    #[must_use]
    pub fn new(rules: impl Into<SharedRules>, recovery: RecoveryMode) -> Self {
        let start = Window { cwnd: 1.0, ssthresh: f64::INFINITY };
        Self {
            cwnd: start.cwnd,
            ssthresh: start.ssthresh,
            rules: rules.into(),
            recovery,
            infl: Inflation::default(),
            reduced: 1.0,
            before: start,
        }
    }

    /// For `CongestionControl::window`.
    #[inline]
    #[must_use]
    pub fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    /// The policy with this frame's recovery mode.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy { recovery: self.recovery, ..Policy::default() }
    }

    /// Whether it is in slow start.
    #[inline]
    #[must_use]
    pub fn slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    #[inline]
    fn inflates(&self) -> bool {
        matches!(self.recovery, RecoveryMode::Reno | RecoveryMode::NewReno)
    }

    /// `on_start`: initial window and threshold, or the restart after an idle period.
    pub fn start(&mut self, cx: &Cx<'_>, start: &Start) {
        let iw = self.rules.initial_window.segments(cx.path.smss).max(1.0);
        match *start {
            Start::Established { syn_lost, .. } => {
                self.cwnd = if syn_lost { 1.0 } else { iw };
                self.ssthresh = growth::initial_ssthresh(&self.rules, cx.path);
            }
            Start::Idle if self.rules.restart_after_idle => self.cwnd = self.cwnd.min(iw),
            Start::Idle => {}
        }
    }

    /// `on_ack`, first half: inflation during fast recovery. True if the window may grow on this acknowledgement.
    #[inline]
    pub fn acked(&mut self, cx: &Cx<'_>, ack: &Ack) -> bool {
        match (ack.kind, cx.path.phase) {
            (AckKind::New | AckKind::Full, Phase::Open | Phase::Loss) => return ack.cwnd_limited,
            (AckKind::Duplicate { .. }, Phase::Recovery) if self.inflates() => {
                self.infl.add(&mut self.cwnd, 1.0);
            }
            (AckKind::Partial, Phase::Recovery) if self.inflates() && self.rules.partial_deflation => {
                self.infl.partial(&mut self.cwnd, ack.acked);
            }
            _ => {}
        }
        false
    }

    /// Reno's growth.
    #[inline]
    pub fn grow_like_reno(&mut self, cx: &Cx<'_>, ack: &Ack) {
        self.cwnd = growth::grown(&self.rules, cx.path, self.cwnd, self.ssthresh, ack.acked);
    }

    /// Growth to a window chosen by the caller, within the receive window if the preset says so.
    #[inline]
    pub fn grow_to(&mut self, cx: &Cx<'_>, to: f64) {
        self.cwnd = growth::capped(&self.rules, cx.path, to.max(self.cwnd), self.cwnd);
    }

    /// The segments for which an acknowledgement counts in congestion avoidance: one, or with byte counting those that it
    /// acknowledges, at most a window of them.
    #[inline]
    #[must_use]
    pub fn credit(&self, ack: &Ack) -> f64 {
        match self.rules.growth {
            crate::CaGrowth::PerAck => 1.0,
            crate::CaGrowth::Abc => ack.acked.min(self.cwnd),
        }
    }

    /// `on_congestion`: sets the window and threshold chosen by the caller.
    pub fn reduce(&mut self, signal: Signal, ssthresh: f64, cwnd: f64) {
        self.remember();
        self.ssthresh = ssthresh;
        self.infl.clear();
        self.cwnd = cwnd;
        self.reduced = cwnd;
        if self.inflates() && signal != Signal::Ecn {
            self.infl.add(&mut self.cwnd, self.rules.inflate_ndup);
        }
    }

    /// `on_recovered`: back to the reduced window.
    pub fn recovered(&mut self, cx: &Cx<'_>) {
        self.infl.clear();
        self.cwnd = match self.recovery {
            // RFC 6582 §3.2 step 3, option 1: avoids a burst when little data is in flight.
            RecoveryMode::NewReno if self.rules.halving_base == HalvingBase::FlightSize => {
                self.reduced.min(cx.path.in_flight().max(1.0) + 1.0)
            }
            _ => self.reduced,
        };
    }

    /// The window without inflation.
    #[must_use]
    pub fn deflated(&self) -> f64 {
        self.infl.without(self.cwnd)
    }

    /// Half of the window without inflation ([`growth::half`]).
    #[must_use]
    pub fn half(&self, cx: &Cx<'_>) -> f64 {
        self.kept(cx, 0.5)
    }

    /// The fraction `keep` of the window without inflation ([`growth::kept`]).
    #[must_use]
    pub fn kept(&self, cx: &Cx<'_>, keep: f64) -> f64 {
        growth::kept(&self.rules, cx.path, self.deflated(), keep)
    }

    /// Sets a window other than that of a reduction; this ends a recovery in progress.
    pub fn reset(&mut self, cwnd: f64) {
        self.infl.clear();
        self.cwnd = cwnd;
        self.reduced = cwnd;
    }

    /// Saves the window, without inflation, for [`Self::undo`]. [`Self::reduce`] and [`Self::timeout`] call this; a caller
    /// that reduces the window otherwise must.
    pub fn remember(&mut self) {
        self.before = Window { cwnd: self.infl.without(self.cwnd), ssthresh: self.ssthresh };
    }

    /// `on_timeout`: one segment; the threshold once per episode (RFC 5681 §3.1).
    pub fn timeout(&mut self, backoff: u32, ssthresh: f64) {
        if backoff <= 1 {
            self.remember();
            self.ssthresh = ssthresh;
        }
        self.infl.clear();
        self.cwnd = 1.0;
        self.reduced = 1.0;
    }

    /// `on_undo`: reverts the last reduction.
    pub fn undo(&mut self, cx: &Cx<'_>) {
        self.grow_to(cx, self.cwnd.max(self.before.cwnd));
        self.ssthresh = self.ssthresh.max(self.before.ssthresh);
    }
}
