//! The SACK scoreboard (RFC 6675): what was sent and its state, with incremental counters.
//!
//! Segments are in a ring in sequence order. The literal RFC walks the list to answer each question. Here `pipe`
//! follows from three counters (bytes SACKed, lost, and retransmitted), and `IsLost` is a cursor, because it is
//! monotone in two ways: at any time, a segment below another has at least as much SACKed data above it; and over
//! time that amount only grows (runs of small segments can merge, but a segment judged lost stays lost). So
//! everything below the cursor has been judged (lost or SACKed), nothing above it is lost by the rule, and each
//! segment is passed once. Runs of SACKed segments carry a skip distance with path compression, so that repeated
//! SACK blocks cost almost nothing.

mod next_seg;
mod order;
mod recut;
mod undo;

use alloc::collections::VecDeque;
pub use next_seg::NextSeg;
pub(crate) use order::Order;
use skyhaul_base::Instant;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// Retransmitted in the current recovery: "at or below `HighRxt`" in RFC 6675.
const RTX: u8 = 4;
const FIN: u8 = 8;

/// A segment that was sent and is not yet cumulatively acknowledged.
#[derive(Clone, Copy, Debug)]
struct Sent {
    seq: u64,
    last_sent: Instant,
    /// Sequence space: payload, plus one with FIN.
    span: u32,
    /// All segments within this distance are SACKed, the segment itself first; 0 if it is not SACKed.
    skip: u32,
    flags: u8,
    rtx_count: u8,
    /// Time from the first transmission to `last_sent`, in units of 2^20 ns, rounded up at each retransmission.
    waited: u32,
}

impl Sent {
    /// Time of the first transmission, or earlier by at most one unit of `waited` per retransmission.
    fn first_sent(&self) -> Instant {
        let waited = u64::from(self.waited) << 20;
        Instant::from_nanos(self.last_sent.as_nanos().saturating_sub(waited))
    }
    /// Notes a retransmission.
    fn sent_again(&mut self, now: Instant) {
        let since = (now - self.first_sent()).as_nanos().div_ceil(1 << 20);
        self.waited = u32::try_from(since).unwrap_or(u32::MAX);
        self.last_sent = now;
        self.rtx_count = self.rtx_count.saturating_add(1);
    }
    fn end(&self) -> u64 {
        self.seq + u64::from(self.span)
    }
    /// Whether the segment is longer than a full one or carries the FIN.
    #[inline]
    fn is_odd(&self, smss: u32) -> bool {
        self.span > smss || self.has(FIN)
    }
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A segment of the scoreboard, as its users see it. `len` is the payload, without the FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    pub(crate) last_sent: Instant,
    pub(crate) rtx_count: u32,
    pub(crate) sacked: bool,
}

impl Item {
    /// The offset after the last byte, FIN included.
    pub(crate) fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.fin)
    }
}

impl From<&Sent> for Item {
    fn from(s: &Sent) -> Self {
        let fin = s.has(FIN);
        Self {
            seq: s.seq,
            len: s.span - u32::from(fin),
            fin,
            last_sent: s.last_sent,
            rtx_count: u32::from(s.rtx_count),
            sacked: s.has(SACKED),
        }
    }
}

/// The effect of an acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acked {
    /// Bytes by which `SND.UNA` advanced.
    pub(crate) bytes: u64,
    /// Bytes among these that were not SACKed before.
    pub(crate) delivered: u64,
    /// Segments removed; 0 if the board keeps neither a scoreboard nor send times.
    pub(crate) popped: usize,
    /// Send time of the newest segment removed that was never retransmitted.
    pub(crate) sent_at: Option<Instant>,
    /// Time of the first transmission of the oldest segment acknowledged.
    pub(crate) first_sent: Option<Instant>,
    /// A segment removed had been retransmitted.
    pub(crate) retransmitted: bool,
}

