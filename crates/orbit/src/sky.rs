//! All satellites of a link and both of its stations, at any time.

use crate::config::{Config, Relay};
use crate::constellation::{Grid, Motion};
use crate::earth::{LIGHT, RADIUS, radians};
use crate::geometry::{LookAngles, is_above, look_angles};
use crate::handover::Candidate;
use crate::invalid::Invalid;
use crate::moment::Moment;
use crate::vector::Vector;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use skyhaul_base::{Duration, Instant, math};

/// The satellites that may serve a link, and its stations. Satellites are numbered across all constellations.
#[derive(Debug)]
pub struct Sky {
    shells: Vec<Shell>,
    /// Unit vectors from the centre of the Earth to both stations.
    ups: [Vector; 2],
    /// Rotation angle of the Earth at the epoch, radians.
    angle: f64,
    /// Time of the satellite model at the start of the run, seconds.
    offset: f64,
    /// Processing delay of a satellite on the path, seconds.
    processing: f64,
    step: Duration,
}

#[derive(Debug)]
struct Shell {
    motion: Box<dyn Motion + Send + Sync>,
    /// Number of the first satellite.
    first: u32,
    /// Sine of the minimum elevation.
    sine: f64,
}

/// Stations from which a satellite must be visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stations {
    /// Both.
    Both,
    /// This one: 0 for the senders' end, 1 for the receivers'.
    One(usize),
}

impl Sky {
    /// The sky of a configuration.
    ///
    /// # Errors
    /// Names the key and says what to write instead.
    pub fn new(config: &Config) -> Result<Self, Invalid> {
        config.validate()?;
        let mut shells = Vec::with_capacity(config.constellation.0.len());
        let mut first = 0u32;
        for (i, constellation) in config.constellation.0.iter().enumerate() {
            let motion =
                constellation.build(config.epoch, config.offset).map_err(|e| match e.key.as_str() {
                    "epoch" => e,
                    _ if config.constellation.0.len() == 1 => e.below("constellation"),
                    _ => e.below(&format!("constellation[{i}]")),
                })?;
            let sine = math::sin(radians(constellation.least_elevation()));
            let count = motion.count();
            shells.push(Shell { motion, first, sine });
            first = first.saturating_add(count);
        }
        if config.relay == Relay::InterSatellite && (shells.len() != 1 || shells[0].motion.grid().is_none()) {
            let message = "\"inter-satellite\" needs one constellation in planes (kind = \"walker\"): write \"bent-pipe\" \
                           for others";
            return Err(Invalid::new("relay", message));
        }
        let least = shells.iter().map(|s| s.motion.step()).min();
        Ok(Self {
            step: config.step.or(least).unwrap_or(Duration::from_millis(100)),
            shells,
            ups: [config.from.up(), config.to.up()],
            angle: config.epoch.map_or(0.0, crate::epoch::Epoch::sidereal),
            offset: config.offset.as_secs_f64(),
            processing: config.processing().as_secs_f64(),
        })
    }

