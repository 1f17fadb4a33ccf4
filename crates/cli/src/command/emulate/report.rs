//! The report of an emulation, as text and as JSON.

use serde_json::{Value, json};
use skyhaul_base::Duration;
use skyhaul_net::emulator::{LaneReport, LinkCount, Report, packets};
use skyhaul_path::DropReason;
use std::fmt::Write as _;

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

/// Processor time of a direction as a fraction of the duration.
fn processor(lane: &LaneReport, report: &Report) -> f64 {
    lane.cpu.as_secs_f64() / report.duration.as_secs_f64().max(1e-9)
}

/// One line per direction, for the live view.
pub(super) fn line(report: &Report) -> String {
    let direction = |l: &LaneReport| {
        let links: Vec<String> = l.links.iter().map(link_words).collect();
        format!("{}: {}; p99 {:.3} ms late", l.name, links.join("; "), ms(l.p99))
    };
    let lanes: Vec<String> = report.lanes.iter().map(direction).collect();
    format!("{:7.1} s\n{}", report.duration.as_secs_f64(), lanes.join("\n"))
}

/// The counts of a link in words.
fn link_words(l: &LinkCount) -> String {
    let (all, low) = (l.counters.total(), l.counters.low());
    let mut words = format!(
        "{} {} of {} ({:.3} MB), {} waiting",
        l.name,
        all.delivered,
        packets(all.offered),
        all.delivered_bytes as f64 / 1e6,
        l.queue
    );
    for why in DropReason::ALL.iter().filter(|w| all.dropped(**w) > 0) {
        let _ = write!(words, ", {} {}", why.name(), all.dropped(*why));
        if low.dropped(*why) > 0 {
            let _ = write!(words, " ({} of low priority)", low.dropped(*why));
        }
    }
    if all.marked > 0 {
        let _ = write!(words, ", {} marked", all.marked);
    }
    if all.duplicated > 0 {
        let _ = write!(words, ", {} delivered twice", all.duplicated);
    }
    words
}

/// The report as text.
pub(super) fn text(report: &Report) -> String {
    let mut out = format!("emulated {:.3} s\n", report.duration.as_secs_f64());
    for l in &report.lanes {
        for link in &l.links {
            let _ = writeln!(out, "  {}", link_words(link));
        }
        let rate = l
            .rate_error
            .map_or_else(|| "rate not measured".into(), |e| format!("rate {:+.3} % off", e * 100.0));
        let _ = writeln!(
            out,
            "  {}: late by {:.3} ms (median), {:.3} (p99), {:.3} (maximum), {} of {} over 1 ms; {rate}; \
             {:.1} % of a processor{}",
            l.name,
            ms(l.p50),
            ms(l.p99),
            ms(l.max),
            l.late,
            l.releases,
            processor(l, report) * 100.0,
            if l.realtime { ", real-time priority" } else { "" }
        );
        for (n, what) in [
            (l.not_carried, "not carried (not IP, or link-local)"),
            (l.refused, "refused by the outgoing interface"),
            (l.tun_drops, "dropped by the kernel before skyhaul could read them"),
        ] {
            if n > 0 {
                let _ = writeln!(out, "  {}: {} {what}", l.name, packets(n));
            }
        }
    }
    let doubts = report.doubts();
    if doubts.is_empty() {
        out.push_str("trusted\n");
    } else {
        let _ = writeln!(out, "not trusted: {}", doubts.join("; "));
    }
    out
}

/// The report as JSON.
pub(super) fn json(report: &Report) -> Value {
    let class = |c: &skyhaul_path::KindCounters| {
        let drops: serde_json::Map<String, Value> =
            DropReason::ALL.iter().map(|w| (w.name().to_owned(), c.dropped(*w).into())).collect();
        json!({
            "offered_packets": c.offered,
            "offered_bytes": c.offered_bytes,
            "delivered_packets": c.delivered,
            "delivered_bytes": c.delivered_bytes,
            "marked_packets": c.marked,
            "duplicated_packets": c.duplicated,
            "drops": drops,
        })
    };
    let link = |l: &LinkCount| {
        json!({
            "name": l.name,
            "high": class(&l.counters.high()),
            "low": class(&l.counters.low()),
            "queue_packets": l.queue,
            "max_queue_packets": l.counters.max_queue,
            "transmissions": l.counters.repair.transmissions,
            "parity": l.counters.repair.parity,
            "repeats": l.counters.repair.retransmissions,
            "repairs": l.counters.repair.repairs,
        })
    };
    let lane = |l: &LaneReport| {
        json!({
            "name": l.name,
            "links": l.links.iter().map(link).collect::<Vec<_>>(),
            "releases": l.releases,
            "late_p50_s": l.p50.as_secs_f64(),
            "late_p99_s": l.p99.as_secs_f64(),
            "late_max_s": l.max.as_secs_f64(),
            "late_over_1ms": l.late,
            "rate_error": l.rate_error,
            "not_carried": l.not_carried,
            "refused": l.refused,
            "tun_drops": l.tun_drops,
            "cpu_s": l.cpu.as_secs_f64(),
            "realtime": l.realtime,
        })
    };
    let doubts = report.doubts();
    json!({
        "duration_s": report.duration.as_secs_f64(),
        "directions": report.lanes.iter().map(lane).collect::<Vec<_>>(),
        "trusted": doubts.is_empty(),
        "doubts": doubts,
    })
}
