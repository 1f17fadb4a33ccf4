//! GAIMD(alpha, beta).
//!
//! *Idea*: Reno with free parameters. In congestion avoidance the window grows by `alpha` segments per RTT, and a
//! loss leaves the fraction `beta` of it (here `beta` is what is kept, so Reno is (1, 1/2)). A smoother flow (a large
//! `beta`) takes as much as a Reno flow if `alpha` is small enough: `alpha = 4(1 - beta^2)/3` where timeouts are
//! part of the loss process, `3(1 - beta)/(1 + beta)` where they are not.
//! *Source*: Yang, Lam, "General AIMD congestion control", ICNP 2000. Only its abstract was available: the meaning of `alpha`
//! and `beta` and the pair (0.31, 7/8) are *verified* against it. The relation with timeouts, which gives 0.3125 for 7/8, and
//! the rate formula (`skyhaul_analysis::aimd`) are from later literature. The relation without timeouts is that of Floyd,
//! Handley, Padhye, "A comparison of equation-based and AIMD congestion control" (2000), *verified* against RFC 9438 §4.3.
//! `crates/sim/tests/all/square_root.rs` compares the formula and both relations with simulated flows. The AIMD of ns-2 halves
//! the window at the first loss, in slow start and after timeouts, whatever `beta` is: option `ns2-half` (*verified* against
//! `slowdown` of ns-2).

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Signal, Start};
use crate::parts::frame::{self, Frame};
use crate::rules::{MOST_SEGMENTS, SharedRules};
use alloc::boxed::Box;

/// The relation between `alpha` and `beta` that makes a flow as aggressive as Reno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Friendliness {
    /// `alpha = 4(1 - beta^2)/3`, if losses may end in timeouts (Yang, Lam 2000; 0.3125 for 7/8).
    WithTimeouts,
    /// `alpha = 3(1 - beta)/(1 + beta)`, if no loss ends in a timeout (Floyd et al. 2000; 0.2 for 7/8).
    WithoutTimeouts,
}

impl Friendliness {
    /// The increase for this `beta`, segments per RTT.
    #[must_use]
    pub fn alpha(self, beta: f64) -> f64 {
        match self {
            Self::WithTimeouts => 4.0 * (1.0 - beta * beta) / 3.0,
            Self::WithoutTimeouts => 3.0 * (1.0 - beta) / (1.0 + beta),
        }
    }
}

skyhaul_base::options! {
    /// Options of GAIMD.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Increase in segments per RTT; by default the one that `friendliness` gives for `beta`.
        alpha: Option<f64> = None,
        /// Fraction of the window that remains after a loss (7/8, the authors' choice).
        beta: f64 = 0.875,
        /// The relation that gives `alpha` if it is not set.
        friendliness: Friendliness = Friendliness::WithTimeouts,
        /// Halve the window at the first loss, in slow start and at timeouts, whatever `beta` is, as ns-2 does. Off by
        /// default.
        ns2_half: bool = false,
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
    #[error("beta is the fraction of the window that a loss leaves: between 0 and 1, both excluded")]
    Beta,
    #[error("alpha is the growth in segments per RTT: above 0, at most 1e9")]
    Alpha,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl Config {
    /// As aggressive as Reno if losses may end in timeouts.
    #[must_use]
    pub fn friendly(beta: f64) -> Self {
        Self { beta, ..Self::default() }
    }
    /// As aggressive as Reno if no loss ends in a timeout.
    #[must_use]
    pub fn friendly_without_timeouts(beta: f64) -> Self {
        Self { friendliness: Friendliness::WithoutTimeouts, ..Self::friendly(beta) }
    }
    /// The increase that applies, segments per RTT.
    #[must_use]
    pub fn increase(&self) -> f64 {
        self.alpha.unwrap_or_else(|| self.friendliness.alpha(self.beta))
    }
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<Gaimd>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.beta > 0.0 && self.beta < 1.0) {
            return Err(Invalid::Beta);
        }
        if self.alpha.is_some_and(|a| !(a > 0.0 && a <= MOST_SEGMENTS)) {
            return Err(Invalid::Alpha);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<Gaimd> {
        Box::new(Gaimd::new(self, rules))
    }
}

/// GAIMD.
#[derive(Clone, Debug)]
pub struct Gaimd {
    frame: Frame,
    alpha: f64,
    beta: f64,
    ns2_half: bool,
    /// A loss or a timeout has reduced the window before.
    lost_before: bool,
}

impl Gaimd {
    /// A GAIMD control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            alpha: config.increase(),
            beta: config.beta,
            ns2_half: config.ns2_half,
            lost_before: false,
        }
    }

    fn kept(&self, cx: &Cx<'_>, timeout: bool) -> f64 {
        let half = self.ns2_half && (timeout || !self.lost_before || self.frame.slow_start());
        let keep = if half { 0.5 } else { self.beta };
        self.frame.kept(cx, keep)
    }
}

