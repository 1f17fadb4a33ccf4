//! `skyhaul presets`.

use crate::args::PresetsArgs;
use crate::output::print;
use crate::stop::Stop;
use serde_json::json;
use skyhaul_scenario::preset::{self, PREFIX};
use std::fmt::Write as _;

pub(crate) fn run(args: &PresetsArgs) -> Result<(), Stop> {
    let name = args.name.as_deref().map(|n| n.strip_prefix(PREFIX).unwrap_or(n));
    match name {
        Some(name) => match preset::text(name) {
            Some(text) => print(text),
            None => {
                let known: Vec<_> = preset::names().collect();
                Err(Stop::bad(format!("no preset is called \"{name}\"; there are {}", known.join(", "))))
            }
        },
        None if args.json => {
            let all: Vec<_> = titles().map(|(name, title)| json!({ "name": name, "title": title })).collect();
            print(&format!("{:#}\n", json!(all)))
        }
        None => {
            let width = preset::names().map(str::len).max().unwrap_or(0);
            let lines = titles().fold(String::new(), |mut lines, (name, title)| {
                let _ = writeln!(lines, "{name:width$}  {title}");
                lines
            });
            print(&lines)
        }
    }
}

/// Names and titles of all presets.
pub(crate) fn titles() -> impl Iterator<Item = (&'static str, String)> {
    preset::names().map(|n| (n, preset::title(n).unwrap_or_default()))
}
