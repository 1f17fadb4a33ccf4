//! Contents of a results directory of a run.

use super::{json, manifest, unreadable};
use crate::cases::Case;
use crate::error::{ExportError, LabError};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use skyhaul_scenario::resolved::FlowGroup;
use skyhaul_scenario::{Resolved, no_files, resolve_text};
use skyhaul_study::files::read_text;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Times in seconds, with values; no value if there was nothing to measure.
pub(super) type Curve = Vec<(f64, Option<f64>)>;

/// A recorded run.
pub(super) struct Recorded {
    /// Its folder.
    pub(super) folder: PathBuf,
    /// Its manifest.
    pub(super) manifest: Value,
    /// The scenario, with the seed used.
    pub(super) case: Case,
    /// The output of `run --json`.
    pub(super) summary: Value,
    /// By object (`flows.bulk[3]`) and series (`cwnd`).
    series: BTreeMap<(String, String), Curve>,
}

/// A recorded flow.
pub(super) struct RecordedFlow<'a> {
    /// Index into the flows of the result.
    pub(super) index: u32,
    /// Number within its group.
    pub(super) number: u32,
    /// `flows.bulk[3]`.
    pub(super) object: String,
    /// Its group.
    pub(super) group: &'a FlowGroup,
    /// Its measurements, an element of `flows` in `summary.json`.
    pub(super) measured: &'a Value,
}

/// The runs of a results directory: one, or those in its list.
pub(super) fn runs(results: &Path) -> Result<Vec<Recorded>, LabError> {
    let top = manifest(results)?;
    if let Some(cases) = top["cases"].as_array() {
        let names = cases.iter().filter_map(|c| c["folder"].as_str());
        return names.map(|name| Recorded::read(&results.join(name))).collect();
    }
    if top["command"] != "run" {
        return Err(ExportError::NoRun { results: results.to_owned() }.into());
    }
    Ok(vec![Recorded::read(results)?])
}

impl Recorded {
    fn read(folder: &Path) -> Result<Self, LabError> {
        let manifest = manifest(folder)?;
        let path = folder.join("scenario.resolved.toml");
        let text = read_text(&path).map_err(LabError::read(&path))?;
        let scenario = resolve_text(&path.to_string_lossy(), &text, &[], &no_files)?;
        let seed =
            manifest["seed"].as_u64().ok_or_else(|| unreadable(folder, &"the manifest has no seed"))?;
        let summary = json(&folder.join("summary.json"))?;
        let series = series(&folder.join("series.parquet"))?;
        let case = Case { choice: Vec::new(), scenario, seed };
        Ok(Self { folder: folder.to_owned(), manifest, case, summary, series })
    }

    pub(super) fn scenario(&self) -> &Resolved {
        &self.case.scenario
    }

    /// Duration of the run, seconds.
    pub(super) fn duration(&self) -> f64 {
        self.scenario().duration.as_secs_f64()
    }

    /// The flows in the order of the result.
    pub(super) fn flows(&self) -> Vec<RecordedFlow<'_>> {
        let groups = self.scenario().flows.iter().flat_map(|g| (0..g.count).map(move |i| (g, i)));
        groups
            .zip(0u32..)
            .map(|((group, number), index)| RecordedFlow {
                index,
                number,
                object: format!("flows.{}[{number}]", group.name),
                group,
                measured: &self.summary["flows"][index as usize],
            })
            .collect()
    }

    /// Refuses a run that has not recorded these series; the error has the options of `skyhaul run` that record them.
    pub(super) fn need(&self, names: &[&str]) -> Result<(), ExportError> {
        let record = &self.scenario().record;
        let has = |name: &&str| record.series.iter().any(|s| s.name() == *name);
        if record.sample.is_some() && names.iter().all(has) {
            return Ok(());
        }
        let missing: Vec<&str> = names.iter().copied().filter(|n| !has(n)).collect();
        let mut all: Vec<String> = record.series.iter().map(|s| format!("'{}'", s.name())).collect();
        all.extend(missing.iter().map(|n| format!("'{n}'")));
        let sample = match record.sample {
            Some(_) => "",
            None => " --set record.sample='100 ms'",
        };
        let without = if missing.is_empty() { "series".to_owned() } else { missing.join(", ") };
        Err(ExportError::NotRecorded { folder: self.folder.clone(), without, sample, all: all.join(", ") })
    }

    /// A series of an object; empty if there is none.
    pub(super) fn curve(&self, object: &str, series: &str) -> &[(f64, Option<f64>)] {
        self.series.get(&(object.to_owned(), series.to_owned())).map_or(&[], Vec::as_slice)
    }
}

fn series(path: &Path) -> Result<BTreeMap<(String, String), Curve>, LabError> {
    let unreadable = |e: &dyn std::fmt::Display| unreadable(path, e);
    let file = File::open(path).map_err(LabError::read(path))?;
    let reader = SerializedFileReader::new(file).map_err(|e| unreadable(&e))?;
    let mut all: BTreeMap<(String, String), Curve> = BTreeMap::new();
    for row in reader.get_row_iter(None).map_err(|e| unreadable(&e))? {
        let row = row.map_err(|e| unreadable(&e))?;
        let fields: Vec<&Field> = row.get_column_iter().map(|(_, f)| f).collect();
        let [Field::Double(time), Field::Str(object), Field::Str(series), value] = fields.as_slice() else {
            return Err(unreadable(&"its columns are not those of a series table").into());
        };
        let value = match value {
            Field::Double(x) => Some(*x),
            _ => None,
        };
        all.entry((object.clone(), series.clone())).or_default().push((*time, value));
    }
    Ok(all)
}
