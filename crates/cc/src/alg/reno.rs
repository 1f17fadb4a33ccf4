//! Tahoe, Reno, NewReno, SACK, PRR: one window arithmetic.
//!
//! *Idea*: double the window each RTT up to a threshold (ssthresh), then add one segment per RTT; a loss sets the
//! threshold to half of the window. The five differ in loss recovery, which is implemented by the sender
//! ([`RecoveryMode`]). This file implements growth, the reduction, and the artificial inflation of the window in the fast
//! recovery of Reno and NewReno. *Sources*: Jacobson, "Congestion avoidance and control" (1988), "Modified TCP congestion
//! avoidance algorithm" (1990); RFC 2581, 5681, 6582, 6675, 9937; Fall, Floyd, "Simulation-based comparisons of Tahoe,
//! Reno and SACK TCP" (1996). The option `initial-window` sets the initial window (RFC 2414, 3390, 6928).

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, AckKind, Cx, Phase, Signal, Start};
use crate::parts::growth;
use crate::parts::inflation::Inflation;
use crate::rules::{HalvingBase, InitialWindow, InvalidInitialWindow, MOST_SEGMENTS, Rules, SharedRules};

skyhaul_base::options! {
    /// Options of the Reno family. Options that are not set follow the endpoint preset.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Initial window; by default that of the endpoint preset.
        initial_window: Option<InitialWindow> = None,
        /// Segments added to the window at the start of Reno or NewReno fast recovery; by default that of the preset (3).
        inflate_ndup: Option<f64> = None,
        /// What a reduction halves; by default that of the preset.
        halving_base: Option<HalvingBase> = None,
        /// Round the halved window down to whole segments; by default as in the preset.
        integer_halving: Option<bool> = None,
        /// Maximum number of segments sent per acknowledgement; 0 is unlimited (default).
        #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_zero"))]
        max_burst: u16 = 0,
    }
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde wants")]
fn is_zero(n: &u16) -> bool {
    *n == 0
}

/// Why options are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "each displays as a sentence that names the option and says what to write instead"
)]
pub enum Invalid {
    #[error("inflate-ndup must be a number of segments, from 0 to 1e9")]
    InflateNdup,
    #[error(transparent)]
    InitialWindow(#[from] InvalidInitialWindow),
}

impl Config {
    /// Refuses options outside their domain.
    ///
    /// # Errors
    /// Names the option and what to write instead.
    pub fn validate(&self) -> Result<(), Invalid> {
        if let Some(window) = self.initial_window {
            window.validate()?;
        }
        if self.inflate_ndup.is_some_and(|n| !(0.0..=MOST_SEGMENTS).contains(&n)) {
            return Err(Invalid::InflateNdup);
        }
        Ok(())
    }

    /// The preset's rules with the overrides of this configuration.
    #[must_use]
    pub fn apply(&self, rules: &Rules) -> Rules {
        Rules {
            initial_window: self.initial_window.unwrap_or(rules.initial_window),
            inflate_ndup: self.inflate_ndup.unwrap_or(rules.inflate_ndup),
            halving_base: self.halving_base.unwrap_or(rules.halving_base),
            integer_halving: self.integer_halving.unwrap_or(rules.integer_halving),
            ..*rules
        }
    }
}

/// The members of the family: equal options, different loss recovery.
pub mod member {
    use super::{Config, ControlOptions, Invalid, RecoveryMode, SharedRules};
    use alloc::boxed::Box;

    macro_rules! members {
        ($($Member:ident),*) => { $(
            #[doc = concat!("Options of the member that repairs by [`RecoveryMode::", stringify!($Member), "`].")]
            #[derive(Clone, Debug, Default, PartialEq)]
            #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
            pub struct $Member(pub Config);

            /// The schema of the family's options: a derived one would be a second schema, which refers to that of the family.
            #[cfg(feature = "schema")]
            impl schemars::JsonSchema for $Member {
                fn schema_name() -> alloc::borrow::Cow<'static, str> {
                    Config::schema_name()
                }
                fn schema_id() -> alloc::borrow::Cow<'static, str> {
                    Config::schema_id()
                }
                fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    Config::json_schema(generator)
                }
            }

            impl ControlOptions for $Member {
                const SLOW_START: bool = true;
                type Control = Box<super::Reno>;
                type Invalid = Invalid;

