//! A constant delay. Half of the round-trip times of [Peach Table I] gives 275 ms (GEO), 125 ms (MEO), 25 ms (LEO).
//! No draws.

use super::model::Model;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Time;
use skyhaul_base::{Duration, Instant, Rng};

/// A constant delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fixed {
    /// The delay.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub base: Duration,
}

impl Model for Fixed {
    fn base(&self) -> Duration {
        self.base
    }
    fn spread(&self) -> Duration {
        Duration::ZERO
    }
    fn constant(&self) -> Option<Duration> {
        Some(self.base)
    }
    #[inline]
    fn sample(&self, _: Instant, _: &mut Rng) -> Duration {
        self.base
    }
}
