//! The receiving half: reassembly, SACK blocks, delayed acknowledgements, answers to probes, window.

use crate::autotune::Autotune;
use crate::config::{Config, DelayedAck};
use crate::error::Rejected;
use crate::segment::Mark;
use crate::store::Store;
use crate::wave::Waves;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::num::{NonZeroU16, NonZeroU32};
use skyhaul_base::{Duration, Instant};

/// Payload of an arriving segment, in stream offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data<'a> {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    /// The bytes, or empty where only lengths are kept.
    pub(crate) payload: &'a [u8],
    pub(crate) mark: Mark,
    pub(crate) probe_id: Option<u16>,
}

/// The answer to one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeAnswer {
    pub(crate) mark: Mark,
    pub(crate) id: Option<u16>,
    /// Range of the probe, reported as a duplicate.
    pub(crate) range: (u64, u64),
}

/// SACK blocks to report, in stream offsets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) blocks: [(u64, u64); 4],
    pub(crate) len: usize,
}

impl Blocks {
    fn push(&mut self, block: (u64, u64), most: usize) {
        if self.len < most.min(4) {
            self.blocks[self.len] = block;
            self.len += 1;
        }
    }
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Receiver<S: Store> {
    /// `RCV.NXT` as a stream offset.
    nxt: u64,
    /// In-order bytes the application has not read.
    unread: u64,
    /// Ranges received beyond `nxt`, disjoint and ascending.
    ooo: VecDeque<(u64, u64)>,
    /// A byte in each of the ranges reported last, the most recent first; 0 is none.
    recent: [u64; 4],
    duplicate: Option<(u64, u64)>,
    /// Acknowledgements that must leave now, each on its own: duplicates count at the peer.
    acks_due: u32,
    /// Acknowledgements of data in order that must leave now; a data segment may carry them.
    advance_due: u32,
    unacked: u32,
    delayed_until: Instant,
    delayed: DelayedAck,
    probe_answers: VecDeque<ProbeAnswer>,
    fin_at: Option<u64>,
    /// Right edge of the window announced; never moves left.
    edge: u64,
    buffer: u64,
    mss: u32,
    sack_blocks: usize,
    dsack: bool,
    answer_probes: bool,
    sink: bool,
    autotune: Option<Box<Autotune>>,
    waves: Waves,
    store: S,
}

impl<S: Store> Receiver<S> {
    /// A receiver that expects the byte after the peer's SYN.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            nxt: 1,
            unread: 0,
            ooo: VecDeque::new(),
            recent: [0; 4],
            duplicate: None,
            acks_due: 0,
            advance_due: 0,
            unacked: 0,
            delayed_until: Instant::MAX,
            delayed: config.delayed_ack,
            probe_answers: VecDeque::new(),
            fin_at: None,
            edge: 1 + config.first_receive_buffer(),
            buffer: config.first_receive_buffer(),
            mss: config.mss,
            sack_blocks: usize::from(config.sack_blocks.min(4)),
            dsack: config.dsack,
            answer_probes: false,
            sink: false,
            autotune: config
                .receive_autotuning
                .then(|| Box::new(Autotune::new(config.receive_buffer, config.mss))),
            waves: Waves::default(),
            store: S::default(),
        }
    }

    /// What the handshake agreed on.
    pub(crate) fn start(&mut self, sack: bool, answer_probes: bool) {
        if !sack {
            self.sack_blocks = 0;
        }
        self.answer_probes = answer_probes;
    }
    /// The application reads everything at once and looks at nothing.
    pub(crate) fn discard(&mut self) {
        self.sink = true;
        let n = self.unread;
        self.consume(n);
    }

    /// A data segment of a wave arrived.
    #[cold]
    pub(crate) fn measure(&mut self, now: Instant, wave: NonZeroU16, len: u32) {
        self.waves.arrived(now, wave, len);
    }
    /// The rate to report with an acknowledgement.
    #[inline]
    pub(crate) fn rate(&self) -> Option<NonZeroU32> {
        self.waves.rate()
    }

    /// `RCV.NXT` as a stream offset.
    #[must_use]
    pub fn next_expected(&self) -> u64 {
        self.nxt
    }
    /// Payload received in order, bytes.
    #[must_use]
    pub fn payload_received(&self) -> u64 {
        // Neither the SYN nor the FIN.
        self.nxt - 1 - u64::from(self.finished())
    }
    pub(crate) fn readable(&self) -> u64 {
        self.unread
    }
    /// All data and the FIN have arrived.
    pub(crate) fn finished(&self) -> bool {
        self.fin_at.is_some_and(|f| self.nxt > f)
    }
    /// The window to announce, bytes. Its right edge moves by at least one segment or half the buffer, and
    /// never back (RFC 9293 §3.8.6.2.2).
    pub(crate) fn window(&mut self) -> u64 {
        let edge = self.nxt + self.buffer.saturating_sub(self.unread);
        if edge >= self.edge + u64::from(self.mss).min(self.buffer / 2).max(1) {
            self.edge = edge;
        }
        self.edge.saturating_sub(self.nxt)
    }

    /// True if a segment of `span` at `seq` is acceptable (RFC 9293 §3.10.7.4).
    pub(crate) fn acceptable(&self, seq: u64, span: u32) -> bool {
        if span == 0 {
            // At the right edge, too: a peer that has filled the window acknowledges from there.
            return seq >= self.nxt && seq <= self.edge;
        }
        let end = seq + u64::from(span);
        let first = seq >= self.nxt && seq < self.edge;
        self.edge > self.nxt && (first || (end > self.nxt && end <= self.edge))
    }

    pub(crate) fn handle(&mut self, now: Instant, d: &Data<'_>) -> Result<(), Rejected> {
        let end = d.seq + u64::from(d.len);
        if d.mark.is_probe() && self.answer_probes {
            self.probe(d, end);
            return Ok(());
        }
        let span_end = end + u64::from(d.fin);
        if span_end <= self.nxt {
            // An old duplicate: the acknowledgement for it may have been lost.
            self.note_duplicate(d.seq, end);
            self.acks_due += 1;
            return Ok(());
        }
        if d.seq >= self.edge {
            self.acks_due += 1;
            return Err(Rejected::OutOfWindow);
        }
        if d.fin && end <= self.edge {
            self.fin_at = Some(end);
        }
        // What lies before RCV.NXT or beyond the window is cut off.
        let from = d.seq.max(self.nxt);
        let to = end.min(self.edge);
        if d.len > 0 && from < to {
            let bytes = d.payload.get((from - d.seq) as usize..(to - d.seq) as usize).unwrap_or_default();
            self.store.write_at(self.unread + (from - self.nxt), bytes);
        }
        if from > self.nxt {
            if to > from {
                self.insert(from, to);
            }
            // Out of order: never delayed, one acknowledgement per segment (RFC 5681 §4.2).
            self.acks_due += 1;
            return Ok(());
        }
        if d.seq < self.nxt && d.len > 0 {
            self.note_duplicate(d.seq, self.nxt.min(end));
        }
        let filled_gap = !self.ooo.is_empty();
        self.advance(to.max(self.nxt));
        if let Some(tune) = &mut self.autotune {
            self.buffer = tune.arrived(now, self.nxt, self.nxt - self.unread, self.edge, self.buffer);
        }
        let finished = self.take_fin();
        if !self.ooo.is_empty() {
            self.acks_due += 1; // with SACK blocks, which data segments do not carry
        } else if filled_gap || finished || self.delayed.delay.is_zero() || self.delayed.every <= 1 {
            self.advance_due += 1;
        } else {
            self.unacked += 1;
            if self.unacked >= self.delayed.every {
                self.advance_due += 1;
            } else if self.delayed_until == Instant::MAX {
                self.delayed_until = now + self.delayed.delay;
            }
        }
        Ok(())
    }

    /// A dummy is answered and forgotten; a NIL segment's payload is kept.
    fn probe(&mut self, d: &Data<'_>, end: u64) {
        let mark = if d.mark == Mark::Nil { Mark::NilAck } else { Mark::DummyAck };
        if d.mark == Mark::Nil && end > self.nxt && d.seq < self.edge {
            let (from, to) = (d.seq.max(self.nxt), end.min(self.edge));
            let bytes = d.payload.get((from - d.seq) as usize..(to - d.seq) as usize).unwrap_or_default();
            self.store.write_at(self.unread + (from - self.nxt), bytes);
            if from > self.nxt {
                self.insert(from, to);
            } else {
                self.advance(to);
                self.take_fin();
            }
        }
        self.probe_answers.push_back(ProbeAnswer { mark, id: d.probe_id, range: (d.seq, end) });
    }

    pub(crate) fn note_duplicate(&mut self, from: u64, to: u64) {
        if self.dsack && from < to {
            self.duplicate = Some((from, to));
        }
    }

    /// Adds `[from, to)` to the ranges beyond a gap.
    fn insert(&mut self, from: u64, to: u64) {
        // Most arrivals extend the last range.
        let first = match self.ooo.back() {
            Some(&(_, e)) if e < from => self.ooo.len(),
            _ => self.ooo.partition_point(|&(_, e)| e < from),
        };
        let mut merged = (from, to);
        let mut last = first;
        while let Some(&(s, e)) = self.ooo.get(last) {
            if s > to {
                break;
            }
            if s <= from && to <= e {
                self.note_duplicate(from, to);
            }
            merged = (merged.0.min(s), merged.1.max(e));
            last += 1;
        }
        if last == first {
            self.ooo.insert(first, merged);
        } else {
            self.ooo[first] = merged;
            if last > first + 1 {
                self.ooo.drain(first + 1..last);
            }
        }
        self.report_first(from, merged);
    }

    /// RFC 2018 §4: the block with the segment that triggered the acknowledgement comes first, then the blocks
    /// reported most recently.
    fn report_first(&mut self, point: u64, range: (u64, u64)) {
        let mut keep = [0; 4];
        keep[0] = point;
        let mut n = 1;
        for &p in &self.recent {
            if p > self.nxt && !(range.0 <= p && p < range.1) && n < 4 {
                keep[n] = p;
                n += 1;
            }
        }
        self.recent = keep;
    }

    fn advance(&mut self, to: u64) {
        let old = self.nxt;
        self.nxt = self.nxt.max(to);
        while let Some(&(s, e)) = self.ooo.front() {
            if s > self.nxt {
                break;
            }
            self.nxt = self.nxt.max(e);
            self.ooo.pop_front();
        }
        self.unread += self.nxt - old;
        if self.sink {
            let n = self.unread;
            self.consume(n);
        }
    }

    fn take_fin(&mut self) -> bool {
        if self.fin_at == Some(self.nxt) {
            self.nxt += 1;
            return true;
        }
        false
    }

    fn consume(&mut self, n: u64) {
        self.store.release(n);
        self.unread -= n;
    }

    /// Copies unread bytes to `out`, or only counts `n` of them where none are kept. Returns how many.
    pub(crate) fn read(&mut self, out: &mut [u8], n: u64) -> u64 {
        let n = n.min(self.unread);
        let bytes = (out.len() as u64).min(n) as usize;
        self.store.read_at(0, &mut out[..bytes]);
        self.consume(n);
        n
    }
    /// After a read: an acknowledgement tells the peer of a window that has opened, unless one is due anyway.
    pub(crate) fn tell_window(&mut self) {
        let edge = self.nxt + self.buffer.saturating_sub(self.unread);
        let opened = edge >= self.edge + (2 * u64::from(self.mss)).min(self.buffer / 2).max(1);
        if opened && self.acks_due + self.advance_due == 0 {
            self.acks_due = 1;
        }
    }
    pub(crate) fn ack_now(&mut self) {
        self.acks_due += 1;
    }

    /// An acknowledgement is owed, which a data segment may carry.
    pub(crate) fn ack_or_data(&mut self) {
        self.advance_due += 1;
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        self.delayed_until
    }
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.delayed_until <= now {
            self.delayed_until = Instant::MAX;
            if self.unacked > 0 {
                self.advance_due += 1;
            }
        }
    }

    /// One owed acknowledgement, if there is one.
    #[inline]
    pub(crate) fn poll_ack(&mut self) -> bool {
        if self.advance_due > 0 {
            self.advance_due -= 1;
        } else if self.acks_due > 0 {
            self.acks_due -= 1;
        } else {
            return false;
        }
        self.unacked = 0;
        self.delayed_until = Instant::MAX;
        true
    }
    pub(crate) fn poll_probe_answer(&mut self) -> Option<ProbeAnswer> {
        self.probe_answers.pop_front()
    }
    /// A data segment leaves and carries the acknowledgement of what arrived in order. A pure acknowledgement
    /// after it would look like a duplicate.
    #[inline]
    pub(crate) fn carried(&mut self) {
        self.advance_due = 0;
        self.unacked = 0;
        self.delayed_until = Instant::MAX;
    }

    /// The SACK blocks of the acknowledgement about to leave. A duplicate is reported once, first (RFC 2883).
    pub(crate) fn blocks(&mut self, probe: Option<(u64, u64)>) -> Blocks {
        let mut out = Blocks::default();
        let most = self.sack_blocks;
        if most == 0 {
            return out;
        }
        // A dummy may copy data that is missing here; reported as a duplicate it would pass for received.
        let duplicate = match probe {
            Some(p) => Some(p).filter(|&p| self.dsack && self.holds(p)),
            None => self.duplicate.take(),
        };
        if let Some(d) = duplicate {
            out.push(d, most);
            if d.0 >= self.nxt {
                // A duplicate beyond the gap is recognised by lying inside the second block.
                if let Some(range) = self.range_of(d.0) {
                    out.push(range, most);
                }
            }
        }
        if !self.ooo.is_empty() {
            for i in 0..4 {
                let p = self.recent[i];
                if p < self.nxt || p == 0 {
                    continue;
                }
                if let Some(range) = self.range_of(p) {
                    let seen =
                        out.blocks[usize::from(duplicate.is_some()).min(out.len)..out.len].contains(&range);
                    if !seen {
                        out.push(range, most);
                    }
                }
            }
        }
        out
    }

    /// True if all of `[from, to)` was received.
    fn holds(&self, (from, to): (u64, u64)) -> bool {
        to <= self.nxt || self.range_of(from).is_some_and(|(_, end)| to <= end)
    }

    fn range_of(&self, point: u64) -> Option<(u64, u64)> {
        let i = self.ooo.partition_point(|&(_, e)| e <= point);
        self.ooo.get(i).copied().filter(|&(s, _)| s <= point)
    }

    /// Delay of the acknowledgement timer in force, for tests and tools.
    #[must_use]
    pub fn delayed_ack(&self) -> Duration {
        self.delayed.delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Counted;
    use alloc::vec::Vec;

    fn receiver(config: &Config) -> Receiver<Counted> {
        let mut r = Receiver::new(config);
        r.start(true, true);
        r.discard();
        r
    }
    fn seg(seq: u64, len: u32) -> Data<'static> {
        Data { seq, len, fin: false, payload: &[], mark: Mark::None, probe_id: None }
    }
    fn blocks(r: &mut Receiver<Counted>) -> Vec<(u64, u64)> {
        let b = r.blocks(None);
        b.blocks[..b.len].to_vec()
    }
    fn config() -> Config {
        Config { mss: 100, receive_buffer: 100_000, dsack: true, sack_blocks: 4, ..Config::ns2_2001() }
    }

    #[test]
    fn blocks_come_in_the_order_of_rfc_2018() {
        let mut r = receiver(&config());
        for s in [201, 401, 601, 801, 301] {
            r.handle(Instant::ZERO, &seg(s, 100)).unwrap();
            assert!(r.poll_ack());
        }
        // The trigger 301 bridged 201 and 401: that block first, then 801, 601.
        assert_eq!(blocks(&mut r), [(201, 501), (801, 901), (601, 701)]);
        r.handle(Instant::ZERO, &seg(1, 200)).unwrap();
        assert_eq!(r.next_expected(), 501);
        assert_eq!(blocks(&mut r), [(801, 901), (601, 701)]);
    }

    #[test]
    fn duplicates_are_reported_once() {
        let mut r = receiver(&config());
        r.handle(Instant::ZERO, &seg(1, 100)).unwrap();
        r.handle(Instant::ZERO, &seg(1, 100)).unwrap();
        assert_eq!(blocks(&mut r), [(1, 101)]);
        assert!(blocks(&mut r).is_empty());
        r.handle(Instant::ZERO, &seg(301, 100)).unwrap();
        r.handle(Instant::ZERO, &seg(401, 100)).unwrap();
        r.handle(Instant::ZERO, &seg(301, 100)).unwrap();
        assert_eq!(blocks(&mut r), [(301, 401), (301, 501)], "beyond the gap: inside the second block");
        assert_eq!(blocks(&mut r), [(301, 501)]);
    }

    #[test]
    fn every_second_segment_is_acknowledged_or_the_timer_fires() {
        let delay = Duration::from_millis(200);
        let mut r = receiver(&Config { delayed_ack: DelayedAck { every: 2, delay }, ..config() });
        r.handle(Instant::ZERO, &seg(1, 100)).unwrap();
        assert!(!r.poll_ack());
        assert_eq!(r.next_timeout(), Instant::ZERO + delay);
        r.handle(Instant::ZERO, &seg(101, 100)).unwrap();
        assert!(r.poll_ack() && !r.poll_ack());
        assert_eq!(r.next_timeout(), Instant::MAX);
        r.handle(Instant::ZERO, &seg(201, 100)).unwrap();
        r.handle_timeout(Instant::ZERO + delay);
        assert!(r.poll_ack());
        // Out of order, and filling a gap: at once.
        r.handle(Instant::ZERO, &seg(401, 100)).unwrap();
        assert!(r.poll_ack());
        r.handle(Instant::ZERO, &seg(301, 100)).unwrap();
        assert!(r.poll_ack());
    }

    #[test]
    fn dummies_touch_nothing_and_are_answered_one_by_one() {
        let mut r = receiver(&config());
        let dummy = Data { mark: Mark::Dummy, probe_id: Some(7), ..seg(101, 100) };
        r.handle(Instant::ZERO, &dummy).unwrap();
        r.handle(Instant::ZERO, &dummy).unwrap();
        assert_eq!(r.next_expected(), 1);
        assert!(!r.poll_ack() && blocks(&mut r).is_empty());
        for _ in 0..2 {
            let a = r.poll_probe_answer().unwrap();
            assert_eq!((a.mark, a.id, a.range), (Mark::DummyAck, Some(7), (101, 201)));
            assert_eq!(r.blocks(Some(a.range)).len, 0, "what is missing is no duplicate");
        }
        assert!(r.poll_probe_answer().is_none());
    }

    #[test]
    fn a_reader_that_stalls_closes_the_window_and_never_shrinks_it() {
        let mut r: Receiver<Counted> = Receiver::new(&Config { receive_buffer: 300, ..config() });
        assert_eq!(r.window(), 300);
        r.handle(Instant::ZERO, &seg(1, 300)).unwrap();
        assert_eq!(r.window(), 0);
        assert_eq!(r.read(&mut [], 50), 50);
        assert_eq!(r.window(), 0, "a sliver is not announced");
        r.read(&mut [], 60);
        assert_eq!(r.window(), 110);
        assert_eq!(r.handle(Instant::ZERO, &seg(601, 100)), Err(Rejected::OutOfWindow));
    }
}
