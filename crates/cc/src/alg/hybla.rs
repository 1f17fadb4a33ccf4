//! TCP Hybla.
//!
//! *Idea*: a flow with a long RTT should open its window as fast, in seconds, as a flow with a reference RTT of 25 ms.
//! With `rho = RTT / 25 ms`, the window starts at `rho` segments and grows by `2^rho - 1` per acknowledgement in slow
//! start, by `rho^2 / cwnd` in congestion avoidance. Its rate over time is then independent of the RTT (a GEO link of
//! 550 ms has `rho` = 22). A loss halves the window as usual. The authors recommend SACK, timestamps and pacing.
//! *Source*: Caini, Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", Int. J. of Satellite
//! Communications and Networking 22(5), 2004; Linux `tcp_hybla`, which adds the limit of the exponent, the stop at
//! `ssthresh`, `rho` from the minimum smoothed RTT, and Reno's growth during the repair after a timeout. *Verified*
//! against the source of Linux, which moreover computes in eighths of `rho` and lets the fraction of `rho` exceed the
//! limit. The paper's equations, its 25 ms and the scaled threshold were verified against a lecture that derives them
//! (Cheung, Emory University). The paper itself was not available: that it recommends pacing is taken from later
//! literature.

use crate::action::{Policy, RecoveryMode, Window};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Phase, Signal, Start};
use crate::parts::frame::{self, Frame};
use crate::parts::growth;
use crate::rules::{CaGrowth, SharedRules};
use alloc::boxed::Box;
use skyhaul_base::{Duration, Rate, math};

skyhaul_base::options! {
    /// Options of TCP Hybla.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Reference RTT in milliseconds (25).
        rtt0_ms: f64 = 25.0,
        /// Largest exponent of slow start (16, as in Linux); the paper has no limit.
        most_rho: f64 = 16.0,
        /// Multiply the initial slow start threshold by `rho`, as in the paper. Off by default, as in Linux.
        scale_ssthresh: bool = false,
        /// Pace data at one window per RTT, as the paper recommends. Off by default.
        pacing: bool = false,
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
    #[error("rtt0-ms is the reference RTT in milliseconds, at least 0.001")]
    Rtt0Ms,
    #[error("most-rho is an exponent of two between 1 (slow start of Reno) and 64")]
    MostRho,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    type Control = Box<Hybla>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.rtt0_ms.is_finite() && self.rtt0_ms >= 1e-3) {
            return Err(Invalid::Rtt0Ms);
        }
        if !(self.most_rho >= 1.0 && self.most_rho <= 64.0) {
            return Err(Invalid::MostRho);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<Hybla> {
        Box::new(Hybla::new(self, rules))
    }
}

/// TCP Hybla.
#[derive(Clone, Debug)]
pub struct Hybla {
    frame: Frame,
    config: Config,
    /// Minimum smoothed RTT in multiples of the reference RTT, at least 1.
    rho: f64,
    /// Minimum smoothed RTT.
    least: Option<Duration>,
    pace: Option<Rate>,
}

impl Hybla {
    /// A TCP Hybla control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        Self {
            frame: Frame::new(rules, config.recovery),
            config: config.clone(),
            rho: 1.0,
            least: None,
            pace: None,
        }
    }

    fn learn(&mut self, rtt: Option<Duration>) {
        if let Some(rtt) = rtt.filter(|r| self.least.is_none_or(|l| *r < l)) {
            self.least = Some(rtt);
            self.rho = (rtt.as_secs_f64() * 1000.0 / self.config.rtt0_ms).max(1.0);
        }
    }

    fn set_pace(&mut self, cx: &Cx<'_>) {
        if self.config.pacing {
            let bytes = self.frame.cwnd * f64::from(cx.path.smss);
            self.pace = cx.path.srtt.and_then(|r| Rate::from_bytes_over(bytes, r));
            self.pace = self.pace.filter(|r| r.bits_per_sec() > 0);
        }
    }
}

