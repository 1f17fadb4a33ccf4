//! The states after startup: drain, the cycle that searches for rate, the measurement of the RTT (draft §5.3.2 to
//! §5.3.4).

use super::{Bbr3, DRAIN_ROUNDS, Feedback, Mode, model::Sample};
use crate::event::{Cx, Path};
use skyhaul_base::Duration;

/// Seconds between searches: this, and up to one more at random.
const PROBE_WAIT: f64 = 2.0;
/// Rounds between searches at most: those of a Reno flow that fills a usual access line (§5.3.3.8.3).
const RENO_ROUNDS: f64 = 63.0;

impl Bbr3 {
    /// `UpdateRound`.
    pub(super) fn update_round(&mut self, path: &Path, rs: &Sample) {
        self.round_start = rs.prior_delivered.is_some_and(|d| d >= self.next_round_delivered);
        if self.round_start {
            self.start_round(path);
            self.round += 1;
            self.rounds_since_probe += 1;
            self.cwnd_limited = (false, self.cwnd_limited.0);
        }
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, cx: &mut Cx<'_>) {
        if self.mode == Mode::Drain {
            let empty = cx.path.pipe <= self.quantised(cx.path, self.bdp(cx.path, self.bw));
            if empty || self.round > self.drain_start_round + DRAIN_ROUNDS {
                self.start_down(cx);
            }
        }
    }

    pub(super) fn start_down(&mut self, cx: &mut Cx<'_>) {
        self.reset_congestion_signals();
        self.up_acked_per_increment = f64::INFINITY;
        // `PickProbeWait`
        self.rounds_since_probe = cx.rng.below(2);
        self.probe_wait = Duration::from_secs_f64(PROBE_WAIT + cx.rng.unit());
        self.cycle_stamp = cx.now;
        self.feedback = Feedback::Stopping;
        self.start_round(cx.path);
        self.mode = Mode::Down;
    }

    pub(super) fn start_refill(&mut self, path: &Path) {
        self.bounds.reset_shortterm();
        (self.up_rounds, self.up_acked) = (0, 0.0);
        self.prev_probe_precautionary = false;
        self.feedback = Feedback::Refilling;
        self.start_round(path);
        self.mode = Mode::Refill;
    }

    fn start_up(&mut self, path: &Path, rs: &Sample) {
        self.feedback = Feedback::Starting;
        self.start_round(path);
        self.plateau.reset(rs.rate);
        self.mode = Mode::Up;
        self.raise_slope();
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, cx: &mut Cx<'_>, rs: &Sample, newly: f64) {
        if !self.full || newly <= 0.0 || self.adapt_long_term_model(cx.path, rs, newly) {
            return;
        }
        let down = self.mode == Mode::Up && self.is_time_to_go_down(cx.path, rs);
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(cx) => self.start_refill(cx.path),
            Mode::Down if self.is_time_to_cruise(cx.path) => self.mode = Mode::Cruise,
            Mode::Refill if self.round_start => {
                self.probe_sample = true;
                self.start_up(cx.path, rs);
            }
            Mode::Up if down => {
                self.prev_probe_too_high = false;
                self.start_down(cx);
            }
            _ => {}
        }
    }

    /// `IsTimeToProbeBW`: the clock, or as many rounds as Reno would have taken.
    fn is_time_to_probe(&self, cx: &Cx<'_>) -> bool {
        cx.now > self.cycle_stamp + self.probe_wait
            || self.rounds_since_probe as f64 >= self.target_inflight(cx.path).min(RENO_ROUNDS)
    }

    fn is_time_to_cruise(&self, path: &Path) -> bool {
        let empty = self.quantised(path, self.bdp(path, self.max_bw.max() as f64));
        path.pipe <= self.with_headroom() && path.pipe <= empty
    }

    fn is_time_to_go_down(&mut self, path: &Path, rs: &Sample) -> bool {
        let long = self.bounds.inflight_longterm;
        if self.prev_probe_too_high && path.pipe >= long {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= long {
            // Held by the limit, not by the path: no plateau.
            self.plateau.reset(rs.rate);
            return false;
        }
        self.plateau.reached
    }

    fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited.0 || self.cwnd_limited.1
    }

    /// `RaiseInflightLongtermSlope`.
    pub(super) fn raise_slope(&mut self) {
        let growth = f64::from(1u32 << self.up_rounds);
        self.up_rounds = (self.up_rounds + 1).min(30);
        self.up_acked_per_increment = (self.cwnd / growth).max(1.0);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_upward(&mut self, newly: f64) {
        if !self.is_cwnd_limited() || self.cwnd < self.bounds.inflight_longterm {
            return;
        }
        self.up_acked += newly;
        if self.up_acked >= self.up_acked_per_increment {
            let delta = skyhaul_base::math::floor(self.up_acked / self.up_acked_per_increment);
            self.up_acked -= delta * self.up_acked_per_increment;
            self.bounds.inflight_longterm += delta;
        }
        if self.round_start {
            self.raise_slope();
        }
    }

    /// `AdaptLongTermModel`; true if it decided on a state.
    fn adapt_long_term_model(&mut self, path: &Path, rs: &Sample, newly: f64) -> bool {
        if self.feedback == Feedback::Starting && self.round_start {
            self.feedback = Feedback::Arriving;
        }
        if self.feedback == Feedback::Stopping && self.round_start {
            self.probe_sample = false;
            self.feedback = Feedback::Init;
            if self.mode.in_probe_bw() {
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
            if self.mode == Mode::Up {
                self.probe_upward(newly);
            }
        }
        false
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, cx: &mut Cx<'_>, expired: bool) {
        if self.mode != Mode::ProbeRtt && expired && !self.idle_restart {
            self.save_cwnd();
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done = None;
            self.feedback = Feedback::Stopping;
            self.start_round(cx.path);
            self.held_back.begin(cx.path);
        }
        if self.mode != Mode::ProbeRtt {
            return;
        }
        self.held_back.go_on(cx.path);
        if self.probe_rtt_done.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(cx);
            }
        } else if cx.path.pipe <= self.probe_rtt_cwnd(cx.path) {
            self.probe_rtt_done = Some(cx.now + Duration::from_secs_f64(self.config.probe_rtt_duration));
            self.probe_rtt_round_done = false;
            self.start_round(cx.path);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, cx: &mut Cx<'_>) {
        if self.probe_rtt_done.is_some_and(|at| cx.now > at) {
            self.rtt.measured(cx.now);
            self.restore_cwnd(cx.path);
            // `ExitProbeRTT`
            self.bounds.reset_shortterm();
            if self.full {
                self.start_down(cx);
                self.mode = Mode::Cruise;
            } else {
                self.mode = Mode::Startup;
            }
        }
    }
}
