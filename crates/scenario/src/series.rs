//! Series: quantities sampled over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A quantity sampled over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// Distinct segments acknowledged so far, per flow.
    Acked,
    /// Allowed sending rate in bit/s, per flow with rate-controlled datagrams.
    AllowedRate,
    /// Playout buffer of the viewer in seconds, per video flow.
    Buffered,
    /// Bandwidth estimate of the congestion control in bit/s of payload, per flow; no value if it estimates none.
    Bwe,
    /// Payload acknowledged to the sender but not yet by the receiver, in bytes, per flow with a chain of
    /// connections.
    Custody,
    /// Congestion window in segments, per flow.
    Cwnd,
    /// Current smallest propagation delay in seconds, per direction of a link; without jitter.
    Delay,
    /// Data outstanding in segments, per flow.
    InFlight,
    /// Loss event rate known to the sender, per TFRC flow.
    LossEventRate,
    /// Packets that the queue has ECN-marked so far, per direction of a link.
    Marked,
    /// Estimate of the data in the network (pipe) in segments, per flow.
    Pipe,
    /// Queue length in packets, per direction of a link.
    Queue,
    /// Rate of the transmitter in bit/s, per direction of a link: the current rate, or with a trace the mean since
    /// the last sample. No value if unlimited; 0 while the link is down.
    Rate,
    /// Segments retransmitted so far, per flow.
    Retransmissions,
    /// Retransmission timeout in seconds, per flow.
    Rto,
    /// Smoothed RTT in seconds, per flow.
    Srtt,
    /// Slow start threshold in segments, per flow.
    Ssthresh,
    /// Time that the viewer's playout has stalled so far in seconds, per video flow.
    Stalled,
    /// Internal variables of the congestion control, per flow.
    Telemetry,
    /// 1 while the link is up, 0 while it is down, per direction of a link.
    Up,
    /// Fraction of time that the transmitter was busy since the last sample, per direction of a link.
    Utilization,
}

impl Series {
    /// All series, in the order of their names.
    pub const ALL: [Self; 21] = [
        Self::Acked,
        Self::AllowedRate,
        Self::Buffered,
        Self::Bwe,
        Self::Custody,
        Self::Cwnd,
        Self::Delay,
        Self::InFlight,
        Self::LossEventRate,
        Self::Marked,
        Self::Pipe,
        Self::Queue,
        Self::Rate,
        Self::Retransmissions,
        Self::Rto,
        Self::Srtt,
        Self::Ssthresh,
        Self::Stalled,
        Self::Telemetry,
        Self::Up,
        Self::Utilization,
    ];

    /// Name in files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acked => "acked",
            Self::AllowedRate => "allowed-rate",
            Self::Buffered => "buffered",
            Self::Bwe => "bwe",
            Self::Custody => "custody",
            Self::Cwnd => "cwnd",
            Self::Delay => "delay",
            Self::InFlight => "in-flight",
            Self::LossEventRate => "loss-event-rate",
            Self::Marked => "marked",
            Self::Pipe => "pipe",
            Self::Queue => "queue",
            Self::Rate => "rate",
            Self::Retransmissions => "retransmissions",
            Self::Rto => "rto",
            Self::Srtt => "srtt",
            Self::Ssthresh => "ssthresh",
            Self::Stalled => "stalled",
            Self::Telemetry => "telemetry",
            Self::Up => "up",
            Self::Utilization => "utilization",
        }
    }
}
