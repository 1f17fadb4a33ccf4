//! Events that the sender reports to an algorithm. Windows and counts are in segments unless said otherwise.

use crate::action::Actions;
use skyhaul_base::{Duration, Instant, Rate, Rng};

/// The sender's knowledge of the path and the connection, updated before every call.
#[derive(Clone, Debug)]
pub struct Path {
    /// Sender maximum segment size, bytes of payload.
    pub smss: u32,
    /// Window limit other than cwnd: `floor(min(SND.WND, send buffer) / SMSS)`.
    pub rwnd: f64,
    /// FlightSize, bytes: [`Self::in_flight`].
    pub in_flight_bytes: u64,
    /// Data in the network, bytes: [`Self::pipe`].
    pub pipe_bytes: u64,
    /// Data waiting to be sent, bytes: [`Self::queued`].
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
    /// The oldest outstanding segment, if requested by [`Policy::watch_head`](crate::Policy::watch_head).
    pub head: Option<Head>,
    /// State of loss recovery.
    pub phase: Phase,
    /// The slow start after a retransmission timeout is in progress: until the window reaches ssthresh.
    pub after_timeout: bool,
    /// The application, not the window, limits the sender.
    pub app_limited: bool,
    /// Whether the peer answers probes.
    pub probes: ProbeSupport,
    /// The peer sends SACKs (RFC 2018): more than one loss per round can be detected.
    pub sack: bool,
    /// Packets that the peer has reported as ECN-marked so far (accurate ECN, RFC 9768); `None` without such reports.
    pub marked: Option<u64>,
}

// Counted in bytes and divided on demand: most algorithms ignore most events.
impl Path {
    /// `SND.NXT - SND.UNA`, segments: FlightSize of RFC 5681, the `nackseg` of \[Peach\].
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> f64 {
        self.segments(self.in_flight_bytes)
    }
    /// Data in the network by the scoreboard (RFC 6675), segments; FlightSize without SACK.
    #[inline]
    #[must_use]
    pub fn pipe(&self) -> f64 {
        self.segments(self.pipe_bytes)
    }
    /// Data written by the application and never sent, segments (beyond all windows for a greedy source).
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
    /// Repairing a loss found by duplicate ACKs or SACK.
    Recovery,
    /// Repairing after a retransmission timeout.
    Loss,
}

/// Knowledge of the peer's ability to answer probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ProbeSupport {
    /// Not negotiated and not yet observed.
    #[default]
    Unknown,
    /// It answers.
    Yes,
    /// It does not; probes are never sent, even on request.
    No,
}

/// State of a path that a connection has learnt, for the next connection on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathState {
    /// Congestion window, segments.
    pub cwnd: f64,
    /// Slow start threshold, segments; infinite if it was never set.
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
        /// The SYN was retransmitted more often than the endpoint's initial window permits: the initial window is then one segment.
        /// With ten segments one retransmission is permitted (RFC 6928 §2), otherwise none (RFC 5681 §3.1).
        syn_lost: bool,
        /// State of an earlier connection on the path, if the policy asks for it ([`PathCache`](crate::PathCache))
        /// and the driver remembers one.
        cached: Option<PathState>,
    },
    /// Nothing was outstanding for longer than the RTO and data is about to leave.
    Idle,
}

/// One arriving acknowledgement.
#[derive(Clone, Debug)]
pub struct Ack {
    /// Its effect on `SND.UNA` and on recovery.
    pub kind: AckKind,
    /// Newly acknowledged cumulatively, segments.
    pub acked: f64,
    /// Newly SACKed, segments.
    pub sacked: f64,
    /// Newly marked lost, segments.
    pub lost: f64,
    /// RTT sample, if the acknowledgement has a valid one and the policy asks for them
    /// ([`Policy::rtt_samples`](crate::Policy::rtt_samples)).
    pub rtt: Option<Duration>,
    /// Delivery-rate sample, if the policy asks for them.
    pub rate: Option<RateSample>,
    /// Rate of the last complete wave of data, measured and reported by the receiver: payload only. `None` unless
    /// [`Policy::receiver_rate`](crate::Policy::receiver_rate) asks and the peer reports.
    pub receiver_rate: Option<Rate>,
    /// ECN echo.
    pub ece: bool,
    /// The window was in use before this acknowledgement (RFC 7661; always true if the endpoint does not validate
    /// the window).
    pub cwnd_limited: bool,
}

/// Facts about an acknowledgement, computed on demand.
pub trait Facts {
    /// The sender's knowledge after it.
    fn path(&self) -> Path;
    /// The acknowledgement.
    fn ack(&self) -> Ack;
}

/// Kind of an acknowledgement.
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
        /// Consecutive duplicates, including this one.
        count: u32,
        /// It has new SACK information.
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
    /// `delivered / interval`; `None` if the interval is shorter than the minimum RTT and so too short.
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

/// A segment that was just marked lost, with the path state of its last transmission (draft-ietf-ccwg-bbr-06
/// §4.1.2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its size, bytes.
    pub len: u32,
    /// Bytes in the network when it was sent, including itself.
    pub in_flight: u64,
    /// Bytes marked lost between that time and now, including itself.
    pub lost: u64,
    /// The application limited the sender when it was sent.
    pub app_limited: bool,
    /// It directly follows the segment marked lost before it: the same gap, not another one.
    pub same_gap: bool,
}

/// A congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Duplicate ACKs or SACK reveal a loss.
    Loss,
    /// ECN echo.
    Ecn,
    /// A loss that the network or receiver declares to be corruption.
    Corruption,
}

/// Events about probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeEvent {
    /// Probes were answered.
    Acked {
        /// Number of probes covered by this answer.
        count: u32,
        /// The probe was sent before the current recovery or start (known only if probes carry ids).
        stale: bool,
        /// Stream bytes delivered by the probe's payload.
        newly_acked: u32,
    },
    /// The peer does not answer probes; no more will be sent.
    Unsupported,
}

/// A data segment that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Payload bytes.
    pub len: u32,
    /// It was sent before.
    pub retransmission: bool,
}

/// What triggered the send loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// An ordinary acknowledgement.
    Ack,
    /// An answer to a probe.
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

/// Report on a run of the send loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Data segments sent, including retransmissions, but not the forced fast retransmit, which needs no window.
    pub sent: u32,
    /// What triggered it.
    pub clock: Clock,
    /// Why it stopped.
    pub blocked: Blocked,
}

/// The context of a call.
pub struct Cx<'a> {
    /// The current time.
    pub now: Instant,
    /// The sender's knowledge.
    pub path: &'a Path,
    /// The algorithm's own random stream.
    pub rng: &'a mut Rng,
    /// Requests to the sender.
    pub act: &'a mut Actions,
}
