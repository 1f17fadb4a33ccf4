//! Scenarios: run, check, schema.

use crate::control::{self, UserControls};
use crate::error;
use crate::table::Table;
use pyo3::prelude::*;
use skyhaul_cc::Controls;
use skyhaul_lab::cases::{self, Case};
use skyhaul_lab::lease::Lease;
use skyhaul_lab::run::{RunObserver, single};
use skyhaul_lab::summary::Summary;
use skyhaul_lab::{LabError, measure, results};
use skyhaul_scenario::resolved::Series;
use skyhaul_scenario::{Document, Resolved};
use skyhaul_sim::quantity::{FLOW, GROUP, LINK, Quantity, RUN, sampled};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Changes to a scenario: path and TOML text of the value.
pub(crate) type Settings = Vec<(String, String)>;

fn resolve(scenario: &str, text: Option<&str>, set: &Settings) -> PyResult<Resolved> {
    let document = match text {
        Some(text) => Document::parse(scenario, text, &cases::load),
        None => Document::open(scenario, &cases::load),
    };
    let mut document = document.map_err(error::scenario)?;
    for (path, value) in set {
        document.set(&format!("{path}={value}")).map_err(error::scenario)?;
    }
    document.read_traces(&cases::load).map_err(error::scenario)?;
    document.resolve().map_err(error::scenario)
}

/// Measurements of a run.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct RunResult {
    case: Case,
    result: skyhaul_sim::RunResult,
}

#[pymethods]
impl RunResult {
    /// One row per flow.
    fn flows(&self) -> PyResult<Table> {
        Table::new(&measure::flow_table(&self.result))
    }

    /// One row per direction of a link.
    fn links(&self) -> PyResult<Table> {
        Table::new(&measure::link_table(&self.result))
    }

    /// One row per time, object and series.
    fn series(&self) -> PyResult<Table> {
        Table::new(&measure::series_table(&self.result))
    }

    /// One row per page or random transfer.
    fn transfers(&self) -> PyResult<Table> {
        Table::new(&measure::transfer_table(&self.result))
    }

    /// The output of the command line with `--json`.
    fn summary_json(&self) -> String {
        let Case { scenario, seed, .. } = &self.case;
        let summary = Summary { scenario, seed: *seed, result: &self.result, choice: None };
        serde_json::to_string(&summary).unwrap_or_default()
    }

    /// Why the run ended before its time.
    fn ended_early(&self) -> Option<String> {
        self.result.ended.map(|why| why.to_string())
    }

    /// The output of the command line.
    fn report(&self) -> String {
        measure::report(&self.case.scenario, self.case.seed, &self.result)
    }

    /// The tables of that output: rows of cells, the header first.
    fn tables(&self) -> Vec<Vec<Vec<String>>> {
        let tables = measure::tables(&self.case.scenario, &self.result);
        tables.iter().map(|grid| grid.rows().to_vec()).collect()
    }

    /// The fully resolved scenario, as TOML.
    fn scenario_toml(&self) -> String {
        self.case.scenario.to_toml()
    }

    /// Writes the results directory.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let write = || {
            let lease = Lease::take(&folder)?;
            let written = results::write(&folder, &self.case, &self.result, None)?;
            lease.finish(&written)
        };
        py.detach(write).map_err(error::output)
    }
}

/// Runs a scenario: a file, a preset, or a text with a name for messages. `controls` are user-defined.
#[pyfunction]
#[pyo3(signature = (scenario, text=None, set=vec![], seed=None, digest=false, controls=vec![]))]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &str,
    text: Option<&str>,
    set: Settings,
    seed: Option<u64>,
    digest: bool,
    controls: UserControls,
) -> PyResult<RunResult> {
    let controls = control::controls(py, &controls, &Arc::default())?;
    let resolved = resolve(scenario, text, &set)?;
    let seed = seed.unwrap_or(resolved.seed);
    let case = Case { choice: Vec::new(), scenario: resolved, seed };
    let own = control::uses_own(&case.scenario);
    let work = || simulate(&case, digest, &controls);
    let result = if own { work() } else { py.detach(work) }?;
    Ok(RunResult { case, result })
}