impl CongestionControl for Hybla {
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn pacing(&self) -> Option<Rate> {
        self.pace
    }
    fn policy(&self) -> Policy {
        Policy { rtt_samples: false, ..self.frame.policy() }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.frame.start(cx, start);
        match *start {
            Start::Established { rtt, syn_lost, .. } => {
                self.learn(cx.path.srtt.or(rtt));
                if !syn_lost && self.least.is_some() {
                    self.frame.cwnd = self.rho;
                }
                if self.config.scale_ssthresh {
                    self.frame.ssthresh *= self.rho;
                }
            }
            Start::Idle => {}
        }
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        self.learn(cx.path.srtt);
        if self.frame.acked(cx, ack) {
            let cwnd = self.frame.cwnd;
            if cx.path.phase != Phase::Open {
                self.frame.grow_like_reno(cx, ack);
            } else if self.frame.slow_start() {
                // RFC 3465's limit where growth is by bytes.
                let n = match self.frame.rules.growth {
                    CaGrowth::PerAck => 1.0,
                    CaGrowth::Abc => ack.acked.min(growth::abc_limit(&self.frame.rules, cx.path)),
                };
                let step = math::pow(2.0, self.rho.min(self.config.most_rho)) - 1.0;
                self.frame.grow_to(cx, (cwnd + n * step).min(self.frame.ssthresh));
            } else {
                let step = self.rho * self.rho * self.frame.credit(ack) / cwnd;
                self.frame.grow_to(cx, cwnd + step);
            }
        }
        self.set_pace(cx);
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        let half = self.frame.half(cx);
        self.frame.reduce(signal, half, half);
        self.set_pace(cx);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
        self.set_pace(cx);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        let half = self.frame.half(cx);
        self.frame.timeout(backoff, half);
        self.set_pace(cx);
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
        self.set_pace(cx);
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("rho", self.rho);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InitialSsthresh;
    use crate::rules::Rules;
    use crate::testing::Stage;

    fn started(config: Config, rtt_ms: u64, ssthresh: f64) -> Stage<Hybla> {
        assert_eq!(config.validate(), Ok(()));
        let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(ssthresh), ..Rules::NS2_2001 };
        let mut s = Stage::new(Hybla::new(&config, &rules), 1000.0);
        s.start(Some(Duration::from_millis(rtt_ms)));
        s.path.srtt = Some(Duration::from_millis(rtt_ms));
        s
    }

    #[test]
    fn a_reference_connection_is_reno() {
        let mut s = started(Config::default(), 25, 4.0);
        assert_eq!(s.cwnd(), 1.0);
        s.new_acks(3);
        assert_eq!(s.cwnd(), 4.0);
        s.new_acks(1);
        assert_eq!(s.cwnd(), 4.25);
        // A shorter RTT gives nothing away.
        assert_eq!(started(Config::default(), 5, 4.0).variable("rho"), 1.0);
    }

    #[test]
    fn growth_by_the_formulas_of_the_paper() {
        // RTT 100 ms: rho = 4. Slow start: 4, +15 each; then 16/cwnd.
        let mut s = started(Config::default(), 100, 40.0);
        assert_eq!((s.cwnd(), s.variable("rho")), (4.0, 4.0));
        s.new_acks(2);
        assert_eq!(s.cwnd(), 34.0);
        s.new_acks(1);
        assert_eq!(s.cwnd(), 40.0, "not beyond ssthresh");
        s.new_acks(1);
        assert_eq!(s.cwnd(), 40.4);
    }

    #[test]
    fn a_geostationary_link() {
        let mut s = started(Config::default(), 550, 1e9);
        assert_eq!((s.cwnd(), s.variable("rho")), (22.0, 22.0));
        s.new_acks(1);
        assert_eq!(s.cwnd(), 22.0 + 65_535.0, "the exponent stops at 16");
        let mut s = started(Config::default(), 550, 22.0);
        s.new_acks(1);
        assert_eq!(s.cwnd(), 22.0 + 22.0);
    }

    #[test]
    fn rho_follows_the_minimum_rtt_only() {
        let mut s = started(Config::default(), 500, 4.0);
        s.path.srtt = Some(Duration::from_millis(800));
        s.new_acks(1);
        assert_eq!(s.variable("rho"), 20.0);
        s.path.srtt = Some(Duration::from_millis(250));
        s.new_acks(1);
        assert_eq!(s.variable("rho"), 10.0);
    }

    #[test]
    fn losses_halve_and_a_timeout_is_repaired_like_renos() {
        let mut s = started(Config::default(), 500, 30.0);
        s.new_acks(1);
        assert_eq!(s.cwnd(), 30.0);
        s.congestion(Signal::Loss);
        assert_eq!(s.cwnd(), 15.0);
        s.recovered();
        s.timeout(1);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 7.0));
        s.new_acks(2);
        assert_eq!(s.cwnd(), 3.0);
    }

    #[test]
    fn options() {
        let s = started(Config { scale_ssthresh: true, ..Config::default() }, 100, 8.0);
        assert_eq!(s.ssthresh(), 32.0);
        let mut s = started(Config { pacing: true, ..Config::default() }, 100, 4.0);
        s.new_acks(1);
        // 4 + 16/4 segments of 1000 bytes in 0.1 s.
        assert_eq!(s.cc.pacing().map(Rate::bits_per_sec), Some(640_000));
        // With 1e-300 ms `rho` squared, and with it the window, would be infinite.
        for rtt0_ms in [0.0, -1.0, 1e-300, f64::NAN] {
            assert!(Config { rtt0_ms, ..Config::default() }.validate().is_err());
        }
        assert!(Config { most_rho: 0.0, ..Config::default() }.validate().is_err());
    }
}
