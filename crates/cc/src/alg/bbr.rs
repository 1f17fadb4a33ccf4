//! BBR, version 1.
//!
//! *Idea*: keep a model of the path instead of reacting to loss. The maximum delivery rate of the current round and the
//! ten before it estimates the bottleneck rate, and the minimum RTT of the last ten seconds estimates the RTT of the empty
//! path; their product is the target for data in flight. Startup paces at 2/ln 2 times the rate until the rate stops growing,
//! and drain removes the queue that startup built. Then a cycle of pacing gains probes for more rate (5/4) and drains
//! the resulting queue (3/4). If no RTT sample below the minimum has arrived for ten seconds, the window drops
//! briefly to four segments, so that the RTT of the empty path can be measured again. *Sources*: Cardwell, Cheng, Gunn, Yeganeh,
//! Jacobson, "BBR: congestion-based congestion control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00 (2017); Linux's `tcp_bbr` for what the draft leaves open (packet
//! conservation, the estimate of a policed rate), for the pacing margin, and for the rule that only a smaller RTT sample
//! renews the minimum. Linux's allowance for aggregated acknowledgements (2019) is an
//! option, off by default as in the draft; its rounding of windows to even numbers is not implemented.
//!
//! ```text
//!             rate grew < 25 % in 3 rounds        in flight <= BDP
//!   Startup ------------------------------> Drain -----------------> ProbeBw
//!
//!   any state -> ProbeRtt, once the minimum RTT is 10 s old;
//!   ProbeRtt -> ProbeBw if the pipe was filled, otherwise -> Startup
//! ```

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Path, Phase, Signal, Start};
use crate::parts::aggregation::Aggregation;
use crate::parts::growth;
use crate::parts::held_back::HeldBack;
use crate::parts::windowed::WindowedMax;
use crate::rules::{InitialWindow, InvalidInitialWindow, Rules, SharedRules};
use alloc::boxed::Box;
use policer::Policer;
use skyhaul_base::{Duration, Instant, Rate};

mod policer;

skyhaul_base::options! {
    /// Options of BBR.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Seconds after which the minimum RTT is measured again (10).
        min_rtt_window: f64 = 10.0,
        /// Minimum seconds for which the window stays at four segments to measure the RTT (0.2).
        probe_rtt_duration: f64 = 0.2,
        /// An RTT sample equal to the minimum renews it, as in the draft. Linux requires a smaller sample, so it measures
        /// again every ten seconds even on a path without a queue.
        equal_rtt_renews: bool = false,
        /// Detect a policer by its steady loss and send at its rate (Linux).
        policer: bool = true,
        /// Allow for aggregated acknowledgements once the pipe is full: enlarge the window by the data recently
        /// acknowledged beyond the estimated rate, at most 100 ms of it (Linux since 2019; not in the draft).
        extra_acked: bool = false,
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
    #[error("probe-rtt-duration must be a number of seconds, 0 or more")]
    ProbeRttDuration,
    #[error(transparent)]
    InitialWindow(#[from] InvalidInitialWindow),
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<Bbr>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.min_rtt_window.is_finite() && self.min_rtt_window > 0.0) {
            return Err(Invalid::MinRttWindow);
        }
        if !(self.probe_rtt_duration.is_finite() && self.probe_rtt_duration >= 0.0) {
            return Err(Invalid::ProbeRttDuration);
        }
        if let Some(window) = self.initial_window {
            window.validate()?;
        }
        Ok(())
    }
    fn build(&self, rules: SharedRules) -> Box<Bbr> {
        Box::new(Bbr::new(self, rules))
    }
}

