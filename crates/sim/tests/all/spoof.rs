//! A gateway that answers in the receiver's name, and paths that come to pass gateways by.

use crate::text::{self, chained as bulk, split_path};
use skyhaul_scenario::{Document, no_files};
use skyhaul_sim::RunResult;

/// 100 Mbit/s and 5 ms to the gateway; 10 Mbit/s over the satellite, a round trip of 540 ms.
const PATH: &str = split_path!(
    duration: "60 s",
    delay: "265 ms",
    queue: "1000 packets",
    r#"[gateways.g1]
behind = "near"
[flows.bulk]
path = ["near", "sat"]
cc = "sack"
endpoint = { preset = "modern", receive-autotuning = false }
rwnd = "4 MiB"
sndbuf = "4 MiB"
[flows.bulk.chain]
kind = "spoof"
gateways = ["g1"]
"#
);

fn ran(sets: &[&str], events: &str) -> RunResult {
    text::ran(&format!("{PATH}{events}"), sets, 1)
}

/// When so many segments had been acknowledged to the sender, in seconds.
fn acked_by(result: &RunResult, segments: f64) -> f64 {
    let mut acked = result.series.flows.of(0, "acked");
    acked.find(|(_, v)| *v >= segments).map_or(f64::INFINITY, |(t, _)| t)
}

#[test]
fn the_window_of_the_sender_grows_with_the_near_round_trip() {
    // One product of rate and round trip, 10 Mbit/s x 0.54 s in packets of 1500 bytes, is what fills the path.
    let series = "record={ sample = \"10 ms\", series = [\"acked\"] }";
    let time = |kind: &str| {
        let result = ran(&[&format!("flows.bulk.chain.kind={kind}"), series, "duration=20 s"], "");
        acked_by(&result, 450.0)
    };
    let (spoofed, whole) = (time("spoof"), time("e2e"));
    assert!(spoofed < whole / 3.0, "{spoofed} s against {whole} s");
    let result = ran(&[], "");
    let (flow, chain) = bulk(&result);
    assert!(flow.goodput > 9e6, "{}", flow.goodput);
    assert!(chain.custody > 500_000 && chain.lost == 0);
}

#[test]
fn what_is_kept_is_bounded_and_losses_behind_the_box_never_reach_the_sender() {
    let sets = ["gateways.g1.buffer=1 MB", "links.sat.error={ kind = \"per\", p = 1e-3 }"];
    let result = ran(&sets, "");
    let (flow, chain) = bulk(&result);
    // What was acknowledged to the sender and the receiver does not have is in the store.
    assert!(chain.custody <= 1_000_000, "{}", chain.custody);
    assert_eq!((flow.retransmissions, flow.timeouts), (0, 0));
    assert!(flow.goodput > 3e6, "{}", flow.goodput);
}

#[test]
fn with_acknowledgements_that_take_another_way_the_gain_vanishes() {
    let goodput = |asym: &str| {
        let result = ran(&[&format!("flows.bulk.chain.asym={asym}"), "gateways.g1.buffer=256 KiB"], "");
        let (flow, chain) = bulk(&result);
        assert_eq!(chain.lost, 0);
        flow.goodput
    };
    let whole = bulk(&ran(&["flows.bulk.chain.kind=e2e"], "")).0.goodput;
    let (all, none) = (goodput("0"), goodput("1"));
    assert!(all > 0.0 && none < 1.05 * whole, "{none} against {whole} without a box, {all} with one");
    // A few that come by release all that came before them.
    assert!(goodput("0.5") > 0.9 * all);
}

#[test]
fn an_encrypted_flow_passes_untouched() {
    let whole = ran(&["flows.bulk.chain.kind=e2e"], "");
    for kind in ["spoof", "split2"] {
        let hidden = ran(&[&format!("flows.bulk.chain.kind={kind}"), "flows.bulk.chain.encrypted=true"], "");
        let ((hidden, chain), (whole, _)) = (bulk(&hidden), bulk(&whole));
        assert_eq!((hidden.bytes_acked, hidden.retransmissions), (whole.bytes_acked, whole.retransmissions));
        assert_eq!((chain.custody, chain.bypassed), (0, 1));
    }
}

#[test]
fn a_crash_or_another_path_leaves_a_hole_and_the_connection_ends_by_a_timeout() {
    for event in ["crash", "reroute"] {
        let events = format!("[[event]]\nat = \"5 s\"\n{event} = \"g1\"\n");
        let sets = [
            "links.sat.error={ kind = \"per\", p = 1e-2 }",
            "flows.bulk.endpoint.user-timeout=20 s",
            "duration=120 s",
        ];
        let result = ran(&sets, &events);
        let (flow, chain) = bulk(&result);
        assert!(chain.lost > 0, "{event}: the sender holds nothing that would fill the hole");
        let finished = flow.finished.map(|t| t.as_secs_f64()).expect("it gives up");
        assert!((20.0..60.0).contains(&finished), "{event}: {finished}");
    }
    // Without losses on the way nothing but the box is gone: what is in flight arrives.
    let result = ran(&["duration=30 s"], "[[event]]\nat = \"5 s\"\ncrash = \"g1\"\n");
    let (flow, chain) = bulk(&result);
    assert_eq!(chain.lost, 0);
    assert!(flow.finished.is_none_or(|t| t.as_secs_f64() >= 30.0));
}

#[test]
fn a_split_path_that_changes_ends_by_a_reset() {
    let events = "[[event]]\nat = \"5 s\"\nreroute = \"g1\"\n";
    let result = ran(&["flows.bulk.chain.kind=split2"], events);
    let (flow, chain) = bulk(&result);
    // A segment finds nobody who knows of it, and the answer takes the whole way back.
    let finished = flow.finished.expect("it is over").as_secs_f64();
    assert!((5.27..6.0).contains(&finished), "{finished}");
    assert!(chain.lost > 0 && chain.lost <= chain.custody, "{chain:?}");
}

#[test]
fn a_spoofed_chain_comes_back_from_its_resolved_form() {
    let text = format!("{PATH}[[event]]\nat = \"5 s\"\nreroute = \"g1\"\n");
    let mut d = Document::parse("t.toml", &text, &no_files).expect("TOML");
    d.set("flows.bulk.chain.asym=0.25").expect("a key");
    d.set("flows.bulk.chain.encrypted=true").expect("a key");
    let s = d.resolve().expect("a scenario");
    text::assert_comes_back_from_its_file(&s);
    d.set("flows.bulk.chain.asym=1.5").expect("a key");
    let error = d.resolve().expect_err("no probability").to_string();
    assert!(error.contains("flows.bulk.chain.asym") && error.lines().count() == 1, "{error}");
}
