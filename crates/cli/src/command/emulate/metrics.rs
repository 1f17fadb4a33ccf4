//! Prometheus metrics of an emulation.

use skyhaul_gateway::metrics::Page;
use skyhaul_net::emulator::Report;
use skyhaul_path::{DropReason, KindCounters};

/// A counter of the packets of one priority class.
type Counter = fn(&KindCounters) -> u64;
const COUNTERS: [(&str, &str, Counter); 5] = [
    ("packets_offered_total", "Packets offered to a link", |c| c.offered),
    ("packets_delivered_total", "Packets delivered by a link", |c| c.delivered),
    ("packets_marked_total", "Packets that active queue management marked on a link", |c| c.marked),
    ("packets_duplicated_total", "Copies that a link delivered in addition", |c| c.duplicated),
    ("bytes_delivered_total", "Bytes delivered by a link", |c| c.delivered_bytes),
];

/// The page with all counters of the report.
pub(super) fn text(report: &Report) -> String {
    let mut page = Page::default();
    let links = || report.lanes.iter().flat_map(|lane| lane.links.iter().map(move |link| (lane, link)));
    for (name, help, of) in COUNTERS {
        let mut family = page.family(name, "counter", help);
        for (lane, link) in links() {
            for (class, c) in [("high", link.counters.high()), ("low", link.counters.low())] {
                let labels = [("direction", lane.name), ("link", link.name.as_str()), ("priority", class)];
                family.sample(&labels, of(&c));
            }
        }
    }
    let mut lost = page.family("packets_lost_total", "counter", "Packets lost on a link, by cause");
    for (lane, link) in links() {
        for (class, c) in [("high", link.counters.high()), ("low", link.counters.low())] {
            for why in DropReason::ALL {
                let at = [("direction", lane.name), ("link", link.name.as_str())];
                let labels = [at[0], at[1], ("priority", class), ("cause", why.name())];
                lost.sample(&labels, c.dropped(why));
            }
        }
    }
    let mut queue = page.family("queue_packets", "gauge", "Packets waiting on a link");
    for (lane, link) in links() {
        queue.sample(&[("direction", lane.name), ("link", link.name.as_str())], link.queue);
    }
    let mut late =
        page.family("lateness_seconds", "summary", "Lateness of packet departures since the start");
    for lane in &report.lanes {
        for (quantile, d) in [("0.5", lane.p50), ("0.99", lane.p99), ("1", lane.max)] {
            late.sample(&[("direction", lane.name), ("quantile", quantile)], d.as_secs_f64());
        }
        late.suffixed("_count", &[("direction", lane.name)], lane.releases);
    }
    let mut cpu =
        page.family("cpu_seconds_total", "counter", "Processor time of the thread of one direction");
    for lane in &report.lanes {
        cpu.sample(&[("direction", lane.name)], lane.cpu.as_secs_f64());
    }
    let help = "Packets that the outgoing interface refused";
    let mut refused = page.family("packets_refused_total", "counter", help);
    for lane in &report.lanes {
        refused.sample(&[("direction", lane.name)], lane.refused);
    }
    page.text()
}
