//! Look angles from a station to a satellite, and closed forms of circular orbits.

use crate::earth::{GRAVITY, RADIUS, SPIN, degrees, radians};
use crate::vector::Vector;
use skyhaul_base::math;

/// A satellite as seen by a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookAngles {
    /// Distance in km.
    pub range: f64,
    /// Sine of the elevation above the horizon.
    pub sine: f64,
}

impl LookAngles {
    /// The elevation in degrees.
    #[must_use]
    pub fn elevation(self) -> f64 {
        degrees(math::asin(self.sine.clamp(-1.0, 1.0)))
    }
}

/// The satellite at `space` as seen by the station at `ground`, both in one frame.
#[must_use]
pub fn look_angles(ground: Vector, space: Vector) -> LookAngles {
    let sight = space - ground;
    let range = sight.length();
    LookAngles { range, sine: sight.dot(ground) / (range * ground.length()) }
}

/// Whether the sine of a satellite's elevation is at least `sine`. Equivalent to `look_angles(ground, space).sine >= sine`
/// for a station at `up`, its unit vector, but saves a square root if the satellite is below the horizon.
#[inline]
pub(crate) fn is_above(up: Vector, space: Vector, sine: f64) -> bool {
    let height = space.dot(up) - RADIUS;
    if height < 0.0 {
        return false;
    }
    let range = (space - up * RADIUS).length();
    height >= sine * range
}

/// Radius in km of an orbit at this altitude.
#[must_use]
pub fn radius(altitude: f64) -> f64 {
    RADIUS + altitude
}

/// Angular velocity in rad/s of a circular orbit of this radius.
#[must_use]
pub fn motion(radius: f64) -> f64 {
    math::sqrt(GRAVITY / (radius * radius * radius))
}

/// Orbital period in seconds.
#[must_use]
pub fn period(radius: f64) -> f64 {
    core::f64::consts::TAU / motion(radius)
}

/// Distance in km of a satellite on an orbit of this radius at an elevation in degrees.
#[must_use]
pub fn range(radius: f64, elevation: f64) -> f64 {
    let (sine, cosine) = (math::sin(radians(elevation)), math::cos(radians(elevation)));
    let flat = RADIUS * cosine;
    math::sqrt(radius * radius - flat * flat) - RADIUS * sine
}

/// Maximum angle at the centre of the Earth, in degrees, between a satellite and a station that sees it at this
/// elevation or higher.
#[must_use]
pub fn coverage(radius: f64, elevation: f64) -> f64 {
    degrees(math::acos(RADIUS * math::cos(radians(elevation)) / radius)) - elevation
}

/// Duration of an overhead pass above this elevation, in seconds; exact for equatorial orbits, and within about a
/// per cent for others, because the Earth turns during the pass.
#[must_use]
pub fn overhead_pass(radius: f64, inclination: f64, elevation: f64) -> f64 {
    let relative = motion(radius) - SPIN * math::cos(radians(inclination));
    2.0 * radians(coverage(radius, elevation)) / math::abs(relative)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::earth::{LIGHT, stationary_radius};

    fn near(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance, "{got} is not {want}");
    }

    #[test]
    fn slant_ranges_of_a_geostationary_satellite() {
        let a = stationary_radius();
        for (elevation, want) in [(90.0, 35_786.0), (30.0, 38_611.7), (10.0, 40_586.1), (0.0, 41_679.0)] {
            near(range(a, elevation), want, 0.1);
        }
        let round_trip = |elevation| 4.0 * range(a, elevation) / LIGHT * 1e3;
        near(round_trip(90.0), 477.48, 0.01);
        near(round_trip(0.0), 556.1, 0.02);
    }

    #[test]
    fn low_orbits_have_their_periods_cones_and_passes() {
        let a = radius(550.0);
        near(period(a), 5_738.99, 0.01);
        near(coverage(a, 25.0), 8.451, 0.01);
        near(range(a, 25.0), 1_123.4, 0.1);
        near(range(a, 25.0) / LIGHT * 1e3, 3.747, 0.01);
        let a = radius(780.0);
        near(coverage(a, 8.2), 19.925, 0.01);
        near(range(a, 8.2), 2_464.6, 0.1);
        // 2 · 19.925° / (√(μ/r³) − ω cos i), in whole seconds.
        near(overhead_pass(a, 86.4, 8.2), 670.0, 1.0);
    }

    #[test]
    fn what_is_above_is_what_looks_above() {
        let up = Vector::new(0.6, 0.48, 0.64);
        for elevation in [-5.0, 0.1, 24.9, 25.1, 80.0] {
            // A satellite at this elevation: the triangle of centre, station and satellite.
            let distance = range(radius(550.0), elevation);
            let side = Vector::new(0.8, -0.36, -0.48);
            let sight = up * math::sin(radians(elevation)) + side * math::cos(radians(elevation));
            let space = up * RADIUS + sight * distance;
            let angles = look_angles(up * RADIUS, space);
            near(angles.elevation(), elevation, 1e-9);
            near(angles.range, distance, 1e-9);
            assert_eq!(is_above(up, space, math::sin(radians(25.0))), elevation > 25.0);
        }
    }
}
