//! Scalable and classic traffic on a dual queue (RFC 9330 to 9332): delays, shares, and what accurate ECN reports.

use crate::common::resolved;
use skyhaul_sim::{FlowResult, RunResult, run};
use skyhaul_trace::Null;

/// Two transfers over 50 Mbit/s with this one-way delay in milliseconds, for this many seconds.
fn beside(own: &str, rival: &str, queue: &str, delay: f64, seconds: u32) -> RunResult {
    let text = format!(
        r#"
        duration = "{seconds} s"
        [links.sat]
        packet = "1500 B"
        rate = "50 Mbit/s"
        delay = "{delay} ms"
        queue = {{ kind = "{queue}", limit = "2 BDP" }}
        [flows.own]
        path = ["sat"]
        {own}
        rwnd = "12 MiB"
        sndbuf = "12 MiB"
        [flows.rival]
        path = ["sat"]
        {rival}
        rwnd = "12 MiB"
        sndbuf = "12 MiB"
        [record]
        packet-delay = true
        "#
    );
    run(&resolved(&text), 1, Null).expect("a world")
}

/// Goodput in Mbit/s, and the median and the 99th percentile of the queueing delay in milliseconds.
fn of(flow: &FlowResult) -> (f64, f64, f64) {
    let q = flow.packet_delays.as_ref().expect("measured").queueing;
    (flow.goodput / 1e6, 1e3 * q.p50, 1e3 * q.p99)
}

const PRAGUE: &str = "cc = \"prague\"";
const CUBIC: &str = "cc = \"cubic\"";

#[test]
fn scalable_packets_wait_for_a_millisecond_and_classic_ones_for_the_target() {
    let r = beside(PRAGUE, CUBIC, "dual-pi2", 10.0, 60);
    let ((prague, l50, l99), (cubic, c50, _)) = (of(&r.flows[0]), of(&r.flows[1]));
    eprintln!("20 ms: Prague {prague:.1} Mbit/s {l50:.2} {l99:.2} ms, CUBIC {cubic:.1} Mbit/s {c50:.2} ms");
    // The ramp begins at 0.8 ms; the target of the C queue is 15 ms.
    assert!(l50 < 1.5, "{l50} ms");
    assert!(c50 > 5.0 && c50 < 30.0, "{c50} ms");
    assert!(prague + cubic > 42.0, "{prague} {cubic}");
    // The coupling gives both kinds shares of one order (RFC 9332 §1.2).
    let ratio = prague / cubic;
    assert!(ratio > 0.33 && ratio < 3.0, "{prague} {cubic}");
    assert_eq!(r.flows[0].retransmissions, 0, "marks, not losses");
}

#[test]
fn beside_itself_it_shares_equally_and_loses_nothing() {
    let r = beside(PRAGUE, PRAGUE, "dual-pi2", 10.0, 60);
    let ((a, p50, p99), (b, _, _)) = (of(&r.flows[0]), of(&r.flows[1]));
    eprintln!("two of Prague: {a:.1} {b:.1} Mbit/s, {p50:.2} {p99:.2} ms");
    assert!(a + b > 42.0 && (a / b).max(b / a) < 1.5, "{a} {b}");
    assert_eq!(r.flows[0].retransmissions + r.flows[1].retransmissions, 0);
}

#[test]
fn a_classic_queue_is_met_as_reno_would() {
    let r = beside(PRAGUE, "cc = \"newreno\"", "drop-tail", 10.0, 60);
    let ((prague, ..), (reno, ..)) = (of(&r.flows[0]), of(&r.flows[1]));
    eprintln!("drop-tail: Prague {prague:.1}, NewReno {reno:.1} Mbit/s");
    assert!(r.flows[0].retransmissions > 0);
    let ratio = prague / reno;
    assert!(ratio > 0.25 && ratio < 4.0, "{prague} {reno}");
}

/// Over long paths a dual queue does not fill the link: the test prints goodput and delays, and holds only that L packets wait less.
#[test]
fn over_long_paths_scalable_packets_wait_less_than_classic_ones() {
    for (name, delay) in [("LEO", 22.5), ("MEO", 62.5), ("GEO", 275.0)] {
        let r = beside(PRAGUE, CUBIC, "dual-pi2", delay, 300);
        let ((prague, l50, l99), (cubic, c50, c99)) = (of(&r.flows[0]), of(&r.flows[1]));
        let alone = beside(PRAGUE, "cc = \"cubic\"\nstop = \"0 s\"", "dual-pi2", delay, 300);
        let (solo, s50, _) = of(&alone.flows[0]);
        eprintln!(
            "{name}: Prague {prague:.1} Mbit/s {l50:.2} {l99:.2} ms, CUBIC {cubic:.1} Mbit/s {c50:.2} {c99:.2} ms; alone {solo:.1} Mbit/s {s50:.2} ms"
        );
        assert!(l50 < c50, "{name}: {l50} {c50}");
    }
}

/// CAKE keeps flows apart: what a flow gets does not depend on the control beside it.
#[test]
fn a_queue_per_flow_shares_equally_whatever_the_controls_do() {
    let r = beside(PRAGUE, CUBIC, "cake", 10.0, 60);
    let ((prague, p50, _), (cubic, c50, _)) = (of(&r.flows[0]), of(&r.flows[1]));
    eprintln!("CAKE: Prague {prague:.1} Mbit/s {p50:.2} ms, CUBIC {cubic:.1} Mbit/s {c50:.2} ms");
    assert!(prague + cubic > 42.0 && (prague / cubic).max(cubic / prague) < 1.2, "{prague} {cubic}");
    // Its target is 5 ms.
    assert!(p50 < 10.0 && c50 < 10.0, "{p50} {c50}");
}

/// The shaper below the rate of the link, and the threshold of the bulk tin: 1/16 of the shaper's rate.
#[test]
fn a_flow_of_the_bulk_tin_has_its_threshold_beside_best_effort() {
    let text = r#"
        duration = "60 s"
        [links.sat]
        packet = "1500 B"
        rate = "50 Mbit/s"
        delay = "10 ms"
        queue = { kind = "cake", limit = "2 BDP", rate = "20 Mbit/s" }
        [flows.bulk]
        path = ["sat"]
        dscp = "LE"
        cc = "cubic"
        [flows.best]
        path = ["sat"]
        cc = "cubic"
        "#;
    let share = |text: &str| {
        let r = run(&resolved(text), 1, Null).expect("a world");
        // In the order of the names.
        let [best, bulk] = [0, 1].map(|i| r.flows[i].goodput / 1e6);
        (bulk / (bulk + best), bulk + best)
    };
    let (tins, total) = share(text);
    assert!(total > 18.0 && total < 20.0, "{total}");
    assert!((tins - 1.0 / 16.0).abs() < 0.015, "{tins}");
    let (one, _) =
        share(&text.replace("rate = \"20 Mbit/s\" }", "rate = \"20 Mbit/s\", tins = \"besteffort\" }"));
    assert!((one - 0.5).abs() < 0.1, "{one}");
}
