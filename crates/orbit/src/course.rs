//! Changes of a link as its satellites move.

use crate::config::{Config, Diversity};
use crate::sky::Sky;
use crate::tracker::{Path, Tracker};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::delay::Ramp;
use skyhaul_path::{Change, Course, Delay};

/// Changes of one direction of a link over satellites: its delay as connected linear segments, its visibility, and
/// handovers. Both directions have the same ones.
#[derive(Debug)]
pub struct Flight {
    tracker: Tracker,
    /// Remaining changes of the current step.
    pending: VecDeque<Change>,
    /// Start of the current step.
    at: Instant,
    visible: bool,
    /// With [`Diversity::Both`]: whether each of the two paths can be used.
    both: Option<[bool; 2]>,
}

impl Flight {
    /// A flight from the start of a run. `sky` is that of the configuration.
    #[must_use]
    pub fn new(config: &Config, sky: Arc<Sky>) -> Self {
        let tracker = Tracker::new(config, sky);
        let both = (config.diversity == Diversity::Both).then_some([false; 2]);
        let mut flight = Self { tracker, pending: VecDeque::new(), at: Instant::ZERO, visible: true, both };
        flight.step();
        flight
    }

    /// Computes the changes of the next step, at least one.
    fn step(&mut self) {
        let step = self.tracker.step();
        self.at = step.from;
        self.pending.extend(step.handovers.into_iter().map(Change::Handover));
        let visible = step.path.is_some();
        if let Some(path) = step.path {
            // The delay before the visibility: waiting packets leave as soon as the link is up.
            self.pending.push_back(Change::Delay(line(step.from, step.until, &path)));
        }
        // When the link loses sight, it stops sending before its paths end.
        let goes_down = self.visible && !visible;
        if goes_down {
            self.pending.push_back(Change::Visible(false));
        }
        if let Some(used) = &mut self.both {
            for (i, (path, used)) in (0..).zip(step.paths.iter().zip(used)) {
                if path.is_some() || *used {
                    let delay = path.map(|path| line(step.from, step.until, &path));
                    self.pending.push_back(Change::Path(i, delay));
                }
                *used = path.is_some();
            }
        }
        if visible != self.visible && !goes_down || self.pending.is_empty() {
            self.pending.push_back(Change::Visible(visible));
        }
        self.visible = visible;
    }
}

/// The delay of a path between two times.
fn line(from: Instant, until: Instant, path: &Path) -> Delay {
    match path.begin == path.end {
        true => Delay::fixed(path.begin),
        false => Ramp::new((from, path.begin), (until, path.end)).into(),
    }
}

impl Course for Flight {
    fn next(&self) -> Instant {
        if self.pending.is_empty() { Instant::MAX } else { self.at }
    }
    fn take(&mut self) -> Change {
        let change = self.pending.pop_front().unwrap_or(Change::Visible(self.visible));
        if self.pending.is_empty() && self.tracker.at() < Instant::MAX {
            self.step();
        }
        change
    }
}