/// The scoreboard. Offsets are 64-bit stream positions.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    ring: VecDeque<Sent>,
    /// Absolute index of the ring's front.
    base: u64,
    una: u64,
    max: u64,
    sacked: u64,
    lost: u64,
    rtx: u64,
    total_lost: u64,
    /// Absolute index of the first segment not yet judged.
    judge: u64,
    /// Bytes and runs selectively acknowledged at or above `judge`.
    above_bytes: u64,
    above_runs: u32,
    /// Absolute index below which every lost segment has been retransmitted.
    next_lost: u64,
    /// Absolute index below which `NextSeg` rule 3 finds no hole.
    next_hole: u64,
    /// End of the highest byte selectively acknowledged.
    high_sacked: u64,
    rescued: bool,
    dup_thresh: u32,
    smss: u32,
    /// Segments that are longer than a full one or carry the FIN.
    odd: u32,
    /// Segments that were sent more than once.
    repeated: u32,
    /// `(DupThresh - 1) · SMSS`.
    lost_above: u64,
    /// Segments examined, to compare the cost with the number of acknowledgements.
    #[cfg(test)]
    steps: u64,
}

impl Scoreboard {
    /// An empty scoreboard whose first byte is at `start`.
    #[must_use]
    pub fn new(start: u64, dup_thresh: u32, smss: u32) -> Self {
        Self {
            ring: VecDeque::new(),
            base: 0,
            una: start,
            max: start,
            sacked: 0,
            lost: 0,
            rtx: 0,
            total_lost: 0,
            judge: 0,
            above_bytes: 0,
            above_runs: 0,
            next_lost: 0,
            next_hole: 0,
            high_sacked: start,
            rescued: false,
            dup_thresh,
            smss,
            odd: 0,
            repeated: 0,
            lost_above: u64::from(dup_thresh.saturating_sub(1)) * u64::from(smss),
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Prepares an empty scoreboard for so many segments, and sets the bytes that were ever marked lost.
    pub(crate) fn expect(&mut self, segments: usize, total_lost: u64) {
        self.ring.reserve_exact(segments);
        self.total_lost = total_lost;
    }

    /// Whether nothing is known to be missing, and no byte counts twice in [`Self::pipe`].
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        self.sacked | self.lost | self.rtx == 0 && self.above_runs == 0
    }
    /// Whether sizes and send times describe the segments completely: none is longer than a full one, carries the FIN, is
    /// missing, or was sent twice.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_clean() && self.odd == 0 && self.repeated == 0 && self.high_sacked <= self.una
    }

