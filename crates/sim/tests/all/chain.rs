//! Chains of connections: what splitting gains, what it holds, what is lost when a gateway crashes.

use crate::text::{self, chained as bulk, split_path};
use skyhaul_scenario::resolved::Resolved;
use skyhaul_scenario::{Document, no_files};
use skyhaul_sim::{ChainResult, RunResult, run};
use skyhaul_trace::Null;

/// 100 Mbit/s, 5 ms on the ground; 10 Mbit/s over the satellite, a round trip of 550 ms in all.
const PATH: &str = split_path!(
    duration: "60 s",
    delay: "265 ms",
    queue: "1000 packets",
    r#"[gateways.g1]
behind = "near"
[gateways.g2]
behind = "sat"
[flows.bulk]
path = ["near", "sat", "far"]
cc = "reno"
endpoint = { preset = "modern", receive-autotuning = false, loss-detection = "dup-acks", tail-loss-probe = false }
rwnd = "64 KiB"
[flows.bulk.chain]
gateways = ["g1", "g2"]
[flows.bulk.chain.legs.g1]
rwnd = "1 MiB"
sndbuf = "2 MiB"
"#
);

fn resolve(sets: &[&str]) -> Resolved {
    text::resolve(PATH, sets)
}
fn ran(sets: &[&str]) -> RunResult {
    text::ran(PATH, sets, 1)
}

#[test]
fn splitting_frees_the_sender_of_the_long_round_trip() {
    // 64 KiB per 0.55 s and transmission are 0.95 Mbit/s; a window of 1 MiB on the satellite leg fills 10 Mbit/s.
    let result = ran(&["flows.bulk.chain.kind=e2e"]);
    let (whole, chain) = bulk(&result);
    assert!((0.90e6..0.96e6).contains(&whole.goodput), "{}", whole.goodput);
    assert_eq!((chain.lost, chain.custody), (0, 0));
    let result = ran(&["flows.bulk.chain.kind=split3", "duration=120 s"]);
    let (split, _) = bulk(&result);
    assert!(split.goodput > 9e6, "{}", split.goodput);
    assert_eq!(result.goodput(), split.goodput, "its legs are not counted again");
    assert_eq!(result.flows.iter().filter(|f| f.leg).count(), 2);
}

#[test]
fn custody_is_bounded_by_what_gateways_and_legs_can_hold() {
    for kind in ["split2", "split3"] {
        let s = resolve(&[&format!("flows.bulk.chain.kind={kind}")]);
        let buffers: u64 = s.flows[0].chain().expect("a chain").buffers.iter().sum();
        let ends: u64 = s.flows.iter().map(|f| f.endpoint.receive_buffer).sum();
        let sent: u64 = s.flows.iter().filter(|f| f.is_leg()).map(|f| f.endpoint.send_buffer).sum();
        let result = run(&s, 1, Null).expect("a world");
        let (_, chain) = bulk(&result);
        assert!(chain.custody > 0 && chain.custody <= buffers + ends + sent, "{kind}: {chain:?}");
    }
}

#[test]
fn late_acknowledgements_leave_no_custody_and_the_sender_has_the_whole_round_trip_again() {
    let early = ran(&["flows.bulk.chain.kind=split3"]);
    let late = ran(&["flows.bulk.chain.kind=split3", "flows.bulk.chain.ack-mode=late"]);
    let ((early, _), (late, chain)) = (bulk(&early), bulk(&late));
    assert_eq!(chain.custody, 0, "nothing is acknowledged that the receiver does not have");
    assert!(late.goodput < 0.97e6 && late.goodput > 0.8e6, "{}", late.goodput);
    assert!(early.goodput > 5.0 * late.goodput);
    assert_eq!(late.timeouts, 0);
}

