//! State and counters of the repair of datagrams, for people and programs.

use crate::metrics::Page;
use serde::{Deserialize, Serialize};
use skyhaul_repair::Counters;

/// Counters of all sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Totals {
    /// Sessions with the other gateway.
    pub sessions: u64,
    /// Times that datagrams were forwarded again because they could not be repaired.
    pub withdrawals: u64,
    /// Datagrams sent.
    pub sources: u64,
    /// Their bytes, without headers of frames.
    pub source_bytes: u64,
    /// Bytes of headers of their frames.
    pub header_bytes: u64,
    /// Bytes of their own headers that were not carried.
    #[serde(default)]
    pub saved_bytes: u64,
    /// Those among them that went along in the frame of another one.
    #[serde(default)]
    pub joined: u64,
    /// Repair symbols and repeats sent.
    pub repairs: u64,
    /// Their bytes.
    pub repair_bytes: u64,
    /// Bytes of reports.
    pub report_bytes: u64,
    /// Datagrams that the gateway's own queue has dropped.
    pub dropped: u64,
    /// Datagrams delivered.
    pub delivered: u64,
    /// Those among them that the code has recovered.
    pub recovered: u64,
    /// Those among them that came after later ones.
    pub late: u64,
    /// Datagrams of the other side that were lost in spite of repair.
    pub lost: u64,
    /// Datagrams of the other side whose headers could not be restored.
    #[serde(default)]
    pub unreadable: u64,
    /// Datagrams dropped because a mark on the way could not be passed on to them.
    pub unmarkable: u64,
    /// Packets at the port that were not authentic.
    pub forged: u64,
    /// Packets at the port that had arrived before.
    pub replayed: u64,
    /// Packets at the port that were authentic, and no frames.
    pub malformed: u64,
}

impl Totals {
    /// Adds the counters of a session.
    pub(super) fn add(&mut self, c: &Counters) {
        self.sources += c.sources + c.joined;
        self.source_bytes += c.source_bytes;
        self.header_bytes += c.header_bytes;
        self.saved_bytes += c.source_bytes.saturating_sub(c.carried_bytes);
        self.joined += c.joined;
        self.repairs += c.symbols + c.repeats;
        self.repair_bytes += c.symbol_bytes + c.repeat_bytes;
        self.report_bytes += c.report_bytes;
        self.dropped += c.dropped;
        self.delivered += (c.delivered + c.separated).saturating_sub(c.unreadable);
        self.recovered += c.recovered;
        self.late += c.late;
        self.lost += c.lost;
        self.unreadable += c.unreadable;
    }
}

/// The state of the repair of datagrams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RepairStatus {
    /// Address and port of the other gateway.
    pub peer: String,
    /// Whether datagrams are repaired; otherwise they are forwarded.
    pub repairs: bool,
    /// Why they are not.
    pub cause: Option<String>,
    /// For how long this has been so, seconds.
    pub lasts: f64,
    /// RTT of the segment, seconds, once it is known.
    pub rtt: Option<f64>,
    /// The share of frames to the other gateway that is lost.
    pub loss: f64,
    /// Mean length of runs of such losses, frames.
    pub burst: f64,
    /// Rate towards the link at present, bit/s.
    pub rate: u64,
    /// The largest datagram that fits, bytes.
    pub mtu: u32,
    /// How often the other gateway was found at another address than before; only with `peer = "any"`.
    #[serde(default)]
    pub moves: u64,
    /// Counters since the start.
    pub totals: Totals,
}

impl RepairStatus {
    /// Adds its metrics to a page.
    pub(crate) fn metrics(&self, name: &str, page: &mut Page) {
        let gateway = ("gateway", name);
        let mut add = |name: &str, kind: &str, help: &str, value: f64| {
            page.family(&format!("gateway_repair_{name}"), kind, help).sample(&[gateway], value);
        };
        add(
            "active",
            "gauge",
            "1 if datagrams are repaired, 0 if they are forwarded",
            f64::from(u8::from(self.repairs)),
        );
        add("loss_ratio", "gauge", "Share of frames to the other gateway that is lost", self.loss);
        add("rtt_seconds", "gauge", "RTT between the two gateways", self.rtt.unwrap_or(f64::NAN));
        let t = &self.totals;
        for (name, help, value) in [
            ("peer_moves_total", "Times that the other gateway was found at another address", self.moves),
            ("withdrawals_total", "Times that datagrams were forwarded again", t.withdrawals),
            ("datagrams_total", "Datagrams sent with repair", t.sources),
            ("datagram_bytes_total", "Their bytes", t.source_bytes),
            ("header_bytes_total", "Bytes of headers around them", t.header_bytes),
            ("saved_bytes_total", "Bytes of their own headers that were not carried", t.saved_bytes),
            ("joined_total", "Datagrams that went along with another one", t.joined),
            ("symbol_and_repeat_bytes_total", "Bytes of repair symbols and repeats", t.repair_bytes),
            ("dropped_total", "Datagrams that the gateway's own queue has dropped", t.dropped),
            ("delivered_total", "Datagrams of the other side delivered", t.delivered),
            ("recovered_total", "Datagrams of the other side recovered by the code", t.recovered),
            ("lost_total", "Datagrams of the other side lost in spite of repair", t.lost),
            (
                "refused_total",
                "Packets at the port that were forged, replayed or malformed",
                t.forged + t.replayed + t.malformed,
            ),
        ] {
            add(name, "counter", help, value as f64);
        }
    }
}
