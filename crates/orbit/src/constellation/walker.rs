//! Walker constellations: planes of equally many satellites on circular orbits, evenly spread (Walker, "Satellite
//! constellations", Journal of the British Interplanetary Society 37, 1984). In his notation `i: T/P/F`.

use super::model::{Grid, MAX_SATELLITES, Model, Motion, step};
use crate::earth::{Rotation, radians};
use crate::epoch::Epoch;
use crate::geometry::{motion, period, radius};
use crate::invalid::{Invalid, within};
use crate::moment::Moment;
use crate::vector::Vector;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use skyhaul_base::Duration;
#[cfg(feature = "schema")]
use skyhaul_base::amount::{Angle, Count, Length};

/// A Walker constellation: planes with equal numbers of satellites on circular orbits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Altitude of the orbits.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::length"))]
    #[cfg_attr(feature = "schema", schemars(with = "Length"))]
    pub altitude: f64,
    /// Inclination of the planes to the equator.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle"))]
    #[cfg_attr(feature = "schema", schemars(with = "Angle"))]
    pub inclination: f64,
    /// Total number of satellites.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub satellites: u64,
    /// Number of planes.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub planes: u64,
    /// Phase difference between adjacent planes (F), in units of 360 degrees divided by the number of satellites; 1 by
    /// default.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::count", default = "one"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub phasing: u64,
    /// Angle over which the planes are spread; "delta" by default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub pattern: Pattern,
    /// Ascending node of the first plane at the start, as an angle from the vernal equinox; 0 by default.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle", default))]
    #[cfg_attr(feature = "schema", schemars(with = "Angle"))]
    pub node: f64,
    /// Angle of the first satellite from the ascending node at the start; 0 by default.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle", default))]
    #[cfg_attr(feature = "schema", schemars(with = "Angle"))]
    pub phase: f64,
    /// Minimum elevation at which a station uses a satellite.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle"))]
    #[cfg_attr(feature = "schema", schemars(with = "Angle"))]
    pub elevation: f64,
}

#[cfg(feature = "serde")]
fn one() -> u64 {
    1
}

/// The angle over which the planes are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "WalkerPattern"))]
pub enum Pattern {
    /// 360 degrees (Walker delta): every plane has neighbours on both sides.
    #[default]
    Delta,
    /// 180 degrees (Walker star), for polar orbits: satellites of the first and the last plane fly in opposite
    /// directions.
    Star,
}

/// A Walker constellation in motion.
#[derive(Clone, Debug)]
pub struct Walker {
    radius: f64,
    /// Angular velocity in rad/s.
    motion: f64,
    tilt: Rotation,
    /// Ascending node of each plane.
    nodes: Vec<Rotation>,
    /// Angle of each satellite from the ascending node at the start.
    phases: Vec<Rotation>,
    grid: Grid,
}

impl Walker {
    /// Position of a satellite after it has travelled the angle `travelled` from its start.
    fn at(&self, satellite: u32, travelled: Rotation, moment: &Moment) -> Option<Vector> {
        // The argument of latitude.
        let u = self.phases.get(satellite as usize)?.plus(travelled);
        let node = self.nodes[(satellite / self.grid.per_plane) as usize];
        let (along, across) = (u.cos, u.sin * self.tilt.cos);
        let inertial = Vector::new(
            node.cos * along - node.sin * across,
            node.sin * along + node.cos * across,
            u.sin * self.tilt.sin,
        ) * self.radius;
        Some(moment.turn.to_fixed(inertial))
    }
    fn travelled(&self, moment: &Moment) -> Rotation {
        Rotation::of(self.motion * moment.time)
    }
}

impl Config {
    /// The constellation `i: T/P/F` at an altitude in km. Stations use it from the minimum elevation on. Angles are in degrees.
    #[must_use]
    pub const fn new(
        altitude: f64,
        inclination: f64,
        [satellites, planes, phasing]: [u64; 3],
        pattern: Pattern,
        elevation: f64,
    ) -> Self {
        let (node, phase) = (0.0, 0.0);
        Self { altitude, inclination, satellites, planes, phasing, pattern, node, phase, elevation }
    }

