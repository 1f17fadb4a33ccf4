//! A small sender over one link: fixed RTT, one acknowledgement per segment, no reordering, no timers.
//!
//! It counts whole segments and repairs losses according to the policy, without proportional rate reduction, without
//! Tahoe's go-back-N and without a retransmission timer. It ignores [`Actions::hold`] and [`Actions::rewind`]. It
//! reproduces the worked traces of the papers exactly, and shows without a real sender whether an algorithm converges.

use super::Stage;
use crate::event::{
    Ack, AckKind, Blocked, Clock, Head, Lost, Phase, ProbeEvent, RateSample, Sent, Signal, Start, Transmit,
};
use crate::{Actions, CongestionControl, Pipe, ProbeSource, RecoveryMode, Train};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use skyhaul_base::{Duration, Instant, Rate};

/// The link: data waits in a queue for the transmitter, is serialised, and its acknowledgement arrives one RTT later.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// From the end of a segment's transmission to the arrival of its acknowledgement.
    pub rtt: Duration,
    /// Rate of the transmitter; `None` is infinite.
    pub rate: Option<Rate>,
    /// Maximum segments waiting or in transmission, at a finite rate; further ones are lost.
    pub buffer: usize,
}

/// Events of a run, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdealEvent {
    /// Segment `index` was sent.
    Sent {
        /// Number of the segment, from 0.
        index: u64,
        /// It is a retransmission.
        again: bool,
    },
    /// A probe left.
    Probed,
    /// A recovery began.
    Reduced,
    /// The recovery ended.
    Recovered,
}

/// An outstanding segment. The last five fields are the state when it was sent, for the rate sample of its
/// acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Segment {
    sent_at: Instant,
    retransmissions: u32,
    sacked: bool,
    lost: bool,
    /// Bytes delivered.
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Bytes marked lost.
    lost_before: u64,
    /// Bytes in flight, with the segment.
    in_flight: u64,
}

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// The acknowledgement of this segment arrives.
    Ack(u64),
    /// The answer to a probe arrives; for a NIL segment, with the segment that it carried.
    ProbeAck(Option<u64>),
    /// The next probe of the train with this number.
    Train(u64),
    /// The timer of the algorithm; only the last one set counts.
    Wake(u64),
    /// Pacing admits the next segment.
    Pace,
}

/// The sender, the link and the receiver.
#[derive(Clone, Debug)]
pub struct Ideal<C> {
    /// The algorithm and its inputs.
    pub stage: Stage<C>,
    /// Events with their times.
    pub log: Vec<(Instant, IdealEvent)>,
    /// Segments to lose once, by number.
    pub lose: BTreeSet<u64>,
    /// Which probes are answered, by number from 0.
    pub keep_probe: fn(u64) -> bool,
    line: Line,
    /// Scheduled events by time and by a serial number, so that simultaneous events stay in order.
    due: BTreeMap<(Instant, u64), Due>,
    /// The last serial number; also numbers the trains.
    serial: u64,
    /// Outstanding segments, oldest first.
    segments: VecDeque<Segment>,
    una: u64,
    /// The receiver: its next expected segment, and segments beyond.
    expected: u64,
    beyond: BTreeSet<u64>,
    dupacks: u32,
    recovery_point: u64,
    round_end: u64,
    /// When the transmitter has sent everything that waits.
    free_at: Instant,
    /// When pacing admits the next segment.
    pace_at: Instant,
    /// What is left of the current train of probes, and its number.
    train: Option<(Train, u64)>,
    /// Number of the last timer that the algorithm set.
    wakes: u64,
    /// Number of probes sent.
    probes: u64,
    /// The first segment that the next NIL segment may carry.
    round_robin: u64,
    /// Segments in flight as the policy `Pipe::Counter` counts them.
    pipe_counter: i64,
    delivered_at: Instant,
    first_sent_at: Instant,
}

