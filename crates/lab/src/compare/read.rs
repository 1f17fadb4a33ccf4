//! Reading results directories.

use crate::error::{CompareError, LabError};
use crate::evaluate;
use crate::results::MANIFEST;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use skyhaul_study::files::read_text;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Kind of a results directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `skyhaul run`
    Run,
    /// `skyhaul study`
    Study,
    /// `skyhaul reproduce`
    Reproduce,
    /// `skyhaul evaluate`
    Evaluate,
}

impl Kind {
    /// Its name with an article, for messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "a run",
            Self::Study => "a study",
            Self::Reproduce => "a reproduction",
            Self::Evaluate => "an evaluation",
        }
    }
}

/// Name of the set with the verdicts on the requirements of an evaluation.
pub const REQUIREMENTS: &str = "requirements";

/// A results directory.
#[derive(Clone, Debug)]
pub struct Results {
    /// Its path.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// Version and fingerprint of the engine.
    pub engine: String,
    /// The profile that ran.
    pub profile: String,
    /// The control of an evaluation, as it was given.
    pub control: Option<String>,
    /// Results by the name of their study; the name is empty for a single study or a run.
    pub sets: BTreeMap<String, Set>,
}

/// Metric → seed → value.
pub type Measured = BTreeMap<String, BTreeMap<u64, f64>>;

/// The results of a study or a run.
#[derive(Clone, Debug, Default)]
pub struct Set {
    /// Metrics by the label of the cell.
    pub cells: BTreeMap<String, Measured>,
    /// Verdict by claim and reading.
    pub verdicts: BTreeMap<String, String>,
}

/// Reads a results directory.
///
/// # Errors
/// If it is not a results directory, or damaged.
pub fn read(path: &Path) -> Result<Results, LabError> {
    let manifest = manifest(path)?;
    let text = |key: &str| manifest[key].as_str().unwrap_or("").to_owned();
    let kind = match (text("kind").as_str(), text("command").as_str()) {
        ("reproduce", _) => Kind::Reproduce,
        ("evaluate", _) => Kind::Evaluate,
        ("study", _) | ("", "study") => Kind::Study,
        ("" | "run", "run") => Kind::Run,
        (kind, command) => {
            let kind = if kind.is_empty() { command } else { kind }.to_owned();
            return Err(CompareError::UnknownKind { manifest: path.join(MANIFEST), kind }.into());
        }
    };
    if matches!(kind, Kind::Reproduce | Kind::Evaluate) && manifest["complete"] != true {
        return Err(CompareError::Incomplete { path: path.to_owned(), kind: kind.word() }.into());
    }
    let engine =
        needed(&path.join(MANIFEST), &manifest, "engine", "text such as 0.1.0-9e286817", Value::as_str)?;
    let profile =
        manifest["profile"].as_str().or(manifest["provenance"]["profile"].as_str()).unwrap_or("full");
    let (mut sets, mut control) = (BTreeMap::new(), None);
    match kind {
        Kind::Run => drop(sets.insert(String::new(), run(path, &manifest)?)),
        Kind::Study => drop(sets.insert(String::new(), study(path)?)),
        Kind::Reproduce | Kind::Evaluate => {
            if kind == Kind::Evaluate {
                let all = read_json(&path.join(evaluate::FILE))?;
                control = all["control"].as_str().map(str::to_owned);
                sets.insert(REQUIREMENTS.to_owned(), requirements(path, &all)?);
            }
            for paper in folders(&path.join("studies"))? {
                for folder in folders(&paper)? {
                    let name = |p: &Path| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    sets.insert(format!("{}/{}", name(&paper), name(&folder)), study(&folder)?);
                }
            }
        }
    }
    let (path, engine, profile) = (path.to_owned(), engine.to_owned(), profile.to_owned());
    Ok(Results { path, kind, engine, profile, control, sets })
}

/// The verdict on each requirement of an evaluation.
fn requirements(path: &Path, all: &Value) -> Result<Set, LabError> {
    let file = path.join(evaluate::FILE);
    let mut set = Set::default();
    for r in needed(&file, all, "requirements", "a list of requirements", Value::as_array)? {
        let text = |key: &str| r[key].as_str().unwrap_or("?").to_owned();
        let key = format!("§{} {}", text("section"), text("title"));
        set.verdicts.insert(key, text("verdict").replace('-', " "));
    }
    Ok(set)
}

fn manifest(path: &Path) -> Result<Value, LabError> {
    if !path.is_dir() {
        let words = if path.exists() { "not a directory" } else { "there is no such directory" };
        return Err(CompareError::NoFolder { path: path.to_owned(), words }.into());
    }
    if !path.join(MANIFEST).is_file() {
        return Err(CompareError::NoResults { path: path.to_owned() }.into());
    }
    read_json(&path.join(MANIFEST))
}

fn read_json(path: &Path) -> Result<Value, LabError> {
    let text = read_text(path).map_err(LabError::read(path))?;
    Ok(serde_json::from_str(&text).map_err(|e| damaged(path, &e))?)
}

/// The expected value of a key in a results file.
fn needed<'a, T>(
    file: &Path,
    value: &'a Value,
    key: &str,
    accepted: &'static str,
    read: impl FnOnce(&'a Value) -> Option<T>,
) -> Result<T, CompareError> {
    read(&value[key]).ok_or_else(|| {
        let what = if value[key].is_null() { "it is missing" } else { "it has another type" };
        CompareError::Key { path: file.to_owned(), key: key.to_owned(), what, accepted }
    })
}

