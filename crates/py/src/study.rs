//! Studies, and the command line.

use crate::control::{self, UserControls};
use crate::error;
use crate::progress;
use crate::run::Settings;
use crate::table::Table;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use skyhaul_cc::Controls;
use skyhaul_lab::cases;
use skyhaul_lab::engine::simulator;
use skyhaul_lab::lease::Lease;
use skyhaul_lab::studies as lab_studies;
use skyhaul_lab::sweep::{Sweep, SweepAxis};
use skyhaul_scenario::Resolved;
use skyhaul_study::RenderError;
use skyhaul_study::cache::{Cache, Entry};
use skyhaul_study::engine::Simulator;
use skyhaul_study::evaluation::{Evaluation, evaluate};
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::format;
use skyhaul_study::model::{Raw, StudyFile};
use skyhaul_study::observed::Observed;
use skyhaul_study::plan::Plan;
use skyhaul_study::report;
use skyhaul_study::run::{self, Cells, Job, RunOptions};
use skyhaul_study::runner::{CellRunner, Failure, Problem, Resolution, Setting, Unversioned, Vocabulary};
use skyhaul_study::stats::Estimate;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A study, resolved and checked.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Study {
    plan: Plan,
    runner: Runner,
}

/// The simulator, with the interpreter's lock held for cells that call Python.
#[derive(Debug)]
pub(crate) struct Runner {
    simulator: Simulator,
    controls: Controls,
    /// Set once all cells are to end; a cell that calls Python looks at it before each call.
    stop: Arc<AtomicBool>,
    /// The threads that run cells that call Python, as `threading.get_ident` identifies them.
    threads: Mutex<BTreeSet<u64>>,
}

impl Runner {
    pub(crate) fn new(py: Python<'_>, own: &UserControls) -> PyResult<Self> {
        let stop = Arc::default();
        let controls = control::controls(py, own, &stop)?;
        let simulator = simulator().with_controls(controls.clone());
        Ok(Self { simulator, controls, stop, threads: Mutex::default() })
    }

    /// The user's controls.
    pub(crate) const fn controls(&self) -> &Controls {
        &self.controls
    }

    /// Runs `run`, which calls Python again and again, with the interpreter's lock held. [`Self::stop`] can interrupt it.
    pub(crate) fn hold<T>(&self, run: impl FnOnce() -> T) -> T {
        Python::attach(|py| {
            let ident = |py: Python<'_>| py.import("threading")?.call_method0("get_ident")?.extract::<u64>();
            // Without the identifier of the thread, `run` ends only at the next event of its simulation.
            let thread = ident(py).ok();
            self.threads().extend(thread);
            let result = run();
            if let Some(thread) = thread {
                self.threads().remove(&thread);
            }
            result
        })
    }

    fn threads(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The flag that ends all cells once it is set.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.stop
    }

    /// Asks all cells to end: no further cell starts, running cells that do not call Python are completed, and those that
    /// call Python end at once, even in the middle of a method.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let threads: Vec<u64> = self.threads().iter().copied().collect();
        if !threads.is_empty() {
            // Where Python has no `ctypes`, these cells end at their next event.
            let _ = Python::attach(|py| {
                py.import("skyhaul._control")?.call_method1("interrupt", (threads,)).map(drop)
            });
        }
    }
}

impl CellRunner for Runner {
    fn engine(&self) -> String {
        self.simulator.engine()
    }
    fn vocabulary(&self) -> Vocabulary {
        self.simulator.vocabulary()
    }
    fn resolve(&self, base: &Raw, dir: &Path, set: &[Setting]) -> Result<Resolution, Problem> {
        self.simulator.resolve(base, dir, set)
    }
    fn reread(&self, text: &str) -> Result<Resolved, Problem> {
        self.simulator.reread(text)
    }
    fn version(&self, scenario: &Resolved) -> Result<String, Unversioned> {
        self.simulator.version(scenario)
    }
    fn run(&self, scenario: &Resolved, seed: u64) -> Result<Observed, Failure> {
        if !control::uses_own(scenario) {
            return self.simulator.run(scenario, seed);
        }
        self.hold(|| self.simulator.run(scenario, seed))
    }
}

