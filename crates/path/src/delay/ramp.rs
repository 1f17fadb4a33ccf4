//! A linearly changing delay: a segment of a satellite's path.

use super::model::Model;
use skyhaul_base::{Duration, Instant, Rng};

/// A linear segment between two times; its first and last value hold before and after. No draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    from: Instant,
    to: Instant,
    begin: Duration,
    end: Duration,
    /// Nanoseconds of delay per nanosecond, in units of 2^-32.
    slope: i64,
}

impl Ramp {
    /// The delay is `begin` at `from` and `end` at `to`. If `to` is not after `from`, it is `end` at once.
    #[must_use]
    pub fn new((from, begin): (Instant, Duration), (to, end): (Instant, Duration)) -> Self {
        let rise = i128::from(end.as_nanos()) - i128::from(begin.as_nanos());
        let span = i128::from(to.since(from).as_nanos().max(1));
        let slope = i64::try_from((rise << 32) / span).unwrap_or(0);
        Self { from, to, begin, end, slope }
    }
}

impl Model for Ramp {
    fn base(&self) -> Duration {
        self.begin.min(self.end)
    }
    fn spread(&self) -> Duration {
        self.begin.max(self.end).saturating_sub(self.base())
    }
    #[inline]
    fn base_at(&self, departure: Instant) -> Duration {
        if departure >= self.to {
            return self.end;
        }
        let gone = i128::from(departure.since(self.from).as_nanos());
        let risen = (gone * i128::from(self.slope)) >> 32;
        Duration::from_nanos((i128::from(self.begin.as_nanos()) + risen) as u64)
    }
    fn constant(&self) -> Option<Duration> {
        (self.begin == self.end).then_some(self.end)
    }
    #[inline]
    fn sample(&self, departure: Instant, _: &mut Rng) -> Duration {
        self.base_at(departure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }
    fn ns(n: u64) -> Duration {
        Duration::from_nanos(n)
    }

    #[test]
    fn it_is_exact_at_both_ends_and_straight_between() {
        for (begin, end) in [(1_000_000, 1_007_000), (9_000_000, 3_000_000), (0, 1), (5, 5)] {
            let ramp = Ramp::new((at(100), ns(begin)), (at(100_000_100), ns(end)));
            for (t, expected) in [(0, begin), (100, begin), (100_000_100, end), (u64::MAX, end)] {
                assert_eq!(ramp.base_at(at(t)), ns(expected), "{begin} {end} {t}");
            }
            let half = ramp.base_at(at(50_000_100)).as_nanos();
            // To the nanosecond below, and the slope is rounded once.
            assert!(half.abs_diff(u64::midpoint(begin, end)) <= 1, "{begin} {end} {half}");
        }
    }

    #[test]
    fn no_time_is_a_step() {
        let ramp = Ramp::new((at(7), ns(10)), (at(7), ns(20)));
        assert_eq!((ramp.base_at(at(6)), ramp.base_at(at(7))), (ns(10), ns(20)));
    }
}
