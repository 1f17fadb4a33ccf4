//! The times of frames.

use skyhaul_base::{Duration, Instant};

/// Ticks at equal intervals, which need not be whole nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    begin: Instant,
    /// Time between ticks, s.
    interval: f64,
    /// The same in nanoseconds, rounded, and the number of ticks whose times are multiples of this.
    whole: u64,
    exact: u64,
}

impl Clock {
    /// Up to so many nanoseconds, the three roundings in [`Self::at`] are off by less than half a nanosecond together:
    /// whole intervals give the same times, with fewer instructions.
    const EXACT: u64 = 1 << 50;

    /// So many ticks a second from `begin` on.
    pub(super) fn new(begin: Instant, rate: f64) -> Self {
        let interval = 1.0 / rate;
        let whole = ((1e9 / rate + 0.5) as u64).max(1);
        let exact = if whole as f64 * rate == 1e9 { Self::EXACT / whole } else { 0 };
        Self { begin, interval, whole, exact }
    }
    /// Time between ticks, s.
    pub(super) fn interval(&self) -> f64 {
        self.interval
    }
    /// The time between any two ticks before tick `to`, if it is the same.
    #[inline]
    pub(super) fn regular(&self, to: u64) -> Option<Duration> {
        (to <= self.exact).then_some(Duration::from_nanos(self.whole))
    }
    /// The time of a tick, from 0. Each is rounded separately, so that errors do not accumulate.
    #[inline(always)]
    pub(super) fn at(&self, tick: u64) -> Instant {
        let nanos = if tick < self.exact {
            tick * self.whole
        } else {
            // As `Duration::from_secs_f64`, but signed, since that is converted with fewer instructions.
            (tick as i64 as f64 * self.interval * 1e9 + 0.5) as i64 as u64
        };
        self.begin + Duration::from_nanos(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_intervals_are_as_exact_as_others() {
        let begin = Instant::from_nanos(12_345);
        for rate in [25.0, 24.0, 30.0, 29.97, 50.0, 60.0, 12.5, 1.0, 0.1, 1000.0] {
            let clock = Clock::new(begin, rate);
            for tick in (0..2_000_000).step_by(37).chain([1 << 24]) {
                let expected = begin + Duration::from_secs_f64(tick as f64 * (1.0 / rate));
                assert_eq!(clock.at(tick), expected, "{rate} {tick}");
                if let Some(interval) = clock.regular(tick + 2) {
                    assert_eq!(clock.at(tick) + interval, clock.at(tick + 1));
                }
            }
        }
        assert!(Clock::new(begin, 25.0).exact > 1 << 24 && Clock::new(begin, 29.97).exact == 0);
    }
}
