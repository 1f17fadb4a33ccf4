//! Shared by the property tests: the variants under test, patterns of faults, invariants of a sender.

pub(crate) mod one_flow;

use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Config as Control, CongestionControl, ControlOptions, NAMES, RecoveryMode, alg};
use skyhaul_tcp::config::{LossDetection, PRESETS, ProbeNegotiation};
use skyhaul_tcp::{Config, Flags, Mark};
use skyhaul_testkit::pair::PayloadStore;
use skyhaul_testkit::{Departure, Pair, SegmentEvent, Side, Verdict};

/// Cases per property: `SKYHAUL_CASES` overrides the default.
pub(crate) fn cases(default: u32) -> u32 {
    std::env::var("SKYHAUL_CASES").ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

/// An endpoint and an algorithm.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub(crate) name: String,
    pub(crate) config: Config,
    pub(crate) cc: Control,
}

impl Variant {
    pub(crate) fn is_peach(&self) -> bool {
        matches!(self.cc, Control::Peach(_) | Control::PeachPlus(_))
    }
}

pub(crate) fn peach(recovery: RecoveryMode) -> Control {
    Control::Peach(alg::peach::Config { recovery, ..Default::default() })
}

/// Every preset with every algorithm; Peach with every way of recovery and with probes negotiated, learnt and
/// switched off, and Peach and Peach+ as improved; Fast Start with a cached window.
pub(crate) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for preset in PRESETS {
        let config = Config::preset(preset).expect("a preset");
        for name in NAMES.iter().filter(|n| !matches!(**n, "peach" | "peach-plus")) {
            let cc = Control::by_name(name).expect("known");
            all.push(Variant { name: format!("{preset}/{name}"), config, cc });
        }
        for recovery in [RecoveryMode::Sack, RecoveryMode::NewReno, RecoveryMode::Reno] {
            for probes in [ProbeNegotiation::Negotiate, ProbeNegotiation::Paper, ProbeNegotiation::Off] {
                let name = format!("{preset}/peach-{recovery:?}-{probes:?}");
                all.push(Variant { name, config: Config { probes, ..config }, cc: peach(recovery) });
            }
        }
        // Its first transfer begins with a cached window.
        let cc = alg::fast_start::Config { cached_window: Some(20.0), ..Default::default() };
        all.push(Variant { name: format!("{preset}/fast-start-cached"), config, cc: Control::FastStart(cc) });
        let improved = alg::peach::Config::reading("improved").expect("a reading");
        all.push(Variant { name: format!("{preset}/peach-improved"), config, cc: Control::Peach(improved) });
        for reading in ["both-papers", "improved"] {
            let name = format!("{preset}/peach-plus-{reading}");
            let cc = alg::peach_plus::Config::reading(reading).expect("a reading");
            all.push(Variant { name, config, cc: Control::PeachPlus(cc) });
        }
    }
    all.extend(by_time(&all));
    all.extend(undoing(&all));
    all.extend(searching(&all));
    all
}

/// Endpoints "modern" and "host" with each recovery mode and a path MTU search.
fn searching(all: &[Variant]) -> Vec<Variant> {
    let names =
        ["modern/tahoe", "modern/reno", "modern/newreno", "modern/cubic", "host/prr", "host/prr-rack"];
    let named = all.iter().filter(|v| names.contains(&v.name.as_str()));
    let search = |c: Config| Config { mtu_search: true, ..c };
    named
        .map(|v| Variant { name: format!("{}-search", v.name), config: search(v.config), cc: v.cc.clone() })
        .collect()
}

/// Every algorithm with the endpoints of the oldest preset and of "rfc", with all options that undo reductions; newer presets
/// have these options anyway.
fn undoing(all: &[Variant]) -> Vec<Variant> {
    let named = |v: &&Variant| v.name.starts_with(PRESETS[0]) || v.name.starts_with("rfc/");
    let options =
        |c: Config| Config { dsack: true, dsack_undo: true, eifel: true, f_rto: true, timestamps: true, ..c };
    all.iter()
        .filter(named)
        .map(|v| Variant { name: format!("{}-undo", v.name), config: options(v.config), cc: v.cc.clone() })
        .collect()
}

/// The variants of the oldest and of the newest preset that repair losses with SACK, with RACK and the tail loss probe.
fn by_time(all: &[Variant]) -> Vec<Variant> {
    let ends = [PRESETS[0], PRESETS[PRESETS.len() - 1]];
    let fit = all.iter().filter(|v| {
        ends.iter().any(|p| v.name.starts_with(p))
            && v.cc.build(&v.config.rules).policy().recovery.uses_pipe()
    });
    fit.map(|v| Variant { name: format!("{}-rack", v.name), config: rack(v.config), cc: v.cc.clone() })
        .collect()
}

