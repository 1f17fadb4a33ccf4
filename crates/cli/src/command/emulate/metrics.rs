//! What an emulation counts, for Prometheus (text exposition over HTTP).

use crate::stop::Stop;
use skyhaul_net::emulator::Report;
use skyhaul_path::{DropReason, KindCounters};
use std::fmt::{Display, Write as _};
use std::net::SocketAddr;
use tiny_http::{Header, Response, Server};

/// An HTTP server that is asked from time to time.
pub(super) struct Metrics(Server);

impl Metrics {
    /// Listens at `address`.
    pub(super) fn open(address: SocketAddr) -> Result<Self, Stop> {
        let server = Server::http(address).map_err(|e| {
            Stop::bad(format!("--metrics: cannot listen at {address}: {e}; choose another address or port"))
        })?;
        eprintln!("metrics at http://{}/metrics", server.server_addr());
        Ok(Self(server))
    }

    /// Answers whoever has asked.
    pub(super) fn answer(&self, report: Option<&Report>) {
        while let Ok(Some(request)) = self.0.try_recv() {
            let text = report.map(text).unwrap_or_default();
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            let mut response = Response::from_string(text);
            if let Ok(h) = Header::from_bytes(&b"Content-Type"[..], kind.as_bytes()) {
                response.add_header(h);
            }
            // Who has gone need not be answered.
            let _ = request.respond(response);
        }
    }
}

/// A page in Prometheus' text format, version 0.0.4: families one after the other, each with its help and its type.
#[derive(Default)]
struct Page(String);

impl Page {
    /// Begins a family: its name ends in `_total` exactly if it is a counter.
    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        debug_assert_eq!(name.ends_with("_total"), kind == "counter");
        let _ = writeln!(self.0, "# HELP skyhaul_{name} {help}.\n# TYPE skyhaul_{name} {kind}");
        Family { page: &mut self.0, name }
    }
}

struct Family<'a> {
    page: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.suffixed("", labels, value);
    }
    fn suffixed(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}=\"{}\"", escaped(v))).collect();
        let _ = writeln!(self.page, "skyhaul_{}{suffix}{{{}}} {value}", self.name, labels.join(","));
    }
}

/// A label's value as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Counters of one priority.
type Of = fn(&KindCounters) -> u64;
const COUNTERS: [(&str, &str, Of); 3] = [
    ("packets_offered_total", "Packets offered to a link", |c| c.offered),
    ("packets_delivered_total", "Packets delivered by a link", |c| c.delivered),
    ("bytes_delivered_total", "Bytes delivered by a link", |c| c.delivered_bytes),
];

/// Everything in the report.
fn text(report: &Report) -> String {
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
    let mut late = page.family("lateness_seconds", "summary", "How late packets left, since the start");
    for lane in &report.lanes {
        for (quantile, d) in [("0.5", lane.p50), ("0.99", lane.p99), ("1", lane.max)] {
            late.sample(&[("direction", lane.name), ("quantile", quantile)], d.as_secs_f64());
        }
        late.suffixed("_count", &[("direction", lane.name)], lane.releases);
    }
    let mut cpu = page.family("cpu_seconds_total", "counter", "Processor time of a direction's thread");
    for lane in &report.lanes {
        cpu.sample(&[("direction", lane.name)], lane.cpu.as_secs_f64());
    }
    let help = "Packets that the interface at the end did not take";
    let mut refused = page.family("packets_refused_total", "counter", help);
    for lane in &report.lanes {
        refused.sample(&[("direction", lane.name)], lane.refused);
    }
    page.0
}