    fn validate(&self) -> Result<(), Invalid> {
        within("altitude", self.altitude, 100.0, 100_000.0, "km")?;
        within("inclination", self.inclination, 0.0, 180.0, "deg")?;
        within("node", self.node, -360.0, 360.0, "deg")?;
        within("phase", self.phase, -360.0, 360.0, "deg")?;
        within("elevation", self.elevation, 0.0, 89.0, "deg")?;
        let Self { satellites, planes, phasing, .. } = *self;
        if satellites == 0 || satellites > MAX_SATELLITES {
            let message = format!("{satellites} satellites: write a number from 1 to {MAX_SATELLITES}");
            return Err(Invalid::new("satellites", message));
        }
        if planes == 0 || satellites % planes != 0 {
            let message = format!(
                "{satellites} satellites do not divide evenly into {planes} planes: write a divisor of {satellites}"
            );
            return Err(Invalid::new("planes", message));
        }
        if phasing >= planes {
            let message = format!("{phasing} is not below the number of planes: write 0 to {}", planes - 1);
            return Err(Invalid::new("phasing", message));
        }
        Ok(())
    }
}

impl Model for Config {
    type Motion = Walker;

    fn build(&self, _: Option<Epoch>, _: Duration) -> Result<Walker, Invalid> {
        self.validate()?;
        // Both are at most MAX_SATELLITES.
        let (total, planes) = (self.satellites as u32, self.planes as u32);
        let per_plane = total / planes;
        let span = match self.pattern {
            Pattern::Delta => 360.0,
            Pattern::Star => 180.0,
        };
        let fraction = |n: u64, of: u32| n as f64 / f64::from(of);
        let node = |p: u64| Rotation::of(radians(self.node + span * fraction(p, planes)));
        let phase = |p: u64, k: u64| {
            let turns = fraction(k, per_plane) + fraction(self.phasing * p, total);
            Rotation::of(radians(self.phase + 360.0 * turns))
        };
        // Two planes are adjacent already; with one there is no other.
        let closes = (self.pattern == Pattern::Delta && planes > 2).then_some(self.phasing as u32);
        let radius = radius(self.altitude);
        Ok(Walker {
            radius,
            motion: motion(radius),
            tilt: Rotation::of(radians(self.inclination)),
            nodes: (0..self.planes).map(node).collect(),
            phases: (0..self.planes)
                .flat_map(|p| (0..u64::from(per_plane)).map(move |k| phase(p, k)))
                .collect(),
            grid: Grid { planes, per_plane, closes },
        })
    }

    fn least_elevation(&self) -> f64 {
        self.elevation
    }
}

