//! TCP TIBET (time intervals based bandwidth estimation).
//!
//! *Idea*: Westwood with a different estimate. Segment lengths and the intervals between segments are low-pass filtered
//! separately and then divided, so that bursts and compressed acknowledgements do not bias the quotient as they would
//! bias a mean of quotients. A second filter in continuous time removes remaining oscillations. After a loss, the
//! threshold is this rate times the minimum RTT. *Source*: Capone, Martignon, "Bandwidth estimates in the TCP
//! congestion control scheme" (2001); Capone, Fratta, Martignon, "Bandwidth estimation schemes for TCP over wireless
//! networks", IEEE Trans. Mobile Computing 3(2), 2004. Neither was available: this is a *reconstruction*. Neglia et
//! al., "A simulation study of TCP performance over satellite channels", confirm that lengths and intervals, of
//! acknowledgements or of departures, are filtered separately and their quotient once more. A published TIBET-style
//! estimator for ns-3 confirms the weight `exp(-D/T0)` of the second filter. Neither confirms the constants: the ns-3
//! program has a pole of 0.9 and a time constant of 0.1 s, and starts its second filter with the first sample.

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Sent, Signal, Start};
use crate::parts::credit::Credit;
use crate::parts::estimate::payload_rate;
use crate::parts::frame::{self, Frame};
use crate::rules::SharedRules;
use alloc::boxed::Box;
use skyhaul_base::{Instant, Rate, math};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Measured {
    /// Departures of data segments: the bandwidth used, including retransmissions.
    Departures,
    /// Arrivals of acknowledgements: the bandwidth obtained.
    Acknowledgements,
}

skyhaul_base::options! {
    /// Options of TCP TIBET.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// What is measured: `acknowledgements` (default; "measuring and low-pass filtering the length of acked packets and
        /// the intervals between ACKs' arrivals", Neglia et al. §4) or `departures`, which that paper allows "in addition".
        measured: Measured = Measured::Acknowledgements,
        /// Weight of the previous value in the filters of lengths and intervals (0.99, unconfirmed): a memory of 100
        /// segments.
        pole: f64 = 0.99,
        /// Time constant of the second filter in seconds (1, unconfirmed).
        t0: f64 = 1.0,
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
    #[error("pole: the filters are stable and smooth for a pole between 0 and 1, both excluded")]
    Pole,
    #[error("t0 is a time constant in seconds, above 0 and at most 1e6")]
    T0,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<Tibet>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.pole > 0.0 && self.pole < 1.0) {
            return Err(Invalid::Pole);
        }
        if !(self.t0 > 0.0 && self.t0 <= 1e6) {
            return Err(Invalid::T0);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<Tibet> {
        Box::new(Tibet::new(self, rules))
    }
}

/// TCP TIBET.
#[derive(Clone, Debug)]
pub struct Tibet {
    frame: Frame,
    config: Config,
    credit: Credit,
    /// Mean length (segments) and interval (seconds). The interval starts with the first one above zero.
    length: Option<f64>,
    interval: Option<f64>,
    last: Option<Instant>,
    /// The estimate, segments per second.
    bwe: f64,
}

impl Tibet {
    /// A TCP TIBET control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            config: config.clone(),
            credit: Credit::default(),
            length: None,
            interval: None,
            last: None,
            bwe: 0.0,
        }
    }

    fn sample(&mut self, now: Instant, segments: f64) {
        let Some(last) = self.last.replace(now) else { return };
        let d = (now - last).as_secs_f64();
        let mix = |old: f64, new: f64| self.config.pole * old + (1.0 - self.config.pole) * new;
        let length = self.length.map_or(segments, |l| mix(l, segments));
        self.length = Some(length);
        self.interval = match self.interval {
            Some(i) => Some(mix(i, d)),
            None => Some(d).filter(|&d| d > 0.0),
        };
        if let Some(interval) = self.interval {
            let keep = math::exp(-d / self.config.t0);
            self.bwe = keep * self.bwe + (1.0 - keep) * (length / interval);
        }
    }

    fn fits(&self, cx: &Cx<'_>) -> f64 {
        (self.bwe * cx.path.min_rtt.map_or(0.0, |r| r.as_secs_f64())).max(2.0)
    }
}

