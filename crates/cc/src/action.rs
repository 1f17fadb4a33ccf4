//! Requests of an algorithm to the sender.

use skyhaul_base::{Duration, Instant};

/// The congestion window, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window; finite, at least 1.
    pub cwnd: f64,
    /// Slow start threshold; may be infinite.
    pub ssthresh: f64,
}

/// Requests of an algorithm, carried out by the sender after the call returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Send this many probes now.
    pub probe_now: Option<(ProbeSource, u32)>,
    /// Start a train of probes; replaces a train in progress.
    pub train: Option<Train>,
    /// Stop the train in progress.
    pub stop_probes: bool,
    /// Raise `on_wake` at this time; replaces an earlier request. [`Instant::MAX`] cancels.
    pub wake_at: Option<Instant>,
    /// Mark the segment at `SND.UNA` as lost, although the sender's loss detection has not (Vegas). Outside of a recovery
    /// this starts one, and `on_congestion` follows at once; within one, the segment is only retransmitted.
    pub retransmit_head: bool,
    /// `Some(true)`: no data is sent from now on, not even the retransmission of a recovery or a timeout, and the
    /// retransmission timer is suspended. Probes are still sent. `Some(false)`: data is sent again (TCP-Probing).
    pub hold: Option<bool>,
    /// Go back to `SND.UNA` without backing off the timer (Fast Start's reset). A recovery in progress ends
    /// without `on_recovered`; data is then repaired as after a timeout ([`Phase::Loss`](crate::Phase::Loss)).
    pub rewind: bool,
}

impl Actions {
    /// True if there is no request.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let flags = self.stop_probes | self.retransmit_head | self.rewind;
        let asked = self.probe_now.is_some() || self.train.is_some() || self.wake_at.is_some();
        !flags && !asked && self.hold.is_none()
    }
}

/// Where the payload of a probe comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeSource {
    /// A copy of the data segment transmitted last: a dummy segment \[Peach §III-A\]. It carries no new data.
    LastSegment,
    /// One byte of the data segment transmitted last, at normal priority, to measure an RTT (TCP-Probing). It carries no new
    /// data.
    OneByte,
    /// Data not yet acknowledged, in turn: a NIL segment \[Peach+ §I-A\]. The receiver may use it.
    UnackedRoundRobin,
    /// Data not yet acknowledged: the NIL segment with number `i` copies the segment with number `i mod Q` of the `Q` that
    /// are neither acknowledged nor SACKed \[Peach+ Fig. 1\].
    UnackedModulo,
}

/// Probes at regular intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Payload of the probes.
    pub source: ProbeSource,
    /// Number of probes.
    pub count: u32,
    /// Time from now to the first one.
    pub first: Duration,
    /// Time between two probes.
    pub spacing: Duration,
}

/// How detected losses are repaired (RFC 5681, 6582, 6675, 9937 and their predecessors).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RecoveryMode {
    /// Fast retransmit, then slow start from one segment, without fast recovery.
    Tahoe,
    /// Fast recovery that ends with the first acknowledgement of new data (RFC 2581).
    Reno,
    /// Fast recovery that continues after partial acknowledgements (RFC 6582).
    #[cfg_attr(feature = "serde", serde(rename = "newreno"))]
    NewReno,
    /// SACK recovery with scoreboard and pipe (RFC 6675).
    #[default]
    Sack,
    /// SACK with proportional rate reduction (RFC 9937).
    Prr,
}

impl RecoveryMode {
    /// True if cwnd is compared with the scoreboard's pipe, not with FlightSize, during a recovery.
    #[must_use]
    pub const fn uses_pipe(self) -> bool {
        matches!(self, Self::Sack | Self::Prr)
    }
}

/// When a recovery ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RecoveryEnd {
    /// When everything outstanding at its start is acknowledged: one reduction per window of data.
    #[default]
    AllOutstanding,
    /// When the segment that triggered it is acknowledged: one reduction per lost segment.
    TriggeringSegment,
}

/// How data in flight is estimated during a recovery with a scoreboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pipe {
    /// Recomputed from the scoreboard on each acknowledgement (RFC 6675 §4).
    #[default]
    Scoreboard,
    /// A counter: at the start FlightSize minus what the duplicates report, plus one for each segment sent, minus what
    /// an acknowledgement reports for the first time (Fall, Floyd 1996, "Sack1"). A lost original remains counted.
    Counter {
        /// A partial acknowledgement also subtracts the lost original (ns-2 subtracts two).
        partial_extra: bool,
        /// It begins with `2 * cwnd - ndupacks`, with the reduced window, and not with what is outstanding and not SACKed.
        from_window: bool,
    },
}