#[test]
fn opening_early_saves_handshakes() {
    let set_up = |open: &str| {
        let result = ran(&["flows.bulk.chain.kind=split3", &format!("flows.bulk.chain.open={open}")]);
        bulk(&result).1.setup.expect("all legs").as_secs_f64()
    };
    let (sequential, early) = (set_up("sequential"), set_up("early"));
    // One after the other: a gateway goes on with the third segment of a handshake, which is one and a half round trips of
    // each leg but the last.
    let legs = [0.010, 0.530, 0.010];
    let expected = 1.5 * (legs[0] + legs[1]) + legs[2];
    assert!((expected..expected + 0.003).contains(&sequential), "{sequential}");
    // Early: each with the first; the satellite leg takes longest.
    let expected = 0.5 * legs[0] + legs[1];
    assert!((expected..expected + 0.003).contains(&early), "{early}");
}

#[test]
fn a_crash_loses_exactly_what_was_acknowledged_and_had_not_left() {
    // All of 1 MB is acknowledged to the sender before the gateway crashes, over a satellite of 1 Mbit/s.
    let mut d =
        Document::parse("t.toml", &format!("{PATH}\n[[event]]\nat = \"3 s\"\ncrash = \"g1\"\n"), &no_files)
            .expect("TOML");
    for set in [
        "gateways.g1.buffer=2 MB",
        "links.sat.rate=1 Mbit/s",
        "flows.bulk.chain.kind=split3",
        "flows.bulk.app={ kind = \"pages\", segments = 691, count = 1 }",
    ] {
        d.set(set).unwrap_or_else(|e| panic!("{e}"));
    }
    let s = d.resolve().unwrap_or_else(|e| panic!("{e}"));
    let bytes = 691 * u64::from(s.flows[0].endpoint.mss);
    let result = run(&s, 1, Null).expect("a world");
    let (flow, chain) = bulk(&result);
    assert!(chain.lost > 500_000, "{chain:?}");
    // What arrived is what the receiver at the far end acknowledged: nothing is on the way any more.
    assert_eq!(chain.lost + flow.bytes_acked, bytes);
    assert!(flow.pages.is_empty() && chain.lost <= chain.custody);
}

#[test]
fn a_crash_before_the_connection_opens_loses_nothing() {
    let sets =
        ["duration=10 s", "links.sat.rate=1 Mbit/s", "flows.bulk.chain.kind=split2", "flows.bulk.start=2 s"];
    let without = text::ran(PATH, &sets, 1);
    let crash = format!("{PATH}\n[[event]]\nat = \"1 s\"\ncrash = \"g1\"\n");
    let with = text::ran(&crash, &sets, 1);
    // The gateway holds data when the run ends.
    assert!(bulk(&without).1.custody > 0);
    assert_eq!((bulk(&with).1.lost, bulk(&with).1), (0, bulk(&without).1));
}

#[test]
fn custody_stays_below_two_buffers_and_the_window_and_a_crash_loses_what_of_it_never_arrives() {
    let (buffer, window) = (256 * 1024, 1024 * 1024);
    let sets = [
        "gateways.g1.buffer=256 KiB",
        "gateways.g2.buffer=256 KiB",
        "flows.bulk.chain.legs.g1.sndbuf=1 MiB",
        "record={ sample = \"10 ms\", series = [\"acked\", \"custody\"] }",
    ];
    for (kind, error, at) in [
        ("split2", "none", 2),
        ("split3", "none", 2),
        ("split3", "none", 7),
        ("split3", "{ kind = \"per\", p = 1e-2 }", 11),
    ] {
        let more = [format!("flows.bulk.chain.kind={kind}"), format!("links.sat.error={error}")];
        let sets: Vec<&str> = sets.iter().copied().chain(more.iter().map(String::as_str)).collect();
        let (_, chain) = bulk(&text::ran(PATH, &sets, 1));
        assert!(chain.custody > window && chain.custody <= 2 * buffer + window, "{kind}: {chain:?}");
        let crash = format!("{PATH}\n[[event]]\nat = \"{at} s\"\ncrash = \"g1\"\n");
        let result = text::ran(&crash, &sets, 1);
        let (flow, chain) = bulk(&result);
        let last = |name: &str, until: f64| {
            let series = result.series.flows.of(0, name);
            series.take_while(|(t, _)| *t < until).last().expect("a sample").1
        };
        let (acked, custody) = (last("acked", f64::INFINITY), last("custody", f64::from(at)));
        assert!(
            chain.lost > 0 && chain.lost as f64 <= custody + 100_000.0,
            "{kind}, {at} s: {chain:?}, {custody}"
        );
        if kind == "split3" {
            // Behind the second gateway everything arrives, and is acknowledged there. Series count in segments.
            let acked = acked * f64::from(resolve(&sets).flows[0].endpoint.mss);
            let sum = (chain.lost + flow.bytes_acked) as f64;
            assert!((sum - acked).abs() < 1.0, "{at} s: {sum} and not {acked}");
        }
    }
}