    /// The time of the satellite model at a time of the run.
    #[must_use]
    pub fn moment(&self, at: Instant) -> Moment {
        Moment::new(self.offset + at.as_secs_f64(), self.angle)
    }
    /// How many satellites there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.shells.last().map_or(0, |s| s.first + s.motion.count())
    }
    /// Sampling interval of the delay.
    #[must_use]
    pub fn step(&self) -> Duration {
        self.step
    }
    /// Whether all satellites are stationary as seen from the ground.
    #[must_use]
    pub fn stands_still(&self) -> bool {
        self.shells.iter().all(|s| s.motion.stands_still())
    }
    fn shell(&self, satellite: u32) -> Option<&Shell> {
        self.shells.iter().rev().find(|s| s.first <= satellite)
    }
    /// Name of a satellite.
    #[must_use]
    pub fn name(&self, satellite: u32) -> String {
        self.shell(satellite).map_or_else(String::new, |s| s.motion.name(satellite - s.first))
    }
    /// Position of a satellite in the Earth-fixed frame; `None` if it no longer flies.
    #[must_use]
    pub fn place(&self, satellite: u32, moment: &Moment) -> Option<Vector> {
        let shell = self.shell(satellite)?;
        shell.motion.place(satellite - shell.first, moment)
    }
    /// Position of a station.
    pub(crate) fn station(&self, end: usize) -> Vector {
        self.ups[end] * RADIUS
    }
    /// A satellite as seen by a station.
    #[must_use]
    pub fn look_angles(&self, end: usize, satellite: u32, moment: &Moment) -> Option<LookAngles> {
        Some(look_angles(self.station(end), self.place(satellite, moment)?))
    }
    fn positions(&self, stations: Stations) -> &[Vector] {
        match stations {
            Stations::Both => &self.ups,
            Stations::One(end) => core::slice::from_ref(&self.ups[end]),
        }
    }
    /// Whether a satellite is above its minimum elevation at all of these stations.
    #[must_use]
    pub fn sees(&self, stations: Stations, satellite: u32, moment: &Moment) -> bool {
        let Some(shell) = self.shell(satellite) else { return false };
        let Some(place) = shell.motion.place(satellite - shell.first, moment) else { return false };
        self.positions(stations).iter().all(|up| is_above(*up, place, shell.sine))
    }
    /// Elevation of a satellite in degrees, at the station where it is lower.
    #[must_use]
    pub fn elevation(&self, stations: Stations, satellite: u32, moment: &Moment) -> Option<f64> {
        let place = self.place(satellite, moment)?;
        let of = |up: &Vector| look_angles(*up * RADIUS, place).elevation();
        self.positions(stations).iter().map(of).reduce(f64::min)
    }
    /// The visible satellites, in order. The delay of each is that of the path over it between both stations, or to
    /// the one station that sees it.
    pub fn candidates(&self, stations: Stations, moment: &Moment, into: &mut Vec<Candidate>) {
        into.clear();
        let ups = self.positions(stations);
        for Shell { motion, first, sine } in &self.shells {
            motion.each(moment, &mut |number, place| {
                if !ups.iter().all(|up| is_above(*up, place, *sine)) {
                    return;
                }
                let (mut elevation, mut range) = (f64::INFINITY, 0.0);
                for up in ups {
                    let angles = look_angles(*up * RADIUS, place);
                    elevation = elevation.min(angles.elevation());
                    range += angles.range;
                }
                let delay = range / LIGHT + self.processing;
                into.push(Candidate { satellite: first + number, elevation, delay });
            });
        }
    }
    /// Interval at which visibility is sampled: a satellite moves by a few degrees in it.
    pub(crate) fn stride(&self, satellite: u32) -> Duration {
        self.shell(satellite).map_or(Duration::MAX, |s| s.motion.step() * 100)
    }
    /// For how many more seconds a satellite is visible; to the second, at most a day.
    #[must_use]
    pub fn remaining(&self, stations: Stations, satellite: u32, moment: &Moment) -> f64 {
        const DAY: f64 = 86_400.0;
        let Some(shell) = self.shell(satellite) else { return 0.0 };
        if shell.motion.stands_still() {
            return DAY;
        }
        let sees = |after: f64| self.sees(stations, satellite, &Moment::new(moment.time + after, self.angle));
        let stride = self.stride(satellite).as_secs_f64();
        // Seconds after which it is visible, and after which it is not.
        let mut visible = 0.0;
        while sees(visible + stride) {
            visible += stride;
            if visible >= DAY {
                return DAY;
            }
        }
        let mut hidden = visible + stride;
        while hidden - visible > 1.0 {
            let middle = f64::midpoint(visible, hidden);
            if sees(middle) { visible = middle } else { hidden = middle }
        }
        visible
    }
    /// The grid of inter-satellite links.
    pub(crate) fn grid(&self) -> Option<Grid> {
        self.shells.first().and_then(|s| s.motion.grid())
    }
    /// Positions of all satellites in order; the centre of the Earth for one that no longer flies.
    pub(crate) fn places(&self, moment: &Moment, into: &mut Vec<Vector>) {
        into.clear();
        into.resize(self.count() as usize, Vector::default());
        for Shell { motion, first, .. } in &self.shells {
            motion.each(moment, &mut |number, place| into[(first + number) as usize] = place);
        }
    }
    /// Processing delay of each satellite on the path, seconds.
    pub(crate) fn processing(&self) -> f64 {
        self.processing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constellation::{named, stationary};
    use crate::station::Station;

    fn config(name: &str) -> Config {
        let city = |name| Station::city(name).unwrap();
        Config::new(city("London"), city("Berlin"), named::find(name).unwrap())
    }

    #[test]
    fn satellites_are_numbered_across_constellations() {
        let mut mixed = config("leo780");
        mixed.constellation.0.push(named::find("meo8062").unwrap());
        mixed.constellation.0.push(stationary::Config { longitude: 10.0, elevation: 5.0 }.into());
        let sky = Sky::new(&mixed).unwrap();
        assert_eq!(sky.count(), 66 + 20 + 1);
        assert_eq!([0, 65, 66, 86].map(|s| sky.name(s)), ["1.1", "6.11", "1.1", "10 E"]);
        assert!(!sky.stands_still() && sky.step() == Duration::from_millis(100));
        let now = sky.moment(Instant::from_secs_f64(77.0));
        let (mut all, mut places) = (Vec::new(), Vec::new());
        sky.places(&now, &mut places);
        for (s, place) in places.iter().enumerate() {
            assert_eq!(sky.place(s as u32, &now), Some(*place));
        }
        sky.candidates(Stations::Both, &now, &mut all);
        assert!(all.iter().any(|c| c.satellite == 86 && c.delay > 0.25));
        for s in 0..sky.count() {
            assert_eq!(all.iter().any(|c| c.satellite == s), sky.sees(Stations::Both, s, &now), "{s}");
        }
    }

    #[test]
    fn what_is_refused_says_where() {
        let key = |config: &Config| Sky::new(config).unwrap_err().key;
        let mut c = config("leo550");
        c.from.latitude = 91.0;
        assert_eq!(key(&c), "from.latitude");
        let mut c = config("leo550");
        c.constellation.0.push(stationary::Config { longitude: 999.0, elevation: 5.0 }.into());
        assert_eq!(key(&c), "constellation[1].longitude");
        let mut c = config("geo");
        c.relay = Relay::InterSatellite;
        assert_eq!(key(&c), "relay");
        let mut c = config("leo550");
        c.interval = Duration::ZERO;
        assert_eq!(key(&c), "interval");
        c.constellation.0.clear();
        c.interval = Duration::from_secs(1);
        assert_eq!(key(&c), "constellation");
    }

    #[test]
    fn the_remaining_time_ends_where_visibility_ends() {
        let sky = Sky::new(&config("leo780")).unwrap();
        let now = sky.moment(Instant::ZERO);
        let mut all = Vec::new();
        sky.candidates(Stations::One(0), &now, &mut all);
        assert!(!all.is_empty());
        for c in all {
            let left = sky.remaining(Stations::One(0), c.satellite, &now);
            let after = |s: f64| Moment::new(left + s, 0.0);
            assert!(
                sky.sees(Stations::One(0), c.satellite, &after(0.0))
                    && !sky.sees(Stations::One(0), c.satellite, &after(1.0))
            );
        }
    }
}
