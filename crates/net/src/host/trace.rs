//! What happens to one connection, for an event log: segments, the congestion control's state, timeouts, the end.

use super::conn::Failure;
use super::tap::{Tap, Tapped};
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::Phase;
use skyhaul_tcp::{Bytes, Connection, Counters, Flags, Segment};

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
    /// Flags, as in the thirteenth byte of the header.
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
    fn new(seg: &Segment, kind: Kind) -> Self {
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

/// The state of the sending half, in bytes.
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
    /// It has sent a segment; `again`: a retransmission.
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

/// Traces one connection.
#[derive(Debug)]
pub(super) struct Tracer {
    tap: Tap,
    flow: u64,
    metrics: Metrics,
    timeouts: u64,
    recoveries: u64,
    recovers: bool,
    connected: bool,
    ended: bool,
    /// Somebody reads it.
    pub(super) read: bool,
}

impl Tracer {
    pub(super) fn new(now: Instant, tap: Tap, flow: u64, tcp: &Connection<Bytes>, connected: bool) -> Self {
        let c = tcp.counters();
        let mut new = Self {
            tap,
            flow,
            metrics: Metrics::default(),
            timeouts: c.timeouts,
            recoveries: c.recoveries,
            recovers: false,
            connected,
            ended: false,
            read: true,
        };
        new.tell(now, Traced::Began);
        new.look(now, tcp);
        new
    }

    fn tell(&mut self, at: Instant, what: Traced) {
        self.read &= self.tap.deliver(Tapped::Event { at, flow: self.flow, what });
    }

    /// A segment has arrived and was processed.
    pub(super) fn received(&mut self, now: Instant, seg: &Segment) {
        let kind = match () {
            () if seg.flags.has(Flags::RST) => Kind::Reset,
            () if seg.flags.has(Flags::SYN) => Kind::Syn,
            () if seg.mark.is_probe() => Kind::Probe,
            () if seg.len > 0 || seg.flags.has(Flags::FIN) => Kind::Data,
            () => Kind::Ack,
        };
        self.tell(now, Traced::Received(Head::new(seg, kind)));
    }

    /// A segment leaves; `before`: the counters before it was made.
    pub(super) fn sent(&mut self, now: Instant, seg: &Segment, before: &Counters, after: &Counters) {
        let kind = match () {
            () if seg.flags.has(Flags::RST) => Kind::Reset,
            () if seg.flags.has(Flags::SYN) => Kind::Syn,
            () if seg.mark.is_probe() => Kind::Probe,
            // As the sender counts: with data or a FIN, but no probe of a closed window.
            () if after.segments_sent > before.segments_sent => Kind::Data,
            () => Kind::Ack,
        };
        let again = after.retransmissions > before.retransmissions;
        self.tell(now, Traced::Sent(Head::new(seg, kind), again));
    }

    /// Tells what has changed since it last looked.
    pub(super) fn look(&mut self, now: Instant, tcp: &Connection<Bytes>) {
        let (c, s) = (tcp.counters(), tcp.snapshot());
        for _ in self.timeouts..c.timeouts {
            self.tell(now, Traced::Timeout);
        }
        for _ in self.recoveries..c.recoveries {
            self.tell(now, Traced::RecoveryBegan);
            self.recovers = true;
        }
        (self.timeouts, self.recoveries) = (c.timeouts, c.recoveries);
        if self.recovers && s.phase == Phase::Open {
            self.recovers = false;
            self.tell(now, Traced::RecoveryEnded);
        }
        let size = f64::from(tcp.sender().segment_size());
        let bytes = |segments: f64| (segments * size).round() as u64;
        let metrics = Metrics {
            cwnd: bytes(s.cwnd),
            ssthresh: s.ssthresh.is_finite().then(|| bytes(s.ssthresh)),
            srtt: s.srtt,
            in_flight: s.pipe,
        };
        if metrics != self.metrics {
            self.metrics = metrics;
            self.tell(now, Traced::Metrics(metrics));
        }
    }

    /// Tells of the beginning and the end of the connection, once each.
    pub(super) fn notice(&mut self, now: Instant, connected: bool, over: Option<End>) {
        if connected && !std::mem::replace(&mut self.connected, true) {
            self.tell(now, Traced::Connected);
        }
        if let Some(end) = over
            && !std::mem::replace(&mut self.ended, true)
        {
            self.tell(now, Traced::Ended(end));
        }
    }
}
