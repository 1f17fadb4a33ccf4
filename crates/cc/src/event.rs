//! What the sender tells an algorithm. Windows and counts are in segments unless said otherwise.

use crate::action::Actions;
use skyhaul_base::{Duration, Instant, Rate, Rng};

/// What the sender knows about the path and the connection, refreshed before every call.
#[derive(Clone, Debug)]
pub struct Path {
    /// Sender maximum segment size, bytes of payload.
    pub smss: u32,
    /// Window limit other than cwnd: `floor(min(SND.WND, send buffer) / SMSS)`.
    pub rwnd: f64,
    /// FlightSize, bytes: [`Self::in_flight`].
    pub in_flight_bytes: u64,
    /// What is in the network, bytes: [`Self::pipe`].
    pub pipe_bytes: u64,
    /// What waits to be sent, bytes: [`Self::queued`].
    pub queued_bytes: u64,
    /// Smoothed RTT (RFC 6298), `None` before the first sample.
    pub srtt: Option<Duration>,
    /// RTT variation (RFC 6298), zero before the first sample.
    pub rttvar: Duration,
    /// Smallest RTT sample of the connection.
    pub min_rtt: Option<Duration>,
    /// Packet-timed rounds completed.
    pub round: u64,
    /// Bytes delivered so far (cumulatively or selectively acknowledged).
    pub delivered: u64,
    /// Bytes marked lost so far.
    pub lost: u64,
    /// The oldest outstanding segment, if [`Policy::watch_head`](crate::Policy::watch_head) asks for it.
    pub head: Option<Head>,
    /// State of loss recovery.
    pub phase: Phase,
    /// The slow start that follows a retransmission timeout is in progress: until the window reaches the threshold.
    pub after_timeout: bool,
    /// The application, not the window, limits the sender.
    pub app_limited: bool,
    /// Whether the peer answers probes.
    pub probes: ProbeSupport,
    /// The peer reports what it has beyond a gap (RFC 2018): more than one loss per round can be seen.
    pub sack: bool,
}

// Counted in bytes and divided when somebody asks: most events are of no interest to most algorithms.
impl Path {
    /// `SND.NXT - SND.UNA`, segments: FlightSize of RFC 5681, the `nackseg` of \[Peach\].
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> f64 {
        self.segments(self.in_flight_bytes)
    }
    /// Estimate of what is in the network by the scoreboard (RFC 6675), segments; FlightSize without SACK.
    #[inline]
    #[must_use]
    pub fn pipe(&self) -> f64 {
        self.segments(self.pipe_bytes)
    }
    /// Data written by the application and not yet sent once, segments (beyond all windows for a greedy source).
    #[inline]
    #[must_use]
    pub fn queued(&self) -> f64 {
        self.segments(self.queued_bytes)
    }
    #[inline]
    fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / f64::from(self.smss)
    }
}

/// The segment at `SND.UNA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Time since it was last sent.
    pub age: Duration,
    /// How often it was retransmitted.
    pub retransmissions: u32,
}

/// State of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Phase {
    /// No loss is being repaired.
    #[default]
    Open,
    /// Repairing a loss found by duplicate or selective acknowledgements.
    Recovery,
    /// Repairing after a retransmission timeout.
    Loss,
}

/// What is known of the peer's ability to answer probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ProbeSupport {
    /// Not negotiated and not yet observed.
    #[default]
    Unknown,
    /// It answers.
    Yes,
    /// It does not; no probe will be sent whatever is asked.
    No,
}

/// What a connection leaves behind of what it learnt about its path, for the next one on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathState {
    /// Congestion window, segments.
    pub cwnd: f64,
    /// Slow start threshold, segments; infinite if there was none.
    pub ssthresh: f64,
    /// Smoothed RTT, if there was a sample.
    pub srtt: Option<Duration>,
    /// RTT variation.
    pub rttvar: Duration,
}

/// Why `on_start` is raised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// The connection is established.
    Established {
        /// RTT of the handshake, `None` if it was not modelled or its SYN was retransmitted.
        rtt: Option<Duration>,
        /// The SYN was retransmitted: RFC 5681 then wants an initial window of one segment.
        syn_lost: bool,
        /// What an earlier connection on the path left, if the policy asks for it
        /// ([`PathCache`](crate::PathCache)) and the driver remembers one.
        cached: Option<PathState>,
    },
    /// Nothing was outstanding for longer than the RTO and data is about to leave.
    Idle,
}

