//! Packets of a byte stream in the order in which their last bytes arrive.

use super::ahead::Ahead;
use super::batch::Batch;
use super::frames::Frames;
use super::gaps::Gaps;
use super::notes::{Notes, beyond};
use super::waiting::Waiting;
use crate::video::packet::Reach;
use skyhaul_base::{Duration, Instant};

/// Which packets arrived, and which of them late.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    gaps: Gaps,
    /// Packets that arrived out of order.
    ahead: Ahead,
    /// Whether the next packet needs only its time: as it is now, packets arrived in order.
    in_step: bool,
}

impl Wire {
    pub(super) fn new(threshold: Duration) -> Self {
        Self { gaps: Gaps::new(threshold), ahead: Ahead::default(), in_step: true }
    }
    /// What is known of the gaps between packets.
    pub(super) fn gaps(&self) -> &Gaps {
        &self.gaps
    }
    /// Bytes `[from, to)` have arrived, and everything in order before `from`; `next` is the next packet in order.
    pub(super) fn segment(
        &mut self,
        now: Instant,
        bytes: (u64, u64),
        next: u64,
        frames: &Frames,
        payload: u64,
    ) {
        self.in_step = false;
        let new = |number, counts| self.gaps.arrived(now, number, counts);
        self.ahead.segment(bytes, next, frames, payload, new);
    }
    /// Packet `number`, the next one in order, is available; its last byte may have been here before.
    #[inline]
    pub(super) fn next(&mut self, now: Instant, number: u64, counts: bool) {
        if !self.ahead.next() {
            self.gaps.arrived(now, number, counts);
        }
    }
    /// These frames of a batch are complete, which count; before them the film reaches so far, and the last packet was
    /// available at this time.
    #[inline]
    pub(super) fn frames(
        &mut self,
        frames: &[Waiting],
        batch: &Batch,
        notes: &Notes,
        payload: u64,
        before: (Reach, Instant),
    ) {
        let (packets, late) =
            if self.in_step { (0, 0) } else { self.packets(frames, notes, payload, before) };
        if self.in_step {
            self.gaps.in_order(batch.packets() - packets, batch.late - late, batch.last);
        }
    }
    /// The packets of the first of these frames, one by one, until they are in step: how many that are, and how many of them
    /// were available late after the one before.
    #[inline(never)]
    fn packets(
        &mut self,
        frames: &[Waiting],
        notes: &Notes,
        payload: u64,
        (before, mut last): (Reach, Instant),
    ) -> (u64, u64) {
        let (mut number, mut end, mut late) = (before.packets, before.packed, 0);
        let (mut now, mut there, mut arrivals) = (last, end, notes.iter());
        for frame in frames {
            let to = frame.reach();
            for number in number..to.packets {
                end = to.end(end, payload);
                if end > there {
                    (now, there) = beyond(&mut arrivals, end);
                }
                late += u64::from(self.gaps.is_late(now, last));
                last = now;
                self.next(now, number, true);
            }
            number = to.packets;
            self.in_step = self.ahead.is_empty() && self.gaps.agrees(number, last);
            if self.in_step {
                break;
            }
        }
        (number - before.packets, late)
    }
}
