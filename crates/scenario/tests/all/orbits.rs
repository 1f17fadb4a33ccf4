//! Links over satellites in scenario files.

use skyhaul_base::{Duration, Instant};
use skyhaul_path::Change;
use skyhaul_scenario::{LoadError, Resolved, resolve_text};

/// A bulk transfer over the table of an orbit.
fn text(orbit: &str) -> String {
    format!(
        "duration = \"600 s\"\n[links.sat]\nrate = \"10 Mbit/s\"\n{orbit}\n[flows.bulk]\npath = [\"sat\"]\ncc = \"reno\"\n"
    )
}

/// The space station, and a list of satellites whose check digit is wrong.
const ISS: &str = "ISS (ZARYA)\n\
    1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n\
    2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n";

fn load(path: &str) -> Result<String, LoadError> {
    match path {
        "data/iss.tle" => Ok(ISS.into()),
        "data/broken.tle" => Ok(ISS.replace("2927", "2928")),
        _ => Err(LoadError::System("No such file".into())),
    }
}

fn resolve(orbit: &str, sets: &[&str]) -> Result<Resolved, String> {
    resolve_text("data/sky.toml", &text(orbit), sets, &load).map_err(|e| e.to_string())
}

const LEO: &str = "orbit = { from = \"London\", to = \"Madrid\", constellation = \"leo550\" }";

#[test]
fn a_geostationary_link_has_the_round_trip_of_its_geometry() {
    let geo = "[links.sat.orbit]\nfrom = \"Palermo\"\nto = { latitude = \"29.76 deg\", longitude = \"-95.37 deg\" }\n\
               constellation = { kind = \"stationary\", longitude = \"-34.5 deg\" }";
    let resolved = resolve(geo, &[]).unwrap();
    let rtt = resolved.propagation_rtt(&resolved.flows[0]).as_secs_f64();
    assert!((rtt - 0.527_46).abs() < 1e-5, "{rtt}");
}

#[test]
fn both_directions_move_alike_and_the_queue_knows_the_delay_at_the_start() {
    let resolved = resolve(LEO, &[]).unwrap();
    let link = &resolved.links[0];
    assert!(link.forward.moves() && link.reverse.moves() && link.forward.drop_in_flight);
    assert_eq!(link.forward.delay, link.reverse.delay);
    let (mut agenda, first) = resolved.agenda(1, |_, _| true);
    // Both directions begin with the delay that the scenario states.
    let begin = first.iter().map(|(_, change)| match change {
        Change::Delay(delay) => delay.base_at(Instant::ZERO),
        other => panic!("{other:?}"),
    });
    assert_eq!(begin.collect::<Vec<_>>(), [link.forward.delay.base(), link.reverse.delay.base()]);
    let mut changes: [Vec<(Instant, Change)>; 2] = Default::default();
    let end = Instant::ZERO + Duration::from_secs(300);
    while agenda.next() < end {
        let at = agenda.next();
        let (link, change) = agenda.take(at).unwrap();
        changes[link as usize].push((at, change));
    }
    assert_eq!(changes[0], changes[1]);
    assert!(changes[0].iter().any(|c| matches!(c.1, Change::Handover(_))));
    assert!(changes[0].len() > 3_000);
}

