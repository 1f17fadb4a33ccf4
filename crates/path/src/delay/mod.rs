//! Propagation delay.

mod trace;

use alloc::sync::Arc;
use skyhaul_base::{Duration, Instant, Rng};

pub use trace::{DelayTrace, Interpolation};

/// How long a packet travels after its last bit has left the transmitter.
///
/// Jitter is drawn once per packet, also for a packet that the channel then corrupts. Without
/// `allow_reorder` ([`crate::LinkConfig`]) a link delays an arrival until that of the packet before it: a FIFO
/// radio link never reorders, and a falling delay shows as a burst (*our choice*).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Always the same. Half of the round-trip times of [Peach Table I] gives 275 ms (GEO), 125 ms (MEO),
    /// 25 ms (LEO).
    Fixed(Duration),
    /// `base + |X|` with X normal of mean 0 and deviation `sigma`, i.e. a normal distribution truncated at 0;
    /// mean `base + sigma·sqrt(2/π)`. Two draws per packet.
    Normal {
        /// Smallest delay.
        base: Duration,
        /// Deviation of the normal distribution before truncation.
        sigma: Duration,
    },
    /// As a function of the time at which the last bit leaves. No draws.
    Trace(Arc<DelayTrace>),
    /// `base + X` with X uniform on [0, `jitter`). One draw per packet.
    Uniform {
        /// Smallest delay.
        base: Duration,
        /// Length of the interval.
        jitter: Duration,
    },
}

impl Default for Delay {
    fn default() -> Self {
        Self::Fixed(Duration::ZERO)
    }
}

impl Delay {
    /// The smallest delay.
    #[must_use]
    pub fn base(&self) -> Duration {
        match self {
            Self::Fixed(base) | Self::Normal { base, .. } | Self::Uniform { base, .. } => *base,
            Self::Trace(trace) => trace.least(),
        }
    }
    /// The smallest delay of a packet whose last bit leaves at `departure`.
    #[must_use]
    pub fn base_at(&self, departure: Instant) -> Duration {
        match self {
            Self::Trace(trace) => trace.at(departure),
            _ => self.base(),
        }
    }
    /// The delay of a packet whose last bit leaves at `departure`.
    #[inline]
    pub fn sample(&mut self, departure: Instant, rng: &mut Rng) -> Duration {
        match self {
            Self::Fixed(base) => *base,
            Self::Normal { base, sigma } => *base + sigma.mul_f64(skyhaul_base::math::abs(rng.normal())),
            Self::Trace(trace) => trace.at(departure),
            Self::Uniform { base, jitter } => *base + rng.uniform(*jitter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(275);
    const N: u32 = 200_000;

    /// Mean and standard deviation of the part above `BASE`, in seconds, and the largest value.
    fn moments(mut d: Delay) -> (f64, f64, f64) {
        let mut rng = Rng::stream(7, "links.sat.delay");
        let (mut sum, mut squares, mut most) = (0.0, 0.0, 0.0f64);
        for _ in 0..N {
            let sample = d.sample(Instant::ZERO, &mut rng);
            assert!(sample >= BASE);
            let x = (sample - BASE).as_secs_f64();
            sum += x;
            squares += x * x;
            most = most.max(x);
        }
        let mean = sum / f64::from(N);
        (mean, skyhaul_base::math::sqrt(squares / f64::from(N) - mean * mean), most)
    }

    #[test]
    fn fixed_delay_draws_nothing() {
        let mut rng = Rng::stream(7, "x");
        let before = rng.clone();
        assert_eq!(Delay::Fixed(BASE).sample(Instant::ZERO, &mut rng), BASE);
        assert_eq!(rng, before);
    }

    #[test]
    fn uniform_jitter_has_the_right_moments() {
        let (mean, dev, most) = moments(Delay::Uniform { base: BASE, jitter: Duration::from_millis(20) });
        // Deviation of the mean: 5.77 ms / sqrt(N) = 0.013 ms; five of them.
        assert!((mean - 0.010).abs() < 6.5e-5, "{mean}");
        assert!((dev - 0.020 / 12f64.sqrt()).abs() < 1e-4, "{dev}");
        assert!(most < 0.020);
    }

    #[test]
    fn truncated_normal_jitter_has_the_right_moments() {
        let (mean, dev, most) = moments(Delay::Normal { base: BASE, sigma: Duration::from_millis(10) });
        let pi = core::f64::consts::PI;
        assert!((mean - 0.010 * (2.0 / pi).sqrt()).abs() < 7e-5, "{mean}");
        assert!((dev - 0.010 * (1.0 - 2.0 / pi).sqrt()).abs() < 1e-4, "{dev}");
        assert!(most > 0.030 && most < 0.070);
    }
}