#[pymethods]
impl Study {
    /// Reads a study: `study` is a file or the name of a built-in study; with `text`, the content of a file, `study` is only
    /// the name for messages.
    #[new]
    #[pyo3(signature = (study, text=None, set=vec![], first_seed=None, seeds=None, controls=vec![]))]
    fn new(
        py: Python<'_>,
        study: &str,
        text: Option<&str>,
        set: Settings,
        first_seed: Option<u64>,
        seeds: Option<u32>,
        controls: UserControls,
    ) -> PyResult<Self> {
        let mut file = match text {
            Some(text) => StudyFile::parse(text, Path::new(study)).map_err(error::study)?,
            None => lab_studies::open(study).map_err(error::lab)?,
        };
        for (path, value) in set {
            lab_studies::set(&mut file, &format!("{path}={value}")).map_err(error::lab)?;
        }
        file.study.seeds.first = first_seed.unwrap_or(file.study.seeds.first);
        if let Some(seeds) = seeds {
            if seeds == 0 {
                return Err(error::StudyError::new_err("seeds: a study needs at least one seed"));
            }
            file.study.seeds.count = seeds;
        }
        let runner = Runner::new(py, &controls)?;
        let plan = skyhaul_study::plan::plan(&runner, file).map_err(error::study)?;
        Ok(Self { plan, runner })
    }

    /// Title of the study.
    #[getter]
    fn title(&self) -> &str {
        &self.plan.file.study.title
    }

    /// Number of cells.
    fn __len__(&self) -> usize {
        self.plan.cells().len()
    }

    /// The cells that are not in the cache, as messages for `run_cell`, and warnings about damaged cache entries.
    #[pyo3(signature = (cache=None))]
    fn jobs(&self, cache: Option<PathBuf>) -> PyResult<(Vec<String>, Vec<String>)> {
        let (mut jobs, mut warnings) = (Vec::new(), Vec::new());
        let cache = cache.map(Cache::new);
        if cache.is_some() {
            warnings.extend(run::not_cached(&self.plan));
        }
        for job in run::jobs(&self.plan) {
            let cache = cache.as_ref().filter(|_| job.cached);
            match cache.map(|c| c.load(&job.engine, &job.key)) {
                Some(Entry::Found(_)) => continue,
                Some(Entry::Damaged(why)) => warnings.push(why),
                Some(Entry::Absent) | None => {}
            }
            let text = serde_json::to_string(&job).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
            jobs.push(text);
        }
        Ok((jobs, warnings))
    }

    /// Stores the answer to a job in a cache, unless the cell failed or may not be cached.
    fn store(&self, py: Python<'_>, cache: PathBuf, job: &str, answer: &str) -> PyResult<()> {
        let (job, result) = accept(job, answer)?;
        let (Ok(observed), true) = (result, job.cached) else { return Ok(()) };
        py.detach(|| Cache::new(cache).store(&job.engine, &job.key, &observed)).map_err(error::study)
    }

    /// Evaluates the study from the answers to its jobs, at most one to each, and the cells in the cache.
    #[pyo3(signature = (answers, cache=None))]
    fn collect(&self, answers: Vec<(String, String)>, cache: Option<PathBuf>) -> PyResult<Outcome> {
        let jobs = run::jobs(&self.plan);
        let mut observed: Vec<Option<Observed>> = vec![None; jobs.len()];
        let mut failed = BTreeMap::new();
        let ran = answers.len();
        for (job, answer) in answers {
            let (job, result) = accept(&job, &answer)?;
            let slot = observed.get_mut(job.number).filter(|_| jobs.get(job.number) == Some(&job));
            let slot = slot.ok_or_else(|| error::StudyError::new_err("the answer is of another study"))?;
            if slot.is_some() || failed.contains_key(&job.number) {
                let twice = format!("cell {} has two answers: pass one answer to each job", job.number);
                return Err(error::StudyError::new_err(twice));
            }
            match result {
                Ok(o) => *slot = Some(o),
                Err(failure) => drop(failed.insert(job.number, failure)),
            }
        }
        let cache = cache.map(Cache::new);
        let open = |(slot, job): &(&mut Option<Observed>, &Job)| {
            slot.is_none() && job.cached && !failed.contains_key(&job.number)
        };
        for (slot, job) in observed.iter_mut().zip(&jobs).filter(open) {
            if let Some(Entry::Found(o)) = cache.as_ref().map(|c| c.load(&job.engine, &job.key)) {
                *slot = Some(*o);
            }
        }
        let known = observed.iter().flatten().count();
        let interrupted = known + failed.len() < observed.len();
        let cached = known + failed.len() - ran;
        self.outcome(&Cells { observed, failed, cached, ran, interrupted })
    }