#[test]
fn what_was_resolved_reads_back_to_the_same() {
    for (orbit, sets) in [
        (LEO, &[][..]),
        (LEO, &["links.sat.drop-in-flight=false"]),
        (
            LEO,
            &[
                "links.sat.orbit.handover=longest",
                "links.sat.orbit.switch=soft",
                "links.sat.orbit.step=50 ms",
            ],
        ),
        (
            LEO,
            &[
                "links.sat.orbit.handover={kind='nearest-path', hysteresis='2 ms'}",
                "links.sat.orbit.diversity=best",
            ],
        ),
        (LEO, &["links.sat.orbit.diversity=both"]),
        (LEO, &["links.sat.orbit.relay=inter-satellite", "links.sat.orbit.processing=500 us"]),
        (LEO, &["links.sat.orbit.constellation=['leo550', 'geo']", "links.sat.orbit.offset=10 min"]),
        (
            "orbit = { from = \"Houston\", to = \"Houston\", epoch = \"2008-09-20\", offset = \"0 s\", constellation = \
             { kind = \"tle\", file = \"iss.tle\", elevation = \"0 deg\" } }",
            &["duration=24 h"],
        ),
    ] {
        let resolved = resolve(orbit, sets).unwrap();
        let again =
            resolve_text("again.toml", &resolved.to_toml(), &[], &skyhaul_scenario::no_files).unwrap();
        assert_eq!(again, resolved, "{sets:?}");
        assert_eq!(again.hash(), resolved.hash());
        let dropped = resolved.links[0].forward.drop_in_flight;
        let kept = sets.iter().any(|s| s.contains("false") || s.contains("soft"));
        assert_eq!(dropped, !kept, "{sets:?}");
    }
}

#[test]
fn refusals_say_where_and_what_to_write() {
    let tle = |file: &str, more: &str| {
        format!(
            "orbit = {{ from = \"Rome\", to = \"Rome\"{more}, constellation = {{ kind = \"tle\", file = \"{file}\", \
             elevation = \"10 deg\" }} }}"
        )
    };
    let stations =
        |from: &str, to: &str| format!("orbit = {{ from = {from}, to = {to}, constellation = \"leo550\" }}");
    for (orbit, sets, expected) in [
        (stations("\"London\"", "\"Sydney\""), &[][..], "sky.toml:4: links.sat.orbit: no path between London and Sydney"),
        (stations("\"London\"", "\"Sydney\""), &[], "write relay = \"inter-satellite\""),
        (stations("\"Lundon\"", "\"Rome\""), &[], "links.sat.orbit.from: the list has no city \"Lundon\": write {"),
        (stations("51.5", "\"Rome\""), &[], "links.sat.orbit.from: 51.5 is not a place: write a city"),
        (
            stations("{ latitude = 51.5, longitude = \"0 deg\" }", "\"Rome\""),
            &[],
            "51.5 has no unit: write an angle with a unit, such as \"51.5 deg\"",
        ),
        (LEO.into(), &["links.sat.orbit.constellation=leo500"], "there is no constellation \"leo500\" (known: geo, leo550"),
        (LEO.into(), &["links.sat.orbit.handover=best"], "(known: longest, max-elevation, nearest-path)"),
        (LEO.into(), &["links.sat.orbit.interval=0 s"], "links.sat.orbit.interval: 0 s is not from 0.01 to 3600 s"),
        (LEO.into(), &["links.sat.reverse.delay=10 ms"], "links.sat.reverse.delay: the delay follows"),
        (LEO.into(), &["links.sat.orbit.mask=5 deg"], "links.sat.orbit.mask: unknown key"),
        (LEO.into(), &["links.sat.orbit.from.latitude=95 deg"], "links.sat.orbit.from is \"London\", which has no keys"),
        (
            "orbit = { from = \"Rome\", constellation = \"geo\" }".into(),
            &[],
            "links.sat.orbit.to: missing",
        ),
        (tle("iss.tle", ""), &[], "links.sat.orbit.epoch: missing: orbital elements are valid only near their epoch"),
        (tle("iss.tle", ", epoch = \"2026-11-22\""), &[], "data/iss.tle:2: the elements of ISS (ZARYA) are of 2008-09-20"),
        (tle("iss.tle", ", epoch = \"today\""), &[], "\"today\" is not a UTC time"),
        (tle("broken.tle", ", epoch = \"2008-09-20\""), &[], "data/broken.tle:2: the check digit is 8"),
        (tle("none.tle", ", epoch = \"2008-09-20\""), &[], "constellation.file: cannot read data/none.tle: No such file"),
        (
            "orbit = { from = \"Rome\", to = \"Rome\", constellation = [{ kind = \"tle\", file = \"none.tle\", elevation = \
             \"10 deg\" }] }"
                .into(),
            &[],
            "constellation[0].file: cannot read data/none.tle",
        ),
        (
            LEO.into(),
            &["links.sat.orbit.constellation={kind='walker', altitude='550 km', inclination='53 deg', satellites=100, planes=3, elevation='25 deg'}"],
            "links.sat.orbit.constellation.planes: 100 satellites do not divide evenly into 3 planes",
        ),
        (
            LEO.into(),
            &["links.sat.orbit.constellation={kind='ring'}"],
            "kind",
        ),
    ] {
        let error = resolve(&orbit, sets).unwrap_err();
        assert!(error.contains(expected) && !error.contains('\n'), "{orbit} {sets:?}:\n{error}\n{expected}");
    }
}

