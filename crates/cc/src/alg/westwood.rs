//! TCP Westwood.
//!
//! *Idea*: the rate at which acknowledgements return shows the capacity of the path. The sender filters this rate
//! continuously. After a loss, instead of halving the window, it sets the threshold to the rate times the minimum RTT,
//! which is the amount of data that fits into the empty path: a link error then costs almost nothing. Growth is Reno's.
//! *Source*: Casetti, Gerla, Lee, Mascolo, Sanadidi, "TCP with faster recovery" (MILCOM 2000); Mascolo et al., "TCP
//! Westwood: bandwidth estimation for enhanced transport over wireless links" (MobiCom 2001); the authors' module for
//! ns-2 (`tcp-westwood.cc` 1.3 of June 2002). *Verified* against that module: the number of segments that an
//! acknowledgement counts for, both filters, the reactions to duplicates and to a timeout, the divisor. The papers
//! themselves were not available. The default filter has the constant pole 19/21. `tustin` is the filter of the paper:
//! its pole depends on the spacing of acknowledgements, and each half of `tau` without an acknowledgement counts as a
//! sample of zero.
//!
//! Readings: the clock starts with the first acknowledgement; acknowledgements at the same instant are one sample. The
//! first sample after a silence covers the whole silence, during which the filter has decayed; the module divides only
//! by the rest of the last half of `tau`, at least 10 ms, so that one acknowledgement after a silence looks like a
//! burst.

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Signal, Start};
use crate::parts::credit::Credit;
use crate::parts::estimate::payload_rate;
use crate::parts::frame::{self, Frame};
use crate::rules::SharedRules;
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant, Rate};

/// Minimum RTT assumed before the first sample (ns-2's module).
const RTT_MIN_INIT: Duration = Duration::from_secs(5);

/// The bandwidth filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Filter {
    /// Constant pole, sample by sample (filter 1 of ns-2's module).
    Constant,
    /// Bilinear discretisation of a first-order low-pass with time constant `tau` (filter 3, the paper's).
    Tustin,
}

skyhaul_base::options! {
    /// Options of TCP Westwood.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// The filter (default `constant`).
        filter: Filter = Filter::Constant,
        /// Pole of the `constant` filter (19/21).
        pole: f64 = 19.0 / 21.0,
        /// Time constant of the `tustin` filter in seconds (1).
        tau: f64 = 1.0,
        /// Maximum number of segments that one acknowledgement counts for (2, as in the ns-2 module), so that stretched
        /// acknowledgements underestimate the rate and never overestimate it.
        most_per_ack: f64 = 2.0,
        /// Divide the threshold at a timeout, as the ns-2 module does. The divisor starts at zero; in slow start it grows
        /// by one with each timeout and by a quarter with each fast retransmit, up to four; a loss in congestion avoidance
        /// resets it to one. Off by default, as in the papers.
        rto_divisor: bool = false,
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
    #[error("pole: the filter is stable and smooths for a pole between 0 and 1, both excluded")]
    Pole,
    #[error("tau is a time constant in seconds, from 0.001 to 1e6")]
    Tau,
    #[error("most-per-ack must be at least 1 segment")]
    MostPerAck,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<Westwood>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.pole > 0.0 && self.pole < 1.0) {
            return Err(Invalid::Pole);
        }
        if !(1e-3..=1e6).contains(&self.tau) {
            return Err(Invalid::Tau);
        }
        if !(self.most_per_ack.is_finite() && self.most_per_ack >= 1.0) {
            return Err(Invalid::MostPerAck);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<Westwood> {
        Box::new(Westwood::new(self, rules))
    }
}

/// The filter's state; rates in segments per second.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    bwe: f64,
    /// The last sample.
    last: f64,
    /// Arrival of the last acknowledgement, and the time that the filter has reached.
    acked_at: Option<(Instant, Instant)>,
    /// Segments acknowledged at the current instant.
    waiting: f64,
}

