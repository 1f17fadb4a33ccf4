//! A film over a byte stream.
//!
//! An arrival in order only leaves its time, and how far the stream reaches. What follows from it is worked out for
//! many arrivals at once: when there are enough of them, before data that arrives out of order, and when somebody
//! asks. The results are the same.

use super::batch::Batch;
use super::frames::Frames;
use super::notes::Notes;
use super::tally::Tally;
use super::upcoming::Made;
use super::waiting::Waiting;
use super::wire::Wire;
use crate::frame::{Fate, Frame, FrameType};
use crate::video::clock::Clock;
use crate::video::coded::Coded;
use crate::video::packet::{Cut, Reach};
use crate::viewed::FIXED;
use skyhaul_base::{Duration, Instant};

/// The frames of a film, and the bytes that have arrived.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// Payload of a full packet, bytes.
    payload: u64,
    frames: Frames,
    /// Number of the first frame; the others follow.
    first: u64,
    /// Arrivals in order that have not been worked out.
    notes: Notes,
    /// Bytes in order.
    arrived: u64,
    /// The next packet in order.
    next: u64,
    /// The frames that are worked out.
    batch: Batch,
    /// As they arrive, in order or not; the tally sees them in order.
    pub(super) wire: Wire,
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
    const NONE: Self = Self { frame: Waiting::none(Instant::ZERO), next_end: u64::MAX };
}

