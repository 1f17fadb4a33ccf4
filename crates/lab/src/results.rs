//! The results directory.
//!
//! ```text
//! manifest.json             provenance: version, engine, hash of the scenario, seed, host
//! scenario.resolved.toml    the scenario with all defaults filled in; runs again to the same result
//! summary.json              what `run --json` prints
//! flows.parquet  links.parquet  series.parquet  transfers.parquet
//! ```

use crate::cases::Case;
use crate::error::LabError;
use crate::measure;
use crate::parquet::Parquet;
use crate::summary::Summary;
use serde::Serialize;
use serde_json::{Value, json};
use skyhaul_sim::RunResult;
use skyhaul_study::files::{make_room, replace, replace_by};
use skyhaul_study::runner::CellRunner;
use skyhaul_study::table::{Table, TableWriter};
use std::path::{Path, PathBuf};

/// Name of the manifest in every results folder.
pub const MANIFEST: &str = "manifest.json";
/// Name of the cache folder next to the results.
pub const CACHE: &str = "cache";

/// Writes the results of one run, which took `took` seconds of wall time, into a locked folder
/// ([`Lease`](crate::lease::Lease)); returns the files.
///
/// # Errors
/// The file that could not be written, and why.
pub fn write(
    folder: &Path,
    case: &Case,
    result: &RunResult,
    took: Option<f64>,
) -> Result<Vec<PathBuf>, LabError> {
    let summary = Summary { scenario: &case.scenario, seed: case.seed, result, choice: None };
    let mut manifest = manifest("run");
    manifest["scenario"] = json!(case.scenario.hash());
    manifest["seed"] = json!(case.seed);
    manifest["choice"] = choice(case);
    manifest["wall_s"] = json!(took);
    let names = [
        "scenario.resolved.toml",
        "summary.json",
        "flows.parquet",
        "links.parquet",
        "series.parquet",
        "transfers.parquet",
        MANIFEST,
    ];
    let paths = names.map(|name| folder.join(name));
    let [scenario, numbers, flows, links, series, transfers, last] = &paths;
    text(scenario, &case.scenario.to_toml())?;
    json_file(numbers, &summary)?;
    table(flows, &measure::flow_table(result))?;
    table(links, &measure::link_table(result))?;
    table(series, &measure::series_table(result))?;
    table(transfers, &measure::transfer_table(result))?;
    // Last: a folder with a manifest is complete.
    json_file(last, &manifest)?;
    Ok(paths.into())
}

/// Writes a folder with one results folder per case; `took` is the wall time of all, s.
///
/// # Errors
/// As [`write()`].
pub fn write_all(
    folder: &Path,
    cases: &[Case],
    results: &[RunResult],
    took: f64,
) -> Result<Vec<PathBuf>, LabError> {
    let (mut list, mut written) = (Vec::new(), Vec::new());
    for (i, (case, result)) in cases.iter().zip(results).enumerate() {
        let name = format!("{:03}-{}", i + 1, plain(&case.label()));
        let inner = folder.join(&name);
        make_room(folder, &inner.join(MANIFEST)).map_err(LabError::write(&inner))?;
        written.extend(write(&inner, case, result, None)?);
        list.push(json!({ "folder": name, "choice": choice(case) }));
    }
    let mut manifest = manifest("run");
    manifest["wall_s"] = json!(took);
    manifest["cases"] = Value::Array(list);
    written.push(folder.join(MANIFEST));
    json_file(&folder.join(MANIFEST), &manifest)?;
    Ok(written)
}

/// Key → value chosen by `--set` for this case.
#[must_use]
pub fn choice(case: &Case) -> Value {
    case.choice
        .iter()
        .map(|(k, v)| (k.clone(), Value::String(v.clone())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The provenance common to all results.
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

/// A name that every file system accepts.
fn plain(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "=._-+".contains(c) { c } else { '_' };
    text.chars().map(keep).take(100).collect()
}

/// Writes a text file.
///
/// # Errors
/// The file and why.
pub fn text(path: &Path, text: &str) -> Result<(), LabError> {
    replace(path, text.as_bytes()).map_err(LabError::write(path))
}

/// Writes a JSON file.
///
/// # Errors
/// The file and why.
pub fn json_file(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    text(path, &json_text(value))
}

/// Indented JSON with a final line break.
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
    replace_by(path, |temporary| Parquet.write(table, temporary)).map_err(LabError::write(path))
}
