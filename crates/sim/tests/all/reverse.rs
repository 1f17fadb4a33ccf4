//! Flows whose data crosses links in their reverse direction: they are flows of the mirrored path, and what they send delays the
//! acknowledgements of the others.

use crate::text;
use skyhaul_scenario::{Document, check, no_files};
use skyhaul_sim::{FlowResult, RunResult};
use skyhaul_trace::Class;

/// Two links, all of whose four directions differ.
fn path(first: &str, second: &str, flow: &str) -> String {
    format!(
        r#"
duration = "60 s"
[links.a]
{first}
[links.b]
{second}
[flows.f]
cc = "newreno"
endpoint = "modern"
rwnd = "256 KiB"
{flow}
"#
    )
}
const FAST: &str = "{ rate = \"20 Mbit/s\", delay = \"20 ms\", queue = \"100 packets\" }";
const SLOW: &str = "{ rate = \"4 Mbit/s\", delay = \"100 ms\", queue = \"30 packets\" }";
const NARROW: &str = "{ rate = \"2 Mbit/s\", delay = \"90 ms\", queue = \"20 packets\" }";
const WIDE: &str = "{ rate = \"9 Mbit/s\", delay = \"11 ms\", queue = \"50 packets\" }";

/// The keys of a link with these two directions.
fn link(forward: &str, reverse: &str) -> String {
    let own = forward.trim_matches(['{', '}', ' ']).replace(", ", "\n");
    format!("{own}\nreverse = {reverse}")
}

fn numbers(f: &FlowResult) -> (u64, u64, u64, u64, u64, Option<u64>) {
    (
        f.bytes_acked,
        f.segments_sent,
        f.retransmissions,
        f.cuts.total(),
        f.acks,
        f.last_ack.map(|t| t.as_nanos()),
    )
}

#[test]
fn a_flow_in_reverse_is_a_flow_of_the_mirrored_path() {
    // Forward over a and b, with what was each link's reverse direction; against the path it comes to the same.
    let mirrored =
        path(&link(FAST, SLOW), &link(NARROW, WIDE), "path = [\"b\", \"a\"]\ndirection = \"reverse\"");
    let plain = path(&link(SLOW, FAST), &link(WIDE, NARROW), "path = [\"a\", \"b\"]");
    for handshake in ["true", "false"] {
        for extra in ["0 s", "30 ms"] {
            let sets = [format!("flows.f.handshake={handshake}"), format!("flows.f.extra-delay={extra}")];
            let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
            let (there, back) = (text::ran(&plain, &sets, 1), text::ran(&mirrored, &sets, 1));
            let (there, back) = (&there.flows[0], &back.flows[0]);
            assert!(there.retransmissions > 10 && there.bytes_acked > 5_000_000, "{}", there.bytes_acked);
            assert_eq!(numbers(there), numbers(back), "handshake {handshake}, access {extra}");
        }
    }
    let datagrams = "transport = \"udp\"\napp = { kind = \"cbr\", rate = \"5 Mbit/s\" }";
    let text = |flow: &str, first: &str, second: &str| {
        path(first, second, &format!("{datagrams}\n{flow}"))
            .replace("cc = \"newreno\"\nendpoint = \"modern\"\nrwnd = \"256 KiB\"\n", "")
    };
    let there = text::ran(&text("path = [\"a\", \"b\"]", &link(SLOW, FAST), &link(WIDE, NARROW)), &[], 1);
    let back = text::ran(
        &text("path = [\"b\", \"a\"]\ndirection = \"reverse\"", &link(FAST, SLOW), &link(NARROW, WIDE)),
        &[],
        1,
    );
    let (there, back) =
        (there.flows[0].datagrams.expect("datagrams"), back.flows[0].datagrams.expect("datagrams"));
    assert!(there.delivered > 1000);
    assert_eq!(
        (there.delivered, there.delay_mean, there.delay_max),
        (back.delivered, back.delay_mean, back.delay_max)
    );
}

/// A satellite link of 10 Mbit/s with a return link of 256 kbit/s, one download, and `more`.
fn two_ways(more: &str) -> RunResult {
    let text = format!(
        r#"
duration = "200 s"
[links.sat]
rate = "10 Mbit/s"
delay = "125 ms"
queue = "50 packets"
reverse = {{ rate = "256 kbit/s", queue = "20 packets" }}
[record]
sample = "1 s"
series = ["srtt"]
[flows.down]
cc = "sack"
rwnd = "1 MiB"
{more}
"#
    );
    text::ran(&text, &[], 1)
}
const UP: &str = "[flows.up]\ncc = \"sack\"\ndirection = \"reverse\"";

