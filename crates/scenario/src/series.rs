//! What can be sampled over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A quantity sampled over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// Distinct segments acknowledged so far, per flow.
    Acked,
    /// Rate that the sender may send at in bit/s, per flow of datagrams that keep to one.
    AllowedRate,
    /// Film that the viewer has and has not seen, in seconds, per flow with video.
    Buffered,
    /// Bandwidth that the congestion control estimates, in bit/s of payload, per flow; no value of one that estimates none.
    Bwe,
    /// Payload acknowledged to the sender and not yet by the receiver, in bytes, per flow with a chain of connections.
    Custody,
    /// Congestion window in segments, per flow.
    Cwnd,
    /// Smallest propagation delay as it is now, in seconds, per direction of a link; without jitter.
    Delay,
    /// Data outstanding in segments, per flow.
    InFlight,
    /// Loss event rate as the sender knows it, per flow of TFRC.
    LossEventRate,
    /// Packets that the queue has marked so far (ECN), per direction of a link.
    Marked,
    /// Estimate of what is in the network, in segments, per flow.
    Pipe,
    /// Packets waiting, per direction of a link.
    Queue,
    /// Rate of the transmitter in bit/s, per direction of a link: as it is now, or where it follows a trace the
    /// mean since the last sample. No value for an infinitely fast one; 0 while the link is down.
    Rate,
    /// Segments sent again so far, per flow.
    Retransmissions,
    /// Retransmission timeout, per flow.
    Rto,
    /// Smoothed RTT, per flow.
    Srtt,
    /// Slow start threshold in segments, per flow.
    Ssthresh,
    /// How long the film of a viewer has stood still so far, in seconds, per flow with video.
    Stalled,
    /// Internal variables of the congestion control, per flow.
    Telemetry,
    /// 1 while the link is up, 0 while it is down, per direction of a link.
    Up,
    /// Share of time the transmitter was busy since the last sample, per direction of a link.
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
