//! Points in time of the satellite model.

use crate::earth::{Rotation, SPIN};

/// A point in time of the satellite model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Seconds since the time for which the constellations are configured.
    pub time: f64,
    /// Rotation of the Earth.
    pub turn: Rotation,
}

impl Moment {
    /// `time` seconds after a time at which the Earth had turned by `angle` radians.
    #[must_use]
    pub fn new(time: f64, angle: f64) -> Self {
        Self { time, turn: Rotation::of(angle + SPIN * time) }
    }
}
