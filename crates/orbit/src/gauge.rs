//! Which satellites carry a link, for observers of a run: the link itself is not read.

use crate::config::Config;
use crate::sky::Sky;
use crate::tracker::{Step, Tracker};
use alloc::sync::Arc;
use skyhaul_base::Instant;

/// The satellites that carry a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The satellite that the senders' station uses.
    pub satellite: u32,
    /// Elevation in degrees at which a station sees its satellite, the lower of both stations.
    pub elevation: f64,
}

/// Computes the course of a link, the one of its [`Flight`](crate::Flight), once more for observers.
#[derive(Debug)]
pub struct Gauge {
    tracker: Tracker,
    step: Step,
}

impl Gauge {
    /// A gauge at the start of a run. `sky` was made from the same configuration.
    #[must_use]
    pub fn new(config: &Config, sky: Arc<Sky>) -> Self {
        let mut tracker = Tracker::new(config, sky);
        let step = tracker.step();
        Self { tracker, step }
    }

    /// The satellites at a time, which must not decrease; `None` while there is no path.
    pub fn at(&mut self, now: Instant) -> Option<Reading> {
        while self.step.until <= now && self.step.until < Instant::MAX {
            self.step = self.tracker.step();
        }
        let path = self.step.path?;
        let sky = self.tracker.sky();
        let moment = sky.moment(now);
        let ends = [(0, path.first), (1, path.last)];
        let elevation = ends
            .into_iter()
            .filter_map(|(end, satellite)| Some(sky.look_angles(end, satellite, &moment)?.elevation()))
            .fold(f64::INFINITY, f64::min);
        Some(Reading { satellite: path.first, elevation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constellation::{named, stationary};
    use crate::course::Flight;
    use crate::station::Station;
    use skyhaul_base::Duration;
    use skyhaul_path::{Change, Course};

    fn city(name: &str) -> Station {
        Station::city(name).unwrap()
    }

    #[test]
    fn a_stationary_satellite_is_seen_at_one_elevation() {
        let geo = stationary::Config { longitude: -34.5, elevation: 5.0 };
        let config = Config::new(city("Palermo"), city("Houston"), geo);
        let sky = Arc::new(Sky::new(&config).unwrap());
        let mut gauge = Gauge::new(&config, sky.clone());
        let first = gauge.at(Instant::ZERO).unwrap();
        let start = sky.moment(Instant::ZERO);
        let both = [0, 1].map(|end| sky.look_angles(end, 0, &start).unwrap().elevation());
        assert_eq!(first, Reading { satellite: 0, elevation: both[0].min(both[1]) });
        let later = gauge.at(Instant::ZERO + Duration::from_secs(86_400)).unwrap();
        assert!((later.elevation - first.elevation).abs() < 1e-6);
    }

    #[test]
    fn the_satellite_changes_when_the_link_is_handed_over() {
        let config = Config::new(city("Palermo"), city("Rome"), named::find("leo1200").unwrap());
        let sky = Arc::new(Sky::new(&config).unwrap());
        let (mut gauge, mut flight) = (Gauge::new(&config, sky.clone()), Flight::new(&config, sky));
        let mut handovers = 0;
        let mut serving = gauge.at(Instant::ZERO).map(|r| r.satellite);
        for second in 1..1200 {
            let now = Instant::ZERO + Duration::from_secs(second);
            let mut to = None;
            while flight.next() <= now {
                if let Change::Handover(handover) = flight.take() {
                    to = Some(handover.to);
                    handovers += 1;
                }
            }
            let reading = gauge.at(now);
            if let Some(to) = to {
                serving = to;
            }
            assert!(reading.is_none_or(|r| Some(r.satellite) == serving), "second {second}");
            assert!(reading.is_none_or(|r| r.elevation > 0.0 && r.elevation <= 90.0));
        }
        assert!(handovers > 2, "{handovers}");
    }
}
