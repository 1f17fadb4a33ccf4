//! A film over a byte stream.
//!
//! An arrival in order only leaves its time, and how far the stream reaches. What follows from it is worked out for
//! many arrivals at once: when there are enough of them, before data that arrives out of order, and when somebody
//! asks. The results are the same.

use super::ahead::Ahead;
use super::batch::Batch;
use super::gaps::Gaps;
use super::tally::Tally;
use super::waiting::{Frames, Reach, Waiting};
use crate::frame::{Frame, FrameType};
use crate::video::packet::Pieces;
use skyhaul_base::{Duration, Instant};

/// How many arrivals are worked out at once.
const ROOM: usize = 64;

/// The frames of a film, and the bytes that have arrived.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// Payload of a full packet, bytes.
    payload: u64,
    frames: Frames,
    /// How far the film reaches so far.
    produced: Reach,
    /// Arrivals in order that have not been worked out, and their number: when, and the bytes in order since then.
    noted: [(Instant, u64); ROOM],
    notes: usize,
    /// Bytes in order, and those worked out.
    arrived: u64,
    settled: u64,
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
            produced: Reach::default(),
            noted: [(Instant::ZERO, 0); ROOM],
            notes: 0,
            arrived: 0,
            settled: 0,
            next: 0,
            batch: Batch::default(),
            in_step: true,
            ahead: Ahead::default(),
            wire: Gaps::new(threshold),
        }
    }

    /// Bytes in order.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// A frame was produced, and divided into these pieces if it was sent.
    #[inline]
    pub(super) fn produced(&mut self, frame: &Frame, counts: bool, pieces: Option<&Pieces>) {
        let Frame { number, at, kind, .. } = *frame;
        match pieces {
            Some(pieces) => self.sent(number, kind, at, counts, pieces),
            None => self.remember(number, kind, at, counts, false),
        }
    }
    /// A frame was produced and divided into these pieces.
    #[inline(always)]
    pub(super) fn sent(&mut self, number: u64, kind: FrameType, at: Instant, counts: bool, pieces: &Pieces) {
        self.produced.packets += pieces.ready;
        self.produced.packed += pieces.packed(self.payload);
        self.produced.bytes += pieces.bytes;
        self.remember(number, kind, at, counts, true);
    }
    #[inline(always)]
    fn remember(&mut self, number: u64, kind: FrameType, at: Instant, counts: bool, sent: bool) {
        self.frames.list.push_back(Waiting { number, at, reach: self.produced, kind, sent, counts });
    }

    /// The stream is complete up to this many bytes.
    #[inline(always)]
    pub(super) fn in_order(&mut self, now: Instant, bytes: u64, tally: &mut Tally) {
        if bytes <= self.arrived {
            return;
        }
        self.arrived = bytes;
        if let Some(note) = self.noted.get_mut(self.notes) {
            *note = (now, bytes);
        }
        self.notes += 1;
        if self.notes >= ROOM {
            self.settle(tally);
        }
    }

    /// These bytes arrived, in order or not.
    #[inline(never)]
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
        let mut current = self.current(tally);
        for note in 0..notes {
            let (now, bytes) = self.noted[note];
            tally.smooth.arrived(now, bytes - core::mem::replace(&mut self.settled, bytes));
            // Nothing becomes complete before.
            while bytes >= current.next_end {
                let frame = &current.frame;
                if self.next < frame.reach.packets {
                    self.packet(now, frame, tally);
                }
                if self.next < frame.reach.packets {
                    current.next_end = self.packet_end(current.next_end, frame);
                } else if frame.reach.bytes <= bytes {
                    self.complete(now, frame, tally);
                    current = self.current(tally);
                } else {
                    current.next_end = frame.reach.bytes;
                }
            }
            if !self.in_step {
                self.in_step = self.ahead.is_empty() && self.wire.agrees(&tally.delivery);
            }
        }
        self.batch.count(self.next, tally, &mut self.wire);
    }

    /// The first frame of which data is missing. Those before it were not sent, and are judged.
    #[inline(always)]
    fn current(&mut self, tally: &mut Tally) -> Current {
        loop {
            let Some(frame) = self.frames.list.front() else { return Current::NONE };
            let frame = *frame;
            if frame.sent {
                let next_end = if self.next < frame.reach.packets {
                    Frames::packet_end(self.frames.before, frame.reach, self.next, self.payload)
                } else {
                    frame.reach.bytes
                };
                return Current { frame, next_end };
            }
            tally.verdict(frame.kind, 0, false, frame.counts);
            self.frames.pop();
        }
    }

    /// Where the next packet ends, which is of the same frame as one that ends at `before`.
    #[inline(always)]
    fn packet_end(&self, before: u64, frame: &Waiting) -> u64 {
        if self.next + 1 == frame.reach.packets { frame.reach.packed } else { before + self.payload }
    }

    /// All data of the current frame has arrived.
    #[inline(always)]
    fn complete(&mut self, now: Instant, frame: &Waiting, tally: &mut Tally) {
        let bytes = frame.reach.bytes - self.frames.before.bytes;
        tally.verdict(frame.kind, bytes, now <= tally.due(frame.at), frame.counts);
        tally.playout.follow(now, frame.number);
        if frame.counts {
            tally.lateness.complete(now - frame.at);
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

    /// Judges the frames that are late at `end`, after everything was settled. The first frame that is not yet late
    /// ends it.
    pub(super) fn judge(&self, end: Instant, tally: &mut Tally) {
        for frame in &self.frames.list {
            if frame.sent && end <= tally.due(frame.at) {
                break;
            }
            tally.verdict(frame.kind, 0, false, frame.counts);
        }
    }

    /// Number of packets that have not arrived and count, of frames for which `is_old` is true: the first ones.
    pub(super) fn missing(&self, is_old: impl Fn(Instant) -> bool) -> u64 {
        // The first frames are those that do not count.
        let list = &self.frames.list;
        let first = self.frames.before(list.partition_point(|f| !f.counts)).packets.max(self.next);
        self.frames.before(list.partition_point(|f| is_old(f.at))).packets.saturating_sub(first)
    }
}
