//! CUBIC, with HyStart++.
//!
//! *Idea*: the window grows with elapsed time, not with each RTT. After a reduction it follows a cubic curve that
//! climbs quickly, flattens out at the window of the last loss, and then probes beyond it at a growing pace. Where
//! Reno's window would be larger (short RTTs, small windows), CUBIC behaves like Reno. A loss leaves 70 % of the
//! window. Slow start ends when the RTT rises (HyStart++) rather than when the queue overflows. *Source*: RFC 9438; RFC
//! 9406. Constants and names are those of the RFCs, except `origin_point`, the implementations' name for the `W_max` of
//! the stage in progress.
//!
//! Readings: a congestion avoidance stage begins with its first acknowledgement. With growth by bytes, the increment
//! applies to each acknowledged segment; otherwise, to each acknowledgement. Time during which the application or the
//! peer's window limits the sender does not count (RFC 9438 §5.8).

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Signal, Start};
use crate::parts::frame::{self, Frame};
use crate::parts::hystart::HyStart;
use crate::rules::{CaGrowth, SharedRules};
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant, math};

skyhaul_base::options! {
    /// Options of CUBIC.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Aggressiveness, segments per cubic second (0.4).
        c: f64 = 0.4,
        /// Fraction of the window that remains after a loss (0.7).
        beta: f64 = 0.7,
        /// Fraction of the window that remains after an ECN mark; `beta` by default. RFC 8511 proposes 0.85, since a queue
        /// that marks is shorter than one that overflows.
        beta_ecn: Option<f64> = None,
        /// Fast convergence: a flow with a loss below its previous maximum window releases bandwidth to new flows (RFC 9438
        /// §4.7).
        fast_convergence: bool = true,
        /// HyStart++: leave the first slow start when the RTT rises (RFC 9406).
        hystart: bool = true,
        /// Loss recovery (default `sack`).
        recovery: RecoveryMode = RecoveryMode::Sack,
    }
}

/// Why options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each displays as a sentence that names the option and says what to write instead"
)]
pub enum Invalid {
    #[error("c is the aggressiveness of the curve, a number above 0")]
    C,
    #[error("beta is the fraction of the window that a loss leaves: between 0 and 1, both excluded")]
    Beta,
    #[error("beta-ecn is the fraction of the window that a mark leaves: from beta to 1, 1 excluded")]
    BetaEcn,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<Cubic>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.c.is_finite() && self.c > 0.0) {
            return Err(Invalid::C);
        }
        if !(self.beta > 0.0 && self.beta < 1.0) {
            return Err(Invalid::Beta);
        }
        if self.beta_ecn.is_some_and(|b| !(b >= self.beta && b < 1.0)) {
            return Err(Invalid::BetaEcn);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<Cubic> {
        Box::new(Cubic::new(self, rules))
    }
}

/// The variables of RFC 9438 §4.1.2 that a congestion event changes: segments, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Curve {
    /// Window before the last reduction, lowered by fast convergence; 0 if unknown.
    w_max: f64,
    /// Window before the last reduction; 0 if unknown.
    cwnd_prior: f64,
    /// Estimate of the window that Reno would have.
    w_est: f64,
    /// The congestion avoidance stage; `None` before its first acknowledgement.
    epoch: Option<Epoch>,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    /// When it began.
    t_epoch: Instant,
    /// Time from then to the plateau.
    k: f64,
    /// The plateau: `W_max`, or the initial window of the stage if that is larger or nothing is known.
    origin_point: f64,
}

impl Epoch {
    /// `W_cubic(t)` (Fig. 1).
    #[inline]
    fn w_cubic(&self, c: f64, t: f64) -> f64 {
        let k = self.k;
        c * (t - k) * (t - k) * (t - k) + self.origin_point
    }
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    frame: Frame,
    config: Config,
    curve: Curve,
    /// Growth per RTT, segments, that makes a flow with this beta as aggressive as Reno (§4.3).
    alpha_cubic: f64,
    /// Arrival time of the last acknowledgement.
    last_ack: Instant,
    /// The curve before the last congestion event, for undo (§4.9).
    before: Curve,
    /// HyStart++, during the first slow start, if enabled.
    hystart: Option<HyStart>,
}

