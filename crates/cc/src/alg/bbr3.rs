//! BBR, version 3.
//!
//! *Idea*: BBR version 3 adds to the model of version 1 (bottleneck rate and RTT of the empty path) an upper limit
//! learnt from losses. A search for more rate (`Refill`, `Up`) raises the data in flight and stops at 2 % loss; the
//! level reached is remembered (`inflight_longterm`), and while cruising the flow stays 15 % below it, which leaves
//! room for others. Losses outside of a search limit rate and window for the rest of the cycle (`…_shortterm`, at worst
//! 0.7 per round). Searches come every 2 to 3 s, sooner where Reno would have probed; the RTT is measured every 5 s at
//! half of the bandwidth-delay product.
//!
//! *Source*: draft-ietf-ccwg-bbr-06 (Cardwell, Swett, Beshay; July 2026). This module follows its constants and
//! pseudocode step by step, with its names, and was compared with the description of Google's version 3 for Linux.
//!
//! Differences from the draft, and why:
//!
//! - The state that an undo restores is saved once per loss episode. Taken literally, the second lost segment of an
//!   episode would overwrite the state saved by the first, because `StartProbeBW_DOWN` has cleared the mark in
//!   between.
//! - `InflightAtLoss` limits the part of the segment that fits to 0 or more, as Linux does: earlier losses may have
//!   used up the 2 % already.
//! - The full-pipe estimator ignores invalid rate samples (an interval shorter than the minimum RTT). Taken
//!   literally, their 0 would count as a round without growth.
//! - Idleness is defined by the sender: nothing outstanding for longer than the RTO. A restart also clears
//!   `extra_acked_delivered`, as Linux does: taken literally, data acknowledged before the pause would count as
//!   acknowledged since.
//! - The send quantum only enters the budget for offload; segments are paced one by one.
//! - ECN: the draft leaves the response open, but a mark must count as congestion (§3.7). An echo, one per window,
//!   counts as loss beyond the threshold at what is in flight. The option `ecn` turns it off.
//!
//! ```text
//!          plateau, or loss         in flight <= BDP       headroom, no queue
//! Startup ------------------> Drain ----------------> Down -----------------> Cruise
//!                                                      ^  \                     |  2–3 s, or as
//!                         plateau, loss, or            |   +--------+-----------+  many rounds
//!                         the level that was too high  |            v  one round   as Reno would
//!                                                      Up <------ Refill
//! any state, least RTT 5 s old --> ProbeRtt (200 ms and a round at BDP/2) --> Cruise, or Startup
//! ```

mod bounds;
mod cycle;
mod model;

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Blocked, Cx, Lost, Path, Phase, Signal, Start, Transmit};
use crate::parts::aggregation::Aggregation;
use crate::parts::growth;
use crate::parts::held_back::HeldBack;
use crate::parts::windowed::WindowedMax;
use crate::rules::{InitialWindow, InvalidInitialWindow, Rules, SharedRules};
use alloc::boxed::Box;
use bounds::{Bounds, Undo};
use model::{MinRtt, Plateau, Sample};
use skyhaul_base::{Duration, Instant, Rate};