#[test]
fn a_sender_learns_of_a_crash_by_a_reset() {
    let mut d =
        Document::parse("t.toml", &format!("{PATH}\n[[event]]\nat = \"5 s\"\ncrash = \"g2\"\n"), &no_files)
            .expect("TOML");
    d.set("flows.bulk.chain.kind=split3").expect("a key");
    let result = run(&d.resolve().unwrap_or_else(|e| panic!("{e}")), 1, Null).expect("a world");
    let (flow, chain) = bulk(&result);
    let finished = flow.finished.expect("it is over").as_secs_f64();
    // The first gateway learns of it within a round trip of the satellite leg, and resets the sender.
    assert!((5.0..5.6).contains(&finished), "{finished}");
    assert!(chain.lost > 0);
}

#[test]
fn a_gateway_without_room_lets_pass_or_refuses_and_leaves_nothing_behind() {
    let of = |overload: &str| {
        ran(&[
            "flows.bulk.chain.kind=split2",
            "flows.bulk.count=6",
            "flows.bulk.start=0 s",
            "flows.bulk.app={ kind = \"pages\", segments = 20, count = 1 }",
            "gateways.g1.connections=4",
            &format!("gateways.g1.overload={overload}"),
        ])
    };
    let sum = |r: &RunResult, of: fn(&ChainResult) -> u64| -> u64 {
        r.group("bulk").filter_map(|f| f.chain.as_deref()).map(of).sum()
    };
    let bypass = of("bypass");
    assert_eq!((sum(&bypass, |c| c.bypassed), sum(&bypass, |c| c.refused)), (2, 0));
    assert!(bypass.group("bulk").all(|f| f.pages.len() == 1 && f.finished.is_some()));
    let refuse = of("refuse");
    assert_eq!((sum(&refuse, |c| c.bypassed), sum(&refuse, |c| c.refused)), (0, 2));
    let (served, turned_away): (Vec<_>, Vec<_>) = refuse.group("bulk").partition(|f| !f.pages.is_empty());
    assert_eq!((served.len(), turned_away.len()), (4, 2));
    assert!(turned_away.iter().all(|f| f.bytes_acked == 0 && f.finished.is_some()));
}

#[test]
fn many_flows_at_once_leave_nothing_behind() {
    let s = resolve(&[
        "flows.bulk.chain.kind=split3",
        "flows.bulk.count=1000",
        "flows.bulk.app={ kind = \"pages\", segments = 3, count = 2 }",
        "links.sat.rate=100 Mbit/s",
        "gateways.g2.connections=700",
    ]);
    let mut sim = skyhaul_sim::Sim::new(&s, 1, Null).expect("a world");
    sim.run_until(skyhaul_base::Instant::MAX);
    assert_eq!((sim.in_network(), sim.stored_bodies(), sim.connections_at_gateways()), (0, 0, 0));
    let result = sim.finish();
    assert!(
        result.group("bulk").all(|f| f.pages.len() == 2 && f.chain.as_deref().is_some_and(|c| c.lost == 0))
    );
}

