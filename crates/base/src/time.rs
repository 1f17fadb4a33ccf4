//! Integer time. Nanoseconds in 64 bits: 584 years, exact comparison, no drift.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// Nanoseconds in one second.
const NANOS: u64 = 1_000_000_000;

/// A point in time, in nanoseconds since the start of the run, or in real time since a start that the driver chooses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A span of time in nanoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event; used as "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// Nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// The instant `secs` seconds after the start, rounded to the nearest nanosecond.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(Duration::from_secs_f64(secs).0)
    }
    /// Seconds since the start.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
    /// Time since `earlier`, zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest span that can be expressed.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// A span of `micros` microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }
    /// A span of `millis` milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }
    /// A span of `secs` seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS))
    }
    /// A span of `secs` seconds, rounded to the nearest nanosecond, above 52 days to within one; negative and NaN give
    /// zero, too large saturates.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        // `as` saturates, and maps NaN to 0.
        Self((secs * NANOS as f64 + 0.5) as u64)
    }
    /// Nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS as f64
    }
    /// True for a span of zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The span times a real factor, rounded as by [`Self::from_secs_f64`].
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }
    /// The absolute difference of two spans.
    #[must_use]
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
    /// `self - other`, zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}
impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}
impl Add for Duration {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Self(self.0.saturating_add(o.0))
    }
}
impl Sub for Duration {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        self.saturating_sub(o)
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, k: u64) -> Self {
        Self(self.0.saturating_mul(k))
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    /// # Panics
    /// If `k` is zero.
    fn div(self, k: u64) -> Self {
        Self(self.0 / k)
    }
}
impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / NANOS, self.0 % NANOS)
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / NANOS, self.0 % NANOS)
    }
}

/// Divides many times by the same span, using a multiplication, which is several times faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    span: Duration,
    /// 2^64 divided by the span, rounded up; 0 stands for 2^64.
    inverse: u64,
}

impl Ticks {
    /// Ticks of this length, at least a nanosecond.
    #[must_use]
    pub fn every(span: Duration) -> Self {
        let span = span.max(Duration(1));
        Self { span, inverse: (u64::MAX / span.0).wrapping_add(1) }
    }
    /// The length of a tick.
    #[must_use]
    pub fn span(self) -> Duration {
        self.span
    }
    /// How many whole ticks have passed at `t`.
    #[inline]
    #[must_use]
    pub fn at(self, t: Instant) -> u64 {
        if self.inverse == 0 {
            return t.0;
        }
        // The inverse is too great by less than one unit, so the product is too great by less than one tick.
        let n = ((u128::from(t.0) * u128::from(self.inverse)) >> 64) as u64;
        if n.saturating_mul(self.span.0) > t.0 { n - 1 } else { n }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_round_to_the_nearest_nanosecond_and_saturate() {
        assert_eq!(Duration::from_secs_f64(0.55).as_nanos(), 550_000_000);
        assert_eq!(Duration::from_secs_f64(1e-9 * 0.6).as_nanos(), 1);
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(1e30), Duration::MAX);
    }

    #[test]
    fn arithmetic_saturates() {
        let t = Instant::from_nanos(5);
        assert_eq!(t - Duration::from_nanos(9), Instant::ZERO);
        assert_eq!(Instant::ZERO - t, Duration::ZERO);
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
    }

    proptest::proptest! {
        #[test]
        fn ticks_are_whole_quotients(t: u64, span in proptest::prop_oneof![1..2000u64, 1..u64::MAX], shift in 0..64u32) {
            let ticks = Ticks::every(Duration(span));
            for t in [t >> shift, span, span - 1, (t >> shift) / span * span] {
                proptest::prop_assert_eq!(ticks.at(Instant(t)), t / span);
            }
        }
    }
}