impl Stream {
    /// Before the first frame; packets late by more than `threshold` are counted, and frames from `warm` on.
    pub(super) fn new(cut: Cut, threshold: Duration, warm: Instant) -> Self {
        Self {
            payload: cut.payload,
            frames: Frames::new(cut, warm),
            first: 0,
            notes: Notes::new(),
            arrived: 0,
            next: 0,
            batch: Batch::new(),
            wire: Wire::new(threshold),
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
        let sent = frame.fate == Fate::Sent;
        self.frames.push(Waiting::new(frame.at, reach, frame.kind, sent, counts));
    }
    /// All frames will be known in advance, and are produced at these times.
    pub(super) fn in_advance(&mut self, clock: Clock) {
        self.frames.upcoming.all(clock);
    }
    /// The next frames, known in advance.
    pub(super) fn expect(&mut self, frames: &Coded) {
        self.frames.upcoming.add(frames);
    }
    /// So many of the frames known in advance are produced.
    pub(super) fn advance(&mut self, frames: u64) {
        self.frames.produced = frames;
    }

    /// The bytes `[from, to)` arrived, at least one, which are next in order. False, and nothing has changed, if they are not
    /// next, or if arrivals must be worked out first.
    #[inline(always)]
    pub(super) fn note(&mut self, now: Instant, from: u64, to: u64) -> bool {
        debug_assert!(to > from, "there are bytes");
        let noted = from == self.arrived && self.notes.push(now, to);
        if noted {
            self.arrived = to;
        }
        noted
    }
    /// The stream is complete up to this many bytes.
    pub(super) fn in_order(&mut self, now: Instant, bytes: u64, tally: &mut Tally) {
        while bytes > self.arrived && !self.note(now, self.arrived, bytes) {
            self.work(tally);
        }
    }

    /// These bytes arrived, in order or not.
    pub(super) fn segment(&mut self, now: Instant, from: u64, to: u64, tally: &mut Tally) {
        let from = from.max(self.arrived);
        if to <= from {
            return;
        }
        self.settle(tally);
        self.frames.divide(to);
        self.wire.segment(now, (from, to), self.next, &self.frames, self.payload);
    }

    /// Works out all arrivals so far.
    pub(super) fn settle(&mut self, tally: &mut Tally) {
        while !self.notes.is_empty() {
            self.work(tally);
        }
    }
    /// Works out some arrivals, of which there are any.
    fn work(&mut self, tally: &mut Tally) {
        self.frames.divide(self.arrived);
        if !self.whole_frames(tally) {
            self.any(tally);
        }
    }

    /// Works out the arrivals of frames of which all has arrived, as long as they are plain. False if there are none.
    #[inline(never)]
    fn whole_frames(&mut self, tally: &mut Tally) -> bool {
        let (before, payload) = (self.frames.before, self.payload);
        // The first packet of all follows none.
        if (before.rest > 0) | (self.next == 0) {
            return false;
        }
        // Where the first frame begins, or what is missing of it.
        let reach = Reach { packets: self.next, packed: before.begin(self.next, payload), rest: 0 };
        let Self { frames, notes, batch, wire, arrived, .. } = self;
        let (last, threshold) = (tally.delivery.last(), tally.delivery.threshold());
        batch.fill(frames.list(), notes, (payload, *arrived), (reach, last), threshold);
        let complete = frames.list().get(..batch.frames).unwrap_or(&[]);
        if complete.is_empty() {
            return false;
        }
        wire.frames(complete, batch, notes, payload, (reach, last));
        tally.whole(batch, complete, before);
        tally.smooth.all(notes.before(batch.notes), batch.gap);
        let number = self.first + frames.gone;
        tally.playout.whole(number, complete.len(), batch.last, |place| batch.complete(&complete[place]));
        self.next = batch.reach.packets;
        frames.remove(batch.frames, batch.reach);
        // The last one may reach into the next frame.
        let rest = notes.at(batch.notes.wrapping_sub(1)).1 != batch.reach.packed;
        notes.remove(batch.notes - usize::from(rest));
        true
    }

    /// Works out arrivals, whatever their frames are like, until a frame is complete.
    #[inline(never)]
    fn any(&mut self, tally: &mut Tally) {
        let mut current = self.current(tally);
        let (mut place, mut complete) = (0, false);
        while let (Some((now, bytes)), false) = (self.notes.get(place), complete) {
            tally.smooth.arrived((now, bytes));
            // Several packets and frames may be complete at once.
            while current.next_end <= bytes {
                let (frame, reach) = (&current.frame, current.frame.reach());
                if self.next < reach.packets {
                    self.packet(now, frame, tally);
                }
                if self.next < reach.packets {
                    current.next_end = reach.end(current.next_end, self.payload);
                } else if reach.bytes() <= bytes {
                    self.complete(now, frame, tally);
                    current = self.current(tally);
                    complete = true;
                } else {
                    current.next_end = reach.bytes();
                }
            }
            place += 1;
        }
        self.notes.remove(place);
    }

    /// The first frame of which data is missing. Those before it were not sent, and are judged.
    #[inline(always)]
    fn current(&mut self, tally: &mut Tally) -> Current {
        loop {
            let Some(frame) = self.frames.list().first() else { return Current::NONE };
            let frame = *frame;
            if frame.sent {
                let reach = frame.reach();
                let next_end = if self.next < reach.packets {
                    reach.end(self.frames.before.begin(self.next, self.payload), self.payload)
                } else {
                    reach.bytes()
                };
                return Current { frame, next_end };
            }
            tally.verdict(frame.kind, 0, false, frame.counts);
            self.frames.pop();
        }
    }

    /// All data of the current frame has arrived.
    #[inline(always)]
    fn complete(&mut self, now: Instant, frame: &Waiting, tally: &mut Tally) {
        let delay = now - frame.at;
        let bytes = frame.reach().bytes() - self.frames.before.bytes();
        tally.verdict(frame.kind, bytes, tally.is_in_time(delay), frame.counts);
        tally.playout.complete(now, self.first + self.frames.gone);
        if frame.counts {
            tally.lateness.complete(delay);
        }
        self.frames.pop();
    }

    /// The next packet in order, which is of `frame`, has arrived.
    #[inline(always)]
    fn packet(&mut self, now: Instant, frame: &Waiting, tally: &mut Tally) {
        self.wire.next(now, self.next, frame.counts);
        tally.packet(now, self.next, now - frame.at, frame.counts);
        self.next += 1;
    }

    /// What there is to know of frames at `end`, after everything was settled.
    pub(super) fn overview(&self, end: Instant, tally: &Tally) -> Overview {
        let (frames, there) = (&self.frames, self.frames.there());
        let old = frames.old(|at| !tally.is_in_time(end - at)).min(there);
        // Those that were not sent are judged at once.
        let unsent = frames.list().iter().take(there).skip(old).take_while(|frame| !frame.sent).count();
        let [all, missed, late @ ..]: [Made; 2 + FIXED.len()] =
            frames.made(core::array::from_fn(|i| match i {
                0 => there,
                1 => old + unsent,
                _ => frames.old(|at| at + FIXED[i - 2] < end).min(there),
            }));
        let uncounted = frames.uncounted();
        Overview {
            // All that are not in the list are judged.
            frames: core::array::from_fn(|kind| tally.viewed.complete[kind].of + all.frames[kind]),
            packets: all.packets.saturating_sub(uncounted),
            missed: missed.frames,
            // The first frames are those that do not count.
            lacking: late.map(|late: Made| late.packets.saturating_sub(uncounted.max(self.next))),
        }
    }
}

/// What a stream knows of its frames at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overview {
    /// Frames produced by type, and their packets, of those that count.
    pub(super) frames: [u64; FrameType::COUNT],
    pub(super) packets: u64,
    /// Frames by type that count and are late. The first frame that is not yet late ends them.
    pub(super) missed: [u64; FrameType::COUNT],
    /// Packets that have not arrived and count, so long after their production as each of [`FIXED`] says.
    pub(super) lacking: [u64; FIXED.len()],
}
