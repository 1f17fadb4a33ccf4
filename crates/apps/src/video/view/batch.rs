//! Whole frames of a byte stream that are worked out at once, and their packets.

use super::notes::Notes;
use super::waiting::Waiting;
use crate::video::packet::Reach;
use skyhaul_base::{Duration, Instant};

/// How many packets are worked out at once, and at most as many frames.
const MOST: usize = 64;

/// Frames of a film, each of which is [plain](Waiting::plain) and complete.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// The first of their packets that was missing, and how far the film reaches with them.
    first: u64,
    pub(super) reach: Reach,
    /// How long after its production each packet arrived.
    delays: [Duration; MOST],
    /// Number of frames.
    pub(super) frames: usize,
    /// The note of the last arrival, and when that was.
    pub(super) note: usize,
    pub(super) last: Instant,
}

/// Which frames become part of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    /// Those that are complete before,
    pub(super) until: Instant,
    /// no longer than this after the one before,
    pub(super) gap: Duration,
    /// and this one, by its place in the batch.
    pub(super) except: usize,
}

impl Batch {
    pub(super) fn new() -> Self {
        let (delays, last) = ([Duration::ZERO; MOST], Instant::ZERO);
        Self { first: 0, reach: Reach::default(), delays, frames: 0, note: 0, last }
    }
    /// Without frames: the film reaches so far before them, and the last packet arrived at `last`.
    pub(super) fn begin(&mut self, reach: Reach, last: Instant) {
        (self.first, self.reach, self.last) = (reach.packets, reach, last);
        (self.frames, self.note) = (0, 0);
    }
    /// Number of packets.
    pub(super) fn packets(&self) -> u64 {
        self.reach.packets - self.first
    }
    /// How long after its production each packet arrived.
    pub(super) fn delays(&self) -> &[Duration] {
        self.delays.get(..self.packets() as usize).unwrap_or(&self.delays)
    }
    /// How long after its production a frame of the batch was complete.
    #[inline(always)]
    pub(super) fn delay(&self, frame: &Waiting) -> Duration {
        self.delays[(frame.reach().packets - self.first).wrapping_sub(1) as usize % MOST]
    }

    /// Adds the next of these frames, in packets of `payload` bytes, that are plain, complete with `arrived` bytes in
    /// order, which must be noted, and usual. Whether it ends before a frame only because that is not usual.
    #[inline(never)]
    pub(super) fn add(
        &mut self,
        frames: &[Waiting],
        notes: &Notes,
        (payload, arrived): (u64, u64),
        usual: Usual,
    ) -> bool {
        // Local, so that they stay in registers.
        let (first, Usual { until, gap, except }) = (self.first, usual);
        let (mut packet, mut bytes, mut note, mut last) =
            ((self.reach.packets - first) as usize, self.reach.packed, self.note, self.last);
        let (mut added, mut unusual) = (0, false);
        for frame in frames {
            let to = frame.reach();
            let upto = (to.packets - first) as usize;
            let there = frame.plain & (arrived >= to.packed);
            let (Some(delays), true) = (self.delays.get_mut(packet..upto), there) else { break };
            let (mut at, mut end) = (note, bytes);
            for delay in delays {
                end = (end + payload).min(to.packed);
                *delay = notes.reach(&mut at, end) - frame.at;
            }
            let now = notes.at(at).0;
            if ((now >= until) | (now - last > gap)) && self.frames + added != except {
                unusual = true;
                break;
            }
            (packet, bytes, note, last) = (upto, to.packed, at, now);
            added += 1;
        }
        self.reach = Reach { packets: first + packet as u64, packed: bytes, rest: 0 };
        self.frames += added;
        (self.note, self.last) = (note, last);
        unusual
    }
}
