//! An evaluation of a control by the cases of a document.

use crate::control::UserControls;
use crate::error;
use crate::progress;
use crate::run::Signals;
use crate::study::{Renderer, Runner};
use crate::unfinished::Unfinished;
use pyo3::prelude::*;
use skyhaul_lab::evaluate::{self, Request, shown};
use skyhaul_lab::reproduce;
use skyhaul_study::cache::Cache;
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::run::RunOptions;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Cases in progress.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Evaluating {
    /// Taken when the report is written.
    all: Unfinished<evaluate::Evaluating>,
    runner: Runner,
    cache: Cache,
    /// Cases that could not be planned, as lines.
    refused: Vec<String>,
}

#[pymethods]
impl Evaluating {
    /// Checks the control, plans the cases, and creates the folder for the report. `cache` None means the cache of the
    /// command.
    #[new]
    #[pyo3(signature = (control, names, quick=false, cases=None, seeds=None, out=None, cache=None, controls=vec![]))]
    #[expect(clippy::too_many_arguments, reason = "they arrive by name")]
    fn new(
        py: Python<'_>,
        control: String,
        names: Vec<String>,
        quick: bool,
        cases: Option<PathBuf>,
        seeds: Option<u32>,
        out: Option<PathBuf>,
        cache: Option<PathBuf>,
        controls: UserControls,
    ) -> PyResult<Self> {
        let request = Request { control, names, quick, cases, seeds, out };
        let runner = Runner::new(py, &controls)?;
        let mut refused = Vec::new();
        let all = evaluate::Evaluating::begin(&request, &runner, &mut |why| refused.push(why.to_owned()));
        let all = Unfinished::new(all.map_err(error::lab)?);
        let cache = reproduce::cache(cache).map_err(error::output)?;
        Ok(Self { all, runner, cache, refused })
    }

    /// Cases that could not be planned, as lines.
    #[getter]
    fn refused(&self) -> Vec<String> {
        self.refused.clone()
    }

    /// Runs all cells that are not in the cache. `progress` and `warn` as in `Study.run`.
    #[pyo3(signature = (jobs=0, progress=None, warn=None))]
    fn run(
        &self,
        py: Python<'_>,
        jobs: usize,
        progress: Option<Py<PyAny>>,
        warn: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let stop = self.runner.flag();
        stop.store(false, Ordering::Relaxed);
        let halt = || self.runner.stop();
        progress::with_progress(py, progress.as_ref(), warn.as_ref(), halt, |sender| {
            let options = RunOptions { jobs, cache: Some(&self.cache), stop: Some(stop), progress: sender };
            self.all.with(|all| all.run(&self.runner, &options).map(drop).map_err(error::study))
        })?
    }

    /// Writes the events of one cell of each case, and returns the files.
    fn qlog(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        let signals = Signals::default();
        let controls = self.runner.controls();
        let write = || self.all.with(|all| Ok(all.qlog(controls, &signals)));
        // The candidate is in every run, and may be in Python.
        let own = controls.names().next().is_some();
        signals.ended(if own { write() } else { py.detach(write) }?)
    }

    /// Writes page and JSON; `render` draws a specification into a file.
    #[pyo3(signature = (render=None))]
    fn report(&self, py: Python<'_>, render: Option<Py<PyAny>>) -> PyResult<Evaluated> {
        let renderer = render.map(Renderer);
        py.detach(|| {
            let all = self.all.take()?;
            let renderer = renderer.as_ref().map(|r| r as &dyn FigureRenderer);
            Ok(Evaluated { all: all.report(renderer, &mut progress::print_line).map_err(error::output)? })
        })
    }
}

/// The results of an evaluation.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Evaluated {
    all: evaluate::Evaluated,
}

#[pymethods]
impl Evaluated {
    /// The results directory.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.all.folder.clone()
    }

    /// `evaluation.json`.
    fn summary_json(&self) -> String {
        self.all.summary().to_string()
    }

    /// A line per requirement and every claim that does not hold, as text.
    fn text(&self) -> String {
        shown(&self.all)
    }
}
