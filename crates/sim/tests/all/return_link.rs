//! A narrow return link and what helps against it, over TCP from end to end: 10 Mbit/s forward, 50 kbit/s back, packets of
//! 1000 bytes, acknowledgements of 40 (the example of RFC 3449 §2).

use crate::text::resolved;
use skyhaul_sim::{FlowResult, LinkResult, RunResult, run};
use skyhaul_trace::{Class, LossCause, Null};

/// Two transfers of 5000 segments of 960 bytes, one after the other, each segment acknowledged, with `reverse` as the keys of the return link.
fn transfer(cc: &str, reverse: &str) -> RunResult {
    transfer_by(cc, "", reverse)
}
/// The same with these keys of the endpoint.
fn transfer_by(cc: &str, endpoint: &str, reverse: &str) -> RunResult {
    let text = format!(
        r#"
schema = 1
duration = "400 s"
[links.sat]
packet = "1000 B"
rate = "10 Mbit/s"
delay = "50 ms"
queue = "200 packets"
reverse = {{ rate = "50 kbit/s", {reverse} }}
[flows.bulk]
path = ["sat"]
cc = "{cc}"
endpoint = {{ preset = "ns2-2004" {endpoint} }}
rwnd = "200 segments"
app = {{ kind = "pages", segments = 5000, count = 2 }}
handshake = false
"#
    );
    run(&resolved(&text), 1, Null).expect("a run")
}

/// The flow and its return link; everything was delivered, and the return link has lost nothing without account.
fn parts(r: &RunResult) -> (&FlowResult, &LinkResult) {
    let (flow, link) = (&r.flows[0], r.link("sat", false).expect("the return link"));
    assert_eq!(flow.bytes_acked, 10_000 * 960);
    let acks = link.class(Class::Ack);
    assert_eq!(acks.offered, acks.delivered + acks.dropped.iter().sum::<u64>());
    (flow, link)
}

/// How long the two took, s.
fn done(flow: &FlowResult) -> f64 {
    assert_eq!(flow.pages.len(), 2);
    flow.pages.iter().map(|p| p.took.as_secs_f64()).sum()
}

/// Each carries 156.25 acknowledgements per second, and every one arrives.
const DEEP: &str = "queue = 'unlimited'";
const FILTER: &str = "queue = { kind = 'ack-filter', filter = 'aggressive', limit = '50 packets' }";

#[test]
fn without_help_acknowledgements_clock_the_transfer() {
    let r = transfer("newreno", DEEP);
    let (flow, link) = parts(&r);
    // k = 8: one eighth of the forward rate.
    assert!(done(flow) >= 10_000.0 / 156.25, "{}", done(flow));
    assert_eq!(link.dropped(LossCause::Filtered) + link.reconstructed, 0);
    assert!(flow.bursts.mean().unwrap() < 2.1);
}

#[test]
fn each_way_of_thinning_lifts_the_limit_and_the_transfer_completes() {
    let slow = done(parts(&transfer("newreno", DEEP)).0);
    let cases = [
        (FILTER, 2.0),
        ("queue = { kind = 'ack-filter', limit = '50 packets' }", 2.0),
        ("queue = { kind = 'ack-filter', filter = 'aggressive', place = 'head', limit = '50 packets' }", 2.0),
        (
            "queue = { kind = 'ack-filter', filter = 'aggressive', acks-first = true, limit = '50 packets' }",
            2.0,
        ),
        ("queue = { kind = 'ack-decimation', keep-every = 4, limit = '50 packets' }", 2.0),
        (
            "queue = { kind = 'ack-decimation', keep-every = 4, keep-duplicates = true, limit = '50 packets' }",
            2.0,
        ),
    ];
    for (keys, factor) in cases {
        for cc in ["newreno", "cubic", "peach"] {
            let r = transfer(cc, keys);
            let (flow, link) = parts(&r);
            assert!(done(flow) * factor < slow, "{cc} {keys}: {} {slow}", done(flow));
            assert!(link.dropped(LossCause::Filtered) > 2000, "{cc} {keys}");
            // An acknowledgement for many segments lets many go.
            assert!(flow.bursts.mean().unwrap() > 2.5, "{cc} {keys}: {:?}", flow.bursts.mean());
        }
    }
}

