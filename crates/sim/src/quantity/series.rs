//! Quantities sampled at regular times.

use super::Unit;
use skyhaul_scenario::resolved::Series;

/// The subject of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Each flow.
    Flow,
    /// Each direction of a link.
    Link,
}

/// A series: `series.NAME` in studies, `NAME` in `record.series` and in the table `series`. Its values are those of the
/// column of this name in [`SampledSeries`](crate::SampledSeries).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Its subject.
    pub of: Subject,
    /// Its unit.
    pub unit: Unit,
    /// Description in one sentence or less.
    pub description: &'static str,
}

/// The entry of a series.
#[must_use]
pub const fn sampled(series: Series) -> Sampled {
    use Subject::{Flow, Link};
    let (of, unit, description) = match series {
        Series::Acked => (Flow, Unit::Segments, "distinct segments acknowledged so far"),
        Series::AllowedRate => {
            (Flow, Unit::BitPerSecond, "allowed sending rate of rate-controlled datagrams")
        }
        Series::Attenuation => (Link, Unit::Decibel, "attenuation of a link that fades"),
        Series::Buffered => (Flow, Unit::Second, "occupancy of the viewer's playout buffer"),
        Series::Bwe => (
            Flow,
            Unit::BitPerSecond,
            "bandwidth estimate of the congestion control, payload; missing if it has none",
        ),
        Series::Custody => (
            Flow,
            Unit::Bytes,
            "payload acknowledged to the sender and not yet by the receiver, for a chain of connections",
        ),
        Series::Cwnd => (Flow, Unit::Segments, "congestion window"),
        Series::Delay => (Link, Unit::Second, "current propagation delay, without jitter"),
        Series::Elevation => (
            Link,
            Unit::Degree,
            "elevation at which a station sees the satellite that serves it, the lower of both stations; missing without a path",
        ),
        Series::EsN0 => (Link, Unit::Decibel, "Es/N0 of a fading carrier"),
        Series::InFlight => (Flow, Unit::Segments, "data outstanding"),
        Series::LossEventRate => (Flow, Unit::Share, "loss event rate known to the TFRC sender"),
        Series::Marked => (Link, Unit::Count, "packets marked by the queue so far"),
        Series::ModCod => {
            (Link, Unit::BitPerSymbol, "spectral efficiency of the ModCod that a fading carrier uses")
        }
        Series::Pipe => (Flow, Unit::Segments, "estimate of the data in the network"),
        Series::Queue => (Link, Unit::Packets, "waiting packets"),
        Series::Rate => (
            Link,
            Unit::BitPerSecond,
            "rate at the time, or where it follows a trace the mean since the last sample; 0 while the link is down, \
             missing if infinitely fast",
        ),
        Series::Retransmissions => (Flow, Unit::Count, "data segments retransmitted so far"),
        Series::Rto => (Flow, Unit::Second, "retransmission timeout"),
        Series::Satellite => (
            Link,
            Unit::Count,
            "number of the satellite that the senders' station uses, from 0; missing without a path",
        ),
        Series::Srtt => (Flow, Unit::Second, "smoothed RTT"),
        Series::Ssthresh => (Flow, Unit::Segments, "slow start threshold"),
        Series::Stalled => (Flow, Unit::Second, "total stall time of the film so far"),
        Series::Telemetry => (
            Flow,
            Unit::Count,
            "variables of the congestion control, each as a separate series `telemetry.NAME`",
        ),
        Series::Up => (Link, Unit::Count, "1 while the link is up, 0 while it is down"),
        Series::Utilization => {
            (Link, Unit::Share, "fraction of time that the transmitter was busy since the last sample")
        }
    };
    Sampled { of, unit, description }
}
