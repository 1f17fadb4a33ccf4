//! TCP-Probing with Immediate Recovery.
//!
//! *Idea*: a loss does not reveal its cause. The sender therefore suspends data, including the retransmission, and
//! begins a *probe cycle*: an exchange of small probes that measures two round trips in a row. Lost probes prolong the
//! cycle, so that the sender stays silent as long as the problem lasts. If both round trips are short, the loss was an
//! error and the sender continues with its previous window (*Immediate Recovery*); otherwise it was congestion, and the
//! sender restarts from one segment. *Source*: Tsaoussidis, Badr, "TCP-Probing: towards an error control schema with
//! energy and throughput performance gains", ICNP 2000. The paper was not available, and no implementation was found:
//! this is a *reconstruction* from later papers of the authors. *Taken from them*: the suspension of data, the cycle of
//! two round trips, its prolongation when probes are lost, and the two outcomes. *Our choices*: what the round trips
//! are compared with (`compare`, `tolerance`); how long the sender waits for an answer (two smoothed RTTs, or one plus
//! four variations if that is longer, doubled after each failed cycle); the number of cycles after which it stops
//! waiting (`cycles`); and a probe payload of one byte, a copy of the last byte sent, where theirs is a bare header,
//! because a receiver that answers probes expects payload. With a peer that does not answer probes, the control is
//! NewReno.

use crate::action::{Policy, ProbeSource, RecoveryMode, Window};
use crate::alg::reno::{self, Reno};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Path, Phase, ProbeEvent, Signal, Start};
use crate::parts::fallback::{FallsBack, WithFallback};
use crate::parts::frame::{self, Frame};
use crate::parts::growth;
use crate::parts::inflation::Inflation;
use crate::rules::SharedRules;
use alloc::boxed::Box;
use skyhaul_base::{Duration, Instant};

/// RTT assumed if not even the handshake gave one.
const RTT_INIT: Duration = Duration::from_secs(1);

/// What both round trips of a probe cycle are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Compare {
    /// The smoothed RTT at the time of the loss.
    Smoothed,
    /// The minimum RTT of the connection.
    Least,
}

skyhaul_base::options! {
    /// Options of TCP-Probing.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// The RTT that neither round trip of a cycle may exceed for Immediate Recovery: `smoothed` (default) or `least`.
        compare: Compare = Compare::Smoothed,
        /// Fraction by which they may exceed it nevertheless (0).
        tolerance: f64 = 0.0,
        /// Number of failed probe cycles in a row after which the silence counts as congestion (6).
        cycles: u32 = 6,
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
    #[error("tolerance is a share of the round trip, 0 or more")]
    Tolerance,
    #[error("cycles: at least 1 has to be tried")]
    Cycles,
    #[error(transparent)]
    Recovery(#[from] frame::NoFastRecovery),
}

impl ControlOptions for Config {
    type Control = Box<TcpProbing>;
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(Invalid::Tolerance);
        }
        if self.cycles == 0 {
            return Err(Invalid::Cycles);
        }
        Ok(frame::check_recovery(self.recovery)?)
    }
    fn build(&self, rules: SharedRules) -> Box<TcpProbing> {
        Box::new(TcpProbing::new(self, rules))
    }
}

/// Maximum wait for the answer to a probe: a minute, as in RFC 6298 §2.5 for the RTO.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// TCP-Probing; NewReno if the peer does not answer probes.
pub type TcpProbing = WithFallback<Probing, Reno>;

/// A probe cycle in progress.
#[derive(Clone, Copy, Debug)]
struct Cycle {
    /// RTTs up to this are short.
    short: Duration,
    /// When the awaited probe was sent.
    sent_at: Instant,
    /// The first RTT, once it is known.
    first: Option<Duration>,
    /// Cycles that have failed since the loss.
    failed: u32,
}

