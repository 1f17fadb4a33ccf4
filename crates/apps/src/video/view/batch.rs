//! Packets that arrived in order and are not counted yet. Counting many at once saves most of the work per packet.

use super::gaps::Gaps;
use super::tally::Tally;
use skyhaul_base::{Duration, Instant};

/// How many.
const MOST: usize = 64;

/// When successive packets arrived, and how long after their production.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    packets: [(Instant, Duration); MOST],
    len: usize,
    /// They were produced after the warm-up.
    counts: bool,
}

impl Default for Batch {
    fn default() -> Self {
        Self { packets: [(Instant::ZERO, Duration::ZERO); MOST], len: 0, counts: false }
    }
}

impl Batch {
    /// One more, which counts or does not. False, and nothing has changed, if those before must be
    /// [counted](Self::count) first.
    #[inline(always)]
    pub(super) fn push(&mut self, now: Instant, delay: Duration, counts: bool) -> bool {
        if self.counts != counts {
            if self.len > 0 {
                return false;
            }
            self.counts = counts;
        }
        let Some(place) = self.packets.get_mut(self.len) else { return false };
        *place = (now, delay);
        self.len += 1;
        true
    }

    /// Counts all of them; `next` is the packet after the last one. `wire` knows as much as the tally.
    pub(super) fn count(&mut self, next: u64, tally: &mut Tally, wire: &mut Gaps) {
        let len = core::mem::take(&mut self.len).min(MOST);
        if len > 0 {
            tally.packets(next, &self.packets[..len], self.counts, wire);
        }
    }
}
