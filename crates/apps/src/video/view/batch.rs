//! Packets that arrived in order and are not counted yet. Counting many at once saves most of the work per packet.

use super::gaps::Gaps;
use super::tally::Tally;
use skyhaul_base::{Duration, Instant};

/// How many.
pub(super) const MOST: usize = 64;

/// How long after their production successive packets arrived.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    delays: [Duration; MOST],
    len: usize,
    /// They were produced after the warm-up.
    counts: bool,
    /// How many arrived later than this after the one before, and when the last one did.
    threshold: Duration,
    late: u64,
    last: Instant,
}

impl Batch {
    /// Of a viewer for whom packets are late after so long.
    pub(super) fn new(threshold: Duration) -> Self {
        let (delays, last) = ([Duration::ZERO; MOST], Instant::MAX);
        Self { delays, len: 0, counts: false, threshold, late: 0, last }
    }

    /// The next packet follows those that `delivery` knows.
    #[inline(always)]
    pub(super) fn begin(&mut self, delivery: &Gaps) {
        self.last = delivery.last();
    }

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
        let Some(place) = self.delays.get_mut(self.len) else { return false };
        *place = delay;
        self.len += 1;
        self.late += u64::from(now.since(self.last) > self.threshold);
        self.last = now;
        true
    }

    /// Room for the delays of more packets, if there are none; how many of them are late and when the last one arrived
    /// then follows from [`Self::fill`].
    #[inline(always)]
    pub(super) fn room(&mut self) -> Option<(&mut [Duration; MOST], Duration)> {
        if self.len == 0 { Some((&mut self.delays, self.threshold)) } else { None }
    }
    /// So many packets, which count and whose delays are [there](Self::room).
    #[inline(always)]
    pub(super) fn fill(&mut self, packets: usize, late: u64, last: Instant) {
        (self.len, self.late, self.last, self.counts) = (packets, late, last, true);
    }

    /// Counts all of them; `next` is the packet after the last one. `wire` knows as much as the tally.
    pub(super) fn count(&mut self, next: u64, tally: &mut Tally, wire: &mut Gaps) {
        let len = core::mem::take(&mut self.len).min(MOST);
        let late = core::mem::take(&mut self.late);
        if len > 0 {
            for gaps in [&mut tally.delivery, wire] {
                gaps.in_order(len as u64, late, self.last, self.counts);
            }
            if self.counts {
                tally.delays(next, &self.delays[..len]);
            }
        }
    }
}