skyhaul_base::options! {
    /// Options of BBR version 3. The defaults are the draft's constants.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Seconds for which the minimum RTT remains valid (`MinRTTFilterLen`, 10).
        min_rtt_window: f64 = 10.0,
        /// Seconds after which the minimum RTT is measured again (`ProbeRTTInterval`, 5).
        probe_rtt_interval: f64 = 5.0,
        /// Minimum seconds for which only half a bandwidth-delay product is in flight to measure the RTT
        /// (`ProbeRTTDuration`, 0.2).
        probe_rtt_duration: f64 = 0.2,
        /// Fraction of a round that may be lost before a probe for more rate counts as too high (`LossThresh`, 0.02).
        loss_threshold: f64 = 0.02,
        /// Minimum fraction of rate and window that remains after a round with a loss (`Beta`, 0.7).
        beta: f64 = 0.7,
        /// Fraction of the largest safe window that is left to other flows (`Headroom`, 0.15).
        headroom: f64 = 0.15,
        /// Number of gaps in one round that ends startup (`BBRStartupFullLossCnt`, 6).
        startup_losses: u32 = 6,
        /// An ECN echo counts as a loss rate above the threshold.
        ecn: bool = true,
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
    #[error("min-rtt-window must be a positive number of seconds")]
    MinRttWindow,
    #[error("probe-rtt-interval must be a positive number of seconds, at most min-rtt-window")]
    ProbeRttInterval,
    #[error("probe-rtt-duration must be a number of seconds, 0 or more")]
    ProbeRttDuration,
    #[error("loss-threshold must lie between 0 and 1")]
    LossThreshold,
    #[error("beta must lie between 0 and 1: the part of the window that is kept")]
    Beta,
    #[error("headroom must lie between 0 and 1, or be 0")]
    Headroom,
    #[error("startup-losses is a number of gaps, at least 1")]
    StartupLosses,
    #[error(transparent)]
    InitialWindow(#[from] InvalidInitialWindow),
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<Bbr3>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        let positive = |x: f64| x.is_finite() && x > 0.0;
        let part = |x: f64| x > 0.0 && x < 1.0;
        if !positive(self.min_rtt_window) {
            return Err(Invalid::MinRttWindow);
        }
        if !positive(self.probe_rtt_interval) || self.probe_rtt_interval > self.min_rtt_window {
            return Err(Invalid::ProbeRttInterval);
        }
        if !(self.probe_rtt_duration.is_finite() && self.probe_rtt_duration >= 0.0) {
            return Err(Invalid::ProbeRttDuration);
        }
        if !part(self.loss_threshold) {
            return Err(Invalid::LossThreshold);
        }
        if !part(self.beta) {
            return Err(Invalid::Beta);
        }
        if !(self.headroom >= 0.0 && self.headroom < 1.0) {
            return Err(Invalid::Headroom);
        }
        if self.startup_losses == 0 {
            return Err(Invalid::StartupLosses);
        }
        if let Some(window) = self.initial_window {
            window.validate()?;
        }
        Ok(())
    }
    fn build(&self, rules: SharedRules) -> Box<Bbr3> {
        Box::new(Bbr3::new(self, rules))
    }
}

/// 4 ln 2: the minimum pacing gain that doubles the rate in every round (`StartupPacingGain`).
const STARTUP_PACING_GAIN: f64 = 2.77;
/// Empties, within a round, the queue that startup has built (`DrainPacingGain`).
const DRAIN_PACING_GAIN: f64 = 0.5;
/// Pacing gains of `ProbeBW_DOWN` and `ProbeBW_UP`.
const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;
/// Windows in bandwidth-delay products (`DefaultCwndGain`, `ProbeBW_UP`, `ProbeRTTCwndGain`).
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// `1 - PacingMarginPercent`.
const PACING_MARGIN: f64 = 0.99;
/// `MaxBwFilterLen`, cycles.
const BW_CYCLES: usize = 2;
/// `MinPipeCwnd`, segments.
const MIN_WINDOW: f64 = 4.0;
/// RTT assumed for the first pacing rate if none is known.
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Minimum pacing rate, bit/s; below this the sender would stop.
const MIN_PACING: f64 = 8.0;
/// Maximum rounds in `Drain`.
const DRAIN_ROUNDS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

impl State {
    const fn in_probe_bw(self) -> bool {
        matches!(self, Self::ProbeBwDown | Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeBwUp)
    }
    /// `IsProbingBW`.
    const fn searches(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeBwRefill | Self::ProbeBwUp)
    }
    const fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_PACING_GAIN,
            Self::Drain => DRAIN_PACING_GAIN,
            Self::ProbeBwDown => DOWN_PACING_GAIN,
            Self::ProbeBwUp => UP_PACING_GAIN,
            Self::ProbeBwCruise | Self::ProbeBwRefill | Self::ProbeRtt => 1.0,
        }
    }
    const fn cwnd_gain(self) -> f64 {
        match self {
            Self::ProbeBwUp => UP_CWND_GAIN,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }
}

