//! The sending end.

use super::{Close, Config, Data, FIRST_WAIT, HEADER, MOST_SPANS, Repair, Report};
use skyhaul_base::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Minimum timeout of a sync request.
const LEAST_WAIT: Duration = Duration::from_millis(200);
/// Packets between two sync requests before an RTT is known.
const FIRST_INTERVAL: u64 = 8;

/// The guard halves the rate if more than this share of a round trip's packets is lost.
const GUARDED: f64 = 0.1;

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets with data.
    pub sent: u64,
    /// Retransmissions among these.
    pub repeats: u64,
    /// Sync requests that timed out.
    pub timeouts: u64,
    /// Reports that arrived.
    pub reports: u64,
}

/// A sync request: the end of data sent at that time, and the time.
#[derive(Clone, Copy, Debug)]
struct SyncRequest {
    sync: u32,
    nxt: u64,
    at: Instant,
}

/// A round trip, for the guard.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    ends: Instant,
    /// Packets sent before it, packets sent in the previous one, and losses detected in it.
    before: u64,
    last: u64,
    lost: u64,
    /// The rate was halved at its start: losses detected in it are of packets sent at the previous rate.
    halved: bool,
}

/// The sending end of a connection, which opens with its first packet.
#[derive(Debug)]
pub struct Sender {
    config: Config,
    payload: u32,
    buffer: u64,
    /// First byte that is not acknowledged, and next byte to send.
    una: u64,
    nxt: u64,
    /// End of the data ever sent: go-back-N sets `nxt` back.
    max: u64,
    /// End of the data written.
    end: u64,
    /// First byte that the receiver's window excludes.
    alloc: u64,
    /// Remaining bytes of the burst, and the start of the next one.
    credit: f64,
    next_burst: Instant,
    opening: bool,
    established: bool,
    /// Number of the last sync request.
    sync: u32,
    /// Sync requests without an answer.
    requests: VecDeque<SyncRequest>,
    /// Packets with data sent since the last sync request.
    since_request: u64,
    request_due: bool,
    /// When the oldest sync request times out, and how many have timed out in a row.
    wait_until: Instant,
    tries: u64,
    srtt: Option<Duration>,
    /// Data to retransmit.
    to_retransmit: VecDeque<(u64, u32)>,
    /// Retransmitted data, by its first byte, with the last sync request sent before.
    retransmitted: BTreeMap<u64, u32>,
    /// Only answers to this or a later sync request reflect data sent since the last go-back-N.
    went_back: u32,
    dead: bool,
    /// The current rate, bytes per second.
    rate: f64,
    round: Round,
    /// Nothing more is written.
    finishing: bool,
    /// The peer has received everything up to the end of the stream.
    closed: bool,
    /// The peer writes nothing more.
    peer_finished: bool,
    /// A packet without data must report the closing state.
    close_due: bool,
    /// This side has given up and must inform the peer.
    abort_due: bool,
    /// Both sides have closed.
    over: bool,
    counters: Counters,
}