#[test]
fn events_do_not_change_satellites() {
    let event = "[[event]]\nat = \"1 s\"\nset = { \"links.sat.delay\" = \"5 ms\" }";
    let file = format!("{}{event}", text(LEO));
    let error = resolve_text("a.toml", &file, &[], &load).unwrap_err().to_string();
    assert!(error.contains("the delay follows from the orbit"), "{error}");
}

#[test]
fn satellites_take_the_place_of_the_delay_of_what_is_extended() {
    let file = format!("extends = \"preset:geo-today\"\n[links.sat]\n{LEO}\n");
    let resolved = resolve_text("a.toml", &file, &[], &load).unwrap();
    assert!(resolved.links[0].forward.orbit.is_some());
    let file = "extends = \"preset:meo-8062\"\n[links.sat]\ndelay = \"125 ms\"\n";
    let resolved = resolve_text("a.toml", file, &[], &load).unwrap();
    assert!(!resolved.links[0].forward.moves());
}

#[test]
fn every_preset_that_moves_has_a_path_from_the_start_on() {
    for (name, least, most) in [
        ("leo-walker-550", 7.3, 16.0),
        ("leo-780-polar", 45.0, 250.0),
        ("leo-1200-polar", 16.0, 37.0),
        ("meo-8062", 107.0, 159.0),
    ] {
        let resolved = skyhaul_scenario::Document::preset(name).unwrap().resolve().unwrap();
        let check = skyhaul_scenario::check(&resolved);
        let orbit = check.links.iter().find_map(|l| l.orbit.as_ref()).unwrap();
        // Round trips over the satellites, from four times the height to four of the longest slants; between satellites
        // longer than light takes along the ground, and shorter than around the Earth.
        let rtt = |s: Option<f64>| s.unwrap() * 2e3;
        assert!(rtt(orbit.delay_min_s) > least && rtt(orbit.delay_max_s) < most, "{name}: {orbit}");
        assert!(orbit.handovers > 0 && orbit.outages_s.is_empty(), "{name}: {orbit}");
    }
}

/// Leap seconds, fractions and times without a zone are refused with an example rather than rounded or guessed; a date that
/// TOML itself knows needs no quotes.
#[test]
fn times_that_are_no_seconds_of_utc_are_refused() {
    let at = |epoch: &str| {
        let orbit = format!(
            "orbit = {{ from = \"Houston\", to = \"Houston\", epoch = {epoch}, constellation = {{ kind = \"tle\", file = \
             \"iss.tle\", elevation = \"0 deg\" }} }}"
        );
        resolve(&orbit, &["duration=24 h"])
    };
    let hash = |epoch: &str| at(epoch).unwrap().hash();
    assert_eq!(hash("\"2008-09-20T12:00:00Z\""), hash("2008-09-20T12:00:00Z"));
    assert_ne!(hash("\"2008-09-20T12:00:00Z\""), hash("\"2008-09-20\""));
    for time in
        ["2008-09-20T23:59:60Z", "2008-09-20T12:00:00.5Z", "2008-09-20T12:00:00", "2008-09-20T12:00:00+02:00"]
    {
        let refusal = at(&format!("\"{time}\"")).unwrap_err();
        assert!(refusal.contains(&format!("\"{time}\" is not a UTC time: write, say, \"2026-")), "{refusal}");
    }
}
