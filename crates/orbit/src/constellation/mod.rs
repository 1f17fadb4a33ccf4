//! Constellations.
//!
//! Each kind has its own file with its [`Model`], whose configuration is its form in scenario files. A new kind
//! needs only that file and one line in the list below.

mod catalogue;
mod model;
pub mod named;
pub mod omm;
pub mod stationary;
pub mod tle;
pub mod walker;

use crate::epoch::Epoch;
use crate::invalid::Invalid;
use alloc::boxed::Box;
use skyhaul_base::Duration;

pub use model::{Grid, Model, Motion};

skyhaul_base::kinds! {
    each;
    /// Satellites of one kind. Short form: the name of a known constellation, such as "leo550".
    #[derive(Clone, Debug, PartialEq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(tag = "kind"))]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ConstellationSpec"))]
    #[expect(missing_docs, reason = "the configuration of each constellation documents itself")]
    pub enum Constellation {
        "omm" Omm(omm::Config),
        "stationary" Stationary(stationary::Config),
        "tle" Tle(tle::Config),
        "walker" Walker(walker::Config),
    }
}

impl Constellation {
    /// The moving constellation, for a run that starts `offset` after `start`, if it needs a start time. Its times count
    /// from `start`.
    ///
    /// # Errors
    /// Names the key and says what to write instead.
    pub fn build(
        &self,
        start: Option<Epoch>,
        offset: Duration,
    ) -> Result<Box<dyn Motion + Send + Sync>, Invalid> {
        each!(self, Constellation(c) => Ok(Box::new(c.build(start, offset)?)))
    }
    /// Minimum elevation at which a station uses a satellite, degrees.
    #[must_use]
    pub fn least_elevation(&self) -> f64 {
        each!(self, Constellation(c) => c.least_elevation())
    }
    /// The canonical form, shared by all equivalent configurations.
    #[must_use]
    pub fn canonical(self) -> Self {
        each!(self, Constellation(c) => c.canonical().into())
    }
}
