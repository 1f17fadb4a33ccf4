//! Paths between two stations over satellites.

use crate::earth::{LIGHT, RADIUS};
use crate::moment::Moment;
use crate::sky::{Sky, Stations};
use crate::vector::Vector;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// Minimum distance of inter-satellite links from the ground, km: below it the atmosphere refracts and absorbs.
const CLEARANCE: f64 = 80.0;

/// A path over satellites, in order from the senders' station to the receivers'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    satellites: Vec<u32>,
}

impl Route {
    /// A path over one satellite.
    #[must_use]
    pub fn over(satellite: u32) -> Self {
        Self { satellites: Vec::from([satellite]) }
    }
    /// The satellites on the path.
    #[must_use]
    pub fn satellites(&self) -> &[u32] {
        &self.satellites
    }
    /// The satellite that the senders' station uses.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.satellites.first().copied().unwrap_or(0)
    }
    /// The satellite that the receivers' station uses.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.satellites.last().copied().unwrap_or(0)
    }
    /// Delay of the path, in seconds: propagation, and processing in each satellite. `None` once a satellite no
    /// longer flies.
    #[must_use]
    pub fn delay(&self, sky: &Sky, moment: &Moment) -> Option<f64> {
        let (mut at, mut length) = (sky.station(0), 0.0);
        for satellite in &self.satellites {
            let next = sky.place(*satellite, moment)?;
            length += at.distance(next);
            at = next;
        }
        length += at.distance(sky.station(1));
        Some(length / LIGHT + self.satellites.len() as f64 * sky.processing())
    }
}

/// Finds shortest paths over a grid; keeps its buffers for the next search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Router {
    places: Vec<Vector>,
    /// Length of the shortest known path to each satellite, and the previous satellite on it.
    reached: Vec<(f64, u32)>,
    open: BinaryHeap<Reverse<(Length, u32)>>,
}

/// A length that is not NaN, with an order.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Length(f64);

impl Eq for Length {}
impl PartialOrd for Length {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Length {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// No satellite.
const NONE: u32 = u32::MAX;

impl Router {
    /// The shortest path that begins with one of `first` and ends with one of `last`, and its delay in seconds
    /// (Dijkstra, Numerische Mathematik 1, 1959). Numbers of satellites break ties, so that the result is unique.
    pub(crate) fn shortest(
        &mut self,
        sky: &Sky,
        moment: &Moment,
        first: impl Iterator<Item = u32>,
        last: &[u32],
    ) -> Option<(Route, f64)> {
        let grid = sky.grid()?;
        sky.places(moment, &mut self.places);
        let Self { places, reached, open } = self;
        reached.clear();
        reached.resize(places.len(), (f64::INFINITY, NONE));
        open.clear();
        // The processing delay of a satellite as a length.
        let toll = sky.processing() * LIGHT;
        for s in first {
            let length = sky.station(0).distance(places[s as usize]) + toll;
            reached[s as usize] = (length, NONE);
            open.push(Reverse((Length(length), s)));
        }
        let mut best: Option<(f64, u32)> = None;
        while let Some(Reverse((Length(length), s))) = open.pop() {
            if best.is_some_and(|b| b.0 <= length) {
                break;
            }
            let here = places[s as usize];
            if length > reached[s as usize].0 {
                continue;
            }
            if last.contains(&s) {
                let whole = length + here.distance(sky.station(1));
                if best.is_none_or(|b| whole < b.0) {
                    best = Some((whole, s));
                }
            }
            for n in grid.neighbours(s) {
                let there = places[n as usize];
                // Both have the same altitude, so the middle of the link is its lowest point.
                if (here + there).length() < 2.0 * (RADIUS + CLEARANCE) {
                    continue;
                }
                let onwards = length + here.distance(there) + toll;
                if onwards < reached[n as usize].0 {
                    reached[n as usize] = (onwards, s);
                    open.push(Reverse((Length(onwards), n)));
                }
            }
        }
        let (length, mut s) = best?;
        let mut satellites = Vec::from([s]);
        while reached[s as usize].1 != NONE {
            s = reached[s as usize].1;
            satellites.push(s);
        }
        satellites.reverse();
        Some((Route { satellites }, length / LIGHT))
    }

