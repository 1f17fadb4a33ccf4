//! The receiving half: reassembly, SACK blocks, delayed acknowledgements, answers to probes, window.
//!
//! Data in order touches a few words. What lies beyond a gap has a state of its own ([`Beyond`]) that comes with the
//! first gap and goes with the last.

mod beyond;

use crate::autotune::Autotune;
use crate::config::{AckCc, Config, DelayedAck, LossDetection};
use crate::error::Rejected;
use crate::segment::Mark;
use crate::store::Store;
use crate::wave::Meter;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use beyond::Beyond;
use core::num::{NonZeroU16, NonZeroU32};
use skyhaul_base::{Duration, Instant};

/// Payload of an arriving segment, in stream offsets.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Offset of the first byte; the first byte of data has offset 1.
    pub seq: u64,
    /// Payload, bytes.
    pub len: u32,
    /// A FIN follows the last byte.
    pub fin: bool,
    /// The bytes, or empty where only lengths are kept.
    pub payload: &'a [u8],
    /// Probe mark.
    pub mark: Mark,
    /// Number of the probe, where probes carry numbers.
    pub probe_id: Option<u16>,
}

/// The answer to one probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// Mark of the answer.
    pub mark: Mark,
    /// Number of the probe.
    pub id: Option<u16>,
    /// Range of the probe, reported as a duplicate.
    pub range: (u64, u64),
}

/// SACK blocks to report, in stream offsets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Blocks {
    blocks: [(u64, u64); 4],
    len: usize,
}

impl Blocks {
    /// The blocks, first the one to be reported first.
    #[must_use]
    pub fn as_slice(&self) -> &[(u64, u64)] {
        &self.blocks[..self.len]
    }
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
    /// Right edge of the window announced; never moves left.
    edge: u64,
    /// In-order bytes the application has not read.
    unread: u64,
    /// Receive buffer, bytes.
    buffer: u64,
    /// What the field of a segment can announce at most, bytes.
    announces: u32,
    /// What memory allows of the buffer, bytes.
    allowed: u32,
    /// What has arrived beyond a gap, or is to be reported as a duplicate.
    beyond: Option<Box<Beyond>>,
    delayed_until: Instant,
    /// Acknowledgements that must leave now, each on its own: duplicates count at the peer.
    acks_due: u32,
    /// Acknowledgements of data in order that must leave now; a data segment may carry them.
    advance_due: u32,
    unacked: u32,
    sack_blocks: u8,
    answer_probes: bool,
    sink: bool,
    /// `RCV.NXT` of a FIN that has arrived; [`NO_FIN`] before.
    fin_at: u64,
    config: Arc<Config>,
    probe_answers: Option<Box<Answers>>,
    autotune: Option<Box<Autotune>>,
    waves: Option<Box<Meter>>,
    store: S,
}

/// Answers that probes are owed.
#[derive(Debug, Default)]
struct Answers(VecDeque<ProbeAnswer>);

/// How far back a copy of data may lie, in receive windows: one that was in flight when it left, and one that overtook it
/// in a queue where it has to wait.
const WINDOWS_BACK: u64 = 2;

/// Ranges beyond gaps that are kept in any case, and the segment size, bytes, for which a buffer may hold one range per
/// segment: the default of RFC 9293 §3.7.1.
const FEW_RANGES: u64 = 64;
const SENSIBLE: u32 = 536;

/// Limits of windows: no segment can announce more.
const UNLIMITED: u32 = u32::MAX;

fn limit(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(UNLIMITED)
}

/// No FIN has arrived.
const NO_FIN: u64 = u64::MAX;