fn damaged(path: &Path, why: &dyn std::fmt::Display) -> CompareError {
    CompareError::Damaged { path: path.to_owned(), why: why.to_string() }
}

fn folders(path: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut all = Vec::new();
    for entry in fs::read_dir(path).map_err(LabError::read(path))? {
        all.push(entry.map_err(LabError::read(path))?.path());
    }
    all.retain(|p| p.is_dir());
    all.sort();
    Ok(all)
}

/// The results of `skyhaul run`: of one run, or of one per combination of `--set`.
fn run(path: &Path, manifest: &Value) -> Result<Set, LabError> {
    let mut set = Set::default();
    let one = |set: &mut Set, folder: &Path, cell: String| -> Result<(), LabError> {
        let file = folder.join("summary.json");
        let summary = read_json(&file)?;
        let seed = needed(&file, &summary, "seed", "a whole number", Value::as_u64)?;
        let measured = set.cells.entry(cell).or_default();
        leaves(&summary, String::new(), &mut |name, x| {
            measured.entry(name).or_default().insert(seed, x);
        });
        Ok(())
    };
    match manifest["cases"].as_array() {
        None => one(&mut set, path, String::new())?,
        Some(cases) => {
            for case in cases {
                let choice = case["choice"].as_object().into_iter().flatten();
                let words = choice.map(|(k, v)| format!("{k} = {}", v.as_str().unwrap_or("?")));
                let cell = words.collect::<Vec<_>>().join(", ");
                let folder = needed(
                    &path.join(MANIFEST),
                    case,
                    "folder",
                    "the name of a folder of results",
                    Value::as_str,
                )?;
                one(&mut set, &path.join(folder), cell)?;
            }
        }
    }
    Ok(set)
}

/// Calls `found` with every number of a summary and its path, except `seed` and `index`. An entry of a list is named by its
/// group and index, or by its link and direction, or else by its position.
fn leaves(value: &Value, name: String, found: &mut dyn FnMut(String, f64)) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(all) => {
            for (key, v) in all.iter().filter(|(k, _)| !matches!(k.as_str(), "seed" | "index")) {
                leaves(v, below(key), found);
            }
        }
        Value::Array(all) => {
            for (i, v) in all.iter().enumerate() {
                let text = |key: &str| v[key].as_str().map(str::to_owned);
                let index = v["index"].as_u64().map(|i| format!("[{i}]"));
                let label = text("group").or_else(|| text("link"));
                let label = label.map_or_else(|| i.to_string(), |l| l + &index.unwrap_or_default());
                let label = text("direction").map_or(label.clone(), |d| format!("{label}.{d}"));
                leaves(v, below(&label), found);
            }
        }
        Value::Number(x) => found(name, x.as_f64().unwrap_or(f64::NAN)),
        _ => {}
    }
}

fn study(path: &Path) -> Result<Set, LabError> {
    let file = path.join("summary.json");
    let summary = read_json(&file)?;
    let mut set = Set::default();
    for claim in needed(&file, &summary, "claims", "a list of claims", Value::as_array)? {
        for outcome in claim["outcomes"].as_array().into_iter().flatten() {
            let text = |v: &Value| v.as_str().unwrap_or("?").to_owned();
            let key = format!("{} ({})", text(&claim["id"]), text(&outcome["reading"]));
            set.verdicts.insert(key, text(&outcome["verdict"]).replace('-', " "));
        }
    }
    let file = path.join("cells.parquet");
    let damaged = |e: &dyn std::fmt::Display| damaged(&file, e);
    let open = File::open(&file).map_err(LabError::read(&file))?;
    let reader = SerializedFileReader::new(open).map_err(|e| damaged(&e))?;
    for row in reader.get_row_iter(None).map_err(|e| damaged(&e))? {
        let row = row.map_err(|e| damaged(&e))?;
        let columns: Vec<(&String, &Field)> = row.get_column_iter().collect();
        let texts = columns.iter().filter_map(|(name, field)| match field {
            Field::Str(text) if *name != "failed" => Some((name.as_str(), text.as_str())),
            _ => None,
        });
        let texts: Vec<(&str, &str)> = texts.collect();
        let words: Vec<String> = texts.iter().map(|(name, text)| format!("{name} = {text}")).collect();
        let seed = columns.iter().find_map(|(name, field)| match field {
            Field::ULong(seed) if *name == "seed" => Some(*seed),
            _ => None,
        });
        let seed = seed.ok_or_else(|| damaged(&"there is no column `seed`"))?;
        let measured = set.cells.entry(words.join(", ")).or_default();
        for (name, field) in &columns {
            // Column `AXIS_x` has the positions of the values of axis `AXIS` in figures: no results.
            let place = name.strip_suffix("_x").is_some_and(|axis| texts.iter().any(|(n, _)| *n == axis));
            let x = match field {
                Field::Double(x) if !place => *x,
                Field::Null if !place => f64::NAN,
                _ => continue,
            };
            measured.entry((*name).clone()).or_default().insert(seed, x);
        }
    }
    Ok(set)
}
