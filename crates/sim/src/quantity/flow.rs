//! Quantities of each flow.

use super::{Quantity, Unit, amount, bytes, count, known, maybe, mean, video};
use crate::result::{FlowResult, RateResult};
use skyhaul_apps::{FrameType as Type, Measured};
use skyhaul_base::Instant;
use skyhaul_scenario::resolved::FlowGroup;
use skyhaul_trace::LossCause;

/// What a flow has that some quantities are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    Datagrams,
    Frames,
    Pages,
    Repeats,
}

/// Beginnings of the names of quantities that not every flow has.
const ONLY: [(&str, Has); 17] = [
    ("cuts", Has::Repeats),
    ("delay_", Has::Datagrams),
    ("delivered", Has::Datagrams),
    ("died", Has::Frames),
    ("duplicate_acks", Has::Repeats),
    ("frames", Has::Frames),
    ("freeze", Has::Frames),
    ("jitter", Has::Datagrams),
    ("page", Has::Pages),
    ("probes", Has::Repeats),
    ("recoveries", Has::Repeats),
    ("retransmissions", Has::Repeats),
    ("stall", Has::Frames),
    ("startup", Has::Frames),
    ("timeout", Has::Repeats),
    ("useless", Has::Frames),
    ("verdicts", Has::Repeats),
];

/// Why flows of this group cannot have the quantity of this name; `None` if they can.
#[must_use]
pub fn lacking(name: &str, group: &FlowGroup) -> Option<&'static str> {
    let has = ONLY.iter().find(|(start, _)| name.starts_with(start))?.1;
    let film = group.app.is_watched();
    let (there, why) = match has {
        Has::Datagrams => (film || group.transport.sends_datagrams(), "only datagrams and video have it"),
        Has::Frames => (film, "only films have it"),
        Has::Pages => (group.app.has_pages(), "only applications that load pages or transfers have it"),
        Has::Repeats => (!group.transport.sends_datagrams(), "only TCP has it"),
    };
    (!there).then_some(why)
}

/// Whether a quantity is measured only if the scenario asks for it with `record.packet-delay`.
#[must_use]
pub fn is_on_demand(name: &str) -> bool {
    ["packet_delay_", "queueing_delay_"].iter().any(|start| name.starts_with(start))
}

