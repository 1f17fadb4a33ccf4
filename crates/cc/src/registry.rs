//! The list of algorithms. In the code, a new algorithm needs its own file, its `mod` line in `alg`, and here a line of
//! [`Config`] with its import.

use crate::action::{Actions, Policy, Priority, Window};
use crate::alg::{
    bbr, bbr3, cubic, fast_start, gaimd, hark, hybla, peach, peach_plus, prague, reno, scps_like,
    tcp_probing, tcp_real, tibet, vegas, westwood, westwood_abse, westwood_plus,
};
use crate::control::{CongestionControl, ControlOptions};
use crate::event::{Ack, Cx, Facts, Lost, ProbeEvent, Sent, Signal, Start, Transmit};
use crate::rules::SharedRules;
use crate::user;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use skyhaul_base::{Instant, Rate, Rng};

skyhaul_base::kinds! {
    each;
    /// A congestion control with its options. In files: `cc = "name"` or `cc = { name = "…", option = … }`. For `peach` and
    /// `peach-plus`, `reading = "…"` names a set of options (`listing`, `both-papers`, `improved`; `printed`, `both-papers`,
    /// `improved`), and options beside it depart from that set.
    #[derive(Clone, Debug, PartialEq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "name"))]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Config {
        /// Tahoe: fast retransmit, then slow start (Jacobson 1988).
        "tahoe" Tahoe(reno::member::Tahoe),
        /// Reno: fast recovery until the first acknowledgement of new data (RFC 2581).
        "reno" Reno(reno::member::Reno),
        /// NewReno: fast recovery that continues after partial acknowledgements (RFC 6582).
        "newreno" NewReno(reno::member::NewReno),
        /// NewReno with SACK recovery (RFC 6675); the TCP-Peach paper calls it "Reno".
        "sack" Sack(reno::member::Sack),
        /// SACK with proportional rate reduction (RFC 9937).
        "prr" Prr(reno::member::Prr),
        /// TCP Vegas (Brakmo, Peterson 1994): adjusts the window to keep a few segments queued.
        "vegas" Vegas(vegas::Config),
        /// BBR version 1 (Cardwell et al. 2016): paces at the measured bottleneck rate, with a window derived from the
        /// minimum RTT.
        "bbr" Bbr(bbr::Config),
        /// BBR version 3 (draft-ietf-ccwg-bbr-06): BBR with limits learnt from losses.
        "bbr3" Bbr3(bbr3::Config),
        /// GAIMD (Yang, Lam 2000): Reno with a configurable increase and decrease.
        "gaimd" Gaimd(gaimd::Config),
        /// TCP Westwood (Mascolo et al. 2001): after a loss, sets the window from the rate of acknowledgements.
        "westwood" Westwood(westwood::Config),
        /// TCP Westwood+ (Grieco, Mascolo 2004): Westwood with one rate sample per RTT.
        "westwood-plus" WestwoodPlus(westwood_plus::Config),
        /// TCP Westwood with adaptive bandwidth share estimation, ABSE (Wang et al. 2002).
        "westwood-abse" WestwoodAbse(westwood_abse::Config),
        /// TCP TIBET (Capone, Martignon 2001): Westwood with separate filters for segment lengths and intervals.
        "tibet" Tibet(tibet::Config),
        /// TCP Hybla (Caini, Firrincieli 2004): makes growth independent of the RTT.
        "hybla" Hybla(hybla::Config),
        /// SCPS-TP's rate control and response to corruption: a loss does not reduce the window.
        "scps-like" ScpsLike(scps_like::Config),
        /// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
        "cubic" Cubic(cubic::Config),
        /// TCP Prague (draft-briscoe-iccrg-prague-congestion-control): reduces the window by half the share of ECN-marked packets.
        "prague" Prague(prague::Config),
        /// TCP-Probing (Tsaoussidis, Badr 2000): after a loss, suspends data and probes the path.
        "tcp-probing" TcpProbing(tcp_probing::Config),
        /// TCP-Real (Zhang, Tsaoussidis 2001): adjusts the window to the arrival rate that the receiver measures.
        "tcp-real" TcpReal(tcp_real::Config),
        /// TCP Fast Start (Padmanabhan, Katz 1998): starts with a cached window, in low-priority data.
        "fast-start" FastStart(fast_start::Config),
        /// TCP-Peach (Akyildiz, Morabito, Palazzo 2001): low-priority dummy segments probe for spare capacity.
        "peach" Peach(peach::Config),
        /// TCP-Peach+ (Akyildiz, Zhang, Fang 2002): TCP-Peach whose probes carry unacknowledged data.
        "peach-plus" PeachPlus(peach_plus::Config),
        /// Hark, this project's own: adjusts the window by delay and low-priority probes; a loss causes no reduction.
        "hark" Hark(hark::Config),
    } + {
        /// A user-defined control, provided by the program that runs the scenario.
        rename = "user" User(user::Config),
    }
    /// Why a configuration is refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[expect(missing_docs, reason = "the error of each algorithm documents itself")]
    pub error Invalid = ControlOptions::Invalid;
    /// A congestion control: built in, or a user's own.
    ///
    /// An enum calls the built-in ones without a function table; the single variant `User` is for plug-ins.
    #[derive(Debug)]
    #[expect(missing_docs, reason = "each algorithm documents itself")]
    pub enum Algorithm = ControlOptions::Control;
}

