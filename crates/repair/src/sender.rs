//! The sending half of an end: queue, pacing, blocks, repeats.

use crate::code::{Code, symbol_size};
use crate::config::Config;
use crate::count::Counters;
use crate::frame::{Frame, Kind, Output, Report, TooBig, Treatment};
use crate::loss::{self, Estimate};
use crate::wire::{self, DIGITS, INSTALLED_SIZE, RANGE_SIZE, REPAIR_HEADER, REPORT_SIZE};
use skyhaul_base::units::Serializer;
use skyhaul_base::{Duration, Instant, Rate, Rng};
use skyhaul_path::queue::Moment;
use skyhaul_path::{DropReason, PacketView, Queue};
use std::collections::VecDeque;

/// A frame counts as lost, and not as reordered, once one sent so many frames later has arrived (`kPacketThreshold` of RFC 9002
/// §6.1.1).
const PACKET_THRESHOLD: u64 = 3;
/// The longest time for which a datagram is kept if no order bounds it, and the time of a frame without a report.
const KEPT: Duration = Duration::from_secs(10);
/// Depth of the token bucket that limits repair to its share of the rate: in seconds of this share, and at least in bytes, two
/// large packets.
const BUCKET_TIME: f64 = 0.5;
const LEAST_BUCKET: f64 = 4000.0;

/// Largest datagram that leaves together with others, bytes: acknowledgements, voice, questions to name servers.
const SMALL: u32 = 300;

/// A datagram in the gateway's queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting<S> {
    datagram: S,
    passed: bool,
}

impl<S: PacketView> PacketView for Waiting<S> {
    fn size(&self) -> u32 {
        self.datagram.size()
    }
    fn low_priority(&self) -> bool {
        self.datagram.low_priority()
    }
    fn flow(&self) -> u32 {
        self.datagram.flow()
    }
    fn kind(&self) -> u8 {
        self.datagram.kind()
    }
    fn is_pure_ack(&self) -> bool {
        self.datagram.is_pure_ack()
    }
    fn dscp(&self) -> u8 {
        self.datagram.dscp()
    }
    fn is_ect(&self) -> bool {
        self.datagram.is_ect()
    }
    fn is_l4s(&self) -> bool {
        self.datagram.is_l4s()
    }
    fn mark_ce(&mut self) {
        self.datagram.mark_ce();
    }
    // Not `ack`: a gateway that does not read datagrams cannot thin acknowledgements.
}

/// A datagram that was sent and may be needed again.
#[derive(Clone, Debug)]
struct Entry<S> {
    datagram: S,
    sent_at: Instant,
    /// Number of the last frame that carried it.
    number: u64,
    /// Number of the last frame of its block: until that one has arrived, the code may still recover it. `None` while the
    /// block is not complete.
    decided: Option<u64>,
    repeats: u32,
    /// The other end has it, or wants it no more.
    settled: bool,
    /// It waits for a repeat.
    again: bool,
}

/// The block that is being filled.
#[derive(Clone, Copy, Debug)]
struct Block {
    first: u64,
    opened: Instant,
    added: Instant,
}

/// A repair symbol that waits for its turn.
#[derive(Clone, Debug)]
struct Pending<Y> {
    first: u64,
    k: u16,
    parity: u8,
    index: u8,
    symbol: Y,
    expires: Instant,
}

/// The sending half of an end.
#[derive(Debug)]
pub(crate) struct Sender<C: Code> {
    config: Config,
    code: C,
    rng: Rng,
    queue: Queue<Waiting<C::Sent>>,
    /// A datagram that has left the queue, and did not fit into the frame of the one before.
    aside: Option<Waiting<C::Sent>>,
    pacer: Serializer,
    next_number: u64,
    /// Number of the datagram of the first entry.
    first: u64,
    entries: VecDeque<Entry<C::Sent>>,
    block: Option<Block>,
    symbols: VecDeque<Pending<C::Symbol>>,
    /// The symbols of a block that is being closed: kept for its memory.
    fresh: Vec<C::Symbol>,
    /// Numbers of the datagrams that wait for a repeat.
    repeats: VecDeque<u64>,
    /// Bytes in the token bucket of repair, and when it was last filled.
    tokens: f64,
    filled_at: Instant,
    estimate: Estimate,
    /// When frames were sent that no report has covered.
    times: VecDeque<(u64, Instant)>,
    largest_reported: Option<u64>,
    /// The other end has told of all datagrams below it, and settled those below the second one.
    reported_next: u64,
    reported_base: u64,
    /// Number after that of the last datagram that was forgotten before it was settled.
    given_up: u64,
    srtt: Option<Duration>,
    /// When a datagram is repeated because no report comes, and how often that has happened in a row.
    probe_at: Instant,
    probes: u32,
}

