//! Segments that two gateways repair.

use skyhaul_scenario::resolved::Resolved;
use skyhaul_sim::{RunResult, run};
use skyhaul_trace::{Digest, LossCause, Null};

fn resolved(text: &str) -> Resolved {
    skyhaul_scenario::resolve_text("test.toml", text, &[], &skyhaul_scenario::no_files)
        .unwrap_or_else(|e| panic!("{e}"))
}

fn simulated(text: &str) -> RunResult {
    run(&resolved(text), 1, Null).expect("a run")
}

/// A link with losses, and 1 Mbit/s of datagrams that stop before the end, so that nothing is on its way then.
fn datagrams(error: &str, repair: &str) -> String {
    format!(
        "schema = 1\nduration = \"100 s\"\nrecord = {{ packet-delay = true }}\n{repair}\n[links.sat]\nrate = \"10 Mbit/s\"\n\
         delay = \"275 ms\"\npacket = \"1000 B\"\nqueue = \"1 BDP\"\nerror = {error}\nreverse = {{ error = \"none\" }}\n\
         [flows.f]\ntransport = \"udp\"\napp = {{ kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"1000 B\" }}\nstop = \"90 s\"\n"
    )
}

const PER: &str = "{ kind = \"per\", p = 0.02 }";

#[test]
fn what_the_channel_loses_is_delivered_once() {
    let plain = simulated(&datagrams(PER, ""));
    let fixed = simulated(&datagrams(PER, "repair.pair = { links = ['sat'] }"));
    let of = |r: &RunResult| r.flows[0].datagrams.expect("datagrams");
    let sent = plain.flows[0].segments_sent;
    assert_eq!(fixed.flows[0].segments_sent, sent);
    assert!(of(&plain).delivered < sent * 99 / 100);
    assert!(of(&fixed).delivered <= sent);
    assert!(sent - of(&fixed).delivered <= 3, "{} of {sent}", of(&fixed).delivered);
    let (sender, receiver) = **fixed.links[0].gateways.as_ref().expect("gateways");
    assert_eq!(sender.sources, sent);
    assert!(receiver.recovered > sent / 100 && sender.symbols > 0, "{receiver:?}");
    assert_eq!(receiver.delivered, of(&fixed).delivered);
    assert!(plain.links[0].gateways.is_none());
    assert!(fixed.links[1].gateways.is_some(), "the other gateway sends reports");
}

#[test]
fn without_losses_nothing_changes_but_a_header() {
    let plain = simulated(&datagrams("\"none\"", ""));
    let fixed = simulated(&datagrams("\"none\"", "repair.pair = { links = ['sat'] }"));
    let of = |r: &RunResult| *r.flows[0].packet_delays.clone().expect("measured");
    // Percentiles are those of a histogram, too coarse for a header. A repair symbol may be in the way: the first ones are
    // sent before the measurement has shown that there are no losses.
    let (a, b) = (of(&plain).one_way.p99, of(&fixed).one_way.p99);
    assert!(b >= a && b - a < 0.003, "{a} {b}");
    let least = of(&fixed).queueing.p50;
    assert!(least < 0.001, "the propagation of the segment is no queueing: {least}");
    assert_eq!(plain.flows[0].segments_sent, fixed.flows[0].datagrams.expect("datagrams").delivered);
}

#[test]
fn what_compression_takes_is_not_sent() {
    let plain = simulated(&datagrams(PER, "repair.pair = { links = ['sat'] }"));
    let short = simulated(&datagrams(PER, "repair.pair = { links = ['sat'], compress = '26 B' }"));
    let of = |r: &RunResult| **r.links[0].gateways.as_ref().expect("gateways");
    let ((a, _), (b, receiver)) = (of(&plain), of(&short));
    assert_eq!(a.carried_bytes, a.source_bytes);
    assert_eq!((b.source_bytes, b.carried_bytes), (a.source_bytes, a.source_bytes - 26 * b.sources));
    assert_eq!(receiver.unreadable, 0);
    assert!(b.symbol_bytes / b.symbols < a.symbol_bytes / a.symbols, "symbols are shorter, too");
    let delivered = |r: &RunResult| r.flows[0].datagrams.expect("datagrams").delivered;
    assert!(delivered(&short) + 3 >= delivered(&plain));
}

