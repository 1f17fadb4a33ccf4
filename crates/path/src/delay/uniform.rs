//! Jitter from a uniform distribution: `base + X`, X on [0, `jitter`). One draw per packet.

use super::model::Model;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Time;
use skyhaul_base::{Duration, Instant, Rng};

/// `base` plus a uniformly distributed time between 0 and `jitter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Uniform {
    /// Smallest delay.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub base: Duration,
    /// Upper bound of the added time.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub jitter: Duration,
}

impl Model for Uniform {
    fn base(&self) -> Duration {
        self.base
    }
    fn spread(&self) -> Duration {
        self.jitter
    }
    #[inline]
    fn sample(&self, _: Instant, rng: &mut Rng) -> Duration {
        self.base + rng.uniform(self.jitter)
    }
}
