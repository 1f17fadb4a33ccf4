//! The receiving half: reassembly, SACK blocks, delayed acknowledgements, answers to probes, window.
//!
//! Data in order touches only a few words. Data beyond a gap has separate state ([`OutOfOrder`]), which exists only
//! while there is a gap or a duplicate to report.

mod out_of_order;

use crate::autotune::Autotune;
use crate::config::{AckCc, Config, DelayedAck, LossDetection};
use crate::error::Rejected;
use crate::segment::Mark;
use crate::store::Store;
use crate::wave::Meter;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::num::{NonZeroU16, NonZeroU32};
use out_of_order::OutOfOrder;
use skyhaul_base::{Duration, Instant};

/// Payload of an arriving segment, in stream offsets.
#[derive(Clone, Copy, Debug)]
pub struct Data<'a> {
    /// Offset of the first byte; the first byte of data has offset 1.
    pub seq: u64,
    /// Length of the payload, bytes.
    pub len: u32,
    /// A FIN follows the last byte.
    pub fin: bool,
    /// The bytes; empty if only lengths are kept.
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
    /// The blocks, in the order of reporting.
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
    /// Right edge of the announced window; never moves left.
    edge: u64,
    /// In-order bytes the application has not read.
    unread: u64,
    /// Receive buffer, bytes.
    buffer: u64,
    /// Largest window that the field of a segment can announce, bytes.
    announces: u32,
    /// Part of the buffer that memory allows, bytes.
    allowed: u32,
    /// Data beyond a gap, and duplicates to be reported.
    out_of_order: Option<Box<OutOfOrder>>,
    /// When the delayed acknowledgement is due; [`Instant::MAX`] if there is none.
    delayed_until: Instant,
    /// Acknowledgements that must leave now as separate segments: the peer counts duplicates.
    acks_due: u32,
    /// Acknowledgements of data in order that must leave now; a data segment may carry them.
    advance_due: u32,
    /// Segments in order since the last acknowledgement.
    unacked: u32,
    /// Maximum number of SACK blocks per acknowledgement.
    sack_blocks: u8,
    answer_probes: bool,
    /// The application reads and discards everything at once.
    sink: bool,
    /// Offset of the peer's FIN, once it has arrived, perhaps beyond a gap; [`NO_FIN`] before.
    fin_at: u64,
    config: Arc<Config>,
    probe_answers: Option<Box<Answers>>,
    autotune: Option<Box<Autotune>>,
    /// Measures the arrival rate, if the sender numbers its waves.
    waves: Option<Box<Meter>>,
    store: S,
}

/// Answers to probes, not yet sent.
#[derive(Debug, Default)]
struct Answers(VecDeque<ProbeAnswer>);

/// How far back a copy of data may lie, in receive windows: one window in flight when the copy left, and one that
/// overtook it in a queue.
const WINDOWS_BACK: u64 = 2;

/// Number of ranges beyond gaps that is always allowed (*our choice*).
const FEW_RANGES: u64 = 64;
/// Beyond [`FEW_RANGES`], one range is allowed per segment of the MSS in the buffer, or of this size, bytes, if it is
/// smaller: the default MSS (RFC 9293 §3.7.1).
const DEFAULT_MSS: u32 = 536;

/// No limit on windows: no segment can announce more.
const UNLIMITED: u32 = u32::MAX;

