//! TCP Westwood with adaptive bandwidth share estimation (ABSE).
//!
//! *Idea*: the rate of acknowledgements over the gap between two of them shows the capacity of the bottleneck; over a
//! whole RTT it shows the flow's own share. ABSE uses the short interval while the path delivers the whole window, and
//! extends it towards an RTT as a queue builds up. Its filter becomes slower when samples fluctuate. After a loss, the
//! threshold is the estimate times the minimum RTT. *Source*: Wang, Valla, Sanadidi, Gerla, "Adaptive bandwidth share
//! estimation in TCP Westwood", GLOBECOM 2002. The paper was not available. Interval, filter memory and the two gains
//! of 0.6 follow a later paper of the same group; the filter's coefficient, `n`, and the ten values over which the
//! largest jump is taken are a *reconstruction*.
//!
//! Readings: the RTT is the smoothed RTT; acknowledgements at the same instant are one sample; the coefficient is never
//! negative (after a gap of at least twice the filter's memory, the estimate is the last sample).

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Signal, Start};
use crate::parts::credit::Credit;
use crate::parts::estimate::payload_rate;
use crate::parts::frame::{self, Frame};
use crate::rules::SharedRules;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use skyhaul_base::{Duration, Instant, Rate, math};

/// Number of values over which the maximum jump is taken.
const JUMPS: usize = 10;

/// When the path delivers the whole window, so that single gaps are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Uncongested {
    /// If throughput times the smoothed RTT exceeds the window. A window that is partly queued is also delivered within
    /// one RTT, so small fluctuations change the result.
    Rtt,
    /// If throughput times the minimum RTT exceeds the window, where the extended interval would be zero anyway.
    RttMin,
}

skyhaul_base::options! {
    /// Options of TCP Westwood ABSE.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Weight of the previous value in the means of throughput and of jumps (0.6).
        gain: f64 = 0.6,
        /// When gaps are sampled: `rtt` (default, the later paper) or `rtt-min` (no step in the interval).
        uncongested: Uncongested = Uncongested::Rtt,
        /// Number of RTTs that the largest jump adds to the filter's memory (10, unconfirmed).
        n: f64 = 10.0,
        /// Loss recovery (default `newreno`).
        recovery: RecoveryMode = RecoveryMode::NewReno,
    }
}

/// Why options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each displays as a sentence that names the option and says what to write instead"
)]
pub enum Invalid {
    #[error("gain: the means are stable and smooth for a gain between 0 and 1, both excluded")]
    Gain,
    #[error("n is a number of RTTs, from 0 to 1e6")]
    N,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<Abse>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.gain > 0.0 && self.gain < 1.0) {
            return Err(Invalid::Gain);
        }
        if !(0.0..=1e6).contains(&self.n) {
            return Err(Invalid::N);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<Abse> {
        Box::new(Abse::new(self, rules))
    }
}

/// TCP Westwood ABSE.
#[derive(Clone, Debug)]
pub struct Abse {
    frame: Frame,
    config: Config,
    credit: Credit,
    /// Data that arrived within the last RTT, and its sum.
    arrivals: VecDeque<(Instant, f64)>,
    sum: f64,
    last: Option<Instant>,
    /// Segments acknowledged at the current instant.
    waiting: f64,
    /// Filtered throughput, last sample, jumps, estimate: segments per second.
    throughput: f64,
    sample: f64,
    jump: f64,
    jumps: [f64; JUMPS],
    next_jump: usize,
    estimate: f64,
}