impl Sender {
    /// A sender of packets with `payload` bytes, with a buffer of `buffer` bytes and an initial window of `window`.
    /// It opens the connection at once.
    #[must_use]
    pub fn new(config: &Config, payload: u32, buffer: u64, window: u64) -> Self {
        Self {
            config: *config,
            payload,
            buffer,
            una: 0,
            nxt: 0,
            max: 0,
            end: 0,
            alloc: window,
            credit: 0.0,
            next_burst: Instant::ZERO,
            opening: true,
            established: false,
            sync: 0,
            requests: VecDeque::new(),
            since_request: 0,
            request_due: false,
            wait_until: Instant::MAX,
            tries: 0,
            srtt: None,
            to_retransmit: VecDeque::new(),
            retransmitted: BTreeMap::new(),
            went_back: 0,
            dead: false,
            rate: config.bytes_per_sec(),
            round: Round::default(),
            finishing: false,
            closed: false,
            peer_finished: false,
            close_due: false,
            abort_due: false,
            over: false,
            counters: Counters::default(),
        }
    }
    /// Whether the peer has answered.
    #[must_use]
    pub fn established(&self) -> bool {
        self.established
    }
    /// Whether the peer stopped answering.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.dead
    }
    /// Stops: nothing more is sent.
    pub fn stop(&mut self) {
        (self.dead, self.abort_due) = (true, false);
    }
    /// Gives up and informs the peer.
    pub fn abort(&mut self) {
        self.abort_due |= !self.dead && !self.over;
        self.dead = true;
    }
    /// Nothing more is written: the stream ends after the data written so far.
    pub fn finish(&mut self) {
        // With the remaining data, or in a separate packet with a sync request.
        self.request_due |= !self.finishing && self.next().is_none();
        self.finishing = true;
    }
    /// The peer has closed: it writes nothing more.
    #[must_use]
    pub fn peer_finished(&self) -> bool {
        self.peer_finished
    }
    /// Whether the peer has everything up to the end of the stream.
    #[must_use]
    pub fn end_confirmed(&self) -> bool {
        self.closed
    }
    /// Whether both sides have closed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }
    /// The current rate, bytes per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }
    /// Bytes acknowledged.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.una
    }
    /// Bytes written and not acknowledged.
    #[must_use]
    pub fn unacked(&self) -> u64 {
        self.end - self.una
    }
    /// Bytes that can be written.
    #[must_use]
    pub fn writable(&self) -> u64 {
        self.buffer.saturating_sub(self.end - self.una)
    }
    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
    /// The smoothed RTT.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.srtt
    }
    /// Accepts `n` bytes, or as many as there is room for. Returns how many.
    pub fn write(&mut self, n: u64) -> u64 {
        let n = if self.finishing { 0 } else { n.min(self.writable()) };
        self.end += n;
        n
    }

    /// When [`Self::poll`] or [`Self::handle_timeout`] must be called.
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        if self.dead && !self.abort_due {
            return Instant::MAX;
        }
        let sends =
            self.opening || self.request_due || self.close_due || self.abort_due || self.next().is_some();
        let burst = if sends { self.next_burst } else { Instant::MAX };
        burst.min(self.wait_until)
    }

    /// A sync request timed out.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.wait_until > now || self.dead {
            return;
        }
        self.wait_until = Instant::MAX;
        self.tries += 1;
        self.counters.timeouts += 1;
        self.dead = self.tries > self.config.retry;
        self.request_due = !self.dead;
    }

    /// The next data to send: offset, length, whether it is a retransmission.
    fn next(&self) -> Option<(u64, u32, bool)> {
        if let Some(&(seq, len)) = self.to_retransmit.front() {
            return Some((seq, len, true));
        }
        let len = u64::from(self.payload).min(self.end - self.nxt).min(self.alloc.saturating_sub(self.nxt));
        // A packet shortened by the window waits for more of it.
        let whole = len == u64::from(self.payload) || self.nxt + len == self.end;
        (len > 0 && whole).then_some((self.nxt, len as u32, self.nxt < self.max))
    }

    /// The packet to send now; to be called until there is none.
    pub fn poll(&mut self, now: Instant) -> Option<Data> {
        if self.dead {
            return core::mem::take(&mut self.abort_due).then(|| self.closing());
        }
        let next = self.next();
        if next.is_none() && !self.opening && !self.request_due {
            return core::mem::take(&mut self.close_due).then(|| self.closing());
        }
        let burst = self.config.burst as f64 * f64::from(self.payload + HEADER);
        if now >= self.next_burst {
            let period = Duration::from_secs_f64(burst / self.rate);
            self.credit = burst;
            // During continuous sending, bursts keep their spacing, however late the call.
            let steady = self.next_burst + period;
            self.next_burst = if steady > now { steady } else { now + period };
        }
        let (seq, len, repeat) = next.unwrap_or((self.nxt, 0, false));
        let size = f64::from(len + HEADER);
        if self.credit < size {
            return None;
        }
        self.credit -= size;
        if len > 0 {
            if self.to_retransmit.pop_front().is_none() {
                self.nxt += u64::from(len);
                self.max = self.max.max(self.nxt);
            } else {
                self.retransmitted.insert(seq, self.sync);
            }
            self.counters.sent += 1;
            self.counters.repeats += u64::from(repeat);
            self.since_request += 1;
        }
        let last = self.next().is_none();
        let requests_sync =
            self.opening || self.request_due || last || self.since_request >= self.request_interval();
        (self.opening, self.request_due) = (false, false);
        let close = Close {
            wclose: self.finishing && seq + u64::from(len) == self.end,
            rclose: self.peer_finished,
            end: false,
        };
        Some(Data { seq, len, sync: if requests_sync { self.request(now) } else { 0 }, close })
    }

    /// A packet without data that reports the closing state, without a sync request. It is too short to count in a
    /// burst.
    #[cold]
    fn closing(&mut self) -> Data {
        self.over |= self.closed && self.peer_finished;
        let close = Close { wclose: false, rclose: self.peer_finished, end: self.over || self.dead };
        Data { seq: self.nxt, len: 0, sync: 0, close }
    }

    /// Packets between two sync requests: four requests per RTT.
    fn request_interval(&self) -> u64 {
        let Some(srtt) = self.srtt else { return FIRST_INTERVAL };
        let window = self.rate * srtt.as_secs_f64() / f64::from(self.payload + HEADER);
        ((window / 4.0) as u64).max(1)
    }

    fn request(&mut self, now: Instant) -> u32 {
        self.sync += 1;
        self.since_request = 0;
        self.requests.push_back(SyncRequest { sync: self.sync, nxt: self.nxt, at: now });
        if self.wait_until == Instant::MAX {
            self.wait_until = now + self.request_timeout();
        }
        self.sync
    }

    /// Timeout of a sync request: it doubles after each that was not answered.
    fn request_timeout(&self) -> Duration {
        let usual = self.srtt.map_or(FIRST_WAIT, |rtt| (rtt + rtt / 2).max(LEAST_WAIT));
        usual * (1 << self.tries.min(16))
    }

    /// A report arrived.
    pub fn handle(&mut self, now: Instant, r: &Report) {
        // An impossible report changes nothing.
        if r.rseq > self.max || self.dead {
            return;
        }
        if r.close != Close::default() {
            self.close(r);
            if self.dead {
                return;
            }
        }
        self.established = true;
        self.counters.reports += 1;
        self.una = self.una.max(r.rseq);
        self.nxt = self.nxt.max(self.una);
        self.alloc = self.alloc.max(r.alloc);
        let mut reached = self.una;
        while let Some(q) = self.requests.front().copied().filter(|q| q.sync <= r.echo) {
            self.requests.pop_front();
            reached = q.nxt;
            if q.sync == r.echo {
                let sample = now - q.at;
                self.srtt = Some(self.srtt.map_or(sample, |s| (s * 7 + sample) / 8));
            }
            self.tries = 0;
            self.wait_until = Instant::MAX;
        }
        if self.wait_until == Instant::MAX && !self.requests.is_empty() {
            self.wait_until = now + self.request_timeout();
        }
        let una = self.una;
        self.to_retransmit.retain(|(seq, _)| *seq >= una);
        self.retransmitted = self.retransmitted.split_off(&una);
        match self.config.repair {
            Repair::Selective => self.fill(r, reached),
            Repair::GoBackN => {
                let missing = r.gap || reached > r.rseq;
                if missing && r.rseq == self.una && r.echo >= self.went_back && self.nxt > self.una {
                    self.nxt = self.una;
                    self.went_back = self.sync + 1;
                }
            }
        }
        // Without an outstanding sync request, data in flight or an end that is not confirmed needs a new one.
        let open = self.una < self.nxt || self.finishing && !self.closed;
        self.request_due |= self.requests.is_empty() && open && self.next().is_none();
        if self.config.aimd_guard {
            self.guard(now);
        }
    }

    /// Processes the closing state of a report.
    #[cold]
    fn close(&mut self, r: &Report) {
        let Close { wclose, rclose, end } = r.close;
        if end {
            self.stop();
            return;
        }
        self.closed |= rclose && self.finishing && r.rseq == self.end;
        self.peer_finished |= wclose;
        // The peer does not know yet that its end was received, or that this was the end.
        self.close_due |= wclose || self.closed && self.peer_finished && !self.over;
    }

    /// Lowers the rate after a round trip with many losses, and raises it after one without.
    fn guard(&mut self, now: Instant) {
        let Some(srtt) = self.srtt.filter(|_| now >= self.round.ends) else { return };
        let sent = self.counters.sent - self.round.before;
        let Round { last, lost, halved, .. } = self.round;
        let many = lost as f64 > GUARDED * last as f64;
        let more = f64::from(self.payload + HEADER) / srtt.as_secs_f64().max(1e-9);
        if many && !halved {
            self.rate = (self.rate / 2.0).max(more.min(self.rate));
        } else if !many {
            self.rate = (self.rate + more).min(self.config.bytes_per_sec());
        }
        self.round = Round {
            ends: now + srtt,
            before: self.counters.sent,
            last: sent,
            lost: 0,
            halved: many && !halved,
        };
    }

    /// Queues data that the report shows to be missing: gaps below the received data, and data sent before the sync
    /// request that it answers. Each is queued once for all reports that cannot know of its retransmission.
    fn fill(&mut self, r: &Report, reached: u64) {
        let mut at = self.una;
        for &(from, to) in &r.spans {
            self.miss(at, from, r.echo);
            at = at.max(to);
        }
        // A report with the maximum number of ranges says nothing about data beyond them.
        if r.spans.len() < MOST_SPANS {
            self.miss(at, reached, r.echo);
        }
    }

    fn miss(&mut self, from: u64, to: u64, echo: u32) {
        let mut at = from;
        while at < to.min(self.max) {
            let len = u64::from(self.payload).min(to - at) as u32;
            let known = self.retransmitted.get(&at).is_some_and(|&asked| echo <= asked);
            if !known && !self.to_retransmit.iter().any(|(seq, _)| *seq == at) {
                self.to_retransmit.push_back((at, len));
                self.round.lost += 1;
            }
            at += u64::from(len);
        }
    }
}