/// One arriving acknowledgement.
#[derive(Clone, Debug)]
pub struct Ack {
    /// What it means for `SND.UNA` and for recovery.
    pub kind: AckKind,
    /// Newly acknowledged cumulatively.
    pub acked: f64,
    /// Newly acknowledged selectively.
    pub sacked: f64,
    /// Newly marked lost.
    pub lost: f64,
    /// RTT sample, if the acknowledgement carries a valid one and the policy asks for them
    /// ([`Policy::rtt_samples`](crate::Policy::rtt_samples)).
    pub rtt: Option<Duration>,
    /// Delivery-rate sample, if the policy asks for them.
    pub rate: Option<RateSample>,
    /// Rate of the last complete wave of data, measured and reported by the receiver: payload only. `None` unless
    /// [`Policy::receiver_rate`](crate::Policy::receiver_rate) asks and the peer reports.
    pub receiver_rate: Option<Rate>,
    /// ECN echo.
    pub ece: bool,
    /// The window was in use before this acknowledgement (RFC 7661; always true where the endpoint does not
    /// validate the window).
    pub cwnd_limited: bool,
}

/// What an acknowledgement tells, not yet put together.
pub trait Facts {
    /// What the sender knows after it.
    fn path(&self) -> Path;
    /// What it says.
    fn ack(&self) -> Ack;
}

/// What an acknowledgement means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckKind {
    /// Advances `SND.UNA` outside of fast recovery.
    New,
    /// Advances `SND.UNA` within recovery, below the recovery point.
    Partial,
    /// Advances `SND.UNA` to or beyond the recovery point; `on_recovered` follows.
    Full,
    /// Does not advance `SND.UNA`.
    Duplicate {
        /// Duplicates in a row, this one included.
        count: u32,
        /// It carries selective acknowledgements not seen before.
        new_sack: bool,
        /// It reports a duplicate (RFC 2883).
        dsack: bool,
    },
}

/// Delivery-rate sample (draft-ietf-ccwg-bbr, section on delivery rate).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Delivered bytes over the interval.
    pub delivered: u64,
    /// Longer of the send and the acknowledgement interval.
    pub interval: Duration,
    /// `delivered / interval`; `None` where the interval is shorter than the least RTT: too short to tell.
    pub rate: Option<Rate>,
    /// The sample was taken while the application limited the sender.
    pub app_limited: bool,
    /// Value of `Path::delivered` when the newest segment of the sample was sent.
    pub prior_delivered: u64,
    /// Bytes marked lost between that moment and now.
    pub lost: u64,
    /// Bytes in the network (the scoreboard's pipe) when that segment was sent, itself included.
    pub in_flight: u64,
}

/// A segment that was just marked lost, with the state of the path when it was last sent
/// (draft-ietf-ccwg-bbr-06 §4.1.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Bytes of it.
    pub len: u32,
    /// Bytes in the network when it was sent, itself included.
    pub in_flight: u64,
    /// Bytes marked lost between that moment and now, itself included.
    pub lost: u64,
    /// The application limited the sender when it was sent.
    pub app_limited: bool,
    /// It directly follows the segment marked lost before it: a longer gap, not another one.
    pub same_gap: bool,
}

/// A congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Duplicate or selective acknowledgements reveal a loss.
    Loss,
    /// ECN echo.
    Ecn,
    /// A loss that the network or receiver declares to be corruption.
    Corruption,
}

/// News about probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeEvent {
    /// Probes were answered.
    Acked {
        /// Number of probes that this answer stands for.
        count: u32,
        /// The probe left before the current recovery or start began (known only where probes carry ids).
        stale: bool,
        /// Bytes of the stream that the probe's payload delivered.
        newly_acked: u32,
    },
    /// The peer does not answer probes; none will be sent any more.
    Unsupported,
}

/// A data segment that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Payload bytes.
    pub len: u32,
    /// It was sent before.
    pub retransmission: bool,
}

/// What made the send loop run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// An ordinary acknowledgement.
    Ack,
    /// The answer to a probe.
    Probe,
    /// A timer: retransmission, pacing, the algorithm's own.
    Timer,
    /// The application wrote or the connection was established.
    App,
}

/// Why the send loop stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Nothing to send.
    App,
    /// The burst limit of the policy.
    Burst,
    /// The congestion window.
    Cwnd,
    /// The pacer.
    Pacing,
    /// The receiver's window or the send buffer.
    Rwnd,
}

/// The send loop has just run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Data segments that left, retransmissions included; the one that fast retransmit forces is not counted,
    /// since no window was needed for it.
    pub sent: u32,
    /// What made it run.
    pub clock: Clock,
    /// Why it stopped.
    pub blocked: Blocked,
}

/// The context of a call.
pub struct Cx<'a> {
    /// The current time.
    pub now: Instant,
    /// What the sender knows.
    pub path: &'a Path,
    /// The algorithm's own random stream.
    pub rng: &'a mut Rng,
    /// Requests to the sender.
    pub act: &'a mut Actions,
}