impl Estimate {
    fn sample(&mut self, now: Instant, segments: f64, config: &Config) {
        let Some((acked, mut at)) = self.acked_at else {
            self.acked_at = Some((now, now));
            return;
        };
        self.waiting += segments;
        if now == acked {
            return;
        }
        let rate = core::mem::take(&mut self.waiting) / (now - acked).as_secs_f64();
        match config.filter {
            Filter::Constant => self.feed(rate, config.pole),
            Filter::Tustin => {
                let half = Duration::from_secs_f64(config.tau / 2.0);
                // After some hundred samples of zero nothing is left.
                let mut silent = 0;
                while now - at > half {
                    // The pole for an interval of tau / 2: x = 4.
                    self.feed(0.0, 0.6);
                    at += half;
                    silent += 1;
                    if silent == 300 {
                        at = now - half;
                    }
                }
                let x = 2.0 * config.tau / (now - at).as_secs_f64();
                self.feed(rate, (x - 1.0) / (x + 1.0));
            }
        }
        self.acked_at = Some((now, now));
    }

    fn feed(&mut self, rate: f64, pole: f64) {
        self.bwe = pole * self.bwe + (1.0 - pole) / 2.0 * (rate + self.last);
        self.last = rate;
    }
}

/// TCP Westwood.
#[derive(Clone, Debug)]
pub struct Westwood {
    frame: Frame,
    config: Config,
    credit: Credit,
    estimate: Estimate,
    divisor: f64,
}

impl Westwood {
    /// A TCP Westwood control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            config: config.clone(),
            credit: Credit::default(),
            estimate: Estimate::default(),
            divisor: 0.0,
        }
    }

    /// A loss: the divisor of the next timeout grows by `step` in slow start and is reset otherwise.
    fn count(&mut self, step: f64) {
        if self.config.rto_divisor {
            self.divisor = if self.frame.slow_start() { (self.divisor + step).min(4.0) } else { 1.0 };
        }
    }

    /// The window that fits into the empty path at the estimated rate.
    fn fits(&self, cx: &Cx<'_>, divisor: f64) -> f64 {
        let rtt = cx.path.min_rtt.unwrap_or(RTT_MIN_INIT).as_secs_f64();
        (self.estimate.bwe * rtt / divisor).max(2.0)
    }
}