impl<C: CongestionControl> Ideal<C> {
    /// A connection over `line` whose peer offers `rwnd` segments.
    pub fn new(cc: C, line: Line, rwnd: f64) -> Self {
        Self {
            stage: Stage::new(cc, rwnd),
            log: Vec::new(),
            lose: BTreeSet::new(),
            keep_probe: |_| true,
            line,
            due: BTreeMap::new(),
            serial: 0,
            segments: VecDeque::new(),
            una: 0,
            expected: 0,
            beyond: BTreeSet::new(),
            dupacks: 0,
            recovery_point: 0,
            round_end: 0,
            free_at: Instant::ZERO,
            pace_at: Instant::ZERO,
            train: None,
            wakes: 0,
            probes: 0,
            round_robin: 0,
            pipe_counter: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
        }
    }

    /// Segments acknowledged so far.
    pub fn acked(&self) -> u64 {
        self.una
    }

    /// The connection is established; the handshake took one RTT.
    pub fn start(&mut self) {
        let rtt = Some(self.line.rtt);
        self.call(|cc, cx| cc.on_start(cx, &Start::Established { rtt, syn_lost: false, cached: None }));
        self.transmit(Clock::App);
    }

    /// Puts `n` segments in flight, the first now and the others `spacing` apart, without asking the algorithm: the
    /// steady state in which a trace begins.
    pub fn preload(&mut self, n: u64, spacing: Duration) {
        for k in 0..n {
            let index = self.una + self.segments.len() as u64;
            let at = self.stage.now + spacing * k;
            self.segments.push_back(Segment { sent_at: at, ..self.fresh() });
            if !self.lose.remove(&index) {
                self.schedule(at + self.line.rtt, Due::Ack(index));
            }
        }
    }

    /// Processes everything up to and including `end`.
    pub fn run_until(&mut self, end: Instant) {
        while let Some((&(at, serial), &due)) = self.due.iter().next().filter(|((at, _), _)| *at <= end) {
            self.due.remove(&(at, serial));
            self.stage.now = at;
            self.process(due);
        }
        self.stage.now = end;
    }

    fn schedule(&mut self, at: Instant, due: Due) {
        self.serial += 1;
        self.due.insert((at, self.serial), due);
    }

    fn process(&mut self, due: Due) {
        match due {
            Due::Ack(index) => self.arrived(Some(index), false),
            Due::ProbeAck(carried) => self.arrived(carried, true),
            Due::Train(id) => {
                if let Some((mut train, _)) = self.train.filter(|t| t.1 == id) {
                    self.send_probe(train.source);
                    train.count -= 1;
                    self.train = (train.count > 0).then_some((train, id));
                    if train.count > 0 {
                        self.schedule(self.stage.now + train.spacing, Due::Train(id));
                    }
                }
            }
            Due::Wake(id) if id == self.wakes => {
                self.call(|cc, cx| cc.on_wake(cx));
                self.transmit(Clock::Timer);
            }
            Due::Wake(_) => {}
            Due::Pace => self.transmit(Clock::Timer),
        }
    }

    fn mode(&self) -> RecoveryMode {
        self.stage.cc.policy().recovery
    }

    /// Segments in flight: those of [`Self::in_network`], or, in a recovery, the counter if the policy selects it.
    fn pipe(&self) -> usize {
        let counts = matches!(self.stage.cc.policy().pipe, Pipe::Counter { .. });
        if counts && self.stage.path.phase == Phase::Recovery {
            return self.pipe_counter.max(0) as usize;
        }
        self.in_network()
    }

    /// Segments neither acknowledged nor lost; a retransmitted segment is not lost any more.
    fn in_network(&self) -> usize {
        if self.beyond.is_empty() {
            // Without a gap, no segment is SACKed or lost.
            return self.segments.len();
        }
        self.segments.iter().filter(|s| !s.sacked && (!s.lost || s.retransmissions > 0)).count()
    }

    /// Updates what the algorithm sees of the path.
    fn refresh(&mut self) {
        let pipe = self.pipe() as f64;
        let now = self.stage.now;
        let path = &mut self.stage.path;
        path.set_in_flight(self.segments.len() as f64);
        path.set_pipe(pipe);
        path.head =
            self.segments.front().map(|s| Head { age: now - s.sent_at, retransmissions: s.retransmissions });
    }

