//! Named random streams and the few samplers that models need, frozen by known-answer tests.
//!
//! One stream per (object, purpose), keyed by a name such as `links.sat.forward.error`: adding an object or
//! switching a model off cannot shift another's draws, and two algorithms that run on the same seed meet
//! the same losses (common random numbers).

use crate::hash::Fnv;
use crate::math;
use crate::time::Duration;

/// xoshiro256++ (Blackman, Vigna: "Scrambled linear pseudorandom number generators", 2019).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    s: [u64; 4],
}

/// SplitMix64, the seeding generator that the authors of xoshiro recommend.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The stream called `name` of run `seed`.
    #[must_use]
    pub fn stream(seed: u64, name: &str) -> Self {
        let mut h = Fnv::default();
        h.write_u64(seed);
        h.write(name.as_bytes());
        let mut state = h.finish();
        Self { s: core::array::from_fn(|_| split_mix(&mut state)) }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A real number, uniform on [0, 1) with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        self.units() * Self::UNIT
    }
    /// The distance between neighbouring values of [`Self::unit`].
    pub const UNIT: f64 = 1.0 / 9_007_199_254_740_992.0;
    /// The same as [`Self::unit`] in units of [`Self::UNIT`]: a whole number.
    #[inline]
    pub fn units(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64
    }

    /// One Bernoulli draw; exactly one step of the stream whatever the outcome.
    #[inline(always)]
    pub fn chance(&mut self, p: Chance) -> bool {
        let x = self.next_u64();
        x < p.threshold || p.certain
    }

    /// A span uniform on [0, max); zero for an empty `max`.
    pub fn uniform(&mut self, max: Duration) -> Duration {
        Duration::from_nanos(((u128::from(self.next_u64()) * u128::from(max.as_nanos())) >> 64) as u64)
    }

    /// An integer uniform on [0, n); zero for n = 0. The bias is below 2^-64 · n.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Exponentially distributed with the given mean (inverse transform, one draw).
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u lies in (0, 1], so the logarithm is finite.
        -mean * math::ln(1.0 - self.unit())
    }

    /// Normally distributed with mean 0 and standard deviation 1 (Box–Muller, always two draws).
    pub fn normal(&mut self) -> f64 {
        let r = math::sqrt(-2.0 * math::ln(1.0 - self.unit()));
        r * math::cos(core::f64::consts::TAU * self.unit())
    }
}

/// A probability as an integer threshold, prepared once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    threshold: u64,
    certain: bool,
}

impl Chance {
    /// Never.
    pub const NEVER: Self = Self { threshold: 0, certain: false };

    /// The probability `p`, clamped to [0, 1]; NaN counts as 0.
    #[must_use]
    pub fn new(p: f64) -> Self {
        // 2^64 as a real number; `as` saturates.
        Self { threshold: (p.max(0.0) * 18_446_744_073_709_551_616.0) as u64, certain: p >= 1.0 }
    }
    /// True if the outcome is always "no".
    #[must_use]
    pub fn is_never(self) -> bool {
        self.threshold == 0 && !self.certain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_frozen() {
        // Known answers, computed separately: a change here changes every result that users have stored.
        let stream = || Rng::stream(1, "links.sat.forward.error");
        let mut a = stream();
        let first: [u64; 3] = core::array::from_fn(|_| a.next_u64());
        assert_eq!(first, [0x35dc_3ad7_9a27_d376, 0x1a0f_3746_4dc9_036f, 0x0199_6442_dc72_e39c]);
        let mut b = stream();
        assert_eq!(b.uniform(Duration::from_secs(1)), Duration::from_nanos(210_391_690));
        assert_eq!((b.below(1000), b.unit()), (101, 0.006_246_820_758_359_473));
        assert!((b.exponential(2.0) - 3.252_866_322_044_863_7).abs() < 1e-14);
        assert!((b.normal() - 0.168_626_031_322_803_68).abs() < 1e-14);
        let mut other = Rng::stream(1, "links.sat.reverse.error");
        assert_ne!(first[0], other.next_u64());
        let mut seed2 = Rng::stream(2, "links.sat.forward.error");
        assert_ne!(first[0], seed2.next_u64());
    }

    #[test]
    fn xoshiro_reference_vector() {
        // From state {1, 2, 3, 4}: the first outputs of the reference C code of xoshiro256++ 1.0.
        let mut r = Rng { s: [1, 2, 3, 4] };
        assert_eq!(r.next_u64(), 41_943_041);
        assert_eq!(r.next_u64(), 58_720_359);
        assert_eq!(r.next_u64(), 3_588_806_011_781_223);
    }

    #[test]
    fn certain_and_impossible_events() {
        let mut r = Rng::stream(3, "x");
        assert!((0..1000).all(|_| r.chance(Chance::new(1.0))));
        assert!((0..1000).all(|_| !r.chance(Chance::new(0.0))));
        assert!(Chance::new(0.0).is_never() && !Chance::new(1e-12).is_never());
    }

    #[test]
    fn sampler_means_are_right() {
        let n = 200_000;
        let mut r = Rng::stream(4, "x");
        let hits = (0..n).filter(|_| r.chance(Chance::new(0.01))).count() as f64;
        // Binomial: deviation sqrt(n p q) = 44.5; five of them.
        assert!((hits - 2000.0).abs() < 223.0, "{hits}");
        let mean = (0..n).map(|_| r.exponential(2.0)).sum::<f64>() / f64::from(n);
        assert!((mean - 2.0).abs() < 5.0 * 2.0 / 447.0, "{mean}");
        let (mut m1, mut m2) = (0.0, 0.0);
        for _ in 0..n {
            let x = r.normal();
            m1 += x;
            m2 += x * x;
        }
        assert!((m1 / f64::from(n)).abs() < 0.012 && (m2 / f64::from(n) - 1.0).abs() < 0.02);
        let second = Duration::from_secs(1);
        assert!((0..1000).all(|_| r.uniform(second) < second));
    }
}