/// 2/ln 2: the least gain that doubles the rate in every round.
const HIGH_GAIN: f64 = 2.885;
/// Window in multiples of the BDP once the pipe is full: room for delayed and stretched acknowledgements.
const CWND_GAIN: f64 = 2.0;
/// Pacing gains of `ProbeBw`, one per minimum RTT.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Factor of the pacing rate: slightly below the estimate, so that no standing queue builds up (Linux).
const PACING_MARGIN: f64 = 0.99;
/// Rounds before the current one in the rate filter.
const BW_ROUNDS: usize = 10;
/// Minimum window, segments: keeps a receiver with delayed acknowledgements going.
const MIN_WINDOW: f64 = 4.0;
/// Factor by which the rate must grow in a round to count as growth.
const FULL_BW_GROWTH: f64 = 1.25;
/// Rounds in a row without such growth after which the pipe counts as full.
const FULL_BW_ROUNDS: u32 = 3;
/// RTT assumed for the first pacing rate if none is known.
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Minimum pacing rate, bit/s; below this the sender would stop.
const MIN_PACING: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// A packet-timed round that may start at any time, unlike those of `Path::round`.
#[derive(Clone, Copy, Debug)]
struct TimedRound {
    /// `Path::delivered` at its start, bytes.
    delivered: u64,
    /// `Path::round` at its start.
    round: u64,
}

impl TimedRound {
    fn begin(path: &Path) -> Self {
        Self { delivered: path.delivered, round: path.round }
    }
    /// Whether data sent after the start was delivered. Without rate samples: after two rounds
    /// of the sender, at least one full round has passed since the start.
    fn over(&self, path: &Path, ack: &Ack) -> bool {
        ack.rate.is_some_and(|r| r.prior_delivered >= self.delivered) || path.round >= self.round + 2
    }
}

/// BBR, version 1.
#[derive(Clone, Debug)]
pub struct Bbr {
    config: Config,
    rules: SharedRules,
    state: State,
    /// Congestion window, segments.
    cwnd: f64,
    /// Window to return to after a recovery or a measurement of the RTT, segments.
    prior_cwnd: f64,
    /// Pacing rate, bit/s.
    pacing_rate: Option<f64>,

    /// Delivery rates, bit/s.
    bw: WindowedMax<{ BW_ROUNDS + 1 }>,
    /// `None` before the first RTT sample.
    min_rtt: Option<Duration>,
    /// When the minimum RTT was last renewed or measured.
    min_rtt_stamp: Instant,
    /// `Path::round`, and `Path::delivered` in bytes, as of the last acknowledgement.
    round_count: u64,
    delivered: u64,
    policer: Policer,

    /// The rate that counted as growth last, bit/s, and the rounds since without growth.
    full_bw: f64,
    full_bw_count: u32,
    filled_pipe: bool,

    /// Phase of [`CYCLE`], and when it began.
    cycle_index: usize,
    cycle_stamp: Instant,

    /// Earliest end of `ProbeRtt`, and the round that must also be over; `None` until data in flight is small.
    probe_rtt_done_stamp: Option<(Instant, TimedRound)>,
    /// Data held back while the window was cut to measure the RTT.
    held_back: HeldBack,
    aggregation: Aggregation,
    /// Nothing has been delivered since the last idle period.
    idle_restart: bool,

    /// First round of a recovery: one segment is sent for each one delivered.
    packet_conservation: Option<TimedRound>,
    phase: Phase,
    /// Segments that the current acknowledgement delivered.
    newly: f64,
}

