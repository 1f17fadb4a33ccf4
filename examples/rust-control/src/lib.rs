//! Constant-rate growth: in congestion avoidance a connection gains the same rate per second whatever its RTT.
//!
//! Reno adds a segment per RTT, so the *rate* of a connection grows by `1/RTT²` segments/s per second: over a
//! geostationary link (550 ms) thirty times slower than at 100 ms. The constant-rate policy adds
//! `(RTT/reference)²` segments per RTT instead, that is `(RTT/reference)²/cwnd` per acknowledged segment: every
//! connection then grows like a Reno connection at the reference RTT. Losses leave the fraction `beta`.
//!
//! Sources: Floyd, "Connections with multiple congested gateways in packet-switched networks, part 1" (1991), which
//! proposes it; Henderson, Sahouria, McCanne, Katz, "On improving the fairness of TCP congestion avoidance"
//! (Globecom 1998), which finds that it costs fairness unless the increase is bounded: the option `most`.

use serde::Deserialize;
use skyhaul_base::Duration;
use skyhaul_cc::parts::frame::Frame;
use skyhaul_cc::parts::growth;
use skyhaul_cc::{Ack, CongestionControl, Controls, Cx, Policy, RecoveryMode, Rules, Signal, Start, Window};

/// Options, as a scenario writes them: `options = { reference-rtt-ms = 50 }`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// RTT at which growth is that of Reno, in ms (100).
    pub reference_rtt_ms: f64,
    /// Most segments added per RTT (20).
    pub most: f64,
    /// Fraction of the window that a loss leaves (0.5).
    pub beta: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { reference_rtt_ms: 100.0, most: 20.0, beta: 0.5 }
    }
}

/// Constant-rate growth.
#[derive(Clone, Debug)]
pub struct ConstantRate {
    /// Start, inflation, timeout and undo, as for all relatives of Reno.
    frame: Frame,
    config: Config,
}

impl ConstantRate {
    /// A control under the endpoint's window rules.
    ///
    /// # Errors
    /// Names the option that is outside its domain, and what to write instead.
    pub fn new(config: &Config, rules: &Rules) -> Result<Self, String> {
        if !(config.reference_rtt_ms.is_finite() && config.reference_rtt_ms > 0.0) {
            return Err("reference-rtt-ms is a time in milliseconds, above 0".into());
        }
        if !(config.most.is_finite() && config.most >= 1.0) {
            return Err("most is a number of segments per RTT, 1 (Reno) or more".into());
        }
        if !(config.beta > 0.0 && config.beta < 1.0) {
            return Err("beta is the fraction of the window that a loss leaves: between 0 and 1".into());
        }
        Ok(Self { frame: Frame::new(rules, RecoveryMode::Sack), config: config.clone() })
    }

    /// Segments added per RTT.
    fn step(&self, srtt: Option<Duration>) -> f64 {
        let rtts = srtt.map_or(1.0, |r| r.as_secs_f64() * 1000.0 / self.config.reference_rtt_ms);
        (rtts * rtts).clamp(1.0, self.config.most)
    }

    fn kept(&self, cx: &Cx<'_>) -> f64 {
        growth::kept(&self.frame.rules, cx.path, self.frame.cwnd, self.config.beta)
    }
}

impl CongestionControl for ConstantRate {
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
            let more = self.step(cx.path.srtt) * self.frame.credit(ack) / self.frame.cwnd;
            self.frame.grow_to(cx, self.frame.cwnd + more);
        }
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        let kept = self.kept(cx);
        self.frame.reduce(signal, kept, kept);
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        self.frame.recovered(cx);
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        let kept = self.kept(cx);
        self.frame.timeout(backoff, kept);
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        self.frame.undo(cx);
    }
}

/// The controls of this crate, for a program that passes them to the simulator: its scenarios may then have
/// `cc = "user:constant-rate"`. The version is part of the key of cached results; raise it whenever the control changes.
#[must_use]
pub fn controls() -> Controls {
    let mut controls = Controls::default();
    controls.provide_typed("constant-rate", env!("CARGO_PKG_VERSION"), ConstantRate::new);
    controls
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Instant;
    use skyhaul_cc::testing::ideal::{Ideal, Line};
    use skyhaul_cc::testing::{Stage, model};
    use skyhaul_cc::user::{self, OptionValue};
    use skyhaul_cc::{InitialSsthresh, user::Config as User};

    fn started(config: &Config, rtt_ms: u64, ssthresh: f64) -> Stage<ConstantRate> {
        let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(ssthresh), ..Rules::NS2_2001 };
        let mut s = Stage::new(ConstantRate::new(config, &rules).expect("good options"), 1000.0);
        s.start(None);
        s.path.srtt = Some(Duration::from_millis(rtt_ms));
        s
    }

    #[test]
    fn worked_by_hand() {
        // 200 ms at a reference of 100 ms: slow start to 4, then 4/cwnd per acknowledgement.
        let mut s = started(&Config::default(), 200, 4.0);
        s.new_acks(3);
        assert_eq!(s.cwnd(), 4.0);
        s.new_acks(1);
        assert_eq!(s.cwnd(), 5.0);
        // At the reference, and below: Reno.
        for rtt in [100, 10] {
            let mut s = started(&Config::default(), rtt, 4.0);
            s.new_acks(4);
            assert_eq!(s.cwnd(), 4.25);
        }
        // 550 ms would be 30.25 segments per RTT.
        let mut s = started(&Config::default(), 550, 4.0);
        s.new_acks(4);
        assert_eq!(s.cwnd(), 4.0 + 20.0 / 4.0);
        s.congestion(Signal::Loss);
        assert_eq!(s.cwnd(), 4.0, "9 segments, halved and cut to whole ones");
    }

    #[test]
    fn it_survives_random_events_of_a_sender() {
        for rules in [Rules::NS2_2001, Rules::NS2_2004, Rules::RFC, Rules::MODERN] {
            for seed in 0..100 {
                let build = || ConstantRate::new(&Config::default(), &rules).expect("good options");
                model::survive_copied(build, &rules, &model::ops(seed, 300));
            }
        }
    }

    #[test]
    fn over_a_long_path_it_is_back_sooner_than_reno() {
        let acked = |reference_rtt_ms| {
            let config = Config { reference_rtt_ms, ..Config::default() };
            let rules = Rules { initial_ssthresh: InitialSsthresh::Segments(8.0), ..Rules::NS2_2004 };
            let line = Line { rtt: Duration::from_millis(550), rate: None, buffer: 1000 };
            let control = ConstantRate::new(&config, &rules).expect("good options");
            let mut path = Ideal::new(control, line, 500.0);
            path.lose.insert(60);
            path.start();
            path.run_until(Instant::ZERO + Duration::from_secs(20));
            path.acked()
        };
        // With a reference above the RTT it is Reno.
        let (reno, constant_rate) = (acked(1000.0), acked(100.0));
        assert!(constant_rate > 4 * reno, "{constant_rate} segments against {reno}");
    }

    #[test]
    fn options_are_typed() {
        let mut config = User::new("constant-rate");
        assert_eq!(controls().check(&config), Ok(()));
        config.options.0.insert("beta".into(), OptionValue::Real(1.5));
        assert!(controls().check(&config).unwrap_err().to_string().contains("between 0 and 1"));
        let mut options = user::Options::default();
        options.0.insert("refrence-rtt-ms".into(), OptionValue::Integer(50));
        config.options = options;
        assert!(
            controls().check(&config).unwrap_err().to_string().contains("unknown field `refrence-rtt-ms`")
        );
    }
}
