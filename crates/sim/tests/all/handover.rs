//! Gateways that hand their connections over to others: nothing is lost, and the leg behind them is silent for as long as
//! signalling and data take.

use crate::text::{self, chained as bulk, split_path};
use skyhaul_base::Instant;
use skyhaul_scenario::{Document, no_files};
use skyhaul_sim::{RunResult, Sim};
use skyhaul_trace::{Class, Event, Memory, Null};

/// A sender behind 5 ms, two gateways, and two ways from them to the receiver.
const PATH: &str = split_path!(
    duration: "40 s",
    delay: "120 ms",
    queue: "1000 packets",
    r#"[links.sat2]
rate = "10 Mbit/s"
delay = "130 ms"
queue = { limit = "1000 packets" }
[gateways.g1]
behind = "near"
buffer = "512 KiB"
[gateways.g2]
behind = "near"
[gateways.g3]
behind = "sat"
[flows.bulk]
path = ["near", "sat", "far"]
cc = "reno"
endpoint = { preset = "modern", receive-autotuning = false }
rwnd = "512 KiB"
app = { kind = "pages", segments = 12000, count = 1 }
[flows.bulk.chain]
kind = "split2"
gateways = ["g1"]
[flows.bulk.chain.legs.g1]
sndbuf = "512 KiB"
"#
);

/// The event, with more of its keys.
fn moves(more: &str) -> String {
    format!("[[event]]\nat = \"4 s\"\nhandover = {{ from = \"g1\", to = \"g2\"{more} }}\n")
}
fn ran(sets: &[&str], events: &str) -> RunResult {
    text::ran(&format!("{PATH}{events}"), sets, 1)
}
/// What 12000 segments of the modern preset carry.
const BYTES: u64 = 12_000 * 1448;

#[test]
fn a_connection_that_moves_delivers_everything() {
    let rated = "flows.bulk.chain.legs.g1.transport={ kind = \"xtp-like\", rate = \"9.5 Mbit/s\" }";
    let two = ["flows.bulk.chain.kind=split3", "flows.bulk.chain.gateways=[\"g1\", \"g3\"]"];
    let cases: [(&[&str], &str); 7] = [
        (&[], ""),
        (&[], ", path = [\"sat2\", \"far\"]"),
        // The tunnel stays, and is what limits it from then on.
        (&["duration=400 s"], ", path = [\"sat2\", \"far\"], signalling = \"2 s\", backhaul = \"1 Mbit/s\""),
        (&["links.sat.error={ kind = \"per\", p = 1e-2 }", "duration=400 s"], ""),
        (&["flows.bulk.chain.ack-mode=late"], ", path = [\"sat2\", \"far\"]"),
        (&two, ", path = [\"sat2\"]"),
        (&[two[0], two[1], rated], ", path = [\"sat2\"]"),
    ];
    for (sets, more) in cases {
        let result = ran(sets, &moves(more));
        let (flow, chain) = bulk(&result);
        assert_eq!((flow.bytes_acked, chain.lost), (BYTES, 0), "{sets:?} {more}");
        assert!(chain.moved > 0 && flow.pages.len() == 1, "{sets:?} {more}: {chain:?}");
    }
}

#[test]
fn the_leg_is_silent_for_signalling_and_data_and_not_longer() {
    for (more, signalling, backhaul) in
        [("", 0.050, 100e6), (", signalling = \"200 ms\", backhaul = \"10 Mbit/s\"", 0.200, 10e6)]
    {
        let written = format!("{PATH}{}", moves(more));
        let s = text::resolve(&written, &[]);
        let leg = s.flows.iter().position(|f| f.name == "bulk-g1").expect("a leg") as u32;
        let mut sim = Sim::new(&s, 1, Memory::default()).expect("a world");
        sim.run_until(Instant::MAX);
        let result = sim.result();
        let (_, chain) = bulk(&result);
        let expected = signalling + chain.moved as f64 * 8.0 / backhaul;
        assert!((chain.silent.as_secs_f64() - expected).abs() < 1e-6, "{chain:?}: {expected}");
        // Of the buffers of relay, receiver and sender some is full.
        assert!(chain.moved > 100_000 && chain.moved <= 3 * 512 * 1024, "{chain:?}");
        // What left for the leg: nothing meanwhile, and something as soon as the connection is there.
        let sent = |from: f64, to: f64| {
            let within = |at: Instant| (from..to).contains(&(at - Instant::ZERO).as_secs_f64());
            let data = |e: &Event| matches!(e, Event::Sent { flow, packet } if *flow == leg && packet.class == Class::Data);
            sim.recorder().events.iter().filter(|(at, e)| within(*at) && data(e)).count()
        };
        assert!(sent(3.9, 4.0) > 50, "the link is full before");
        assert_eq!(sent(4.0 + 1e-6, 4.0 + expected - 1e-6), 0, "{more}");
        assert!(sent(4.0 + expected - 1e-6, 4.0 + expected + 0.02) > 5, "{more}");
    }
}