#[test]
fn a_flow_that_passes_is_as_without_gateways_but_for_their_queue() {
    let plain = simulated(&datagrams(PER, ""));
    let passed = simulated(&datagrams(PER, "repair.pair = { links = ['sat'], pass = ['f'] }"));
    let (a, b) = (&plain.flows[0], &passed.flows[0]);
    assert_eq!(a.datagrams.expect("datagrams").delivered, b.datagrams.expect("datagrams").delivered);
    assert_eq!(a.lost[LossCause::Error as usize], b.lost[LossCause::Error as usize]);
    let (sender, _) = **passed.links[0].gateways.as_ref().expect("gateways");
    assert_eq!((sender.sources, sender.passed), (0, a.segments_sent));
}

#[test]
fn congestion_is_not_repaired() {
    // Twice as much as the link carries: the gateway drops half of it, and repairs nothing of that.
    let text = datagrams("\"none\"", "repair.pair = { links = ['sat'] }").replace("1 Mbit/s", "20 Mbit/s");
    let r = simulated(&text);
    let (sender, receiver) = **r.links[0].gateways.as_ref().expect("gateways");
    let sent = r.flows[0].segments_sent;
    assert!(sender.dropped > sent * 45 / 100, "{} of {sent}", sender.dropped);
    assert_eq!(r.flows[0].lost[LossCause::Full as usize], sender.dropped);
    assert_eq!((sender.repeats, receiver.recovered, receiver.lost), (0, 0, 0));
    assert_eq!(r.links[0].dropped(LossCause::Full), 0, "nothing is dropped behind the gateway");
}

#[test]
fn marks_reach_the_receiver_and_the_sender_reacts() {
    let text = "schema = 1\nduration = \"60 s\"\nrepair.pair = { links = ['sat'] }\n[links.sat]\nrate = \"10 Mbit/s\"\n\
                delay = \"25 ms\"\npacket = \"1500 B\"\nqueue = { kind = \"codel\", limit = \"4 BDP\" }\n[flows.f]\ncc = \"cubic\"\n\
                endpoint = { preset = \"modern\", ecn = \"ask\" }\n";
    let r = simulated(text);
    assert!(r.flows[0].cuts.marked > 0, "{:?}", r.flows[0].cuts);
    assert!(r.flows[0].goodput > 8e6, "{}", r.flows[0].goodput);
}

#[test]
fn several_links_between_and_around_the_gateways() {
    let link = |name: &str, rate: &str, error: &str| {
        format!(
            "[links.{name}]\nrate = \"{rate}\"\ndelay = \"20 ms\"\nqueue = \"200 packets\"\nerror = {error}\nreverse = {{ error = \"none\" }}\n"
        )
    };
    let path = |repair: &str| {
        format!(
            "schema = 1\nduration = \"40 s\"\n{repair}\n{}{}{}{}[flows.f]\npath = ['a', 'b', 'c', 'd']\ncc = \"cubic\"\n",
            link("a", "100 Mbit/s", "\"none\""),
            link("b", "20 Mbit/s", PER),
            link("c", "10 Mbit/s", PER),
            link("d", "100 Mbit/s", "\"none\""),
        )
    };
    let plain = simulated(&path(""));
    let one = simulated(&path("repair.pair = { links = ['b', 'c'] }"));
    let two = simulated(&path("repair.first = { links = ['b'] }\nrepair.second = { links = ['c'] }"));
    let errors = |r: &RunResult| r.flows[0].lost[LossCause::Error as usize];
    assert!(errors(&plain) > 20 && errors(&one) == 0 && errors(&two) == 0);
    for r in [&one, &two] {
        assert!(r.flows[0].goodput > 2.0 * plain.flows[0].goodput, "{}", r.flows[0].goodput);
    }
    // Link 4 is the forward direction of c: only `repair.second` has a gateway before it.
    assert!(one.links[4].gateways.is_none() && two.links[4].gateways.is_some());
}

#[test]
fn a_recorder_changes_nothing_and_runs_repeat() {
    let text =
        datagrams(PER, "repair.pair = { links = ['sat'] }").replace("record = { packet-delay = true }\n", "");
    let scenario = resolved(&text);
    let a = run(&scenario, 3, Null).expect("a run");
    let b = run(&scenario, 3, Digest::default()).expect("a run");
    assert_eq!((a.events, &a.links, &a.flows), (b.events, &b.links, &b.flows));
    assert!(b.digest.is_some());
}

