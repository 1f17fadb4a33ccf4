//! The Earth: a rotating sphere. Constants are those of WGS 84 (NIMA TR8350.2): equatorial radius, gravitational
//! constant and rate of rotation.

use crate::vector::Vector;
use skyhaul_base::math;

/// Radius in km: that of the equator. At the poles it is 21 km too large, which is 0.07 ms (*our choice*).
pub const RADIUS: f64 = 6_378.137;
/// Gravitational constant times mass, in km³/s².
pub const GRAVITY: f64 = 398_600.441_8;
/// Rate of rotation in rad/s.
pub const SPIN: f64 = 7.292_115_9e-5;
/// Speed of light in km/s.
pub const LIGHT: f64 = 299_792.458;
/// Radius of the geostationary orbit in km: one revolution per rotation of the Earth.
#[must_use]
pub fn stationary_radius() -> f64 {
    math::cbrt(GRAVITY / (SPIN * SPIN))
}

/// Degrees as radians.
#[must_use]
pub fn radians(degrees: f64) -> f64 {
    degrees * (core::f64::consts::PI / 180.0)
}
/// Radians as degrees.
#[must_use]
pub fn degrees(radians: f64) -> f64 {
    radians * (180.0 / core::f64::consts::PI)
}

/// Cosine and sine of an angle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotation {
    /// Cosine.
    pub cos: f64,
    /// Sine.
    pub sin: f64,
}

impl Rotation {
    /// The rotation by an angle in radians.
    #[must_use]
    pub fn of(angle: f64) -> Self {
        Self { cos: math::cos(angle), sin: math::sin(angle) }
    }
    /// The rotation by the sum of both angles.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cos: self.cos * other.cos - self.sin * other.sin,
            sin: self.sin * other.cos + self.cos * other.sin,
        }
    }
    /// Converts an inertial position to Earth-fixed coordinates, when the Earth has turned by this angle.
    #[must_use]
    pub fn to_fixed(self, p: Vector) -> Vector {
        Vector::new(p.x * self.cos + p.y * self.sin, p.y * self.cos - p.x * self.sin, p.z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geostationary_orbit_is_42164_km_wide() {
        assert!((stationary_radius() - 42_164.17).abs() < 0.01, "{}", stationary_radius());
    }

    #[test]
    fn turning_the_earth_moves_the_stars_west() {
        let quarter = Rotation::of(core::f64::consts::FRAC_PI_2);
        let fixed = quarter.to_fixed(Vector::new(1.0, 0.0, 0.5));
        assert!(fixed.distance(Vector::new(0.0, -1.0, 0.5)) < 1e-15);
        let half = quarter.plus(quarter);
        assert!((half.cos + 1.0).abs() < 1e-15 && half.sin.abs() < 1e-15);
    }
}
