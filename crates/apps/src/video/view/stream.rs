//! A film over a byte stream.
//!
//! An arrival in order only leaves its time, and how far the stream reaches. What follows from it is worked out for
//! many arrivals at once: when there are enough of them, before data that arrives out of order, and when somebody
//! asks. The results are the same.

use super::ahead::Ahead;
use super::batch::Batch;
use super::gaps::Gaps;
use super::tally::Tally;
use super::waiting::{Frames, Waiting};
use crate::frame::{Fate, Frame, FrameType};
use crate::video::packet::Reach;
use skyhaul_base::{Duration, Instant};

/// How many arrivals are worked out at once.
const ROOM: usize = 64;

/// The frames of a film, and the bytes that have arrived.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// Payload of a full packet, bytes.
    payload: u64,
    frames: Frames,
    /// Number of the first frame; the others follow.
    first: u64,
    /// Packets of the frames that do not count, known in advance included.
    uncounted: u64,
    /// Arrivals in order that have not been worked out, and their number: when, and the bytes in order since then.
    noted: [(Instant, u64); ROOM],
    notes: usize,
    /// Bytes in order.
    arrived: u64,
    /// The next packet in order.
    next: u64,
    /// Packets that are not counted yet, only while data is worked out.
    batch: Batch,
    /// Whether the next packet in order needs only its time: `wire` and the tally know the same of what came before.
    in_step: bool,
    /// Packets that arrived out of order.
    ahead: Ahead,
    pub(super) wire: Gaps,
}

/// The first frame of which data is missing.
#[derive(Clone, Copy)]
struct Current {
    frame: Waiting,
    /// Where its next packet ends, or else the frame.
    next_end: u64,
}

impl Current {
    /// There is none: nothing becomes complete.
    const NONE: Self = Self { frame: Waiting::NONE, next_end: u64::MAX };
}

impl Stream {
    /// Before the first frame; packets late by more than `threshold` are counted.
    pub(super) fn new(payload: u64, threshold: Duration) -> Self {
        Self {
            payload,
            frames: Frames::default(),
            first: 0,
            uncounted: 0,
            noted: [(Instant::ZERO, 0); ROOM],
            notes: 0,
            arrived: 0,
            next: 0,
            batch: Batch::new(threshold),
            in_step: true,
            ahead: Ahead::default(),
            wire: Gaps::new(threshold),
        }
    }

