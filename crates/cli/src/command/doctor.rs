//! `skyhaul doctor`.

use crate::args::DoctorArgs;
use crate::output::print;
use crate::stop::Stop;
use serde_json::json;
use skyhaul_net::doctor::{State, examine};
use std::fmt::Write as _;

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Stop> {
    let checks = examine();
    let worst = checks.iter().map(|c| c.state).max().unwrap_or(State::Ok);
    if args.json {
        let all: Vec<_> = checks
            .iter()
            .map(|c| json!({ "name": c.name, "state": c.state.name(), "found": c.found, "remedy": c.remedy }))
            .collect();
        print(&format!("{:#}\n", json!({ "state": worst.name(), "checks": all })))?;
    } else {
        let mut out = String::new();
        for c in &checks {
            let _ = writeln!(out, "{:<4} {:<12} {}", c.state.name(), c.name, c.found);
            if !c.remedy.is_empty() {
                let _ = writeln!(out, "                  to do: {}", c.remedy);
            }
        }
        print(&out)?;
    }
    if worst == State::Fail { Err(Stop::Status(1)) } else { Ok(()) }
}
