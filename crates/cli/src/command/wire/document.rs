//! The result as JSON in the layout of `iperf3 -J`, with additional data under the key `skyhaul`.

use super::settings::Stack;
use super::show::{self, ConnectionReport, StackTotals};
use serde_json::{Value, json};
use skyhaul_cc::ProbeSupport;
use skyhaul_lab::export::iperf3;
use skyhaul_net::app::{Interval, Limit};
use std::net::SocketAddr;

/// The parameters of a run, and how it ended.
pub(super) struct RunFacts {
    /// When a sender stops; a server has no limit of its own.
    pub(super) limit: Option<Limit>,
    pub(super) remote: SocketAddr,
    /// Whether the server sends the data, as with `iperf3 -R`.
    pub(super) reverse: bool,
    /// Time of day, nanoseconds since 1970.
    pub(super) began: u64,
    /// Why a connection failed, if one did.
    pub(super) error: Option<String>,
}

/// The data of the document.
pub(super) struct Document<'a> {
    pub(super) stack: &'a Stack,
    pub(super) totals: &'a StackTotals,
    /// The counters of the stack.
    pub(super) counters: &'a Value,
    pub(super) reports: &'a [ConnectionReport],
    pub(super) run: &'a RunFacts,
}

/// The number of a stream in the document, where iperf3 writes the descriptor of its socket.
fn socket(t: &ConnectionReport) -> u32 {
    t.number + iperf3::FIRST_SOCKET - 1
}

/// The values of an interval in the order of [`iperf3::interval`].
fn figures(i: &Interval) -> [f64; 5] {
    let rtt = i.srtt.map_or(0.0, |t| t.as_secs_f64() * 1e6);
    [i.to.as_secs_f64(), i.bytes as f64, i.retransmissions as f64, i.cwnd as f64, rtt]
}