/// Of a flow: `flow.NAME` in studies, columns of `flows`.
pub const FLOW: &[Quantity<FlowResult>] = &[
    maybe("started", "start time", |f, _| f.started.map(Instant::as_secs_f64)),
    maybe("finished", "time at which the flow completed or was stopped", |f, _| {
        f.finished.map(Instant::as_secs_f64)
    }),
    maybe("last_ack", "arrival time of the last acknowledgement", |f, _| {
        f.last_ack.map(Instant::as_secs_f64)
    }),
    bytes(
        "bytes_acked",
        "payload acknowledged, each byte counted once; for datagrams, payload delivered",
        |f, _| f.bytes_acked,
    ),
    amount(
        "unique_segments",
        Unit::Segments,
        "distinct data segments acknowledged: `bytes_acked` in full segments",
        |f, _| f.segments_acked,
    ),
    amount("goodput", Unit::BitPerSecond, "payload acknowledged per time of the whole run", |f, _| f.goodput),
    amount(
        "goodput_segments",
        Unit::SegmentPerSecond,
        "distinct segments acknowledged per time of the whole run",
        |f, duration| f.segments_per_second(duration),
    ),
    count("segments_sent", "data segments sent, retransmissions included, probes excluded", |f, _| {
        f.segments_sent
    }),
    count("retransmissions", "data segments retransmitted", |f, _| f.retransmissions),
    count(
        "timeout_retransmissions",
        "data segments retransmitted during the repair after a timeout",
        |f, _| f.timeout_retransmissions,
    ),
    count("timeouts", "expiries of the retransmission timer", |f, _| f.timeouts),
    count("recoveries", "recoveries triggered by acknowledgements, without a timeout", |f, _| f.recoveries),
    count("cuts", "window reductions on congestion signals", |f, _| f.cuts.total()),
    count("cuts_error", "window reductions due to a packet lost to a channel error", |f, _| f.cuts.error),
    count(
        "cuts_congestion",
        "window reductions due to a packet lost to a full queue or dropped by active queue management",
        |f, _| f.cuts.congestion,
    ),
    count("cuts_marked", "window reductions due to an ECN mark of a queue, without a loss", |f, _| {
        f.cuts.marked
    }),
    count("cuts_outage", "window reductions due to a packet lost when a link went down", |f, _| {
        f.cuts.outage
    }),
    count(
        "cuts_spurious",
        "window reductions without a loss or an ECN mark: after delay, reordering or lost acknowledgements",
        |f, _| f.cuts.spurious,
    ),
    count(
        "timeout_cuts_error",
        "window reductions by timeout due to a packet lost to a channel error",
        |f, _| f.timeout_cuts.error,
    ),
    count(
        "timeout_cuts_congestion",
        "window reductions by timeout due to a packet lost to a full queue or dropped by active queue management",
        |f, _| f.timeout_cuts.congestion,
    ),
    count(
        "timeout_cuts_outage",
        "window reductions by timeout due to a packet lost when a link went down",
        |f, _| f.timeout_cuts.outage,
    ),
    count(
        "timeout_cuts_spurious",
        "window reductions by timeout without a loss: after delay, reordering or lost acknowledgements",
        |f, _| f.timeout_cuts.spurious,
    ),
    count("cuts_undone", "window reductions that the sender detected as spurious and undid", |f, _| {
        f.cuts_undone
    }),
    count(
        "verdicts",
        "losses detected by acknowledgements that the sender's loss classifier judged",
        |f, _| f.verdicts.total(),
    ),
    count(
        "verdicts_error_right",
        "losses by channel errors or outages that the loss classifier judged as errors",
        |f, _| f.verdicts.error_right,
    ),
    count(
        "verdicts_error_wrong",
        "losses by channel errors or outages that the loss classifier judged as congestion",
        |f, _| f.verdicts.error_wrong,
    ),
    count(
        "verdicts_congestion_right",
        "losses at full queues that the loss classifier judged as congestion",
        |f, _| f.verdicts.congestion_right,
    ),
    count(
        "verdicts_congestion_wrong",
        "losses at full queues that the loss classifier judged as errors",
        |f, _| f.verdicts.congestion_wrong,
    ),
    count("verdicts_spurious", "segments that the loss classifier judged and that were not lost", |f, _| {
        f.verdicts.spurious
    }),
    count("probes_sent", "dummy or NIL segments sent", |f, _| f.probes_sent),
    count("probes_answered", "dummy or NIL segments answered", |f, _| f.probes_answered),
    count("acks", "acknowledgements processed by the sender", |f, _| f.acks),
    count("duplicate_acks", "duplicate acknowledgements processed by the sender", |f, _| f.duplicate_acks),
    count(
        "discarded",
        "segments that arrived for a connection that had been replaced or had ended",
        |f, _| f.discarded,
    ),
    count("rejected", "segments rejected by an endpoint", |f, _| f.rejected),
    count("pages", "completed pages, or completed random transfers", |f, _| f.pages.len() as u64),
    maybe("page_time_mean", "mean page time", |f, _| f.mean_page()),
    maybe("page_time_p50", "median page time", |f, _| f.page_quantile(0.5)),
    maybe("page_time_p95", "95th percentile of the page time", |f, _| f.page_quantile(0.95)),
    maybe("page_time_p99", "99th percentile of the page time", |f, _| f.page_quantile(0.99)),
    amount("page_time_sum", Unit::Second, "sum of the times of all completed pages", |f, _| {
        f.pages.iter().map(|p| p.took.as_secs_f64()).sum()
    }),
    count(
        "pages_unfinished",
        "pages, or random transfers, in progress at the end of the run or flow; page times are without them",
        |f, _| f.unfinished.len() as u64,
    ),
    maybe(
        "page_time_least",
        "lower bound of the mean time of all pages: unfinished pages count with the time that they had taken",
        |f, _| mean(f.page_times_so_far()),
    ),
    count(
        "transfers",
        "random transfers, complete or not; the time of a complete one counts as a page time",
        |f, _| f.transfers,
    ),
    count("lost", "data packets lost", |f, _| f.lost.iter().sum()),
    count("lost_error", "data packets lost to channel errors", |f, _| f.lost[LossCause::Error as usize]),
    count("lost_full", "data packets lost to a full queue", |f, _| f.lost[LossCause::Full as usize]),
    count("lost_pushed_out", "data packets evicted from a queue", |f, _| {
        f.lost[LossCause::PushedOut as usize]
    }),
    count("lost_link_down", "data packets lost in flight when a link went down", |f, _| {
        f.lost[LossCause::LinkDown as usize]
    }),
    count("lost_aqm", "data packets dropped by active queue management", |f, _| {
        f.lost[LossCause::Aqm as usize]
    }),
    count("lost_arq_gave_up", "data packets given up by a link's ARQ", |f, _| {
        f.lost[LossCause::ArqGaveUp as usize]
    }),
    count("delivered", "datagrams delivered; for video, packets of the application", |f, _| {
        datagrams(f).delivered
    }),
    maybe(
        "delay_min",
        "minimum one-way delay of a datagram, or of a video packet from the production of its frame",
        |f, _| datagrams(f).delay_min,
    ),
    maybe("delay_mean", "mean one-way delay of datagrams", |f, _| datagrams(f).delay_mean),
    maybe("delay_p50", "median of the one-way delay of datagrams", |f, _| datagrams(f).delay_p50),
    maybe("delay_p95", "95th percentile of the one-way delay of datagrams", |f, _| datagrams(f).delay_p95),
    maybe("delay_p99", "99th percentile of the one-way delay of datagrams", |f, _| datagrams(f).delay_p99),
    maybe("delay_max", "maximum one-way delay of a datagram", |f, _| datagrams(f).delay_max),
    maybe(
        "delay_variation",
        "99th percentile of the one-way delay of datagrams minus the minimum (RFC 5481)",
        |f, _| video::delay_variation(f),
    ),
    maybe(
        "packet_delay_p50",
        "median of the one-way delay of data packets; with `record.packet-delay`",
        |f, _| Some(f.packet_delays.as_ref()?.one_way.p50),
    ),
    maybe(
        "packet_delay_p95",
        "95th percentile of the one-way delay of data packets; with `record.packet-delay`",
        |f, _| Some(f.packet_delays.as_ref()?.one_way.p95),
    ),
    maybe(
        "packet_delay_p99",
        "99th percentile of the one-way delay of data packets; with `record.packet-delay`",
        |f, _| Some(f.packet_delays.as_ref()?.one_way.p99),
    ),
    maybe(
        "queueing_delay_p50",
        "median of the queueing delay of data packets: one-way delay less propagation and transmission; with `record.packet-delay`",
        |f, _| Some(f.packet_delays.as_ref()?.queueing.p50),
    ),
    maybe(
        "queueing_delay_p95",
        "95th percentile of the queueing delay of data packets: one-way delay less propagation and transmission; with \
         `record.packet-delay`",
        |f, _| Some(f.packet_delays.as_ref()?.queueing.p95),
    ),
    maybe(
        "queueing_delay_p99",
        "99th percentile of the queueing delay of data packets: one-way delay less propagation and transmission; with \
         `record.packet-delay`",
        |f, _| Some(f.packet_delays.as_ref()?.queueing.p99),
    ),
    maybe("jitter", "interarrival jitter of datagrams (RFC 3550)", |f, _| datagrams(f).jitter),
    maybe("jitter_mean", "mean of the interarrival jitter over the packets", |f, _| datagrams(f).jitter_mean),
    count("frames", "video frames produced", |f, _| video::count(f, |v| v.frames.iter().sum())),
    count("frames_skipped", "video frames skipped by the sender because its buffer was full", |f, _| {
        video::count(f, |v| v.skipped)
    }),
    count("frames_gap", "video frames not sent while the coder changed its rate", |f, _| {
        video::count(f, |v| v.gaps)
    }),
    count("frames_packets", "packets into which the application divided the video frames", |f, _| {
        video::count(f, |v| v.packets)
    }),
    known("frames_complete", Unit::Share, "fraction of video frames that arrived in time", |f, _| {
        video::complete(f)
    }),
    known("frames_complete_i", Unit::Share, "fraction of I frames that arrived in time", |f, _| {
        video::complete_of(f, Type::I)
    }),
    known("frames_complete_p", Unit::Share, "fraction of P frames that arrived in time", |f, _| {
        video::complete_of(f, Type::P)
    }),
    known("frames_complete_b", Unit::Share, "fraction of B frames that arrived in time", |f, _| {
        video::complete_of(f, Type::B)
    }),
    maybe(
        "frame_delay_p5",
        "time from the production of a frame to its last byte within which 5 % of the frames arrived; missing if fewer arrived",
        |f, _| video::frame_delay(f, 0.05),
    ),
    maybe(
        "frame_delay_p25",
        "time from the production of a frame to its last byte within which 25 % of the frames arrived; \
         missing if fewer arrived",
        |f, _| video::frame_delay(f, 0.25),
    ),
    maybe(
        "frame_delay_p50",
        "time from the production of a frame to its last byte within which 50 % of the frames arrived; \
         missing if fewer arrived",
        |f, _| video::frame_delay(f, 0.5),
    ),
    maybe(
        "frame_delay_p75",
        "time from the production of a frame to its last byte within which 75 % of the frames arrived; \
         missing if fewer arrived",
        |f, _| video::frame_delay(f, 0.75),
    ),
    maybe(
        "frame_delay_p90",
        "time from the production of a frame to its last byte within which 90 % of the frames arrived; \
         missing if fewer arrived",
        |f, _| video::frame_delay(f, 0.9),
    ),
    maybe(
        "frame_delay_p95",
        "time from the production of a frame to its last byte within which 95 % of the frames arrived; \
         missing if fewer arrived",
        |f, _| video::frame_delay(f, 0.95),
    ),
    maybe(
        "frame_delay_p99",
        "time from the production of a frame to its last byte within which 99 % of the frames arrived; \
         missing if fewer arrived",
        |f, _| video::frame_delay(f, 0.99),
    ),
    maybe(
        "frame_delay_p999",
        "time from the production of a frame to its last byte within which 99.9 % of the frames arrived; \
         missing if fewer arrived",
        |f, _| video::frame_delay(f, 0.999),
    ),
    known(
        "decodable",
        Unit::Share,
        "fraction of video frames that arrived in time, as did the frames from which they are coded",
        |f, _| video::share(f, |v| v.decodable),
    ),
    known(
        "delayed",
        Unit::Share,
        "fraction of video packets that arrived too long after the previous one in number, as delivered to the application \
         (Algorithm 1 of Papadimitriou, Tsaoussidis 2007); missing if the transport failed",
        |f, _| video::of(f, |v| v.delayed)??.value(),
    ),
    known(
        "delayed_arrival",
        Unit::Share,
        "fraction of video packets that arrived too long after the previous packet in order of arrival; otherwise as `delayed`",
        |f, _| video::of(f, |v| v.delayed_arrival)??.value(),
    ),
    known(
        "delayed_wire",
        Unit::Share,
        "fraction of video packets that arrived too long after the previous one in number, judged by the segments as they arrive over TCP, \
         in order or not; otherwise as `delayed`",
        |f, _| video::of(f, |v| v.delayed_wire)??.value(),
    ),
    known(
        "late_500ms",
        Unit::Share,
        "fraction of video packets that had not arrived 0.5 s after the production of the frame",
        |f, _| video::share(f, |v| v.late[0]),
    ),
    known(
        "late_1s",
        Unit::Share,
        "fraction of video packets that had not arrived 1 s after the production of the frame",
        |f, _| video::share(f, |v| v.late[1]),
    ),
    known(
        "late_2s",
        Unit::Share,
        "fraction of video packets that had not arrived 2 s after the production of the frame",
        |f, _| video::share(f, |v| v.late[2]),
    ),
    maybe("startup", "time from the first frame to the start of playback", |f, _| {
        video::of(f, |v| v.played.startup)?
    }),
    count("stalls", "number of stalls of the film; over UDP, of freezes", |f, _| {
        video::count(f, |v| v.played.stalls)
    }),
    maybe("stalled", "total stall time of the film", |f, _| video::of(f, |v| v.played.stalled)),
    known(
        "stalled_share",
        Unit::Share,
        "total stall time as a fraction of the time since the start of the film; 1 if the film never started",
        |f, _| video::of(f, |v| v.still)?,
    ),
    maybe("freeze_max", "longest time without a new picture", |f, _| video::of(f, |v| v.played.freeze)),
    known(
        "unevenness",
        Unit::Share,
        "coefficient of variation of a film's throughput over half seconds",
        |f, _| video::of(f, |v| v.variation)?,
    ),
    maybe("silence_max", "longest time without an arrival", |f, _| video::of(f, |v| v.silence)?),
    count("switches", "rate changes of the coder", |f, _| video::count(f, |v| v.switches)),
    known("switched_by", Unit::BitPerSecond, "mean rate change of the coder", |f, _| {
        video::of(f, |v| v.switched_by)?
    }),
    known(
        "useless",
        Unit::Share,
        "fraction of the delivered bytes that arrived too late or belong to frames that cannot be decoded",
        |f, _| video::share(f, |v| v.useless),
    ),
    maybe("died", "time at which the transport of a film gave up", |f, _| video::died(f)),
    count(
        "reports",
        "reports sent by the receiver of rate-controlled datagrams; `acks` counts those that arrived",
        |f, _| rate(f).reports,
    ),
    count("refused", "datagrams refused because the sender's queue was full", |f, _| rate(f).refused),
    count("no_feedback", "rate reductions due to missing reports", |f, _| rate(f).expiries),
    count("loss_events", "loss events counted by the TFRC receiver", |f, _| {
        rate(f).loss_events.unwrap_or_default()
    }),
    known(
        "loss_event_rate",
        Unit::Share,
        "loss event rate at the end, as measured by the TFRC receiver",
        |f, _| f.rate?.loss_event_rate,
    ),
    known(
        "allowed_rate",
        Unit::BitPerSecond,
        "allowed sending rate of rate-controlled datagrams at the end, whole packets",
        |f, _| Some(f.rate?.allowed),
    ),
    known(
        "custody_max",
        Unit::Bytes,
        "maximum payload acknowledged to the sender and not yet by the receiver, for a chain of connections",
        |f, _| Some(f.chain.as_ref()?.custody as f64),
    ),
    known(
        "custody_at_close",
        Unit::Bytes,
        "payload acknowledged to the sender and not yet by the receiver of a chain of connections when the sender's FIN was \
         acknowledged; only if connections close with FINs (`close = true`)",
        |f, _| Some(f.chain.as_ref()?.custody_at_close as f64),
    ),
    count(
        "acked_not_delivered",
        "bytes acknowledged to the sender that never arrived because a gateway crashed, the route left it, or an end gave up",
        |f, _| f.chain.as_ref().map_or(0, |c| c.lost),
    ),
    maybe(
        "setup_time",
        "time from the sender's first segment until all legs of a chain were established",
        |f, _| f.chain.as_ref()?.setup.map(|d| d.as_secs_f64()),
    ),
    maybe(
        "first_byte_time",
        "time from the sender's first segment until a chain delivered its first byte",
        |f, _| f.chain.as_ref()?.first_byte.map(|d| d.as_secs_f64()),
    ),
    count(
        "bypassed",
        "connections that gateways forwarded without splitting: at full capacity, encrypted, or after a change of the route",
        |f, _| f.chain.as_ref().map_or(0, |c| c.bypassed),
    ),
    count("chain_refused", "connections that gateways at full capacity refused", |f, _| {
        f.chain.as_ref().map_or(0, |c| c.refused)
    }),
    count(
        "unread",
        "packets of a leg whose compressed headers could not be decompressed because an earlier packet was lost",
        |f, _| f.unread,
    ),
    known("handed_over", Unit::Bytes, "buffered data that gateways handed over to others", |f, _| {
        Some(f.chain.as_ref()?.moved as f64)
    }),
    maybe("handover_silence", "silence of the legs behind gateways during handovers", |f, _| {
        Some(f.chain.as_ref()?.silent.as_secs_f64())
    }),
    maybe(
        "mean_srtt",
        "mean of the smoothed RTT over the samples of the series; the last smoothed RTT if nothing was sampled",
        |f, _| f.mean_srtt,
    ),
    count(
        "bursts",
        "events (an acknowledgement, a timer, a write) that released one or more data segments",
        |f, _| f.bursts.count(),
    ),
    known("burst_mean", Unit::Segments, "mean number of segments released at once", |f, _| f.bursts.mean()),
    known(
        "burst_p99",
        Unit::Segments,
        "99th percentile of the number of segments released at once; exact up to 32, within 1/8 above",
        |f, _| f.bursts.quantile(0.99).map(f64::from),
    ),
    known("burst_max", Unit::Segments, "maximum number of segments released at once", |f, _| {
        Some(f64::from(f.bursts.largest())).filter(|n| *n > 0.0)
    }),
    known(
        "bwe_mean",
        Unit::BitPerSecond,
        "bandwidth estimate of the congestion control, payload: mean over the samples of the series",
        |f, _| f.bwe.map(|b| b.mean),
    ),
    known(
        "bwe_sd",
        Unit::BitPerSecond,
        "standard deviation of the bandwidth estimate over the samples of the series",
        |f, _| f.bwe.map(|b| b.deviation),
    ),
    known(
        "bwe_cv",
        Unit::Share,
        "coefficient of variation of the bandwidth estimate: standard deviation over mean",
        |f, _| f.bwe.map(|b| b.deviation / b.mean),
    ),
];

fn datagrams(f: &FlowResult) -> Measured {
    f.datagrams.unwrap_or_default()
}

fn rate(f: &FlowResult) -> RateResult {
    f.rate.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_not_every_flow_has_is_a_quantity() {
        for (start, _) in ONLY {
            assert!(FLOW.iter().any(|q| q.name.starts_with(start)), "{start}");
        }
    }
}