/// Which part of a search the arriving acknowledgements are for (`ack_phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// BBR, version 3. Volumes of data are segments, rates bit/s.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    config: Config,
    rules: SharedRules,
    state: State,
    phase: Phase,
    cwnd: f64,
    /// Window to return to after a recovery or a measurement of the RTT.
    prior_cwnd: f64,
    pacing_rate: Option<f64>,
    /// `Path::delivered` as of the last acknowledgement, bytes.
    delivered: u64,

    /// The minimum of the measured rate and the limits learnt from losses.
    bw: f64,
    max_bw: WindowedMax<BW_CYCLES>,
    cycle_count: u64,
    rtt: MinRtt,
    aggregation: Aggregation,
    held_back: HeldBack,
    bounds: Bounds,

    round_count: u64,
    round_start: bool,
    next_round_delivered: u64,

    plateau: Plateau,
    full_bw_reached: bool,
    drain_start_round: u64,

    bw_latest: f64,
    inflight_latest: f64,
    loss_round_delivered: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// Gaps in the sequence of segments that losses of this round have left.
    loss_events_in_round: u32,
    undo: Undo,

    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    cycle_stamp: Instant,
    bw_probe_wait: Duration,
    rounds_since_probe_up: u64,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    /// Whether the window was fully used in this round, and in the last one.
    cwnd_limited: (bool, bool),

    /// When data in flight will have been small for long enough; `None` until it has fallen to half a bandwidth-delay
    /// product.
    probe_rtt_done_stamp: Option<Instant>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
}

