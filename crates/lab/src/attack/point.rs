//! A case: the values of all keys, rounded to three significant digits so that its file can be read.

use serde::{Deserialize, Serialize};
use skyhaul_base::{Duration, Rate};
use skyhaul_scenario::amount::{RateSpec, Time};

/// The size of packets on the path, bytes.
pub(super) const PACKET: u64 = 1500;

/// A case. Equal cases have equal runs.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Point {
    /// Rate of the path, bit/s.
    pub(super) rate: u64,
    /// RTT of the empty path without jitter, ns.
    pub(super) rtt_ns: u64,
    /// Length of the buffer in bandwidth-delay products.
    pub(super) buffer: f64,
    /// Share of packets lost.
    pub(super) loss: f64,
    /// Mean number of packets lost in a row.
    pub(super) burst: f64,
    /// Jitter added each way, uniform from 0 to this, ns.
    pub(super) jitter_ns: u64,
    /// When the candidate starts, ns.
    pub(super) start_ns: u64,
    /// Number of neighbours.
    pub(super) count: u64,
    /// Their control.
    pub(super) neighbours: String,
}

impl Point {
    /// RTT of the empty path without jitter, s.
    pub(super) fn rtt_s(&self) -> f64 {
        self.rtt_ns as f64 / 1e9
    }

    /// The buffer in packets, at least two: a shorter one holds no packet while another is sent.
    pub(super) fn packets(&self) -> u64 {
        let bdp = self.rate as f64 * self.rtt_s() / (8.0 * PACKET as f64);
        ((self.buffer * bdp).round() as u64).max(2)
    }

    /// The time to send a packet, s.
    pub(super) fn packet_s(&self) -> f64 {
        8.0 * PACKET as f64 / self.rate as f64
    }

    /// The identity of the case.
    pub(super) fn key(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| unreachable!("numbers and a name"))
    }

    /// The value of a key as a file has it.
    pub(super) fn text(&self, key: &str) -> String {
        let time = |ns| Time(Duration::from_nanos(ns)).to_string();
        match key {
            "rate" => RateSpec::Bits(Rate::from_bits_per_sec(self.rate)).to_string(),
            "rtt" => time(self.rtt_ns),
            "buffer" => format!("{} BDP", self.buffer),
            "loss" => self.loss.to_string(),
            "burst" => self.burst.to_string(),
            "jitter" => time(self.jitter_ns),
            "start" => time(self.start_ns),
            "count" => self.count.to_string(),
            _ => self.neighbours.clone(),
        }
    }
}
