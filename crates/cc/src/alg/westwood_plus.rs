//! TCP Westwood+.
//!
//! *Idea*: Westwood with rate samples over a whole RTT instead of the gap between two acknowledgements, so that
//! compressed acknowledgements do not inflate the estimate. After a loss, the threshold is the filtered rate times the
//! minimum RTT. *Source*: Grieco, Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP
//! congestion control", ACM CCR 34(2), 2004; Linux `tcp_westwood`, by the same group. `linux` is *verified* against the
//! source of Linux: interval, both filters, the number of segments that an acknowledgement counts for, the reaction to
//! a loss (Reno's half during the recovery, the estimate at its end) and to a timeout. Of `paper`, one sample per RTT
//! with weights 0.9 and 0.1 is *verified* against the group's module for ns-2 (`tcp-westwood-nr.cc`, filter 5). The
//! paper itself was not available, and `cwnd = ssthresh` immediately at the loss is a *reconstruction* from later
//! descriptions: Linux sets the window to ssthresh at the end of the recovery, even if that raises it; the ns-2 module
//! only lowers it.
//!
//! The flavours differ in four points. Linux smooths twice with weight 7/8. Its estimate starts with the first sample. It
//! halves the window during the recovery, and sets it from the estimate only at the end. It discards the minimum RTT after
//! a timeout.

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Signal, Start};
use crate::parts::credit::Credit;
use crate::parts::estimate::payload_rate;
use crate::parts::frame::{self, Frame};
use crate::parts::growth;
use crate::rules::SharedRules;
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant, Rate};

/// Shortest interval of a sample (50 ms).
const SHORTEST: Duration = Duration::from_millis(50);

/// The implementation whose filter and reduction are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Flavour {
    /// That of Grieco and Mascolo (2004).
    Paper,
    /// That of Linux `tcp_westwood`.
    Linux,
}

skyhaul_base::options! {
    /// Options of TCP Westwood+.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// The implementation to follow: `paper` (default) or `linux`.
        flavour: Flavour = Flavour::Paper,
        /// Weight of the previous value in the filter; by default 0.9 (`paper`), or 7/8 applied twice (`linux`).
        pole: Option<f64> = None,
        /// Loss recovery (default `newreno`, as in the comparisons with asymmetric satellite links).
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
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl Config {
    fn pole(&self) -> f64 {
        self.pole.unwrap_or(if self.flavour == Flavour::Paper { 0.9 } else { 0.875 })
    }
}

impl ControlOptions for Config {
    const SLOW_START: bool = true;
    type Control = Box<WestwoodPlus>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        let pole = self.pole();
        if !(pole > 0.0 && pole < 1.0) {
            return Err(Invalid::Pole);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<WestwoodPlus> {
        Box::new(WestwoodPlus::new(self, rules))
    }
}

/// TCP Westwood+.
#[derive(Clone, Debug)]
pub struct WestwoodPlus {
    frame: Frame,
    pole: f64,
    linux: bool,
    credit: Credit,
    /// Rate after one filter and, in Linux, after two, segments per second; `None` before the first sample.
    rate: Option<(f64, f64)>,
    /// The current interval: its start and the segments acknowledged in it.
    since: Option<Instant>,
    acked: f64,
    /// The last RTT sample.
    rtt: Option<Duration>,
    rtt_min: Option<Duration>,
    /// The next sample replaces the minimum RTT.
    reset_rtt_min: bool,
}

impl WestwoodPlus {
    /// A TCP Westwood+ control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            pole: config.pole(),
            linux: config.flavour == Flavour::Linux,
            credit: Credit::default(),
            rate: None,
            since: None,
            acked: 0.0,
            rtt: None,
            rtt_min: None,
            reset_rtt_min: true,
        }
    }

    fn measure(&mut self, now: Instant, segments: f64) {
        match (self.since, self.rtt) {
            (Some(since), Some(rtt)) if now - since > rtt.max(SHORTEST) => {
                let sample = self.acked / (now - since).as_secs_f64();
                let mix = |old: f64, new: f64| self.pole * old + (1.0 - self.pole) * new;
                self.rate = Some(match self.rate {
                    None if self.linux => (sample, sample),
                    Some((once, twice)) if self.linux => (mix(once, sample), mix(twice, mix(once, sample))),
                    rate => {
                        let mixed = mix(rate.map_or(0.0, |r| r.1), sample);
                        (mixed, mixed)
                    }
                });
                self.acked = 0.0;
                self.since = Some(now);
            }
            (None, _) => self.since = Some(now),
            _ => {}
        }
        // The acknowledgement that closes an interval belongs to the next one.
        self.acked += segments;
    }

    fn bwe(&self) -> f64 {
        self.rate.map_or(0.0, |r| r.1)
    }
    fn fits(&self) -> f64 {
        (self.bwe() * self.rtt_min.map_or(0.0, Duration::as_secs_f64)).max(2.0)
    }
}

