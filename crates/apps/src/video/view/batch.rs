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
    /// The note of the last arrival, when that was, and the longest time without one before it.
    pub(super) note: usize,
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
            note: 0,
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
        self.delays[(frame.reach().packets - self.first).wrapping_sub(1) as usize % MOST]
    }

    /// When the frame at this place of the batch was complete.
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
        (before, mut last): (Reach, Instant),
        threshold: Duration,
    ) {
        // Local, so that they stay in registers.
        let (first, mut end) = (before.packets, before.packed);
        let (mut packet, mut bytes, mut note, mut added) = (0, end, 0, 0);
        let (mut gap, mut late) = (0, 0);
        for frame in frames {
            let to = frame.reach();
            let upto = (to.packets - first) as usize;
            if !frame.plain | (to.packed > arrived) | (upto > MOST) {
                break;
            }
            while packet < upto {
                end = (end + payload).min(to.packed);
                let now = notes.reach(&mut note, end);
                self.delays[packet] = now - frame.at;
                // Times do not decrease.
                let since = now.as_nanos().wrapping_sub(last.as_nanos());
                gap = gap.max(since);
                late += u64::from(since > threshold.as_nanos());
                last = now;
                packet += 1;
            }
            bytes = to.packed;
            added += 1;
        }
        self.reach = Reach { packets: first + packet as u64, packed: bytes, rest: 0 };
        (self.first, self.frames, self.note) = (first, added, note);
        (self.last, self.gap, self.late) = (last, Duration::from_nanos(gap), late);
    }
}
