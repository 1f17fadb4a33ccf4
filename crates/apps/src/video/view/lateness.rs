//! Frame delays: the time from the production of each frame to its last byte, and frames that never arrived.

use crate::spans::Spans;
use crate::viewed::FRAME_SHARES;
use skyhaul_base::Duration;

/// The delays of frames.
#[derive(Clone, Debug, Default)]
pub(super) struct Lateness {
    /// Frames known to be in time or too late.
    judged: u64,
    spans: Spans,
}

impl Lateness {
    /// One more frame was in time, or its deadline has passed, sent or not.
    pub(super) fn judged(&mut self) {
        self.judged += 1;
    }
    /// Such a frame is complete, `delay` after its production.
    pub(super) fn complete(&mut self, delay: Duration) {
        self.spans.record(delay);
    }

    /// The delay within which each of [`FRAME_SHARES`] of all frames was complete (nearest rank), s; `None` if
    /// fewer ever arrived.
    pub(super) fn quantiles(&self) -> [Option<f64>; FRAME_SHARES.len()] {
        FRAME_SHARES.map(|share| {
            // For products slightly above the whole number that they represent.
            let rank = (share * self.judged as f64 - 1e-9).ceil().max(1.0);
            let total = self.spans.total() as f64;
            (total >= rank).then(|| self.spans.quantile(rank / total))?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_came_is_behind_everything_that_came() {
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
