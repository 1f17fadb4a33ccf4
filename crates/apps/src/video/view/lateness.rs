//! Frame delays: the time from the production of each frame to its last byte, and frames that never arrived.

use crate::spans::Spans;
use crate::viewed::FRAME_SHARES;
use skyhaul_base::Duration;

/// The delays of frames.
#[derive(Clone, Debug, Default)]
pub(super) struct Lateness {
    /// Number of frames that are complete or past their deadline.
    judged: u64,
    /// Delays of the complete ones among them.
    delays: Spans,
}

impl Lateness {
    /// Counts a frame that was complete in time, or whose deadline has passed, whether it was sent or not.
    pub(super) fn judged(&mut self) {
        self.judged += 1;
    }
    /// Records that a counted frame is complete, `delay` after its production.
    pub(super) fn complete(&mut self, delay: Duration) {
        self.delays.record(delay);
    }

    /// Quantiles of the delay over all frames (nearest rank), s, at the shares [`FRAME_SHARES`]. A quantile is `None` if
    /// a smaller share of the frames was ever complete.
    pub(super) fn quantiles(&self) -> [Option<f64>; FRAME_SHARES.len()] {
        FRAME_SHARES.map(|share| {
            // Rounding may put a product that should be a whole number slightly above it; `ceil` would add 1.
            let rank = (share * self.judged as f64 - 1e-9).ceil().max(1.0);
            let complete = self.delays.total() as f64;
            (complete >= rank).then(|| self.delays.quantile(rank / complete))?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_never_arrive_count_as_the_latest() {
        let mut l = Lateness::default();
        assert_eq!(l.quantiles(), [None; FRAME_SHARES.len()]);
        for ms in 1..=90 {
            l.judged();
            l.complete(Duration::from_millis(ms));
        }
        (0..10).for_each(|_| l.judged());
        // Of 100 frames the 5th, 25th, 50th, 75th and 90th; the 95th never came.
        let found = l.quantiles();
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