impl CongestionControl for WestwoodPlus {
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn policy(&self) -> Policy {
        self.frame.policy()
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.frame.start(cx, start);
        self.since = Some(cx.now);
        self.acked = 0.0;
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt = Some(rtt);
            let fresh = core::mem::take(&mut self.reset_rtt_min);
            self.rtt_min = Some(self.rtt_min.filter(|_| !fresh).map_or(rtt, |m| m.min(rtt)));
        }
        let segments = self.credit.of(ack, 0.0);
        self.measure(cx.now, segments);
        if self.frame.acked(cx, ack) {
            self.frame.grow_like_reno(cx, ack);
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        let to = if self.linux { self.frame.half(cx) } else { self.fits() };
        self.frame.reduce(signal, to, to);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
        if self.linux {
            self.frame.ssthresh = self.fits();
            self.frame.cwnd =
                growth::capped(&self.frame.rules, cx.path, self.frame.ssthresh, self.frame.cwnd);
        }
    }
    fn on_timeout(&mut self, _cx: &mut Cx<'_>, backoff: u32) {
        let ssthresh = self.fits();
        self.frame.timeout(backoff, ssthresh);
        self.credit.clear();
        self.reset_rtt_min = self.linux;
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
    }
    fn bandwidth_estimate(&self, smss: u32) -> Option<Rate> {
        payload_rate(self.bwe(), smss)
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("bwe", self.bwe());
        out("rtt_min", self.rtt_min.map_or(f64::NAN, Duration::as_secs_f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::testing::{Stage, ack};
    use crate::{AckKind, InitialSsthresh};

    fn stage(flavour: Flavour) -> Stage<WestwoodPlus> {
        let config = Config { flavour, ..Config::default() };
        let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(2.0), ..Rules::NS2_2001 };
        let mut s = Stage::new(WestwoodPlus::new(&config, &rules), 64.0);
        s.start(None);
        s
    }
    /// Ten acknowledgements, 20 ms apart, RTT 200 ms. An interval ends with the eleventh.
    fn round(s: &mut Stage<WestwoodPlus>, segments: f64) {
        for _ in 0..10 {
            s.now += Duration::from_millis(20);
            let a = Ack { rtt: Some(Duration::from_millis(200)), ..ack(AckKind::New, segments) };
            s.call(|cc, cx| cc.on_ack(cx, &a));
        }
    }
    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn one_sample_per_rtt_with_the_papers_filter() {
        let mut s = stage(Flavour::Paper);
        round(&mut s, 1.0);
        assert_eq!(s.variable("bwe"), 0.0);
        // 10 segments in 0.22 s: the acknowledgement that closes the interval counts for the next one.
        round(&mut s, 1.0);
        let first = 10.0 / 0.22;
        close(s.variable("bwe"), 0.1 * first);
        // 11 in 0.22 s from here on.
        round(&mut s, 1.0);
        close(s.variable("bwe"), 0.9 * 0.1 * first + 0.1 * 50.0);
        for _ in 0..300 {
            round(&mut s, 1.0);
        }
        close(s.variable("bwe"), 50.0);
        s.congestion(Signal::Loss);
        // 50 per second over 0.2 s, and NewReno's three.
        close(s.ssthresh(), 10.0);
        close(s.cwnd(), 13.0);
        s.recovered();
        close(s.cwnd(), 10.0);
    }

    #[test]
    fn linux_filters_twice_and_waits_for_the_end_of_the_recovery() {
        let mut s = stage(Flavour::Linux);
        round(&mut s, 1.0);
        round(&mut s, 1.0);
        let first = 10.0 / 0.22;
        close(s.variable("bwe"), first);
        round(&mut s, 1.0);
        let once = 7.0 / 8.0 * first + 50.0 / 8.0;
        close(s.variable("bwe"), 7.0 / 8.0 * first + once / 8.0);
        for _ in 0..300 {
            round(&mut s, 1.0);
        }
        let half = skyhaul_base::math::floor(s.cwnd().min(64.0) / 2.0);
        s.congestion(Signal::Loss);
        assert_eq!(s.ssthresh(), half);
        s.recovered();
        close(s.cwnd(), 10.0);
        close(s.ssthresh(), 10.0);
    }

    #[test]
    fn linux_forgets_the_minimum_rtt_after_a_timeout() {
        for (flavour, kept) in [(Flavour::Paper, 0.2), (Flavour::Linux, 0.3)] {
            let mut s = stage(flavour);
            round(&mut s, 1.0);
            s.timeout(1);
            let a = Ack { rtt: Some(Duration::from_millis(300)), ..ack(AckKind::New, 1.0) };
            s.call(|cc, cx| cc.on_ack(cx, &a));
            close(s.variable("rtt_min"), kept);
        }
    }

    #[test]
    fn duplicates_count_once() {
        let mut s = stage(Flavour::Paper);
        round(&mut s, 1.0);
        s.duplicates(1..=6);
        s.ack(AckKind::New, 7.0);
        s.now += Duration::from_millis(20);
        s.ack(AckKind::New, 1.0);
        close(s.variable("bwe"), 0.1 * 17.0 / 0.22);
    }

    #[test]
    fn parameters_outside_of_their_domain() {
        for pole in [0.0, 1.0, f64::NAN] {
            assert!(Config { pole: Some(pole), ..Config::default() }.validate().is_err());
        }
        assert!(Config { recovery: RecoveryMode::Tahoe, ..Config::default() }.validate().is_err());
    }
}