impl CongestionControl for Tibet {
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn policy(&self) -> Policy {
        let sent_events = self.config.measured == Measured::Departures;
        Policy { sent_events, rtt_samples: false, ..self.frame.policy() }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.frame.start(cx, start);
    }
    fn on_sent(&mut self, cx: &mut Cx<'_>, sent: &Sent) {
        self.sample(cx.now, f64::from(sent.len) / f64::from(cx.path.smss.max(1)));
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        if self.config.measured == Measured::Acknowledgements {
            let segments = self.credit.of(ack, 0.0);
            self.sample(cx.now, segments);
        }
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
        payload_rate(self.bwe, smss)
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("bwe", self.bwe);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AckKind;
    use crate::rules::Rules;
    use crate::testing::Stage;
    use skyhaul_base::Duration;

    fn stage(config: Config) -> Stage<Tibet> {
        assert_eq!(config.validate(), Ok(()));
        let mut s = Stage::new(Tibet::new(&config, &Rules::NS2_2001), 64.0);
        s.path.min_rtt = Some(Duration::from_millis(200));
        s.start(None);
        s
    }
    fn departures() -> Config {
        Config { measured: Measured::Departures, ..Config::default() }
    }
    fn sent_after(s: &mut Stage<Tibet>, ms: u64, len: u32) -> f64 {
        s.now += Duration::from_millis(ms);
        s.call(|cc, cx| cc.on_sent(cx, &Sent { len, retransmission: false }));
        s.variable("bwe")
    }
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn lengths_and_intervals_are_filtered_apart() {
        let mut s = stage(Config { pole: 0.75, ..departures() });
        assert_eq!(sent_after(&mut s, 10, 1000), 0.0, "the clock starts");
        // Length 1, interval 0.1 s: 10 per second through the second filter from 0.
        close(sent_after(&mut s, 100, 1000), (1.0 - math::exp(-0.1)) * 10.0);
        let b = s.variable("bwe");
        // Length 0.75 + 0.25 * 0.5, interval 0.075 + 0.25 * 0.3.
        let quotient = 0.875 / 0.15;
        close(sent_after(&mut s, 300, 500), math::exp(-0.3) * b + (1.0 - math::exp(-0.3)) * quotient);
    }

    #[test]
    fn bursts_do_not_bias_the_estimate() {
        // Ten segments at once, every 100 ms: 100 per second.
        let mut s = stage(departures());
        for _ in 0..300 {
            sent_after(&mut s, 100, 1000);
            for _ in 0..9 {
                sent_after(&mut s, 0, 1000);
            }
        }
        let bwe = s.variable("bwe");
        assert!((bwe - 100.0).abs() < 8.0, "{bwe}");
        // Over 0.2 s.
        s.call(|cc, cx| cc.on_congestion(cx, Signal::Ecn));
        close(s.ssthresh(), bwe * 0.2);
        assert_eq!(s.cwnd(), 1.0, "never raised");
        s.timeout(1);
        assert_eq!(s.cwnd(), 1.0);
        close(s.ssthresh(), bwe * 0.2);
    }

    #[test]
    fn acknowledgements_are_measured_unless_departures_are_asked_for() {
        assert!(stage(departures()).cc.policy().sent_events);
        let mut s = stage(Config::default());
        assert!(!s.cc.policy().sent_events);
        s.ack(AckKind::New, 1.0);
        for _ in 0..2000 {
            s.now += Duration::from_millis(50);
            s.ack(AckKind::New, 2.0);
        }
        close(s.variable("bwe"), 40.0);
    }

    #[test]
    fn parameters_outside_of_their_domain() {
        for pole in [0.0, 1.0, f64::NAN] {
            assert_eq!(Config { pole, ..Config::default() }.validate(), Err(Invalid::Pole));
        }
        for t0 in [0.0, 1e308, f64::NAN] {
            assert_eq!(Config { t0, ..Config::default() }.validate(), Err(Invalid::T0));
        }
    }
}
