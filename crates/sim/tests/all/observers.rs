//! Observers of a run do not change it, and neither does header prediction: over random scenarios of every control,
//! application, endpoint and link, a recorder, a capture and the lack of header prediction leave every quantity as it is, the
//! number of events too.

use proptest::prelude::*;
use proptest::sample::select;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::{error, queue};
use skyhaul_scenario::resolved::Resolved;
use skyhaul_scenario::{Document, no_files};
use skyhaul_sim::{RunResult, Sighting, Sim, Tap, run};
use skyhaul_tcp::config::PRESETS;
use skyhaul_trace::{Digest, Event, Null, Recorder};

/// Wants whole packets, as a capture does.
#[derive(Default)]
struct Capture(u64);

impl Recorder for Capture {
    const ENABLED: bool = false;
    fn record(&mut self, _: Instant, _: &Event) {}
}
impl Tap for Capture {
    const PACKETS: bool = true;
    fn packet(&mut self, _: Instant, _: &Sighting<'_>) {
        self.0 += 1;
    }
}

/// One to three of each application, by its name: most that the path carries and one that overloads it.
const APPS: &[(&str, &[&str])] = &[
    ("arrivals", &[r#"rate = "3 /s", size = "20 kB""#, r#"rate = "80 /s", size = "4 kB""#]),
    ("bulk", &[""]),
    ("cbr", &[r#"rate = "300 kbit/s""#, r#"rate = "3 Mbit/s""#, r#"rate = "200 kbit/s", packet = "100 B""#]),
    (
        "on-off",
        &[
            r#"rate = "900 kbit/s", on = "0.3 s", off = "0.5 s""#,
            r#"rate = "4 Mbit/s", on = "0.3 s", off = "0.2 s""#,
        ],
    ),
    ("pages", &["segments = 12", r#"segments = 40, count = 3, idle = "0.2 s""#]),
    (
        "video",
        &[
            r#"rate = "400 kbit/s""#,
            r#"rate = "3 Mbit/s""#,
            r#"rate = "900 kbit/s", pad = false, spread = "even""#,
        ],
    ),
];

/// What a link loses, by the name of the model.
const ERRORS: &[(&str, &str)] = &[
    ("none", ""),
    ("per", "p = 0.01"),
    ("ber", "ber = 2e-6"),
    ("bursts", "loss = 0.02, burst = 4"),
    ("gilbert-elliott", "p-gb = 0.005, p-bg = 0.2, k-b = 0.3"),
    ("list", "indices = [3, 17, 18, 19, 40]"),
    ("mtu", r#"mtu = "1200 B""#),
];

const QUEUES: &[&str] = &[
    "drop-tail",
    "strict-pushout",
    "fifo-pushout",
    "gtnets",
    "plain",
    "two-band",
    "threshold",
    "red",
    "wred",
    "cake",
    "codel",
    "fq-codel",
    "pie",
    "dual-pi2",
    "ack-filter",
    "ack-decimation",
    "ack-compaction",
    "acks-first",
];

/// Connections, and other transports, that carry the data of a flow.
const CARRIERS: &[&str] = &[
    "handshake = false",
    "handshake = true",
    "handshake = true\nclose = true",
    "transport = \"udp\"",
    "transport = \"tfrc\"",
    "transport = \"ssvp\"",
];

fn a_flow(name: &'static str) -> impl Strategy<Value = String> {
    let app = select(APPS).prop_flat_map(|(kind, options)| {
        select(options)
            .prop_map(move |o| format!("{{ kind = \"{kind}\"{}{o} }}", if o.is_empty() { "" } else { ", " }))
    });
    // Most flows go without a handshake: these have the simulator's own fast path (`arrive_plain`).
    let carrier =
        prop_oneof![3 => Just(CARRIERS[0]), 1 => select(&CARRIERS[1..3]), 1 => select(&CARRIERS[3..])];
    let endpoint = (
        select(PRESETS),
        select(
            &[
                "",
                ", ecn = \"ask\"",
                ", loss-detection = \"rack\"",
                ", loss-classifier = \"oracle\"",
                ", nagle = true",
            ][..],
        ),
    );
    let ends = (
        select(&["", "stop = \"4 s\"\n"][..]),
        select(&["", "sndbuf = \"30 kB\"\n"][..]),
        4..200_u32,
        1..4_u32,
    );
    (select(skyhaul_cc::NAMES), app, carrier, endpoint, ends, any::<bool>()).prop_map(
        move |(cc, app, carrier, (preset, option), (stop, sndbuf, window, count), back)| {
            let cc = if carrier.contains("transport") { String::new() } else { format!("cc = \"{cc}\"\n") };
            let direction = if back { "direction = \"reverse\"\n" } else { "" };
            format!(
                "[flows.{name}]\npath = [\"sat\"]\ncount = {count}\napp = {app}\n{cc}{carrier}\n\
                 endpoint = {{ preset = \"{preset}\"{option} }}\nrwnd = \"{window} segments\"\n\
                 start = {{ uniform = [\"0 s\", \"0.5 s\"] }}\n{stop}{sndbuf}{direction}"
            )
        },
    )
}

fn a_scenario() -> impl Strategy<Value = String> {
    let link = (
        select(QUEUES),
        5..80_u32,
        select(ERRORS),
        select(&[r#""30 ms""#, r#""275 ms""#, r#"{ kind = "normal", base = "80 ms", sigma = "5 ms" }"#][..]),
        select(&["1 Mbit/s", "4 Mbit/s"][..]),
        select(
            &[
                "",
                "allow-reorder = true",
                "fec = { kind = \"block\", n = 12, k = 10 }",
                "arq = { retries = 3 }",
                "drop-in-flight = true",
                "duplicate = 0.05",
            ][..],
        ),
    );
    let event = select(
        &[
            "",
            "[[event]]\nat = \"3 s\"\nset = { \"links.sat.up\" = false }\n[[event]]\nat = \"4.5 s\"\nset = { \"links.sat.up\" = true }\n",
            "[[event]]\nat = \"3 s\"\nset = { \"links.sat.rate\" = \"600 kbit/s\" }\n",
        ][..],
    );
    (link, event, a_flow("a"), proptest::option::of(a_flow("b"))).prop_map(
        |((queue, limit, (kind, error), delay, rate, more), event, a, b)| {
            let comma = if error.is_empty() { "" } else { ", " };
            format!(
                "duration = \"8 s\"\n[links.sat]\nrate = \"{rate}\"\ndelay = {delay}\n\
                 queue = {{ kind = \"{queue}\", limit = \"{limit} packets\" }}\n\
                 error = {{ kind = \"{kind}\"{comma}{error} }}\n{more}\n\
                 reverse = {{ error = {{ kind = \"per\", p = 0.002 }} }}\n{a}{}{event}\
                 [record]\nsample = \"0.5 s\"\nseries = [\"acked\", \"cwnd\", \"queue\"]\n",
                b.unwrap_or_default()
            )
        },
    )
}

/// The scenario, unless its parts do not fit each other.
fn resolve(text: &str) -> Result<Resolved, String> {
    let d = Document::parse("any.toml", text, &no_files).map_err(|e| e.to_string())?;
    d.resolve().map_err(|e| e.to_string())
}

/// Compares printed results, since a missing value of a series is NaN, which is unequal to itself.
fn same(a: &RunResult, b: &RunResult, why: &str, text: &str) -> Result<(), TestCaseError> {
    let (a, b) = (format!("{a:#?}"), format!("{b:#?}"));
    let different = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    prop_assert!(a == b, "{} changes the run: {:?} in\n{}", why, different, text);
    Ok(())
}

/// Runs it in every way, which must all give the same.
fn check(s: &Resolved, seed: u64, text: &str) -> Result<(), TestCaseError> {
    let bare = run(s, seed, Null).expect("a world");
    let recorded = run(s, seed, Digest::default()).expect("a world");
    let digest = recorded.digest;
    same(&RunResult { digest: None, ..recorded }, &bare, "a recorder", text)?;
    same(&run(s, seed, Capture::default()).expect("a world"), &bare, "a capture", text)?;
    let both = run(s, seed, (Digest::default(), Capture::default())).expect("a world");
    prop_assert_eq!(both.digest, digest, "a capture changes the digest of\n{}", text);

    let mut timed = s.clone();
    timed.record.packet_delay = true;
    let timed = run(&timed, seed, Digest::default()).expect("a world");
    prop_assert_eq!(timed.digest, digest, "measured delays change the digest of\n{}", text);
    let fitting = timed.flows.iter().filter(|f| f.packet_delays.is_some() == (f.bytes_acked > 0)).count();
    let mut untimed = RunResult { digest: None, ..timed };
    untimed.flows.iter_mut().for_each(|f| f.packet_delays = None);
    same(&untimed, &bare, "measuring delays", text)?;
    // A packet may have arrived although none has been acknowledged.
    prop_assert!(fitting > 0 || untimed.flows.iter().all(|f| f.bytes_acked == 0), "no delays in\n{}", text);

    let mut slow = s.clone();
    slow.flows.iter_mut().for_each(|f| f.endpoint.header_prediction = false);
    let unpredicted = run(&slow, seed, Digest::default()).expect("a world");
    let unpredicted_digest = unpredicted.digest;
    same(&RunResult { digest: None, ..unpredicted }, &bare, "header prediction", text)?;
    prop_assert_eq!(unpredicted_digest, digest, "header prediction changes the digest of\n{}", text);

    let mut sim = Sim::new(s, seed, Null).expect("a world");
    for ms in (0..8000).step_by(777) {
        sim.run_until(Instant::ZERO + Duration::from_millis(ms));
    }
    same(&sim.finish(), &bare, "looking at it now and then", text)
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn neither_observers_nor_header_prediction_change_a_run(text in a_scenario(), seed in 1..1000_u64) {
        let scenario = resolve(&text);
        prop_assume!(scenario.is_ok());
        check(&scenario.expect("checked"), seed, &text)?;
    }
}

/// Every control with every application that overloads its path, where data waits for the window all the time.
#[test]
fn no_control_is_an_exception() {
    let mut ran = 0;
    for cc in skyhaul_cc::NAMES {
        for preset in PRESETS {
            let text = format!(
                "duration = \"6 s\"\n[links.sat]\nrate = \"1 Mbit/s\"\ndelay = \"100 ms\"\nqueue = {{ limit = \"20 packets\" }}\n\
                 error = {{ kind = \"per\", p = 0.005 }}\n[flows.a]\npath = [\"sat\"]\ncc = \"{cc}\"\nhandshake = false\n\
                 endpoint = \"{preset}\"\napp = {{ kind = \"video\", rate = \"3 Mbit/s\" }}\nrwnd = \"1 MiB\"\n"
            );
            // Not every control repairs losses as every endpoint demands.
            let Ok(scenario) = resolve(&text) else { continue };
            check(&scenario, 3, &text).unwrap_or_else(|e| panic!("{e}"));
            ran += 1;
        }
    }
    assert!(ran > 4 * skyhaul_cc::NAMES.len(), "{ran}");
}

#[test]
fn the_tables_name_every_application_error_model_and_queue() {
    fn check(table: &str, named: &[&str], known: &[&str]) {
        let missing: Vec<_> = known.iter().filter(|n| !named.contains(n)).collect();
        assert!(missing.is_empty(), "add a line for {missing:?} to {table} in {}", file!());
        let gone: Vec<_> = named.iter().filter(|n| !known.contains(n)).collect();
        assert!(gone.is_empty(), "there is no {gone:?}: take it off {table} in {}", file!());
    }
    check("APPS", &APPS.iter().map(|(n, _)| *n).collect::<Vec<_>>(), skyhaul_apps::NAMES);
    check("ERRORS", &ERRORS.iter().map(|(n, _)| *n).collect::<Vec<_>>(), error::NAMES);
    check("QUEUES", QUEUES, queue::NAMES);
}
