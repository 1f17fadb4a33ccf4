//! ACK aggregation: data acknowledged at once beyond what the rate explains (Linux `tcp_bbr` of 2019;
//! draft-ietf-ccwg-bbr-06 §5.5.9).

use super::windowed::WindowedMax;
use skyhaul_base::Instant;

/// Rounds, including the current one, for which a burst of acknowledgements is remembered.
const ROUNDS: usize = 10;

/// Data acknowledged beyond what the estimated rate delivers in the same time: the maximum of the last ten rounds.
/// Links and hosts that aggregate acknowledgements need that much more data in flight to stay busy.
#[derive(Clone, Debug, Default)]
pub struct Aggregation {
    /// Start of the current burst.
    since: Instant,
    /// Bytes acknowledged since then.
    acked: f64,
    /// Excess of each round, bytes.
    most: WindowedMax<ROUNDS>,
}

impl Aggregation {
    /// Restarts the measurement at `now`, after silence or at the start; the maximum stays.
    pub fn restart(&mut self, now: Instant) {
        (self.since, self.acked) = (now, 0.0);
    }

    /// Forgets the maximum. Called at the start of each round before the pipe is full: only the current round counts then.
    pub fn forget(&mut self) {
        self.most.clear();
    }

    /// `newly` bytes are acknowledged in round `round`. The estimate is `rate` bit/s and the window `window` bytes,
    /// the maximum that one burst may count for.
    pub fn update(&mut self, now: Instant, round: u64, rate: f64, newly: f64, window: f64) {
        let mut expected = rate / 8.0 * (now - self.since).as_secs_f64();
        if self.acked <= expected {
            // Slower than the estimate: the burst is over.
            (self.acked, self.since, expected) = (0.0, now, 0.0);
        }
        self.acked += newly;
        let extra = (self.acked - expected).min(window);
        self.most.update(round, extra.max(0.0) as u64);
    }

    /// The maximum, bytes.
    #[must_use]
    pub fn extra(&self) -> f64 {
        self.most.max() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;

    #[test]
    fn bursts_count_as_far_as_the_rate_does_not_explain_them() {
        // 80 kbit/s: 10 bytes per ms. 1000 bytes every 100 ms, each time at once: one segment too many, always.
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut a = Aggregation::default();
        for i in 1..=20 {
            a.update(at(100 * i), 0, 80_000.0, 1000.0, 1e6);
        }
        assert_eq!(a.extra(), 1000.0);
        // Three segments at once instead: the first is as expected, ...
        a.update(at(2100), 1, 80_000.0, 3000.0, 1e6);
        assert_eq!(a.extra(), 3000.0);
        // ... 50 ms later 500 bytes of 4000 are explained.
        a.update(at(2150), 1, 80_000.0, 1000.0, 1e6);
        assert_eq!(a.extra(), 3500.0);
        // The window limits; ten rounds later it is forgotten; restart leaves the maximum alone.
        a.update(at(2150), 2, 80_000.0, 90_000.0, 9000.0);
        assert_eq!(a.extra(), 9000.0);
        a.restart(at(60_000));
        assert_eq!(a.extra(), 9000.0);
        a.update(at(60_100), 12, 80_000.0, 1000.0, 1e6);
        assert_eq!(a.extra(), 1000.0, "nothing acknowledged before the restart counts");
        a.forget();
        assert_eq!(a.extra(), 0.0);
    }
}