    fn call(&mut self, event: impl FnOnce(&mut C, &mut crate::Cx<'_>)) {
        self.refresh();
        let act = self.stage.call(event);
        self.carry_out(&act);
    }

    fn carry_out(&mut self, act: &Actions) {
        if act.stop_probes {
            self.train = None;
        }
        if let Some(train) = act.train {
            self.serial += 1;
            let id = self.serial;
            self.train = Some((train, id));
            self.schedule(self.stage.now + train.first, Due::Train(id));
        }
        if let Some((source, n)) = act.probe_now {
            (0..n).for_each(|_| self.send_probe(source));
        }
        if let Some(at) = act.wake_at {
            self.wakes += 1;
            if at < Instant::MAX {
                self.schedule(at, Due::Wake(self.wakes));
            }
        }
        if act.retransmit_head && self.stage.path.phase == Phase::Recovery && !self.segments.is_empty() {
            self.resend(0);
        } else if act.retransmit_head && !self.segments.is_empty() {
            self.reduce();
        }
    }

    fn send_probe(&mut self, source: ProbeSource) {
        let mut carried = None;
        if source == ProbeSource::UnackedModulo {
            let unsacked = || (0..self.segments.len()).filter(|&i| !self.segments[i].sacked);
            let count = unsacked().count();
            let Some(i) = self.probes.checked_rem(count as u64).and_then(|n| unsacked().nth(n as usize))
            else {
                return;
            };
            carried = Some(self.una + i as u64);
        } else if source == ProbeSource::UnackedRoundRobin {
            let from = self.round_robin.saturating_sub(self.una) as usize;
            let unsacked = |s: &Segment| !s.sacked;
            let position = match self.segments.iter().skip(from).position(unsacked) {
                Some(i) => Some(from + i),
                None => self.segments.iter().position(unsacked),
            };
            let Some(i) = position else { return };
            carried = Some(self.una + i as u64);
            self.round_robin = self.una + i as u64 + 1;
        }
        self.log.push((self.stage.now, IdealEvent::Probed));
        let n = self.probes;
        self.probes += 1;
        if (self.keep_probe)(n) {
            if let Some(at) = self.serialise() {
                self.schedule(at, Due::ProbeAck(carried));
            }
        }
    }

    /// Arrival time of the acknowledgement of a segment sent now; `None` if the buffer is full.
    fn serialise(&mut self) -> Option<Instant> {
        let Some(rate) = self.line.rate else { return Some(self.stage.now + self.line.rtt) };
        let service = f64::from(self.stage.path.smss) / rate.bytes_per_sec();
        let start = self.free_at.max(self.stage.now);
        let waiting = (start - self.stage.now).as_secs_f64() / service;
        if waiting >= self.line.buffer as f64 {
            return None;
        }
        self.free_at = start + Duration::from_secs_f64(service);
        Some(self.free_at + self.line.rtt)
    }

    /// A segment that is sent now for the first time.
    fn fresh(&self) -> Segment {
        Segment {
            sent_at: self.stage.now,
            retransmissions: 0,
            sacked: false,
            lost: false,
            delivered: self.stage.path.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            lost_before: self.stage.path.lost,
            in_flight: (self.in_network() as u64 + 1) * u64::from(self.stage.path.smss),
        }
    }

    fn departs(&mut self, index: u64, again: bool) {
        self.pipe_counter += 1;
        self.log.push((self.stage.now, IdealEvent::Sent { index, again }));
        let at = self.serialise();
        let lost = self.lose.remove(&index);
        if let Some(at) = at.filter(|_| !lost) {
            self.schedule(at, Due::Ack(index));
        }
        if let Some(rate) = self.stage.cc.pacing() {
            let gap = f64::from(self.stage.path.smss) / rate.bytes_per_sec();
            self.pace_at = self.pace_at.max(self.stage.now) + Duration::from_secs_f64(gap);
        }
        if self.stage.cc.policy().sent_events {
            let len = self.stage.path.smss;
            self.call(|cc, cx| cc.on_sent(cx, &Sent { len, retransmission: again }));
        }
    }

    fn resend(&mut self, position: usize) {
        let fresh = self.fresh();
        let Some(s) = self.segments.get_mut(position) else { return };
        *s = Segment { retransmissions: s.retransmissions + 1, lost: true, ..fresh };
        self.departs(self.una + position as u64, true);
    }

    fn send_new(&mut self) {
        if self.segments.is_empty() {
            self.first_sent_at = self.stage.now;
            self.delivered_at = self.stage.now;
        }
        self.segments.push_back(self.fresh());
        self.departs(self.una + self.segments.len() as u64 - 1, false);
    }

    fn reduce(&mut self) {
        self.log.push((self.stage.now, IdealEvent::Reduced));
        self.call(|cc, cx| cc.on_congestion(cx, Signal::Loss));
        self.recovery_point = match self.mode() {
            RecoveryMode::Reno => self.una + 1,
            _ => self.una + self.segments.len() as u64,
        };
        self.stage.path.phase = Phase::Recovery;
        self.pipe_counter = match self.stage.cc.policy().pipe {
            Pipe::Counter { from_window: true, .. } => 2 * self.stage.cwnd() as i64 - 3,
            _ => self.segments.len() as i64 - i64::from(self.dupacks),
        };
        self.resend(0);
    }

    fn deliver(&mut self, s: Segment) {
        self.stage.path.delivered += u64::from(self.stage.path.smss);
        self.delivered_at = self.stage.now;
        self.first_sent_at = s.sent_at;
    }

    /// The rate sample of the acknowledgement of `s`.
    fn sample(&self, s: Segment) -> RateSample {
        let interval = (s.sent_at - s.first_sent_at).max(self.stage.now - s.delivered_at);
        let delivered = self.stage.path.delivered - s.delivered;
        let reliable = self.stage.path.min_rtt.is_none_or(|m| interval >= m);
        RateSample {
            delivered,
            interval,
            rate: Rate::from_bytes_over(delivered as f64, interval).filter(|_| reliable),
            app_limited: false,
            prior_delivered: s.delivered,
            lost: self.stage.path.lost - s.lost_before,
            in_flight: s.in_flight,
        }
    }

    /// Segment `index` reached the receiver half an RTT ago.
    fn received(&mut self, index: u64) {
        if index == self.expected {
            self.expected += 1;
            while self.beyond.remove(&self.expected) {
                self.expected += 1;
            }
        } else if index > self.expected {
            self.beyond.insert(index);
        }
    }

    /// The acknowledgement of segment `index`, or of a probe with or without data, arrives.
    fn arrived(&mut self, index: Option<u64>, probe: bool) {
        if let Some(index) = index {
            self.received(index);
        }
        let now = self.stage.now;
        let acked = self.expected - self.una;
        let mut newest = None;
        let (mut sacked, mut rtt, mut delivered) = (0, None, 0);
        for _ in 0..acked {
            let Some(s) = self.segments.pop_front() else { break };
            if !s.sacked {
                self.deliver(s);
                delivered += 1;
                newest = Some(s);
            }
            rtt = (s.retransmissions == 0 && !s.sacked && !probe).then(|| now - s.sent_at);
        }
        self.una = self.expected;
        if let Some(index) = index.filter(|&i| i > self.una) {
            let at = (index - self.una) as usize;
            if let Some(s) = self.segments.get_mut(at).filter(|s| !s.sacked) {
                s.sacked = true;
                sacked = 1;
                newest = Some(*s);
            }
            if let (1, Some(s)) = (sacked, newest) {
                self.deliver(s);
            }
        }
        let lost = self.mark_lost();
        if let Pipe::Counter { partial_extra, .. } = self.stage.cc.policy().pipe {
            let extra = partial_extra && acked > 0 && !probe;
            self.pipe_counter -= delivered + sacked + i64::from(extra);
        }
        if let Some(r) = rtt {
            let p = &mut self.stage.path;
            p.min_rtt = Some(p.min_rtt.map_or(r, |m| m.min(r)));
            p.srtt = Some(p.srtt.map_or(r, |s| (s * 7 + r) / 8));
        }
        if index.unwrap_or(0).max(self.una.saturating_sub(1)) >= self.round_end {
            self.stage.path.round += 1;
            self.round_end = self.una + self.segments.len() as u64;
        }

        let recovering = self.stage.path.phase == Phase::Recovery;
        let ends = recovering && self.una >= self.recovery_point;
        let kind = if acked > 0 {
            self.dupacks = 0;
            match (recovering, ends) {
                (false, _) => AckKind::New,
                (true, false) => AckKind::Partial,
                (true, true) => AckKind::Full,
            }
        } else {
            self.dupacks += u32::from(!probe);
            AckKind::Duplicate { count: self.dupacks, new_sack: sacked > 0, dsack: false }
        };
        let event = Ack {
            rtt,
            rate: newest.map(|s| self.sample(s)),
            sacked: sacked as f64,
            lost,
            ..super::ack(kind, acked as f64)
        };
        if acked > 0 || !probe {
            self.call(|cc, cx| cc.on_ack(cx, &event));
        }
        if probe {
            let newly_acked = (delivered + sacked) as u32 * self.stage.path.smss;
            self.call(|cc, cx| cc.on_probe(cx, ProbeEvent::Acked { count: 1, stale: false, newly_acked }));
        }

        if ends {
            self.stage.path.phase = Phase::Open;
            self.log.push((now, IdealEvent::Recovered));
            self.call(|cc, cx| cc.on_recovered(cx));
        } else if recovering && acked > 0 && self.mode() == RecoveryMode::NewReno {
            self.resend(0);
        } else if !probe
            && self.stage.path.phase == Phase::Open
            && self.dupacks == 3
            && self.una >= self.recovery_point
        {
            self.reduce();
        }
        self.transmit(if probe { Clock::Probe } else { Clock::Ack });
    }

    /// Marks the segments beyond which three segments have arrived as lost (RFC 6675, without reordering). Returns the number
    /// of newly lost ones.
    fn mark_lost(&mut self) -> f64 {
        if self.beyond.is_empty() {
            return 0.0;
        }
        let smss = self.stage.path.smss;
        let mut above = self.segments.iter().filter(|s| s.sacked).count();
        let mut found = Vec::new();
        let mut same_gap = false;
        for s in &mut self.segments {
            if above < 3 {
                break;
            }
            if s.sacked {
                above -= 1;
            } else if !s.lost {
                s.lost = true;
                found.push((*s, same_gap));
            }
            same_gap = !s.sacked && s.lost;
        }
        let newly = found.len() as f64;
        for (s, same_gap) in found {
            self.stage.path.lost += u64::from(smss);
            if self.stage.cc.policy().loss_events {
                let lost = Lost {
                    len: smss,
                    in_flight: s.in_flight,
                    lost: self.stage.path.lost - s.lost_before,
                    app_limited: false,
                    same_gap,
                };
                self.call(|cc, cx| cc.on_lost(cx, &lost));
            }
        }
        newly
    }

    fn transmit(&mut self, clock: Clock) {
        let mut sent = 0;
        let policy = self.stage.cc.policy();
        let blocked = loop {
            if policy.max_burst > 0 && sent >= u32::from(policy.max_burst) {
                break Blocked::Burst;
            }
            if self.stage.cc.pacing().is_some() && self.stage.now < self.pace_at {
                self.due.retain(|_, d| *d != Due::Pace);
                self.schedule(self.pace_at, Due::Pace);
                break Blocked::Pacing;
            }
            let window = self.stage.cwnd() as usize;
            let by_pipe = self.stage.path.phase == Phase::Recovery
                && policy.recovery.uses_pipe()
                && !policy.gate_on_flight;
            let outstanding = if by_pipe { self.pipe() } else { self.segments.len() };
            if outstanding >= window {
                break Blocked::Cwnd;
            }
            let hole = if by_pipe {
                self.segments.iter().position(|s| s.lost && s.retransmissions == 0)
            } else {
                None
            };
            if let Some(i) = hole {
                self.resend(i);
            } else if self.segments.len() as f64 >= self.stage.path.rwnd {
                break Blocked::Rwnd;
            } else {
                self.send_new();
            }
            sent += 1;
        };
        self.call(|cc, cx| cc.on_transmit(cx, &Transmit { sent, clock, blocked }));
    }
}

#[cfg(test)]
mod tests;
