//! Connections that close with FINs: the end of a stream passes gateway by gateway after the last byte, and comes back from the
//! receiver the same way.

use crate::text::{self, bulk, chained, split_path};
use skyhaul_base::Instant;
use skyhaul_scenario::{Document, no_files};
use skyhaul_sim::{Place, Sighting, Sim, Tap};
use skyhaul_tcp::Flags;
use skyhaul_trace::{Event, Recorder};

/// A sender behind 5 ms, two gateways around a satellite link of 10 Mbit/s, and a receiver behind 5 ms.
const PATH: &str = split_path!(
    duration: "60 s",
    delay: "120 ms",
    queue: "1000 packets",
    r#"[gateways.g1]
behind = "near"
[gateways.g2]
behind = "sat"
[gateways.g3]
behind = "near"
[flows.bulk]
path = ["near", "sat", "far"]
cc = "sack"
close = true
app = { kind = "pages", segments = 700, count = 3 }
[flows.bulk.chain]
kind = "split3"
gateways = ["g1", "g2"]
"#
);
const PAGE: u64 = 700 * 1448;
const RATED: &str = "flows.bulk.chain.legs.g1.transport={ kind = \"xtp-like\", rate = \"9.5 Mbit/s\" }";

/// Arrivals of ends of streams and of data.
#[derive(Default)]
struct Ends {
    /// Flow, whether towards the sender, time in seconds.
    fins: Vec<(u32, bool, f64)>,
    /// Flow, time in seconds.
    data: Vec<(u32, f64)>,
}
impl Recorder for Ends {
    const ENABLED: bool = false;
    fn record(&mut self, _: Instant, _: &Event) {}
}
impl Tap for Ends {
    const PACKETS: bool = true;
    fn packet(&mut self, now: Instant, seen: &Sighting<'_>) {
        if seen.place != Place::Arrived {
            return;
        }
        let at = now.as_secs_f64();
        if seen.segment.flags.has(Flags::FIN) {
            self.fins.push((seen.flow, seen.backward, at));
        }
        if seen.segment.len > 0 && !seen.backward {
            self.data.push((seen.flow, at));
        }
    }
}

/// The run, and the first end of stream that arrived on each leg in each direction, in the order of time.
fn observed(sets: &[&str]) -> (skyhaul_sim::RunResult, Vec<(String, bool, f64)>, Ends) {
    let s = text::resolve(PATH, sets);
    let mut sim = Sim::new(&s, 1, Ends::default()).expect("a world");
    sim.run_until(Instant::MAX);
    assert_eq!((sim.in_network(), sim.stored_bodies(), sim.connections_at_gateways()), (0, 0, 0));
    let result = sim.result();
    let ends = sim.recorder();
    let mut first: Vec<(String, bool, f64)> = Vec::new();
    for &(flow, backward, at) in &ends.fins {
        let name = s.flows[flow as usize].name.clone();
        if !first.iter().any(|(n, b, _)| (n, *b) == (&name, backward)) {
            first.push((name, backward, at));
        }
    }
    let ends = Ends { fins: ends.fins.clone(), data: ends.data.clone() };
    (result, first, ends)
}

const ONE_PAGE: &str = "flows.bulk.app={ kind = \"pages\", segments = 700, count = 1 }";

#[test]
fn an_end_of_stream_passes_leg_by_leg_after_the_last_byte_and_comes_back() {
    let (result, first, ends) = observed(&[ONE_PAGE]);
    let passed: Vec<(&str, bool)> = first.iter().map(|(n, b, _)| (n.as_str(), *b)).collect();
    let legs = ["bulk", "bulk-g1", "bulk-g2"];
    let expected: Vec<(&str, bool)> =
        legs.iter().map(|l| (*l, false)).chain(legs.iter().rev().map(|l| (*l, true))).collect();
    assert_eq!(passed, expected);
    // The last byte comes with it, or before it.
    for (name, _, at) in first.iter().filter(|f| !f.1) {
        let index = text::resolve(PATH, &[]).flows.iter().position(|f| f.name == *name).expect("a leg");
        let last = ends.data.iter().filter(|d| d.0 == index as u32).map(|d| d.1).fold(0.0, f64::max);
        assert!(last <= *at, "{name}: data at {last}, and the end at {at}");
    }
    let (flow, chain) = chained(&result);
    assert_eq!((flow.bytes_acked, chain.lost, flow.timeouts), (PAGE, 0, 0));
    // The page is over when the receiver's end reaches the sender.
    let finished = flow.finished.expect("it is over").as_secs_f64();
    assert!((finished - first[5].2).abs() < 1e-9, "{finished} and {first:?}");
}

