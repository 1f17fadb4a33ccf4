//! Paths that are narrower than their ends: what swallows, what fragments, and what a sender that searches makes of either.

use crate::text::resolved;
use skyhaul_sim::{FlowResult, LinkResult, ReductionCounts, RunResult, run};
use skyhaul_trace::Null;

/// A transfer for `seconds` over 4 Mbit/s and a round trip of 508 ms, in packets of `mss` and 52 bytes of headers.
fn transfer(seconds: u32, mss: u32, endpoint: &str, cc: &str, errors: &str, seed: u64) -> RunResult {
    let text = format!(
        r#"
schema = 1
duration = "{seconds} s"
[links.sat]
rate = "4 Mbit/s"
delay = "254 ms"
queue = "400 packets"
error = {{ kind = "mtu", {errors} }}
reverse = {{ error = "none" }}
[flows.bulk]
path = ["sat"]
cc = "{cc}"
endpoint = {{ mss = "{mss} B", growth = "abc" {endpoint} }}
rwnd = "256 KiB"
"#
    );
    run(&resolved(&text), seed, Null).expect("a run")
}
fn parts(r: &RunResult) -> (&FlowResult, &LinkResult) {
    (&r.flows[0], r.link("sat", true).expect("the link"))
}

#[test]
fn a_search_opens_a_path_that_swallows_without_a_word() {
    let swallows = "mtu = '1400 B'";
    let shut = transfer(60, 1448, "", "newreno", swallows, 1);
    assert_eq!(parts(&shut).0.bytes_acked, 0, "segments of a simulation are as long as the endpoint says");
    let r = transfer(300, 1448, ", mtu-search = true", "newreno", swallows, 1);
    let (flow, link) = parts(&r);
    // Packets of 1400 bytes have 1348 of payload; the search may stop 7 bytes below. The window, 256 KiB per 508 ms, is more than
    // the link carries.
    let share = flow.goodput / 4e6;
    assert!(share > 0.9 * 1341.0 / 1393.0 && share < 1348.0 / 1400.0, "{share}");
    assert_eq!((flow.timeouts, flow.cuts), (0, ReductionCounts::default()));
    assert!(link.delivered_bytes > 0);
}

/// With fragments of 576 bytes a packet of 1500 is three: 552, 552 and 376 of its payload, each with a header.
#[test]
fn fragments_take_their_headers_on_the_link() {
    let r = transfer(100, 1448, "", "newreno", "mtu = '576 B', fragments = true", 1);
    let (flow, link) = parts(&r);
    let packets = link.classes.iter().map(|c| c.delivered).sum::<u64>() as f64;
    let (sent, on_wire) = (packets * 1500.0 * 8.0, packets * 1540.0 * 8.0);
    let busy = link.utilization * 100.0 * 4e6;
    // What is on its way at the end has left and not arrived: 254 ms of the link.
    assert!(busy >= on_wire && busy <= on_wire + 0.26 * 4e6, "{busy} {on_wire} {sent}");
    assert!(flow.goodput > 3e6, "{}", flow.goodput);
}

/// The same path to a sender that discovers what it carries, to one whose packets are fragmented, and to one that does
/// neither and so sends the 536 bytes that every host takes (RFC 1122 §3.3.3). `p`: each packet in one piece, and each
/// fragment, is lost with this probability. Goodputs in bit/s.
fn three_ways(mtu: u32, p: &str) -> [f64; 3] {
    let ways = [
        (1448, ", mtu-search = true", format!("mtu = '{mtu} B', p = {p}")),
        (1448, "", format!("mtu = '{mtu} B', fragments = true, p = {p}")),
        (536, "", format!("mtu = '{mtu} B', p = {p}")),
    ];
    ways.map(|(mss, endpoint, errors)| {
        let seeds = 1..=6;
        seeds.map(|seed| transfer(600, mss, endpoint, "newreno", &errors, seed).flows[0].goodput).sum::<f64>()
            / 6.0
    })
}

/// Luglio et al. §3.1: with path MTU discovery the overhead is less, and windows grow faster in bytes.
///
/// Against a host that sends 536 bytes to be safe both hold: 52 of 1400 bytes are headers instead of 52 of 588, and where
/// packets are lost, goodput goes with the size of a segment (RFC 5348 §3.1: s/√p), 1348/536 = 2.5 times. Against
/// fragments of long packets the two part: a packet in two fragments is lost with 2p, which costs √2, and grows the window by
/// 1448 bytes instead of 1348.
#[test]
fn discovery_beats_short_segments_and_fragments_by_what_their_losses_cost() {
    let [clean_search, clean_cut, clean_short] = three_ways(1400, "0");
    // Headers: 52 of 1400 bytes; 52 and 20 of 1520; 52 of 588.
    assert!(
        clean_search > clean_short && clean_cut > clean_short,
        "{clean_search} {clean_cut} {clean_short}"
    );
    assert!((clean_search / clean_short - (1348.0 / 1400.0) / (536.0 / 588.0)).abs() < 0.03);
    let [search, cut, short] = three_ways(1400, "0.002");
    assert!(search > cut && cut > short, "{search} {cut} {short}");
    // s/√p, within a quarter: 1348/(1448/√2) = 1.32 and 1348/536 = 2.51.
    for (ratio, law) in [(search / cut, 1.32), (search / short, 2.51)] {
        assert!(ratio > 0.75 * law && ratio < 1.25 * law, "{ratio} where {law} is due");
    }
}
