//! The results of a run.

use crate::observe::samples::Spread;
use crate::observe::truth::{ReductionCounts, Verdicts};
use core::fmt;
use skyhaul_analysis::fairness;
use skyhaul_apps::{Measured, Viewed};
use skyhaul_base::{Duration, Instant};
use skyhaul_path::stats::RepairCounters;
use skyhaul_scenario::memory::words;
use skyhaul_tcp::Bursts;
use skyhaul_trace::{Class, LossCause, Series};

/// All measurements of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// Duration of the run.
    pub duration: Duration,
    /// One entry per flow: groups in the order of their names, within a group by index.
    pub flows: Vec<FlowResult>,
    /// One entry per direction of a link: links in the order of their names, forward before reverse.
    pub links: Vec<LinkResult>,
    /// Sampled series.
    pub series: SampledSeries,
    /// Number of events processed.
    pub events: u64,
    /// Hash of all events, if the recorder computed one.
    pub digest: Option<u64>,
    /// Why the run ended before its duration, if it did; the results are those until then.
    pub ended: Option<Ended>,
}

/// A run held as much memory as its scenario allows, and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The simulated time reached.
    pub at: Instant,
    /// Memory that it held, by the simulator's count, bytes.
    pub memory: u64,
    /// The limit, bytes.
    pub limit: u64,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [held, limit] = [self.memory, self.limit].map(|bytes| words(bytes as f64));
        let at = self.at.as_secs_f64();
        write!(
            f,
            "max-memory: the run ended at {at:.6} s of simulated time, when it held {held} of memory, more than the {limit} \
             that it may use: make it shorter or smaller, or write a larger max-memory"
        )
    }
}

/// The results of one flow. Segments are full segments of the sender's maximum size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowResult {
    /// Name of its group.
    pub group: String,
    /// Index within the group.
    pub index: u32,
    /// Its start; `None` if the run ended before.
    pub started: Option<Instant>,
    /// Its completion, or the time at which it was stopped.
    pub finished: Option<Instant>,
    /// Arrival of the last acknowledgement.
    pub last_ack: Option<Instant>,
    /// It is a leg of another flow's chain of split connections, where its data is counted.
    pub leg: bool,
    /// The results of its chain of split connections, if it has one.
    pub chain: Option<Box<ChainResult>>,
    /// Payload bytes acknowledged, each counted once; for a chain, by the receiver at its far end.
    pub bytes_acked: u64,
    /// The same in segments.
    pub segments_acked: f64,
    /// Payload bytes acknowledged per second of the run, in bit/s.
    pub goodput: f64,
    /// Data segments sent, retransmissions included, probes excluded.
    pub segments_sent: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Of these, sent during recovery after a timeout.
    pub timeout_retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses detected by duplicate or selective acknowledgements: episodes of recovery without a timeout.
    pub recoveries: u64,
    /// Window reductions on congestion signals, by the true cause of the signal.
    pub cuts: ReductionCounts,
    /// Of these, by retransmission timeout.
    pub timeout_cuts: ReductionCounts,
    /// Of all reductions, those that the sender itself detected as spurious and undid.
    pub cuts_undone: u64,
    /// The sender's classification of its losses, if it classifies them.
    pub verdicts: Verdicts,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes answered.
    pub probes_answered: u64,
    /// Acknowledgements processed by the data sender.
    pub acks: u64,
    /// Of these, duplicates.
    pub duplicate_acks: u64,
    /// Segments that arrived for a connection that had been replaced or had ended.
    pub discarded: u64,
    /// Segments rejected by an endpoint.
    pub rejected: u64,
    /// Packets of a leg that the far end could not decompress.
    pub unread: u64,
    /// The completed pages, or transfers that arrived at random, in the order of completion.
    pub pages: Vec<Page>,
    /// The pages or transfers that were in progress when the run, or the flow, ended.
    pub unfinished: Vec<Page>,
    /// Transfers that have arrived at random, complete or not.
    pub transfers: u64,
    /// Data packets lost, by true cause (`cause as usize`).
    pub lost: [u64; LossCause::COUNT],
    /// Measurements of the receiver of datagrams or of video packets.
    pub datagrams: Option<Measured>,
    /// Playback quality of a streamed video.
    pub video: Option<Box<Viewed>>,
    /// The results of rate-controlled datagrams.
    pub rate: Option<RateResult>,
    /// Delays of its data packets, if the scenario measures them and one has arrived.
    pub packet_delays: Option<Box<PacketDelays>>,
    /// Mean of the smoothed RTT over the samples of the series, in seconds; its last value if nothing was
    /// sampled.
    pub mean_srtt: Option<f64>,
    /// Data segments sent in one burst.
    pub bursts: Bursts,
    /// The bandwidth estimate of the congestion control, bit/s of payload, over the samples of the series; `None` if
    /// nothing was sampled, or it estimates none.
    pub bwe: Option<Spread>,
}