/// TCP-Probing with a peer that answers probes.
#[derive(Clone, Debug)]
pub struct Probing {
    frame: Frame,
    config: Config,
    cycle: Option<Cycle>,
    /// RTT until data has given one: that of the handshake.
    assumed: Duration,
    /// Losses after which the sender continued as before, and losses after which it restarted.
    immediate: u32,
    congested: u32,
}

impl TcpProbing {
    /// A TCP-Probing control under the endpoint's window rules.
    #[must_use]
    pub fn new(config: &Config, rules: impl Into<SharedRules>) -> Self {
        let proper = Probing {
            frame: Frame::new(rules, config.recovery),
            config: config.clone(),
            cycle: None,
            assumed: RTT_INIT,
            immediate: 0,
            congested: 0,
        };
        proper.into()
    }
}

impl FallsBack<Reno> for Probing {
    fn afresh(&self) -> Reno {
        Reno::new(&reno::Config::default(), &self.frame.rules, self.config.recovery)
    }
    fn continued(&self, path: &Path) -> Reno {
        let mut reno = self.afresh();
        let cwnd = self.frame.deflated();
        let window = if self.cycle.is_some() || path.phase == Phase::Recovery {
            // This loss has caused no reduction, and its nature will remain unknown: it counts as congestion.
            let half = growth::half(&self.frame.rules, path, cwnd);
            Window { cwnd: half, ssthresh: half }
        } else {
            Window { cwnd, ssthresh: self.frame.ssthresh }
        };
        reno.take_over(window, Inflation::default());
        reno
    }
}

impl Probing {
    /// A loss was found: data is held back, and the first probe is sent.
    fn begin(&mut self, cx: &mut Cx<'_>) {
        let reference = match self.config.compare {
            Compare::Smoothed => cx.path.srtt,
            Compare::Least => cx.path.min_rtt,
        };
        let short = reference.unwrap_or(self.assumed).mul_f64(1.0 + self.config.tolerance);
        cx.act.hold = Some(true);
        self.probe(cx, Cycle { short, sent_at: cx.now, first: None, failed: 0 });
    }

    /// Sends a probe and waits for its answer.
    fn probe(&mut self, cx: &mut Cx<'_>, cycle: Cycle) {
        let srtt = cx.path.srtt.unwrap_or(self.assumed);
        let patience = (srtt * 2).max(srtt + cx.path.rttvar * 4) * (1 << cycle.failed.min(6));
        // An answer to a probe may acknowledge data that was held back for long, which counts as an RTT: without a
        // bound, the wait would feed on itself.
        let patience = patience.min(LONGEST_WAIT);
        cx.act.probe_now = Some((ProbeSource::OneByte, 1));
        cx.act.wake_at = Some(cx.now + patience);
        self.cycle = Some(Cycle { sent_at: cx.now, ..cycle });
    }

    /// The cycle is over: data transmission resumes.
    fn release(&mut self, cx: &mut Cx<'_>) {
        self.cycle = None;
        cx.act.hold = Some(false);
        cx.act.wake_at = Some(Instant::MAX);
    }

    /// The RTTs were long, or there were none: restarts with one segment, as after a timeout.
    fn start_over(&mut self, cx: &mut Cx<'_>) {
        self.congested += 1;
        self.release(cx);
        let half = self.frame.half(cx);
        self.frame.timeout(1, half);
        cx.act.rewind = true;
    }
}