impl Config {
    /// The default configuration of the algorithm called `name`; `user:NAME` is a user-defined control without options.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name.strip_prefix(user::PREFIX) {
            Some(own) => Some(Self::User(user::Config::new(own))),
            None => each!(named name, Self),
        }
    }
    /// The algorithm's name in files; `user` for every user-defined control.
    #[must_use]
    pub fn name(&self) -> &'static str {
        each!(self, Self => name)
    }
    /// The short form in files and in tables: the name, or `user:NAME`.
    #[must_use]
    pub fn label(&self) -> Cow<'static, str> {
        match self {
            Self::User(own) => Cow::Owned([user::PREFIX, &own.control].concat()),
            built_in => Cow::Borrowed(built_in.name()),
        }
    }
    /// The algorithm in one line: its usual name, the source, the idea.
    #[must_use]
    pub fn about(&self) -> &'static str {
        each!(self, Self => doc).trim_ascii_start()
    }
    /// The usual name, such as `TCP-Peach`: the beginning of [`Self::about`].
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.about().split(&['(', ':', ',', '.']).next().unwrap_or_default().trim_ascii_end()
    }
    /// Whether a connection starts by slow start, at most doubling its window in a round trip.
    #[must_use]
    pub fn starts_slowly(&self) -> bool {
        fn of<C: ControlOptions>(_: &C) -> bool {
            C::SLOW_START
        }
        each!(self, Config(c) => of(c))
    }
    /// The named readings of the control: name in files, what it follows, and its options.
    #[must_use]
    pub fn readings(&self) -> Vec<(&'static str, &'static str, Self)> {
        fn all<C: ControlOptions>(
            _: &C,
            config: fn(C) -> Config,
        ) -> Vec<(&'static str, &'static str, Config)> {
            C::READINGS.iter().map(|r| (r.name, r.about, config((r.options)()))).collect()
        }
        each!(self, Config(c), Config(of) => all(c, of))
    }
    /// Refuses options that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The error displays as a sentence that names the option and says what to write instead.
    pub fn validate(&self) -> Result<(), Invalid> {
        each!(self, Config(c), Invalid(refuse) => c.validate().map_err(refuse))
    }
    /// The built-in control's initial requirements on the sender. `None` for a user-defined control, whose provider
    /// knows them.
    #[must_use]
    pub fn policy(&self, rules: impl Into<SharedRules>) -> Option<Policy> {
        match self {
            Self::User(_) => None,
            built_in => Some(built_in.build(rules).policy()),
        }
    }
    /// Builds a built-in control. Connections built with one [`SharedRules`] share it.
    ///
    /// # Panics
    /// If the control is user-defined: only [`Controls`](crate::Controls) can build those.
    #[must_use]
    pub fn build(&self, rules: impl Into<SharedRules>) -> Algorithm {
        let rules = rules.into();
        each!(self, Config(c), Algorithm(of) => of(c.build(rules)))
    }
}