#[test]
fn corruption_is_not_cured_by_splitting() {
    // Reno over the satellite leg is Reno over nearly the same round trip.
    let goodput = |kind: &str| {
        let result = ran(&[
            &format!("flows.bulk.chain.kind={kind}"),
            "links.sat.error={ kind = \"per\", p = 1e-2 }",
            "flows.bulk.rwnd=1 MiB",
            "duration=200 s",
        ]);
        bulk(&result).0.goodput
    };
    let (whole, split) = (goodput("e2e"), goodput("split3"));
    assert!(split < 1.5 * whole && split < 0.1 * 10e6, "{split} against {whole}");
}

#[test]
fn the_same_scenario_comes_back_from_its_resolved_form() {
    for kind in ["e2e", "split2", "split3"] {
        let s = resolve(&[&format!("flows.bulk.chain.kind={kind}")]);
        text::assert_comes_back_from_its_file(&s);
    }
}

#[test]
fn bad_chains_are_refused_in_one_line_that_says_what_to_write() {
    let cases: [(&[&str], &str); 9] = [
        (&["flows.bulk.chain.gateways=[\"g1\", \"g3\"]"], "there is no gateway \"g3\""),
        (&["flows.bulk.chain.gateways=[\"g2\", \"g1\"]"], "in the order of the path"),
        (&["flows.bulk.path=[\"sat\", \"far\"]"], "which is not on the path"),
        (&["gateways.g2.behind=far"], "the last link"),
        (&["gateways.g1.behind=moon"], "there is no link \"moon\""),
        (&["gateways.g1.buffer=0 B"], "write, say, \"256 KiB\""),
        (&["gateways.g1.connections=0"], "write at least 1"),
        (&["flows.bulk.chain.kind=split3", "flows.bulk.chain.gateways=[\"g1\"]"], "needs 2, but there is 1"),
        (&["flows.bulk.chain.legs.g1.cc=rino"], "flows.bulk.chain.legs.g1.cc"),
    ];
    for (sets, says) in cases {
        let mut d = Document::parse("t.toml", PATH, &no_files).expect("TOML");
        let result = sets.iter().try_for_each(|set| d.set(set)).and_then(|()| d.resolve().map(|_| ()));
        let error = result.expect_err(says).to_string();
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
    let text = format!("{PATH}\n[[event]]\nat = \"1 s\"\ncrash = \"g9\"\n");
    let error = Document::parse("t.toml", &text, &no_files).expect("TOML").resolve().expect_err("no g9");
    assert!(error.to_string().contains("event[0].crash: there is no gateway \"g9\""), "{error}");
}

#[test]
fn a_leg_that_does_not_answer_corruption_fills_the_satellite_where_reno_does_not() {
    // One packet in a hundred is lost on the satellite: splitting is not the cure, the protocol of the leg is.
    let sets = [
        "flows.bulk.chain.kind=split3",
        "links.sat.error={ kind = \"per\", p = 1e-2 }",
        "flows.bulk.rwnd=1 MiB",
        // A gap keeps the window shut for a round trip or more after it: the window is to bind nowhere.
        "flows.bulk.chain.legs.g1.rwnd=8 MiB",
        "flows.bulk.chain.legs.g1.sndbuf=8 MiB",
        "duration=120 s",
    ];
    let reno = bulk(&ran(&sets)).0.goodput;
    // 1500 bytes of 10 Mbit/s are 1448 of payload, and 52 of headers.
    let capacity = 10e6 * 1448.0 / 1500.0;
    for repair in ["selective", "go-back-n"] {
        let leg = format!(
            "flows.bulk.chain.legs.g1.transport={{ kind = \"xtp-like\", rate = \"9.9 Mbit/s\", repair = \"{repair}\" }}"
        );
        let with: Vec<&str> = sets.iter().copied().chain([leg.as_str()]).collect();
        let result = ran(&with);
        let (flow, chain) = bulk(&result);
        let leg = result.group("bulk-g1").next().expect("a leg");
        assert!(leg.retransmissions > 100 && chain.lost == 0);
        if repair == "selective" {
            assert!(flow.goodput > 0.9 * capacity, "{} of {capacity}", flow.goodput);
            assert!(reno < 0.3 * flow.goodput, "{reno} against {}", flow.goodput);
        } else {
            // (1 - p) / (1 - p + p W), W = 9.9 Mbit/s x 0.53 s / 1500 B.
            let w = 9.9e6 * 0.53 / 8.0 / 1500.0;
            let expected = 0.99 * capacity * 0.99 / (0.99 + 0.01 * w);
            assert!((flow.goodput / expected - 1.0).abs() < 0.15, "{} against {expected}", flow.goodput);
        }
    }
}

#[test]
fn a_rate_above_that_of_the_link_loses_for_ever_and_still_arrives() {
    let result = ran(&[
        "flows.bulk.chain.kind=split3",
        "flows.bulk.rwnd=1 MiB",
        // A gap keeps the window shut for a round trip or more after it: the window is to bind nowhere.
        "flows.bulk.chain.legs.g1.rwnd=8 MiB",
        "flows.bulk.chain.legs.g1.sndbuf=8 MiB",
        "links.sat.queue.limit=50 packets",
        "flows.bulk.chain.legs.g1.transport={ kind = \"xtp-like\", rate = \"12 Mbit/s\" }",
    ]);
    let (flow, _) = bulk(&result);
    let sat = result.link("sat", true).expect("a link");
    // For ever, and as much as is above the rate: 1 - 10/12.
    let lost = sat.dropped(skyhaul_trace::LossCause::Full) as f64;
    let share = lost / sat.classes[skyhaul_trace::Class::Data as usize].offered as f64;
    assert!((share - (1.0 - 10.0 / 12.0)).abs() < 0.01, "{share}");
    assert!(flow.goodput > 8e6, "{}", flow.goodput);
}

#[test]
fn a_gateway_whose_peer_has_crashed_asks_in_vain_and_gives_up() {
    let text = format!("{PATH}\n[[event]]\nat = \"5 s\"\ncrash = \"g2\"\n");
    let mut d = Document::parse("t.toml", &text, &no_files).expect("TOML");
    for set in [
        "flows.bulk.chain.kind=split3",
        "duration=400 s",
        "flows.bulk.chain.legs.g1.transport={ kind = \"xtp-like\", rate = \"5 Mbit/s\", retry = 3 }",
    ] {
        d.set(set).unwrap_or_else(|e| panic!("{e}"));
    }
    let result = run(&d.resolve().unwrap_or_else(|e| panic!("{e}")), 1, Null).expect("a world");
    let (flow, chain) = bulk(&result);
    // One and a half round trips of 0.53 s at least, doubled for each of four questions: 1.5 x 0.53 s x (1 + 2 + 4 + 8).
    let finished = flow.finished.expect("it is over").as_secs_f64();
    let patience = 1.5 * 0.53 * 15.0;
    assert!((5.0 + patience - 1.0..5.0 + patience + 3.0).contains(&finished), "{finished}");
    assert!(chain.lost > 0 && result.group("bulk-g1").all(|l| l.timeouts == 4));
}

#[test]
fn a_leg_without_a_rate_or_a_peer_is_refused() {
    let cases = [
        ("split3", "{ kind = \"xtp-like\" }", "legs.g1.transport.rate: missing"),
        ("split3", "{ kind = \"xtp-like\", rate = \"0 bit/s\" }", "legs.g1.transport.rate"),
        ("split3", "{ kind = \"xtp-like\", rate = \"1 Mbit/s\", burst = 0 }", "legs.g1.transport.burst"),
        ("split2", "{ kind = \"xtp-like\", rate = \"1 Mbit/s\" }", "the receiver knows only \"tcp\""),
    ];
    for (kind, transport, says) in cases {
        let mut d = Document::parse("t.toml", PATH, &no_files).expect("TOML");
        d.set(&format!("flows.bulk.chain.kind={kind}")).expect("a key");
        d.set(&format!("flows.bulk.chain.legs.g1.transport={transport}")).expect("a key");
        let error = d.resolve().expect_err(says).to_string();
        assert!(error.contains(says) && error.lines().count() == 1, "{error}");
    }
}