#[test]
fn the_conservative_filter_keeps_more() {
    let filtered = |keys| {
        let r = transfer("newreno", keys);
        parts(&r).1.class(Class::Ack).delivered
    };
    assert!(filtered("queue = { kind = 'ack-filter', limit = '50 packets' }") >= filtered(FILTER));
}

#[test]
fn compressed_headers_make_room_for_every_acknowledgement() {
    // 5 of 40 bytes: k = 1.
    let r = transfer("newreno", &format!("{DEEP}, ack-size = '5 B'"));
    let (flow, link) = parts(&r);
    let acks = link.class(Class::Ack);
    assert_eq!(acks.offered, acks.delivered);
    assert_eq!(link.offered_bytes, 5 * acks.offered);
    // 10 000 packets take 8 s; the rest is the opening of the window.
    assert!(done(flow) < 16.0, "{}", done(flow));
}

#[test]
fn reconstruction_gives_the_sender_its_clock_back() {
    let (plain, clocked) = (transfer("newreno", FILTER), {
        transfer("newreno", &format!("{FILTER}, reconstruct-acks = '1920 B'"))
    });
    let ((a, _), (b, link)) = (parts(&plain), parts(&clocked));
    assert!(link.reconstructed > 1000, "{}", link.reconstructed);
    // One for two segments lets two go, three in slow start (RFC 5681 §3.1).
    let (burst, clocked) = (a.bursts.mean().unwrap(), b.bursts.mean().unwrap());
    assert!(clocked < 3.0 && clocked < burst / 1.5, "{burst} {clocked}");
    assert_eq!(b.timeouts, 0);
}

/// RFC 3449 §5.3.2: what is removed in front of the link comes out behind it.
#[test]
fn compaction_gives_back_what_it_removes() {
    let compacts = "queue = { kind = 'ack-compaction', limit = '50 packets' }";
    for cc in ["newreno", "cubic", "peach"] {
        let (plain, compacted) = (transfer(cc, FILTER), transfer(cc, compacts));
        let ((a, _), (b, link)) = (parts(&plain), parts(&compacted));
        let removed = link.dropped(LossCause::Filtered);
        // Not all: around a hole none are made, since they would be taken for partial acknowledgements.
        assert!(removed > 1000 && link.reconstructed <= removed, "{cc}: {} of {removed}", link.reconstructed);
        assert!(link.reconstructed * 10 > removed * 9, "{cc}: {} of {removed}", link.reconstructed);
        // The sender sees one for each segment, which lets one go, and two in slow start.
        let (burst, clocked) = (a.bursts.mean().unwrap(), b.bursts.mean().unwrap());
        assert!(clocked < 2.1 && clocked < burst / 1.5, "{cc}: {burst} {clocked}");
        assert!(b.timeouts == 0 || cc == "peach", "{cc}: {}", b.timeouts);
    }
}

/// RFC 3449 §4.3: marks in front of the return link make acknowledgements about as few as it can carry.
#[test]
fn marked_acknowledgements_become_as_few_as_the_link_carries() {
    let red = "queue = { kind = 'red', limit = '50 packets' }";
    let keys = ", ecn = 'ask', growth = 'abc'";
    let plain = transfer_by("newreno", keys, red);
    let controlled = transfer_by("newreno", &format!("{keys}, ack-cc = 'rfc3449'"), red);
    let ((a, before), (b, after)) = (parts(&plain), parts(&controlled));
    let lost = |l: &LinkResult| {
        let acks = l.class(Class::Ack);
        acks.lost() as f64 / acks.offered as f64
    };
    // k = 8: without control most of them are lost; with it those that come before the average queue has grown.
    assert!(lost(before) > 0.5 && lost(after) < 0.25 * lost(before), "{} {}", lost(before), lost(after));
    assert_eq!(before.class(Class::Ack).marked, 0, "they are not capable of marks");
    assert!(after.class(Class::Ack).marked > 0);
    // For eight segments one is sent, with some slack for what is delayed too long.
    let share = after.class(Class::Ack).offered as f64 / before.class(Class::Ack).offered as f64;
    assert!(share < 0.4, "{share}");
    // Far above what one acknowledgement per segment would clock.
    assert!(done(b) < 0.5 * 10_000.0 / 156.25, "{} {}", done(a), done(b));
}