impl CongestionControl for Westwood {
    #[inline]
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
        let segments = self.credit.of(ack, 1.0).min(self.config.most_per_ack);
        self.estimate.sample(cx.now, segments, &self.config);
        if self.frame.acked(cx, ack) {
            self.frame.grow_like_reno(cx, ack);
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if signal != Signal::Ecn {
            self.count(0.25);
        }
        let ssthresh = self.fits(cx, 1.0);
        let cwnd = self.frame.deflated().min(ssthresh);
        self.frame.reduce(signal, ssthresh, cwnd);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        self.count(1.0);
        let ssthresh = self.fits(cx, self.divisor.max(1.0));
        self.frame.timeout(backoff, ssthresh);
        self.credit.clear();
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
    }
    fn bandwidth_estimate(&self, smss: u32) -> Option<Rate> {
        payload_rate(self.estimate.bwe, smss)
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("bwe", self.estimate.bwe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::testing::Stage;
    use crate::{AckKind, InitialSsthresh};

    fn stage(config: Config) -> Stage<Westwood> {
        assert_eq!(config.validate(), Ok(()));
        let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(2.0), ..Rules::NS2_2001 };
        let mut s = Stage::new(Westwood::new(&config, &rules), 64.0);
        s.path.min_rtt = Some(Duration::from_millis(500));
        s.start(None);
        s
    }
    fn ack_after(s: &mut Stage<Westwood>, ms: u64, segments: f64) -> f64 {
        s.now += Duration::from_millis(ms);
        s.ack(AckKind::New, segments);
        s.variable("bwe")
    }
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn the_constant_filter_by_hand() {
        let mut s = stage(Config::default());
        // One segment each 10 ms: 100 per second.
        assert_eq!(ack_after(&mut s, 10, 1.0), 0.0, "the clock starts");
        close(ack_after(&mut s, 10, 1.0), 100.0 / 21.0);
        close(ack_after(&mut s, 10, 1.0), 19.0 / 21.0 * 100.0 / 21.0 + 200.0 / 21.0);
        for _ in 0..300 {
            ack_after(&mut s, 10, 1.0);
        }
        close(s.variable("bwe"), 100.0);
        // 100 segments per second over 0.5 s.
        s.call(|cc, cx| cc.on_congestion(cx, Signal::Ecn));
        close(s.ssthresh(), 50.0);
        assert!(s.cwnd() < 50.0, "the window is never raised");
    }

    #[test]
    fn the_papers_filter_by_hand() {
        let mut s = stage(Config { filter: Filter::Tustin, ..Config::default() });
        ack_after(&mut s, 10, 1.0);
        // Delta 0.5 s = tau/2 exactly: x = 4, pole 3/5, b = 2.
        close(ack_after(&mut s, 500, 1.0), 2.0 / 5.0);
        // 1.25 s: two samples of zero, then b = 0.8 with x = 8, pole 7/9.
        let silent = 0.6 * (0.6 * 0.4 + 0.2 * 2.0);
        close(ack_after(&mut s, 1250, 1.0), 7.0 / 9.0 * silent + 0.8 / 9.0);
        assert!(ack_after(&mut s, 1_000_000, 1.0) < 1e-3);
    }

    #[test]
    fn acknowledgements_of_one_instant_are_one_sample() {
        let mut s = stage(Config::default());
        ack_after(&mut s, 10, 1.0);
        ack_after(&mut s, 0, 1.0);
        ack_after(&mut s, 0, 2.0);
        close(ack_after(&mut s, 40, 1.0), 4.0 / 0.04 / 21.0);
        // One acknowledgement counts for two segments at most.
        let mut s = stage(Config::default());
        ack_after(&mut s, 10, 1.0);
        close(ack_after(&mut s, 10, 7.0), 200.0 / 21.0);
    }

    #[test]
    fn a_loss_leaves_what_fits_into_the_empty_path() {
        let mut s = stage(Config::default());
        for _ in 0..900 {
            ack_after(&mut s, 50, 1.0);
        }
        let before = s.cwnd();
        assert!(before > 30.0);
        s.congestion(Signal::Loss);
        // 20 per second over 0.5 s; NewReno inflates by three.
        close(s.ssthresh(), 10.0);
        close(s.cwnd(), 13.0);
        s.recovered();
        close(s.cwnd(), 10.0);
        s.timeout(1);
        assert_eq!(s.cwnd(), 1.0);
        close(s.ssthresh(), 10.0);
        s.timeout(2);
        close(s.ssthresh(), 10.0);
    }

    #[test]
    fn without_an_estimate_two_segments_are_left() {
        let mut s = stage(Config::default());
        s.path.min_rtt = None;
        s.timeout(1);
        assert_eq!(s.ssthresh(), 2.0);
    }

    #[test]
    fn option_rto_divisor() {
        let mut s = stage(Config { rto_divisor: true, ..Config::default() });
        for _ in 0..900 {
            ack_after(&mut s, 25, 1.0);
        }
        s.timeout(1);
        close(s.ssthresh(), 20.0);
        s.timeout(1);
        close(s.ssthresh(), 10.0);
        for _ in 0..5 {
            s.timeout(1);
        }
        close(s.ssthresh(), 5.0);
        // In slow start from the beginning: a quarter for the duplicates, then one and a quarter.
        let rules = Rules { initial_ssthresh: InitialSsthresh::Infinite, ..Rules::NS2_2001 };
        let config = Config { rto_divisor: true, ..Config::default() };
        let mut s = Stage::new(Westwood::new(&config, &rules), 64.0);
        s.path.min_rtt = Some(Duration::from_millis(500));
        s.start(None);
        for _ in 0..900 {
            ack_after(&mut s, 25, 1.0);
        }
        s.cc.frame.ssthresh = 1e6;
        s.congestion(Signal::Loss);
        close(s.ssthresh(), 20.0);
        s.recovered();
        s.cc.frame.cwnd = 5.0;
        s.timeout(1);
        close(s.ssthresh(), 20.0 / 1.25);
    }

    #[test]
    fn parameters_outside_of_their_domain() {
        for pole in [0.0, 1.0, 1.2, f64::NAN] {
            assert_eq!(Config { pole, ..Config::default() }.validate(), Err(Invalid::Pole));
        }
        // With 1e308 s the pole of the filter would be infinity divided by infinity.
        for tau in [0.0, 1e308, f64::NAN] {
            assert_eq!(Config { tau, ..Config::default() }.validate(), Err(Invalid::Tau));
        }
        assert!(Config { most_per_ack: 0.5, ..Config::default() }.validate().is_err());
    }
}