impl<C: Code> Sender<C> {
    pub(crate) fn new(config: &Config, code: C, rng: Rng) -> Self {
        let mut queue = Queue::new(&config.queue);
        queue.set_rate(Some(config.rate));
        let tokens = (config.share * config.rate.bytes_per_sec() * BUCKET_TIME).max(LEAST_BUCKET);
        Self {
            config: *config,
            code,
            rng,
            queue,
            aside: None,
            pacer: Serializer::new(config.rate),
            next_number: 0,
            first: 0,
            entries: VecDeque::new(),
            block: None,
            symbols: VecDeque::new(),
            fresh: Vec::new(),
            repeats: VecDeque::new(),
            tokens,
            filled_at: Instant::ZERO,
            estimate: Estimate::new(),
            times: VecDeque::new(),
            largest_reported: None,
            reported_next: 0,
            reported_base: 0,
            given_up: 0,
            srtt: None,
            probe_at: Instant::MAX,
            probes: 0,
        }
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }
    pub(crate) fn next_seq(&self) -> u64 {
        self.first + self.entries.len() as u64
    }
    pub(crate) fn estimate(&self) -> &Estimate {
        &self.estimate
    }
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt
    }
    pub(crate) fn queued(&self) -> (u32, u64) {
        let aside = self.aside.as_ref().map_or(0, |w| w.size());
        (self.queue.len() + u32::from(self.aside.is_some()), self.queue.bytes() + u64::from(aside))
    }
    pub(crate) fn code_mut(&mut self) -> &mut C {
        &mut self.code
    }

    /// The rate of the segment has changed.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.fill_bucket(now);
        self.config.rate = rate;
        self.pacer.set_rate(rate);
        self.queue.set_rate(Some(rate));
    }

    /// The largest packet in the segment has changed.
    pub(crate) fn set_mtu(&mut self, mtu: Option<u32>) {
        self.config.mtu = mtu;
    }

    /// A datagram enters the queue.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        datagram: C::Sent,
        how: Treatment,
        counters: &mut Counters,
        lost: &mut impl FnMut(C::Sent, DropReason),
    ) -> Result<(), TooBig> {
        let (size, largest) = (datagram.size(), self.config.largest_datagram());
        if how == Treatment::Repaired && size > largest {
            counters.too_big += 1;
            return Err(TooBig { size, largest });
        }
        let waiting = Waiting { datagram, passed: how == Treatment::Passed };
        let mut gone = |w: Waiting<C::Sent>, why| {
            counters.dropped += 1;
            lost(w.datagram, why);
        };
        self.queue.enqueue(&mut Moment::new(now, &mut self.rng), waiting, None, &mut gone);
        Ok(())
    }

    /// Fills the token bucket with the share of the rate since the last call.
    fn fill_bucket(&mut self, now: Instant) {
        let rate = self.config.share * self.config.rate.bytes_per_sec();
        let depth = (rate * BUCKET_TIME).max(LEAST_BUCKET);
        self.tokens = (self.tokens + rate * (now - self.filled_at).as_secs_f64()).min(depth);
        self.filled_at = now;
    }

    /// When the open block is closed at the latest: `fill-time` after its first datagram, or a quarter of this time after its last
    /// one.
    fn closes(&self) -> Option<Instant> {
        let (block, fill) = (self.block?, self.config.fill_time);
        Some((block.opened + fill).min(block.added + fill.mul_f64(0.25)))
    }

    /// Closes the block if it is due.
    fn close(&mut self, now: Instant) {
        let Some(block) = self.block else { return };
        let k = (self.next_seq() - block.first) as u32;
        if k < u32::from(self.config.block) && self.closes().is_some_and(|at| at > now) {
            return;
        }
        self.block = None;
        self.fill_bucket(now);
        let (offset, outer) = ((block.first - self.first) as usize, self.config.outer);
        let (loss, burst) = (self.estimate.loss(), self.estimate.burst());
        let wanted = loss::parity(k, loss, burst, self.config.residual, k.min(255));
        let longest = self.entries.range(offset..).map(|e| self.code.carried(&e.datagram)).max().unwrap_or(0);
        let each = f64::from(symbol_size(longest) + REPAIR_HEADER + outer);
        let parity = wanted.min((self.tokens / each).max(0.0) as u32) as u8;
        if parity > 0 {
            let datagrams = self.entries.range(offset..).map(|e| &e.datagram);
            self.code.encode(datagrams, parity, &mut self.fresh);
        }
        let made = self.fresh.len();
        if made == 0 {
            self.decide(block.first, k as u16, None);
        }
        self.tokens -= each * made as f64;
        let expires = now + self.config.fill_time + self.config.fill_time;
        for (index, symbol) in (0..=u8::MAX).zip(self.fresh.drain(..)) {
            let k = k as u16;
            self.symbols.push_back(Pending { first: block.first, k, parity, index, symbol, expires });
        }
    }

    /// No more symbols of a block will be sent after this frame, or after its datagrams.
    fn decide(&mut self, first: u64, k: u16, number: Option<u64>) {
        for seq in first.max(self.first)..first + u64::from(k) {
            if let Some(entry) = self.entries.get_mut((seq - self.first) as usize) {
                entry.decided = Some(number.unwrap_or(entry.number));
            }
        }
    }

    /// A repeat would come too late.
    fn hopeless(config: &Config, now: Instant, entry: &Entry<C::Sent>) -> bool {
        let bound = if config.resequence.is_zero() { KEPT } else { config.resequence };
        now >= entry.sent_at + bound
    }

    /// Forgets datagrams about which nothing more will be sent.
    fn forget(&mut self, now: Instant) {
        let open = self.block.map_or(u64::MAX, |b| b.first);
        while let Some(e) = self.entries.front() {
            let over = e.settled
                || Self::hopeless(&self.config, now, e)
                || e.decided.is_some() && e.repeats >= self.config.retries;
            if !over || self.first >= open {
                break;
            }
            let settled = e.settled;
            self.entries.pop_front();
            self.first += 1;
            if !settled {
                self.given_up = self.first;
            }
        }
    }

    /// The floor, unless the other end knows by its own reports that nothing is sent any more about datagrams below it.
    fn floor(&self) -> Option<u64> {
        (self.given_up > self.reported_base).then_some(self.first)
    }
    /// Size of the frame that carries a datagram, with numbers of so many bytes.
    fn frame_size(&self, datagram: &C::Sent, digits: u8) -> u32 {
        self.code.carried(datagram) + wire::source_header(digits, self.floor().is_some()) + self.config.outer
    }

    /// The datagram whose repeat is next, and its size.
    fn next_repeat(&mut self, now: Instant) -> Option<(u64, u32)> {
        while let Some(&seq) = self.repeats.front() {
            let entry = seq.checked_sub(self.first).and_then(|i| self.entries.get(i as usize));
            match entry {
                Some(e) if !e.settled && !Self::hopeless(&self.config, now, e) => {
                    return Some((seq, self.frame_size(&e.datagram, DIGITS)));
                }
                _ => self.repeats.pop_front(),
            };
        }
        None
    }

    /// Drops symbols whose turn did not come in time.
    fn expire(&mut self, now: Instant, counters: &mut Counters) {
        while let Some(symbol) = self.symbols.front().filter(|s| s.expires <= now) {
            let (first, k) = (symbol.first, symbol.k);
            self.symbols.pop_front();
            counters.expired_symbols += 1;
            if self.symbols.front().is_none_or(|next| next.first != first) {
                self.decide(first, k, self.next_number.checked_sub(1));
            }
        }
    }

    /// The next frame. `report` is what this end wants to report, if that is due.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        report: impl FnOnce() -> Option<Report>,
        counters: &mut Counters,
        lost: &mut impl FnMut(C::Sent, DropReason),
    ) -> Option<Output<C::Sent, C::Symbol>> {
        self.close(now);
        self.expire(now, counters);
        self.forget(now);
        if now < self.pacer.free_at() {
            return None;
        }
        if let Some(report) = report() {
            let (ranges, installed) = (report.missing.as_slice().len(), report.installed.as_slice().len());
            let lists = RANGE_SIZE * ranges as u32 + INSTALLED_SIZE * installed as u32;
            let size = REPORT_SIZE + lists + self.config.outer;
            counters.reports += 1;
            counters.report_bytes += u64::from(size);
            let number = self.take_number(now);
            return Some(self.sent(now, Frame { number, kind: Kind::Report(report) }, DIGITS, size, false));
        }
        self.fill_bucket(now);
        if let Some((seq, size)) = self.next_repeat(now) {
            if self.tokens >= f64::from(size) {
                return self.repeat(now, seq, size, counters);
            }
        }
        if !self.config.low_priority && !self.symbols.is_empty() {
            return self.symbol(now, counters);
        }
        match self.next_waiting(now, counters, lost) {
            Some(Waiting { datagram, passed: true }) => {
                counters.passed += 1;
                self.pacer.send(now, datagram.size());
                Some(Output::Plain(datagram))
            }
            Some(Waiting { datagram, passed: false }) => Some(self.source(now, datagram, counters, lost)),
            None => self.symbol(now, counters),
        }
    }

    /// The next datagram of the queue.
    fn next_waiting(
        &mut self,
        now: Instant,
        counters: &mut Counters,
        lost: &mut impl FnMut(C::Sent, DropReason),
    ) -> Option<Waiting<C::Sent>> {
        if self.aside.is_some() {
            return self.aside.take();
        }
        let mut gone = |w: Waiting<C::Sent>, why| {
            counters.dropped += 1;
            lost(w.datagram, why);
        };
        self.queue.dequeue(&mut Moment::new(now, &mut self.rng), &mut gone)
    }

    /// Other small datagrams of the queue join the one that leaves as number `seq`.
    fn bundle(
        &mut self,
        now: Instant,
        seq: u64,
        datagram: &mut C::Sent,
        counters: &mut Counters,
        lost: &mut impl FnMut(C::Sent, DropReason),
    ) {
        let room = self.config.largest_datagram();
        while let Some(next) = self.next_waiting(now, counters, lost) {
            let size = next.datagram.size();
            let small = size <= SMALL && !next.passed;
            if !small || !self.code.join(now, seq, datagram, &next.datagram, room) {
                self.aside = Some(next);
                break;
            }
            counters.joined += 1;
            counters.source_bytes += u64::from(size);
        }
    }

    fn take_number(&mut self, now: Instant) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.times.push_back((number, now));
        number
    }

    /// A frame leaves.
    fn sent(
        &mut self,
        now: Instant,
        frame: Frame<C::Sent, C::Symbol>,
        digits: u8,
        size: u32,
        low_priority: bool,
    ) -> Output<C::Sent, C::Symbol> {
        self.pacer.send(now, size);
        if !matches!(frame.kind, Kind::Report(_)) && self.config.retries > 0 {
            self.probe_at = now + self.patience();
        }
        Output::Frame { frame, digits, size, low_priority }
    }

    /// Time after which a report should have come: a round trip with a quarter more for its variation, the interval between reports,
    /// and 50 ms for queues. It doubles with each probe (RFC 9002 §6.2.1).
    fn patience(&self) -> Duration {
        let rtt = self.srtt.map_or(Duration::from_secs(1), |rtt| rtt.mul_f64(1.25));
        let once = rtt + self.config.report + Duration::from_millis(50);
        once.mul_f64(f64::from(1_u32 << self.probes.min(5)))
    }

    /// A datagram is sent for the first time.
    fn source(
        &mut self,
        now: Instant,
        mut datagram: C::Sent,
        counters: &mut Counters,
        lost: &mut impl FnMut(C::Sent, DropReason),
    ) -> Output<C::Sent, C::Symbol> {
        let (seq, whole) = (self.next_seq(), datagram.size());
        self.code.depart(now, seq, &mut datagram, self.config.largest_datagram());
        if self.config.bundle && whole <= SMALL {
            self.bundle(now, seq, &mut datagram, counters, lost);
        }
        let unknown = self.largest_reported.map_or(self.next_number, |n| self.next_number - n);
        let digits = wire::digits(unknown.max(seq - self.reported_next));
        let size = self.frame_size(&datagram, digits);
        let number = self.take_number(now);
        let coded = self.config.fec && (self.block.is_some() || self.estimate.loss() > 0.0);
        if coded {
            match &mut self.block {
                Some(block) => block.added = now,
                none => *none = Some(Block { first: seq, opened: now, added: now }),
            }
        }
        let floor = self.floor();
        self.entries.push_back(Entry {
            datagram: datagram.clone(),
            sent_at: now,
            number,
            decided: (!coded).then_some(number),
            repeats: 0,
            settled: false,
            again: false,
        });
        counters.sources += 1;
        counters.source_bytes += u64::from(whole);
        let carried = self.code.carried(&datagram);
        counters.carried_bytes += u64::from(carried);
        counters.header_bytes += u64::from(size - carried);
        self.probes = 0;
        let low_priority = datagram.low_priority();
        let frame = Frame { number, kind: Kind::Source { seq, floor, datagram } };
        let output = self.sent(now, frame, digits, size, low_priority);
        // A full block is closed at once, so that its symbols follow its last datagram.
        self.close(now);
        output
    }

    fn repeat(
        &mut self,
        now: Instant,
        seq: u64,
        size: u32,
        counters: &mut Counters,
    ) -> Option<Output<C::Sent, C::Symbol>> {
        self.repeats.pop_front();
        let number = self.take_number(now);
        let floor = self.floor();
        let entry = self.entries.get_mut(seq.checked_sub(self.first)? as usize)?;
        entry.number = number;
        entry.repeats += 1;
        entry.again = false;
        let datagram = entry.datagram.clone();
        self.tokens -= f64::from(size);
        counters.repeats += 1;
        counters.repeat_bytes += u64::from(size);
        let low_priority = datagram.low_priority();
        let frame = Frame { number, kind: Kind::Source { seq, floor, datagram } };
        Some(self.sent(now, frame, DIGITS, size, low_priority))
    }

    fn symbol(&mut self, now: Instant, counters: &mut Counters) -> Option<Output<C::Sent, C::Symbol>> {
        let Pending { first, k, parity, index, symbol, .. } = self.symbols.pop_front()?;
        let number = self.take_number(now);
        let size = C::size(&symbol) + REPAIR_HEADER + self.config.outer;
        counters.symbols += 1;
        counters.symbol_bytes += u64::from(size);
        if self.symbols.front().is_none_or(|next| next.first != first) {
            self.decide(first, k, Some(number));
        }
        let low_priority = self.config.low_priority;
        let frame = Frame { number, kind: Kind::Repair { first, k, parity, index, symbol } };
        Some(self.sent(now, frame, DIGITS, size, low_priority))
    }

    /// The other end reports. False if the report contradicts what was sent.
    pub(crate) fn reported(&mut self, now: Instant, report: &Report) -> bool {
        let end = self.next_seq();
        if report.largest >= self.next_number || report.next > end || report.base > report.next {
            return false;
        }
        while let Some(&(number, at)) = self.times.front().filter(|(n, _)| *n <= report.largest) {
            if number == report.largest {
                let sample = (now - at).saturating_sub(report.delay);
                self.srtt = Some(self.srtt.map_or(sample, |s| s.mul_f64(0.875) + sample.mul_f64(0.125)));
            }
            self.times.pop_front();
        }
        self.estimate.reported(report.received, report.lost, report.bursts);
        let newest = self.largest_reported.is_none_or(|largest| report.largest >= largest);
        if newest {
            self.largest_reported = Some(report.largest);
            self.probes = 0;
        }
        // Reports may overtake each other; what the other end knows only grows.
        self.reported_next = self.reported_next.max(report.next);
        self.reported_base = self.reported_base.max(report.base);
        for seq in report.installed.as_slice() {
            self.code.acknowledged(now, *seq);
        }
        let mut missing = report.missing.as_slice().iter().copied().peekable();
        let first = self.first;
        for (seq, entry) in (first..report.next).zip(&mut self.entries) {
            while missing.next_if(|(from, len)| from + u64::from(*len) <= seq).is_some() {}
            if seq < report.base || missing.peek().is_none_or(|(from, _)| seq < *from) {
                entry.settled = true;
                continue;
            }
            let passed = entry.decided.map(|decided| decided.max(entry.number) + PACKET_THRESHOLD);
            if newest
                && !entry.settled
                && !entry.again
                && entry.repeats < self.config.retries
                && passed.is_some_and(|passed| passed <= report.largest)
                && !Self::hopeless(&self.config, now, entry)
            {
                entry.again = true;
                self.repeats.push_back(seq);
            }
        }
        if newest && report.largest + 1 >= self.next_number {
            // No later frame will show that the last datagrams were lost and not overtaken.
            let open = self.config.retries > 0 && self.entries.iter().any(|e| !e.settled);
            self.probe_at = if open { now + self.patience() } else { Instant::MAX };
        }
        self.forget(now);
        true
    }

    /// No report has come: the newest datagram is repeated, so that one comes (the probe of RFC 9002 §6.2).
    fn probe(&mut self, now: Instant) {
        let retries = self.config.retries;
        let config = self.config;
        let may = |e: &Entry<C::Sent>| {
            !e.settled && !e.again && e.repeats < retries && !Self::hopeless(&config, now, e)
        };
        let Some(back) = self.entries.iter().rev().position(may) else {
            self.probe_at = Instant::MAX;
            return;
        };
        let index = self.entries.len() - 1 - back;
        self.entries[index].again = true;
        self.repeats.push_back(self.first + index as u64);
        self.probes += 1;
        self.probe_at = now + self.patience();
    }

    /// The time has come that [`Self::next_timeout`] has told.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.probe_at <= now {
            self.probe(now);
        }
        // Frames without a report in a long time will have none: they need no time any more.
        while self.times.front().is_some_and(|(_, at)| now - *at > KEPT) {
            self.times.pop_front();
        }
    }

    /// When a call is due. Frames, reports among them, are not due before the pacer lets the next one leave.
    pub(crate) fn next_timeout(&mut self, now: Instant, report_at: Instant) -> Instant {
        let free = self.pacer.free_at();
        let mut at = report_at.max(free).min(self.probe_at).min(self.closes().unwrap_or(Instant::MAX));
        if !self.queue.is_empty() || self.aside.is_some() || !self.symbols.is_empty() {
            at = at.min(free);
        }
        if let Some((_, size)) = self.next_repeat(now) {
            let short = (f64::from(size) - self.tokens).max(0.0);
            let rate = self.config.share * self.config.rate.bytes_per_sec();
            // A nanosecond more, so that rounding does not make the call too early.
            let wait = if short > 0.0 {
                Duration::from_secs_f64(short / rate) + Duration::from_nanos(1)
            } else {
                Duration::ZERO
            };
            at = at.min(free.max(self.filled_at + wait));
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet that differs from the default in everything that a queue asks for.
    #[derive(Clone, Debug, Default)]
    struct Scalable {
        marked: bool,
    }

    impl PacketView for Scalable {
        fn size(&self) -> u32 {
            100
        }
        fn low_priority(&self) -> bool {
            true
        }
        fn flow(&self) -> u32 {
            7
        }
        fn kind(&self) -> u8 {
            3
        }
        fn is_pure_ack(&self) -> bool {
            true
        }
        fn is_ect(&self) -> bool {
            true
        }
        fn is_l4s(&self) -> bool {
            true
        }
        fn mark_ce(&mut self) {
            self.marked = true;
        }
    }

    #[test]
    fn the_queue_sees_a_datagram_as_it_is() {
        let mut w = Waiting { datagram: Scalable::default(), passed: false };
        assert_eq!((w.size(), w.flow(), w.kind()), (100, 7, 3));
        assert!(w.low_priority() && w.is_pure_ack() && w.is_ect() && w.is_l4s());
        w.mark_ce();
        assert!(w.datagram.marked);
    }
}