impl CongestionControl for Gaimd {
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
        if !self.frame.acked(cx, ack) {
            return;
        }
        if self.frame.slow_start() {
            self.frame.grow_like_reno(cx, ack);
        } else {
            let to = self.frame.cwnd + self.alpha * self.frame.credit(ack) / self.frame.cwnd;
            self.frame.grow_to(cx, to);
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        let kept = self.kept(cx, false);
        self.frame.reduce(signal, kept, kept);
        self.lost_before = true;
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        let kept = self.kept(cx, true);
        self.frame.timeout(backoff, kept);
        self.lost_before = true;
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{InitialSsthresh, Rules};
    use crate::testing::Stage;

    /// Congestion avoidance at 16 segments.
    fn at_16(config: &Config) -> Stage<Gaimd> {
        let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(16.0), ..Rules::NS2_2004 };
        let mut s = Stage::new(Gaimd::new(config, &rules), 64.0);
        s.start(None);
        s.new_acks(14);
        s.path.set_in_flight(16.0);
        assert_eq!(s.cwnd(), 16.0);
        s
    }

    #[test]
    fn both_relations_contain_reno_and_the_published_values() {
        for f in [Friendliness::WithTimeouts, Friendliness::WithoutTimeouts] {
            assert_eq!(f.alpha(0.5), 1.0);
        }
        assert_eq!(Config::friendly(0.875).increase(), 0.3125, "published as 0.31");
        assert!((Config::friendly_without_timeouts(0.875).increase() - 0.2).abs() < 1e-15);
    }

    #[test]
    fn growth_and_reduction() {
        let mut s = at_16(&Config::default());
        s.new_acks(1);
        assert_eq!(s.cwnd(), 16.0 + 0.3125 / 16.0);
        let mut s = at_16(&Config::default());
        s.congestion(Signal::Loss);
        assert_eq!((s.cwnd(), s.ssthresh()), (14.0, 14.0));
        s.recovered();
        s.timeout(1);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 12.25));
        s.timeout(2);
        assert_eq!(s.ssthresh(), 12.25);
        s.call(|cc, cx| cc.on_undo(cx));
        assert_eq!((s.cwnd(), s.ssthresh()), (14.0, 14.0));
    }

    #[test]
    fn growth_by_bytes_counts_what_is_acknowledged() {
        let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(2.0), ..Rules::RFC };
        let mut s = Stage::new(Gaimd::new(&Config { alpha: Some(0.5), ..Config::default() }, &rules), 64.0);
        s.start(None);
        s.ack(crate::AckKind::New, 2.0);
        assert_eq!(s.cwnd(), 4.0 + 0.5 * 2.0 / 4.0);
    }

    #[test]
    fn ns2_halves_the_first_time_and_in_slow_start() {
        let mut s = at_16(&Config { ns2_half: true, ..Config::default() });
        s.congestion(Signal::Loss);
        assert_eq!(s.cwnd(), 8.0);
        s.recovered();
        s.congestion(Signal::Loss);
        assert_eq!(s.cwnd(), 7.0);
        s.recovered();
        s.timeout(1);
        assert_eq!(s.ssthresh(), 3.5);
    }

    #[test]
    fn fast_recovery_of_reno_inflates() {
        let mut s = at_16(&Config { recovery: RecoveryMode::Reno, ..Config::default() });
        s.congestion(Signal::Loss);
        assert_eq!(s.cwnd(), 17.0);
        s.duplicate(4);
        assert_eq!(s.cwnd(), 18.0);
        s.recovered();
        assert_eq!(s.cwnd(), 14.0);
    }

    #[test]
    fn parameters_outside_of_their_domain() {
        for beta in [0.0, 1.0, 1.5, -0.5, f64::NAN] {
            assert_eq!(Config { beta, ..Config::default() }.validate(), Err(Invalid::Beta));
        }
        for alpha in [0.0, -1.0, 1e308, f64::INFINITY, f64::NAN] {
            let c = Config { alpha: Some(alpha), ..Config::default() };
            assert_eq!(c.validate(), Err(Invalid::Alpha));
        }
        assert!(Config { recovery: RecoveryMode::Tahoe, ..Config::default() }.validate().is_err());
    }
}
