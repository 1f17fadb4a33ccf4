//! What an emulation counts, for Prometheus (text exposition over HTTP).

use crate::stop::Stop;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use skyhaul_net::emulator::Report;
use skyhaul_path::DropReason;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use tiny_http::{Header, Response, Server};

type Labels = Vec<(String, String)>;
type Real = Gauge<f64, AtomicU64>;

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
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            let mut response = Response::from_string(text);
            if let Ok(h) = Header::from_bytes(&b"Content-Type"[..], kind.as_bytes()) {
                response.add_header(h);
            }
            // Who has gone need not be answered.
            let _ = request.respond(response);
        }
    }
}

/// Everything in the report.
fn text(report: &Report) -> String {
    let (offered, delivered, bytes, lost) = (
        Family::<Labels, Counter>::default(),
        Family::<Labels, Counter>::default(),
        Family::<Labels, Counter>::default(),
        Family::<Labels, Counter>::default(),
    );
    let (queue, late) = (Family::<Labels, Gauge>::default(), Family::<Labels, Real>::default());
    let (cpu, refused) =
        (Family::<Labels, Counter<f64, AtomicU64>>::default(), Family::<Labels, Counter>::default());
    for lane in &report.lanes {
        let with = |more: &[(&str, &str)]| -> Labels {
            let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
            std::iter::once(own(&("direction", lane.name))).chain(more.iter().map(own)).collect()
        };
        for link in &lane.links {
            let name = link.name.as_str();
            for (class, c) in [("high", link.counters.high()), ("low", link.counters.low())] {
                let labels = with(&[("link", name), ("priority", class)]);
                offered.get_or_create(&labels).inc_by(c.offered);
                delivered.get_or_create(&labels).inc_by(c.delivered);
                bytes.get_or_create(&labels).inc_by(c.delivered_bytes);
                for why in DropReason::ALL {
                    let labels = with(&[("link", name), ("priority", class), ("cause", why.name())]);
                    lost.get_or_create(&labels).inc_by(c.dropped(why));
                }
            }
            queue.get_or_create(&with(&[("link", name)])).set(link.queue.into());
        }
        for (quantile, d) in [("0.5", lane.p50), ("0.99", lane.p99), ("1", lane.max)] {
            late.get_or_create(&with(&[("quantile", quantile)])).set(d.as_secs_f64());
        }
        cpu.get_or_create(&with(&[])).inc_by(lane.cpu.as_secs_f64());
        refused.get_or_create(&with(&[])).inc_by(lane.refused);
    }
    let mut r = Registry::with_prefix("skyhaul");
    r.register("packets_offered", "Packets offered to a link", offered);
    r.register("packets_delivered", "Packets delivered by a link", delivered);
    r.register("bytes_delivered", "Bytes delivered by a link", bytes);
    r.register("packets_lost", "Packets lost on a link, by cause", lost);
    r.register("queue_packets", "Packets waiting on a link", queue);
    r.register("lateness_seconds", "How late packets left, at this quantile since the start", late);
    r.register("cpu_seconds", "Processor time of a direction's thread", cpu);
    r.register("packets_refused", "Packets that the interface at the end did not take", refused);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut out, &r);
    out
}
