//! Frame delays: the time from the production of each frame to its last byte, and frames that never arrived.

use crate::spans::{Spans, nanos};
use crate::viewed::FRAME_SHARES;
use skyhaul_base::Duration;

/// Maximum resolved delay, microseconds: a day.
const LONGEST: u64 = 86_400_000_000;

/// The delays of frames.
#[derive(Clone, Debug, Default)]
pub(super) struct Lateness {
    /// Frames known to be in time or too late.
    judged: u64,
    /// Empty before the first frame: flows without video use no memory.
    spans: Spans,
}

impl Lateness {
    /// So many more frames that were in time, or whose deadline has passed, sent or not.
    #[inline]
    pub(super) fn judged(&mut self, frames: u64) {
        self.judged += frames;
    }
    /// Such a frame is complete, `delay` after its production.
    #[inline]
    pub(super) fn complete(&mut self, delay: Duration) {
        self.begin();
        self.spans.record(delay);
    }
    /// Such frames are complete, so long after their production.
    #[inline(always)]
    pub(super) fn complete_all(&mut self, delays: impl ExactSizeIterator<Item = Duration> + Clone) {
        self.begin();
        self.spans.record_all(delays.clone(), |cells| delays.for_each(|delay| cells.add(nanos(delay))));
    }
    /// Before a frame is complete, perhaps the first one.
    #[inline]
    fn begin(&mut self) {
        if self.spans.total() == 0 {
            self.spans = Spans::new(LONGEST);
        }
    }

    /// The delay within which each of [`FRAME_SHARES`] of all frames was complete (nearest rank), s; `None` if
    /// fewer ever arrived. So many more than were judged are missing.
    pub(super) fn quantiles(&self, missing: u64) -> [Option<f64>; FRAME_SHARES.len()] {
        let (total, judged) = (self.spans.total(), (self.judged + missing) as f64);
        // For products slightly above the whole number that they represent.
        let ranks = FRAME_SHARES.map(|share| ((share * judged - 1e-9).ceil() as u64).max(1));
        let quantiles = self.spans.quantiles(ranks.map(|rank| rank as f64 / total as f64));
        core::array::from_fn(|i| (total >= ranks[i]).then(|| quantiles[i] as f64 * 1e-6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_came_is_behind_everything_that_came() {
        let mut l = Lateness::default();
        assert_eq!(l.quantiles(0), [None; FRAME_SHARES.len()]);
        for ms in 1..=90 {
            l.judged(1);
            l.complete(Duration::from_millis(ms));
        }
        l.judged(4);
        // Of 100 frames the 5th, 25th, 50th, 75th and 90th; the 95th never came.
        let found = l.quantiles(6);
        for (share, at) in FRAME_SHARES.iter().zip(found) {
            let rank = share * 100.0;
            if rank > 90.0 {
                assert_eq!(at, None, "{share}");
            } else {
                assert!((at.expect("came") / (rank * 1e-3) - 1.0).abs() < 1.1e-3, "{share}: {at:?}");
            }
        }
    }
}
