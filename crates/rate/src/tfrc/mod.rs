//! TFRC: TCP-friendly rate control (RFC 5348).
//!
//! The receiver measures the loss event rate p: losses within one RTT are one event. The sender computes its rate
//! from p and the RTT by TCP's throughput equation, and sends evenly spaced packets, but never at more than twice
//! the receive rate. Before the first loss the rate doubles every RTT. Without reports it halves.
//!
//! Choices that the RFC leaves open: the nominal packet is the whole packet with headers; a data-limited interval
//! is one in which nothing ever waited for the pacer; a late packet withdraws its loss event if it was the only
//! loss of the latest one ("can", §5.1); until a packet carries an RTT, every packet is reported.

mod control;
mod equation;
mod intervals;
mod limited;
mod receive_rates;
mod receiver;

pub(crate) use control::Control;
pub use equation::{allowed, loss_at};
pub use intervals::Intervals;
pub(crate) use receiver::Receiver;

use crate::option::{Feedback, Invalid, bits, optional_size};
use skyhaul_base::Duration;
use skyhaul_base::amount::{Count, RateSpec, Size, Time, plain};

/// TFRC (RFC 5348).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "TfrcSpec")]
pub struct Config {
    /// Packet size with headers, the segment size of the equation; by default that of the application, or "1000 B".
    #[serde(with = "optional_size", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub packet: Option<u64>,
    /// When the receiver reports: "rtt" as in the RFC, or "packet".
    pub feedback: Feedback,
    /// Discount old loss intervals while there are no new losses (RFC 5348 §5.5).
    pub discounting: bool,
    /// Oracle: losses caused by the channel are not loss events. Only in simulations.
    pub ignore_corruption: bool,
    /// Adapt the rate to the round-trip time to damp oscillations (§4.5).
    pub damping: bool,
    /// Minimum of the retransmission timeout in the equation, which is otherwise four round-trip times.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub rto_floor: Duration,
    /// Use ECN (RFC 3168): queues may mark packets instead of dropping them, and marked packets count as lost.
    pub ecn: bool,
    /// Largest burst in packets after unused time (§4.6); 1 is pure pacing.
    #[serde(with = "plain::count")]
    #[schemars(with = "Count")]
    pub burst: u64,
    /// Largest number of datagrams queued at the sender; more are refused.
    #[serde(with = "plain::count")]
    #[schemars(with = "Count")]
    pub queue: u64,
    /// Upper bound of the rate; "unlimited" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<RateSpec>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            packet: None,
            feedback: Feedback::Rtt,
            discounting: true,
            ignore_corruption: false,
            damping: true,
            rto_floor: Duration::ZERO,
            ecn: false,
            burst: 1,
            queue: 64,
            max_rate: None,
        }
    }
}

impl Config {
    /// Without defaults, with packets of `packet` bytes.
    pub(crate) fn resolve(&self, packet: u64) -> Result<Self, Invalid> {
        if self.queue == 0 {
            return Err(Invalid::NoQueue);
        }
        if self.burst == 0 || self.burst > 1000 {
            return Err(Invalid::Range { key: "burst", value: self.burst as f64, range: "from 1 to 1000" });
        }
        if self.rto_floor > Duration::from_secs(60) {
            let value = self.rto_floor.as_secs_f64();
            return Err(Invalid::Range { key: "rto-floor", value, range: "of at most \"60 s\"" });
        }
        let most = self.max_rate.unwrap_or(RateSpec::Unlimited);
        Ok(Self { packet: Some(packet), max_rate: Some(bits("max-rate", most, packet)?), ..*self })
    }
    /// The timeout of the equation, in seconds.
    pub(crate) fn timeout(&self, rtt: f64) -> f64 {
        (4.0 * rtt).max(self.rto_floor.as_secs_f64())
    }
}
