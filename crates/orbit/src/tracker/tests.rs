use super::*;
use crate::config::Switch;
use crate::constellation::{Constellation, named, stationary, walker};
use crate::handover::{longest, max_elevation, nearest_path};
use crate::station::Station;

fn config(from: &str, to: &str, constellation: impl Into<Constellation>) -> Config {
    let city = |name| Station::city(name).unwrap();
    Config::new(city(from), city(to), constellation)
}

fn leo(name: &str) -> Constellation {
    named::find(name).unwrap()
}

/// The steps of the first `seconds`.
fn steps(config: &Config, seconds: u64) -> Vec<Step> {
    let sky = Arc::new(Sky::new(config).unwrap());
    let mut tracker = Tracker::new(config, sky);
    let mut steps = Vec::new();
    while tracker.at() < Instant::ZERO + Duration::from_secs(seconds) {
        steps.push(tracker.step());
    }
    steps
}

fn down(steps: &[Step]) -> Duration {
    steps.iter().filter(|s| s.path.is_none()).fold(Duration::ZERO, |sum, s| sum + (s.until - s.from))
}

fn handovers(steps: &[Step]) -> Vec<(Instant, Handover)> {
    steps.iter().flat_map(|s| s.handovers.iter().map(|h| (s.from, *h))).collect()
}

#[test]
fn a_geostationary_path_is_one_step_with_the_delay_of_the_geometry() {
    let geo = stationary::Config { longitude: -34.5, elevation: 5.0 };
    let all = steps(&config("Palermo", "Houston", geo), 3_600);
    assert_eq!((all.len(), all[0].until), (1, Instant::MAX));
    let path = all[0].path.unwrap();
    assert_eq!(path.begin, path.end);
    assert!((path.begin.as_secs_f64() - 0.263_73).abs() < 1e-5, "{path:?}");
}

#[test]
fn steps_join_and_each_delay_is_that_of_the_geometry() {
    let config = config("London", "Madrid", leo("leo550"));
    let sky = Sky::new(&config).unwrap();
    let all = steps(&config, 120);
    assert!(all.windows(2).all(|w| w[0].until == w[1].from));
    assert!(all.iter().all(|s| s.until > s.from && s.until - s.from <= Duration::from_millis(100)));
    let mut middle_error = 0.0f64;
    for step in &all {
        let Some(path) = step.path else { continue };
        let exact = |at| Route::over(path.first).delay(&sky, &sky.moment(at)).unwrap();
        assert_eq!(path.begin, Duration::from_secs_f64(exact(step.from)));
        assert_eq!(path.end, Duration::from_secs_f64(exact(step.until)));
        let straight = f64::midpoint(path.begin.as_secs_f64(), path.end.as_secs_f64());
        let middle = step.from + (step.until - step.from) / 2;
        middle_error = middle_error.max((straight - exact(middle)).abs());
    }
    // Error of interpolation over dt = 0.1 s: v²/d · dt²/8 / c with v = 7.6 km/s and d = 550 km on both slants, 0.9 ns, and 1 ns of
    // rounding.
    assert!(middle_error < 2e-9, "{middle_error}");
}

#[test]
fn one_path_of_the_same_satellite_has_no_jumps() {
    let all = steps(&config("London", "Madrid", leo("leo550")), 600);
    for w in all.windows(2) {
        if let (Some(a), Some(b)) = (w[0].path, w[1].path) {
            if a.first == b.first {
                assert_eq!(a.end, b.begin);
            }
        }
    }
}

#[test]
fn a_hard_handover_interrupts_and_a_soft_one_does_not() {
    let mut config = config("London", "Madrid", leo("leo550"));
    let hard = steps(&config, 600);
    let changes = handovers(&hard);
    assert!(changes.len() >= 3, "{changes:?}");
    assert!(
        changes.iter().all(|c| c.1.from.is_some() && c.1.to.is_some() && is_multiple(c.0, config.interval))
    );
    assert_eq!(down(&hard), Duration::from_millis(100) * changes.len() as u64);
    config.switch = Switch::Soft;
    let soft = steps(&config, 600);
    assert_eq!(handovers(&soft), changes);
    assert_eq!(down(&soft), Duration::ZERO);
    for (at, change) in changes {
        let step = soft.iter().find(|s| s.from == at).unwrap();
        assert_eq!(step.path.map(|p| (p.first, p.begin)), change.to.map(|to| (to, change.after)));
        let before = soft.iter().find(|s| s.until == at).unwrap();
        assert_eq!(before.path.map(|p| (p.first, p.end)), change.from.map(|from| (from, change.before)));
    }
}

