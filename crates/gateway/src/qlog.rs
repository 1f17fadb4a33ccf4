//! Events of a connection over the link, as events of a qlog: the schema of docs/exports.md.

use serde_json::{Value, json};
use skyhaul_net::trace::{End, Head, Kind, Metrics, Traced};

/// The name of an event, and its data.
pub(crate) fn event(what: &Traced) -> (&'static str, Value) {
    match what {
        Traced::Began => ("connection_started", json!({})),
        Traced::Connected => ("connection_state_updated", json!({ "new": "established" })),
        Traced::Sent(head, again) => {
            let mut data = packet(head);
            if *again {
                data["is_retransmission"] = json!(true);
            }
            ("packet_sent", data)
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
    let mut header = json!({ "packet_type": kind, "seq": head.seq, "ack": head.ack, "flags": head.flags, "window": head.window });
    if head.sacks > 0 {
        header["sack_blocks"] = json!(head.sacks);
    }
    if head.low_priority {
        header["low_priority"] = json!(true);
    }
    json!({ "header": header, "raw": { "payload_length": head.len } })
}

fn metrics(m: &Metrics) -> Value {
    let mut data = json!({ "congestion_window": m.cwnd, "bytes_in_flight": m.in_flight });
    if let Some(ssthresh) = m.ssthresh {
        data["ssthresh"] = json!(ssthresh);
    }
    if let Some(srtt) = m.srtt {
        data["smoothed_rtt"] = json!(srtt.as_secs_f64() * 1e3);
    }
    data
}
