//! Points in time of the sky.

use crate::earth::{SPIN, Turn};

/// A point in time of the sky.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Seconds since the constellations were as configured.
    pub time: f64,
    /// How far the Earth has turned.
    pub turn: Turn,
}

impl Moment {
    /// `time` seconds after a time at which the Earth had turned by `angle` radians.
    #[must_use]
    pub fn new(time: f64, angle: f64) -> Self {
        Self { time, turn: Turn::of(angle + SPIN * time) }
    }
}
