//! The highest satellite serves.

use super::model::{Candidate, Model, greatest, unless_kept};
use crate::invalid::{Invalid, within};
#[cfg(feature = "schema")]
use skyhaul_base::amount::Angle;

/// The satellite with the highest elevation serves; the lower elevation of both stations counts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Additional elevation that another satellite needs to take over; 5 degrees by default.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle"))]
    #[cfg_attr(feature = "schema", schemars(with = "Angle"))]
    pub hysteresis: f64,
}

impl Default for Config {
    /// 5 degrees (*our choice*): without hysteresis, two satellites at about the same elevation would alternate.
    fn default() -> Self {
        Self { hysteresis: 5.0 }
    }
}

impl Model for Config {
    fn validate(&self) -> Result<(), Invalid> {
        within("hysteresis", self.hysteresis, 0.0, 90.0, "deg")
    }
    fn choose(
        &self,
        serving: Option<&Candidate>,
        candidates: &[Candidate],
        _: &mut dyn FnMut(u32) -> f64,
    ) -> Option<u32> {
        let best = greatest(candidates, |c| c.elevation);
        unless_kept(serving, best, |serving, best| best.elevation - serving.elevation > self.hysteresis)
    }
}
