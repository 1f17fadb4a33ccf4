//! Packets whose arrival is noted and not counted yet: those of a frame are counted at once, which saves most of the
//! work per packet.

use super::gaps::Gaps;
use super::seen::Seen;
use crate::datagram::Delays;
use crate::viewed::{FIXED, Viewed};
use skyhaul_base::Instant;

/// A large frame needs more than one batch.
const MOST: usize = 16;

/// Arrival times of successive packets of a frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Batch {
    times: [Instant; MOST],
    len: usize,
}

impl Batch {
    /// Whether there is room for one more.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.len < MOST
    }
    /// One more.
    #[inline]
    pub(super) fn push(&mut self, now: Instant) {
        if let Some(place) = self.times.get_mut(self.len) {
            *place = now;
            self.len += 1;
        }
    }

    /// Counts all of them, which are of `frame`; `next` is the packet after the last one. `wire` knows as much as
    /// `delivery`.
    #[inline]
    pub(super) fn count(
        &mut self,
        frame: &Seen,
        next: u64,
        [delivery, wire]: [&mut Gaps; 2],
        (delays, viewed): (&mut Delays, &mut Viewed),
    ) {
        let times = self.times.get(..self.len).unwrap_or(&self.times);
        let Some(&last) = times.last() else { return };
        let late = delivery.in_order(times, frame.counts);
        wire.follow(delivery, times.len() as u64, late, frame.counts);
        if frame.counts {
            delays.packets(next, frame.at, times);
            if last - frame.at > FIXED[0] {
                times.iter().for_each(|t| viewed.count_late(*t - frame.at));
            }
        }
        self.len = 0;
    }
}