#[test]
fn data_on_the_return_link_delays_and_thins_the_acknowledgements_of_a_download() {
    let (alone, loaded) = (two_ways(""), two_ways(UP));
    let goodput = |r: &RunResult, group: &str| r.group(group).map(|f| f.goodput).sum::<f64>();
    // 256 kbit/s in acknowledgements of two segments each do not limit 10 Mbit/s; a full queue of data does.
    assert!(goodput(&alone, "down") > 8e6, "{}", goodput(&alone, "down"));
    assert!(goodput(&loaded, "down") < 0.7 * goodput(&alone, "down"), "{}", goodput(&loaded, "down"));
    // The upload uses what the return link has, as a download over such a link would.
    assert!(
        goodput(&loaded, "up") > 0.5 * 256e3 && goodput(&loaded, "up") < 256e3,
        "{}",
        goodput(&loaded, "up")
    );
    let (there, back) =
        (loaded.link("sat", true).expect("a link"), loaded.link("sat", false).expect("a link"));
    let (down, up) =
        (loaded.group("down").next().expect("a flow"), loaded.group("up").next().expect("a flow"));
    // And each way the SYN of one and the answer to that of the other.
    assert_eq!(there.class(Class::Data).offered, down.segments_sent + 2);
    assert_eq!(back.class(Class::Data).offered, up.segments_sent + 2);
    assert!(there.class(Class::Ack).offered >= up.acks && back.class(Class::Ack).offered > down.acks);
    let srtt = |r: &RunResult| r.group("down").next().and_then(|f| f.mean_srtt).expect("samples");
    // A packet of data takes 47 ms of the return link, and an acknowledgement waits for half of one at least.
    assert!(srtt(&loaded) > srtt(&alone) + 0.023, "{} and {}", srtt(&loaded), srtt(&alone));
}

#[test]
fn what_check_says_of_a_flow_in_reverse_is_said_of_its_direction() {
    let text = format!(
        r#"
duration = "60 s"
[links.sat]
rate = "10 Mbit/s"
delay = "125 ms"
queue = "300 packets"
reverse = {{ rate = "1 Mbit/s", queue = "1 packets", error = {{ kind = "per", p = 1e-2 }} }}
{UP}
"#
    );
    let d = Document::parse("t.toml", &text, &no_files).expect("TOML");
    let c = check(&d.resolve().expect("a scenario"));
    let up = &c.flows[0];
    assert!(up.reverse && (up.loss - 1e-2).abs() < 1e-12);
    let bottleneck = up.bottleneck.as_ref().expect("a rate");
    assert!((bottleneck.bdp_packets - 1e6 * up.base_rtt_s / 8.0 / f64::from(up.packet_bytes)).abs() < 1e-9);
    let (forward, reverse) = (&c.links[0].forward, &c.links[0].reverse);
    assert_eq!((forward.packet_bytes, reverse.packet_bytes), (52, up.packet_bytes));
    assert!(reverse.utilization.expect("a rate") > 10.0 * forward.utilization.expect("a rate"));
    let codes: Vec<(&str, &str)> = c.warnings.iter().map(|w| (w.code, w.key.as_str())).collect();
    assert!(codes.contains(&("queue-short", "links.sat.reverse.queue")), "{codes:?}");
    assert!(codes.iter().all(|(_, key)| *key != "links.sat.queue"), "{codes:?}");
    assert!(c.to_string().contains("direction    reverse"), "{c}");
    // Two that send towards each other share nothing but what their acknowledgements take.
    let text = text
        .replace("duration", "flows.down = { cc = \"sack\", rwnd = \"4 MiB\" }\nduration")
        .replace("p = 1e-2", "p = 0");
    let d = Document::parse("t.toml", &text, &no_files).expect("TOML");
    let c = check(&d.resolve().expect("a scenario"));
    let of = |name: &str| c.flows.iter().find(|f| f.name == name).expect("a group");
    let (up, down) =
        (of("up").bounds.fair_share.expect("a rate"), of("down").bounds.return_link.expect("a rate"));
    assert!(up < 1e6 / 8.0 / 1500.0 + 1e-9 && down < 2.0 * 1e6 / 8.0 / 52.0, "{up}, {down}");
}

#[test]
fn the_key_comes_back_from_its_resolved_form_and_mistakes_are_named() {
    let text = path(&link(FAST, SLOW), &link(NARROW, WIDE), "path = [\"b\", \"a\"]\ndirection = \"reverse\"");
    let s = text::resolve(&text, &[]);
    text::assert_comes_back_from_its_file(&s);
    assert_ne!(s.hash(), text::resolve(&text, &["flows.f.direction=forward"]).hash());
    assert!(!text::resolve(&text, &["flows.f.direction=forward"]).to_toml().contains("direction"));
    let mut d = Document::parse("t.toml", &text, &no_files).expect("TOML");
    let error =
        d.set("flows.f.direction=backwards").and_then(|()| d.resolve().map(drop)).expect_err("no such way");
    let error = error.to_string();
    assert!(
        error.contains("flows.f.direction") && error.contains("reverse") && error.lines().count() == 1,
        "{error}"
    );
    let chained = format!(
        "{text}\n[gateways.g]\nbehind = \"b\"\n[flows.f.chain]\nkind = \"split2\"\ngateways = [\"g\"]\n"
    );
    let error = Document::parse("t.toml", &chained, &no_files)
        .expect("TOML")
        .resolve()
        .expect_err("no chain")
        .to_string();
    assert!(error.contains("flows.f.direction") && error.lines().count() == 1, "{error}");
}