    /// Runs the cells that are not in the cache, on `jobs` threads (0: one per core), and evaluates the study. `progress` is
    /// called with the number of finished cells, the number of all cells, and the label of the last finished one; `warn` with
    /// each warning.
    #[pyo3(signature = (jobs=0, cache=None, progress=None, warn=None))]
    fn run(
        &self,
        py: Python<'_>,
        jobs: usize,
        cache: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
        warn: Option<Py<PyAny>>,
    ) -> PyResult<Outcome> {
        let cache = cache.map(Cache::new);
        let stop = self.runner.flag();
        stop.store(false, Ordering::Relaxed);
        let cells = progress::with_progress(
            py,
            progress.as_ref(),
            warn.as_ref(),
            || self.runner.stop(),
            |sender| {
                let options = RunOptions { jobs, cache: cache.as_ref(), stop: Some(stop), progress: sender };
                run::run(&self.runner, &self.plan, &options).map_err(error::study)
            },
        )??;
        self.outcome(&cells)
    }
}

impl Study {
    fn outcome(&self, cells: &Cells) -> PyResult<Outcome> {
        Ok(Outcome { evaluation: evaluate(&self.plan, cells).map_err(error::study)? })
    }
}

/// Reads a job and the answer to it.
fn accept(job: &str, answer: &str) -> PyResult<(Job, Result<Observed, Failure>)> {
    let job: Job =
        serde_json::from_str(job).map_err(|e| error::StudyError::new_err(format!("not a job: {e}")))?;
    let result = run::accept(&job, answer).map_err(|e| error::StudyError::new_err(e.to_string()))?;
    Ok((job, result))
}

/// Runs one cell, in any process: takes a message of `Study.jobs` and returns the answer for `Study.collect`.
#[pyfunction]
#[pyo3(signature = (job, controls=vec![]))]
pub(crate) fn run_cell(py: Python<'_>, job: &str, controls: UserControls) -> PyResult<String> {
    let job: Job =
        serde_json::from_str(job).map_err(|e| error::StudyError::new_err(format!("not a job: {e}")))?;
    let runner = Runner::new(py, &controls)?;
    py.detach(|| run::execute(&runner, &job)).map_err(|e| error::StudyError::new_err(e.to_string()))
}

/// Headings of axes and metrics, and rows of reading, labels and metrics.
type ShownValues = (Vec<String>, Vec<String>, Vec<(String, Vec<String>, Vec<String>)>);

/// The results of a study.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Outcome {
    evaluation: Evaluation,
}

#[pymethods]
impl Outcome {
    /// One row per cell: reading, axes, seed, metrics.
    fn cells(&self) -> PyResult<Table> {
        Table::new(&self.evaluation.cells)
    }

    /// Provenance, claims and means, as JSON.
    fn summary_json(&self) -> String {
        self.evaluation.summary().to_string()
    }