impl Cubic {
    /// A CUBIC control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            config: config.clone(),
            curve: Curve::default(),
            alpha_cubic: 3.0 * (1.0 - config.beta) / (1.0 + config.beta),
            last_ack: Instant::ZERO,
            before: Curve::default(),
            hystart: config.hystart.then(HyStart::default),
        }
    }

    /// Excludes idle time from the stage (§5.8).
    fn shift(&mut self, now: Instant) {
        if let Some(Epoch { t_epoch, .. }) = &mut self.curve.epoch {
            *t_epoch += now - self.last_ack.max(*t_epoch);
        }
    }

    fn slow_start(&mut self, cx: &Cx<'_>, ack: &Ack) {
        let Some(hystart) = &mut self.hystart else { return self.frame.grow_like_reno(cx, ack) };
        let over = hystart.on_ack(cx.path.round, ack.rtt);
        let n = match self.frame.rules.growth {
            CaGrowth::PerAck => 1.0,
            CaGrowth::Abc => ack.acked,
        };
        // An endpoint whose acknowledgements are each for many merged segments has no limit per acknowledgement.
        let step = hystart.growth(n, self.frame.rules.abc_limit.is_infinite());
        self.frame.grow_to(cx, self.frame.cwnd + step);
        if over {
            self.frame.ssthresh = self.frame.cwnd;
            self.hystart = None;
        }
    }

    /// The congestion avoidance stage begins at the current window (§4.2).
    fn begin_epoch(&mut self, now: Instant) -> Epoch {
        let cwnd_epoch = self.frame.cwnd;
        self.curve.w_est = cwnd_epoch;
        let w_max = self.curve.w_max;
        let (k, origin_point) = if w_max > cwnd_epoch {
            (math::cbrt((w_max - cwnd_epoch) / self.config.c), w_max)
        } else {
            // The first stage after a slow start that no loss ended, or after a timeout (§4.8, §4.10).
            (0.0, cwnd_epoch)
        };
        let epoch = Epoch { t_epoch: now, k, origin_point };
        self.curve.epoch = Some(epoch);
        epoch
    }

    /// RFC 9438 §4.2 to §4.5.
    fn avoid(&mut self, cx: &Cx<'_>, ack: &Ack) {
        let cwnd = self.frame.cwnd;
        let c = self.config.c;
        let epoch = match self.curve.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(cx.now),
        };
        if self.curve.cwnd_prior == 0.0 {
            self.curve.cwnd_prior = cwnd;
        }
        let t = (cx.now - epoch.t_epoch).as_secs_f64();
        let segments_acked = self.frame.credit(ack);
        // §4.3: alpha_cubic makes the estimate as aggressive as Reno until `cwnd_prior` is regained; 1 is Reno's growth.
        let alpha = if self.curve.w_est < self.curve.cwnd_prior { self.alpha_cubic } else { 1.0 };
        self.curve.w_est += alpha * segments_acked / cwnd;
        let to = if epoch.w_cubic(c, t) < self.curve.w_est {
            self.curve.w_est
        } else {
            let rtt = cx.path.srtt.map_or(0.0, Duration::as_secs_f64);
            let target = epoch.w_cubic(c, t + rtt).max(cwnd).min(1.5 * cwnd);
            cwnd + (target - cwnd) / cwnd * segments_acked
        };
        self.frame.grow_to(cx, to);
    }

    /// §4.6, §4.7: threshold and curve after a congestion event that leaves `beta` of the window.
    fn reduced(&mut self, cx: &Cx<'_>, beta: f64) -> f64 {
        self.before = self.curve;
        let cwnd = self.frame.deflated();
        let regained = cwnd >= self.curve.w_max;
        let keep = if self.config.fast_convergence && !regained { (1.0 + beta) / 2.0 } else { 1.0 };
        self.curve = Curve { w_max: cwnd * keep, cwnd_prior: cwnd, w_est: 0.0, epoch: None };
        self.hystart = None;
        self.frame.kept(cx, beta)
    }
}