#[test]
fn connections_that_move_together_share_the_way_between_the_gateways() {
    let text = format!("{PATH}{}", moves(", backhaul = \"10 Mbit/s\""));
    let result = text::ran(&text, &["flows.bulk.count=3", "flows.bulk.start=0 s"], 1);
    let chains: Vec<_> = result.group("bulk").map(|f| *f.chain.as_deref().expect("a chain")).collect();
    let mut before = 0;
    for chain in chains {
        before += chain.moved;
        let expected = 0.050 + before as f64 * 8.0 / 10e6;
        assert!((chain.silent.as_secs_f64() - expected).abs() < 1e-6, "{chain:?}: {expected}");
    }
}

#[test]
fn what_happens_afterwards_happens_to_the_gateway_that_has_the_connection() {
    // The old gateway has nothing that a crash could lose; the new one has.
    let crash = |name: &str, at: &str| format!("{}[[event]]\nat = \"{at}\"\ncrash = \"{name}\"\n", moves(""));
    let old = ran(&[], &crash("g1", "6 s"));
    assert_eq!((bulk(&old).0.bytes_acked, bulk(&old).1.lost), (BYTES, 0));
    for at in ["6 s", "4.02 s"] {
        let new = ran(&[], &crash("g2", at));
        let (flow, chain) = bulk(&new);
        assert!(chain.lost > 0 && flow.bytes_acked < BYTES, "{at}: {chain:?}");
    }
    // And it moves on.
    let again =
        "[[event]]\nat = \"4.03 s\"\nhandover = { from = \"g2\", to = \"g3\", path = [\"sat2\", \"far\"] }\n";
    let events = format!("{}{again}", moves(""));
    let s = text::resolve(&format!("{PATH}{events}"), &[]);
    let mut sim = Sim::new(&s, 1, Null).expect("a world");
    sim.run_until(Instant::MAX);
    assert_eq!((sim.in_network(), sim.stored_bodies(), sim.connections_at_gateways()), (0, 0, 0));
    let result = sim.result();
    let (flow, chain) = bulk(&result);
    assert_eq!((flow.bytes_acked, chain.lost), (BYTES, 0));
    assert!(chain.silent.as_secs_f64() > 0.1, "twice: {chain:?}");
}

#[test]
fn what_is_not_split_has_nothing_to_handover() {
    for sets in
        [["flows.bulk.chain.kind=e2e"], ["flows.bulk.chain.kind=spoof"], ["flows.bulk.chain.encrypted=true"]]
    {
        let (moved, stayed) = (ran(&sets, &moves("")), ran(&sets, ""));
        let ((moved, chain), (stayed, _)) = (bulk(&moved), bulk(&stayed));
        assert_eq!((moved.bytes_acked, moved.finished), (stayed.bytes_acked, stayed.finished), "{sets:?}");
        assert_eq!((chain.moved, chain.silent.as_nanos()), (0, 0));
    }
}

#[test]
fn a_handover_comes_back_from_its_resolved_form_and_mistakes_are_named() {
    for more in ["", ", path = [\"sat2\", \"far\"], signalling = \"20 ms\", backhaul = \"1 Gbit/s\""] {
        let written = format!("{PATH}{}", moves(more));
        let s = text::resolve(&written, &[]);
        // The key had a hyphen once.
        assert_eq!(text::resolve(&written.replace("handover =", "hand-over ="), &[]), s);
        text::assert_comes_back_from_its_file(&s);
    }
    let cases = [
        ("from = \"g1\"", "event[0].handover.to: missing"),
        ("from = \"g9\", to = \"g2\"", "event[0].handover.from: there is no gateway \"g9\""),
        ("from = \"g1\", to = \"g1\"", "write the name of another gateway"),
        ("from = \"g2\", to = \"g1\"", "already splits flows.bulk"),
        ("from = \"g1\", to = \"g2\", path = []", "event[0].handover.path: empty"),
        ("from = \"g1\", to = \"g2\", path = [\"sad\"]", "there is no link \"sad\", did you mean \"sat\"?"),
        ("from = \"g1\", to = \"g2\", backhaul = \"unlimited\"", "write a rate such as \"100 Mbit/s\""),
    ];
    for (keys, says) in cases {
        let text = format!("{PATH}[[event]]\nat = \"1 s\"\nhandover = {{ {keys} }}\n");
        let error = Document::parse("t.toml", &text, &no_files).expect("TOML").resolve().expect_err(says);
        let error = error.to_string();
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
}