impl Bbr {
    /// A BBR control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        let rules = rules.into();
        let initial_window = config.initial_window.unwrap_or(rules.initial_window);
        Self {
            rules: rules.adapted(Rules { initial_window, ..*rules }),
            config: config.clone(),
            state: State::Startup,
            cwnd: 1.0,
            prior_cwnd: 1.0,
            pacing_rate: None,
            bw: WindowedMax::default(),
            min_rtt: None,
            min_rtt_stamp: Instant::ZERO,
            round_count: 0,
            delivered: 0,
            policer: Policer::default(),
            full_bw: 0.0,
            full_bw_count: 0,
            filled_pipe: false,
            cycle_index: 0,
            cycle_stamp: Instant::ZERO,
            probe_rtt_done_stamp: None,
            held_back: HeldBack::default(),
            aggregation: Aggregation::default(),
            idle_restart: false,
            packet_conservation: None,
            phase: Phase::Open,
            newly: 0.0,
        }
    }

    fn bandwidth(&self) -> f64 {
        if self.policer.in_use { self.policer.rate } else { self.bw.max() as f64 }
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => 1.0 / HIGH_GAIN,
            State::ProbeBw if !self.policer.in_use => CYCLE[self.cycle_index],
            State::ProbeBw | State::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBw => CWND_GAIN,
            State::ProbeRtt => 1.0,
        }
    }

    fn initial_window(&self, path: &Path) -> f64 {
        self.rules.initial_window.segments(path.smss).max(1.0)
    }

    /// Segments in flight at `gain` times the bandwidth-delay product of rate `bw`, and three send quanta; the initial window
    /// before the first RTT sample.
    fn inflight(&self, path: &Path, bw: f64, gain: f64) -> f64 {
        let Some(rtt) = self.min_rtt else { return self.initial_window(path) };
        let segment = f64::from(path.smss) * 8.0;
        // The send quantum, in segments: one or two at low rates, above 24 Mbit/s the data of a millisecond, at most 64 KB
        // (draft §4.2.2). Three quanta are added, since offload at sender and receiver holds data back. The minimum of two
        // is Linux's: with large segments the data of a millisecond is less.
        let quantum = match self.pacing_rate.unwrap_or(0.0) {
            r if r < 1.2e6 => 1.0,
            r if r < 24e6 => 2.0,
            r => ((r * 1e-3).min(64_000.0 * 8.0) / segment).max(2.0),
        };
        gain * bw * rtt.as_secs_f64() / segment + 3.0 * quantum
    }

    fn set_pacing(&mut self, rate: f64) {
        self.pacing_rate = Some(rate.max(MIN_PACING));
    }

    /// High gain times initial window per RTT.
    fn initial_pacing(&mut self, path: &Path, rtt: Duration) {
        let bits = self.initial_window(path) * f64::from(path.smss) * 8.0;
        self.set_pacing(PACING_MARGIN * HIGH_GAIN * bits / rtt.as_secs_f64().max(1e-6));
    }

    /// Saves the window for [`Self::restore_window`], or keeps the saved one if the current one is reduced already.
    fn save_window(&mut self) {
        let cut = self.phase != Phase::Open || self.state == State::ProbeRtt;
        self.prior_cwnd = if cut { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    fn restore_window(&mut self, path: &Path) {
        let to = self.cwnd.max(self.prior_cwnd);
        self.cwnd = growth::capped(&self.rules, path, to, self.cwnd);
    }

    fn enter_probe_bw(&mut self, cx: &mut Cx<'_>) {
        self.state = State::ProbeBw;
        // Any phase but the draining one: nothing has been filled yet.
        self.cycle_index = (CYCLE.len() - cx.rng.below(CYCLE.len() as u64 - 1) as usize) % CYCLE.len();
        self.cycle_stamp = cx.now;
    }

    fn update_bandwidth(&mut self, cx: &mut Cx<'_>, ack: &Ack, new_round: bool) {
        let loss = ack.lost > 0.0;
        let Some(sample) = ack.rate else { return };
        let limited = sample.app_limited || self.held_back.contains(sample.prior_delivered);
        if self.config.policer && self.policer.update(cx.now, cx.path, self.state, new_round, loss, limited) {
            self.enter_probe_bw(cx);
        }
        let Some(rate) = sample.rate.map(Rate::bits_per_sec) else { return };
        // An app-limited sample is a lower bound: useful only if it raises the estimate.
        if !limited || rate >= self.bw.max() {
            self.bw.update(self.round_count, rate);
        }
        if new_round && !limited && !self.filled_pipe {
            let bw = self.bw.max() as f64;
            if bw >= self.full_bw * FULL_BW_GROWTH {
                (self.full_bw, self.full_bw_count) = (bw, 0);
            } else {
                self.full_bw_count += 1;
                self.filled_pipe = self.full_bw_count >= FULL_BW_ROUNDS;
            }
        }
    }

    fn update_cycle(&mut self, cx: &Cx<'_>, ack: &Ack) {
        let full_length = self.min_rtt.is_some_and(|rtt| cx.now - self.cycle_stamp > rtt);
        // In flight before this acknowledgement.
        let in_flight = cx.path.pipe() + self.newly + ack.lost;
        let bw = self.bw.max() as f64;
        let gain = self.pacing_gain();
        let next = if gain > 1.0 {
            full_length && (ack.lost > 0.0 || in_flight >= self.inflight(cx.path, bw, gain))
        } else if gain < 1.0 {
            full_length || in_flight <= self.inflight(cx.path, bw, 1.0)
        } else {
            full_length
        };
        if next {
            self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
            self.cycle_stamp = cx.now;
        }
    }

    fn update_min_rtt(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let window = Duration::from_secs_f64(self.config.min_rtt_window);
        let expired = self.min_rtt.is_some() && cx.now > self.min_rtt_stamp + window;
        if let Some(rtt) = ack.rtt {
            let renews = self.min_rtt.is_none_or(|m| rtt < m || (rtt == m && self.config.equal_rtt_renews));
            if renews || expired {
                self.min_rtt = Some(rtt.max(Duration::from_nanos(1)));
                self.min_rtt_stamp = cx.now;
            }
        }
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_stamp = None;
            self.held_back.begin(cx.path);
        }
        if self.state == State::ProbeRtt {
            self.held_back.go_on(cx.path);
            match self.probe_rtt_done_stamp {
                None if cx.path.pipe() <= MIN_WINDOW => {
                    let long_enough = cx.now + Duration::from_secs_f64(self.config.probe_rtt_duration);
                    self.probe_rtt_done_stamp = Some((long_enough, TimedRound::begin(cx.path)));
                }
                Some((at, round)) if cx.now > at && round.over(cx.path, ack) => {
                    self.min_rtt_stamp = cx.now;
                    self.restore_window(cx.path);
                    if self.filled_pipe {
                        self.enter_probe_bw(cx);
                    } else {
                        self.state = State::Startup;
                    }
                }
                _ => {}
            }
        }
        if self.newly > 0.0 {
            self.idle_restart = false;
        }
    }

    fn update_pacing(&mut self, path: &Path) {
        if self.pacing_rate.is_none() {
            self.initial_pacing(path, path.srtt.unwrap_or(NOMINAL_RTT));
        }
        let rate = PACING_MARGIN * self.pacing_gain() * self.bandwidth();
        // Before the pipe is full, the estimate lags behind and may only raise the rate.
        if rate > 0.0 && (self.filled_pipe || self.pacing_rate.is_none_or(|p| rate > p)) {
            self.set_pacing(rate);
        }
    }

    fn update_window(&mut self, path: &Path, ack: &Ack) {
        let before = self.cwnd;
        let mut cwnd = self.cwnd;
        if self.newly > 0.0 {
            cwnd = (cwnd - ack.lost).max(1.0);
            if self.packet_conservation.is_some() {
                cwnd = cwnd.max(path.pipe() + self.newly);
            } else {
                let mut target = self.inflight(path, self.bandwidth(), self.cwnd_gain());
                if self.config.extra_acked && self.filled_pipe {
                    let most = self.bandwidth() / 8.0 * 0.1;
                    target += self.aggregation.extra().min(most) / f64::from(path.smss);
                }
                let initial = self.initial_window(path) * f64::from(path.smss);
                if self.filled_pipe {
                    cwnd = (cwnd + self.newly).min(target);
                } else if cwnd < target || (path.delivered as f64) < initial {
                    cwnd += self.newly;
                }
                cwnd = cwnd.max(MIN_WINDOW);
            }
        }
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(MIN_WINDOW);
        }
        self.cwnd = growth::capped(&self.rules, path, cwnd, before);
    }
}