impl<S: Store> Receiver<S> {
    /// A receiver that expects the byte after the peer's SYN.
    #[must_use]
    pub fn new(config: &Arc<Config>) -> Self {
        let autotune = || Box::new(Autotune::new(config.receive_buffer, config.mss));
        Self {
            nxt: 1,
            edge: 1 + config.first_receive_buffer(),
            unread: 0,
            buffer: config.first_receive_buffer(),
            announces: UNLIMITED,
            allowed: UNLIMITED,
            beyond: None,
            delayed_until: Instant::MAX,
            acks_due: 0,
            advance_due: 0,
            unacked: 0,
            sack_blocks: config.sack_blocks.min(4),
            answer_probes: false,
            sink: false,
            fin_at: NO_FIN,
            probe_answers: None,
            autotune: config.receive_autotuning.then(autotune),
            waves: None,
            store: S::default(),
            config: Arc::clone(config),
        }
    }

    /// What the handshake agreed on.
    pub fn start(&mut self, sack: bool, answer_probes: bool, stamped: bool) {
        if stamped {
            // What is left of the room for options (RFC 2018 §3).
            self.sack_blocks = self.sack_blocks.min(3);
        }
        if !sack {
            self.sack_blocks = 0;
        }
        self.answer_probes = answer_probes;
    }
    /// The hole that the acknowledgement about to leave names, where this end does such a thing (SCPS-TP's SNACK). A peer that does
    /// not passes it over. To be asked before [`Self::blocks`], which may forget what there is.
    pub(crate) fn named_hole(&mut self) -> Option<(u64, u64)> {
        let nxt = self.nxt;
        let names = self.config.loss_detection == LossDetection::Snack && self.sack_blocks > 0;
        self.beyond.as_mut().filter(|_| names)?.hole(nxt)
    }
    /// What the window field of a SYN says at most; nothing has been announced before.
    pub(crate) fn begin_at_most(&mut self, bytes: u64) {
        self.announces = limit(bytes);
        self.edge = self.nxt + self.room();
    }
    /// What the window field of a segment says at most from now on, bytes: with the scale that was agreed on.
    pub(crate) fn announce_at_most(&mut self, bytes: u64) {
        self.announces = limit(bytes);
        // At once: a step of the window would be told by an acknowledgement that looks like a duplicate.
        self.edge = self.edge.max(self.nxt + self.room());
    }
    /// The application reads everything at once and looks at nothing.
    pub fn discard(&mut self) {
        self.sink = true;
        let n = self.unread;
        self.consume(n);
    }

    /// A data segment of a wave arrived.
    #[cold]
    pub fn measure(&mut self, now: Instant, wave: NonZeroU16, len: u32) {
        self.waves.get_or_insert_default().arrived(now, wave, len);
    }
    /// The rate to report with an acknowledgement.
    #[inline]
    #[must_use]
    pub fn rate(&self) -> Option<NonZeroU32> {
        self.waves.as_ref().and_then(|w| w.rate())
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
        self.nxt > self.fin_at
    }
    /// The window to announce, bytes. Its right edge moves by at least one segment or half the buffer, and
    /// never back (RFC 9293 §3.8.6.2.2).
    #[inline(always)]
    pub fn window(&mut self) -> u64 {
        let edge = self.nxt + self.room();
        if edge >= self.edge + u64::from(self.config.mss).min(self.buffer / 2).max(1) {
            self.edge = edge;
        }
        self.edge.saturating_sub(self.nxt)
    }

    /// What could be announced now, bytes.
    #[inline(always)]
    fn room(&self) -> u64 {
        self.buffer.min(self.allowed.into()).saturating_sub(self.unread).min(self.announces.into())
    }

    /// The window last announced, less what has arrived since, bytes.
    pub(crate) fn announced(&self) -> u64 {
        self.edge.saturating_sub(self.nxt)
    }

    /// True if a segment of `span` at `seq` is acceptable (RFC 9293 §3.10.7.4).
    #[inline]
    #[must_use]
    pub fn acceptable(&self, seq: u64, span: u32) -> bool {
        if span == 0 {
            // At the right edge, too: a peer that has filled the window acknowledges from there.
            return seq >= self.nxt && seq <= self.edge;
        }
        let end = seq + u64::from(span);
        let first = seq >= self.nxt && seq < self.edge;
        self.edge > self.nxt && (first || (end > self.nxt && end <= self.edge))
    }

