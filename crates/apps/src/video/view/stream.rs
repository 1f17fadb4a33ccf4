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
use crate::frame::{Fate, Frame};
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
    /// Arrivals in order that have not been worked out: when, and the bytes in order since then.
    noted: Vec<(Instant, u64)>,
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

impl Stream {
    /// Before the first frame; packets late by more than `threshold` are counted.
    pub(super) fn new(payload: u64, threshold: Duration) -> Self {
        Self {
            payload,
            frames: Frames::default(),
            produced: Reach::default(),
            noted: Vec::new(),
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
        if let Some(pieces) = pieces {
            self.produced.packets += pieces.ready;
            self.produced.packed += pieces.ready.saturating_sub(1) * self.payload;
            self.produced.packed += if pieces.ready > 0 { pieces.last } else { 0 };
            self.produced.bytes += pieces.bytes;
        }
        let Frame { number, at, kind, .. } = *frame;
        let sent = frame.fate == Fate::Sent;
        self.frames.list.push_back(Waiting { number, at, reach: self.produced, kind, sent, counts });
    }

    /// The stream is complete up to this many bytes.
    #[inline]
    pub(super) fn in_order(&mut self, now: Instant, bytes: u64, tally: &mut Tally) {
        if bytes <= self.arrived {
            return;
        }
        self.arrived = bytes;
        self.noted.push((now, bytes));
        if self.noted.len() >= ROOM {
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
        let mut noted = core::mem::take(&mut self.noted);
        let mut current = self.current(tally);
        let mut next_end = self.next_end(current.as_ref());
        for &(now, bytes) in &noted {
            tally.smooth.arrived(now, bytes - core::mem::replace(&mut self.settled, bytes));
            while let Some(frame) = current.filter(|_| bytes >= next_end) {
                if self.next < frame.reach.packets {
                    self.packet(now, &frame, tally);
                }
                if self.next == frame.reach.packets && frame.reach.bytes <= bytes {
                    self.complete(now, &frame, tally);
                    current = self.current(tally);
                }
                next_end = self.next_end(current.as_ref());
            }
            if !self.in_step {
                self.in_step = self.ahead.is_empty() && self.wire.agrees(&tally.delivery);
            }
        }
        self.batch.count(self.next, tally, &mut self.wire);
        noted.clear();
        self.noted = noted;
    }

    /// The first frame of which data is missing. Those before it were not sent, and are judged.
    #[inline]
    fn current(&mut self, tally: &mut Tally) -> Option<Waiting> {
        loop {
            let frame = *self.frames.list.front()?;
            if frame.sent {
                return Some(frame);
            }
            tally.verdict(frame.kind, 0, false, frame.counts);
            self.frames.pop();
        }
    }

    /// Where the next packet of the current frame ends, or else the frame: nothing becomes complete before.
    #[inline(always)]
    fn next_end(&self, current: Option<&Waiting>) -> u64 {
        let Some(frame) = current else { return u64::MAX };
        if self.next < frame.reach.packets {
            Frames::packet_end(self.frames.before, frame.reach, self.next, self.payload)
        } else {
            frame.reach.bytes
        }
    }

    /// All data of the current frame has arrived.
    #[inline(always)]
    fn complete(&mut self, now: Instant, frame: &Waiting, tally: &mut Tally) {
        let bytes = frame.reach.bytes - self.frames.before.bytes;
        tally.verdict(frame.kind, bytes, now <= tally.due(frame.at), frame.counts);
        tally.playout.complete(now, frame.number);
        if frame.counts {
            tally.lateness.complete(now - frame.at);
        }
        self.frames.pop();
    }

    /// The next packet in order, which is of `frame`, has arrived.
    #[inline(always)]
    fn packet(&mut self, now: Instant, frame: &Waiting, tally: &mut Tally) {
        let (delay, counts) = (now - frame.at, frame.counts);
        if self.in_step {
            if !self.batch.takes(counts) {
                self.batch.count(self.next, tally, &mut self.wire);
            }
            self.batch.push(now, delay, counts);
        } else {
            if !self.ahead.next() {
                self.wire.arrived(now, self.next, counts);
            }
            tally.packet(now, self.next, delay, counts);
        }
        self.next += 1;
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

    /// Packets that have not arrived and count: when they were produced, and how many.
    pub(super) fn missing(&self) -> impl Iterator<Item = (Instant, u64)> + '_ {
        let mut before = self.frames.before.packets;
        let frames = self.frames.list.iter().map(move |f| {
            let first = core::mem::replace(&mut before, f.reach.packets).max(self.next);
            (f, f.reach.packets.saturating_sub(first))
        });
        frames.filter(|(f, _)| f.counts).map(|(f, n)| (f.at, n))
    }
}
