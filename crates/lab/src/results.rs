//! The results directory.
//!
//! ```text
//! manifest.json             what made it: version, engine, hash of the scenario, seed, host
//! scenario.resolved.toml    the scenario with nothing left open; runs again to the same result
//! summary.json              what `run --json` prints
//! flows.parquet  links.parquet  series.parquet
//! ```

use crate::cases::Case;
use crate::error::LabError;
use crate::measure;
use crate::parquet::Parquet;
use crate::summary::Summary;
use serde::Serialize;
use serde_json::{Value, json};
use skyhaul_sim::RunResult;
use skyhaul_study::runner::CellRunner;
use skyhaul_study::table::{Table, TableWriter};
use std::fs;
use std::path::Path;

/// In every folder of results.
pub const MANIFEST: &str = "manifest.json";
/// Finished cells, where they are kept beside the results.
pub const CACHE: &str = "cache";

/// Prepares a folder for results: makes it, and refuses one that holds something else.
///
/// # Errors
/// If it cannot be made, or holds files but no results.
pub fn prepare(folder: &Path) -> Result<(), LabError> {
    let wrong = |source| LabError::Results { folder: folder.to_owned(), source };
    match fs::read_dir(folder) {
        Ok(entries) => {
            // What a killed program was just writing is nobody's.
            let left_over = |name: &str| name.starts_with('.') && name.ends_with(".tmp");
            let names = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
            let foreign = names.into_iter().any(|name| name != CACHE && !left_over(&name));
            if foreign && !folder.join(MANIFEST).is_file() {
                return Err(LabError::NotOurs { folder: folder.to_owned() });
            }
            Ok(())
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => fs::create_dir_all(folder).map_err(wrong),
        Err(e) => Err(wrong(e)),
    }
}

/// Writes the results of one run.
///
/// # Errors
/// The file that could not be written, and why.
pub fn write(folder: &Path, case: &Case, result: &RunResult, took: Option<f64>) -> Result<(), LabError> {
    prepare(folder)?;
    let summary = Summary { scenario: &case.scenario, seed: case.seed, result, choice: None };
    let mut manifest = manifest("run");
    manifest["scenario"] = json!(case.scenario.hash());
    manifest["seed"] = json!(case.seed);
    manifest["choice"] = choice(case);
    manifest["wall_s"] = json!(took);
    text(&folder.join("scenario.resolved.toml"), &case.scenario.to_toml())?;
    json_file(&folder.join("summary.json"), &summary)?;
    table(&folder.join("flows.parquet"), &measure::flow_table(result))?;
    table(&folder.join("links.parquet"), &measure::link_table(result))?;
    table(&folder.join("series.parquet"), &measure::series_table(result))?;
    // Last: a folder with a manifest is complete.
    json_file(&folder.join(MANIFEST), &manifest)
}

/// Writes a folder with one folder of results per case.
///
/// # Errors
/// As [`write()`].
pub fn write_all(folder: &Path, cases: &[Case], results: &[RunResult], took: f64) -> Result<(), LabError> {
    prepare(folder)?;
    let mut list = Vec::new();
    for (i, (case, result)) in cases.iter().zip(results).enumerate() {
        let name = format!("{:03}-{}", i + 1, plain(&case.label()));
        write(&folder.join(&name), case, result, None)?;
        list.push(json!({ "folder": name, "choice": choice(case) }));
    }
    let mut manifest = manifest("run");
    manifest["wall_s"] = json!(took);
    manifest["cases"] = Value::Array(list);
    json_file(&folder.join(MANIFEST), &manifest)
}

/// Key → value of what `--set` chose for this case.
#[must_use]
pub fn choice(case: &Case) -> Value {
    case.choice
        .iter()
        .map(|(k, v)| (k.clone(), Value::String(v.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Where a result comes from, as far as it is the same for everything.
#[must_use]
pub fn manifest(command: &str) -> Value {
    json!({
        "command": command,
        "version": crate::VERSION,
        "engine": crate::engine::simulator().engine(),
        "created": crate::clock::now(),
        "host": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "processors": std::thread::available_parallelism().map_or(1, usize::from),
        },
    })
}

/// A name that every file system takes.
fn plain(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "=._-+".contains(c) { c } else { '_' };
    text.chars().map(keep).take(100).collect()
}

/// Writes a text file.
///
/// # Errors
/// The file and why.
pub fn text(path: &Path, text: &str) -> Result<(), LabError> {
    fs::write(path, text).map_err(LabError::write(path))
}

/// Writes a JSON file.
///
/// # Errors
/// The file and why.
pub fn json_file(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    text(path, &json_text(value))
}

/// JSON for people and programs, with a line break at the end.
///
/// # Panics
/// Never for what this crate writes: all its keys are strings.
#[must_use]
pub fn json_text(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("keys are strings");
    text.push('\n');
    text
}

fn table(path: &Path, table: &Table) -> Result<(), LabError> {
    Parquet.write(table, path).map_err(LabError::write(path))
}