impl Algorithm {
    /// A control that is not built in.
    pub fn custom(control: impl CongestionControl + 'static) -> Self {
        let control: Box<dyn CongestionControl> = Box::new(control);
        control.into()
    }
    /// Window and pacing rate in one call.
    #[inline]
    #[must_use]
    pub fn decision(&self) -> (Window, Option<Rate>) {
        each!(self, Self(c) => (c.window(), c.pacing()))
    }
    /// [`CongestionControl::on_ack`] and [`Self::decision`] in one call. The facts are computed separately for each
    /// algorithm: if its `on_ack` is inlined, facts that it does not use cost nothing.
    #[inline(always)]
    pub fn acknowledged(
        &mut self,
        (now, rng, act): (Instant, &mut Rng, &mut Actions),
        facts: &impl Facts,
    ) -> (Window, Option<Rate>) {
        each!(self, Self(c) => {
            let path = facts.path();
            c.on_ack(&mut Cx { now, path: &path, rng, act }, &facts.ack());
            (c.window(), c.pacing())
        })
    }
}

impl From<Box<dyn CongestionControl>> for Algorithm {
    /// A control that is not built in. The outer box keeps all variants at one pointer.
    fn from(control: Box<dyn CongestionControl>) -> Self {
        Self::User(Box::new(control))
    }
}

