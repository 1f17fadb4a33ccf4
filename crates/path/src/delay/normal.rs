//! Jitter from a normal distribution truncated at 0: `base + |X|`, X of mean 0 and deviation `sigma`, with a mean of
//! `base + sigma·sqrt(2/π)`. Two draws per packet.

use super::model::Model;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Time;
use skyhaul_base::{Duration, Instant, Rng};

/// `base` plus the absolute value of a normally distributed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Normal {
    /// Smallest delay.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub base: Duration,
    /// Standard deviation of the normally distributed time, before its absolute value is taken.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub sigma: Duration,
}

impl Model for Normal {
    fn base(&self) -> Duration {
        self.base
    }
    fn spread(&self) -> Duration {
        self.sigma
    }
    #[inline]
    fn sample(&self, _: Instant, rng: &mut Rng) -> Duration {
        self.base + self.sigma.mul_f64(skyhaul_base::math::abs(rng.normal()))
    }
}