impl FlowResult {
    /// Segments acknowledged per second of a run.
    #[must_use]
    pub fn segments_per_second(&self, duration: Duration) -> f64 {
        if duration.is_zero() { 0.0 } else { self.segments_acked / duration.as_secs_f64() }
    }
    /// The `q` quantile of the page load times, in seconds, interpolated linearly (type 7 of Hyndman and Fan).
    #[must_use]
    pub fn page_quantile(&self, q: f64) -> Option<f64> {
        let mut times: Vec<f64> = self.pages.iter().map(|p| p.took.as_secs_f64()).collect();
        times.sort_by(f64::total_cmp);
        let at = q.clamp(0.0, 1.0) * times.len().checked_sub(1)? as f64;
        let (low, high) = (times[at.floor() as usize], times[at.ceil() as usize]);
        Some(low + (high - low) * at.fract())
    }

    /// The times of all pages in seconds, unfinished ones with the time that they had taken: censored observations, so
    /// that a mean over all is a lower bound of the mean page load time.
    pub fn page_times_so_far(&self) -> impl Iterator<Item = f64> {
        self.pages.iter().chain(&self.unfinished).map(|p| p.took.as_secs_f64())
    }

    /// Mean page load time in seconds.
    #[must_use]
    pub fn mean_page(&self) -> Option<f64> {
        let total: f64 = self.pages.iter().map(|p| p.took.as_secs_f64()).sum();
        (!self.pages.is_empty()).then(|| total / self.pages.len() as f64)
    }
}

/// A page, or a transfer that arrived at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its number within the flow, from 0.
    pub number: u64,
    /// When the connection of a page was opened, or when a transfer arrived.
    pub began: Instant,
    /// Bytes to send.
    pub bytes: u64,
    /// From its beginning to the last acknowledgement; if unfinished, the time that it had taken.
    pub took: Duration,
}

/// Delays of the data packets of a flow, retransmissions included and probes excluded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketDelays {
    /// From the sender's first bit to the receiver's last.
    pub one_way: Percentiles,
    /// The one-way delay less propagation and transmission times of the packet's path when it was sent.
    pub queueing: Percentiles,
}

/// Percentiles of a delay, in seconds, accurate to 0.1 % or 1 µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// The results of a chain of split connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainResult {
    /// Maximum number of bytes acknowledged to the sender and not yet by the receiver.
    pub custody: u64,
    /// The same number when a FIN of the sender was acknowledged to it, the most of all its connections.
    pub custody_at_close: u64,
    /// From the sender's first segment until all legs were established, each at the end that opened it.
    pub setup: Option<Duration>,
    /// From the sender's first segment until the receiver had the first byte.
    pub first_byte: Option<Duration>,
    /// Bytes acknowledged to the sender that never reached the receiver because a gateway crashed, the route left it, or
    /// an end gave up.
    pub lost: u64,
    /// Connections that gateways forwarded without splitting them: for lack of capacity, because they were encrypted, or
    /// after a change of their route.
    pub bypassed: u64,
    /// Connections that gateways refused for lack of capacity.
    pub refused: u64,
    /// Bytes that gateways handed over to other gateways.
    pub moved: u64,
    /// Total time for which the leg behind a gateway was silent during handovers.
    pub silent: Duration,
}

/// The results of a flow of rate-controlled datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateResult {
    /// The allowed sending rate at the end of the run, whole packets, bit/s.
    pub allowed: f64,
    /// Reports sent by the receiver; the sender's `acks` counts those that arrived.
    pub reports: u64,
    /// Datagrams dropped at the sender because its queue was full.
    pub refused: u64,
    /// Number of rate reductions because no report arrived in time.
    pub expiries: u64,
    /// Loss events counted by the receiver; SSVP has none.
    pub loss_events: Option<u64>,
    /// The loss event rate at the end of the run; SSVP has none.
    pub loss_event_rate: Option<f64>,
}

