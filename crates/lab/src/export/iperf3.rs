//! The layout of `iperf3 -J`.
//!
//! iperf3 measures one client against one server with parallel streams: one file per group of TCP flows, one stream
//! per flow. Values that a simulation does not have (processor time, the size of socket buffers, `rttvar`, `pmtu`,
//! `snd_wnd`) are left out rather than invented.

use super::recorded::{Recorded, RecordedFlow, runs};
use crate::capture::addresses;
use crate::error::{ExportError, LabError};
use crate::results::json_file;
use serde_json::{Value, json};
use skyhaul_scenario::resolved::{FlowGroup, Transport};
use std::fs;
use std::path::{Path, PathBuf};

/// Series required for intervals.
const NEEDED: [&str; 4] = ["acked", "cwnd", "retransmissions", "srtt"];
/// Number of the first stream: iperf3 numbers streams by socket descriptors, of which the first is usually 5.
pub const FIRST_SOCKET: u32 = 5;

/// Writes `GROUP.iperf3.json` for every group of TCP flows of every run under `out`; returns the files.
///
/// # Errors
/// If a run has not recorded the required series or has no TCP flows, or a file cannot be read or written.
pub fn iperf3(results: &Path, out: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut written = Vec::new();
    for run in runs(results)? {
        run.need(&NEEDED)?;
        let folder = out.join(run.folder.strip_prefix(results).unwrap_or(Path::new("")));
        fs::create_dir_all(&folder).map_err(LabError::write(&folder))?;
        let before = written.len();
        for group in run.scenario().flows.iter().filter(|g| g.transport == Transport::Tcp) {
            let path = folder.join(format!("{}.iperf3.json", group.name));
            json_file(&path, &report(&run, group))?;
            written.push(path);
        }
        if written.len() == before {
            return Err(ExportError::NoTcp { folder: run.folder }.into());
        }
    }
    Ok(written)
}

/// A stream: a flow with its samples.
struct Stream<'a> {
    flow: RecordedFlow<'a>,
    socket: u32,
    /// One per sample but the first: end of the interval in s, bytes acknowledged in it, segments retransmitted in it, cwnd
    /// in bytes, smoothed RTT in µs.
    intervals: Vec<[f64; 5]>,
}

fn report(run: &Recorded, group: &FlowGroup) -> Value {
    let duration = run.duration();
    let flows = run.flows().into_iter().filter(|f| f.group.name == group.name);
    let streams: Vec<Stream<'_>> =
        (FIRST_SOCKET..).zip(flows).map(|(socket, flow)| stream(run, flow, socket)).collect();
    let mss = group.endpoint.mss;
    let connected = streams.iter().map(|s| {
        let (local, remote) = addresses(s.flow.index, 0);
        json!({
            "socket": s.socket, "local_host": local.ip().to_string(), "local_port": local.port(),
            "remote_host": remote.ip().to_string(), "remote_port": remote.port(),
        })
    });
    let samples = streams.iter().map(|s| s.intervals.len()).max().unwrap_or(0);
    let mut start = 0.0;
    let mut intervals = Vec::with_capacity(samples);
    for i in 0..samples {
        let end = streams.iter().filter_map(|s| s.intervals.get(i)).map(|row| row[0]).fold(start, f64::max);
        let rows: Vec<(u32, [f64; 5])> =
            streams.iter().filter_map(|s| Some((s.socket, *s.intervals.get(i)?))).collect();
        intervals.push(interval(start, end, &rows));
        start = end;
    }
    let (local, remote) = addresses(streams.first().map_or(0, |s| s.flow.index), 0);
    let (sent, retransmitted) = streams.iter().fold((0, 0), |(b, r), s| {
        (b + count(s.flow.measured, "bytes_acked"), r + count(s.flow.measured, "retransmissions"))
    });
    let sum = |sender: bool| {
        let mut sum = json!({
            "start": 0, "end": duration, "seconds": duration, "bytes": sent,
            "bits_per_second": per_second(sent as f64, duration), "sender": true,
        });
        if sender {
            sum["retransmits"] = json!(retransmitted);
        }
        sum
    };
    let cc = group.label();
    json!({
        "start": {
            "connected": connected.collect::<Vec<_>>(),
            "version": format!("skyhaul {}", crate::VERSION),
            "system_info": format!("simulated: {}", run.scenario().title),
            "timestamp": { "time": "Thu, 01 Jan 1970 00:00:00 GMT", "timesecs": 0 },
            "connecting_to": { "host": remote.ip().to_string(), "port": remote.port() },
            "cookie": format!("{}-{}-{}", run.scenario().hash(), run.case.seed, local.ip()),
            "tcp_mss_default": mss,
            "target_bitrate": 0,
            "test_start": {
                "protocol": "TCP", "num_streams": streams.len(), "blksize": mss, "omit": 0,
                "duration": duration, "bytes": 0, "blocks": 0, "reverse": 0, "tos": 0, "target_bitrate": 0,
            },
        },
        "intervals": intervals,
        "end": {
            "streams": streams.iter().map(|s| ended(s, duration)).collect::<Vec<_>>(),
            "sum_sent": sum(true),
            "sum_received": sum(false),
            "sender_tcp_congestion": cc,
            "receiver_tcp_congestion": cc,
        },
    })
}