impl CongestionControl for Cubic {
    #[inline]
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn policy(&self) -> Policy {
        // Only HyStart++ uses RTT samples, and it ends with the first slow start.
        Policy { rtt_samples: self.hystart.is_some(), ..self.frame.policy() }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.frame.start(cx, start);
        if *start == Start::Idle {
            self.shift(cx.now);
        }
        self.last_ack = cx.now;
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        if self.frame.acked(cx, ack) {
            if self.frame.slow_start() {
                self.slow_start(cx, ack);
            } else {
                self.avoid(cx, ack);
            }
        } else if !ack.cwnd_limited {
            self.shift(cx.now);
        }
        self.last_ack = cx.now;
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        let Config { beta, beta_ecn, .. } = self.config;
        let beta = beta_ecn.filter(|_| signal == Signal::Ecn).unwrap_or(beta);
        let to = self.reduced(cx, beta);
        self.frame.reduce(signal, to, to);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
        self.curve.epoch = None;
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        let to = if backoff <= 1 { self.reduced(cx, self.config.beta) } else { self.frame.ssthresh };
        self.frame.timeout(backoff, to);
        // The stage after a timeout starts flat (§4.8).
        self.curve.w_max = 0.0;
        self.curve.epoch = None;
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
        self.curve = self.before;
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("w_max", self.curve.w_max);
        out("w_est", self.curve.w_est);
        out("css", f64::from(u8::from(self.hystart.is_some_and(|h| h.conservative()))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckKind;
    use crate::rules::{HalvingBase, InitialSsthresh, Rules};
    use crate::testing::{Stage, ack};
    use alloc::vec::Vec;

    fn rules(ssthresh: f64) -> Rules {
        Rules {
            initial_ssthresh: InitialSsthresh::Segments(ssthresh),
            halving_base: HalvingBase::Window,
            ..Rules::NS2_2004
        }
    }
    /// Congestion avoidance at 100 segments, RTT 100 ms.
    fn at_100() -> Stage<Cubic> {
        let config = Config { hystart: false, ..Config::default() };
        let mut s = Stage::new(Cubic::new(&config, &rules(100.0)), 1000.0);
        s.start(None);
        s.new_acks(98);
        s.path.srtt = Some(Duration::from_millis(100));
        assert_eq!(s.cwnd(), 100.0);
        s
    }
    /// As [`at_100`] after a loss: 70 segments, plateau at 100.
    fn reduced() -> Stage<Cubic> {
        let mut s = at_100();
        s.congestion(Signal::Loss);
        assert_eq!((s.cwnd(), s.ssthresh(), s.variable("w_max")), (70.0, 70.0, 100.0));
        s.recovered();
        s
    }
    fn after(s: &mut Stage<Cubic>, ms: u64) -> f64 {
        s.now += Duration::from_millis(ms);
        s.new_acks(1);
        s.cwnd()
    }
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn merged_acknowledgements_do_not_slow_the_start() {
        // One acknowledgement for 44 merged segments.
        for (abc_limit, grown) in [(2.0, 8.0), (f64::INFINITY, 44.0)] {
            let rules = Rules { growth: CaGrowth::Abc, abc_limit, ..rules(1000.0) };
            let mut s = Stage::new(Cubic::new(&Config::default(), &rules), 10_000.0);
            s.start(None);
            let before = s.cwnd();
            s.ack(AckKind::New, 44.0);
            assert_eq!(s.cwnd(), before + grown, "{abc_limit}");
        }
    }

    #[test]
    fn the_curve_by_hand() {
        let mut s = reduced();
        // K = cbrt(30 / 0.4) = 4.217 s. At t = 0 the curve is at 70 and aims at W(0.1 s).
        let k = math::cbrt(75.0);
        let w = |t: f64| 0.4 * (t - k) * (t - k) * (t - k) + 100.0;
        close(w(0.0), 70.0);
        // W(0) is 70; Reno's estimate is a little higher after the first acknowledgement and leads.
        let alpha = 9.0 / 17.0;
        close(after(&mut s, 0), 70.0 + alpha / 70.0);
        let before = s.cwnd();
        // One second later the curve is far ahead: W(1) = 86.7.
        close(after(&mut s, 1000), before + (w(1.1) - before) / before);
        // And never aims beyond one and a half windows: W(20) = 1671.
        let before = s.cwnd();
        close(after(&mut s, 19_000), before + 0.5);
    }

    #[test]
    fn the_plateau_holds_and_then_growth_resumes() {
        let mut s = reduced();
        // One RTT of acknowledgements every 100 ms.
        let mut window = Vec::new();
        for _ in 0..90 {
            s.now += Duration::from_millis(100);
            let n = s.cwnd() as u32;
            s.new_acks(n);
            window.push(s.cwnd());
        }
        // K is 4.2 s: around it the window is close to the old maximum, at twice that time beyond it.
        assert!((98.5..101.5).contains(&window[42]), "{}", window[42]);
        assert!(window[52] - window[32] < 2.0, "{} to {}", window[32], window[52]);
        assert!(window[85] > 125.0, "{}", window[85]);
    }

    #[test]
    fn fast_convergence_gives_room() {
        let mut s = reduced();
        s.congestion(Signal::Loss);
        // 70 of 100: the plateau is 70 * 0.85.
        close(s.variable("w_max"), 59.5);
        close(s.cwnd(), 49.0);
        let config = Config { fast_convergence: false, hystart: false, ..Config::default() };
        let mut s = Stage::new(Cubic::new(&config, &rules(100.0)), 1000.0);
        s.start(None);
        s.new_acks(98);
        s.congestion(Signal::Loss);
        s.recovered();
        s.congestion(Signal::Loss);
        close(s.variable("w_max"), 70.0);
    }

    #[test]
    fn with_short_rtts_it_is_as_strong_as_reno() {
        // RTT 1 ms, small windows: Reno's estimate leads, 9/17 per RTT until the old window, then one.
        let mut s = reduced();
        s.path.srtt = Some(Duration::from_millis(1));
        let alpha = 9.0 / 17.0;
        s.now += Duration::from_micros(10);
        s.new_acks(1);
        let before = s.cwnd();
        s.new_acks(1);
        close(s.cwnd() - before, alpha / before);
        let mut s = reduced();
        s.cc.curve.cwnd_prior = 0.5;
        s.new_acks(1);
        close(s.cwnd(), 70.0 + 1.0 / 70.0);
    }

    #[test]
    fn a_timeout_starts_a_flat_curve() {
        let mut s = at_100();
        s.timeout(1);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 70.0));
        s.timeout(2);
        assert_eq!(s.ssthresh(), 70.0);
        s.path.phase = crate::Phase::Open;
        s.new_acks(69);
        assert_eq!(s.cwnd(), 70.0);
        after(&mut s, 0);
        // One second on: W(1.1) = 70 + 0.4 * 1.331, but Reno's estimate counts too.
        let before = s.cwnd();
        close(after(&mut s, 1000), before + (70.0 + 0.4 * 1.331 - before) / before);
    }

    #[test]
    fn idle_time_does_not_count() {
        let mut s = reduced();
        after(&mut s, 0);
        let mut other = s.clone();
        let limited = Ack { cwnd_limited: false, ..ack(AckKind::New, 1.0) };
        s.now += Duration::from_secs(30);
        s.call(|cc, cx| cc.on_ack(cx, &limited));
        close(after(&mut s, 500), after(&mut other, 500));
    }

    #[test]
    fn undo_restores_the_curve() {
        let mut s = reduced();
        after(&mut s, 2000);
        let (cwnd, w_max) = (s.cwnd(), s.variable("w_max"));
        s.congestion(Signal::Loss);
        s.recovered();
        s.call(|cc, cx| cc.on_undo(cx));
        assert_eq!((s.cwnd(), s.variable("w_max")), (cwnd, w_max));
    }

    #[test]
    fn undo_of_a_timeout_restores_the_curve_of_before_it() {
        // RFC 9438 §4.9.1: cwnd, ssthresh, W_max, and where on the curve it was.
        let mut s = reduced();
        after(&mut s, 2000);
        let mut other = s.clone();
        let (cwnd, ssthresh, w_max) = (s.cwnd(), s.ssthresh(), s.variable("w_max"));
        s.timeout(1);
        s.timeout(2);
        assert_eq!((s.cwnd(), s.variable("w_max")), (1.0, 0.0));
        s.path.phase = crate::Phase::Open;
        s.path.after_timeout = false;
        s.call(|cc, cx| cc.on_undo(cx));
        assert_eq!((s.cwnd(), s.variable("w_max")), (cwnd, w_max));
        assert!(s.ssthresh() >= ssthresh);
        s.now = other.now;
        close(after(&mut s, 100), after(&mut other, 100));
    }

    #[test]
    fn hystart_ends_slow_start_at_a_rising_rtt() {
        let mut s = Stage::new(Cubic::new(&Config::default(), &rules(1e9)), 1e9);
        s.start(None);
        let round = |s: &mut Stage<Cubic>, ms| {
            s.path.round += 1;
            let a = Ack { rtt: Some(Duration::from_millis(ms)), ..ack(AckKind::New, 1.0) };
            for _ in 0..10 {
                s.call(|cc, cx| cc.on_ack(cx, &a));
            }
        };
        round(&mut s, 100);
        assert_eq!(s.cwnd(), 12.0);
        round(&mut s, 120);
        assert_eq!(s.variable("css"), 1.0);
        // Eight samples are needed to see the rise: seven grow by one, the last three by a quarter.
        assert_eq!(s.cwnd(), 12.0 + 7.0 + 0.75);
        for _ in 0..4 {
            round(&mut s, 121);
        }
        assert_eq!((s.cwnd(), s.ssthresh()), (29.75, 1e9));
        // The fifth round of conservative slow start is over: with the first acknowledgement of the next.
        round(&mut s, 121);
        assert_eq!(s.ssthresh(), 30.0);
    }

    #[test]
    fn parameters_outside_of_their_domain() {
        for beta in [0.0, 1.0, 1.7, f64::NAN] {
            assert_eq!(Config { beta, ..Config::default() }.validate(), Err(Invalid::Beta));
        }
        for c in [0.0, -0.4, f64::NAN] {
            assert!(Config { c, ..Config::default() }.validate().is_err());
        }
    }

    #[test]
    fn option_beta_ecn() {
        // RFC 8511 §3.1: 0.85 of the window for CUBIC; what a loss leaves is the same as ever.
        let config = Config { hystart: false, beta_ecn: Some(0.85), ..Config::default() };
        for (signal, left) in [(Signal::Ecn, 85.0), (Signal::Loss, 70.0)] {
            let mut s = Stage::new(Cubic::new(&config, &rules(100.0)), 1000.0);
            s.start(None);
            s.new_acks(98);
            s.congestion(signal);
            assert_eq!((s.cwnd(), s.ssthresh(), s.variable("w_max")), (left, left, 100.0), "{signal:?}");
        }
        let mut s = at_100();
        s.congestion(Signal::Ecn);
        assert_eq!(s.cwnd(), 70.0, "without the option a mark is as good as a loss");
        for (beta_ecn, refused) in [(0.6, true), (0.7, false), (1.0, true), (f64::NAN, true)] {
            let refuses = Config { beta_ecn: Some(beta_ecn), ..Config::default() }.validate().is_err();
            assert_eq!(refuses, refused, "{beta_ecn}");
        }
    }
}