#[test]
fn with_an_interval_of_fifteen_seconds_handovers_happen_only_there() {
    let mut config = config("London", "Madrid", leo("leo550"));
    config.interval = Duration::from_secs(15);
    let changes = handovers(&steps(&config, 900));
    assert!(!changes.is_empty());
    assert!(changes.iter().all(|c| is_multiple(c.0, Duration::from_secs(15))));
}

#[test]
fn policies_do_what_their_names_say() {
    let mut config = config("London", "Madrid", leo("leo550"));
    config.switch = Switch::Soft;
    let sky = Sky::new(&config).unwrap();
    let run = |policy: Policy| {
        let config = Config { handover: policy, ..config.clone() };
        steps(&config, 900)
    };
    let elevation = |step: &Step, s: u32| sky.elevation(Stations::Both, s, &sky.moment(step.from)).unwrap();
    let visible = |step: &Step| {
        let mut list = Vec::new();
        sky.candidates(Stations::Both, &sky.moment(step.from), &mut list);
        list
    };
    let highest = run(max_elevation::Config { hysteresis: 5.0 }.into());
    let nearest = run(nearest_path::Config { hysteresis: Duration::ZERO }.into());
    let longest = run(longest::Config {}.into());
    let checks = |steps: &[Step]| -> Vec<Step> {
        steps.iter().filter(|s| is_multiple(s.from, Duration::from_secs(1))).cloned().collect()
    };
    for step in checks(&highest) {
        let best = visible(&step).iter().map(|c| c.elevation).fold(0.0, f64::max);
        assert!(elevation(&step, step.path.unwrap().first) >= best - 5.0);
    }
    for step in checks(&nearest) {
        let best = visible(&step).iter().map(|c| c.delay).fold(1.0, f64::min);
        assert!((step.path.unwrap().begin.as_secs_f64() - best).abs() < 2e-9);
    }
    // Satellites that serve until they set give the fewest handovers.
    let count = |steps: &[Step]| handovers(steps).len();
    assert!(count(&longest) < count(&highest) && count(&highest) <= count(&nearest));
    for (at, change) in handovers(&longest) {
        assert!(!sky.sees(Stations::Both, change.from.unwrap(), &sky.moment(at)));
    }
}

#[test]
fn a_single_satellite_comes_and_goes() {
    let ring = walker::Config::new(550.0, 0.0, [1, 1, 0], walker::Pattern::Delta, 25.0);
    let config = Config::new(Station::at(0.0, 10.0), Station::at(0.0, 10.0), ring);
    let all = steps(&config, 3 * 5_740);
    let changes = handovers(&all);
    assert!(changes.len() >= 4);
    for pair in changes.chunks_exact(2) {
        let [(rise, up), (set, lost)] = pair else { panic!() };
        assert_eq!((up.from, up.to, lost.from, lost.to), (None, Some(0), Some(0), None));
        let lasts = (*set - *rise).as_secs_f64();
        let want = crate::geometry::overhead_pass(crate::geometry::radius(550.0), 0.0, 25.0);
        // Checked once a second.
        assert!((lasts - want).abs() <= 1.0, "{lasts} {want}");
        // It comes up without an interruption.
        assert!(all.iter().find(|s| s.from == *rise).unwrap().path.is_some());
    }
}

#[test]
fn two_satellites_at_a_time_are_never_interrupted() {
    let mut config = config("London", "Madrid", leo("leo550"));
    let single = steps(&config, 900);
    config.diversity = Diversity::Best;
    let double = steps(&config, 900);
    assert!(down(&single) > Duration::ZERO);
    assert_eq!(down(&double), Duration::ZERO);
    let mean = |steps: &[Step]| {
        let paths: Vec<f64> = steps.iter().filter_map(|s| s.path).map(|p| p.begin.as_secs_f64()).collect();
        paths.iter().sum::<f64>() / paths.len() as f64
    };
    assert!(mean(&double) <= mean(&single));
}