impl Bbr3 {
    /// A BBR control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        let rules = rules.into();
        let initial_window = config.initial_window.unwrap_or(rules.initial_window);
        Self {
            rules: rules.adapted(Rules { initial_window, ..*rules }),
            config: config.clone(),
            state: State::Startup,
            phase: Phase::Open,
            cwnd: 1.0,
            prior_cwnd: 0.0,
            pacing_rate: None,
            delivered: 0,
            bw: 0.0,
            max_bw: WindowedMax::default(),
            cycle_count: 0,
            rtt: MinRtt::default(),
            aggregation: Aggregation::default(),
            held_back: HeldBack::default(),
            bounds: Bounds::default(),
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            plateau: Plateau::default(),
            full_bw_reached: false,
            drain_start_round: 0,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            loss_round_delivered: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            loss_events_in_round: 0,
            undo: Undo::default(),
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            cycle_stamp: Instant::ZERO,
            bw_probe_wait: Duration::ZERO,
            rounds_since_probe_up: 0,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            cwnd_limited: (false, false),
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
        }
    }

    fn initial_window(&self, path: &Path) -> f64 {
        self.rules.initial_window.segments(path.smss).max(1.0)
    }

    fn start_round(&mut self, path: &Path) {
        self.next_round_delivered = path.delivered;
    }

    fn save_cwnd(&mut self) {
        let cut = self.phase != Phase::Open || self.state == State::ProbeRtt;
        self.prior_cwnd = if cut { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    fn restore_cwnd(&mut self, path: &Path) {
        let to = self.cwnd.max(self.prior_cwnd);
        self.cwnd = growth::capped(&self.rules, path, to, self.cwnd);
    }

    /// `SaveStateUponLoss`, once per episode.
    fn save_state(&mut self) {
        if !self.undo.saved {
            self.save_cwnd();
            self.undo = Undo { saved: true, state: None, bounds: self.bounds };
        }
    }

    /// `SetPacingRateWithGain`.
    fn set_pacing(&mut self, path: &Path, gain: f64) {
        let before = self.pacing_rate.unwrap_or_else(|| {
            // `InitPacingRate`, if the handshake gave no RTT.
            let rtt = path.srtt.unwrap_or(NOMINAL_RTT);
            self.initial_pacing(path, rtt)
        });
        let rate = PACING_MARGIN * gain * self.bw;
        // Before the pipe is full, the estimate lags behind and may only raise the rate.
        let raises = rate > 0.0 && (self.full_bw_reached || rate > before);
        self.pacing_rate = Some(if raises { rate.max(MIN_PACING) } else { before });
    }

    fn initial_pacing(&self, path: &Path, rtt: Duration) -> f64 {
        let bits = self.initial_window(path) * f64::from(path.smss) * 8.0;
        (STARTUP_PACING_GAIN * bits / rtt.as_secs_f64().max(1e-6)).max(MIN_PACING)
    }

    /// `BDPMultiple` with rate `bw`.
    fn bdp(&self, path: &Path, bw: f64) -> f64 {
        let Some(rtt) = self.rtt.min() else { return self.initial_window(path) };
        bw * rtt.as_secs_f64() / (f64::from(path.smss) * 8.0)
    }

    /// `QuantizationBudget`.
    fn quantised(&self, path: &Path, inflight: f64) -> f64 {
        // `SetSendQuantum`: the data sent within a millisecond, at most 64 KB, at least two segments.
        let quantum = (self.pacing_rate.unwrap_or(0.0) / 8.0 * 1e-3).min(65_536.0) / f64::from(path.smss);
        let offload = 3.0 * quantum.max(2.0);
        inflight.max(offload).max(MIN_WINDOW) + if self.state == State::ProbeBwUp { 2.0 } else { 0.0 }
    }

    /// `TargetInflight`.
    fn target_inflight(&self, path: &Path) -> f64 {
        self.bdp(path, self.bw).min(self.cwnd)
    }

    /// `ProbeRTTCwnd`.
    fn probe_rtt_cwnd(&self, path: &Path) -> f64 {
        (PROBE_RTT_CWND_GAIN * self.bdp(path, self.bw)).max(MIN_WINDOW)
    }

    /// `InflightWithHeadroom`.
    fn with_headroom(&self) -> f64 {
        let long = self.bounds.inflight_longterm;
        if long.is_finite() { (long - (self.config.headroom * long).max(1.0)).max(MIN_WINDOW) } else { long }
    }

    /// `SetCwnd` for `newly` acknowledged segments.
    fn set_cwnd(&mut self, path: &Path, newly: f64) {
        let before = self.cwnd;
        let extra = self.aggregation.extra() / f64::from(path.smss);
        let most = self.quantised(path, self.state.cwnd_gain() * self.bdp(path, self.bw) + extra);
        let initial = self.initial_window(path) * f64::from(path.smss);
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + newly).min(most);
        } else if self.cwnd < most || (path.delivered as f64) < initial {
            self.cwnd += newly;
        }
        self.cwnd = growth::capped(&self.rules, path, self.cwnd.max(MIN_WINDOW), before);
        self.bound_cwnd(path);
    }

    /// `BoundCwndForProbeRTT`, `BoundCwndForModel`.
    fn bound_cwnd(&mut self, path: &Path) {
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd(path));
        }
        let long = match self.state {
            State::ProbeBwDown | State::ProbeBwRefill | State::ProbeBwUp => self.bounds.inflight_longterm,
            State::ProbeBwCruise | State::ProbeRtt => self.with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        self.cwnd = self.cwnd.min(long.min(self.bounds.inflight_shortterm).max(MIN_WINDOW));
    }

    /// A recovery, or the repair after a timeout, is over.
    fn episode_over(&mut self, path: &Path) {
        self.phase = Phase::Open;
        self.undo.saved = false;
        if self.state != State::ProbeRtt {
            self.restore_cwnd(path);
        }
    }
}

