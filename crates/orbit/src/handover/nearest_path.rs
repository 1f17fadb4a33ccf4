//! The satellite with the shortest path between both stations serves.

use super::model::{Candidate, Model, greatest, unless_kept};
use crate::invalid::Invalid;
use skyhaul_base::Duration;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Time;

/// The satellite with the shortest path between both stations serves.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Reduction of the delay that another path needs to take over; 1 ms by default.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub hysteresis: Duration,
}

impl Default for Config {
    /// 1 ms (*our choice*): about the delay variation of a low satellite during a pass.
    fn default() -> Self {
        Self { hysteresis: Duration::from_millis(1) }
    }
}

impl Model for Config {
    fn validate(&self) -> Result<(), Invalid> {
        if self.hysteresis > Duration::from_secs(1) {
            return Err(Invalid::new(
                "hysteresis",
                "more than a second: no handover shortens the path by this much",
            ));
        }
        Ok(())
    }
    fn choose(
        &self,
        serving: Option<&Candidate>,
        candidates: &[Candidate],
        _: &mut dyn FnMut(u32) -> f64,
    ) -> Option<u32> {
        let best = greatest(candidates, |c| -c.delay);
        // Half a nanosecond for the rounding of the subtraction.
        let least = self.hysteresis.as_secs_f64() + 5e-10;
        unless_kept(serving, best, |serving, best| serving.delay - best.delay > least)
    }
    fn shortens(&self) -> bool {
        true
    }
}