/// The counts of one direction of a link for one class of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassResult {
    /// Packets offered.
    pub offered: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets lost, by true cause (`cause as usize`).
    pub dropped: [u64; LossCause::COUNT],
    /// Packets that the queue marked (ECN, congestion experienced).
    pub marked: u64,
    /// Copies delivered in addition, by a link that duplicates.
    pub duplicated: u64,
}

impl ClassResult {
    /// Packets lost, all causes together.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

/// Name of a direction of a link.
#[must_use]
pub const fn direction(forward: bool) -> &'static str {
    if forward { "forward" } else { "reverse" }
}

/// The results of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkResult {
    /// Name of the link.
    pub name: String,
    /// From senders to receivers.
    pub forward: bool,
    /// Counts by class of packets (`class as usize`).
    pub classes: [ClassResult; Class::COUNT],
    /// Bytes offered, headers included.
    pub offered_bytes: u64,
    /// Bytes delivered, headers included.
    pub delivered_bytes: u64,
    /// Share of the run during which the transmitter was busy; 0 without a rate.
    pub utilization: f64,
    /// Mean queue length over the run, in packets, without the one being transmitted.
    pub mean_queue: f64,
    /// Maximum queue length, in packets.
    pub max_queue: u32,
    /// Counters of its code and ARQ; zero without them.
    pub repair: RepairCounters,
    /// Acknowledgements created at the far side of the link; not included in the packets delivered.
    pub reconstructed: u64,
    /// What gateways that repair the segment have counted for the packets in this direction, the sending and the receiving
    /// one, if the link is next to the sending one.
    pub gateways: Option<Box<(skyhaul_repair::Counters, skyhaul_repair::Counters)>>,
}

impl LinkResult {
    /// The counts of one class.
    #[must_use]
    pub fn class(&self, class: Class) -> &ClassResult {
        &self.classes[class as usize]
    }
    /// Packets of all classes lost for one cause.
    #[must_use]
    pub fn dropped(&self, cause: LossCause) -> u64 {
        self.classes.iter().map(|c| c.dropped[cause as usize]).sum()
    }
}

/// The samples, in columns named after the scenario's series.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledSeries {
    /// Per flow; the entity is the index into [`RunResult::flows`].
    pub flows: Series,
    /// Per direction of a link; the entity is the index into [`RunResult::links`].
    pub links: Series,
    /// Internal variables of the congestion controls, one row per flow and variable.
    pub telemetry: Telemetry,
}

/// Internal variables of congestion controls: which there are depends on the algorithm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Telemetry {
    /// Time of each row.
    pub time: Vec<Instant>,
    /// Index into [`RunResult::flows`].
    pub flow: Vec<u32>,
    /// Name of the variable.
    pub name: Vec<&'static str>,
    /// Its value.
    pub value: Vec<f64>,
}

impl RunResult {
    /// The flows that are not legs of others.
    fn whole(&self) -> impl Iterator<Item = &FlowResult> {
        self.flows.iter().filter(|f| !f.leg)
    }
    /// Segments acknowledged by all flows together.
    #[must_use]
    pub fn segments_acked(&self) -> f64 {
        self.whole().map(|f| f.segments_acked).sum()
    }
    /// Goodput of all flows together, in bit/s.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.whole().map(|f| f.goodput).sum()
    }
    /// Jain's index of fairness over the goodput of all flows; 1 without flows.
    #[must_use]
    pub fn jain(&self) -> f64 {
        jain(self.whole())
    }
    /// One direction of a link, by name.
    #[must_use]
    pub fn link(&self, name: &str, forward: bool) -> Option<&LinkResult> {
        self.links.iter().find(|l| l.name == name && l.forward == forward)
    }
    /// The groups in the order of their names, each with its flows.
    pub fn groups(&self) -> impl Iterator<Item = (&str, &[FlowResult])> {
        let chunks = self.flows.chunk_by(|a, b| a.group == b.group);
        chunks.filter_map(|flows| Some((flows.first()?.group.as_str(), flows)))
    }
    /// The flows of a group.
    pub fn group<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a FlowResult> {
        self.flows.iter().filter(move |f| f.group == name)
    }
}

/// Jain's index of fairness over the goodput of some flows; 1 without flows.
pub(crate) fn jain<'a>(flows: impl Iterator<Item = &'a FlowResult>) -> f64 {
    let goodput: Vec<f64> = flows.map(|f| f.goodput).collect();
    if goodput.is_empty() { 1.0 } else { fairness::jain(&goodput) }
}