/// Checks for Ctrl-C between the steps of a run.
#[derive(Default)]
pub(crate) struct Signals(Mutex<Option<PyErr>>);

impl Signals {
    fn raised(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The results of the runs, or the exception of Ctrl-C or of a control.
    pub(crate) fn ended<T>(&self, result: Result<T, LabError>) -> PyResult<T> {
        match (self.raised().take(), result) {
            (Some(e), _) => Err(e),
            (None, Err(LabError::Failed(f))) => Err(Python::attach(|py| control::exception(py, f))),
            (None, Err(LabError::Build(e))) => Err(error::build(e)),
            (None, result) => result.map_err(error::lab),
        }
    }
}

impl RunObserver for Signals {
    fn step(&self) {
        if let Err(e) = Python::attach(|py| py.check_signals()) {
            self.raised().get_or_insert(e);
        }
    }
    fn stopped(&self) -> bool {
        self.raised().is_some()
    }
}

fn simulate(case: &Case, digest: bool, controls: &Controls) -> PyResult<skyhaul_sim::RunResult> {
    let signals = Signals::default();
    signals.ended(single(case, digest, controls, &signals))
}

/// Properties derived from a scenario: JSON, and text for a terminal.
#[pyfunction]
#[pyo3(signature = (scenario, text=None, set=vec![], controls=vec![]))]
pub(crate) fn check(
    py: Python<'_>,
    scenario: &str,
    text: Option<&str>,
    set: Settings,
    controls: UserControls,
) -> PyResult<(String, String)> {
    let resolved = resolve(scenario, text, &set)?;
    let controls = control::controls(py, &controls, &Arc::default())?;
    skyhaul_sim::check_controls(&resolved, &controls).map_err(error::build)?;
    let check = skyhaul_scenario::check(&resolved);
    let json = serde_json::to_string(&check).map_err(|e| error::SkyhaulError::new_err(e.to_string()))?;
    Ok((json, check.to_string()))
}

/// The JSON Schema of a kind of file: "scenario" or "study".
#[pyfunction]
pub(crate) fn schema(kind: &str) -> PyResult<String> {
    match kind {
        "scenario" => Ok(skyhaul_scenario::scenario_schema().to_string()),
        "study" => Ok(skyhaul_study::schema::study_schema()),
        _ => {
            let message = format!("there is no schema of \"{kind}\" (known: scenario, study)");
            Err(error::SkyhaulError::new_err(message))
        }
    }
}

/// The cache folder of the command.
#[pyfunction]
pub(crate) fn cache_dir() -> PathBuf {
    skyhaul_study::cache::Cache::default_dir()
}

/// Names of the presets.
#[pyfunction]
pub(crate) fn presets() -> Vec<&'static str> {
    skyhaul_scenario::preset::names().collect()
}

/// The quantities of a run: object, name, column, unit, description.
#[pyfunction]
pub(crate) fn quantities() -> Vec<(&'static str, &'static str, String, &'static str, &'static str)> {
    fn rows<T: ?Sized>(
        of: &'static str,
        list: &'static [Quantity<T>],
    ) -> impl Iterator<Item = (&'static str, &'static str, String, &'static str, &'static str)> {
        list.iter().map(move |q| (of, q.name, q.column(), q.unit.symbol(), q.description))
    }
    let series = Series::ALL.iter().map(|s| {
        let q = sampled(*s);
        ("series", s.name(), "value".to_owned(), q.unit.symbol(), q.description)
    });
    let all =
        rows("flow", FLOW).chain(rows("group", GROUP)).chain(rows("link", LINK)).chain(rows("run", RUN));
    all.chain(series).collect()
}
