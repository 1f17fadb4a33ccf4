//! What happens to one connection, for an event log: segments, the congestion control's state, timeouts, the end.

use crate::host::Failure;
use skyhaul_base::Duration;
use skyhaul_tcp::Segment;

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It opens the connection.
    Syn,
    /// It carries data, or closes a direction.
    Data,
    /// A low-priority probe of the congestion control.
    Probe,
    /// An acknowledgement without data, window probes and answers to probes included.
    Ack,
    /// It resets the connection.
    Reset,
}

/// The part of a segment that an event log shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it is for.
    pub kind: Kind,
    /// Sequence number of its first byte.
    pub seq: u32,
    /// Acknowledgement number, valid with the ACK flag.
    pub ack: u32,
    /// Flags, as in the header (RFC 9293 §3.1): FIN is the lowest bit.
    pub flags: u8,
    /// Payload, bytes.
    pub len: u32,
    /// Receive window, bytes.
    pub window: u32,
    /// Number of SACK blocks.
    pub sacks: u8,
    /// It is marked as low priority.
    pub low_priority: bool,
}

impl Head {
    pub(super) fn new(seg: &Segment, kind: Kind) -> Self {
        Self {
            kind,
            seq: seg.seq.0,
            ack: seg.ack.0,
            flags: seg.flags.bits(),
            len: seg.len,
            window: seg.window,
            sacks: seg.sack.as_slice().len() as u8,
            low_priority: seg.low_priority,
        }
    }
}

/// The state of the sending half; amounts of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold; `None` while it is infinite.
    pub ssthresh: Option<u64>,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// Data in flight (RFC 6675 pipe).
    pub in_flight: u64,
}

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traced {
    /// The connection is traced from here on.
    Began,
    /// The handshake is complete.
    Connected,
    /// It has sent a segment; true: a retransmission.
    Sent(Head, bool),
    /// A segment has arrived.
    Received(Head),
    /// The state of the sending half has changed.
    Metrics(Metrics),
    /// The retransmission timer has expired.
    Timeout,
    /// Loss recovery by duplicate or selective acknowledgements has begun.
    RecoveryBegan,
    /// Loss recovery is over.
    RecoveryEnded,
    /// It has ended.
    Ended(End),
}

/// How a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both directions were closed, and everything was acknowledged.
    InOrder,
    /// The application aborted it.
    Aborted,
    /// It failed.
    Failed(Failure),
}
