//! TCP-Real.
//!
//! *Idea*: the receiver can measure the arrival rate of data independently of the return path. Data is sent in *waves*
//! of one window; the receiver reports the arrival rate of the last wave. While the rate holds or rises, the window
//! grows by one segment per RTT. If the rate falls slightly, the window is held; if it falls more, the window is
//! reduced gently, before a loss occurs. A loss halves the window, as in Reno; with `classify`, a loss while the rate
//! has not fallen counts as a link error and causes no reduction. *Source*: Zhang, Tsaoussidis, "TCP-Real: improving
//! real-time capabilities of TCP over heterogeneous networks" (NOSSDAV 2001); Tsaoussidis, Zhang, "TCP-Real:
//! receiver-oriented congestion control", Computer Networks 40(4), published in 2002. Only the abstract of the second was
//! available: it confirms the wave pattern, congestion avoidance by measurement, and the classification of errors. The
//! rest is a *reconstruction* from Papadimitriou, Tsaoussidis, "On TCP performance over asymmetric satellite links with
//! real-time constraints" (2007, §2.2): the measured rate on the acknowledgements, the comparison with the previous one
//! when new data is acknowledged, alpha 1 segment per RTT, gamma 1/8 (its reference to the paper of 2002), and that a
//! small decrease leaves the window unchanged.
//!
//! Readings, which none of the available sources states:
//! - a wave is the data sent from one segment until that segment is acknowledged, or until a pause; marks and
//!   measurement are `crates/tcp/src/wave.rs`; a wave is reported once it is complete, so that the comparison is one
//!   RTT old;
//! - the size of a small decrease (`delta`, 1/8);
//! - a reduction by gamma also sets the threshold, so that congestion avoidance continues;
//! - a loss is a link error (`classify`) if the rate has not fallen by more than `delta`. The option is off by default:
//!   an unchanged rate does not prove that no other flow lost packets, and a receiver that reports false rates would
//!   suppress its sender's reductions.
//!
//! The report is [`Ack::receiver_rate`](crate::Ack). Without reports (a peer that does not measure, waves of one
//! segment) the control is Reno.

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Phase, Signal, Start};
use crate::parts::frame::{self, Frame};
use crate::rules::{MOST_SEGMENTS, SharedRules};
use alloc::boxed::Box;
use skyhaul_base::Rate;

skyhaul_base::options! {
    /// Options of TCP-Real.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Increase in segments per RTT (1).
        alpha: f64 = 1.0,
        /// Fraction of the window that remains after a loss (1/2).
        beta: f64 = 0.5,
        /// Fraction by which a falling rate reduces the window (1/8).
        gamma: f64 = 0.125,
        /// Relative decrease of the rate up to which the window is held (1/8; our choice).
        delta: f64 = 0.125,
        /// Do not reduce the window at a loss if the rate has not fallen by more than `delta`. Off by default.
        classify: bool = false,
        /// Loss recovery (default `reno`).
        recovery: RecoveryMode = RecoveryMode::Reno,
    }
}

/// Why options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each displays as a sentence that names the option and says what to write instead"
)]
pub enum Invalid {
    #[error("alpha is the growth in segments per RTT: above 0, at most 1e9")]
    Alpha,
    #[error("beta is the fraction of the window that a loss leaves: between 0 and 1, both excluded")]
    Beta,
    #[error("gamma is the fraction of the window that a falling rate takes: between 0 and 1, both excluded")]
    Gamma,
    #[error("delta is a relative fall of the rate: between 0 and 1, both excluded")]
    Delta,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<TcpReal>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.alpha > 0.0 && self.alpha <= MOST_SEGMENTS) {
            return Err(Invalid::Alpha);
        }
        if !(self.beta > 0.0 && self.beta < 1.0) {
            return Err(Invalid::Beta);
        }
        if !(self.gamma > 0.0 && self.gamma < 1.0) {
            return Err(Invalid::Gamma);
        }
        if !(self.delta > 0.0 && self.delta < 1.0) {
            return Err(Invalid::Delta);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<TcpReal> {
        Box::new(TcpReal::new(self, rules))
    }
}

/// The rate of a wave compared with the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    Holds,
    FallsALittle,
    Falls,
}

