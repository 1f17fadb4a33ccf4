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
    pub says: &'static str,
}

/// The entry of a series.
#[must_use]
pub const fn sampled(series: Series) -> Sampled {
    use Subject::{Flow, Link};
    let (of, unit, says) = match series {
        Series::Acked => (Flow, Unit::Segments, "distinct segments acknowledged so far"),
        Series::AllowedRate => {
            (Flow, Unit::BitPerSecond, "rate that the sender may send at, of datagrams that keep to one")
        }
        Series::Buffered => (Flow, Unit::Second, "film that the viewer has and has not seen"),
        Series::Bwe => (
            Flow,
            Unit::BitPerSecond,
            "bandwidth that the congestion control estimates, payload; missing of one that estimates none",
        ),
        Series::Custody => (
            Flow,
            Unit::Bytes,
            "payload acknowledged to the sender and not yet by the receiver, of a chain of connections",
        ),
        Series::Cwnd => (Flow, Unit::Segments, "congestion window"),
        Series::Delay => (Link, Unit::Second, "smallest propagation delay at the time, without jitter"),
        Series::InFlight => (Flow, Unit::Segments, "data outstanding"),
        Series::LossEventRate => (Flow, Unit::Share, "loss event rate as the sender knows it, of TFRC"),
        Series::Marked => (Link, Unit::Count, "packets that the queue has marked so far"),
        Series::Pipe => (Flow, Unit::Segments, "estimate of what is in the network"),
        Series::Queue => (Link, Unit::Packets, "packets that wait"),
        Series::Rate => (
            Link,
            Unit::BitPerSecond,
            "rate at the time, or where it follows a trace the mean since the last sample; 0 while the link is down, \
             missing if infinitely fast",
        ),
        Series::Retransmissions => (Flow, Unit::Count, "data segments sent again so far"),
        Series::Rto => (Flow, Unit::Second, "retransmission timeout"),
        Series::Srtt => (Flow, Unit::Second, "smoothed RTT"),
        Series::Ssthresh => (Flow, Unit::Segments, "slow start threshold"),
        Series::Stalled => (Flow, Unit::Second, "how long the film has stood still so far"),
        Series::Telemetry => (
            Flow,
            Unit::Count,
            "the variables of the congestion control, each a series `telemetry.NAME` of its own",
        ),
        Series::Up => (Link, Unit::Count, "1 while the link is up, 0 while it is down"),
        Series::Utilization => {
            (Link, Unit::Share, "share of time the transmitter was busy since the last sample")
        }
    };
    Sampled { of, unit, says }
}