impl CongestionControl for Bbr3 {
    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: f64::INFINITY }
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing_rate.map(|bits| Rate::from_bits_per_sec(bits as u64))
    }

    fn policy(&self) -> Policy {
        Policy {
            recovery: RecoveryMode::Sack,
            rate_samples: true,
            loss_events: true,
            transmit_events: true,
            ..Policy::default()
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        match *start {
            Start::Established { rtt, syn_lost, .. } => {
                self.cwnd = if syn_lost { 1.0 } else { self.initial_window(cx.path) };
                self.delivered = cx.path.delivered;
                self.rtt.begin(cx.now, rtt);
                self.aggregation.restart(cx.now);
                self.pacing_rate = rtt.map(|rtt| self.initial_pacing(cx.path, rtt));
            }
            // `HandleRestartFromIdle`
            Start::Idle => {
                self.idle_restart = true;
                self.aggregation.restart(cx.now);
                if self.state.in_probe_bw() {
                    self.set_pacing(cx.path, 1.0);
                } else if self.state == State::ProbeRtt {
                    self.check_probe_rtt_done(cx);
                }
            }
        }
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let smss = f64::from(cx.path.smss);
        let newly = (cx.path.delivered - self.delivered) as f64 / smss;
        self.delivered = cx.path.delivered;
        if self.phase == Phase::Loss && cx.path.phase == Phase::Open {
            self.episode_over(cx.path);
        }
        self.phase = cx.path.phase;
        let rs = Sample::of(cx.path, ack, &self.held_back);

        self.update_latest_delivery_signals(cx.path, &rs);
        self.update_congestion_signals(cx.path, &rs);
        if self.round_start && !self.full_bw_reached {
            self.aggregation.forget();
        }
        self.aggregation.update(cx.now, self.round_count, self.bw, newly * smss, self.cwnd * smss);
        if self.round_start && rs.rate > 0.0 && !rs.limited {
            self.full_bw_reached |= self.plateau.update(rs.rate);
        }
        self.check_startup_done(cx.path, &rs);
        self.check_drain_done(cx);
        self.update_cycle(cx, &rs, newly);
        let expired = self.rtt.update(cx.now, ack.rtt, &self.config);
        self.check_probe_rtt(cx, expired);
        if newly > 0.0 {
            self.idle_restart = false;
        }
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = (rs.rate, rs.delivered);
        }
        self.bw = self.bounds.bw_shortterm.min(self.max_bw.max() as f64);

        self.set_pacing(cx.path, self.state.pacing_gain());
        self.set_cwnd(cx.path, newly);
    }

    fn on_lost(&mut self, cx: &mut Cx<'_>, lost: &Lost) {
        self.handle_lost(cx, lost);
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        match signal {
            Signal::Loss | Signal::Corruption => {
                // `OnEnterFastRecovery`
                self.save_state();
                self.phase = Phase::Recovery;
            }
            Signal::Ecn => {
                if self.config.ecn {
                    self.handle_mark(cx);
                }
            }
        }
    }

    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.episode_over(cx.path);
        self.bound_cwnd(cx.path);
    }

    fn on_timeout(&mut self, _cx: &mut Cx<'_>, _backoff: u32) {
        // `OnEnterRTO`: nothing counts as in flight any more, so one segment may be sent.
        self.save_cwnd();
        self.save_state();
        self.phase = Phase::Loss;
        self.cwnd = 1.0;
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.handle_spurious_loss(cx);
    }

    #[inline]
    fn wants_transmit(&self) -> bool {
        !self.cwnd_limited.0
    }

    fn on_transmit(&mut self, cx: &mut Cx<'_>, transmit: &Transmit) {
        self.cwnd_limited.0 |= transmit.blocked == Blocked::Cwnd || cx.path.pipe() + 1.0 > self.cwnd;
    }

    fn bandwidth_estimate(&self, _smss: u32) -> Option<Rate> {
        Some(self.bw as u64).filter(|bits| *bits > 0).map(Rate::from_bits_per_sec)
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let bound = |x: f64| if x.is_finite() { x } else { f64::NAN };
        out("bandwidth", self.bw);
        out("min_rtt", self.rtt.min().map_or(f64::NAN, Duration::as_secs_f64));
        out("pacing_gain", self.state.pacing_gain());
        out("mode", f64::from(self.state as u8));
        out("inflight_longterm", bound(self.bounds.inflight_longterm));
        out("inflight_shortterm", bound(self.bounds.inflight_shortterm));
        out("extra_acked", self.aggregation.extra());
    }
}

#[cfg(test)]
mod tests;