    /// True if text up to `end`, and a FIN there if `fin`, contradict a FIN or text that has arrived: nothing lies beyond a
    /// FIN (RFC 9293 §3.10.7.4).
    #[inline]
    pub(crate) fn contradicts_end(&self, end: u64, fin: bool) -> bool {
        end > self.fin_at || (fin && self.contradicts_text(end))
    }
    /// Whether a FIN at `end` contradicts what has arrived.
    #[cold]
    fn contradicts_text(&self, end: u64) -> bool {
        if self.fin_at != NO_FIN {
            return end != self.fin_at || end < self.nxt;
        }
        end < self.nxt || self.beyond.as_ref().is_some_and(|b| b.end() > end)
    }

    /// Probes are understood and answered.
    #[inline]
    pub(crate) fn answers_probes(&self) -> bool {
        self.answer_probes
    }
    /// How long a segment may live in the network: half of the time in TIME-WAIT.
    pub(crate) fn lifetime(&self) -> Duration {
        self.config.time_wait / 2
    }
    /// True if what begins at `seq` may be a copy that was sent lately.
    pub(crate) fn is_recent(&self, seq: u64) -> bool {
        seq > 0 && seq + WINDOWS_BACK * self.buffer >= self.nxt
    }
    /// Whether a probe may lie there. It copies what was sent, so that its data may have arrived long ago, but no more than
    /// two receive windows have arrived since; and it is within the window that was announced.
    ///
    /// # Errors
    /// Says why it is none.
    pub(crate) fn admits_probe(&self, seq: u64, len: u32) -> Result<(), Rejected> {
        let end = seq + u64::from(len);
        if len == 0 || end > self.edge || !self.is_recent(seq) {
            return Err(Rejected::OutOfWindow);
        }
        if self.contradicts_end(end, false) { Err(Rejected::BeyondFin) } else { Ok(()) }
    }
    /// What the answers to copies may cost in one round trip, bytes: two windows, since those of one round trip may arrive
    /// in the time of half of one.
    pub(crate) fn ration(&self) -> u64 {
        2 * self.buffer
    }

    /// Payload or a FIN has arrived. What it owes the peer is polled for afterwards.
    ///
    /// # Errors
    /// Says why it was dropped.
    #[inline]
    pub fn handle(&mut self, now: Instant, d: &Data<'_>) -> Result<(), Rejected> {
        let plain = !d.fin && d.mark == Mark::None && d.len > 0;
        if d.seq == self.nxt && plain && self.admits_in_order(d.len) {
            self.take_in_order(now, d.len);
            return Ok(());
        }
        self.handle_any(now, d)
    }

    /// Header prediction: the next `len` bytes in order are welcome, and nothing but their number matters.
    #[inline]
    #[must_use]
    pub fn admits_in_order(&self, len: u32) -> bool {
        self.sink
            && !S::KEEPS
            && self.nxt + u64::from(len) <= self.edge
            && self.beyond.is_none()
            && self.autotune.is_none()
            && self.fin_at == NO_FIN
    }
    /// So many bytes have arrived in order, where [`Self::admits_in_order`].
    #[inline]
    pub fn take_in_order(&mut self, now: Instant, len: u32) {
        self.nxt += u64::from(len);
        self.owe(now);
    }
    /// An acknowledgement has more to report than how far the data reaches.
    #[inline]
    #[must_use]
    pub fn has_more_to_say(&self) -> bool {
        self.beyond.is_some() || self.waves.is_some()
    }