impl CongestionControl for Probing {
    #[inline]
    fn window(&self) -> Window {
        self.frame.window()
    }
    fn policy(&self) -> Policy {
        Policy { probes: true, rtt_samples: false, ..self.frame.policy() }
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        self.frame.start(cx, start);
        if let Start::Established { rtt: Some(rtt), .. } = *start {
            self.assumed = rtt;
        }
    }
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        if self.frame.acked(cx, ack) {
            self.frame.grow_like_reno(cx, ack);
        }
    }
    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        let ProbeEvent::Acked { stale: false, .. } = event else { return };
        let Some(cycle) = self.cycle else { return };
        let rtt = cx.now - cycle.sent_at;
        match cycle.first {
            None => self.probe(cx, Cycle { first: Some(rtt), ..cycle }),
            // Neither RTT is longer than usual.
            Some(first) if first.max(rtt) <= cycle.short => {
                self.immediate += 1;
                self.release(cx);
            }
            Some(_) => self.start_over(cx),
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        if signal == Signal::Ecn {
            let half = self.frame.half(cx);
            self.frame.reduce(signal, half, half);
            return;
        }
        // The window does not change until the probes are answered.
        let (ssthresh, cwnd) = (self.frame.ssthresh, self.frame.deflated());
        self.frame.reduce(signal, ssthresh, cwnd);
        self.begin(cx);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
        if self.cycle.is_some() {
            // The missing data has arrived: there is nothing left to probe for.
            self.release(cx);
        }
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, _backoff: u32) {
        self.frame.remember();
        self.frame.reset(self.frame.deflated());
        self.begin(cx);
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
        if self.cycle.is_some() {
            self.release(cx);
        }
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let Some(cycle) = self.cycle else { return };
        let failed = cycle.failed + 1;
        if failed >= self.config.cycles {
            self.start_over(cx);
        } else {
            // "Two in a row": the cycle restarts.
            self.probe(cx, Cycle { first: None, failed, ..cycle });
        }
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("probing", f64::from(u8::from(self.cycle.is_some())));
        out("immediate", f64::from(self.immediate));
        out("congested", f64::from(self.congested));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;
    use crate::testing::Stage;
    use crate::{AckKind, Actions};

    const RTT: Duration = Duration::from_millis(500);

    fn at(cwnd: f64, config: &Config) -> Stage<TcpProbing> {
        assert_eq!(config.validate(), Ok(()));
        let rules = Rules { initial_ssthresh: crate::InitialSsthresh::Segments(cwnd), ..Rules::NS2_2001 };
        let mut s = Stage::new(TcpProbing::new(config, &rules), 64.0);
        s.start(None);
        s.new_acks(cwnd as u32 - 1);
        assert_eq!(s.cwnd(), cwnd);
        s.path.set_in_flight(cwnd);
        (s.path.srtt, s.path.min_rtt) = (Some(RTT), Some(RTT));
        s
    }
    fn probe_at(s: &Stage<TcpProbing>, patience: u64) -> Actions {
        Actions {
            probe_now: Some((ProbeSource::OneByte, 1)),
            wake_at: Some(s.now + Duration::from_millis(patience)),
            ..Actions::default()
        }
    }
    fn answer_after(s: &mut Stage<TcpProbing>, ms: u64) -> Actions {
        s.now += Duration::from_millis(ms);
        s.probe(1)
    }
    const RELEASED: Actions = Actions {
        probe_now: None,
        train: None,
        stop_probes: false,
        wake_at: Some(Instant::MAX),
        retransmit_head: false,
        hold: Some(false),
        rewind: false,
    };

    #[test]
    fn two_short_round_trips_and_the_window_is_what_it_was() {
        let mut s = at(20.0, &Config::default());
        s.duplicates(1..=3);
        let act = s.congestion(Signal::Loss);
        assert_eq!(act, Actions { hold: Some(true), ..probe_at(&s, 1000) });
        s.duplicates(4..=19);
        let act = answer_after(&mut s, 500);
        assert_eq!(act, probe_at(&s, 1000), "the second one, and data waits");
        assert_eq!(answer_after(&mut s, 490), RELEASED);
        // Three and sixteen duplicates: as many segments may be sent as have left the network.
        assert_eq!(s.cwnd(), 20.0 + 3.0 + 16.0);
        s.ack(AckKind::Full, 20.0);
        s.recovered();
        assert_eq!((s.cwnd(), s.ssthresh()), (20.0, 20.0));
        assert_eq!((s.variable("immediate"), s.variable("congested")), (1.0, 0.0));
    }

    #[test]
    fn a_long_one_starts_over() {
        for (first, second) in [(501, 400), (400, 501)] {
            let mut s = at(20.0, &Config::default());
            s.congestion(Signal::Loss);
            answer_after(&mut s, first);
            assert_eq!(answer_after(&mut s, second), Actions { rewind: true, ..RELEASED });
            assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 10.0));
            assert_eq!(s.variable("congested"), 1.0);
            assert_eq!(answer_after(&mut s, 1), Actions::default(), "an answer that nobody waits for");
        }
    }

    #[test]
    fn lost_probes_prolong_the_silence() {
        let mut s = at(20.0, &Config { cycles: 3, ..Config::default() });
        s.congestion(Signal::Loss);
        answer_after(&mut s, 500);
        s.now += Duration::from_secs(1);
        let act = s.wake();
        assert_eq!(act, probe_at(&s, 2000), "both anew, and twice the patience");
        answer_after(&mut s, 450);
        assert_eq!(answer_after(&mut s, 450), RELEASED, "two in a row at last");
        s.congestion(Signal::Loss);
        for patience in [2000, 4000] {
            let act = s.wake();
            assert_eq!(act, probe_at(&s, patience));
        }
        assert_eq!(s.wake(), Actions { rewind: true, ..RELEASED }, "three cycles in vain are congestion");
        assert_eq!(s.wake(), Actions::default());
    }

    #[test]
    fn a_timeout_starts_a_probe_cycle_as_well() {
        let mut s = at(20.0, &Config::default());
        assert_eq!(s.timeout(1).hold, Some(true));
        assert_eq!(s.cwnd(), 20.0);
        answer_after(&mut s, 300);
        assert_eq!(answer_after(&mut s, 300), RELEASED);
        assert_eq!(s.cwnd(), 20.0);
        s.timeout(2);
        answer_after(&mut s, 600);
        answer_after(&mut s, 300);
        assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 10.0));
    }

    #[test]
    fn options_compare_and_tolerance() {
        let released = |config: Config, ms| {
            let mut s = at(20.0, &config);
            s.path.srtt = Some(RTT * 2);
            s.congestion(Signal::Loss);
            answer_after(&mut s, ms);
            answer_after(&mut s, ms) == RELEASED
        };
        let least = |tolerance| Config { compare: Compare::Least, tolerance, ..Config::default() };
        assert!(released(Config::default(), 1000) && !released(Config::default(), 1001));
        assert!(released(least(0.0), 500) && !released(least(0.0), 501));
        assert!(released(least(0.5), 750) && !released(least(0.5), 751));
        assert_eq!(least(-0.1).validate(), Err(Invalid::Tolerance));
        assert_eq!(Config { cycles: 0, ..Config::default() }.validate(), Err(Invalid::Cycles));
        assert!(Config { recovery: RecoveryMode::Tahoe, ..Config::default() }.validate().is_err());
    }

    #[test]
    fn what_was_missing_arrives_meanwhile() {
        let mut s = at(20.0, &Config::default());
        s.congestion(Signal::Loss);
        s.ack(AckKind::Full, 20.0);
        assert_eq!(s.recovered(), RELEASED);
        s.congestion(Signal::Loss);
        let act = s.unsupported();
        assert_eq!(act.hold, Some(false), "a peer that answers nothing: NewReno goes on");
        assert!(!s.cc.policy().probes);
        // The nature of the loss remains unknown: it counts as congestion, and the end of the recovery does not restore
        // the window.
        assert_eq!((s.cwnd(), s.ssthresh()), (10.0, 10.0));
        s.recovered();
        assert_eq!(s.cwnd(), 10.0);
        // An ECN echo needs no probe cycle.
        let mut s = at(20.0, &Config::default());
        assert_eq!(s.congestion(Signal::Ecn), Actions::default());
        assert_eq!(s.cwnd(), 10.0);
    }
}