#[test]
fn a_close_lengthens_a_page_only_behind_gateways() {
    let sets = [ONE_PAGE, "flows.bulk.chain.kind=e2e"];
    let (result, first, _) = observed(&sets);
    let passed: Vec<bool> = first.iter().map(|f| f.1).collect();
    assert_eq!(passed, [false, true]);
    let closed = bulk(&result).pages[0].took.as_secs_f64();
    let (open, nothing, _) = observed(&[ONE_PAGE, sets[1], "flows.bulk.close=false"]);
    assert!(nothing.is_empty());
    // The FIN is in the last segment of data, and the receiver's in the acknowledgement of it: no further round trip.
    let open = bulk(&open).pages[0].took.as_secs_f64();
    assert!((closed - open).abs() < 0.001, "{closed} and {open}");
    // With gateways a close lengthens a page. Without FINs a page ends when the last gateway has the receiver's acknowledgement; with
    // FINs it ends when the sender has the receiver's FIN, which crosses two legs more (120 ms and 5 ms).
    let split = |close: &str| {
        let (result, ..) = observed(&[ONE_PAGE, &format!("flows.bulk.close={close}")]);
        bulk(&result).pages[0].took.as_secs_f64()
    };
    let more = split("true") - split("false");
    assert!((0.125..0.140).contains(&more), "{more}");
}

#[test]
fn ends_that_are_lost_are_repeated_and_every_page_is_whole() {
    let error = "links.sat.error={ kind = \"per\", p = 0.1 }";
    let cases: [&[&str]; 8] = [
        &["flows.bulk.chain.kind=e2e"],
        &["flows.bulk.chain.kind=spoof"],
        &["flows.bulk.chain.kind=split2"],
        &["flows.bulk.chain.kind=split3"],
        &["flows.bulk.chain.kind=split3", "flows.bulk.chain.ack-mode=late"],
        &["flows.bulk.chain.kind=split3", "flows.bulk.chain.open=early"],
        &["flows.bulk.chain.kind=split3", RATED],
        &["flows.bulk.chain.kind=split3", RATED, "flows.bulk.chain.ack-mode=late"],
    ];
    for case in cases {
        let sets: Vec<&str> = case.iter().copied().chain([error, "duration=4000 s"]).collect();
        let result = text::ran(PATH, &sets, 3);
        let (flow, chain) = chained(&result);
        assert_eq!((flow.pages.len(), flow.bytes_acked, chain.lost), (3, 3 * PAGE, 0), "{case:?}");
        assert!(flow.finished.is_some(), "{case:?}");
    }
}

#[test]
fn an_early_acknowledgement_covers_a_fin_before_the_receiver_has_the_data_and_a_late_one_does_not() {
    // 8 Mbit of a page over 10 Mbit/s: the gateway has all of it long before the receiver.
    let at_close = |sets: &[&str]| chained(&text::ran(PATH, sets, 1)).1.custody_at_close;
    let split = at_close(&["gateways.g1.buffer=2 MB"]);
    assert!(split > PAGE / 2, "{split} of {PAGE}");
    for honest in
        ["flows.bulk.chain.ack-mode=late", "flows.bulk.chain.kind=spoof", "flows.bulk.chain.kind=e2e"]
    {
        assert_eq!(at_close(&["gateways.g1.buffer=2 MB", honest]), 0, "{honest}");
    }
    assert_eq!(at_close(&["gateways.g1.buffer=2 MB", "flows.bulk.close=false"]), 0, "there is no FIN");
}

