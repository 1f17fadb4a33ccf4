//! Events of a connection over the link, written as qlog events in the schema of docs/exports.md.

use crate::absent::with_any;
use serde_json::{Value, json};
use skyhaul_net::tap::{End, Head, Kind, Metrics, Traced};

/// The name of an event, and its data.
pub(crate) fn event(what: &Traced) -> (&'static str, Value) {
    match what {
        Traced::Began => ("connection_started", json!({})),
        Traced::Connected => ("connection_state_updated", json!({ "new": "established" })),
        Traced::Sent(head, retransmission) => {
            ("packet_sent", with_any(packet(head), "is_retransmission", retransmission.then_some(true)))
        }
        Traced::Received(head) => ("packet_received", packet(head)),
        Traced::Metrics(m) => ("metrics_updated", metrics(m)),
        Traced::Timeout => ("loss_timer_updated", json!({ "timer_type": "rto", "event_type": "expired" })),
        Traced::RecoveryBegan => ("congestion_state_updated", json!({ "new": "recovery" })),
        Traced::RecoveryEnded => ("congestion_state_updated", json!({ "new": "open" })),
        Traced::Ended(End::InOrder) => ("connection_closed", json!({})),
        Traced::Ended(End::Aborted) => {
            ("connection_closed", json!({ "owner": "local", "trigger": "aborted" }))
        }
        Traced::Ended(End::Failed(why)) => {
            ("connection_closed", json!({ "trigger": crate::cause::failure(*why) }))
        }
    }
}

fn packet(head: &Head) -> Value {
    let kind = match head.kind {
        Kind::Syn => "syn",
        Kind::Data => "data",
        Kind::Probe => "probe",
        Kind::Ack => "ack",
        Kind::Reset => "reset",
    };
    let header = json!({ "packet_type": kind, "seq": head.seq, "ack": head.ack, "flags": head.flags, "window": head.window });
    let header = with_any(header, "sack_blocks", (head.sacks > 0).then_some(head.sacks));
    let header = with_any(header, "low_priority", head.low_priority.then_some(true));
    json!({ "header": header, "raw": { "payload_length": head.len } })
}

fn metrics(m: &Metrics) -> Value {
    let data = json!({ "congestion_window": m.cwnd, "bytes_in_flight": m.in_flight });
    let data = with_any(data, "ssthresh", m.ssthresh);
    with_any(data, "smoothed_rtt", m.srtt.map(|t| t.as_secs_f64() * 1e3))
}