#[test]
fn what_makes_no_sense_is_refused_with_its_key() {
    let refused = |text: &str, expected: &str| {
        let e = skyhaul_scenario::resolve_text("test.toml", text, &[], &skyhaul_scenario::no_files);
        let e = e.expect_err(text).to_string();
        assert!(e.contains(expected), "{text}: {e}");
    };
    for (repair, expected) in [
        ("repair.pair = {}", "repair.pair.links: missing"),
        ("repair.pair = { links = ['sad'] }", "there is no link \"sad\""),
        ("repair.pair = { links = ['sat', 'sat'] }", "named twice"),
        ("repair.pair = { links = ['sat'], pass = ['g'] }", "there is no flow \"g\""),
        ("repair.pair = { links = ['sat'], share = 2 }", "a number from 0.001 to 0.5"),
        ("repair.pair = { links = ['sat'], block = 0 }", "write 1 to 1024"),
        ("repair.pair = { links = ['sat'], retries = 99 }", "at most 16"),
        ("repair.pair = { links = ['sat'], residual = 0 }", "from 1e-9 to 0.5"),
        ("repair.pair = { links = ['sat'], compress = '1 MB' }", "more than 65535 bytes"),
        ("repair.pair = { links = ['sat'], resequence = '2 h' }", "longer than a minute"),
        ("repair.pair = { links = ['sat'], mtu = '1000 B' }", "do not fit with the headers"),
        ("repair.pair = { links = ['sat'], mtu = '40 B' }", "no room for the headers"),
        ("repair.a = { links = ['sat'] }\nrepair.b = { links = ['sat'] }", "a link has one pair of gateways"),
    ] {
        refused(&datagrams(PER, repair), expected);
    }
    let shaped = "queue = { kind = \"cake\", limit = \"100 packets\", rate = \"1 Mbit/s\" }";
    let text = datagrams(PER, "repair.pair = { links = ['sat'] }").replace("queue = \"1 BDP\"", shaped);
    refused(&text, "leave out its `rate`");
    for thins in [
        "{ kind = \"ack-filter\", limit = \"100 packets\" }",
        "{ kind = \"ack-decimation\", limit = \"100 packets\", keep-every = 4 }",
    ] {
        let text = datagrams(PER, "repair.pair = { links = ['sat'] }");
        refused(
            &text.replace("queue = \"1 BDP\"", &format!("queue = {thins}")),
            "does not read the acknowledgements",
        );
    }
}

#[test]
fn the_resolved_text_says_the_same() {
    let text = datagrams(
        PER,
        "repair.pair = { links = ['sat'], retries = 1, mtu = '1500 B', compress = '26 B', pass = [] }",
    );
    let scenario = resolved(&text);
    assert_eq!(resolved(&scenario.to_toml()), scenario);
}

/// A bulk transfer with CUBIC over GEO that cannot be split, as on the page about repair.
fn over_geo(error: &str, repair: &str) -> RunResult {
    let text = format!(
        "schema = 1\nextends = \"preset:geo-today\"\nduration = \"60 s\"\nrecord = {{ packet-delay = true }}\n{repair}\n[links.sat]\n\
         queue = {{ kind = \"codel\", limit = \"1 BDP\" }}\nerror = {error}\n[flows.own]\n\
         endpoint = {{ preset = \"host\", ecn = \"ask\" }}\n"
    );
    simulated(&text)
}

#[test]
fn cubic_over_geo_fills_the_link_despite_losses() {
    let pair = "repair.pair = { links = ['sat'] }";
    let one_in_a_hundred = "{ kind = \"per\", p = 1e-2 }";
    let overhead = |r: &RunResult| {
        let (sender, _) = **r.links[0].gateways.as_ref().expect("gateways");
        (sender.symbol_bytes + sender.repeat_bytes) as f64 / sender.source_bytes as f64
    };
    let (lossy, repaired) = (over_geo(one_in_a_hundred, ""), over_geo(one_in_a_hundred, pair));
    let (clean, idle) = (over_geo("\"none\"", ""), over_geo("\"none\"", pair));
    for (name, r) in [("lossy", &lossy), ("repaired", &repaired), ("clean", &clean), ("idle", &idle)] {
        let f = &r.flows[0];
        let p99 = f.packet_delays.as_ref().map_or(0.0, |d| d.one_way.p99);
        println!("{name}: {:.3} Mbit/s, p99 {:.1} ms, cuts {:?}", f.goodput / 1e6, 1e3 * p99, f.cuts);
    }
    println!("overhead {:.4} {:.4}", overhead(&repaired), overhead(&idle));
    assert!(repaired.flows[0].goodput > 5.0 * lossy.flows[0].goodput);
    assert!(idle.flows[0].goodput > 0.94 * clean.flows[0].goodput);
    assert!(overhead(&repaired) < 0.08 && overhead(&idle) < 0.01);
}
