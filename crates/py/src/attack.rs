//! A search for the case in which a control does worst.

use crate::control::UserControls;
use crate::error;
use crate::progress::{self, ProgressSender};
use crate::study::Runner;
use pyo3::prelude::*;
use skyhaul_lab::LabError;
use skyhaul_lab::attack::{BoundsSource, Request, SearchObserver, SearchResult, hunt};
use skyhaul_study::run::Progress as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::thread::available_parallelism;

/// Searches, and writes the folder. `bounds` is the path of a file, `bounds_text` the text of one; `jobs` 0 means one
/// per processor. `progress` is called with what is spent of the budget (runs or seconds), the budget, and a text.
#[pyfunction]
#[pyo3(signature = (control, goal, budget, bounds=None, bounds_text=None, seed=1, jobs=0, out=None, controls=vec![], progress=None))]
#[expect(clippy::too_many_arguments, reason = "they arrive by name")]
pub(crate) fn attack(
    py: Python<'_>,
    control: String,
    goal: &str,
    budget: &str,
    bounds: Option<PathBuf>,
    bounds_text: Option<String>,
    seed: u64,
    jobs: usize,
    out: Option<PathBuf>,
    controls: UserControls,
    progress: Option<Py<PyAny>>,
) -> PyResult<Found> {
    let parsed = |e: skyhaul_lab::error::AttackError| error::lab(e.into());
    let runner = Runner::new(py, &controls)?;
    let request = Request {
        control,
        goal: goal.parse().map_err(parsed)?,
        budget: budget.parse().map_err(parsed)?,
        bounds: match (bounds, bounds_text) {
            (Some(file), _) => BoundsSource::File(file),
            (None, Some(text)) => BoundsSource::Text(text),
            (None, None) => BoundsSource::BuiltIn,
        },
        seed,
        jobs: if jobs == 0 { available_parallelism().map_or(1, usize::from) } else { jobs },
        out,
        controls: runner.controls().clone(),
    };
    let own = !controls.is_empty();
    let folder = request.folder();
    let found = progress::with_progress(
        py,
        progress.as_ref(),
        None,
        || runner.stop(),
        |sender| hunt(&request, &Observer { sender, runner: &runner, own }),
    )?;
    match found {
        Ok(found) => Ok(Found { found, folder }),
        Err(e @ (LabError::Write { .. } | LabError::Results { .. })) => Err(error::output(e)),
        Err(e) => Err(error::lab(e)),
    }
}

/// Passes progress on, and holds the interpreter's lock around runs that call Python.
struct Observer<'a> {
    sender: &'a ProgressSender,
    runner: &'a Runner,
    /// Whether runs call Python.
    own: bool,
}

impl SearchObserver for Observer<'_> {
    fn case(&self, spent: u64, budget: u64, cases: usize, worst: Option<f64>) {
        let worst = worst.map_or_else(String::new, |w| format!(", worst {w:.3}"));
        self.sender.cell(spent as usize, budget as usize, &format!("{cases} cases{worst}"));
    }
    fn around(&self, run: &mut dyn FnMut()) {
        if self.own { self.runner.hold(run) } else { run() }
    }
    fn stopped(&self) -> bool {
        self.runner.flag().load(Ordering::Relaxed)
    }
}

/// What a search found.
#[pyclass(frozen, module = "skyhaul._core")]
#[derive(Debug)]
pub(crate) struct Found {
    found: SearchResult,
    folder: PathBuf,
}

#[pymethods]
impl Found {
    /// The results directory.
    #[getter]
    fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// `report.json`.
    fn summary_json(&self) -> String {
        self.found.summary().to_string()
    }

    /// `report.txt`.
    fn text(&self) -> String {
        self.found.text()
    }
}