impl Abse {
    /// A TCP Westwood ABSE control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            config: config.clone(),
            credit: Credit::default(),
            arrivals: VecDeque::new(),
            sum: 0.0,
            last: None,
            waiting: 0.0,
            throughput: 0.0,
            sample: 0.0,
            jump: 0.0,
            jumps: [0.0; JUMPS],
            next_jump: 0,
            estimate: 0.0,
        }
    }

    fn arrived(&mut self, cx: &Cx<'_>, segments: f64) {
        let Some(last) = self.last else {
            self.last = Some(cx.now);
            return;
        };
        self.waiting += segments;
        let (Some(srtt), true) = (cx.path.srtt.filter(|r| !r.is_zero()), cx.now > last) else { return };
        self.last = Some(cx.now);
        let gap = (cx.now - last).as_secs_f64();
        let rtt = srtt.as_secs_f64();
        let segments = core::mem::take(&mut self.waiting);
        self.arrivals.push_back((cx.now, segments));
        self.sum += segments;
        while let Some(&(at, n)) = self.arrivals.front() {
            if cx.now - at < srtt {
                break;
            }
            self.arrivals.pop_front();
            self.sum = if self.arrivals.is_empty() { 0.0 } else { self.sum - n };
        }

        // The sampling interval.
        let g = self.config.gain;
        self.throughput = g * self.throughput + (1.0 - g) * self.sum / rtt;
        let cwnd = self.frame.cwnd;
        let least = cx.path.min_rtt.map_or(rtt, Duration::as_secs_f64);
        let reference = match self.config.uncongested {
            Uncongested::Rtt => rtt,
            Uncongested::RttMin => least,
        };
        let interval = if self.throughput * reference > cwnd {
            gap
        } else {
            (rtt * (cwnd - self.throughput * least) / cwnd).max(gap)
        };
        let sample = self.since(cx.now, interval, gap, segments) / interval;

        // The filter.
        self.jump = g * self.jump + (1.0 - g) * math::abs(sample - self.sample);
        self.sample = sample;
        self.jumps[self.next_jump] = self.jump;
        self.next_jump = (self.next_jump + 1) % JUMPS;
        let greatest = self.jumps.iter().copied().fold(0.0, f64::max);
        let relative = if greatest > 0.0 { self.jump / greatest } else { 0.0 };
        let memory = rtt + self.config.n * rtt * relative;
        let keep = ((2.0 * memory - gap) / (2.0 * memory + gap)).max(0.0);
        self.estimate = keep * self.estimate + (1.0 - keep) * sample;
    }

    /// Data that arrived within the last `interval` seconds; over the gap alone that is the newest arrival.
    fn since(&self, now: Instant, interval: f64, gap: f64, newest: f64) -> f64 {
        if interval <= gap {
            return newest;
        }
        let recent = |at: Instant| (now - at).as_secs_f64() < interval;
        self.arrivals.iter().rev().take_while(|(at, _)| recent(*at)).map(|(_, n)| n).sum()
    }

    fn fits(&self, cx: &Cx<'_>) -> f64 {
        (self.estimate * cx.path.min_rtt.map_or(0.0, Duration::as_secs_f64)).max(2.0)
    }
}