/// What restarts the retransmission timer during a fast recovery, besides a retransmission of the oldest segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TimerRestart {
    /// An acknowledgement that advances `SND.UNA` (RFC 6298 §5.3).
    #[default]
    Advance,
    /// Also one that reports a segment for the first time.
    NewSack,
    /// Any acknowledgement with SACK blocks \[Peach+ §I-C\].
    EverySack,
}

/// What an algorithm takes over from an earlier connection on the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PathCache {
    /// Nothing: every connection starts afresh.
    #[default]
    Unused,
    /// Its [`PathState`](crate::PathState) with [`Start::Established`](crate::Start::Established).
    Window,
    /// And the RTT estimator of the connection begins with that of the earlier one.
    WindowAndRtt,
}

/// Mechanisms of the sender that an algorithm determines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Loss recovery.
    pub recovery: RecoveryMode,
    /// When a recovery is over (SACK and NewReno modes).
    pub recovery_end: RecoveryEnd,
    /// In SACK mode, compare cwnd with FlightSize instead of the scoreboard's pipe; the algorithm then inflates
    /// the window itself.
    pub gate_on_flight: bool,
    /// The estimate that cwnd is compared with during a recovery in SACK mode.
    pub pipe: Pipe,
    /// What restarts the retransmission timer during a recovery.
    pub timer_restart: TimerRestart,
    /// Maximum number of data segments per run of the send loop; 0 is unlimited.
    pub max_burst: u16,
    /// Deliver [`Ack::rtt`](crate::Ack::rtt) with acknowledgements (default). Without it, the sender need not store the
    /// send time of each segment; the RTT fields of [`Path`](crate::Path) are the same either way. A control may give
    /// up these samples while it runs, but cannot request them again.
    pub rtt_samples: bool,
    /// Deliver [`RateSample`](crate::RateSample)s with acknowledgements.
    pub rate_samples: bool,
    /// Detect losses by time (RACK, RFC 8985), whatever the endpoint says, if the connection has SACK and `recovery`
    /// uses the pipe: a lost retransmission is then detected without a timeout, and low-priority data that is overtaken
    /// does not count as lost. Read once, when the connection is established.
    pub rack: bool,
    /// Raise `on_lost`. Needs `rate_samples`, whose records it reads.
    pub loss_events: bool,
    /// Raise `on_sent`.
    pub sent_events: bool,
    /// Keep [`Path::head`](crate::Path::head) up to date; it is `None` otherwise.
    pub watch_head: bool,
    /// Raise `on_transmit`.
    pub transmit_events: bool,
    /// The algorithm wants probes: offer them in the handshake.
    pub probes: bool,
    /// Some data leaves with low priority ([`CongestionControl::priority`](crate::CongestionControl::priority)). The
    /// sender does not read this; checks of a path do.
    pub low_priority_data: bool,
    /// The algorithm finds out by itself whether the path has priorities, and stops sending at low priority where it has none.
    /// The sender does not read this; checks of a path do.
    pub judges_priority: bool,
    /// Mark the waves of data, and have the peer report their rate if it can:
    /// [`Ack::receiver_rate`](crate::Ack::receiver_rate) (TCP-Real).
    pub receiver_rate: bool,
    /// Losses do not indicate the capacity of the path: the first timeout in a row does not back off the timer, and
    /// data that waited behind a hole yields no RTT sample.
    pub losses_are_errors: bool,
    /// The algorithm is scalable: with accurate ECN (RFC 9768) packets carry ECT(1), and [`Path::marked`](crate::Path::marked)
    /// counts their marks (RFC 9331 §4).
    pub scalable: bool,
    /// What the connection takes over from an earlier one on the path, if the driver remembers one.
    pub path_cache: PathCache,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            recovery: RecoveryMode::Sack,
            recovery_end: RecoveryEnd::AllOutstanding,
            gate_on_flight: false,
            pipe: Pipe::Scoreboard,
            timer_restart: TimerRestart::Advance,
            max_burst: 0,
            rtt_samples: true,
            rate_samples: false,
            rack: false,
            loss_events: false,
            sent_events: false,
            watch_head: false,
            transmit_events: false,
            probes: false,
            low_priority_data: false,
            judges_priority: false,
            receiver_rate: false,
            losses_are_errors: false,
            scalable: false,
            path_cache: PathCache::Unused,
        }
    }
}

/// Network priority of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Priority {
    /// Ordinary data.
    #[default]
    Normal,
    /// Discarded first at a congested router.
    Low,
}