/// TCP-Real.
#[derive(Clone, Debug)]
pub struct TcpReal {
    frame: Frame,
    config: Config,
    /// Round of the last evaluation.
    round: u64,
    /// Rate of the newest wave, and of the one evaluated last, bit/s.
    newest: Option<u64>,
    judged: Option<u64>,
    /// Result of the last evaluation.
    judgement: Option<Trend>,
}

impl TcpReal {
    /// A TCP-Real control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            config: config.clone(),
            round: 0,
            newest: None,
            judged: None,
            judgement: None,
        }
    }

    /// The newest wave compared with the one evaluated last.
    fn trend(&self) -> Option<Trend> {
        let (new, old) = (self.newest? as f64, self.judged? as f64);
        Some(match new {
            r if r >= old => Trend::Holds,
            r if r >= (1.0 - self.config.delta) * old => Trend::FallsALittle,
            _ => Trend::Falls,
        })
    }

    /// Evaluates the waves once per RTT of congestion avoidance.
    fn judge(&mut self, cx: &Cx<'_>) {
        self.judgement = self.trend();
        self.judged = self.newest;
        let cwnd = self.frame.cwnd;
        match self.judgement {
            Some(Trend::Holds) => self.frame.grow_to(cx, cwnd + self.config.alpha),
            Some(Trend::FallsALittle) | None => {}
            Some(Trend::Falls) => {
                self.frame.cwnd = ((1.0 - self.config.gamma) * cwnd).max(2.0).min(cwnd);
                self.frame.ssthresh = self.frame.cwnd;
            }
        }
    }

    /// Whether the newest wave arrived no more than slightly slower than the one before. If it has been evaluated in this round, the
    /// evaluation says so.
    fn rate_holds(&self) -> bool {
        let trend = if self.newest == self.judged { self.judgement } else { self.trend() };
        matches!(trend, Some(Trend::Holds | Trend::FallsALittle))
    }

    fn forget_rates(&mut self) {
        (self.newest, self.judged, self.judgement) = (None, None, None);
    }
}