impl CongestionControl for Abse {
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn policy(&self) -> Policy {
        Policy { rtt_samples: false, ..self.frame.policy() }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.frame.start(cx, start);
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let segments = self.credit.of(ack, 1.0);
        self.arrived(cx, segments);
        if self.frame.acked(cx, ack) {
            self.frame.grow_like_reno(cx, ack);
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        let ssthresh = self.fits(cx);
        let cwnd = self.frame.deflated().min(ssthresh);
        self.frame.reduce(signal, ssthresh, cwnd);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        let ssthresh = self.fits(cx);
        self.frame.timeout(backoff, ssthresh);
        self.credit.clear();
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
    }
    fn bandwidth_estimate(&self, smss: u32) -> Option<Rate> {
        payload_rate(self.estimate, smss)
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("bwe", self.estimate);
        out("throughput", self.throughput);
        out("sample", self.sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::testing::Stage;
    use crate::{AckKind, InitialSsthresh, InitialWindow};

    /// Congestion avoidance at 16 segments, with an RTT of 0.5 s. The RTT without a queue is `least` ms.
    fn stage(config: Config, least: u64) -> Stage<Abse> {
        assert_eq!(config.validate(), Ok(()));
        let rules = Rules {
            initial_window: InitialWindow::Segments(16.0),
            initial_ssthresh: InitialSsthresh::Segments(2.0),
            ..Rules::NS2_2001
        };
        let mut s = Stage::new(Abse::new(&config, &rules), 64.0);
        s.path.srtt = Some(Duration::from_millis(500));
        s.path.min_rtt = Some(Duration::from_millis(least));
        s.start(None);
        s
    }
    /// An acknowledgement that does not grow the window.
    fn ack_after(s: &mut Stage<Abse>, ms: u64, segments: f64) {
        s.now += Duration::from_millis(ms);
        let a = Ack { cwnd_limited: false, ..crate::testing::ack(AckKind::New, segments) };
        s.call(|cc, cx| cc.on_ack(cx, &a));
    }
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn the_first_samples_by_hand() {
        let mut s = stage(Config::default(), 500);
        ack_after(&mut s, 10, 1.0);
        assert_eq!(s.variable("bwe"), 0.0, "the clock starts");
        // Two segments within 0.1 s: throughput 0.4 * 4 = 1.6 per second; interval 0.5 (16 - 0.8) / 16 = 0.475 s.
        ack_after(&mut s, 100, 2.0);
        close(s.variable("throughput"), 1.6);
        close(s.variable("sample"), 2.0 / 0.475);
        // The only jump is the greatest: memory 0.5 + 10 * 0.5, coefficient (11 - 0.1) / (11 + 0.1).
        close(s.variable("bwe"), (1.0 - 10.9 / 11.1) * 2.0 / 0.475);
        // Another two: throughput 0.96 + 0.4 * 8 = 4.16, interval 0.435 s, both arrivals within.
        ack_after(&mut s, 100, 2.0);
        close(s.variable("throughput"), 4.16);
        close(s.variable("sample"), 4.0 / 0.435);
    }

    #[test]
    fn a_flow_that_gets_what_it_asks_for_samples_gaps() {
        // 20 per 0.5 s while the window is 16: more than it asked for (something was queued).
        let mut s = stage(Config::default(), 500);
        for _ in 0..400 {
            ack_after(&mut s, 25, 1.0);
        }
        close(s.variable("sample"), 40.0);
        assert!((s.variable("bwe") - 40.0).abs() < 0.5);
        s.call(|cc, cx| cc.on_congestion(cx, Signal::Ecn));
        assert_eq!(s.cwnd(), 16.0, "20 would fit: never raised");
        s.timeout(1);
        assert!((s.ssthresh() - 20.0).abs() < 0.5);
    }

    #[test]
    fn behind_a_queue_the_interval_is_long() {
        // Half of the RTT is queueing delay. Acknowledgements arrive in pairs 1 ms apart: the gap within a pair would be a sample of
        // 1000 per second. With a pause of 70 ms, 14 of the 16 segments of the window arrive per RTT; with 61 ms all 16 do, which
        // the default takes for a path without a queue.
        for (uncongested, pause, rate) in [(Uncongested::Rtt, 70, 28.0), (Uncongested::RttMin, 61, 32.0)] {
            let mut s = stage(Config { uncongested, ..Config::default() }, 250);
            for _ in 0..400 {
                ack_after(&mut s, pause, 1.0);
                ack_after(&mut s, 1, 1.0);
            }
            let sample = s.variable("sample");
            assert!((rate * 0.7..rate * 1.4).contains(&sample), "{sample}");
            s.congestion(Signal::Loss);
            assert!((s.ssthresh() - rate * 0.25).abs() < 1.0, "{}", s.ssthresh());
        }
        let mut s = stage(Config::default(), 250);
        for _ in 0..400 {
            ack_after(&mut s, 61, 1.0);
            ack_after(&mut s, 1, 1.0);
        }
        close(s.variable("sample"), 1000.0);
    }

    #[test]
    fn parameters_outside_of_their_domain() {
        for gain in [0.0, 1.0, f64::NAN] {
            assert_eq!(Config { gain, ..Config::default() }.validate(), Err(Invalid::Gain));
        }
        // A memory of 1e308 RTTs would overflow, and the filter would have none.
        for n in [-1.0, 1e308, f64::NAN] {
            assert_eq!(Config { n, ..Config::default() }.validate(), Err(Invalid::N));
        }
    }
}