/// The same endpoint with RACK and the tail loss probe.
pub(crate) fn rack(config: Config) -> Config {
    Config { loss_detection: LossDetection::Rack, tail_loss_probe: true, ..config }
}

/// What happens to the segments of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// Segments lost among the first 64, by bit.
    pub(crate) mask: u64,
    /// Probabilities, in percent, of loss, duplication, delay from then on.
    pub(crate) lose: u8,
    pub(crate) double: u8,
    pub(crate) late: u8,
    pub(crate) seed: u64,
}

impl Pattern {
    pub(crate) const CLEAN: Self = Self { mask: 0, lose: 0, double: 0, late: 0, seed: 0 };

    pub(crate) fn bad(seed: u64) -> Self {
        Self { mask: 0, lose: 10, double: 5, late: 10, seed }
    }

    pub(crate) fn strategy() -> impl Strategy<Value = Self> {
        let mask = prop_oneof![Just(0u64), any::<u64>().prop_map(|x| x & (x >> 7)), any::<u64>()];
        let percent = || prop_oneof![3 => Just(0u8), 2 => 1..8u8, 1 => 8..40u8];
        (mask, percent(), percent(), percent(), any::<u64>())
            .prop_map(|(mask, lose, double, late, seed)| Self { mask, lose, double, late, seed })
    }

    pub(crate) fn faults(&self) -> impl FnMut(&Departure<'_>) -> Verdict + use<> {
        let p = self.clone();
        let mut rng = Rng::stream(p.seed, "faults");
        move |d| {
            let (a, b, c) = (rng.below(100), rng.below(100), rng.below(100));
            let by = rng.uniform(Duration::from_millis(200));
            if d.index < 64 && p.mask >> d.index & 1 == 1 {
                return Verdict::Lose;
            }
            if a < u64::from(p.lose) {
                Verdict::Lose
            } else if b < u64::from(p.double) {
                Verdict::Copies(1)
            } else if c < u64::from(p.late) {
                Verdict::Late(by)
            } else {
                Verdict::Deliver
            }
        }
    }
}

/// What must hold after every event: the invariants of the specification that a single sender can show.
pub(crate) fn check_sender_invariants<S: PayloadStore>() -> impl FnMut(&Pair<S>) {
    let mut seen = 0;
    move |p| {
        let new = &p.log[seen..];
        seen = p.log.len();
        for side in Side::BOTH {
            let s = p.conn(side).snapshot();
            assert!(s.cwnd >= 1.0 && s.cwnd.is_finite(), "cwnd {}", s.cwnd);
            assert!(s.una <= s.nxt);
            // pipe = FlightSize - sacked - lost + retransmitted can never wrap.
            assert!(s.pipe < 1 << 40, "pipe {}", s.pipe);
        }
        for e in new.iter().filter(|e| e.event == SegmentEvent::Sent) {
            let s = p.conn(e.side).snapshot();
            if e.segment.len == 0 || e.segment.mark != Mark::None {
                continue;
            }
            // The entry belongs to the event just processed, after which `una` cannot have advanced.
            let una = s.una;
            // The data of a SYN follows it.
            let syn = u64::from(e.segment.flags.has(Flags::SYN));
            let seq = u64::from(e.segment.seq.0.wrapping_sub(iss(e.side))) + syn;
            assert!(seq >= una, "data below SND.UNA: {} < {una}", seq);
        }
    }
}

pub(crate) fn iss(side: Side) -> u32 {
    match side {
        Side::Client => 0u32.wrapping_sub(5000),
        Side::Server => 0u32.wrapping_sub(3000),
    }
}

pub(crate) fn secs(s: f64) -> Instant {
    Instant::from_secs_f64(s)
}

/// The last 30 entries of the log and the state of both ends, for messages of failed tests.
pub(crate) fn explain<S: PayloadStore>(p: &Pair<S>) -> String {
    let mut out = String::new();
    for e in &p.log[p.log.len().saturating_sub(30)..] {
        let s = &e.segment;
        out += &format!("{:?} {:?} {:?} {:02x} {:?} ", e.at, e.side, e.event, s.flags.bits(), s.mark);
        out += &format!("{:?}+{} ack {:?} win {} {:?}\n", s.seq, s.len, s.ack, s.window, s.sack);
    }
    for side in Side::BOTH {
        let c = p.conn(side);
        out += &format!("{side:?} {:?} {:?} {:?}\n", c.state(), c.snapshot(), c.counters());
    }
    out
}
