//! Datagram streams of an iperf3 test, as text and in the layout of `iperf3 -J`.

use serde_json::{Value, json};
use skyhaul_lab::export::iperf3;
use skyhaul_lab::text::{bit_rate, seconds};
use skyhaul_net::app::Datagrams;
use std::fmt::Write as _;

/// A line per stream.
pub(super) fn text(streams: &[(u32, &Datagrams)]) -> String {
    let mut out = String::new();
    for (number, d) in streams {
        let arrow = if d.sends { "->" } else { "<-" };
        let _ = write!(
            out,
            "[{number:>3}] {} {arrow} {}: {} datagrams, {} B in {}, {}",
            d.local,
            d.remote,
            d.packets,
            d.bytes,
            seconds(d.time.as_secs_f64()),
            bit_rate(d.goodput()),
        );
        if !d.sends {
            let _ = write!(
                out,
                "; {} lost, {} out of order, jitter {}",
                d.lost,
                d.out_of_order,
                seconds(d.jitter.as_secs_f64())
            );
        }
        out.push('\n');
    }
    out
}

/// The counts of a stream of datagrams, or of all streams.
struct DatagramCounts {
    /// The number of the stream in iperf3's documents; `None` for the sum of all streams.
    socket: Option<u32>,
    /// Duration, s.
    seconds: f64,
    bytes: u64,
    packets: u64,
    lost: u64,
    out_of_order: u64,
    /// Interarrival jitter, s.
    jitter: f64,
    sends: bool,
}

impl DatagramCounts {
    fn of(number: u32, d: &Datagrams) -> Self {
        Self {
            socket: Some(number + iperf3::FIRST_SOCKET - 1),
            seconds: d.time.as_secs_f64(),
            bytes: d.bytes,
            packets: d.packets,
            lost: d.lost,
            out_of_order: d.out_of_order,
            jitter: d.jitter.as_secs_f64(),
            sends: d.sends,
        }
    }
    fn json(&self) -> Value {
        let percent = if self.packets > 0 { 100.0 * self.lost as f64 / self.packets as f64 } else { 0.0 };
        let mut value = json!({
            "start": 0, "end": self.seconds, "seconds": self.seconds, "bytes": self.bytes,
            "bits_per_second": iperf3::per_second(self.bytes as f64, self.seconds), "jitter_ms": self.jitter * 1e3,
            "lost_packets": self.lost, "packets": self.packets, "lost_percent": percent, "sender": self.sends,
        });
        if let Some(socket) = self.socket {
            value["socket"] = json!(socket);
            value["out_of_order"] = json!(self.out_of_order);
        }
        value
    }
}

/// A document for all streams of one direction.
pub(super) fn json(streams: &[(u32, &Datagrams)]) -> String {
    let all: Vec<DatagramCounts> = streams.iter().map(|(n, d)| DatagramCounts::of(*n, d)).collect();
    let total = |of: fn(&DatagramCounts) -> u64| all.iter().map(of).sum();
    let sum = DatagramCounts {
        socket: None,
        seconds: all.iter().map(|f| f.seconds).fold(0.0, f64::max),
        bytes: total(|f| f.bytes),
        packets: total(|f| f.packets),
        lost: total(|f| f.lost),
        out_of_order: total(|f| f.out_of_order),
        // iperf3 writes the mean over the streams.
        jitter: all.iter().map(|f| f.jitter).sum::<f64>() / all.len().max(1) as f64,
        sends: all.first().is_some_and(|f| f.sends),
    };
    let connected = streams.iter().map(|(n, d)| {
        json!({
            "socket": n + iperf3::FIRST_SOCKET - 1, "local_host": d.local.ip().to_string(),
            "local_port": d.local.port(), "remote_host": d.remote.ip().to_string(), "remote_port": d.remote.port(),
        })
    });
    let document = json!({
        "start": {
            "connected": connected.collect::<Vec<_>>(),
            "version": format!("skyhaul {}", skyhaul_lab::VERSION),
            "system_info": "user-space UDP over TUN",
            "test_start": { "protocol": "UDP", "num_streams": all.len(), "reverse": u8::from(sum.sends) },
        },
        "end": {
            "streams": all.iter().map(|f| json!({ "udp": f.json() })).collect::<Vec<_>>(),
            "sum": sum.json(),
        },
    });
    format!("{document:#}\n")
}
