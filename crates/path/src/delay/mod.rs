//! Propagation delay.
//!
//! Each delay has its own file with its [`Model`], whose fields are its form in scenario files. A new delay needs
//! only that file and one line in the list below. A delay that follows a trace is not a table in the scenario: it is a
//! file of values.

pub mod fixed;
mod model;
pub mod normal;
mod ramp;
mod trace;
pub mod uniform;

use alloc::sync::Arc;
use skyhaul_base::{Duration, Instant, Rng};

pub use model::Model;
pub use ramp::Ramp;
pub use trace::{DelayTrace, Interpolation};

/// The maximum delay: an hour one way, seven times that of light from the Sun.
pub const LONGEST: Duration = Duration::from_secs(3_600);

/// The delay exceeds [`LONGEST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("longer than an hour one way")]
pub struct TooLong;

skyhaul_base::kinds! {
    each;
    // Jitter is drawn once per packet, even if the channel then corrupts the packet. Without `allow_reorder`
    // ([`crate::LinkConfig`]) a link delays an arrival until the previous one: a FIFO radio link never
    // reorders, and a falling delay shows as a burst (*our choice*).
    /// Propagation delay. Short form: a time.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DelaySpec"))]
    #[expect(missing_docs, reason = "each delay documents itself")]
    pub enum Delay {
        "fixed" Fixed(fixed::Fixed),
        "normal" Normal(normal::Normal),
        "uniform" Uniform(uniform::Uniform),
    } + {
        /// As a function of the time at which the last bit leaves. No draws.
        skip Trace(Arc<DelayTrace>),
        /// A delay that changes linearly, as the path of a satellite sets it ([`Course`](crate::course::Course)). No draws.
        skip Ramp(Ramp),
    }
}

impl Delay {
    /// The minimum delay.
    #[must_use]
    pub fn base(&self) -> Duration {
        each!(self, Delay(d) => d.base())
    }
    /// The minimum delay of a packet whose last bit leaves at `departure`.
    #[must_use]
    pub fn base_at(&self, departure: Instant) -> Duration {
        each!(self, Delay(d) => d.base_at(departure))
    }
    /// The delay of a packet whose last bit leaves at `departure`.
    #[inline]
    pub fn sample(&mut self, departure: Instant, rng: &mut Rng) -> Duration {
        each!(self, Delay(d) => d.sample(departure, rng))
    }
    /// The delay of all packets, if it is constant.
    #[must_use]
    pub fn constant(&self) -> Option<Duration> {
        each!(self, Delay(d) => d.constant())
    }
    /// Refuses a delay, or a jitter, beyond [`LONGEST`].
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn validate(&self) -> Result<(), TooLong> {
        let spread = each!(self, Delay(d) => d.spread());
        if self.base().max(spread) > LONGEST { Err(TooLong) } else { Ok(()) }
    }
}

impl Delay {
    /// Always the same.
    #[must_use]
    pub const fn fixed(base: Duration) -> Self {
        Self::Fixed(fixed::Fixed { base })
    }
}

impl Default for Delay {
    fn default() -> Self {
        Self::fixed(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::normal::Normal;
    use super::uniform::Uniform;
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
        assert_eq!(Delay::fixed(BASE).sample(Instant::ZERO, &mut rng), BASE);
        assert_eq!(rng, before);
    }

    #[test]
    fn uniform_jitter_has_the_right_moments() {
        let (mean, dev, most) = moments(Uniform { base: BASE, jitter: Duration::from_millis(20) }.into());
        // Deviation of the mean: 5.77 ms / sqrt(N) = 0.013 ms; five of them.
        assert!((mean - 0.010).abs() < 6.5e-5, "{mean}");
        assert!((dev - 0.020 / 12f64.sqrt()).abs() < 1e-4, "{dev}");
        assert!(most < 0.020);
    }

    #[test]
    fn truncated_normal_jitter_has_the_right_moments() {
        let (mean, dev, most) = moments(Normal { base: BASE, sigma: Duration::from_millis(10) }.into());
        let pi = core::f64::consts::PI;
        assert!((mean - 0.010 * (2.0 / pi).sqrt()).abs() < 7e-5, "{mean}");
        assert!((dev - 0.010 * (1.0 - 2.0 / pi).sqrt()).abs() < 1e-4, "{dev}");
        assert!(most > 0.030 && most < 0.070);
    }
}