/// A limit on windows, bytes.
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
            out_of_order: None,
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

    /// Sets the result of the handshake: whether SACK is used, whether probes are answered, and whether segments carry
    /// timestamps.
    pub fn start(&mut self, sack: bool, answer_probes: bool, stamped: bool) {
        if stamped {
            // Timestamps leave room for three blocks (RFC 2018 §3).
            self.sack_blocks = self.sack_blocks.min(3);
        }
        if !sack {
            self.sack_blocks = 0;
        }
        self.answer_probes = answer_probes;
    }
    /// The hole that the next acknowledgement names, if this end sends SNACKs (SCPS-TP) and SACK is in use. Peers that do not
    /// know SNACK ignore it. To be called before [`Self::blocks`], which may drop the state.
    pub(crate) fn named_hole(&mut self) -> Option<(u64, u64)> {
        let nxt = self.nxt;
        let names = self.config.loss_detection == LossDetection::Snack && self.sack_blocks > 0;
        self.out_of_order.as_mut().filter(|_| names)?.hole(nxt)
    }
    /// Limits the window to what a SYN can announce; nothing has been announced before.
    pub(crate) fn begin_at_most(&mut self, bytes: u64) {
        self.announces = limit(bytes);
        self.edge = self.nxt + self.room();
    }
    /// Sets the largest window that segments can announce from now on, bytes: with the negotiated scale.
    pub(crate) fn announce_at_most(&mut self, bytes: u64) {
        self.announces = limit(bytes);
        // The edge moves immediately: a jump of the window that is announced later would need an acknowledgement that
        // looks like a duplicate.
        self.edge = self.edge.max(self.nxt + self.room());
    }
    /// The application reads and discards everything at once.
    pub fn discard(&mut self) {
        self.sink = true;
        let n = self.unread;
        self.consume(n);
    }

    /// A data segment of `wave` with `len` bytes of payload has arrived.
    #[cold]
    pub fn measure(&mut self, now: Instant, wave: NonZeroU16, len: u32) {
        self.waves.get_or_insert_default().arrived(now, wave, len);
    }
    /// The arrival rate of the last complete wave, to be reported with an acknowledgement, bytes of payload per second;
    /// `None` if there is nothing to report.
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
    /// Whether all data and the FIN have arrived.
    pub(crate) fn finished(&self) -> bool {
        self.nxt > self.fin_at
    }
    /// The window to announce, bytes. Its right edge advances by at least one segment or half the buffer, whichever is
    /// less, and never retreats (RFC 9293 §3.8.6.2.2).
    #[inline(always)]
    pub fn window(&mut self) -> u64 {
        let edge = self.nxt + self.room();
        if edge >= self.edge + u64::from(self.config.mss).min(self.buffer / 2).max(1) {
            self.edge = edge;
        }
        self.edge.saturating_sub(self.nxt)
    }

    /// The window that could be announced now, bytes.
    #[inline(always)]
    fn room(&self) -> u64 {
        self.buffer.min(self.allowed.into()).saturating_sub(self.unread).min(self.announces.into())
    }

    /// The window last announced, minus the data that arrived since, bytes.
    pub(crate) fn announced(&self) -> u64 {
        self.edge.saturating_sub(self.nxt)
    }

    /// Whether a segment at `seq` that occupies `span` sequence numbers (payload, SYN and FIN) is acceptable (RFC 9293
    /// §3.10.7.4).
    #[inline]
    #[must_use]
    pub fn acceptable(&self, seq: u64, span: u32) -> bool {
        if span == 0 {
            // At the right edge, too: a peer that has filled the window sends its acknowledgements from there. RCV.NXT lies
            // beyond the edge if the peer's FIN followed a full window.
            return seq >= self.nxt && seq <= self.edge.max(self.nxt);
        }
        let end = seq + u64::from(span);
        let first = seq >= self.nxt && seq < self.edge;
        self.edge > self.nxt && (first || (end > self.nxt && end <= self.edge))
    }

    /// Whether data up to `end`, with a FIN there if `fin`, contradicts the FIN or data already received: nothing
    /// follows a FIN (RFC 9293 §3.10.7.4).
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
        end < self.nxt || self.out_of_order.as_ref().is_some_and(|b| b.end() > end)
    }

    /// Whether probes are understood and answered.
    #[inline]
    pub(crate) fn answers_probes(&self) -> bool {
        self.answer_probes
    }
    /// Maximum segment lifetime: half the duration of TIME-WAIT.
    pub(crate) fn lifetime(&self) -> Duration {
        self.config.time_wait / 2
    }
    /// Whether data that begins at `seq` may be a recent copy.
    pub(crate) fn is_recent(&self, seq: u64) -> bool {
        // Data begins at offset 1.
        seq > 0 && seq + WINDOWS_BACK * self.buffer >= self.nxt
    }
    /// Whether a probe of `len` bytes at `seq` is acceptable. A probe copies data sent before, which may have arrived long
    /// ago, but at most two receive windows back; and it must lie within the announced window.
    ///
    /// # Errors
    /// The reason why it is not acceptable.
    pub(crate) fn admits_probe(&self, seq: u64, len: u32) -> Result<(), Rejected> {
        let end = seq + u64::from(len);
        if len == 0 || end > self.edge || !self.is_recent(seq) {
            return Err(Rejected::OutOfWindow);
        }
        if self.contradicts_end(end, false) { Err(Rejected::BeyondFin) } else { Ok(()) }
    }
    /// Limit on answers to copies per RTT, bytes: two windows, since the copies of one RTT may arrive within half
    /// an RTT.
    pub(crate) fn ration(&self) -> u64 {
        2 * self.buffer
    }

    /// Handles payload or a FIN. The responses are polled for afterwards.
    ///
    /// # Errors
    /// The reason why the segment was dropped.
    #[inline]
    pub fn handle(&mut self, now: Instant, d: &Data<'_>) -> Result<(), Rejected> {
        let plain = !d.fin && d.mark == Mark::None && d.len > 0;
        if d.seq == self.nxt && plain && self.admits_in_order(d.len) {
            self.take_in_order(now, d.len);
            return Ok(());
        }
        self.handle_any(now, d)
    }

    /// Header prediction: whether the next `len` bytes in order can be accepted without looking at anything but
    /// their number.
    #[inline]
    #[must_use]
    pub fn admits_in_order(&self, len: u32) -> bool {
        self.sink
            && self.config.header_prediction
            && !S::KEEPS
            && self.nxt + u64::from(len) <= self.edge
            && self.out_of_order.is_none()
            && self.autotune.is_none()
            && self.fin_at == NO_FIN
    }
    /// Accepts the next `len` bytes in order, which [`Self::admits_in_order`] has admitted.
    #[inline]
    pub fn take_in_order(&mut self, now: Instant, len: u32) {
        self.nxt += u64::from(len);
        self.owe(now);
    }
    /// Whether an acknowledgement has more to report than the cumulative number.
    #[inline]
    #[must_use]
    pub fn has_more_to_say(&self) -> bool {
        self.out_of_order.is_some() || self.waves.is_some()
    }

    /// A segment in order has arrived. Its acknowledgement is due at once, after `delayed_ack.every` segments, or when the
    /// delay expires.
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

    /// Out-of-order data is acknowledged immediately, one acknowledgement per segment (RFC 5681 §4.2). If the peer
    /// asks for fewer than one per two segments, the first three are immediate, which signals the loss, and later
    /// ones follow the requested ratio (RFC 5690 §4.6).
    fn owe_duplicate(&mut self, now: Instant) {
        if self.config.ack_cc == AckCc::None || self.config.delayed_ack.every <= 2 {
            self.acks_due += 1;
            return;
        }
        let out_of_order = self.out_of_order();
        out_of_order.segments_beyond = out_of_order.segments_beyond.saturating_add(1);
        if out_of_order.segments_beyond <= 3 {
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
        // Cuts off data before RCV.NXT and beyond the window.
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
            // A FIN occupies a sequence number and is SACKed with the data before it; otherwise its segment would
            // count as lost.
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

    /// Handles an admitted probe. A dummy is answered and discarded. The payload of a NIL segment is kept, unless
    /// the segment is `old` by its timestamp: its sequence numbers may then have wrapped (RFC 7323 §5).
    pub(crate) fn probe(&mut self, d: &Data<'_>, old: bool) {
        let end = d.seq + u64::from(d.len);
        let mark = if d.mark == Mark::Nil { Mark::NilAck } else { Mark::DummyAck };
        let (from, to) = (d.seq.max(self.nxt), end.min(self.edge));
        if d.mark == Mark::Nil && !old && from < to && !self.is_one_too_many(from, to) {
            let bytes = d.payload.get((from - d.seq) as usize..(to - d.seq) as usize).unwrap_or_default();
            self.store.write_at(self.unread + (from - self.nxt), bytes);
            if from > self.nxt {
                // Duplicate bytes are not noted: the answer to the probe reports its range.
                let nxt = self.nxt;
                self.out_of_order().insert(from, to, nxt);
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

    /// Notes data that has arrived a second time.
    pub fn note_duplicate(&mut self, from: u64, to: u64) {
        if self.config.dsack && from < to {
            self.out_of_order().duplicate = Some((from, to));
        }
    }

    fn out_of_order(&mut self) -> &mut OutOfOrder {
        self.out_of_order.get_or_insert_default()
    }
    /// Whether data has arrived beyond a gap.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        self.out_of_order.as_ref().is_some_and(|b| !b.is_empty())
    }

    /// Whether `[from, to)` would be one range more than is allowed ([`FEW_RANGES`], [`DEFAULT_MSS`]). A sender of tiny
    /// fragments with gaps must not make us store and search a record for each: the segment is dropped as if the
    /// path had lost it.
    fn is_one_too_many(&self, from: u64, to: u64) -> bool {
        let Some(out_of_order) = &self.out_of_order else { return false };
        let ranges = out_of_order.len() as u64;
        if ranges < FEW_RANGES || from <= self.nxt || from >= to {
            return false;
        }
        let size = u64::from(self.config.mss.clamp(1, DEFAULT_MSS));
        ranges >= FEW_RANGES + self.buffer / size && out_of_order.is_apart(from, to)
    }

    /// Adds `[from, to)` to the ranges beyond a gap.
    fn insert(&mut self, from: u64, to: u64) {
        let nxt = self.nxt;
        if let Some((from, to)) = self.out_of_order().insert(from, to, nxt) {
            self.note_duplicate(from, to);
        }
    }

    fn advance(&mut self, to: u64) {
        let old = self.nxt;
        self.nxt = self.nxt.max(to);
        if let Some(out_of_order) = &mut self.out_of_order {
            self.nxt = out_of_order.advance(self.nxt);
            if out_of_order.is_over() {
                self.out_of_order = None;
            }
        }
        // A range beyond a gap may end with the FIN, which is not to be read.
        let has_fin = old <= self.fin_at && self.finished();
        self.unread += self.nxt - old - u64::from(has_fin);
        if self.sink {
            let n = self.unread;
            self.consume(n);
        }
    }

    /// Memory use, bytes: all payload, the part of it beyond a gap, and the records of ranges and of probe answers.
    #[must_use]
    pub fn held(&self) -> (usize, usize, usize) {
        let ranges = self.out_of_order.as_ref().map_or(0, |b| b.held());
        let answers = self.probe_answers.as_ref().map_or(0, |a| a.0.capacity() * size_of::<ProbeAnswer>());
        (self.store.held(), self.store.beyond(), ranges + answers)
    }
    /// Releases unused memory.
    pub(crate) fn trim(&mut self) {
        self.store.trim();
        if let Some(out_of_order) = &mut self.out_of_order {
            out_of_order.trim();
        }
        if self.probe_answers.as_ref().is_some_and(|a| a.0.is_empty()) {
            self.probe_answers = None;
        }
    }
    /// Memory is short: at most this many bytes of the buffer are offered from now on, but the right edge of
    /// earlier offers stays (RFC 9293 §3.8.6, SHLD-14). The buffer does not grow. `u64::MAX`: memory is no longer short.
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
    /// Discards data beyond a gap although it was SACKed: the sender must keep it until it is acknowledged
    /// cumulatively (RFC 2018 §8).
    pub(crate) fn renege(&mut self) {
        self.store.truncate(self.unread);
        if let Some(out_of_order) = &mut self.out_of_order {
            out_of_order.forget();
            if out_of_order.is_over() {
                self.out_of_order = None;
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

    /// Reads at most `n` unread bytes into `out`, and discards those for which it has no room. Returns how many were read
    /// or discarded.
    pub(crate) fn read(&mut self, out: &mut [u8], n: u64) -> u64 {
        let n = n.min(self.unread);
        let bytes = (out.len() as u64).min(n) as usize;
        self.store.read_at(0, &mut out[..bytes]);
        self.consume(n);
        n
    }
    /// After a read: if the window has opened by two segments or half the buffer, whichever is less, an acknowledgement
    /// announces it, unless one is due anyway.
    pub(crate) fn tell_window(&mut self) {
        let edge = self.nxt + self.room();
        let opened = edge >= self.edge + (2 * u64::from(self.config.mss)).min(self.buffer / 2).max(1);
        if opened && self.acks_due + self.advance_due == 0 {
            self.acks_due = 1;
        }
    }
    /// Sends one acknowledgement per this many segments from now on, as the peer asks. The delay of acknowledgements stays;
    /// if there was none, it is `delay`.
    #[cold]
    pub(crate) fn acknowledge_every(&mut self, segments: u32, delay: Duration) {
        let old = self.config.delayed_ack;
        let delay = if old.delay.is_zero() { delay } else { old.delay };
        let new = DelayedAck { every: segments.max(1), delay };
        if new != old {
            // Only for connections that negotiated it: the others still share their configuration.
            self.config = Arc::new(Config { delayed_ack: new, ..*self.config });
        }
    }
    /// Sends a delayed acknowledgement now: the last segment was merged from several.
    pub(crate) fn acknowledge_soon(&mut self) {
        if self.unacked > 0 && self.advance_due == 0 {
            self.advance_due = 1;
        }
    }
    /// An acknowledgement is due as a separate segment.
    pub fn ack_now(&mut self) {
        self.acks_due += 1;
    }

    /// An acknowledgement is due, which a data segment may carry.
    pub(crate) fn ack_or_data(&mut self) {
        self.advance_due += 1;
    }

    /// When a delayed acknowledgement must leave; [`Instant::MAX`] if there is none.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.delayed_until
    }
    /// Makes a delayed acknowledgement due, if its deadline has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.delayed_until <= now {
            self.delayed_until = Instant::MAX;
            if self.unacked > 0 {
                self.advance_due += 1;
            }
        }
    }

    /// Takes one due acknowledgement, if there is any.
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
    /// The answer to the oldest unanswered probe.
    #[inline]
    pub fn poll_probe_answer(&mut self) -> Option<ProbeAnswer> {
        self.probe_answers.as_mut()?.0.pop_front()
    }
    /// A data segment leaves and carries the acknowledgement of data in order. A pure acknowledgement after it
    /// would look like a duplicate.
    #[inline]
    pub(crate) fn carried(&mut self) {
        self.advance_due = 0;
        self.unacked = 0;
        self.delayed_until = Instant::MAX;
    }

    /// The SACK blocks of the next acknowledgement. A duplicate is reported once, as the first block (RFC 2883); in the
    /// answer to a probe, that block is the range of the probe, `probe`.
    #[inline]
    pub fn blocks(&mut self, probe: Option<(u64, u64)>) -> Blocks {
        if self.sack_blocks == 0 || (self.out_of_order.is_none() && probe.is_none()) {
            return Blocks::default();
        }
        self.blocks_to_report(probe)
    }

    fn blocks_to_report(&mut self, probe: Option<(u64, u64)>) -> Blocks {
        let mut out = Blocks::default();
        let (nxt, most) = (self.nxt, usize::from(self.sack_blocks));
        // A dummy may copy data that is missing here; reporting it as a duplicate would acknowledge it.
        let duplicate = match probe {
            Some(p) => Some(p).filter(|&p| self.config.dsack && self.holds(p)),
            None => self.out_of_order().duplicate.take(),
        };
        if let Some(d) = duplicate {
            out.push(d, most);
            if d.0 >= nxt {
                // A duplicate beyond the gap is recognised because it lies inside the second block.
                if let Some(range) = self.out_of_order().range_of(d.0) {
                    out.push(range, most);
                }
            }
        }
        let Some(out_of_order) = &mut self.out_of_order else { return out };
        if !out_of_order.is_empty() {
            for range in out_of_order.recent(nxt) {
                let seen =
                    out.blocks[usize::from(duplicate.is_some()).min(out.len)..out.len].contains(&range);
                if !seen {
                    out.push(range, most);
                }
            }
        }
        if out_of_order.is_over() {
            self.out_of_order = None;
        }
        out
    }

    /// Whether all of `[from, to)` was received.
    fn holds(&self, (from, to): (u64, u64)) -> bool {
        let range = || self.out_of_order.as_ref().and_then(|b| b.range_of(from));
        to <= self.nxt || range().is_some_and(|(_, end)| to <= end)
    }

    /// Longest delay of an acknowledgement, for tests and tools.
    #[must_use]
    pub fn delayed_ack(&self) -> Duration {
        self.config.delayed_ack.delay
    }
}

#[cfg(test)]
mod tests;
