//! Limits learnt from losses, and how each loss changes them (draft §5.5.10, §5.5.11).

use super::{Bbr3, State, model::Sample};
use crate::event::{Cx, Lost, Path, Phase};

/// The limits; infinite if no loss has set them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// bit/s, for the rest of the cycle.
    pub(super) bw_shortterm: f64,
    /// Segments, for the rest of the cycle.
    pub(super) inflight_shortterm: f64,
    /// Segments, until a search says otherwise.
    pub(super) inflight_longterm: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        let none = f64::INFINITY;
        Self { bw_shortterm: none, inflight_shortterm: none, inflight_longterm: none }
    }
}

impl Bounds {
    /// `ResetShortTermModel`.
    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }
    /// Raises each limit to at least that of `other`.
    fn raise_to(&mut self, other: &Self) {
        self.bw_shortterm = self.bw_shortterm.max(other.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(other.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(other.inflight_longterm);
    }
}

/// State before a loss episode, to be restored if it proves spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Saved in the current episode.
    pub(super) saved: bool,
    /// State that the losses ended: `Startup` or `Up`.
    pub(super) state: Option<State>,
    pub(super) bounds: Bounds,
}

impl Bbr3 {
    /// `IsInflightTooHigh`, for `lost` of `inflight` segments.
    fn too_high(&self, path: &Path, lost: f64, inflight: f64) -> bool {
        lost > inflight * self.config.loss_threshold || (lost > 0.0 && !path.sack)
    }

    /// As [`Self::too_high`], for an acknowledgement.
    pub(super) fn sample_too_high(&self, path: &Path, rs: &Sample) -> bool {
        self.too_high(path, rs.lost, rs.in_flight)
    }

    /// `NoteLoss`.
    fn note_loss(&mut self, path: &Path) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = path.delivered;
        }
        self.save_state();
        self.is_loss_in_round = true;
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_lost(&mut self, cx: &mut Cx<'_>, packet: &Lost) {
        self.note_loss(cx.path);
        self.loss_events_in_round += u32::from(!packet.same_gap);
        if !self.is_bw_probe_sample {
            return;
        }
        let segments = |bytes: u64| bytes as f64 / f64::from(cx.path.smss);
        let (inflight, lost) = (segments(packet.in_flight), segments(packet.lost));
        if self.too_high(cx.path, lost, inflight) {
            // `InflightAtLoss`: the part of this segment at which the losses crossed the threshold.
            let size = segments(u64::from(packet.len));
            let threshold = self.config.loss_threshold;
            let prefix = (threshold * (inflight - size) - (lost - size)) / (1.0 - threshold);
            self.handle_too_high(cx, inflight - size + prefix.max(0.0), packet.app_limited);
        }
    }

    /// `HandleInflightTooHigh` at `inflight` segments.
    fn handle_too_high(&mut self, cx: &mut Cx<'_>, inflight: f64, limited: bool) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !limited {
            let least = self.target_inflight(cx.path) * self.config.beta;
            self.bounds.inflight_longterm = inflight.max(least);
        }
        if self.state == State::ProbeBwUp {
            self.undo.state = Some(State::ProbeBwUp);
            self.start_down(cx);
        }
    }

    /// An ECN mark: loss beyond the threshold at the current data in flight.
    pub(super) fn handle_mark(&mut self, cx: &mut Cx<'_>) {
        self.note_loss(cx.path);
        // No recovery will follow whose end could prove it spurious.
        self.undo.saved = self.phase != Phase::Open;
        if self.state == State::Startup {
            self.leave_startup(cx.path);
        } else if self.is_bw_probe_sample {
            self.handle_too_high(cx, cx.path.pipe(), cx.path.app_limited);
        }
    }

    /// `CheckStartupHighLoss`, and the end of startup.
    pub(super) fn check_startup_done(&mut self, path: &Path, rs: &Sample) {
        if self.state == State::Startup {
            let sustained = self.loss_round_start && self.loss_events_in_round >= self.config.startup_losses;
            let repairing = path.phase == Phase::Recovery;
            if repairing && self.sample_too_high(path, rs) && (sustained || !path.sack) {
                self.leave_startup(path);
            }
            if self.full_bw_reached {
                self.enter_drain();
            }
        }
        if self.loss_round_start {
            self.loss_events_in_round = 0;
        }
    }

    fn leave_startup(&mut self, path: &Path) {
        self.undo.state = Some(State::Startup);
        self.full_bw_reached = true;
        self.bounds.inflight_longterm = self.bdp(path, self.bw).max(self.inflight_latest);
    }

    fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain_start_round = self.round_count;
    }

    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest_delivery_signals(&mut self, path: &Path, rs: &Sample) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(rs.rate);
        self.inflight_latest = self.inflight_latest.max(rs.delivered);
        if rs.prior_delivered.is_some_and(|d| d >= self.loss_round_delivered) {
            self.loss_round_delivered = path.delivered;
            self.loss_round_start = true;
        }
    }

    /// `UpdateCongestionSignals` with `UpdateMaxBw` and `AdaptLowerBoundsFromCongestion`.
    pub(super) fn update_congestion_signals(&mut self, path: &Path, rs: &Sample) {
        self.update_round(path, rs);
        // An app-limited sample is a lower bound: useful only if it raises the estimate.
        if rs.rate > 0.0 && (!rs.limited || rs.rate >= self.max_bw.max() as f64) {
            self.max_bw.update(self.cycle_count, rs.rate as u64);
        }
        if !self.loss_round_start {
            return;
        }
        // Losses that led to no recovery form an episode of one round.
        self.undo.saved &= self.is_loss_in_round || self.phase != Phase::Open;
        if self.is_loss_in_round && !self.state.searches() {
            let b = &mut self.bounds;
            let (bw, inflight) = (self.max_bw.max() as f64, self.cwnd);
            b.bw_shortterm = if b.bw_shortterm.is_finite() { b.bw_shortterm } else { bw };
            b.inflight_shortterm =
                if b.inflight_shortterm.is_finite() { b.inflight_shortterm } else { inflight };
            let beta = self.config.beta;
            b.bw_shortterm = self.bw_latest.max(beta * b.bw_shortterm);
            b.inflight_shortterm = self.inflight_latest.max(beta * b.inflight_shortterm);
        }
        self.is_loss_in_round = false;
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn handle_spurious_loss(&mut self, cx: &mut Cx<'_>) {
        self.restore_cwnd(cx.path);
        self.is_loss_in_round = false;
        self.plateau.reset(0.0);
        self.bounds.raise_to(&self.undo.bounds);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::ProbeBwUp) if !matches!(self.state, State::ProbeBwUp | State::ProbeRtt) => {
                self.start_refill(cx.path)
            }
            _ => {}
        }
        self.bound_cwnd(cx.path);
    }
}
