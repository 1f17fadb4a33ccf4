//! `skyhaul check`.

use crate::args::CheckArgs;
use crate::output::print;
use crate::stop::Stop;
use skyhaul_cc::Controls;
use skyhaul_lab::{cases, sky};
use skyhaul_study::figure::FigureRenderer;

pub(crate) fn run(args: &CheckArgs, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    let cases = cases::resolve(&args.scenario.scenario, &args.scenario.set, None)?;
    for case in &cases {
        skyhaul_sim::check_controls(&case.scenario, &Controls::default()).map_err(Stop::bad)?;
    }
    if let Some(path) = &args.figure {
        let [case] = cases.as_slice() else {
            return Err(Stop::bad(
                "--figure draws one scenario, and --set with several values makes several: give each key one value",
            ));
        };
        sky::figure(&case.scenario, path, renderer)?;
    }
    let checks: Vec<_> = cases.iter().map(|c| skyhaul_scenario::check(&c.scenario)).collect();
    if args.scenario.json {
        let json = match checks.as_slice() {
            [one] => serde_json::to_string_pretty(one),
            all => serde_json::to_string_pretty(all),
        };
        let json = json.map_err(Stop::bad)?;
        return print(&format!("{json}\n"));
    }
    let mut out = String::new();
    for (i, (case, check)) in cases.iter().zip(&checks).enumerate() {
        if i > 0 {
            out.push('\n');
        }
        if !case.choice.is_empty() {
            out.push_str(&format!("── {}\n", case.label()));
        }
        out.push_str(&check.to_string());
    }
    print(&out)
}