impl Document<'_> {
    pub(super) fn text(&self) -> String {
        format!("{:#}\n", self.value())
    }

    fn value(&self) -> Value {
        let RunFacts { limit, remote, reverse, began, error } = self.run;
        let sending = self.reports.first().is_none_or(|t| t.sending);
        let sums: Vec<Interval> = self.reports.iter().map(|t| t.meter.sum()).collect();
        let sum = show::sum(&sums);
        let seconds = sum.to.as_secs_f64();
        let (time, bytes) = match limit {
            Some(Limit::Time(t)) => (t.as_secs_f64(), 0),
            Some(Limit::Bytes(n)) => (0.0, *n),
            None => (0.0, 0),
        };
        let mss = self.reports.first().map_or(0, |t| t.account.segment_size);
        let connected = self.reports.iter().map(|t| {
            let a = &t.account;
            json!({
                "socket": socket(t), "local_host": a.local.ip().to_string(), "local_port": a.local.port(),
                "remote_host": a.remote.ip().to_string(), "remote_port": a.remote.port(),
            })
        });
        let total = |of_sender: bool| {
            let mut total = json!({
                "start": 0, "end": seconds, "seconds": seconds, "bytes": sum.bytes,
                "bits_per_second": iperf3::per_second(sum.bytes as f64, seconds), "sender": sending,
            });
            if of_sender && sending {
                total["retransmits"] = json!(sum.retransmissions);
            }
            total
        };
        let cc = self.stack.endpoint.cc.name();
        let own_side = if sending { "sender_tcp_congestion" } else { "receiver_tcp_congestion" };
        let mut end = json!({
            "streams": self.reports.iter().map(|t| stream(t, seconds)).collect::<Vec<_>>(),
            "sum_sent": total(true),
            "sum_received": total(false),
            "cpu_utilization_percent": {
                "host_total": if seconds > 0.0 { 100.0 * self.totals.cpu.as_secs_f64() / seconds } else { 0.0 },
            },
        });
        end[own_side] = json!(cc);
        let secs = began / 1_000_000_000;
        let mut document = json!({
            "start": {
                "connected": connected.collect::<Vec<_>>(),
                "version": format!("skyhaul {}", skyhaul_lab::VERSION),
                "system_info": "user-space TCP over TUN",
                "timestamp": { "time": skyhaul_lab::clock::rfc3339(secs), "timesecs": secs },
                "connecting_to": { "host": remote.ip().to_string(), "port": remote.port() },
                "tcp_mss_default": mss,
                "target_bitrate": 0,
                "test_start": {
                    "protocol": "TCP", "num_streams": self.reports.len(), "blksize": 65_536, "omit": 0, "duration": time,
                    "bytes": bytes, "blocks": 0, "reverse": u8::from(*reverse), "tos": 0, "target_bitrate": 0,
                },
            },
            "intervals": self.intervals(sending),
            "end": end,
            "skyhaul": self.additions(),
        });
        if let Some(why) = error {
            document["error"] = json!(why);
        }
        document
    }

    fn intervals(&self, sending: bool) -> Vec<Value> {
        let most = self.reports.iter().map(|t| t.meter.intervals().len()).max().unwrap_or(0);
        let all = (0..most).map(|i| {
            let rows: Vec<(&ConnectionReport, &Interval)> =
                self.reports.iter().filter_map(|t| Some((t, t.meter.intervals().get(i)?))).collect();
            let sum = show::sum(rows.iter().map(|(_, i)| *i));
            let numbers: Vec<(u32, [f64; 5])> = rows.iter().map(|(t, i)| (socket(t), figures(i))).collect();
            let mut value = iperf3::interval(sum.from.as_secs_f64(), sum.to.as_secs_f64(), &numbers);
            for (k, (_, i)) in rows.iter().enumerate() {
                let stream = &mut value["streams"][k];
                if sending {
                    stream["skyhaul"] = json!({
                        "timeouts": i.timeouts, "probes_sent": i.probes_sent, "probes_answered": i.probes_answered,
                        "snd_cwnd_segments": i.cwnd_segments,
                    });
                } else {
                    as_receiver(stream);
                }
            }
            if !sending {
                as_receiver(&mut value["sum"]);
            }
            value
        });
        all.collect()
    }

    /// The value of the key `skyhaul`, with what iperf3 has no keys for: counters of the connections and of the stack.
    fn additions(&self) -> Value {
        let (packets_in, packets_out) = self.totals.packets();
        let m = &self.totals.memory;
        let connections = self.reports.iter().map(|t| {
            let (a, c) = (&t.account, &t.account.counters);
            json!({
                "socket": socket(t), "ended": show::ended(a), "in_order": a.in_order, "bytes_read": a.bytes_read,
                "bytes_acked": c.bytes_acked, "segments_sent": c.segments_sent,
                "retransmissions": c.retransmissions, "timeouts": c.timeouts, "recoveries": c.recoveries,
                "probes_sent": c.probes_sent, "probes_answered": c.probes_answered,
                "peer_answers_probes": match a.probes {
                    ProbeSupport::Yes => Some(true),
                    ProbeSupport::No => Some(false),
                    ProbeSupport::Unknown => None,
                },
                "probes": show::probes(a, self.stack),
            })
        });
        json!({
            "congestion_control": self.stack.endpoint.cc.name(),
            "mtu": self.stack.host.mtu,
            "connections": connections.collect::<Vec<_>>(),
            "host": {
                "packets_in": packets_in, "packets_out": packets_out, "refused": self.totals.reasons(),
                "refused_by_interface": self.totals.refused, "dropped_in_queue": self.totals.dropped,
                "cpu_s": self.totals.cpu.as_secs_f64(),
                "cookies_sent": self.totals.counts.cookies_sent, "cookies_taken": self.totals.counts.cookies_taken,
                "time_waits_cut": self.totals.counts.time_waits_cut,
                "counters": self.counters,
                "memory": {
                    "limit_bytes": m.limit, "held_bytes": m.held, "most_bytes": m.most,
                    "connections_reneged": m.reneged, "buffers_trimmed": m.trimmed,
                    "segments_refused": m.refused,
                },
            },
        })
    }
}

/// Turns the values of a sender into those of a receiver, which has no cwnd, RTT or retransmissions.
fn as_receiver(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        for key in ["retransmits", "snd_cwnd", "rtt"] {
            map.remove(key);
        }
        map.insert("sender".into(), json!(false));
    }
}

/// The totals of a connection as those of a stream of iperf3.
fn stream(t: &ConnectionReport, seconds: f64) -> Value {
    let rows: Vec<[f64; 5]> = t.meter.intervals().iter().map(figures).collect();
    let sum = t.meter.sum();
    let mut value = iperf3::stream_ended(socket(t), &rows, (sum.bytes, sum.retransmissions), seconds);
    for side in ["sender", "receiver"] {
        if !t.sending {
            for key in ["max_snd_cwnd", "max_rtt", "min_rtt", "mean_rtt"] {
                value[side].as_object_mut().map(|m| m.remove(key));
            }
            as_receiver(&mut value[side]);
        }
    }
    value
}