impl CongestionControl for Algorithm {
    #[inline]
    fn window(&self) -> Window {
        each!(self, Self(c) => c.window())
    }
    #[inline]
    fn pacing(&self) -> Option<Rate> {
        each!(self, Self(c) => c.pacing())
    }
    #[inline]
    fn policy(&self) -> Policy {
        each!(self, Self(c) => c.policy())
    }
    #[inline]
    fn priority(&self, offset: u64, rtx: bool) -> Priority {
        each!(self, Self(c) => c.priority(offset, rtx))
    }
    fn on_start(&mut self, cx: &mut Cx<'_>, start: &Start) {
        each!(self, Self(c) => c.on_start(cx, start))
    }
    #[inline]
    fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        each!(self, Self(c) => c.on_ack(cx, ack))
    }
    fn on_probe(&mut self, cx: &mut Cx<'_>, event: ProbeEvent) {
        each!(self, Self(c) => c.on_probe(cx, event))
    }
    fn on_congestion(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        each!(self, Self(c) => c.on_congestion(cx, signal))
    }
    fn on_recovered(&mut self, cx: &mut Cx<'_>) {
        each!(self, Self(c) => c.on_recovered(cx))
    }
    fn on_timeout(&mut self, cx: &mut Cx<'_>, backoff: u32) {
        each!(self, Self(c) => c.on_timeout(cx, backoff))
    }
    fn on_undo(&mut self, cx: &mut Cx<'_>) {
        each!(self, Self(c) => c.on_undo(cx))
    }
    fn on_lost(&mut self, cx: &mut Cx<'_>, lost: &Lost) {
        each!(self, Self(c) => c.on_lost(cx, lost))
    }
    fn on_sent(&mut self, cx: &mut Cx<'_>, sent: &Sent) {
        each!(self, Self(c) => c.on_sent(cx, sent))
    }
    #[inline]
    fn wants_transmit(&self) -> bool {
        each!(self, Self(c) => c.wants_transmit())
    }
    #[inline]
    fn on_transmit(&mut self, cx: &mut Cx<'_>, tx: &Transmit) {
        each!(self, Self(c) => c.on_transmit(cx, tx))
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        each!(self, Self(c) => c.on_wake(cx))
    }
    fn bandwidth_estimate(&self, smss: u32) -> Option<Rate> {
        each!(self, Self(c) => c.bandwidth_estimate(smss))
    }
    fn telemetry(&self, out: &mut dyn FnMut(&'static str, f64)) {
        each!(self, Self(c) => c.telemetry(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecoveryMode;
    use crate::rules::Rules;

    #[test]
    fn an_algorithm_takes_the_room_it_needs() {
        use core::mem::size_of;
        assert_eq!(size_of::<Algorithm>(), 2 * size_of::<usize>());
        // Bytes per connection of the most used algorithms.
        assert!(size_of::<reno::Reno>() <= 72, "{}", size_of::<reno::Reno>());
        assert!(size_of::<peach::Peach>() <= 152, "{}", size_of::<peach::Peach>());
        assert!(size_of::<peach_plus::PeachPlus>() <= 200, "{}", size_of::<peach_plus::PeachPlus>());
        assert!(size_of::<cubic::Cubic>() <= 320, "{}", size_of::<cubic::Cubic>());
    }

    #[test]
    fn every_name_leads_to_its_algorithm_and_back() {
        for name in NAMES {
            let config = Config::by_name(name).expect("a listed name");
            assert_eq!(config.name(), *name);
            assert_eq!(config.validate(), Ok(()));
            let cwnd = config.build(&Rules::MODERN).window().cwnd;
            assert!(cwnd >= 1.0, "{name}: {cwnd}");
        }
        assert_eq!(Config::by_name("no-such"), None);
        let titles = ["peach", "peach-plus", "cubic", "bbr", "sack"]
            .map(|name| Config::by_name(name).expect("a listed name").title());
        assert_eq!(
            titles,
            ["TCP-Peach", "TCP-Peach+", "CUBIC", "BBR version 1", "NewReno with SACK recovery"]
        );
        let own = Config::by_name("user:mine").expect("the short form");
        assert_eq!((own.name(), &*own.label()), ("user", "user:mine"));
        assert_eq!(own.validate(), Ok(()));
        assert_eq!(Config::by_name("sack").expect("listed").label(), "sack");
    }

    #[test]
    fn readings_differ_and_are_accepted() {
        let mut all: Vec<Config> = Vec::new();
        for control in NAMES {
            for (name, _, config) in Config::by_name(control).expect("a listed name").readings() {
                assert_eq!((config.name(), config.validate()), (*control, Ok(())), "{name}");
                assert!(!all.contains(&config), "{control} {name}");
                all.push(config);
            }
        }
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn a_users_own_algorithm_is_dispatched_like_a_built_in_one() {
        let own = vegas::Vegas::new(&vegas::Config::default(), &Rules::RFC);
        let custom = Algorithm::custom(own.clone());
        assert_eq!((custom.window(), custom.policy()), (own.window(), own.policy()));
        assert_eq!(Algorithm::Vegas(Box::new(own)).policy().recovery, RecoveryMode::Reno);
    }

    #[cfg(feature = "serde")]
    mod files {
        use super::*;
        use alloc::format;

        #[test]
        fn defaults_survive_a_round_trip() {
            for name in NAMES {
                let config = Config::by_name(name).expect("a listed name");
                let text = serde_json::to_string(&config).expect("writes");
                assert_eq!(serde_json::from_str::<Config>(&text).expect(name), config, "{text}");
                // The name alone suffices.
                let short = format!(r#"{{"name":"{name}"}}"#);
                assert_eq!(serde_json::from_str::<Config>(&short).expect(name), config);
            }
        }

        #[test]
        fn options_are_read_by_their_names() {
            let text = r#"{"name":"peach","recovery":"newreno","recovery-end":"triggering-segment","on-rto":"slow",
                "nackseg":"flight-size","wdsn-on-loss":"accumulate","probe-cap":32}"#;
            let Ok(Config::Peach(c)) = serde_json::from_str(text) else { panic!("peach") };
            assert_eq!(c.recovery, RecoveryMode::NewReno);
            assert_eq!(c.recovery_end, crate::RecoveryEnd::TriggeringSegment);
            assert_eq!(c.on_rto, peach::Opening::Slow);
            assert_eq!(c.nackseg, Some(peach::Nackseg::FlightSize));
            assert_eq!(c.wdsn_on_loss, peach::WdsnOnLoss::Accumulate);
            assert_eq!(c.probe_cap, Some(32));
            let text = r#"{"name":"reno","initial-window":{"segments":2.0},"max-burst":4}"#;
            let Ok(Config::Reno(c)) = serde_json::from_str(text) else { panic!("reno") };
            assert_eq!((c.0.initial_window, c.0.max_burst), (Some(crate::InitialWindow::Segments(2.0)), 4));
            let text = r#"{"name":"vegas","flavour":"linux","alpha":3.0}"#;
            let Ok(Config::Vegas(c)) = serde_json::from_str(text) else { panic!("vegas") };
            assert_eq!((c.flavour, c.alpha), (vegas::Flavour::Linux, Some(3.0)));
        }

        /// RFC 5681 §3.2: inflation stands for segments that have left the network. The threshold of a timeout within a fast
        /// recovery follows from the window without inflation, however many duplicate acknowledgements came.
        #[test]
        fn a_timeout_within_a_recovery_halves_no_inflation() {
            // ns-2's Vegas keeps the inflation in the window that it halves.
            let exempt = ["vegas"];
            let rules = Rules::NS2_2001;
            let mut tried = Vec::new();
            for name in NAMES.iter().filter(|name| !exempt.contains(name)) {
                for recovery in [r#","recovery":"newreno""#, r#","recovery":"reno""#, ""] {
                    let text = format!(r#"{{"name":"{name}"{recovery}}}"#);
                    // Some controls have no such option, and a few need others besides.
                    let Ok(config) = serde_json::from_str::<Config>(&text) else { continue };
                    let policy = config.build(&rules).policy().recovery;
                    if !matches!(policy, RecoveryMode::Reno | RecoveryMode::NewReno) {
                        continue;
                    }
                    let threshold = |duplicates: u32| {
                        let mut s = crate::testing::Stage::new(config.build(&rules), 1000.0);
                        s.path.srtt = Some(skyhaul_base::Duration::from_millis(500));
                        s.path.min_rtt = s.path.srtt;
                        s.start(None);
                        s.new_acks(40);
                        s.path.set_in_flight(s.cwnd());
                        s.congestion(crate::Signal::Loss);
                        s.duplicates(4..=3 + duplicates);
                        s.timeout(1);
                        s.ssthresh()
                    };
                    assert_eq!(threshold(100), threshold(0), "{text}");
                    tried.push(*name);
                }
            }
            for name in ["reno", "newreno", "gaimd", "hybla", "cubic", "fast-start", "peach"] {
                assert!(tried.contains(&name), "{name} was not tried: {tried:?}");
            }
        }

        #[test]
        fn misspelt_options_and_names_are_refused() {
            for wrong in [
                r#"{"name":"peach","recovry":"sack"}"#,
                r#"{"name":"peach","recovery":"quick"}"#,
                r#"{"name":"bbr","min_rtt_window":5}"#,
                r#"{"name":"newvegas"}"#,
            ] {
                assert!(serde_json::from_str::<Config>(wrong).is_err(), "{wrong}");
            }
        }

        #[test]
        fn a_users_own_has_a_name_and_options() {
            let text =
                r#"{"name":"user","control":"mine","options":{"a":1,"b":0.5,"deep":{"c":["x",true]}}}"#;
            let config: Config = serde_json::from_str(text).expect("a user's own");
            assert_eq!(serde_json::to_string(&config).expect("writes"), text);
            let short: Config =
                serde_json::from_str(r#"{"name":"user","control":"mine"}"#).expect("no options");
            assert_eq!(Some(short), Config::by_name("user:mine"));
            for wrong in [r#"{"name":"user"}"#, r#"{"name":"user","control":"mine","a":1}"#] {
                assert!(serde_json::from_str::<Config>(wrong).is_err(), "{wrong}");
            }
        }

        #[cfg(feature = "schema")]
        #[test]
        fn the_schema_lists_every_name() {
            let schema = format!("{:?}", schemars::schema_for!(Config));
            for name in NAMES {
                assert!(schema.contains(&format!("{name:?}")), "{name}");
            }
            assert!(schema.contains("wdsn-on-loss"));
        }
    }
}
