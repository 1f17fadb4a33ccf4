//! All studies and one report, with cells run here or by a Python executor.

use crate::error;
use crate::progress;
use crate::study::Renderer;
use crate::table::Table;
use crate::unfinished::{Unfinished, lock};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use skyhaul_lab::reproduce::{self, Request, shown};
use skyhaul_study::book::Book;
use skyhaul_study::cache::Cache;
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::run::{Job, RunOptions};
use skyhaul_study::tracker::CellTracker;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Studies in progress.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Reproduction {
    /// Taken when the report is written.
    all: Unfinished<reproduce::Reproduction>,
    cache: Cache,
    /// Studies of which cells run elsewhere, by number.
    open: Mutex<BTreeMap<usize, CellTracker>>,
    /// Studies that could not be planned, as lines.
    refused: Vec<String>,
}

#[pymethods]
impl Reproduction {
    /// Reads and plans the studies, and creates the folder for the report. `cache` None means the cache of the
    /// command.
    #[new]
    #[pyo3(signature = (names, quick=false, studies=None, seeds=None, max_cells=None, out=None, cache=None))]
    fn new(
        names: Vec<String>,
        quick: bool,
        studies: Option<PathBuf>,
        seeds: Option<u32>,
        max_cells: Option<u64>,
        out: Option<PathBuf>,
        cache: Option<PathBuf>,
    ) -> PyResult<Self> {
        let request = Request { names, quick, studies, seeds, max_cells, out };
        let mut refused = Vec::new();
        let all = reproduce::Reproduction::begin(&request, &mut |why| refused.push(why.to_owned()));
        let all = Unfinished::new(all.map_err(error::lab)?);
        let cache = reproduce::cache(cache).map_err(error::output)?;
        Ok(Self { all, cache, open: Mutex::default(), refused })
    }

    /// Studies that could not be planned, as lines.
    #[getter]
    fn refused(&self) -> Vec<String> {
        self.refused.clone()
    }

    /// Number of cells of each study that can run.
    fn sizes(&self) -> PyResult<Vec<usize>> {
        self.all.with(|all| Ok(all.plans().iter().map(|p| p.cells().len()).collect()))
    }

    /// The cells of a study that are not in the cache, as messages for `run_cell`, and warnings about the cache. If
    /// the cache has all cells, this finishes the study.
    fn jobs(&self, py: Python<'_>, study: usize) -> PyResult<(Vec<String>, Vec<String>)> {
        py.detach(|| {
            self.all.with(|all| {
                let plan = all.plans().get(study).ok_or_else(|| PyIndexError::new_err("no such study"))?;
                let (tracker, warnings) = CellTracker::open(plan, &all.name(study), Some(&self.cache));
                let text =
                    |job| serde_json::to_string(job).map_err(|e| PyRuntimeError::new_err(e.to_string()));
                let jobs = tracker.jobs().map(text).collect::<PyResult<Vec<String>>>()?;
                if tracker.is_complete() {
                    all.finish_study(study, &tracker.into_cells()).map_err(error::study)?;
                } else {
                    lock(&self.open).insert(study, tracker);
                }
                Ok((jobs, warnings))
            })
        })
    }

    /// Takes the answer to a job, stores it in the cache, and finishes the study if it was the last one. Returns
    /// the label of the cell, and why it failed if it did.
    fn answer(
        &self,
        py: Python<'_>,
        study: usize,
        job: &str,
        answer: &str,
    ) -> PyResult<(String, Option<String>)> {
        py.detach(|| {
            let job: Job = serde_json::from_str(job)
                .map_err(|e| error::StudyError::new_err(format!("not a job: {e}")))?;
            let mut open = lock(&self.open);
            let tracker = open
                .get_mut(&study)
                .ok_or_else(|| error::StudyError::new_err("the answer is of another study"))?;
            let arrival = tracker.answer(&job, answer, Some(&self.cache)).map_err(error::study)?;
            let complete = if arrival.complete { open.remove(&study) } else { None };
            // `jobs` takes the two locks in the other order.
            drop(open);
            if let Some(tracker) = complete {
                self.all.with(|all| all.finish_study(study, &tracker.into_cells()).map_err(error::study))?;
            }
            Ok((job.label, arrival.failure))
        })
    }

    /// Runs all cells that are not in the cache, on all processors. `progress` and `warn` as in `Study.run`.
    #[pyo3(signature = (jobs=0, progress=None, warn=None))]
    fn run(
        &self,
        py: Python<'_>,
        jobs: usize,
        progress: Option<Py<PyAny>>,
        warn: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let stop = AtomicBool::new(false);
        let halt = || stop.store(true, Ordering::Relaxed);
        progress::with_progress(py, progress.as_ref(), warn.as_ref(), halt, |sender| {
            let options = RunOptions { jobs, cache: Some(&self.cache), stop: Some(&stop), progress: sender };
            self.all.with(|all| all.run(&options).map(drop).map_err(error::study))
        })?
    }

    /// Writes the report; `render` draws a specification into a file.
    #[pyo3(signature = (render=None))]
    fn report(&self, py: Python<'_>, render: Option<Py<PyAny>>) -> PyResult<Reproduced> {
        let renderer = render.map(Renderer);
        py.detach(|| {
            let all = self.all.take()?;
            let folder = all.folder().to_owned();
            let renderer = renderer.as_ref().map(|r| r as &dyn FigureRenderer);
            Ok(Reproduced {
                book: all.report(renderer, &mut progress::print_line).map_err(error::output)?,
                folder,
            })
        })
    }
}

/// The results of all studies.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Reproduced {
    book: Book,
    folder: PathBuf,
}

#[pymethods]
impl Reproduced {
    /// The results directory.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// One row per claim and reading.
    fn claims(&self) -> PyResult<Table> {
        Table::new(&self.book.claims())
    }

    /// Every verdict, as JSON: `summary.json`.
    fn summary_json(&self) -> String {
        self.book.summary().to_string()
    }

    /// Studies that could not be run, and why.
    fn refused(&self) -> Vec<(String, String)> {
        self.book.refused()
    }

    /// The numbers of verdicts and every claim that does not hold, as text.
    fn text(&self) -> String {
        shown(&self.book)
    }
}
