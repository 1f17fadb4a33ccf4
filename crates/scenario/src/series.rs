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
    /// Attenuation of the carrier in dB, per direction of a link that fades.
    Attenuation,
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
    /// Elevation in degrees at which a station sees the satellite that serves it, the lower of both stations, per direction of
    /// a link over satellites; no value while there is no path.
    Elevation,
    /// Es/N0 of the carrier in dB, per direction of a link with a fading carrier.
    EsN0,
    /// Data outstanding in segments, per flow.
    InFlight,
    /// Loss event rate known to the sender, per TFRC flow.
    LossEventRate,
    /// Packets that the queue has ECN-marked so far, per direction of a link.
    Marked,
    /// Spectral efficiency of the ModCod in use in bits per symbol, per direction of a link with a fading carrier.
    #[serde(rename = "modcod")]
    ModCod,
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
    /// Number of the satellite that the senders' station uses, from 0, per direction of a link over satellites; no value
    /// while there is no path.
    Satellite,
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
    pub const ALL: [Self; 26] = [
        Self::Acked,
        Self::AllowedRate,
        Self::Attenuation,
        Self::Buffered,
        Self::Bwe,
        Self::Custody,
        Self::Cwnd,
        Self::Delay,
        Self::Elevation,
        Self::EsN0,
        Self::InFlight,
        Self::LossEventRate,
        Self::Marked,
        Self::ModCod,
        Self::Pipe,
        Self::Queue,
        Self::Rate,
        Self::Retransmissions,
        Self::Rto,
        Self::Satellite,
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
            Self::Attenuation => "attenuation",
            Self::Buffered => "buffered",
            Self::Bwe => "bwe",
            Self::Custody => "custody",
            Self::Cwnd => "cwnd",
            Self::Delay => "delay",
            Self::Elevation => "elevation",
            Self::EsN0 => "es-n0",
            Self::InFlight => "in-flight",
            Self::LossEventRate => "loss-event-rate",
            Self::Marked => "marked",
            Self::ModCod => "modcod",
            Self::Pipe => "pipe",
            Self::Queue => "queue",
            Self::Rate => "rate",
            Self::Retransmissions => "retransmissions",
            Self::Rto => "rto",
            Self::Satellite => "satellite",
            Self::Srtt => "srtt",
            Self::Ssthresh => "ssthresh",
            Self::Stalled => "stalled",
            Self::Telemetry => "telemetry",
            Self::Up => "up",
            Self::Utilization => "utilization",
        }
    }
}