    /// The shortest path between all satellites visible from each end.
    pub(crate) fn best(&mut self, sky: &Sky, moment: &Moment) -> Option<(Route, f64)> {
        let mut ends = [Vec::new(), Vec::new()];
        for (end, list) in ends.iter_mut().enumerate() {
            let mut candidates = Vec::new();
            sky.candidates(Stations::One(end), moment, &mut candidates);
            list.extend(candidates.iter().map(|c| c.satellite));
        }
        let [first, last] = ends;
        self.shortest(sky, moment, first.into_iter(), &last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Relay};
    use crate::constellation::{named, walker};
    use crate::geometry::radius;
    use crate::station::Station;
    use skyhaul_base::{Duration, Instant};

    fn sky(from: &str, to: &str, name: &str) -> Sky {
        let city = |name| Station::city(name).unwrap();
        let mut config = Config::new(city(from), city(to), named::find(name).unwrap());
        config.relay = Relay::InterSatellite;
        Sky::new(&config).unwrap()
    }

    /// Delay of the shortest path in seconds, by relaxing every link as often as there are satellites (Bellman and Ford).
    fn by_relaxation(sky: &Sky, moment: &Moment) -> f64 {
        let grid = sky.grid().unwrap();
        let place = |s| sky.place(s, moment).unwrap();
        let toll = sky.processing() * LIGHT;
        let begin = |s| match sky.sees(Stations::One(0), s, moment) {
            true => sky.station(0).distance(place(s)) + toll,
            false => f64::INFINITY,
        };
        let mut length: Vec<f64> = (0..sky.count()).map(begin).collect();
        for _ in 0..sky.count() {
            for s in 0..sky.count() {
                for n in grid.neighbours(s) {
                    let onwards = length[s as usize] + place(s).distance(place(n)) + toll;
                    length[n as usize] = length[n as usize].min(onwards);
                }
            }
        }
        let last = (0..sky.count()).filter(|s| sky.sees(Stations::One(1), *s, moment));
        last.map(|s| length[s as usize] + place(s).distance(sky.station(1))).fold(f64::INFINITY, f64::min)
            / LIGHT
    }

    #[test]
    fn the_shortest_path_is_that_of_relaxation() {
        let sky = sky("London", "Sydney", "leo780");
        for minute in 0..20 {
            let now = sky.moment(Instant::ZERO + Duration::from_secs(60 * minute));
            let (route, delay) = Router::default().best(&sky, &now).unwrap();
            assert!((delay - by_relaxation(&sky, &now)).abs() < 1e-12);
            assert!((route.delay(&sky, &now).unwrap() - delay).abs() < 1e-12);
            let grid = sky.grid().unwrap();
            assert!(route.satellites().windows(2).all(|w| grid.neighbours(w[0]).any(|n| n == w[1])));
            // Light along the ground takes 56.7 ms for 17,000 km; the path is longer, and each satellite adds a millisecond.
            assert!(delay > 0.057 + route.satellites().len() as f64 * 1e-3 && delay < 0.2, "{delay}");
        }
    }

    #[test]
    fn a_path_along_one_plane_is_as_long_as_its_chords() {
        // A ring over the equator with a satellite above the station, and the other station a quarter of the Earth away.
        let config = walker::Config::new(1_000.0, 0.0, [16, 1, 0], walker::Pattern::Delta, 10.0);
        let mut config = Config::new(Station::at(0.0, 0.0), Station::at(0.0, 90.0), config);
        config.relay = Relay::InterSatellite;
        let sky = Sky::new(&config).unwrap();
        let (route, delay) = Router::default().best(&sky, &sky.moment(Instant::ZERO)).unwrap();
        assert_eq!(route.satellites(), [0, 1, 2, 3, 4]);
        let chord = 2.0 * radius(1_000.0) * (core::f64::consts::PI / 16.0).sin();
        assert!((delay - ((2_000.0 + 4.0 * chord) / LIGHT + 0.005)).abs() < 1e-12, "{delay}");
    }

    #[test]
    fn no_path_leads_through_the_earth() {
        let config = walker::Config::new(1_000.0, 0.0, [4, 1, 0], walker::Pattern::Delta, 10.0);
        let mut config = Config::new(Station::at(0.0, 0.0), Station::at(0.0, 90.0), config);
        config.relay = Relay::InterSatellite;
        let sky = Sky::new(&config).unwrap();
        assert_eq!(Router::default().best(&sky, &sky.moment(Instant::ZERO)), None);
    }
}
