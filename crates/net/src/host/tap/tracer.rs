//! Tells a tap what happens to one connection.

use super::traced::{End, Head, Kind, Metrics, Traced};
use super::{Tap, Tapped};
use skyhaul_base::Instant;
use skyhaul_cc::Phase;
use skyhaul_tcp::{Bytes, Connection, Counters, Flags, Segment};

/// How far a connection is, as reported to the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Opening,
    Connected,
    Ended,
}

/// Traces one connection.
#[derive(Debug)]
pub(in crate::host) struct Tracer {
    tap: Tap,
    flow: u64,
    metrics: Metrics,
    timeouts: u64,
    recoveries: u64,
    /// The tap knows of a loss recovery, and not of its end.
    recovers: bool,
    stage: Stage,
    /// The reader of the tap still exists.
    pub(in crate::host) read: bool,
}

impl Tracer {
    pub(in crate::host) fn new(
        now: Instant,
        tap: Tap,
        flow: u64,
        tcp: &Connection<Bytes>,
        connected: bool,
    ) -> Self {
        let c = tcp.counters();
        let mut new = Self {
            tap,
            flow,
            metrics: Metrics::default(),
            timeouts: c.timeouts,
            recoveries: c.recoveries,
            recovers: false,
            stage: if connected { Stage::Connected } else { Stage::Opening },
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
    pub(in crate::host) fn received(&mut self, now: Instant, seg: &Segment) {
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
    pub(in crate::host) fn sent(&mut self, now: Instant, seg: &Segment, before: &Counters, after: &Counters) {
        let kind = match () {
            () if seg.flags.has(Flags::RST) => Kind::Reset,
            () if seg.flags.has(Flags::SYN) => Kind::Syn,
            () if seg.mark.is_probe() => Kind::Probe,
            // As the sender counts: with data or a FIN, but no probe of a closed window.
            () if after.segments_sent > before.segments_sent => Kind::Data,
            () => Kind::Ack,
        };
        let retransmitted = after.retransmissions > before.retransmissions;
        self.tell(now, Traced::Sent(Head::new(seg, kind), retransmitted));
    }

    /// Tells what has changed since it last looked.
    pub(in crate::host) fn look(&mut self, now: Instant, tcp: &Connection<Bytes>) {
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
    pub(in crate::host) fn notice(&mut self, now: Instant, connected: bool, over: Option<End>) {
        if connected && self.stage == Stage::Opening {
            self.stage = Stage::Connected;
            self.tell(now, Traced::Connected);
        }
        if let Some(end) = over
            && self.stage < Stage::Ended
        {
            self.stage = Stage::Ended;
            self.tell(now, Traced::Ended(end));
        }
    }
}
