//! A window and a rate that losses do not change, like SCPS-TP's response to corruption.
//!
//! *Idea*: if losses are known to be corruption, they do not indicate congestion. Lost data is retransmitted; window
//! and threshold do not change. The operator sets the rate (`rate-mbps`) and may set the window (`window`), which
//! should be at least the product of rate and round-trip time; there is then no slow start. An ECN mark always
//! indicates congestion. *Source*: the response to corruption and the rate control of SCPS-TP (CCSDS 714.0-B-2), as
//! Luglio, Roseti and Gerla describe them; the standard itself was not available. The header options of SCPS-TP are not
//! implemented: this control **does not interoperate** with it, and requires no support from the peer. SCPS-TP learns
//! of outages from the link; this control infers one from a second timeout in a row and then restarts.

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, AckKind, Cx, Phase, Signal, Start};
use crate::parts::frame::{self, Frame};
use crate::rules::{MOST_SEGMENTS, SharedRules};
use alloc::boxed::Box;
use skyhaul_base::Rate;

/// How a loss is interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LossResponse"))]
pub enum Response {
    /// As corruption: the window does not change.
    #[default]
    Corruption,
    /// As congestion: the window is halved.
    Congestion,
}

skyhaul_base::options! {
    /// Options of the control.
    #[derive(Clone, Debug, PartialEq)]
    #[cfg_attr(feature = "schema", schemars(rename = "ScpsLikeConfig"))]
    pub struct Config {
        /// Sending rate of payload in Mbit/s; by default only the window limits the sender.
        rate_mbps: Option<f64> = None,
        /// Constant window in segments; by default the window grows like Reno's.
        window: Option<f64> = None,
        /// How a loss is interpreted (default `corruption`).
        response: Response = Response::Corruption,
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
    #[error("rate-mbps is a rate in Mbit/s, from 0.001 to 1e6")]
    Rate,
    #[error("window is a number of segments, from 1 to 1e9")]
    Window,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    type Control = Box<ScpsLike>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if self.rate_mbps.is_some_and(|r| !(1e-3..=1e6).contains(&r)) {
            return Err(Invalid::Rate);
        }
        if self.window.is_some_and(|w| !(1.0..=MOST_SEGMENTS).contains(&w)) {
            return Err(Invalid::Window);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<ScpsLike> {
        Box::new(ScpsLike::new(self, rules))
    }
}

/// The control.
#[derive(Clone, Debug)]
pub struct ScpsLike {
    frame: Frame,
    rate: Option<Rate>,
    /// Constant window, segments.
    constant: Option<f64>,
    response: Response,
}

impl ScpsLike {
    /// A control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            rate: config.rate_mbps.map(|r| Rate::from_bits_per_sec((r * 1e6) as u64)),
            constant: config.window,
            response: config.response,
        }
    }

    /// During the repair of a corrupted segment, the acknowledgement by which the window grows as it would without the
    /// loss: for newly SACKed segments, and for the one that fills the hole.
    fn repaired(&self, cx: &Cx<'_>, ack: &Ack) -> Option<Ack> {
        // Without a scoreboard the window is inflated instead.
        let grows = self.response == Response::Corruption && self.frame.policy().recovery.uses_pipe();
        if !grows || cx.path.phase != Phase::Recovery || !ack.cwnd_limited {
            return None;
        }
        let acked = match ack.kind {
            AckKind::Duplicate { .. } => ack.sacked,
            AckKind::Partial | AckKind::Full => ack.acked.min(1.0) + ack.sacked,
            AckKind::New => return None,
        };
        (acked > 0.0).then_some(Ack { acked, ..*ack })
    }

    fn means_congestion(&self, signal: Signal) -> bool {
        match signal {
            Signal::Ecn => true,
            Signal::Loss => self.response == Response::Congestion,
            Signal::Corruption => false,
        }
    }
}