                fn validate(&self) -> Result<(), Invalid> {
                    self.0.validate()
                }
                fn build(&self, rules: SharedRules) -> Box<super::Reno> {
                    Box::new(super::Reno::new(&self.0, rules, RecoveryMode::$Member))
                }
            }
        )* };
    }
    members!(Tahoe, Reno, NewReno, Sack, Prr);
}

/// The control of every member of the family.
#[derive(Clone, Debug)]
pub struct Reno {
    cwnd: f64,
    ssthresh: f64,
    rules: SharedRules,
    recovery: RecoveryMode,
    max_burst: u16,
    infl: Inflation,
    /// Window before the last reduction, for undo.
    before: Window,
}

impl Reno {
    /// A member of the family that repairs losses by `recovery`.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>, recovery: RecoveryMode) -> Self {
        let rules = rules.into();
        let start = Window { cwnd: 1.0, ssthresh: f64::INFINITY };
        Self {
            cwnd: start.cwnd,
            ssthresh: start.ssthresh,
            rules: rules.adapted(config.apply(&rules)),
            recovery,
            max_burst: config.max_burst,
            infl: Inflation::default(),
            before: start,
        }
    }

    /// Continues from the window of another control, which has found that the peer does not support its probes. `infl` is
    /// the inflation in that window; a member that does not inflate removes it.
    pub fn take_over(&mut self, window: Window, infl: Inflation) {
        self.cwnd = window.cwnd;
        self.ssthresh = window.ssthresh;
        self.infl = infl;
        if !self.inflates() {
            self.infl.end(&mut self.cwnd);
        }
        self.remember();
    }

    /// Saves the window, without inflation, for undo.
    fn remember(&mut self) {
        self.before = Window { cwnd: self.infl.without(self.cwnd), ssthresh: self.ssthresh };
    }

    /// Half of the window without inflation.
    fn half(&self, cx: &Cx<'_>) -> f64 {
        growth::half(&self.rules, cx.path, self.infl.without(self.cwnd))
    }

    /// Whether duplicate acknowledgements inflate the window during a recovery.
    fn inflates(&self) -> bool {
        matches!(self.recovery, RecoveryMode::Reno | RecoveryMode::NewReno)
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn window(&self) -> Window {
        Window { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    fn policy(&self) -> Policy {
        Policy { recovery: self.recovery, max_burst: self.max_burst, rtt_samples: false, ..Policy::default() }
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        let iw = self.rules.initial_window.segments(cx.path.smss).max(1.0);
        match *start {
            Start::Established { syn_lost, .. } => {
                self.cwnd = if syn_lost { 1.0 } else { iw };
                self.ssthresh = growth::initial_ssthresh(&self.rules, cx.path);
            }
            Start::Idle if self.rules.restart_after_idle => self.cwnd = self.cwnd.min(iw),
            Start::Idle => {}
        }
    }

    #[inline(always)]
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        match (ack.kind, cx.path.phase) {
            (AckKind::New | AckKind::Full, Phase::Open | Phase::Loss) if ack.cwnd_limited => {
                self.cwnd = growth::grown(&self.rules, cx.path, self.cwnd, self.ssthresh, ack.acked);
            }
            (AckKind::Duplicate { .. }, Phase::Recovery) if self.inflates() => {
                self.infl.add(&mut self.cwnd, 1.0);
            }
            (AckKind::Partial, Phase::Recovery) if self.inflates() && self.rules.partial_deflation => {
                self.infl.partial(&mut self.cwnd, ack.acked);
            }
            _ => {}
        }
    }

    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        self.remember();
        self.ssthresh = self.half(cx);
        self.infl.clear();
        self.cwnd = match self.recovery {
            RecoveryMode::Tahoe => 1.0,
            _ => self.ssthresh,
        };
        if self.inflates() && signal != Signal::Ecn {
            self.infl.add(&mut self.cwnd, self.rules.inflate_ndup);
        }
    }

    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.infl.clear();
        self.cwnd = match self.recovery {
            // RFC 6582 §3.2 step 3, option 1: no burst when little is left in flight. Presets that halve the window follow ns-2,
            // which returns to ssthresh.
            RecoveryMode::NewReno if self.rules.halving_base == HalvingBase::FlightSize => {
                self.ssthresh.min(cx.path.in_flight().max(1.0) + 1.0)
            }
            RecoveryMode::Tahoe => self.cwnd,
            _ => self.ssthresh,
        };
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        // Once per loss episode: repeated expiries must not drive ssthresh to two (RFC 5681 §3.1).
        if backoff <= 1 {
            self.remember();
            self.ssthresh = self.half(cx);
        }
        self.infl.clear();
        self.cwnd = 1.0;
    }

    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.cwnd = growth::capped(&self.rules, cx.path, self.cwnd.max(self.before.cwnd), self.cwnd);
        self.ssthresh = self.ssthresh.max(self.before.ssthresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Ack;
    use crate::testing::{Stage, ack};

    fn stage_of(config: &Config, rules: &Rules, recovery: RecoveryMode) -> Stage<Reno> {
        let mut s = Stage::new(Reno::new(config, rules, recovery), 64.0);
        s.start(None);
        s
    }
    /// Congestion avoidance at `cwnd` segments, all of them in flight.
    fn at(cwnd: f64, rules: &Rules, recovery: RecoveryMode) -> Stage<Reno> {
        let mut s = stage_of(&Config::default(), rules, recovery);
        s.cc.take_over(Window { cwnd, ssthresh: 2.0 }, Inflation::default());
        s.path.set_in_flight(cwnd);
        s
    }

    #[test]
    fn slow_start_then_one_segment_per_window() {
        let rules = Rules { initial_ssthresh: crate::InitialSsthresh::Segments(4.0), ..Rules::NS2_2001 };
        let mut s = stage_of(&Config::default(), &rules, RecoveryMode::Sack);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 4.0));
        s.new_acks(3);
        assert_eq!(s.cwnd(), 4.0);
        s.new_acks(2);
        assert_eq!(s.cwnd(), 4.25 + 1.0 / 4.25);
        // A window that is not used up does not grow (RFC 7661).
        let limited = Ack { cwnd_limited: false, ..ack(AckKind::New, 1.0) };
        let before = s.cwnd();
        s.call(|cc, cx| cc.on_ack(cx, &limited));
        assert_eq!(s.cwnd(), before);
    }

    #[test]
    fn initial_window_and_its_exceptions() {
        let s = stage_of(&Config::default(), &Rules::MODERN, RecoveryMode::Sack);
        assert_eq!((s.cwnd(), s.ssthresh()), (10.0, f64::INFINITY));
        let own = Config { initial_window: Some(InitialWindow::Segments(3.0)), ..Config::default() };
        let mut s = stage_of(&own, &Rules::MODERN, RecoveryMode::Sack);
        assert_eq!(s.cwnd(), 3.0);
        s.call(|cc, cx| cc.on_start(cx, &Start::Established { rtt: None, syn_lost: true, cached: None }));
        assert_eq!(s.cwnd(), 1.0, "RFC 5681 §3.1: one segment after a lost SYN");
    }

    #[test]
    fn an_idle_period_takes_the_window_back_to_the_initial_one() {
        let mut s = at(40.0, &Rules::RFC, RecoveryMode::Sack);
        s.idle();
        assert_eq!(s.cwnd(), 4.0);
        s.new_acks(1);
        s.idle();
        assert_eq!(s.cwnd(), 4.0);
        let keeps = Rules { restart_after_idle: false, ..Rules::RFC };
        let mut s = at(40.0, &keeps, RecoveryMode::Sack);
        s.idle();
        assert_eq!(s.cwnd(), 40.0);
    }

    #[test]
    fn fast_recovery_of_reno_inflates_and_deflates() {
        let mut s = at(31.0, &Rules::NS2_2001, RecoveryMode::Reno);
        s.congestion(Signal::Loss);
        assert_eq!((s.cwnd(), s.ssthresh()), (18.0, 15.0));
        for d in 4..=10 {
            s.duplicate(d);
        }
        assert_eq!(s.cwnd(), 25.0);
        s.ack(AckKind::Full, 31.0);
        assert_eq!(s.cwnd(), 25.0);
        s.recovered();
        assert_eq!(s.cwnd(), 15.0);
        // Duplicates outside of a recovery mean nothing yet.
        s.duplicate(1);
        assert_eq!(s.cwnd(), 15.0);
    }

    #[test]
    fn options_override_the_preset() {
        let config = Config {
            inflate_ndup: Some(0.0),
            halving_base: Some(HalvingBase::FlightSize),
            integer_halving: Some(false),
            initial_window: Some(InitialWindow::Segments(30.0)),
            max_burst: 4,
        };
        let mut s = stage_of(&config, &Rules::NS2_2001, RecoveryMode::Reno);
        s.path.set_in_flight(21.0);
        s.congestion(Signal::Loss);
        assert_eq!(s.cwnd(), 10.5);
        assert_eq!(s.cc.policy().max_burst, 4);
        for n in [-1.0, 1e300, f64::NAN] {
            assert!(Config { inflate_ndup: Some(n), ..Config::default() }.validate().is_err());
        }
        for n in [0.5, 1e300, f64::INFINITY] {
            let window = Some(InitialWindow::Segments(n));
            assert!(Config { initial_window: window, ..Config::default() }.validate().is_err());
        }
        assert!(config.validate().is_ok());
    }

    #[test]
    fn partial_acknowledgements_deflate_by_what_they_cover() {
        let run = |rules: &Rules| {
            let mut s = at(20.0, rules, RecoveryMode::NewReno);
            s.congestion(Signal::Loss);
            s.duplicates(4..=9);
            assert_eq!(s.cwnd(), 10.0 + 3.0 + 6.0);
            s.ack(AckKind::Partial, 5.0);
            s
        };
        // RFC 6582: 19 - 5 + 1. ns-2.1b8a left the window alone.
        assert_eq!(run(&Rules::NS2_2004).cwnd(), 15.0);
        let mut s = run(&Rules::NS2_2001);
        assert_eq!(s.cwnd(), 19.0);
        s.recovered();
        assert_eq!(s.cwnd(), 10.0);
    }

    #[test]
    fn newreno_of_the_rfc_leaves_recovery_without_a_burst() {
        let mut s = at(20.0, &Rules::RFC, RecoveryMode::NewReno);
        s.congestion(Signal::Loss);
        s.path.set_in_flight(3.0);
        s.recovered();
        assert_eq!(s.cwnd(), 4.0, "min(ssthresh, FlightSize + 1)");
        let mut s = at(20.0, &Rules::RFC, RecoveryMode::NewReno);
        s.congestion(Signal::Loss);
        s.path.set_in_flight(0.0);
        s.recovered();
        assert_eq!(s.cwnd(), 2.0, "at least one segment counts as in flight");
        let mut s = at(20.0, &Rules::RFC, RecoveryMode::NewReno);
        s.congestion(Signal::Loss);
        s.recovered();
        assert_eq!(s.cwnd(), 10.0);
    }

    #[test]
    fn with_a_scoreboard_the_window_is_never_inflated() {
        for mode in [RecoveryMode::Sack, RecoveryMode::Prr] {
            let mut s = at(20.0, &Rules::RFC, mode);
            s.congestion(Signal::Loss);
            s.duplicate(4);
            s.ack(AckKind::Partial, 5.0);
            assert_eq!(s.cwnd(), 10.0);
        }
    }

    #[test]
    fn tahoe_starts_over() {
        let mut s = at(20.0, &Rules::NS2_2001, RecoveryMode::Tahoe);
        s.call(|cc, cx| cc.on_congestion(cx, Signal::Loss));
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 10.0));
        s.new_acks(9);
        assert_eq!(s.cwnd(), 10.0);
    }

    #[test]
    fn a_timeout_halves_once_per_episode() {
        let mut s = at(20.0, &Rules::NS2_2001, RecoveryMode::Sack);
        s.timeout(1);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 10.0));
        s.timeout(2);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 10.0));
        s.new_acks(4);
        assert_eq!(s.cwnd(), 5.0, "slow start while the timeout is repaired");
    }

    #[test]
    fn signals_other_than_loss() {
        let mut s = at(20.0, &Rules::NS2_2001, RecoveryMode::Reno);
        s.congestion(Signal::Ecn);
        assert_eq!((s.cwnd(), s.ssthresh()), (10.0, 10.0), "nothing left the network: no inflation");
        let mut s = at(20.0, &Rules::NS2_2001, RecoveryMode::Reno);
        s.congestion(Signal::Corruption);
        assert_eq!(s.cwnd(), 13.0, "repaired like any loss");
    }

    #[test]
    fn undo_restores_the_window() {
        let mut s = at(20.0, &Rules::NS2_2001, RecoveryMode::Sack);
        s.congestion(Signal::Loss);
        s.recovered();
        s.new_acks(1);
        s.call(|cc, cx| cc.on_undo(cx));
        assert_eq!((s.cwnd(), s.ssthresh()), (20.0, 10.0));
    }

    #[test]
    fn undo_of_a_timeout_within_a_recovery_does_not_restore_inflation() {
        let mut s = at(20.0, &Rules::NS2_2001, RecoveryMode::Reno);
        s.congestion(Signal::Loss);
        s.duplicates(4..=9);
        s.timeout(1);
        s.call(|cc, cx| cc.on_undo(cx));
        assert_eq!(s.cwnd(), 10.0);
    }
}
