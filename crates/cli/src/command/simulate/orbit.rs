//! `skyhaul orbit`.

use crate::args::OrbitArgs;
use crate::output::print;
use crate::stop::Stop;
use skyhaul_lab::cases;
use skyhaul_scenario::check::orbit::series;
use std::fmt::Write;

pub(crate) fn run(args: &OrbitArgs) -> Result<(), Stop> {
    let file = &args.scenario.scenario;
    let cases = cases::resolve(file, &args.scenario.set, None)?;
    let [case] = cases.as_slice() else {
        return Err(Stop::bad("--set with several values makes several scenarios: write one value"));
    };
    let scenario = &case.scenario;
    let with_orbit = || scenario.links.iter().filter_map(|l| Some((l, l.forward.orbit.as_ref()?)));
    let found = match &args.link {
        Some(name) => with_orbit().find(|(l, _)| l.name == *name),
        None => with_orbit().next(),
    };
    let Some((link, orbit)) = found else {
        let known: Vec<&str> = with_orbit().map(|(l, _)| l.name.as_str()).collect();
        return Err(Stop::bad(match (&args.link, known.as_slice()) {
            (_, []) => {
                format!("{file}: no link has satellites: write [links.NAME.orbit], see docs/orbits.md")
            }
            (name, known) => {
                let name = name.as_deref().unwrap_or_default();
                format!("{file}: no link \"{name}\" with satellites (known: {})", known.join(", "))
            }
        }));
    };
    if !args.csv {
        let mut check = skyhaul_scenario::check(scenario);
        let orbit = check.links.iter_mut().find(|l| l.name == link.name).and_then(|l| l.orbit.take());
        let Some(orbit) = orbit else { return Ok(()) };
        if args.scenario.json {
            let json = serde_json::to_string_pretty(&orbit).map_err(Stop::bad)?;
            return print(&format!("{json}\n"));
        }
        return print(&format!("link {}\n{orbit}", link.name));
    }
    let mut out = String::from("time_s,satellite,elevation_deg,delay_ms,up\n");
    series(orbit, scenario.duration, &mut |s| {
        let number =
            |x: Option<f64>, decimals: usize| x.map_or_else(String::new, |x| format!("{x:.decimals$}"));
        let (elevation, delay) = (number(s.elevation_deg, 3), number(s.delay_s.map(|d| d * 1e3), 6));
        // Names come from files and may hold anything.
        let name = match s.satellite.contains([',', '"', '\n']) {
            true => format!("\"{}\"", s.satellite.replace('"', "\"\"")),
            false => s.satellite.clone(),
        };
        let _ = writeln!(out, "{},{name},{elevation},{delay},{}", s.time_s, u8::from(s.delay_s.is_some()));
    });
    print(&out)
}
