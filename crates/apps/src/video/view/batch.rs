//! Packets that arrived in order and are not counted yet. Counting many at once saves most of the work per packet.

use super::gaps::Gaps;
use super::tally::Tally;
use skyhaul_base::{Duration, Instant};

/// How many.
const MOST: usize = 64;

/// When successive packets arrived, and how long after their production.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    times: [Instant; MOST],
    delays: [Duration; MOST],
    len: usize,
    /// They were produced after the warm-up.
    counts: bool,
}

impl Default for Batch {
    fn default() -> Self {
        Self { times: [Instant::ZERO; MOST], delays: [Duration::ZERO; MOST], len: 0, counts: false }
    }
}

impl Batch {
    /// Whether there is room for one more, which counts or does not.
    #[inline]
    pub(super) fn takes(&self, counts: bool) -> bool {
        self.len < MOST && (self.counts == counts || self.len == 0)
    }
    /// One more, if [it takes it](Self::takes).
    #[inline]
    pub(super) fn push(&mut self, now: Instant, delay: Duration, counts: bool) {
        if let (Some(time), Some(place)) = (self.times.get_mut(self.len), self.delays.get_mut(self.len)) {
            (*time, *place) = (now, delay);
            self.counts = counts;
            self.len += 1;
        }
    }

    /// Counts all of them; `next` is the packet after the last one. `wire` knows as much as the tally.
    pub(super) fn count(&mut self, next: u64, tally: &mut Tally, wire: &mut Gaps) {
        let len = core::mem::take(&mut self.len).min(MOST);
        if len > 0 {
            tally.packets(next, &self.times[..len], &self.delays[..len], self.counts, wire);
        }
    }
}