    /// Data in order is acknowledged at once, or with the next one, or when the timer says so.
    #[inline]
    fn owe(&mut self, now: Instant) {
        let delayed = &self.config.delayed_ack;
        if delayed.delay.is_zero() || delayed.every <= 1 {
            self.advance_due += 1;
            return;
        }
        self.unacked += 1;
        if self.unacked >= delayed.every {
            self.advance_due += 1;
        } else if self.delayed_until == Instant::MAX {
            self.delayed_until = now + delayed.delay;
        }
    }

    /// Out of order: never delayed, one acknowledgement per segment (RFC 5681 §4.2). Where the peer asks for fewer than
    /// every second, three at once, which tell of the loss, and then as many as it asks for (RFC 5690 §4.6).
    fn owe_duplicate(&mut self, now: Instant) {
        if self.config.ack_cc == AckCc::None || self.config.delayed_ack.every <= 2 {
            self.acks_due += 1;
            return;
        }
        let beyond = self.beyond();
        beyond.told = beyond.told.saturating_add(1);
        if beyond.told <= 3 {
            self.acks_due += 1;
        } else {
            self.owe(now);
        }
    }

    fn handle_any(&mut self, now: Instant, d: &Data<'_>) -> Result<(), Rejected> {
        let end = d.seq + u64::from(d.len);
        if d.mark.is_probe() && self.answer_probes {
            self.probe(d, false);
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
        // What lies before RCV.NXT or beyond the window is cut off.
        let from = d.seq.max(self.nxt);
        let to = end.min(self.edge);
        if self.is_one_too_many(from, to) {
            self.acks_due += 1;
            return Ok(());
        }
        if d.fin && end <= self.edge {
            self.fin_at = end;
        }
        if d.len > 0 && from < to {
            let bytes = d.payload.get((from - d.seq) as usize..(to - d.seq) as usize).unwrap_or_default();
            self.store.write_at(self.unread + (from - self.nxt), bytes);
        }
        if from > self.nxt {
            // A FIN has a number, and is reported with what lies before it: its segment would be taken for lost otherwise.
            let to = to + u64::from(self.fin_at == to && d.fin);
            if to > from {
                self.insert(from, to);
            }
            self.owe_duplicate(now);
            return Ok(());
        }
        if d.seq < self.nxt && d.len > 0 {
            self.note_duplicate(d.seq, self.nxt.min(end));
        }
        let filled_gap = self.has_gap();
        self.advance(to.max(self.nxt));
        if let Some(tune) = self.autotune.as_mut().filter(|_| self.allowed == UNLIMITED) {
            self.buffer = tune.arrived(now, self.nxt, self.nxt - self.unread, self.edge, self.buffer);
        }
        let finished = self.take_fin();
        if self.has_gap() {
            self.acks_due += 1; // with SACK blocks, which data segments do not carry
        } else if filled_gap || finished {
            self.advance_due += 1;
        } else {
            self.owe(now);
        }
        Ok(())
    }

    /// A probe that was admitted. A dummy is answered and forgotten; a NIL segment's payload is kept, unless the segment is
    /// `old` by its timestamp: the payload may then be of another round of the sequence numbers (RFC 7323 §5).
    pub(crate) fn probe(&mut self, d: &Data<'_>, old: bool) {
        let end = d.seq + u64::from(d.len);
        let mark = if d.mark == Mark::Nil { Mark::NilAck } else { Mark::DummyAck };
        let (from, to) = (d.seq.max(self.nxt), end.min(self.edge));
        if d.mark == Mark::Nil && !old && from < to && !self.is_one_too_many(from, to) {
            let bytes = d.payload.get((from - d.seq) as usize..(to - d.seq) as usize).unwrap_or_default();
            self.store.write_at(self.unread + (from - self.nxt), bytes);
            if from > self.nxt {
                // That it was there the answer reports, once.
                let nxt = self.nxt;
                self.beyond().insert(from, to, nxt);
            } else {
                self.advance(to);
                self.take_fin();
            }
        }
        self.probe_answers.get_or_insert_default().0.push_back(ProbeAnswer {
            mark,
            id: d.probe_id,
            range: (d.seq, end),
        });
    }

    /// Something that had arrived before has arrived again.
    pub fn note_duplicate(&mut self, from: u64, to: u64) {
        if self.config.dsack && from < to {
            self.beyond().duplicate = Some((from, to));
        }
    }

    fn beyond(&mut self) -> &mut Beyond {
        self.beyond.get_or_insert_default()
    }
    /// Something has arrived beyond a gap.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        self.beyond.as_ref().is_some_and(|b| !b.is_empty())
    }