impl CongestionControl for ScpsLike {
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn pacing(&self) -> Option<Rate> {
        self.rate
    }
    fn policy(&self) -> Policy {
        let losses_are_errors = self.response == Response::Corruption;
        Policy { rtt_samples: false, losses_are_errors, ..self.frame.policy() }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.frame.start(cx, start);
        if let Some(window) = self.constant {
            self.frame.cwnd = window;
        }
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let repaired = self.repaired(cx, ack);
        if repaired.is_some() || self.frame.acked(cx, ack) {
            self.frame.grow_like_reno(cx, repaired.as_ref().unwrap_or(ack));
            if repaired.is_some() {
                self.frame.reset(self.frame.cwnd);
            }
            if let Some(window) = self.constant.filter(|_| cx.path.phase != Phase::Loss) {
                self.frame.cwnd = self.frame.cwnd.min(window);
            }
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if self.means_congestion(signal) {
            let half = self.frame.half(cx);
            self.frame.reduce(signal, half, half);
        } else {
            self.frame.reduce(signal, self.frame.ssthresh, self.frame.deflated());
        }
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        if self.response == Response::Corruption && backoff <= 1 {
            // The window stays, but a recovery in progress has ended, and with it the inflation.
            return self.frame.reset(self.frame.deflated());
        }
        let to = match self.response {
            Response::Congestion => self.frame.half(cx),
            // An outage rather than a loss: afterwards the path has its old capacity.
            Response::Corruption => self.frame.deflated(),
        };
        self.frame.timeout(backoff.min(1), to);
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::testing::Stage;

    fn started(config: Config) -> Stage<ScpsLike> {
        assert_eq!(config.validate(), Ok(()));
        let mut s = Stage::new(ScpsLike::new(&config, &Rules::MODERN), 1e6);
        s.start(None);
        s
    }

    #[test]
    fn a_loss_by_corruption_leaves_the_window_of_the_trace_without_it() {
        let (mut with, mut without) = (started(Config::default()), started(Config::default()));
        for s in [&mut with, &mut without] {
            s.new_acks(20);
        }
        with.congestion(Signal::Loss);
        assert_eq!((with.cwnd(), with.ssthresh()), (without.cwnd(), without.ssthresh()));
        with.recovered();
        assert_eq!((with.cwnd(), with.ssthresh()), (without.cwnd(), without.ssthresh()));
        // The same loss as congestion halves.
        let mut s = started(Config { response: Response::Congestion, ..Config::default() });
        s.new_acks(20);
        s.path.set_in_flight(30.0);
        s.congestion(Signal::Loss);
        assert_eq!(s.cwnd(), 15.0);
        // A mark indicates congestion, whatever losses indicate.
        with.path.set_in_flight(30.0);
        with.congestion(Signal::Ecn);
        assert_eq!(with.cwnd(), 15.0);
    }

    #[test]
    fn a_pinned_window_is_there_from_the_start() {
        let mut s = started(Config { window: Some(700.0), rate_mbps: Some(10.0), ..Config::default() });
        assert_eq!((s.cwnd(), s.cc.pacing()), (700.0, Some(Rate::from_bits_per_sec(10_000_000))));
        s.new_acks(1000);
        s.congestion(Signal::Loss);
        s.timeout(1);
        assert_eq!(s.cwnd(), 700.0);
        // An outage: slow start up to the previous window.
        s.timeout(2);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 700.0));
    }

    #[test]
    fn a_timeout_within_a_recovery_leaves_no_inflation_in_the_window() {
        let mut s = started(Config { recovery: RecoveryMode::NewReno, ..Config::default() });
        s.new_acks(20);
        let before = s.cwnd();
        s.congestion(Signal::Loss);
        s.duplicates(4..=13);
        assert_eq!(s.cwnd(), before + 3.0 + 10.0);
        s.timeout(1);
        assert_eq!(s.cwnd(), before);
    }

    #[test]
    fn options_outside_their_domain_are_refused() {
        let base = Config::default();
        assert_eq!(Config { rate_mbps: Some(0.0), ..base.clone() }.validate(), Err(Invalid::Rate));
        assert_eq!(Config { window: Some(f64::NAN), ..base.clone() }.validate(), Err(Invalid::Window));
        assert!(Config { recovery: RecoveryMode::Tahoe, ..base }.validate().is_err());
    }
}
