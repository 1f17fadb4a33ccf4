//! The states after startup: drain, the cycle that searches for rate, and the RTT measurement (draft §5.3.2 to
//! §5.3.4).

use super::{AckPhase, Bbr3, DRAIN_ROUNDS, State, model::Sample};
use crate::event::{Cx, Path};
use skyhaul_base::Duration;

/// Minimum seconds between searches; up to one more is added at random.
const PROBE_WAIT: f64 = 2.0;
/// Maximum rounds between searches: those of a Reno flow that fills a typical access line (§5.3.3.8.3).
const RENO_ROUNDS: f64 = 63.0;

impl Bbr3 {
    /// `UpdateRound`.
    pub(super) fn update_round(&mut self, path: &Path, rs: &Sample) {
        self.round_start = rs.prior_delivered.is_some_and(|d| d >= self.next_round_delivered);
        if self.round_start {
            self.start_round(path);
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            self.cwnd_limited = (false, self.cwnd_limited.0);
        }
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, cx: &mut Cx<'_>) {
        if self.state == State::Drain {
            let empty = cx.path.pipe() <= self.quantised(cx.path, self.bdp(cx.path, self.bw));
            if empty || self.round_count > self.drain_start_round + DRAIN_ROUNDS {
                self.start_down(cx);
            }
        }
    }

    pub(super) fn start_down(&mut self, cx: &mut Cx<'_>) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        // `PickProbeWait`
        self.rounds_since_probe_up = cx.rng.below(2);
        self.bw_probe_wait = Duration::from_secs_f64(PROBE_WAIT + cx.rng.unit());
        self.cycle_stamp = cx.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round(cx.path);
        self.state = State::ProbeBwDown;
    }

    pub(super) fn start_refill(&mut self, path: &Path) {
        self.bounds.reset_shortterm();
        (self.bw_probe_up_rounds, self.bw_probe_up_acked) = (0, 0.0);
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round(path);
        self.state = State::ProbeBwRefill;
    }

    fn start_up(&mut self, path: &Path, rs: &Sample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round(path);
        self.plateau.reset(rs.rate);
        self.state = State::ProbeBwUp;
        self.raise_slope();
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, cx: &mut Cx<'_>, rs: &Sample, newly: f64) {
        if !self.full_bw_reached || newly <= 0.0 || self.adapt_long_term_model(cx.path, rs, newly) {
            return;
        }
        let down = self.state == State::ProbeBwUp && self.is_time_to_go_down(cx.path, rs);
        match self.state {
            State::ProbeBwDown | State::ProbeBwCruise if self.is_time_to_probe(cx) => {
                self.start_refill(cx.path)
            }
            State::ProbeBwDown if self.is_time_to_cruise(cx.path) => self.state = State::ProbeBwCruise,
            State::ProbeBwRefill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_up(cx.path, rs);
            }
            State::ProbeBwUp if down => {
                self.prev_probe_too_high = false;
                self.start_down(cx);
            }
            _ => {}
        }
    }

    /// `IsTimeToProbeBW`: by time, or after as many rounds as Reno would have taken.
    fn is_time_to_probe(&self, cx: &Cx<'_>) -> bool {
        cx.now > self.cycle_stamp + self.bw_probe_wait
            || self.rounds_since_probe_up as f64 >= self.target_inflight(cx.path).min(RENO_ROUNDS)
    }

    fn is_time_to_cruise(&self, path: &Path) -> bool {
        let empty = self.quantised(path, self.bdp(path, self.max_bw.max() as f64));
        path.pipe() <= self.with_headroom() && path.pipe() <= empty
    }

    fn is_time_to_go_down(&mut self, path: &Path, rs: &Sample) -> bool {
        let long = self.bounds.inflight_longterm;
        if self.prev_probe_too_high && path.pipe() >= long {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= long {
            // The limit holds the rate, not the path: no plateau.
            self.plateau.reset(rs.rate);
            return false;
        }
        self.plateau.full_bw_now
    }

    fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited.0 || self.cwnd_limited.1
    }

    /// `RaiseInflightLongtermSlope`.
    pub(super) fn raise_slope(&mut self) {
        let growth = f64::from(1u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth).max(1.0);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, newly: f64) {
        if !self.is_cwnd_limited() || self.cwnd < self.bounds.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += newly;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = skyhaul_base::math::floor(self.bw_probe_up_acked / self.probe_up_acked_per_inc);
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.bounds.inflight_longterm += delta;
        }
        if self.round_start {
            self.raise_slope();
        }
    }

    /// `AdaptLongTermModel`; true if it selected a state.
    fn adapt_long_term_model(&mut self, path: &Path, rs: &Sample, newly: f64) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.state.in_probe_bw() {
                if !rs.limited {
                    self.cycle_count += 1;
                }
                if self.prev_probe_precautionary && !self.prev_probe_too_high {
                    self.start_refill(path);
                    return true;
                }
            }
        }
        if !self.sample_too_high(path, rs) && self.bounds.inflight_longterm.is_finite() {
            self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(rs.in_flight);
            if self.state == State::ProbeBwUp {
                self.probe_upward(newly);
            }
        }
        false
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, cx: &mut Cx<'_>, expired: bool) {
        if self.state != State::ProbeRtt && expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round(cx.path);
            self.held_back.begin(cx.path);
        }
        if self.state != State::ProbeRtt {
            return;
        }
        self.held_back.go_on(cx.path);
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(cx);
            }
        } else if cx.path.pipe() <= self.probe_rtt_cwnd(cx.path) {
            self.probe_rtt_done_stamp =
                Some(cx.now + Duration::from_secs_f64(self.config.probe_rtt_duration));
            self.probe_rtt_round_done = false;
            self.start_round(cx.path);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, cx: &mut Cx<'_>) {
        if self.probe_rtt_done_stamp.is_some_and(|at| cx.now > at) {
            self.rtt.measured(cx.now);
            self.restore_cwnd(cx.path);
            // `ExitProbeRTT`
            self.bounds.reset_shortterm();
            if self.full_bw_reached {
                self.start_down(cx);
                self.state = State::ProbeBwCruise;
            } else {
                self.state = State::Startup;
            }
        }
    }
}