    /// Whether `[from, to)` would make one range more than segments of a sensible size can: who sends crumbs with gaps
    /// between them must not make us keep, and search, an account of each. It is dropped as if the path had lost it.
    fn is_one_too_many(&self, from: u64, to: u64) -> bool {
        let Some(beyond) = &self.beyond else { return false };
        let ranges = beyond.len() as u64;
        if ranges < FEW_RANGES || from <= self.nxt || from >= to {
            return false;
        }
        let size = u64::from(self.config.mss.clamp(1, SENSIBLE));
        ranges >= FEW_RANGES + self.buffer / size && beyond.is_apart(from, to)
    }

    /// Adds `[from, to)` to the ranges beyond a gap.
    fn insert(&mut self, from: u64, to: u64) {
        let nxt = self.nxt;
        if let Some((from, to)) = self.beyond().insert(from, to, nxt) {
            self.note_duplicate(from, to);
        }
    }

    fn advance(&mut self, to: u64) {
        let old = self.nxt;
        self.nxt = self.nxt.max(to);
        if let Some(beyond) = &mut self.beyond {
            self.nxt = beyond.advance(self.nxt);
            if beyond.is_over() {
                self.beyond = None;
            }
        }
        let has_fin = old <= self.fin_at && self.finished();
        self.unread += self.nxt - old - u64::from(has_fin);
        if self.sink {
            let n = self.unread;
            self.consume(n);
        }
    }

    /// Memory that payload takes, bytes: all of it, and what lies beyond a gap; and what the account of that takes.
    pub(crate) fn held(&self) -> (usize, usize, usize) {
        let ranges = self.beyond.as_ref().map_or(0, |b| b.held());
        let answers = self.probe_answers.as_ref().map_or(0, |a| a.0.capacity() * size_of::<ProbeAnswer>());
        (self.store.held(), self.store.beyond(), ranges + answers)
    }
    /// Gives room back that nothing is in.
    pub(crate) fn trim(&mut self) {
        self.store.trim();
        if let Some(beyond) = &mut self.beyond {
            beyond.trim();
        }
        if self.probe_answers.as_ref().is_some_and(|a| a.0.is_empty()) {
            self.probe_answers = None;
        }
    }
    /// Memory is short: no more than so many bytes of the buffer are offered from now on, but the right edge of what was
    /// offered stays (RFC 9293 §3.8.6.2.1); the buffer does not grow. `u64::MAX`: it is short no more.
    pub(crate) fn offer_at_most(&mut self, bytes: u64) {
        if self.allowed == limit(bytes) {
            return;
        }
        self.allowed = limit(bytes);
        let read = self.nxt - self.unread;
        if let Some(tune) = &mut self.autotune {
            tune.begin_anew(read);
        }
    }
    /// Forgets what lies beyond a gap, although it was reported: the sender has to keep it until it is acknowledged
    /// (RFC 2018 §8).
    pub(crate) fn renege(&mut self) {
        self.store.truncate(self.unread);
        if let Some(beyond) = &mut self.beyond {
            beyond.forget();
            if beyond.is_over() {
                self.beyond = None;
            }
        }
    }