    /// Claims with verdicts, as JSON.
    fn claims_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.evaluation.claims).map_err(|e| PyRuntimeError::new_err(e.to_string()))
    }

    /// Name, title and Vega-Lite specification of each figure.
    fn figures(&self) -> Vec<(String, String, String)> {
        let figures = self.evaluation.figures.iter();
        figures.map(|f| (f.name.clone(), f.title.clone(), f.spec.to_string())).collect()
    }

    /// The output of the command line.
    fn text(&self) -> String {
        lab_studies::text(&self.evaluation, |_| true)
    }

    /// The number of claims per verdict, in words.
    fn counts(&self) -> String {
        report::counts(&self.evaluation)
    }

    /// The means with intervals, as in that output.
    fn means(&self) -> String {
        lab_studies::values(&self.evaluation, |_| true)
    }

    /// The values as texts: headings of the axes, headings of the metrics, and for each combination its reading, the labels
    /// of its axes and its metrics, as in the other outputs.
    fn values(&self) -> ShownValues {
        let v = &self.evaluation.values;
        let rows = v.rows.iter().map(|r| (r.reading.clone(), r.at.clone(), r.shown.clone()));
        (v.axes.clone(), v.metrics.clone(), rows.collect())
    }

    /// The report as one HTML page.
    fn html(&self) -> String {
        report::html(&self.evaluation)
    }

    /// Writes the results directory; `render` draws a specification into a file. Returns the files written.
    #[pyo3(signature = (folder, render=None))]
    fn save(&self, py: Python<'_>, folder: PathBuf, render: Option<Py<PyAny>>) -> PyResult<Vec<PathBuf>> {
        let renderer = render.map(Renderer);
        let written = py.detach(|| {
            let lease = Lease::take(&folder)?;
            let renderer = renderer.as_ref().map(|r| r as &dyn FigureRenderer);
            let warn = &mut progress::print_line;
            let written = lab_studies::write(&self.evaluation, &folder, renderer, None, warn)?;
            lease.finish(&written).map(|()| written)
        });
        written.map_err(error::output)
    }
}

/// A number as results of studies show it: four significant digits.
#[pyfunction]
pub(crate) fn number(x: f64) -> String {
    format::number(x)
}

/// `mean ± half`, as reports of studies show it; without an interval the mean alone.
#[pyfunction]
#[pyo3(signature = (mean, half=None))]
pub(crate) fn estimate(mean: f64, half: Option<f64>) -> String {
    // The number of seeds is not shown.
    format::estimate(&Estimate { mean, half: half.unwrap_or(f64::INFINITY), n: 0 })
}

/// A number as other outputs show it: three significant digits.
#[pyfunction]
pub(crate) fn short(x: f64) -> String {
    skyhaul_lab::text::short(x)
}

/// Names of the studies that come with the package.
#[pyfunction]
pub(crate) fn studies() -> Vec<&'static str> {
    lab_studies::names().collect()
}

/// A Python function that draws: called with the specification and the path.
#[derive(Debug)]
pub(crate) struct Renderer(pub(crate) Py<PyAny>);

impl FigureRenderer for Renderer {
    fn render(&self, spec: &str, path: &Path) -> Result<(), RenderError> {
        Python::attach(|py| {
            let done = self.0.call1(py, (spec, path));
            done.map(drop).map_err(|e| RenderError::Message(e.value(py).to_string()))
        })
    }
}

/// Runs the command line `args`, whose first element is the name of the program, and returns the exit status. `own_command` is the command
/// line that starts the program again; it begins with `sys.executable`.
#[pyfunction]
#[pyo3(signature = (args, render, own_command))]
pub(crate) fn main(
    py: Python<'_>,
    args: Vec<OsString>,
    render: Option<Py<PyAny>>,
    own_command: Vec<OsString>,
) -> u8 {
    let renderer = render.map(Renderer);
    py.detach(|| skyhaul_cli::run(args, renderer.as_ref().map(|r| r as &dyn FigureRenderer), &own_command))
}

/// Values of a key: each with a name, or none, as TOML.
type Named = Vec<(Option<String>, String)>;

/// The study, as TOML, that runs a scenario with every combination of values. `axes` are keys with their values, `metrics`
/// expressions with or without a name.
#[pyfunction]
pub(crate) fn sweep_text(
    scenario: String,
    title: String,
    axes: Vec<(String, Named)>,
    metrics: Vec<(Option<String>, String)>,
) -> PyResult<String> {
    let axis = |(key, values): (String, Named)| {
        let values = values.into_iter().map(|(name, value)| (name, cases::value(&value))).collect();
        SweepAxis { key, values }
    };
    let axes = axes.into_iter().map(axis).collect();
    Sweep { scenario, title, axes, metrics }.text().map_err(error::lab)
}