    /// Bytes in order.
    #[inline(always)]
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }
    /// Number of frames produced.
    pub(super) fn frames(&self) -> u64 {
        self.frames.produced
    }
    /// Number of the last frame produced.
    pub(super) fn last(&self) -> Option<u64> {
        Some(self.first + self.frames.produced.checked_sub(1)?)
    }

    /// A frame was produced, after which the film reaches so far. No other is known in advance.
    pub(super) fn produced(&mut self, frame: &Frame, counts: bool, reach: Reach) {
        if self.frames.produced == 0 {
            self.first = frame.number;
        }
        if !counts {
            self.uncounted = reach.packets;
        }
        let sent = frame.fate == Fate::Sent;
        self.frames.list.push_back(Waiting::new(frame.at, reach, frame.kind, sent, counts));
        self.frames.produced += 1;
    }
    /// The next frames, known in advance.
    pub(super) fn expect(&mut self, frames: &[Waiting]) {
        self.frames.list.extend(frames);
        // The first frames of a film are those that do not count.
        if let Some(last) = frames.iter().take_while(|frame| !frame.counts).last() {
            self.uncounted = last.reach().packets;
        }
    }
    /// So many more of the frames known in advance are produced.
    #[inline(always)]
    pub(super) fn advance(&mut self, frames: u64) {
        self.frames.produced += frames;
    }
    /// The next frame, known in advance, is produced; its time and type, and what it consists of.
    pub(super) fn step(&mut self) -> Option<(Instant, FrameType, Made)> {
        let before = self.frames.reach();
        let frame = *self.frames.upcoming()?;
        self.frames.produced += 1;
        let reach = frame.reach();
        let made = Made {
            bytes: reach.bytes() - before.bytes(),
            packets: reach.packets - before.packets,
            packed: reach.packed - before.packed,
        };
        Some((frame.at, frame.kind, made))
    }

    /// The bytes `[from, to)` arrived, which are next in order. False, and nothing has changed, if it is not so, or if
    /// arrivals must be worked out first.
    #[inline(always)]
    pub(super) fn note(&mut self, now: Instant, from: u64, to: u64) -> bool {
        let next = (from == self.arrived) & (to > from);
        let (Some(note), true) = (self.noted.get_mut(self.notes), next) else { return false };
        *note = (now, to);
        self.notes += 1;
        self.arrived = to;
        true
    }
    /// The stream is complete up to this many bytes.
    pub(super) fn in_order(&mut self, now: Instant, bytes: u64, tally: &mut Tally) {
        if self.notes >= ROOM {
            self.settle(tally);
        }
        self.note(now, self.arrived, bytes);
    }

    /// These bytes arrived, in order or not.
    pub(super) fn segment(&mut self, now: Instant, from: u64, to: u64, tally: &mut Tally) {
        let from = from.max(self.arrived);
        if to <= from {
            return;
        }
        self.settle(tally);
        self.in_step = false;
        let wire = &mut self.wire;
        let new = |number, counts| wire.arrived(now, number, counts);
        self.ahead.segment((from, to), self.next, &self.frames, self.payload, new);
    }

    /// Works out all arrivals so far.
    #[inline(never)]
    pub(super) fn settle(&mut self, tally: &mut Tally) {
        let notes = core::mem::take(&mut self.notes).min(ROOM);
        self.batch.begin(&tally.delivery);
        let mut note = 0;
        loop {
            note = self.whole_frames(note, notes, tally);
            note = self.any(note, notes, tally);
            if note >= notes {
                break;
            }
        }
        self.batch.count(self.next, tally, &mut self.wire);
    }

    /// Works out the arrivals of whole frames while nothing is out of order, as is usual. Returns the note, of `notes`,
    /// with the end of the last one: it may have reached more.
    #[inline(never)]
    fn whole_frames(&mut self, note: usize, notes: usize, tally: &mut Tally) -> usize {
        let before = self.frames.before;
        let known = self.in_step & (self.next == before.packets) & (before.rest == 0) & (note < notes);
        let (Some(in_time), Some((delays, threshold))) = (tally.alike(), self.batch.room()) else {
            return note;
        };
        if !known {
            return note;
        }
        let (noted, payload, most) = (&self.noted, self.payload, tally.longest_in_time());
        let there = self.arrived;
        // Packets and frames that are complete, how many packets after each of these, when, and their types.
        let (mut packets, mut frames, mut kinds) = (0, 0, [0; FrameType::COUNT]);
        let (mut ends, mut times) = ([0u8; ROOM], [Instant::ZERO; ROOM]);
        let (mut at, mut late, mut last, mut reach) = (note, 0, tally.delivery.last(), before);
        for frame in self.frames.list.as_slices().0 {
            let next = frame.reach();
            let upto = packets + (next.packets - reach.packets) as usize;
            let usual = frame.sent & frame.counts & (next.rest == 0) & (upto > packets);
            let (Some(delays), true) = (delays.get_mut(packets..upto), usual & (there >= next.packed)) else {
                break;
            };
            let (mut place, mut end, mut then, mut too_late) = (at, reach.packed, last, late);
            for delay in delays {
                end = (end + payload).min(next.packed);
                // The last note reaches all that is there.
                while noted[place % ROOM].1 < end {
                    place += 1;
                }
                let now = noted[place % ROOM].0;
                too_late += u64::from(now.since(then) > threshold);
                *delay = now - frame.at;
                then = now;
            }
            if (then - frame.at <= most) != in_time {
                break;
            }
            (at, late, last, reach, packets) = (place, too_late, then, next, upto);
            (ends[frames % ROOM], times[frames % ROOM]) = (upto as u8, then);
            frames += 1;
            kinds[frame.kind as usize] += 1;
        }
        if frames == 0 {
            return note;
        }
        tally.smooth.arrivals(noted.get(note..=at).unwrap_or(&[]));
        let ends = ends.get(..frames).unwrap_or(&ends);
        tally.lateness.complete_all(ends.iter().map(|end| delays[usize::from(*end).wrapping_sub(1) % ROOM]));
        let first = self.first + self.frames.gone;
        if !tally.playout.follow_all(last, first, frames as u64) {
            for (number, now) in (first..).zip(times.iter().take(frames)) {
                tally.playout.follow(*now, number);
            }
        }
        self.batch.fill(packets, late, last);
        tally.verdicts(kinds, reach.packed - before.packed);
        self.next = reach.packets;
        self.frames.remove(frames, reach);
        at
    }

    /// Works out arrivals of any kind, until a frame is complete. Returns the first note, of `notes`, that is left.
    #[inline(never)]
    fn any(&mut self, mut note: usize, notes: usize, tally: &mut Tally) -> usize {
        let mut current = self.current(tally);
        while let Some(&(now, bytes)) = self.noted.get(note).filter(|_| note < notes) {
            note += 1;
            tally.smooth.arrived(now, bytes);
            let mut complete = false;
            // Nothing becomes complete before.
            while bytes >= current.next_end {
                let frame = &current.frame;
                let reach = frame.reach();
                if self.next < reach.packets {
                    self.packet(now, frame, tally);
                }
                if self.next < reach.packets {
                    current.next_end = self.packet_end(current.next_end, reach);
                } else if reach.bytes() <= bytes {
                    self.complete(now, frame, tally);
                    current = self.current(tally);
                    complete = true;
                } else {
                    current.next_end = reach.bytes();
                }
            }
            if !self.in_step {
                self.in_step = self.ahead.is_empty() && self.wire.agrees(&tally.delivery);
                self.batch.begin(&tally.delivery);
            } else if complete && self.frames.before.rest == 0 {
                // Perhaps the next ones are usual.
                self.batch.count(self.next, tally, &mut self.wire);
                break;
            }
        }
        note
    }

    /// The first frame of which data is missing. Those before it were not sent, and are judged.
    #[inline(always)]
    fn current(&mut self, tally: &mut Tally) -> Current {
        loop {
            let Some(frame) = self.frames.list.front() else { return Current::NONE };
            let frame = *frame;
            if frame.sent {
                let reach = frame.reach();
                let next_end = if self.next < reach.packets {
                    Frames::packet_end(self.frames.before, reach, self.next, self.payload)
                } else {
                    reach.bytes()
                };
                return Current { frame, next_end };
            }
            tally.verdict(frame.kind, 0, false, frame.counts);
            self.frames.pop();
        }
    }

    /// Where the next packet ends, which is of the same frame as one that ends at `before`.
    #[inline(always)]
    fn packet_end(&self, before: u64, reach: Reach) -> u64 {
        if self.next + 1 == reach.packets { reach.packed } else { before + self.payload }
    }

    /// All data of the current frame has arrived.
    #[inline(always)]
    fn complete(&mut self, now: Instant, frame: &Waiting, tally: &mut Tally) {
        let delay = now - frame.at;
        let bytes = frame.reach().bytes() - self.frames.before.bytes();
        tally.verdict(frame.kind, bytes, tally.is_in_time(delay), frame.counts);
        tally.playout.follow(now, self.first + self.frames.gone);
        if frame.counts {
            tally.lateness.complete(delay);
        }
        self.frames.pop();
    }

    /// The next packet in order, which is of `frame`, has arrived.
    #[inline(always)]
    fn packet(&mut self, now: Instant, frame: &Waiting, tally: &mut Tally) {
        let (delay, counts) = (now - frame.at, frame.counts);
        if !self.in_step {
            self.packet_by_itself(now, delay, counts, tally);
        } else if !self.batch.push(now, delay, counts) {
            self.batch.count(self.next, tally, &mut self.wire);
            self.batch.push(now, delay, counts);
        }
        self.next += 1;
    }
    #[inline(never)]
    fn packet_by_itself(&mut self, now: Instant, delay: Duration, counts: bool, tally: &mut Tally) {
        if !self.ahead.next() {
            self.wire.arrived(now, self.next, counts);
        }
        tally.packet(now, self.next, delay, counts);
    }

    /// Frames of the list, of these places, by type, if they count.
    fn by_type(&self, places: core::ops::Range<usize>) -> [u64; FrameType::COUNT] {
        let (mut kinds, (first, second)) = ([0; FrameType::COUNT], self.frames.list.as_slices());
        let (from, to) = (places.start.min(first.len()), places.end.min(first.len()));
        let rest = places.start.saturating_sub(first.len())..places.end.saturating_sub(first.len());
        for frames in [first.get(from..to), second.get(rest)] {
            for frame in frames.unwrap_or(&[]) {
                kinds[frame.kind as usize] += u64::from(frame.counts);
            }
        }
        kinds
    }

    /// Frames produced by type, and their packets, of those that count; after everything was settled, and before
    /// anything is [judged](Self::judge).
    pub(super) fn made(&self, tally: &Tally) -> ([u64; FrameType::COUNT], u64) {
        // All that are not in the list are judged.
        let waiting = self.by_type(0..self.frames.there());
        let frames = core::array::from_fn(|kind| tally.viewed.complete[kind].of + waiting[kind]);
        let packets = self.frames.reach().packets;
        (frames, packets - self.uncounted.min(packets))
    }

    /// Judges the frames that are late at `end`, after everything was settled. The first frame that is not yet late
    /// ends it.
    pub(super) fn judge(&self, end: Instant, tally: &mut Tally) {
        let (list, there) = (&self.frames.list, self.frames.there());
        let old = list.partition_point(|frame| !tally.is_in_time(end - frame.at)).min(there);
        // Those that were not sent are judged at once.
        let unsent = list.range(old..there).take_while(|frame| !frame.sent).count();
        tally.missed(self.by_type(0..old + unsent));
    }

    /// Number of packets that have not arrived and count, of frames for which `is_old` is true: the first ones.
    pub(super) fn lacking(&self, is_old: impl Fn(Instant) -> bool) -> u64 {
        // The first frames are those that do not count.
        let old = self.frames.list.partition_point(|f| is_old(f.at)).min(self.frames.there());
        self.frames.before(old).packets.saturating_sub(self.uncounted.max(self.next))
    }
}

/// What a frame consists of.
#[derive(Clone, Copy, Debug)]
pub(in crate::video) struct Made {
    /// All its bytes.
    pub(in crate::video) bytes: u64,
    /// Packets that it completes, and their bytes.
    pub(in crate::video) packets: u64,
    pub(in crate::video) packed: u64,
}