    fn take_fin(&mut self) -> bool {
        if self.fin_at == self.nxt {
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
        let edge = self.nxt + self.room();
        let opened = edge >= self.edge + (2 * u64::from(self.config.mss)).min(self.buffer / 2).max(1);
        if opened && self.acks_due + self.advance_due == 0 {
            self.acks_due = 1;
        }
    }
    /// One acknowledgement for every so many segments from now on, as the peer asks; one that is held back waits for `most` at
    /// the longest.
    #[cold]
    pub(crate) fn acknowledge_every(&mut self, segments: u32, most: Duration) {
        let old = self.config.delayed_ack;
        let delay = if old.delay.is_zero() { most } else { old.delay };
        let new = DelayedAck { every: segments.max(1), delay };
        if new != old {
            // Rarely, and only where it is agreed on: the configuration of the others stays shared.
            self.config = Arc::new(Config { delayed_ack: new, ..*self.config });
        }
    }
    /// An acknowledgement is owed, on its own.
    pub fn ack_now(&mut self) {
        self.acks_due += 1;
    }

    /// An acknowledgement is owed, which a data segment may carry.
    pub(crate) fn ack_or_data(&mut self) {
        self.advance_due += 1;
    }

    /// When an acknowledgement that is held back has to leave; [`Instant::MAX`] if none is.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.delayed_until
    }
    /// Handles that deadline, if it has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.delayed_until <= now {
            self.delayed_until = Instant::MAX;
            if self.unacked > 0 {
                self.advance_due += 1;
            }
        }
    }

    /// One owed acknowledgement, if there is one.
    #[inline]
    pub fn poll_ack(&mut self) -> bool {
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
    /// Nothing is owed to the peer now.
    #[inline]
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        let answers = self.probe_answers.as_ref();
        self.advance_due == 0 && self.acks_due == 0 && answers.is_none_or(|a| a.0.is_empty())
    }
    /// The answer to the oldest probe that was not answered yet.
    #[inline]
    pub fn poll_probe_answer(&mut self) -> Option<ProbeAnswer> {
        self.probe_answers.as_mut()?.0.pop_front()
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
    #[inline]
    pub fn blocks(&mut self, probe: Option<(u64, u64)>) -> Blocks {
        if self.sack_blocks == 0 || (self.beyond.is_none() && probe.is_none()) {
            return Blocks::default();
        }
        self.blocks_to_report(probe)
    }

    fn blocks_to_report(&mut self, probe: Option<(u64, u64)>) -> Blocks {
        let mut out = Blocks::default();
        let (nxt, most) = (self.nxt, usize::from(self.sack_blocks));
        // A dummy may copy data that is missing here; reported as a duplicate it would pass for received.
        let duplicate = match probe {
            Some(p) => Some(p).filter(|&p| self.config.dsack && self.holds(p)),
            None => self.beyond().duplicate.take(),
        };
        if let Some(d) = duplicate {
            out.push(d, most);
            if d.0 >= nxt {
                // A duplicate beyond the gap is recognised by lying inside the second block.
                if let Some(range) = self.beyond().range_of(d.0) {
                    out.push(range, most);
                }
            }
        }
        let Some(beyond) = &mut self.beyond else { return out };
        if !beyond.is_empty() {
            for range in beyond.recent(nxt) {
                let seen =
                    out.blocks[usize::from(duplicate.is_some()).min(out.len)..out.len].contains(&range);
                if !seen {
                    out.push(range, most);
                }
            }
        }
        if beyond.is_over() {
            self.beyond = None;
        }
        out
    }

    /// True if all of `[from, to)` was received.
    fn holds(&self, (from, to): (u64, u64)) -> bool {
        let range = || self.beyond.as_ref().and_then(|b| b.range_of(from));
        to <= self.nxt || range().is_some_and(|(_, end)| to <= end)
    }

    /// Delay of the acknowledgement timer in force, for tests and tools.
    #[must_use]
    pub fn delayed_ack(&self) -> Duration {
        self.config.delayed_ack.delay
    }
}

#[cfg(test)]
mod tests;
