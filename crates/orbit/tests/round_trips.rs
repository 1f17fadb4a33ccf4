//! How long a round trip takes by orbit and place. Luglio, Roseti and Gerla (2004, §2) give 550 ms over geostationary
//! satellites, varying by about 20 ms with the place of the station, and 20 to 50 ms over low ones. Propagation alone takes four
//! slant ranges between stations at one place.

use skyhaul_base::{Duration, Instant};
use skyhaul_orbit::constellation::{named, stationary};
use skyhaul_orbit::geometry::{radius, range};
use skyhaul_orbit::{Config, Constellation, Sky, Station, Tracker, earth};
use std::sync::Arc;

/// Radius of the geostationary orbit in km: the cube root of μ/ω².
const GEOSTATIONARY: f64 = 42_164.17;

/// Shortest and longest round trip in ms between stations at one place in the first minutes; `None` if no satellite is
/// seen.
fn round_trips(latitude: f64, longitude: f64, over: impl Into<Constellation>) -> Option<(f64, f64)> {
    let place = || Station::at(latitude, longitude);
    let config = Config::new(place(), place(), over);
    let mut tracker = Tracker::new(&config, Arc::new(Sky::new(&config).unwrap()));
    let mut found: Option<(f64, f64)> = None;
    while tracker.at() < Instant::ZERO + Duration::from_secs(300) {
        if let Some(path) = tracker.step().path {
            for one_way in [path.begin, path.end] {
                let ms = 2e3 * one_way.as_secs_f64();
                let (low, high) = found.unwrap_or((ms, ms));
                found = Some((low.min(ms), high.max(ms)));
            }
        }
    }
    found
}

fn four_slants_ms(km: f64) -> f64 {
    4e3 * km / earth::LIGHT
}

#[test]
fn over_geo_a_round_trip_is_477_to_549_ms_and_more_than_530_only_where_the_satellite_is_low() {
    // Under the satellite, and where it stands 5 degrees high.
    let (least, most) = (four_slants_ms(35_786.0), four_slants_ms(range(GEOSTATIONARY, 5.0)));
    assert!((least - 477.5).abs() < 0.1 && (most - 548.7).abs() < 0.1, "{least} {most}");
    let mut compared = 0;
    for latitude in (-60..=60).step_by(10) {
        for longitude in (0..=70).step_by(10) {
            let (phi, lambda) = (f64::from(latitude), f64::from(longitude));
            let geo = stationary::Config { longitude: 0.0, elevation: 5.0 };
            let Some((low, high)) = round_trips(phi, lambda, geo) else { continue };
            compared += 1;
            assert!(low == high && low >= least - 0.1 && low <= most + 0.1, "{latitude} {longitude}: {low}");
            // The angle at the centre of the Earth, and the slant by the law of cosines.
            let cos = phi.to_radians().cos() * lambda.to_radians().cos();
            let (r, a) = (earth::RADIUS, GEOSTATIONARY);
            let slant = (r * r + a * a - 2.0 * r * a * cos).sqrt();
            let want = four_slants_ms(slant);
            assert!((low - want).abs() < 1e-3, "{latitude} {longitude}: {low} {want}");
            // The band of the paper, 550 ± 20 ms, begins at 530 ms: 18.3 degrees.
            let elevation = ((a * cos - r) / slant).asin().to_degrees();
            assert_eq!(low > 530.0, elevation < 18.3, "{latitude} {longitude}: {low} at {elevation}");
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn over_low_orbits_a_round_trip_is_7_to_37_ms() {
    for (name, altitude, elevation, within) in [
        ("leo550", 550.0, 25.0, [7.34, 14.99]),
        ("leo780", 780.0, 8.2, [10.41, 32.88]),
        ("leo1200", 1200.0, 15.0, [16.01, 36.85]),
    ] {
        let bounds = [four_slants_ms(altitude), four_slants_ms(range(radius(altitude), elevation))];
        assert!(bounds.iter().zip(within).all(|(b, w)| (b - w).abs() < 0.01), "{name}: {bounds:?}");
        let mut compared = 0;
        for latitude in [-50, -30, 0, 30, 50] {
            let found = round_trips(f64::from(latitude), 10.0, named::find(name).unwrap());
            let Some((low, high)) = found else { continue };
            compared += 1;
            // Between two decisions, a second apart, a satellite may sink below the least elevation.
            assert!(low >= bounds[0] - 1e-3 && high <= bounds[1] + 0.3, "{name} {latitude}: {low} {high}");
        }
        assert!(compared >= 3, "{name}: {compared}");
    }
}

/// A pass over a pole or across the date line is like any other: what matters is the angle between station and satellite.
#[test]
fn poles_and_the_date_line_are_places_like_others() {
    // Stations on both sides of the date line as on both sides of Greenwich, under a satellite there.
    let over = |longitude: f64, from: f64, to: f64| {
        let geo = stationary::Config { longitude, elevation: 5.0 };
        let config = Config::new(Station::at(10.0, from), Station::at(-20.0, to), geo);
        let mut tracker = Tracker::new(&config, Arc::new(Sky::new(&config).unwrap()));
        tracker.step().path.expect("a path").begin
    };
    let here = over(0.0, -10.0, 15.0);
    for there in [over(180.0, 170.0, -165.0), over(-180.0, 170.0, -165.0), over(180.0, 170.0, 195.0 - 360.0)]
    {
        assert!(there.abs_diff(here) < Duration::from_nanos(10), "{there:?} {here:?}");
    }
    // Polar orbits serve the poles themselves, whatever longitude is written there, within the bounds of all other places.
    let bounds = [four_slants_ms(780.0), four_slants_ms(range(radius(780.0), 8.2))];
    for pole in [90.0, -90.0] {
        let found = |longitude: f64| round_trips(pole, longitude, named::find("leo780").unwrap());
        let (low, high) = found(0.0).expect("a polar orbit passes the pole");
        assert!(low >= bounds[0] - 1e-3 && high <= bounds[1] + 0.3, "{pole}: {low} {high}");
        for longitude in [90.0, 180.0, -120.0] {
            let (l, h) = found(longitude).expect("the same place");
            assert!((l - low).abs() < 1e-6 && (h - high).abs() < 1e-6, "{pole} {longitude}: {l} {h}");
        }
    }
}