/// The first time within `horizon` at which there is a path, and its one-way delay. The search covers at most a day, and less for
/// many satellites.
///
/// # Errors
/// If there is no path: the time searched.
pub fn first_path(
    config: &Config,
    sky: &Arc<Sky>,
    horizon: Duration,
) -> Result<(Instant, Duration), Duration> {
    // This many positions take about a second.
    const LOOKS: u64 = 20_000_000;
    let mut tracker = Tracker::new(config, sky.clone());
    let affordable = config.interval * (LOOKS / u64::from(sky.count().max(1)));
    let end = Instant::ZERO + horizon.min(affordable).min(Duration::from_secs(86_400));
    loop {
        let step = tracker.step();
        if let Some(path) = step.path {
            return Ok((step.from, path.begin));
        }
        if tracker.at() > end || step.until == Instant::MAX {
            return Err(tracker.at().min(Instant::ZERO + horizon) - Instant::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constellation::{named, stationary, walker};
    use crate::station::Station;
    use alloc::vec::Vec;

    fn flight(config: &Config) -> Flight {
        Flight::new(config, Arc::new(Sky::new(config).unwrap()))
    }
    fn city(name: &str) -> Station {
        Station::city(name).unwrap()
    }
    fn until(config: &Config, seconds: u64) -> Vec<(Instant, Change)> {
        let mut flight = flight(config);
        let mut list = Vec::new();
        while flight.next() <= Instant::ZERO + Duration::from_secs(seconds) {
            list.push((flight.next(), flight.take()));
        }
        list
    }

    #[test]
    fn what_stands_still_changes_once() {
        let geo = stationary::Config { longitude: -34.5, elevation: 5.0 };
        let all = until(&Config::new(city("Palermo"), city("Houston"), geo), 86_400);
        let [(at, Change::Delay(delay))] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(*at, Instant::ZERO);
        assert!(delay.constant().is_some_and(|d| (d.as_secs_f64() - 0.263_73).abs() < 1e-5));
    }

    #[test]
    fn ramps_join_and_a_handover_hides_the_satellite() {
        let config = Config::new(city("London"), city("Madrid"), named::find("leo550").unwrap());
        let all = until(&config, 600);
        let mut last: Option<(Instant, Delay)> = None;
        let (mut down, mut handovers) = (None, 0);
        for (at, change) in &all {
            match change {
                Change::Delay(delay) => {
                    if let (Some((_, before)), None) = (&last, down) {
                        assert_eq!(before.base_at(*at), delay.base_at(*at), "{at:?}");
                    }
                    last = Some((*at, delay.clone()));
                }
                Change::Handover(h) => {
                    handovers += 1;
                    assert!(h.from != h.to && h.before > Duration::ZERO && h.after > Duration::ZERO);
                }
                Change::Visible(false) => down = Some(*at),
                Change::Visible(true) => {
                    assert_eq!(down.map(|d| *at - d), Some(Duration::from_millis(100)));
                    down = None;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(handovers >= 3);
        assert!(all.windows(2).all(|w| w[0].0 <= w[1].0));
    }

    #[test]
    fn each_of_two_paths_ends_once_and_one_is_always_usable() {
        let mut config = Config::new(city("London"), city("Madrid"), named::find("leo550").unwrap());
        config.diversity = Diversity::Both;
        let (mut used, mut ends, mut sum) = ([false; 2], 0, 0);
        for (at, change) in until(&config, 600) {
            match change {
                Change::Path(path, delay) => {
                    let was = core::mem::replace(&mut used[usize::from(path)], delay.is_some());
                    assert!(was || delay.is_some(), "{at:?}: path {path} ends twice");
                    ends += u32::from(was && delay.is_none());
                    sum += 1;
                }
                Change::Delay(_) | Change::Handover(_) => {}
                other => panic!("{at:?}: {other:?}, although the other satellite serves"),
            }
            assert!(used.contains(&true) || sum < 2, "{at:?}");
        }
        assert!(ends >= 3 && sum > 11_000, "{ends} {sum}");
    }

    #[test]
    fn without_a_satellite_it_stays_down_and_the_search_for_a_path_ends() {
        let config = Config::new(city("London"), city("Sydney"), named::find("leo550").unwrap());
        let all = until(&config, 10);
        assert!(all.iter().all(|c| c.1 == Change::Visible(false)) && all.len() == 11);
        let sky = Arc::new(Sky::new(&config).unwrap());
        assert_eq!(first_path(&config, &sky, Duration::from_secs(20)), Err(Duration::from_secs(20)));
    }

    #[test]
    fn the_first_path_is_that_of_the_first_pass() {
        let ring = walker::Config::new(550.0, 0.0, [1, 1, 0], walker::Pattern::Delta, 25.0);
        let config = Config::new(Station::at(0.0, 90.0), Station::at(0.0, 90.0), ring);
        let sky = Arc::new(Sky::new(&config).unwrap());
        let (at, delay) = first_path(&config, &sky, Duration::from_secs(6_000)).unwrap();
        // A quarter of a revolution relative to the ground, less the coverage angle; checked once a second.
        let relative = crate::geometry::motion(crate::geometry::radius(550.0)) - crate::earth::SPIN;
        let want =
            (90.0 - crate::geometry::coverage(crate::geometry::radius(550.0), 25.0)).to_radians() / relative;
        assert!((at.as_secs_f64() - want).abs() <= 1.0, "{at:?} {want}");
        let slant = crate::geometry::range(crate::geometry::radius(550.0), 25.0);
        assert!((delay.as_secs_f64() - 2.0 * slant / crate::earth::LIGHT).abs() < 5e-5);
    }
}
