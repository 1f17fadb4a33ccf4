//! Positions in space.

use core::ops::{Add, Mul, Sub};
use skyhaul_base::math;

/// A position, or a difference of positions, in kilometres from the centre of the Earth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vector {
    /// Towards the prime meridian, or the vernal equinox.
    pub x: f64,
    /// Towards 90 degrees East of it.
    pub y: f64,
    /// Towards the North.
    pub z: f64,
}

impl Vector {
    /// The place with these coordinates.
    #[must_use]
    pub const fn new(x: f64, y: f64, z: f64) -> Self {
        Self { x, y, z }
    }
    /// The scalar product.
    #[must_use]
    pub fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }
    /// The length.
    #[must_use]
    pub fn length(self) -> f64 {
        math::sqrt(self.dot(self))
    }
    /// The distance to `other`.
    #[must_use]
    pub fn distance(self, other: Self) -> f64 {
        (other - self).length()
    }
}

impl Add for Vector {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Self::new(self.x + o.x, self.y + o.y, self.z + o.z)
    }
}
impl Sub for Vector {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        Self::new(self.x - o.x, self.y - o.y, self.z - o.z)
    }
}
impl Mul<f64> for Vector {
    type Output = Self;
    fn mul(self, k: f64) -> Self {
        Self::new(self.x * k, self.y * k, self.z * k)
    }
}