impl CongestionControl for TcpReal {
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn policy(&self) -> Policy {
        Policy { receiver_rate: true, rtt_samples: false, ..self.frame.policy() }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.frame.start(cx, start);
        self.forget_rates();
        self.round = cx.path.round;
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        if let Some(rate) = ack.receiver_rate {
            self.newest = Some(rate.bits_per_sec());
        }
        let grows = self.frame.acked(cx, ack);
        let avoids = cx.path.phase == Phase::Open && !self.frame.slow_start();
        if !grows {
            return;
        }
        if avoids && self.newest.is_some() {
            if self.round != cx.path.round {
                self.round = cx.path.round;
                self.judge(cx);
            }
        } else {
            self.frame.grow_like_reno(cx, ack);
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if self.config.classify && signal != Signal::Ecn && self.rate_holds() {
            let (ssthresh, cwnd) = (self.frame.ssthresh, self.frame.deflated());
            return self.frame.reduce(signal, ssthresh, cwnd);
        }
        let kept = self.frame.kept(cx, self.config.beta);
        self.frame.reduce(signal, kept, kept);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        let half = self.frame.half(cx);
        self.frame.timeout(backoff, half);
        self.forget_rates();
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
    }
    /// The last rate that the receiver measured.
    fn bandwidth_estimate(&self, _smss: u32) -> Option<Rate> {
        self.newest.map(Rate::from_bits_per_sec)
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("receiver_rate", self.newest.map_or(f64::NAN, |r| r as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::testing::{Stage, ack};
    use crate::{AckKind, InitialSsthresh};
    use alloc::string::ToString;
    use skyhaul_base::Rate;

    /// Congestion avoidance at 16 segments.
    fn at_16(config: Config) -> Stage<TcpReal> {
        assert_eq!(config.validate(), Ok(()));
        let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(16.0), ..Rules::NS2_2004 };
        let mut s = Stage::new(TcpReal::new(&config, &rules), 64.0);
        s.start(None);
        s.new_acks(14);
        assert_eq!(s.cwnd(), 16.0);
        s
    }
    /// A round of four acknowledgements that report this rate.
    fn wave(s: &mut Stage<TcpReal>, kbps: u64) -> f64 {
        s.path.round += 1;
        let rate = Some(Rate::from_bits_per_sec(kbps * 1000));
        for _ in 0..4 {
            let a = Ack { receiver_rate: rate, ..ack(AckKind::New, 1.0) };
            s.call(|cc, cx| cc.on_ack(cx, &a));
        }
        s.cwnd()
    }

    #[test]
    fn one_judgement_per_wave() {
        let mut s = at_16(Config::default());
        assert_eq!(wave(&mut s, 800), 16.0, "nothing to compare with");
        assert_eq!(wave(&mut s, 800), 17.0);
        assert_eq!(wave(&mut s, 900), 18.0);
        // 7/8 of 900 is 787.5.
        assert_eq!(wave(&mut s, 788), 18.0);
        assert_eq!(wave(&mut s, 600), 15.75);
        assert_eq!(s.ssthresh(), 15.75);
        assert_eq!(wave(&mut s, 600), 16.75);
    }

    #[test]
    fn without_reports_it_is_reno() {
        let mut s = at_16(Config::default());
        s.new_acks(1);
        assert_eq!(s.cwnd(), 16.0625);
        s.congestion(Signal::Loss);
        assert_eq!(s.cwnd(), 16.0625 / 2.0 + 3.0);
        s.recovered();
        assert_eq!(s.cwnd(), 16.0625 / 2.0);
        s.timeout(1);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 16.0625 / 4.0));
    }

    #[test]
    fn option_classify() {
        for (classify, last, cwnd) in
            [(false, 800, 8.5), (true, 800, 17.0), (true, 710, 17.0), (true, 690, 8.5)]
        {
            let mut s = at_16(Config { classify, recovery: RecoveryMode::Sack, ..Config::default() });
            wave(&mut s, 800);
            assert_eq!(wave(&mut s, 800), 17.0);
            // Reported by the duplicates, but not yet evaluated.
            let a = Ack {
                receiver_rate: Some(Rate::from_bits_per_sec(last * 1000)),
                ..ack(AckKind::Duplicate { count: 3, new_sack: true, dsack: false }, 0.0)
            };
            s.call(|cc, cx| cc.on_ack(cx, &a));
            s.congestion(Signal::Loss);
            assert_eq!(s.cwnd(), cwnd, "classify {classify}, {last}");
        }
    }

    #[test]
    fn a_loss_in_the_round_of_a_falling_rate_is_congestion() {
        for (last, cwnd) in [(800, 17.0), (710, 16.0), (690, 7.0)] {
            let mut s = at_16(Config { classify: true, recovery: RecoveryMode::Sack, ..Config::default() });
            wave(&mut s, 800);
            // Evaluated: the window grew, was held, or was reduced to 14.
            wave(&mut s, last);
            s.congestion(Signal::Loss);
            assert_eq!(s.cwnd(), cwnd, "{last}");
        }
    }

    #[test]
    fn a_reduced_window_is_not_below_two_segments() {
        let mut s = at_16(Config { gamma: 0.9, ..Config::default() });
        wave(&mut s, 800);
        assert_eq!(wave(&mut s, 100), 2.0);
    }

    #[test]
    fn parameters_outside_of_their_domain() {
        let d = Config::default;
        for (wrong, name) in [
            (Config { alpha: 0.0, ..d() }, "alpha"),
            (Config { alpha: -1.0, ..d() }, "alpha"),
            (Config { alpha: 1e308, ..d() }, "alpha"),
            (Config { alpha: f64::INFINITY, ..d() }, "alpha"),
            (Config { beta: 0.0, ..d() }, "beta"),
            (Config { beta: 1.0, ..d() }, "beta"),
            (Config { gamma: 0.0, ..d() }, "gamma"),
            (Config { gamma: 1.0, ..d() }, "gamma"),
            (Config { delta: 0.0, ..d() }, "delta"),
            (Config { delta: 1.5, ..d() }, "delta"),
            (Config { delta: f64::NAN, ..d() }, "delta"),
            (Config { recovery: RecoveryMode::Tahoe, ..d() }, "recovery"),
        ] {
            assert!(wrong.validate().is_err_and(|e| e.to_string().starts_with(name)));
        }
    }
}