impl Motion for Walker {
    fn count(&self) -> u32 {
        self.grid.planes * self.grid.per_plane
    }
    fn place(&self, satellite: u32, moment: &Moment) -> Option<Vector> {
        self.at(satellite, self.travelled(moment), moment)
    }
    fn each(&self, moment: &Moment, see: &mut dyn FnMut(u32, Vector)) {
        let travelled = self.travelled(moment);
        for satellite in 0..self.count() {
            if let Some(place) = self.at(satellite, travelled, moment) {
                see(satellite, place);
            }
        }
    }
    fn name(&self, satellite: u32) -> String {
        let per_plane = self.grid.per_plane;
        format!("{}.{}", satellite / per_plane + 1, satellite % per_plane + 1)
    }
    fn grid(&self) -> Option<Grid> {
        Some(self.grid)
    }
    fn step(&self) -> Duration {
        step(period(self.radius))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constellation::named;
    use crate::geometry::look_angles;
    use proptest::prelude::*;

    fn at(time: f64) -> Moment {
        Moment::new(time, 0.0)
    }

    #[test]
    fn a_satellite_is_where_the_formulas_put_it_after_a_minute() {
        // h = 550 km, i = 53 degrees, everything else 0. By hand: u = 60 s · √(μ/r³) = 0.065689 rad, and the Earth has turned by
        // 0.0043753 rad.
        let config = Config::new(550.0, 53.0, [1, 1, 0], Pattern::Delta, 25.0);
        let place = config.build(None, Duration::ZERO).unwrap().place(0, &at(60.0)).unwrap();
        assert!(place.distance(Vector::new(6_914.326, 243.443, 363.202)) < 0.001, "{place:?}");
        let angles = look_angles(Vector::new(crate::earth::RADIUS, 0.0, 0.0), place);
        assert!(
            (angles.range - 691.866).abs() < 0.001 && (angles.elevation() - 50.804).abs() < 0.001,
            "{angles:?}"
        );
    }

    #[test]
    fn what_cannot_be_built_is_refused_by_its_key() {
        let good = Config::new(550.0, 53.0, [1_584, 72, 1], Pattern::Delta, 25.0);
        assert!(good.build(None, Duration::ZERO).is_ok());
        let refused = |config: Config| config.build(None, Duration::ZERO).unwrap_err().key;
        assert_eq!(refused(Config { altitude: 0.3, ..good }), "altitude");
        assert_eq!(refused(Config { inclination: f64::NAN, ..good }), "inclination");
        assert_eq!(refused(Config { satellites: 0, ..good }), "satellites");
        assert_eq!(refused(Config { planes: 71, ..good }), "planes");
        assert_eq!(refused(Config { phasing: 72, ..good }), "phasing");
        assert_eq!(refused(Config { elevation: 90.0, ..good }), "elevation");
    }

    #[test]
    fn neighbours_across_a_closed_grid_are_as_near_as_any() {
        let Some(super::super::Constellation::Walker(config)) = named::find("leo550") else { panic!() };
        let walker = config.build(None, Duration::ZERO).unwrap();
        let now = at(1_234.5);
        let grid = walker.grid().unwrap();
        let place = |s| walker.place(s, &now).unwrap();
        // In a plane: a chord of 360/22 degrees. To another plane: the nodes are 5 degrees apart.
        let chord = 2.0 * radius(550.0) * skyhaul_base::math::sin(radians(180.0 / 22.0));
        for s in 0..walker.count() {
            let far: Vec<f64> = grid.neighbours(s).map(|n| place(s).distance(place(n))).collect();
            assert!((far[0] - chord).abs() < 1e-6 && (far[1] - chord).abs() < 1e-6, "{far:?}");
            assert!(far[2] < 700.0 && far[3] < 700.0, "{s}: {far:?}");
        }
    }

    proptest! {
        #[test]
        fn every_satellite_keeps_its_height_and_its_plane(time in 0.0..1e7, s in 0..1_584u32) {
            let config = Config::new(550.0, 53.0, [1_584, 72, 1], Pattern::Delta, 25.0);
            let walker = config.build(None, Duration::ZERO).unwrap();
            let place = walker.place(s, &at(time)).unwrap();
            prop_assert!((place.length() - radius(550.0)).abs() < 1e-8);
            prop_assert!(place.z.abs() <= radius(550.0) * skyhaul_base::math::sin(radians(53.0)) + 1e-8);
        }

        /// Turning a delta by one plane and one step of phase gives the same set of places.
        #[test]
        fn a_delta_is_the_same_from_each_of_its_planes(
            (planes, each) in (2..9u64, 1..9u64),
            phasing in 0..9u64,
            time in 0.0..1e5,
        ) {
            let phasing = phasing % planes;
            let config = Config::new(1_200.0, 63.4, [planes * each, planes, phasing], Pattern::Delta, 10.0);
            let part = 360.0 / planes as f64;
            let turned = Config { node: -part, phase: -360.0 * phasing as f64 / (planes * each) as f64, ..config };
            let (here, there) = (config.build(None, Duration::ZERO).unwrap(), turned.build(None, Duration::ZERO).unwrap());
            let mut places = Vec::new();
            here.each(&at(time), &mut |_, p| places.push(p));
            let mut fit = 0;
            there.each(&at(time), &mut |_, p| fit += usize::from(places.iter().any(|q| p.distance(*q) < 1e-6)));
            prop_assert_eq!(fit, places.len());
        }

        #[test]
        fn one_by_one_is_all_at_once(time in 0.0..1e6) {
            let config = Config::new(780.0, 86.4, [66, 6, 1], Pattern::Star, 8.2);
            let walker = config.build(None, Duration::ZERO).unwrap();
            let mut all = Vec::new();
            walker.each(&at(time), &mut |s, p| all.push((s, p)));
            prop_assert_eq!(all.len(), 66);
            for (s, p) in all {
                prop_assert_eq!(walker.place(s, &at(time)), Some(p));
            }
        }
    }
}
