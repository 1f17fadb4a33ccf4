//! Packets of a byte stream in the order in which their last bytes arrive.

use super::ahead::Ahead;
use super::gaps::Gaps;
use super::notes::Notes;
use super::waiting::Frames;
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
    /// Whether the next packet needs only its time.
    #[inline(always)]
    pub(super) fn in_step(&self) -> bool {
        self.in_step
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
    /// As many packets as lie between `from` and `to`, which follow one that was available at `last`, are available as the
    /// notes from `place` on say, and count. Returns how many of them were available late after the one before.
    #[inline(never)]
    pub(super) fn packets(
        &mut self,
        (from, to): (Reach, Reach),
        payload: u64,
        notes: &Notes,
        mut place: usize,
        mut last: Instant,
    ) -> u64 {
        let (mut end, mut late) = (from.packed, 0);
        for number in from.packets..to.packets {
            end = (end + payload).min(to.packed);
            let now = notes.reach(&mut place, end);
            late += u64::from(self.gaps.is_late(now, last));
            last = now;
            if !self.in_step {
                self.next(now, number, true);
            }
        }
        self.in_step = self.in_step || self.ahead.is_empty() && self.gaps.agrees(to.packets, last);
        late
    }
    /// So many packets in order arrived and count, so many of them late and the last one at this time, all
    /// [in step](Self::in_step).
    pub(super) fn follow(&mut self, packets: u64, late: u64, last: Instant) {
        self.gaps.in_order(packets, late, last);
    }
}