    /// First byte not cumulatively acknowledged.
    #[must_use]
    pub fn una(&self) -> u64 {
        self.una
    }
    /// End of everything ever sent.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }
    /// Segments not cumulatively acknowledged.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.len()
    }
    /// True if everything is acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
    /// RFC 6675 §4 `SetPipe`, bytes: each unacknowledged byte counts unless lost, and again if retransmitted.
    #[must_use]
    pub fn pipe(&self) -> u64 {
        self.max - self.una - self.sacked - self.lost + self.rtx
    }
    /// Bytes selectively acknowledged.
    #[must_use]
    pub fn sacked(&self) -> u64 {
        self.sacked
    }
    /// Bytes retransmitted, neither acknowledged nor lost again.
    pub(crate) fn repeated(&self) -> u64 {
        self.rtx
    }
    /// Bytes considered lost and not selectively acknowledged since.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Bytes ever marked lost.
    #[must_use]
    pub(crate) fn total_lost(&self) -> u64 {
        self.total_lost
    }
    /// End of the highest byte selectively acknowledged.
    #[must_use]
    pub(crate) fn high_sacked(&self) -> u64 {
        self.high_sacked
    }
    /// Whether the oldest segment is lost by the rules (RFC 6675 `IsLost(SND.UNA)`).
    #[must_use]
    pub fn head_lost(&self) -> bool {
        self.ring.front().is_some_and(|s| s.has(LOST) && !s.has(SACKED))
    }
    /// The segment at `index`.
    pub(crate) fn item(&self, index: usize) -> Option<Item> {
        self.ring.get(index).map(Item::from)
    }
    /// Whether the segment at `index` is lost and not SACKed.
    #[must_use]
    pub fn is_lost(&self, index: usize) -> bool {
        self.ring.get(index).is_some_and(|s| s.has(LOST) && !s.has(SACKED))
    }

    /// The first segment at or after `seq` that is lost and has not arrived since.
    pub(crate) fn lost_from(&self, seq: u64) -> Option<Item> {
        let from = self.ring.partition_point(|s| s.seq < seq);
        self.ring.range(from..).find(|s| s.flags & (LOST | SACKED) == LOST).map(Item::from)
    }
    /// The segment that contains the byte at `seq`.
    pub(crate) fn containing(&self, seq: u64) -> Option<Item> {
        let after = self.ring.partition_point(|s| s.seq <= seq);
        let found = after.checked_sub(1).and_then(|i| self.ring.get(i));
        found.filter(|s| seq < s.end()).map(Item::from)
    }
    /// Memory use, bytes.
    pub(crate) fn held(&self) -> usize {
        self.ring.capacity() * size_of::<Sent>()
    }
    /// Releases unused memory.
    pub(crate) fn trim(&mut self) {
        self.ring.shrink_to_fit();
    }

    /// A new segment of `span` bytes of sequence space was sent.
    pub(crate) fn push(&mut self, span: u32, fin: bool, now: Instant) {
        debug_assert!(span > 0);
        let sent = Sent {
            seq: self.max,
            last_sent: now,
            span,
            skip: 0,
            flags: if fin { FIN } else { 0 },
            rtx_count: 0,
            waited: 0,
        };
        self.odd += u32::from(sent.is_odd(self.smss));
        self.ring.push_back(sent);
        self.max += u64::from(span);
    }

    /// A new segment of `span` bytes was sent (for tests and tools that drive a scoreboard alone).
    pub fn send(&mut self, span: u32) {
        self.push(span, false, Instant::ZERO);
    }

    /// Notes a retransmission of the segment at `index`.
    pub fn retransmit(&mut self, index: usize, now: Instant) {
        let s = &mut self.ring[index];
        self.repeated += u32::from(s.rtx_count == 0);
        s.sent_again(now);
        if !s.has(RTX) {
            s.flags |= RTX;
            if !s.has(SACKED) {
                self.rtx += u64::from(s.span);
            }
        }
    }

    /// Notes a rescue retransmission of the segment at `index`: `HighRxt` stays, so neither pipe nor later
    /// retransmissions change (RFC 6675 §4, NextSeg rule 4).
    pub(crate) fn rescue_sent(&mut self, index: usize, now: Instant) {
        let s = &mut self.ring[index];
        self.repeated += u32::from(s.rtx_count == 0);
        s.sent_again(now);
    }

    /// Index of the first segment that starts at or after `seq`; most segments in the ring have one size.
    pub(crate) fn index_of(&self, seq: u64) -> usize {
        let Some(front) = self.ring.front() else { return 0 };
        if seq <= front.seq {
            return 0;
        }
        let guess = ((seq - front.seq) / u64::from(front.span.max(1))) as usize;
        if self.ring.get(guess).is_some_and(|s| s.seq == seq) {
            return guess;
        }
        self.ring.partition_point(|s| s.seq < seq)
    }

    /// Cumulative acknowledgement up to `ack`, which must lie in `[una, max]`.
    #[inline]
    pub(crate) fn ack(&mut self, ack: u64) -> Acked {
        let mut out = Acked { bytes: ack - self.una, ..Acked::default() };
        if out.bytes == 0 {
            return out;
        }
        out.first_sent = self.ring.front().map(Sent::first_sent);
        while let Some(&s) = self.ring.front() {
            if s.end() > ack {
                break;
            }
            if s.has(SACKED) {
                self.sacked -= u64::from(s.span);
                if self.base >= self.judge {
                    self.above_bytes -= u64::from(s.span);
                    if !self.ring.get(1).is_some_and(|n| n.has(SACKED)) {
                        self.above_runs -= 1;
                    }
                }
            } else {
                out.delivered += u64::from(s.span);
                if s.has(LOST) {
                    self.lost -= u64::from(s.span);
                }
                if s.has(RTX) {
                    self.rtx -= u64::from(s.span);
                }
            }
            if s.rtx_count == 0 {
                out.sent_at = Some(s.last_sent);
            } else {
                self.repeated -= 1;
                out.retransmitted = true;
            }
            self.odd -= u32::from(s.is_odd(self.smss));
            self.ring.pop_front();
            self.base += 1;
            out.popped += 1;
        }
        if let Some(s) = self.ring.front_mut().filter(|s| s.seq < ack) {
            // The acknowledgement ends within a segment (the peer resegments): keep the rest.
            let cut = (ack - s.seq) as u32;
            self.odd -= u32::from(s.is_odd(self.smss));
            s.seq = ack;
            s.span -= cut;
            self.odd += u32::from(s.is_odd(self.smss));
            let cut = u64::from(cut);
            if s.has(SACKED) {
                self.sacked -= cut;
                if self.base >= self.judge {
                    self.above_bytes -= cut;
                }
            } else {
                out.delivered += cut;
                self.lost -= if s.has(LOST) { cut } else { 0 };
                self.rtx -= if s.has(RTX) { cut } else { 0 };
            }
        }
        self.una = ack;
        self.judge = self.judge.max(self.base);
        out
    }

    /// Processes a SACK block `[from, to)`; returns the newly SACKed bytes. `on_new` is called with the index of
    /// each newly SACKed segment.
    pub(crate) fn sack(&mut self, from: u64, to: u64, mut on_new: impl FnMut(usize)) -> u64 {
        let to = to.min(self.max);
        if to <= from.max(self.una) {
            return 0;
        }
        let mut new = 0;
        let start = self.index_of(from);
        let (mut i, mut hops) = (start, 0);
        while let Some(s) = self.ring.get(i) {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            if s.skip > 0 {
                i += s.skip as usize;
                hops += 1;
                continue;
            }
            if s.end() > to {
                break;
            }
            hops += 1;
            new += u64::from(self.mark_sacked(i));
            on_new(i);
            i += 1;
        }
        // The next walk from any segment on this path jumps to its end, so that even blocks with arbitrary start
        // points do not repeat the walk.
        if hops > 2 {
            self.shorten(start, i);
        } else if let Some(s) = self.ring.get_mut(start).filter(|s| s.skip > 0) {
            s.skip = (i - start) as u32;
        }
        self.high_sacked = self.high_sacked.max(to);
        new
    }

    /// Path compression: every skip on the way from `i` to `end` leads to `end`. All segments between are SACKed.
    fn shorten(&mut self, mut i: usize, end: usize) {
        while i < end {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let s = &mut self.ring[i];
            let next = i + s.skip.max(1) as usize;
            s.skip = (end - i) as u32;
            i = next;
        }
    }

    /// Marks the segment at `i` as SACKed; returns its size.
    fn mark_sacked(&mut self, i: usize) -> u32 {
        let index = self.base + i as u64;
        let left = i > 0 && index > self.judge && self.ring[i - 1].has(SACKED);
        let right = self.ring.get(i + 1).is_some_and(|n| n.has(SACKED));
        let s = &mut self.ring[i];
        s.flags |= SACKED;
        s.skip = 1;
        let span = u64::from(s.span);
        self.sacked += span;
        self.lost -= if s.has(LOST) { span } else { 0 };
        self.rtx -= if s.has(RTX) { span } else { 0 };
        if index >= self.judge {
            self.above_bytes += span;
            self.above_runs = self.above_runs + 1 - u32::from(left) - u32::from(right);
        }
        s.span
    }

    /// Marks segments that are lost by RFC 6675 `IsLost`; returns the newly marked bytes. `on_lost` is called with
    /// index and size of each newly marked segment, and with the total bytes ever lost.
    pub(crate) fn detect(&mut self, mut on_lost: impl FnMut(usize, u32, u64)) -> u64 {
        let mut new = 0;
        loop {
            let i = (self.judge - self.base) as usize;
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let Some(s) = self.ring.get_mut(i) else { return new };
            let span = u64::from(s.span);
            if s.has(SACKED) {
                let ends_run = !self.ring.get(i + 1).is_some_and(|n| n.has(SACKED));
                self.above_bytes -= span;
                self.above_runs -= u32::from(ends_run);
            } else if self.above_runs >= self.dup_thresh || self.above_bytes > self.lost_above {
                if !s.has(LOST) {
                    s.flags |= LOST;
                    self.lost += span;
                    self.total_lost += span;
                    new += span;
                    on_lost(i, s.span, self.total_lost);
                }
            } else {
                return new;
            }
            self.judge += 1;
        }
    }

    /// SACK processing for tests and tools: marks, then detects.
    pub fn apply(&mut self, ack: u64, blocks: &[(u64, u64)]) {
        self.ack(ack.clamp(self.una, self.max));
        for &(from, to) in blocks {
            self.sack(from, to, |_| {});
        }
        self.detect(|_, _, _| {});
    }

    /// Starts a recovery. Unless `keep_rtx`, segments retransmitted earlier count as sent once (RFC 6675 §5 step 4.3
    /// sets `HighRxt` anew).
    pub fn begin_episode(&mut self, keep_rtx: bool) {
        self.rescued = false;
        self.next_lost = self.base;
        self.next_hole = self.base;
        if self.rtx > 0 && !keep_rtx {
            for s in &mut self.ring {
                s.flags &= !RTX;
            }
            self.rtx = 0;
        }
    }

    /// Marks the segment at `una` as lost by decision of the sender (duplicate acknowledgements without SACK).
    pub fn mark_head_lost(&mut self) -> u64 {
        match self.ring.front_mut() {
            Some(s) if !s.has(LOST) && !s.has(SACKED) => {
                s.flags |= LOST;
                let span = u64::from(s.span);
                self.lost += span;
                self.total_lost += span;
                span
            }
            _ => 0,
        }
    }

    /// A timeout: everything not SACKed is lost (RFC 6675 §5.1). Without `keep`, SACK information is discarded
    /// first (RFC 2018 §8). Returns the newly marked bytes.
    pub fn timeout(&mut self, keep: bool) -> u64 {
        self.mark_all_lost(keep, |_, _, _| {})
    }

    /// Like [`Self::timeout`]; `on_lost` is called as by [`Self::detect`].
    pub(crate) fn mark_all_lost(&mut self, keep: bool, mut on_lost: impl FnMut(usize, u32, u64)) -> u64 {
        let mut new = 0;
        if !keep {
            self.sacked = 0;
            self.above_bytes = 0;
            self.above_runs = 0;
            self.judge = self.base;
            self.high_sacked = self.una;
        }
        self.lost = 0;
        self.rtx = 0;
        for (i, s) in self.ring.iter_mut().enumerate() {
            s.flags &= if keep { !RTX } else { !(RTX | SACKED) };
            if !keep {
                s.skip = 0;
            }
            if !s.has(SACKED) {
                let span = u64::from(s.span);
                if !s.has(LOST) {
                    new += span;
                    on_lost(i, s.span, self.total_lost + new);
                }
                s.flags |= LOST;
                self.lost += span;
            }
        }
        self.total_lost += new;
        self.rescued = false;
        self.next_lost = self.base;
        self.next_hole = self.base;
        new
    }
}

#[cfg(test)]
mod tests;