impl CongestionControl for Bbr {
    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: f64::INFINITY }
    }

    fn pacing(&self) -> Option<Rate> {
        self.pacing_rate.map(|bits| Rate::from_bits_per_sec(bits as u64))
    }

    fn policy(&self) -> Policy {
        Policy { recovery: RecoveryMode::Sack, rate_samples: true, ..Policy::default() }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        match *start {
            Start::Established { rtt, syn_lost, .. } => {
                self.cwnd = if syn_lost { 1.0 } else { self.initial_window(cx.path) };
                self.prior_cwnd = self.cwnd;
                self.min_rtt = rtt;
                self.min_rtt_stamp = cx.now;
                self.round_count = cx.path.round;
                self.delivered = cx.path.delivered;
                self.policer.reset(cx.now, cx.path);
                if let Some(rtt) = rtt {
                    self.initial_pacing(cx.path, rtt);
                } else {
                    // The first sample replaces it: see `on_ack`.
                    self.pacing_rate = None;
                }
            }
            Start::Idle => {
                // An idle path has no queue: continue at the estimated rate, and measure the RTT at no cost.
                self.idle_restart = true;
                self.aggregation.restart(cx.now);
                if self.state == State::ProbeBw {
                    self.set_pacing(PACING_MARGIN * self.bandwidth());
                }
            }
        }
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        self.newly = (cx.path.delivered - self.delivered) as f64 / f64::from(cx.path.smss);
        self.delivered = cx.path.delivered;
        if self.phase == Phase::Loss && cx.path.phase == Phase::Open {
            self.restore_window(cx.path);
        }
        self.phase = cx.path.phase;
        let new_round = cx.path.round != self.round_count;
        self.round_count = cx.path.round;
        if self.packet_conservation.is_some_and(|round| round.over(cx.path, ack)) {
            self.packet_conservation = None;
        }

        self.update_bandwidth(cx, ack, new_round);
        if self.config.extra_acked {
            let smss = f64::from(cx.path.smss);
            let (rate, newly, window) = (self.bandwidth(), self.newly * smss, self.cwnd * smss);
            self.aggregation.update(cx.now, self.round_count, rate, newly, window);
        }
        if self.state == State::ProbeBw {
            self.update_cycle(cx, ack);
        }
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
        }
        if self.state == State::Drain && cx.path.pipe() <= self.inflight(cx.path, self.bw.max() as f64, 1.0) {
            self.enter_probe_bw(cx);
        }
        self.update_min_rtt(cx, ack);
        self.update_pacing(cx.path);
        self.update_window(cx.path, ack);
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if signal == Signal::Ecn {
            return; // Version 1 does not react to ECN.
        }
        self.save_window();
        self.phase = Phase::Recovery;
        self.packet_conservation = Some(TimedRound::begin(cx.path));
        let mut to = (cx.path.pipe() + self.newly).max(1.0);
        if self.state == State::ProbeRtt {
            // The measurement bounds the window during a recovery too (`BBRModulateCwndForProbeRTT` follows
            // `BBRModulateCwndForRecovery`).
            to = to.min(MIN_WINDOW);
        }
        self.cwnd = growth::capped(&self.rules, cx.path, to, self.cwnd);
    }

    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.packet_conservation = None;
        self.phase = Phase::Open;
        if self.state != State::ProbeRtt {
            self.restore_window(cx.path);
        }
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, _backoff: u32) {
        self.save_window();
        self.phase = Phase::Loss;
        self.packet_conservation = None;
        self.cwnd = 1.0;
        self.full_bw = 0.0;
        if self.config.policer {
            // As in Linux, a timeout is the end of a round with a loss.
            let restart = self.policer.update(cx.now, cx.path, self.state, true, true, false);
            if restart {
                self.enter_probe_bw(cx);
            }
        }
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        // Reordering may have looked like a full pipe.
        (self.full_bw, self.full_bw_count) = (0.0, 0);
        self.policer.reset(cx.now, cx.path);
        self.packet_conservation = None;
        // `ProbeRtt` needs the small window, and restores the other one at its end.
        if self.state != State::ProbeRtt {
            self.restore_window(cx.path);
        }
    }

    fn bandwidth_estimate(&self, _smss: u32) -> Option<Rate> {
        Some(self.bandwidth() as u64).filter(|bits| *bits > 0).map(Rate::from_bits_per_sec)
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("bandwidth", self.bandwidth());
        out("min_rtt", self.min_rtt.map_or(f64::NAN, Duration::as_secs_f64));
        out("pacing_gain", self.pacing_gain());
        out("mode", f64::from(self.state as u8));
    }
}

#[cfg(test)]
mod tests;