fn stream<'a>(run: &Recorded, flow: RecordedFlow<'a>, socket: u32) -> Stream<'a> {
    let mss = f64::from(flow.group.endpoint.mss);
    let curve = |name| run.curve(&flow.object, name);
    let at = |name, i: usize| curve(name).get(i).and_then(|(_, value)| *value).unwrap_or(0.0);
    let intervals = curve("acked").iter().enumerate().skip(1).map(|(i, (time, _))| {
        let growth = |name| at(name, i) - at(name, i - 1);
        [
            *time,
            (growth("acked") * mss).round(),
            growth("retransmissions"),
            (at("cwnd", i) * mss).round(),
            (at("srtt", i) * 1e6).round(),
        ]
    });
    let intervals = intervals.collect();
    Stream { flow, socket, intervals }
}

/// An interval: its streams (socket, end in s, bytes acknowledged, segments retransmitted, congestion window in
/// bytes, smoothed RTT in µs), and their sum.
#[must_use]
pub fn interval(start: f64, end: f64, rows: &[(u32, [f64; 5])]) -> Value {
    let seconds = end - start;
    let streams = rows.iter().map(|(socket, [_, bytes, retransmits, cwnd, rtt])| {
        json!({
            "socket": socket, "start": start, "end": end, "seconds": seconds, "bytes": whole(*bytes),
            "bits_per_second": per_second(*bytes, seconds), "retransmits": whole(*retransmits),
            "snd_cwnd": whole(*cwnd), "rtt": whole(*rtt), "omitted": false, "sender": true,
        })
    });
    let (bytes, retransmits) = rows.iter().fold((0.0, 0.0), |(b, r), (_, row)| (b + row[1], r + row[2]));
    json!({
        "streams": streams.collect::<Vec<_>>(),
        "sum": {
            "start": start, "end": end, "seconds": seconds, "bytes": whole(bytes),
            "bits_per_second": per_second(bytes, seconds), "retransmits": whole(retransmits), "omitted": false,
            "sender": true,
        },
    })
}

fn ended(s: &Stream<'_>, duration: f64) -> Value {
    let sums = (count(s.flow.measured, "bytes_acked"), count(s.flow.measured, "retransmissions"));
    stream_ended(s.socket, &s.intervals, sums, duration)
}

/// Totals of a stream: bytes acknowledged and segments retransmitted over its duration in seconds.
#[must_use]
pub fn stream_ended(
    socket: u32,
    intervals: &[[f64; 5]],
    (bytes, retransmits): (u64, u64),
    duration: f64,
) -> Value {
    let rate = per_second(bytes as f64, duration);
    let rtts: Vec<f64> = intervals.iter().map(|row| row[4]).filter(|rtt| *rtt > 0.0).collect();
    let most = |i: usize| intervals.iter().map(|row| row[i]).fold(0.0, f64::max);
    let least = rtts.iter().copied().fold(f64::INFINITY, f64::min);
    let mean = if rtts.is_empty() { 0.0 } else { rtts.iter().sum::<f64>() / rtts.len() as f64 };
    json!({
        "sender": {
            "socket": socket, "start": 0, "end": duration, "seconds": duration, "bytes": bytes,
            "bits_per_second": rate, "retransmits": retransmits,
            "max_snd_cwnd": whole(most(3)), "max_rtt": whole(most(4)),
            "min_rtt": whole(if least.is_finite() { least } else { 0.0 }), "mean_rtt": whole(mean), "sender": true,
        },
        "receiver": {
            "socket": socket, "start": 0, "end": duration, "seconds": duration, "bytes": bytes,
            "bits_per_second": rate, "sender": true,
        },
    })
}

fn count(measured: &Value, key: &str) -> u64 {
    measured[key].as_u64().unwrap_or(0)
}

/// Rounds a count, which iperf3 writes as a whole number.
fn whole(x: f64) -> u64 {
    x.round() as u64
}

/// Bits per second; 0 if the duration is 0.
#[must_use]
pub fn per_second(bytes: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes * 8.0 / seconds } else { 0.0 }
}