#[test]
fn an_end_of_stream_moves_with_a_connection() {
    for at in ["0.3 s", "0.5 s", "0.9 s", "1.3 s", "1.6 s"] {
        let event = format!("{PATH}[[event]]\nat = \"{at}\"\nhandover = {{ from = \"g1\", to = \"g3\" }}\n");
        for sets in [vec![ONE_PAGE], vec![ONE_PAGE, RATED], vec![ONE_PAGE, "flows.bulk.chain.ack-mode=late"]]
        {
            let result = text::ran(&event, &sets, 1);
            let (flow, chain) = chained(&result);
            assert_eq!((flow.pages.len(), flow.bytes_acked, chain.lost), (1, PAGE, 0), "{at} {sets:?}");
        }
    }
}

#[test]
fn a_gateway_that_crashes_with_the_end_of_a_stream_leaves_the_receiver_without_it() {
    // Everything and its end is acknowledged to the sender, which then waits for the receiver's end in vain.
    let event = format!("{PATH}[[event]]\nat = \"0.7 s\"\ncrash = \"g1\"\n");
    let result = text::ran(&event, &[ONE_PAGE, "gateways.g1.buffer=2 MB", "links.sat.rate=4 Mbit/s"], 1);
    let (flow, chain) = chained(&result);
    assert!(chain.custody_at_close > PAGE / 2 && chain.lost > PAGE / 4, "{chain:?}");
    assert_eq!(chain.lost + flow.bytes_acked, PAGE);
    assert!(flow.pages.is_empty());
}

#[test]
fn a_stream_that_is_stopped_and_random_transfers_end_with_fins_too() {
    let e2e = "flows.bulk.chain.kind=e2e";
    let cbr = "flows.bulk.app={ kind = \"cbr\", rate = \"2 Mbit/s\" }";
    for kind in [e2e, "flows.bulk.chain.kind=split2"] {
        for app in ["flows.bulk.app=bulk", cbr] {
            let (result, first, _) = observed(&[kind, app, "flows.bulk.stop=5 s"]);
            let flow = bulk(&result);
            assert!(flow.bytes_acked > 1_000_000, "{kind} {app}: {}", flow.bytes_acked);
            let last = first.last().expect("an end");
            let finished = flow.finished.expect("it is over").as_secs_f64();
            assert!(
                last.1 && (finished - last.2).abs() < 1e-9 && finished > 5.0,
                "{kind} {app}: {finished}, {first:?}"
            );
        }
    }
    let text = PATH.split("[flows.bulk.chain]").next().expect("a flow");
    let app = "flows.bulk.app={ kind = \"arrivals\", rate = \"2 /s\", size = \"30 kB\" }";
    let run = |close: &str| {
        text::ran(text, &[app, &format!("flows.bulk.close={close}"), "flows.bulk.stop=50 s"], 1)
    };
    let (with, without) = (run("true"), run("false"));
    let (with, without) = (bulk(&with), bulk(&without));
    assert!(with.transfers > 60 && with.pages.len() as u64 == with.transfers, "{}", with.transfers);
    assert_eq!((with.transfers, with.bytes_acked), (without.transfers, without.bytes_acked));
}

#[test]
fn the_key_comes_back_from_its_resolved_form_and_needs_a_handshake() {
    let s = text::resolve(PATH, &[]);
    text::assert_comes_back_from_its_file(&s);
    assert!(s.flows.iter().all(|f| f.close));
    let text = PATH.split("[flows.bulk.chain]").next().expect("a flow");
    let cases = [
        (["flows.bulk.handshake=false", "flows.bulk.cc=sack"], "flows.bulk.close"),
        (
            ["flows.bulk.transport=udp", "flows.bulk.app={ kind = \"cbr\", rate = \"1 Mbit/s\" }"],
            "only TCP uses it",
        ),
    ];
    for (sets, says) in cases {
        let mut d = Document::parse("t.toml", text, &no_files).expect("TOML");
        sets.iter().for_each(|set| d.set(set).unwrap_or_else(|e| panic!("{e}")));
        let error = d.resolve().expect_err(says).to_string();
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
}
