//! Whole frames of a byte stream that are worked out at once, and their packets.

use super::notes::{Notes, beyond};
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
    /// The notes up to the last arrival, when that was, and the longest time without one before it.
    pub(super) notes: usize,
    pub(super) last: Instant,
    pub(super) gap: Duration,
    /// Packets that arrived late after the one before.
    pub(super) late: u64,
}

impl Batch {
    pub(super) fn new() -> Self {
        let (delays, last) = ([Duration::ZERO; MOST], Instant::ZERO);
        Self {
            first: 0,
            reach: Reach::default(),
            delays,
            frames: 0,
            notes: 0,
            last,
            gap: Duration::ZERO,
            late: 0,
        }
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
        self.delays[(frame.packets - self.first).wrapping_sub(1) as usize % MOST]
    }
    /// When it was complete.
    #[inline(always)]
    pub(super) fn complete(&self, frame: &Waiting) -> Instant {
        frame.at + self.delay(frame)
    }

    /// Begins with the first of these frames, in packets of `payload` bytes, that are plain and complete with `arrived` bytes
    /// in order, which must be noted. The film reaches so far before them, and the last packet arrived at `last`; packets are
    /// late that arrive longer than `threshold` after the one before.
    #[inline(never)]
    pub(super) fn fill(
        &mut self,
        frames: &[Waiting],
        notes: &Notes,
        (payload, arrived): (u64, u64),
        (before, last): (Reach, Instant),
        threshold: Duration,
    ) {
        let first = before.packets;
        let (mut packet, mut complete) = (0, 0);
        // Where the last packet ends, how far data reached with it, and when that was.
        let (mut end, mut there, mut now) = (before.packed, before.packed, last);
        let (mut gap, mut late) = (0, 0);
        let mut arrivals = notes.iter();
        for frame in frames {
            let upto = (frame.packets - first) as usize;
            if !frame.plain | (frame.packed > arrived) | (upto > MOST) {
                break;
            }
            while packet < upto {
                end = frame.reach().end(end, payload);
                if there < end {
                    let before = now;
                    (now, there) = beyond(&mut arrivals, end);
                    // Times do not decrease.
                    let since = now.as_nanos().wrapping_sub(before.as_nanos());
                    gap = gap.max(since);
                    late += u64::from(since > threshold.as_nanos());
                }
                self.delays[packet] = now - frame.at;
                packet += 1;
            }
            complete += 1;
        }
        let noted = notes.count() - arrivals.len();
        self.reach = frames[..complete].last().map_or(before, Waiting::reach);
        (self.first, self.frames, self.notes) = (first, complete, noted);
        (self.last, self.gap, self.late) = (now, Duration::from_nanos(gap), late);
    }
}
