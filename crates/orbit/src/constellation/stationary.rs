//! Geostationary satellites.

use super::model::{Model, Motion};
use crate::earth::{Rotation, radians, stationary_radius};
use crate::epoch::Epoch;
use crate::invalid::{Invalid, within};
use crate::moment::Moment;
use crate::vector::Vector;
use alloc::format;
use alloc::string::String;
use skyhaul_base::Duration;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Angle;

/// A geostationary satellite.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Longitude of the satellite, negative in the West.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle"))]
    #[cfg_attr(feature = "schema", schemars(with = "Angle"))]
    pub longitude: f64,
    /// Minimum elevation at which a station uses the satellite; 5 degrees by default.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle", default = "five"))]
    #[cfg_attr(feature = "schema", schemars(with = "Angle"))]
    pub elevation: f64,
}

#[cfg(feature = "serde")]
fn five() -> f64 {
    5.0
}

/// A geostationary satellite.
#[derive(Clone, Copy, Debug)]
pub struct Stationary {
    place: Vector,
    longitude: f64,
}

impl Model for Config {
    type Motion = Stationary;

    fn build(&self, _: Option<Epoch>, _: Duration) -> Result<Stationary, Invalid> {
        within("longitude", self.longitude, -180.0, 360.0, "deg")?;
        within("elevation", self.elevation, 0.0, 89.0, "deg")?;
        let east = Rotation::of(radians(self.longitude));
        let place = Vector::new(east.cos, east.sin, 0.0) * stationary_radius();
        Ok(Stationary { place, longitude: self.longitude })
    }
    fn least_elevation(&self) -> f64 {
        self.elevation
    }
}

impl Motion for Stationary {
    fn count(&self) -> u32 {
        1
    }
    fn place(&self, satellite: u32, _: &Moment) -> Option<Vector> {
        (satellite == 0).then_some(self.place)
    }
    fn name(&self, _: u32) -> String {
        let side = if self.longitude < 0.0 { "W" } else { "E" };
        format!("{} {side}", skyhaul_base::math::abs(self.longitude))
    }
    fn step(&self) -> Duration {
        Duration::from_secs(60)
    }
    fn stands_still(&self) -> bool {
        true
    }
}
