//! Visibility times of satellites.

use crate::sky::{Sky, Stations};
use alloc::vec::Vec;
use skyhaul_base::{Duration, Instant};

/// A pass of a satellite above the minimum elevation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// The satellite.
    pub satellite: u32,
    /// Rise time, to the millisecond, or the start of the span if it is up already.
    pub rise: Instant,
    /// Set time, to the millisecond, or the end of the span if it is still up.
    pub set: Instant,
    /// Maximum elevation in degrees, at the station where it is lower. For satellites that stay visible for days: one of the maxima.
    pub highest: f64,
}

/// All passes from `from` to `until`, ordered by their start. Passes of a low orbit shorter than about ten seconds
/// may be missed.
#[must_use]
pub fn passes(sky: &Sky, stations: Stations, from: Instant, until: Instant) -> Vec<Pass> {
    let mut all: Vec<Pass> = (0..sky.count()).flat_map(|s| of_one(sky, stations, s, from, until)).collect();
    all.sort_by_key(|p| (p.rise, p.satellite));
    all
}

fn of_one(sky: &Sky, stations: Stations, satellite: u32, from: Instant, until: Instant) -> Vec<Pass> {
    let sees = |at: Instant| sky.sees(stations, satellite, &sky.moment(at));
    let stride = sky.stride(satellite);
    let mut list = Vec::new();
    let mut rise = sees(from).then_some(from);
    let mut at = from;
    while at < until {
        let next = (at + stride).min(until);
        match (rise, sees(next)) {
            (None, true) => rise = Some(edge(&sees, at, next)),
            (Some(begin), false) => {
                list.push(pass(sky, stations, satellite, begin, edge(&sees, at, next)));
                rise = None;
            }
            _ => {}
        }
        at = next;
    }
    list.extend(rise.map(|begin| pass(sky, stations, satellite, begin, until)));
    list
}

/// The time at which the result of `sees` changes, between two times at which it differs, to the millisecond.
fn edge(sees: &impl Fn(Instant) -> bool, mut before: Instant, mut after: Instant) -> Instant {
    let initial = sees(before);
    while after - before > Duration::from_millis(1) {
        let middle = before + (after - before) / 2;
        if sees(middle) == initial { before = middle } else { after = middle }
    }
    after
}

fn pass(sky: &Sky, stations: Stations, satellite: u32, rise: Instant, set: Instant) -> Pass {
    let elevation = |at: Instant| sky.elevation(stations, satellite, &sky.moment(at)).unwrap_or(-90.0);
    // The elevation rises and falls once in a pass: a ternary search.
    let (mut low, mut high) = (rise, set);
    while high - low > Duration::from_millis(10) {
        let third = (high - low) / 3;
        let (left, right) = (low + third, high - third);
        if elevation(left) < elevation(right) { low = left } else { high = right }
    }
    let highest = [rise, low, set].map(elevation).into_iter().fold(-90.0, f64::max);
    Pass { satellite, rise, set, highest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::constellation::{named, walker};
    use crate::geometry::{overhead_pass, radius};
    use crate::station::Station;

    fn seen_from(station: Station, constellation: walker::Config, hours: u64) -> Vec<Pass> {
        let sky = Sky::new(&Config::new(station.clone(), station, constellation)).unwrap();
        passes(&sky, Stations::One(0), Instant::ZERO, Instant::ZERO + Duration::from_secs(3_600 * hours))
    }

    #[test]
    fn equatorial_passes_last_as_long_as_the_formula_says() {
        for (altitude, elevation) in [(550.0, 25.0), (1_200.0, 15.0), (8_062.0, 10.0)] {
            let ring = walker::Config::new(altitude, 0.0, [1, 1, 0], walker::Pattern::Delta, elevation);
            let all = seen_from(Station::at(0.0, 100.0), ring, 24);
            let want = overhead_pass(radius(altitude), 0.0, elevation);
            assert!(all.len() > 2);
            for pass in &all[..all.len() - 1] {
                let lasts = (pass.set - pass.rise).as_secs_f64();
                assert!(
                    (lasts - want).abs() < 0.003 && (pass.highest - 90.0).abs() < 0.01,
                    "{pass:?} {want}"
                );
            }
        }
    }

    #[test]
    fn a_polar_pass_overhead_lasts_670_seconds() {
        // In two weeks, some pass is nearly overhead.
        let polar = walker::Config::new(780.0, 86.4, [1, 1, 0], walker::Pattern::Star, 8.2);
        let all = seen_from(Station::at(38.0, 0.0), polar, 24 * 14);
        let best = all.iter().max_by(|a, b| a.highest.total_cmp(&b.highest)).unwrap();
        let lasts = (best.set - best.rise).as_secs_f64();
        assert!(best.highest > 85.0 && (lasts - 670.0).abs() < 7.0, "{best:?} {lasts}");
        // No pass lasts longer, but for the rotation of the Earth (1 %).
        assert!(all.iter().all(|p| (p.set - p.rise).as_secs_f64() < 677.0));
    }

    #[test]
    fn the_sampling_interval_of_the_delay_hides_no_pass() {
        let ring = walker::Config::new(550.0, 0.0, [1, 1, 0], walker::Pattern::Delta, 25.0);
        let of = |step: Option<Duration>| {
            let station = || Station::at(0.0, 100.0);
            let sky = Sky::new(&Config { step, ..Config::new(station(), station(), ring) }).unwrap();
            passes(&sky, Stations::One(0), Instant::ZERO, Instant::from_secs_f64(86_400.0))
        };
        assert_eq!(of(Some(Duration::from_secs(60))), of(None));
    }

    #[test]
    fn a_constellation_covers_a_station_without_a_gap() {
        let Some(crate::Constellation::Walker(leo)) = named::find("leo780") else { panic!() };
        let all = seen_from(Station::city("Palermo").unwrap(), leo, 2);
        let mut covered = Instant::ZERO;
        for pass in &all {
            assert!(pass.rise <= covered, "nothing above from {covered:?} to {:?}", pass.rise);
            covered = covered.max(pass.set);
        }
        assert_eq!(covered, Instant::ZERO + Duration::from_secs(7_200));
    }
}
