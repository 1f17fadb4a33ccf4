//! Rate limit on a connection's answers to unsolicited segments and to copies of data: segments that an off-path attacker can
//! send blindly must not trigger one answer each (RFC 5961 §7, §10).

use skyhaul_base::{Duration, Instant};

/// Answers to unsolicited segments per [`PERIOD`]: the numbers that RFC 5961 §7 proposes, per connection. On average one
/// in 500 ms, as in Linux (`tcp_invalid_ratelimit`).
const MOST: u64 = 10;
const PERIOD: Duration = Duration::from_secs(5);

/// Amount spent in the current period, and the end of the period.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ration {
    spent: u64,
    until: Instant,
}

impl Ration {
    /// Whether one more answer to an unsolicited segment may leave now; if so, it counts.
    #[cold]
    pub(crate) fn may_send(&mut self, now: Instant) -> bool {
        self.may_spend(now, 1, MOST, PERIOD)
    }

    /// Whether `cost` may be spent now, with a limit of `most` per `period`; if so, it counts.
    #[cold]
    pub(crate) fn may_spend(&mut self, now: Instant, cost: u64, most: u64, period: Duration) -> bool {
        if now >= self.until {
            *self = Self { spent: 0, until: now + period };
        }
        let may = self.spent + cost <= most;
        self.spent += if may { cost } else { 0 };
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_much_in_each_period_and_no_more() {
        let ms = |n| Instant::ZERO + Duration::from_millis(n);
        let mut r = Ration::default();
        let mut spent =
            |at| (0..50).filter(|_| r.may_spend(ms(at), 300, 1000, Duration::from_millis(20))).count();
        assert_eq!([0, 19, 20, 1000, 1019].map(&mut spent), [3, 0, 3, 3, 0]);
        let mut r = Ration::default();
        assert_eq!((0..10_000).filter(|n| r.may_send(ms(*n))).count(), 20, "two periods of ten");
    }
}