#[test]
fn orbits_of_all_heights_serve_one_link() {
    // The geostationary satellite serves while the only low one is not visible.
    let low = walker::Config::new(550.0, 0.0, [1, 1, 0], walker::Pattern::Delta, 25.0);
    let mut config = Config::new(Station::at(0.0, 10.0), Station::at(0.0, 10.0), low);
    config.constellation.0.push(stationary::Config { longitude: 40.0, elevation: 5.0 }.into());
    config.handover = nearest_path::Config::default().into();
    let all = steps(&config, 5_740);
    let changes = handovers(&all);
    assert_eq!(down(&all), Duration::from_millis(100) * changes.len() as u64);
    let used = |s: u32| all.iter().any(|step| step.path.is_some_and(|p| p.first == s));
    assert!(used(0) && used(1));
    assert!(
        changes
            .iter()
            .any(|c| c.1.before > Duration::from_millis(200) && c.1.after < Duration::from_millis(20))
    );
}

#[test]
fn paths_over_inter_satellite_links_follow_the_sky() {
    for policy in [Policy::default(), nearest_path::Config::default().into(), longest::Config {}.into()] {
        let mut config = config("London", "Singapore", leo("leo780"));
        config.relay = Relay::InterSatellite;
        config.handover = policy;
        let all = steps(&config, 300);
        assert_eq!(down(&all), config.interruption * handovers_at(&all), "{policy:?}");
        for path in all.iter().filter_map(|s| s.path) {
            // 10,850 km along the ground, 97.5 degrees, take light 36.2 ms. A station sees satellites within 19.9 degrees, so
            // links of at most 32.7 degrees span 57.7: three satellites at least.
            assert!(path.satellites >= 3 && path.begin > Duration::from_millis(40), "{path:?}");
            assert!(path.begin < Duration::from_millis(110), "{path:?}");
        }
    }
}

/// Number of times with handovers; both ends may change at once.
fn handovers_at(steps: &[Step]) -> u64 {
    steps.iter().filter(|s| !s.handovers.is_empty()).count() as u64
}

#[test]
fn a_run_that_starts_later_finds_the_same_sky() {
    // Without hysteresis the serving satellite does not depend on the one before.
    let now = Config {
        handover: max_elevation::Config { hysteresis: 0.0 }.into(),
        ..config("London", "Madrid", leo("leo550"))
    };
    let by = Duration::from_secs(30);
    let later = Config { offset: now.offset + by, ..now.clone() };
    // Of each step its time, its satellites and its delay, from the second minute on.
    let of = |config: &Config, shift: Duration| -> Vec<_> {
        let all = steps(config, 240).into_iter().map(|s| (s.from + shift, s.path));
        let from = Instant::ZERO + Duration::from_secs(60);
        let until = Instant::ZERO + Duration::from_secs(240);
        all.filter(|(at, _)| (from..until).contains(at)).collect()
    };
    let (now, later) = (of(&now, Duration::ZERO), of(&later, by));
    assert_eq!(now.len(), later.len());
    let satellites: alloc::collections::BTreeSet<_> = now.iter().filter_map(|s| Some(s.1?.first)).collect();
    assert!(satellites.len() > 2, "there are handovers: {satellites:?}");
    for ((at, a), (then, b)) in now.iter().zip(&later) {
        assert_eq!((at, a.map(|p| p.first)), (then, b.map(|p| p.first)));
        let (Some(a), Some(b)) = (a, b) else { continue };
        let apart = (a.begin.as_secs_f64() - b.begin.as_secs_f64()).abs();
        assert!(apart < 2e-9, "{at:?}: {a:?} {b:?}");
    }
}

#[test]
fn stations_without_a_common_satellite_have_no_path() {
    let all = steps(&config("London", "Sydney", leo("leo550")), 60);
    assert!(all.iter().all(|s| s.path.is_none() && s.handovers.is_empty()));
    assert_eq!(all.len(), 60, "one step per check");
}
