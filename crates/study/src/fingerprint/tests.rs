//! The reference runs.

use super::*;
use skyhaul_cc::{Ack, CongestionControl, Controls, Cx, Policy, Priority, RecoveryMode, Signal, Window};
use skyhaul_scenario::{ScenarioError, no_files, resolve_text};
use skyhaul_trace::Digest;

const REFERENCE: &str = r#"
    schema = 1
    duration = "25 s"
    [links.sat]
    packet = "1000 B"
    rate = "40 packets/s"
    queue = { kind = "drop-tail", limit = "10 packets" }
    error = { kind = "per", p = 5e-3 }
    [flows.a]
    path = ["sat"]
    count = 2
"#;

/// A part, and what it changes in the reference.
type Case = (&'static str, &'static [&'static str]);

const LAST: &str = "links.last={ rate = '400 kbit/s', delay = '10 ms' }";
const GATEWAY: &str = "gateways.g1={ behind = 'sat' }";
const OVER_TWO: &str = "flows.a.path=['sat', 'last']";
const FIRST: &str = "links.first={ rate = '400 kbit/s', delay = '10 ms' }";
const GATEWAYS: &str = "gateways={ g1 = { behind = 'first' }, g2 = { behind = 'sat' } }";
const OVER_THREE: &str = "flows.a.path=['first', 'sat', 'last']";
const CBR: &str = "flows.a.app={ kind = 'cbr', rate = '200 kbit/s', packet = '1000 B' }";
const MARKING_BACK: &str =
    "links.sat.reverse={ rate = '4 kbit/s', queue = { kind = 'red', limit = '10 packets' } }";
const SLOW_BACK: &str = "links.sat.reverse.rate=4 kbit/s";
const ORBIT: &str = "links.sat.orbit={ from = 'London', to = 'Madrid', constellation = 'leo550' }";

const CASES: &[Case] = &[
    // Applications.
    ("app arrivals", &["flows.a.app={ kind = 'arrivals', rate = '1 /s', size = '20 kB' }"]),
    ("app bulk", &[]),
    ("app cbr", &["flows.a.transport=udp", CBR]),
    (
        "app on-off",
        &[
            "flows.a.transport=udp",
            "flows.a.app={ kind = 'on-off', rate = '300 kbit/s', packet = '1000 B', on = { exponential = '1 s' }, off = { exponential = '1 s' } }",
        ],
    ),
    ("app pages", &["flows.a.app={ kind = 'pages', segments = 50, idle = '1 s' }"]),
    ("app video", &["flows.a.transport=udp", "flows.a.app={ kind = 'video', movie = 'jp-medium' }"]),
    // Transports.
    ("transport ssvp", &["flows.a.transport=ssvp", CBR]),
    ("transport tfrc", &["flows.a.transport=tfrc", CBR]),
    ("transport udp", &["flows.a.transport=udp", CBR]),
    // Gateways.
    ("chain spoof", &[LAST, GATEWAY, OVER_TWO, "flows.a.chain={ kind = 'spoof', gateways = ['g1'] }"]),
    ("chain split2", &[LAST, GATEWAY, OVER_TWO, "flows.a.chain={ kind = 'split2', gateways = ['g1'] }"]),
    (
        "chain split3",
        &[FIRST, LAST, GATEWAYS, OVER_THREE, "flows.a.chain={ kind = 'split3', gateways = ['g1', 'g2'] }"],
    ),
    (
        "transport xtp-like",
        &[
            FIRST,
            LAST,
            GATEWAYS,
            OVER_THREE,
            "flows.a.chain={ kind = 'split3', gateways = ['g1', 'g2'], legs = { g1 = { transport = { kind = 'xtp-like', rate = '300 kbit/s' } } } }",
        ],
    ),
    (
        "header-compression scps",
        &[
            FIRST,
            LAST,
            GATEWAYS,
            OVER_THREE,
            "flows.a.chain={ kind = 'split3', gateways = ['g1', 'g2'], legs = { g1 = { header-compression = 'scps' } } }",
        ],
    ),
    (
        "header-compression vj",
        &[
            FIRST,
            LAST,
            GATEWAYS,
            OVER_THREE,
            "flows.a.chain={ kind = 'split3', gateways = ['g1', 'g2'], legs = { g1 = { header-compression = 'vj', endpoint = { timestamps = false, rtt-source = 'every-ack' } } } }",
        ],
    ),
    ("repair", &["repair.pair={ links = ['sat'] }"]),
    // Endpoints.
    ("ack-cc rfc3449", &[MARKING_BACK, "flows.a.endpoint.ecn=ask", "flows.a.endpoint.ack-cc=rfc3449"]),
    ("ack-cc rfc5690", &["flows.a.endpoint.ack-cc=rfc5690"]),
    (
        "ecn accurate",
        &["flows.a.endpoint.ecn=accurate", "links.sat.queue={ kind = 'red', limit = '10 packets' }"],
    ),
    ("ecn ask", &["flows.a.endpoint.ecn=ask", "links.sat.queue={ kind = 'red', limit = '10 packets' }"]),
    ("loss-classifier inter-arrival", &["flows.a.endpoint.loss-classifier={ kind = 'inter-arrival' }"]),
    ("loss-classifier oracle", &["flows.a.endpoint.loss-classifier={ kind = 'oracle' }"]),
    ("loss-classifier spike", &["flows.a.endpoint.loss-classifier={ kind = 'spike' }"]),
    ("loss-detection dup-acks", &["flows.a.endpoint.loss-detection=dup-acks"]),
    ("loss-detection rack", &["flows.a.endpoint.loss-detection=rack"]),
    ("loss-detection snack", &["flows.a.endpoint.loss-detection=snack"]),
    // Queues.
    (
        "queue ack-compaction",
        &[SLOW_BACK, "links.sat.reverse.queue={ kind = 'ack-compaction', limit = '10 packets' }"],
    ),
    (
        "queue ack-decimation",
        &[
            SLOW_BACK,
            "links.sat.reverse.queue={ kind = 'ack-decimation', limit = '10 packets', keep-every = 2 }",
        ],
    ),
    (
        "queue ack-filter",
        &[SLOW_BACK, "links.sat.reverse.queue={ kind = 'ack-filter', limit = '10 packets' }"],
    ),
    (
        "queue acks-first",
        &[SLOW_BACK, "links.sat.reverse.queue={ kind = 'acks-first', limit = '10 packets' }"],
    ),
    ("queue cake", &["links.sat.queue={ kind = 'cake', limit = '10 packets' }"]),
    ("queue codel", &["links.sat.queue={ kind = 'codel', limit = '10 packets' }"]),
    ("queue drop-tail", &[]),
    ("queue dual-pi2", &["links.sat.queue={ kind = 'dual-pi2', limit = '10 packets' }"]),
    ("queue fifo-pushout", &["links.sat.queue={ kind = 'fifo-pushout', limit = '10 packets' }"]),
    ("queue fq-codel", &["links.sat.queue={ kind = 'fq-codel', limit = '10 packets' }"]),
    ("queue gtnets", &["links.sat.queue={ kind = 'gtnets', limit = '10 packets' }"]),
    ("queue pie", &["links.sat.queue={ kind = 'pie', limit = '10 packets' }"]),
    ("queue plain", &["links.sat.queue={ kind = 'plain', limit = '10 packets' }"]),
    ("queue red", &["links.sat.queue={ kind = 'red', limit = '10 packets' }"]),
    ("queue strict-pushout", &["links.sat.queue={ kind = 'strict-pushout', limit = '10 packets' }"]),
    ("queue threshold", &["links.sat.queue={ kind = 'threshold', limit = '10 packets', low-below = 5 }"]),
    ("queue two-band", &["links.sat.queue={ kind = 'two-band', limit = '10 packets' }"]),
    ("queue wred", &["links.sat.queue={ kind = 'wred', limit = '10 packets' }"]),
    // Rates and delays.
    (
        "rate dama",
        &["links.sat.rate={ kind = 'dama', rate = '320 kbit/s', frame = '25 ms', request = '540 ms' }"],
    ),
    ("rate mahimahi", &["links.sat.rate={ mahimahi = 'a', text = \"10\\n35\\n60\\n85\\n100\\n\" }"]),
    (
        "rate trace",
        &["links.sat.rate={ trace = 'a', text = \"time_s,rate_mbit_s\\n0,0.32\\n10,0.16\\n20,0.32\\n\" }"],
    ),
    ("delay fixed", &[]),
    ("delay normal", &["links.sat.delay={ kind = 'normal', base = '125 ms', sigma = '5 ms' }"]),
    (
        "delay trace",
        &["links.sat.delay={ trace = 'a', text = \"time_s,delay_ms\\n0,125\\n10,140\\n20,125\\n\" }"],
    ),
    ("delay uniform", &["links.sat.delay={ kind = 'uniform', base = '125 ms', jitter = '5 ms' }"]),
    // Losses and their repair.
    ("error ber", &["links.sat.error={ kind = 'ber', ber = 1e-6 }"]),
    (
        "error gilbert-elliott",
        &["links.sat.error={ kind = 'gilbert-elliott', p-gb = 0.01, p-bg = 0.5, k-g = 1e-6 }"],
    ),
    ("error list", &["links.sat.error={ kind = 'list', indices = [20, 21, 100] }"]),
    ("error mtu", &["links.sat.error={ kind = 'mtu', mtu = '900 B' }"]),
    ("error none", &["links.sat.error=none"]),
    ("error per", &[]),
    ("fec block", &["links.sat.fec={ kind = 'block', n = 20, k = 18 }"]),
    ("fec rate", &["links.sat.fec={ kind = 'rate', rate = 0.9, residual = { kind = 'per', p = 1e-3 } }"]),
    ("fec repeat", &["links.sat.fec={ kind = 'repeat', times = 2 }"]),
    ("arq", &["links.sat.arq={ retries = 3 }"]),
    (
        "fade rain",
        &[
            "links.sat.fade={ kind = 'rain', carrier = { es-n0 = '9 dB', margin = '1 dB', noise-rise = false } }",
        ],
    ),
    (
        "fade shadowing",
        &[
            "links.sat.fade={ kind = 'shadowing', states = [ { name = 'good', mean = '3 s' }, { name = 'bad', mean = '1 s', loss = 0.5 } ] }",
        ],
    ),
    (
        "fade trace",
        &[
            "links.sat.fade={ trace = 'a', text = \"time_s,attenuation_dB\\n0,0\\n10,5\\n20,0\\n\", carrier = { es-n0 = '9 dB', noise-rise = false } }",
        ],
    ),
    // Satellites.
    (
        "constellation omm",
        &[
            "links.sat.orbit={ from = 'Houston', to = 'Houston', epoch = '2008-09-20', constellation = { kind = 'omm', file = 'a', text = \"OBJECT_NAME = ISS\\nNORAD_CAT_ID = 25544\\nEPOCH = 2008-09-20T12:25:40.104192\\nMEAN_MOTION = 15.72125391\\nECCENTRICITY = .0006703\\nINCLINATION = 51.6416\\nRA_OF_ASC_NODE = 247.4627\\nARG_OF_PERICENTER = 130.5360\\nMEAN_ANOMALY = 325.0288\\nBSTAR = -.11606E-4\\n\", elevation = '0 deg' } }",
        ],
    ),
    (
        "constellation stationary",
        &[
            "links.sat.orbit={ from = 'Palermo', to = 'Rome', constellation = { kind = 'stationary', longitude = '-34.5 deg' } }",
        ],
    ),
    (
        "constellation tle",
        &[
            "links.sat.orbit={ from = 'Houston', to = 'Houston', epoch = '2008-09-20', constellation = { kind = 'tle', file = 'a', text = \"ISS\\n1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\\n2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\\n\", elevation = '0 deg' } }",
        ],
    ),
    ("constellation walker", &[ORBIT]),
    ("handover longest", &[ORBIT, "links.sat.orbit.handover={ kind = 'longest' }"]),
    ("handover max-elevation", &[ORBIT, "links.sat.orbit.handover={ kind = 'max-elevation' }"]),
    ("handover nearest-path", &[ORBIT, "links.sat.orbit.handover={ kind = 'nearest-path' }"]),
];

/// A control is run a second time with timeouts, some of them within recoveries, and with an endpoint of the papers: the
/// window is halved, not FlightSize. A control with a `recovery` option has NewReno's then.
const HEAVY_LOSSES: &str = "links.sat.error={ kind = 'per', p = 8e-2 }";
const OLD: &str = "flows.a.endpoint.preset=ns2-2004";
const NO_SACK: &str = "flows.a.cc.recovery=newreno";

/// Halves its window at a loss and adds a segment per round trip; sends every fourth segment at low priority.
#[derive(Debug)]
struct Reference(f64);

impl CongestionControl for Reference {
    fn window(&self) -> Window {
        Window { cwnd: self.0, ssthresh: self.0 }
    }
    fn policy(&self) -> Policy {
        Policy { recovery: RecoveryMode::Sack, ..Policy::default() }
    }
    fn priority(&self, offset: u64, _: bool) -> Priority {
        if offset / 1000 % 4 == 3 { Priority::Low } else { Priority::Normal }
    }
    fn on_ack(&mut self, _: &mut Cx<'_>, _: &Ack) {
        self.0 += 1.0 / self.0;
    }
    fn on_congestion(&mut self, _: &mut Cx<'_>, _: Signal) {
        self.0 = (self.0 / 2.0).max(4.0);
    }
    fn on_timeout(&mut self, _: &mut Cx<'_>, _: u32) {
        self.0 = 4.0;
    }
}

fn reference(settings: &[&str]) -> Resolved {
    try_reference(settings).unwrap_or_else(|e| panic!("{settings:?}: {e}"))
}

fn try_reference(settings: &[&str]) -> Result<Resolved, ScenarioError> {
    let has = |key: &str| settings.iter().any(|s| s.starts_with(key));
    // Only TCP has a control and a window, and with satellites the delay follows from their orbit.
    let defaults = [
        ("flows.a.transport=", "flows.a.cc=user:reference"),
        ("flows.a.transport=", "flows.a.rwnd=64 segments"),
        ("links.sat.orbit=", "links.sat.delay=125 ms"),
    ];
    let defaults = defaults.into_iter().filter(|(instead, _)| !has(instead)).map(|(_, default)| default);
    let all: Vec<&str> = defaults.chain(settings.iter().copied()).collect();
    resolve_text("reference", REFERENCE, &all, &no_files)
}

fn hash(scenario: &Resolved) -> String {
    let mut controls = Controls::default();
    controls.provide("reference", |_: &skyhaul_cc::user::Request<'_>| Ok(Box::new(Reference(12.0)) as _));
    let result =
        skyhaul_sim::run_with(scenario, 1, Digest::default(), &controls).expect("it can be simulated");
    format!("{:08x}", result.digest.expect("a digest is recorded") >> 32)
}

/// The fingerprints of this engine.
fn computed() -> String {
    let mut all = format!("{SHARED} {}\n", hash(&reference(&[])));
    for name in skyhaul_cc::NAMES {
        let options = match *name {
            // Without a window of an earlier transfer it is SACK.
            "fast-start" => ", cached-window = 20",
            // Losses are judged by the rates of waves, as the window is.
            "tcp-real" => ", classify = true",
            _ => "",
        };
        let cc = format!("flows.a.cc={{ name = '{name}'{options} }}");
        let old = try_reference(&[&cc, HEAVY_LOSSES, OLD, NO_SACK]);
        let old = old.unwrap_or_else(|_| reference(&[&cc, HEAVY_LOSSES, OLD]));
        let both = [reference(&[&cc]), old].map(|scenario| hash(&scenario));
        all += &format!("cc {name} {}\n", both.concat());
    }
    for (part, settings) in CASES {
        let scenario = reference(settings);
        let parts = parts(&scenario);
        assert!(parts.contains(*part), "{part} is none of {parts:?}");
        all += &format!("{part} {}\n", hash(&scenario));
    }
    all
}

#[test]
fn the_recorded_fingerprints_are_those_of_this_engine() {
    let now = computed();
    if std::env::var_os("SKYHAUL_BLESS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fingerprints.txt");
        std::fs::write(file, &now).expect("fingerprints.txt can be written");
    } else {
        assert_eq!(
            RECORDED, now,
            "results changed, so cached cells must not be used: record the new fingerprints with \
             SKYHAUL_BLESS=1 cargo test -p skyhaul-study fingerprint"
        );
    }
}

#[test]
fn every_kind_has_a_fingerprint() {
    let lists: [(&str, &[&str]); 11] = [
        ("app", skyhaul_apps::NAMES),
        ("cc", skyhaul_cc::NAMES),
        ("constellation", skyhaul_orbit::constellation::NAMES),
        ("delay", skyhaul_path::delay::NAMES),
        ("error", skyhaul_path::error::NAMES),
        ("fade", skyhaul_path::fade::NAMES),
        ("fec", skyhaul_path::fec::NAMES),
        ("handover", skyhaul_orbit::handover::NAMES),
        ("queue", skyhaul_path::queue::NAMES),
        ("rate", skyhaul_path::rate::KINDS),
        ("rate", skyhaul_path::rate::NAMES),
    ];
    for (key, names) in lists {
        for name in names {
            let part = format!("{key} {name}");
            let has = key == "cc" || CASES.iter().any(|(name, _)| *name == part);
            // Bursts are a Gilbert-Elliott chain in the canonical form.
            assert!(has || part == "error bursts", "add a line for \"{part}\" to CASES in {}", file!());
        }
    }
}

/// The recorded fingerprints with another hash for a part, which may be new.
fn with(part: &str, hash: &str) -> String {
    let others = RECORDED.lines().filter(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name != part));
    others.map(|line| format!("{line}\n")).collect::<String>() + &format!("{part} {hash}\n")
}

#[test]
fn a_changed_part_changes_only_the_cells_that_use_it() {
    let all = [
        &["flows.a.cc=sack"][..],
        &["flows.a.cc=vegas", "links.sat.queue.kind=codel"],
        &["flows.a.cc=sack", "flows.a.app={ kind = 'pages', segments = 50 }"],
        &["flows.a.transport=tfrc", CBR, "links.sat.queue.kind=codel"],
        &["flows.a.cc=sack", "flows.b={ path = ['sat'], cc = 'vegas' }"],
    ];
    let all = all.map(|settings| parts(&reference(settings)));
    for (part, expected) in [
        ("cc sack", [true, false, true, false, true]),
        ("cc vegas", [false, true, false, false, true]),
        ("cc a-new-one", [false; 5]),
        ("queue codel", [false, true, false, true, false]),
        ("queue red", [false; 5]),
        ("app pages", [false, false, true, false, false]),
        ("transport tfrc", [false, false, false, true, false]),
        ("error per", [true; 5]),
    ] {
        let now = with(part, "00000000");
        let changed = all.each_ref().map(|parts| of_parts(parts, &now) != of_parts(parts, RECORDED));
        assert_eq!(changed, expected, "{part}");
        // No control is part of what all cells share.
        assert_eq!(find(&now, SHARED), Some(shared()));
    }
}
