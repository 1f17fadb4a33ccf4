//! Runs the cells of a plan on all cores.
//!
//! The result of a cell does not depend on thread or time, and it is stored by its number, so that the outcome is the
//! same for any number of threads, after an interruption, and from the cache. A failed cell has no result and is not
//! cached; the others still run.

use crate::cache::{self, Cache, Entry};
use crate::error::{EntryError, StudyError};
use crate::key::cell_key;
use crate::observed::Observed;
use crate::planned::{Cell, Plan};
use crate::runner::{CellRunner, Failure, Problem};
use serde::{Deserialize, Serialize};
use skyhaul_scenario::Resolved;
use skyhaul_sim::caught;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Observer of a run's progress; called from several threads.
pub trait Progress: Sync {
    /// Before the first cell: the number of cells, and of those in the cache.
    fn begin(&self, total: usize, cached: usize) {
        let _ = (total, cached);
    }
    /// After each cell that ran: the number of finished cells.
    fn cell(&self, done: usize, total: usize, label: &str) {
        let _ = (done, total, label);
    }
    /// A warning to the user, in one line.
    fn warn(&self, message: &str) {
        let _ = message;
    }
    /// After the last cell.
    fn end(&self) {}
}

/// Reports nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// How to run.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Threads; 0: one per core.
    pub jobs: usize,
    /// The cache of finished cells, if any.
    pub cache: Option<&'a Cache>,
    /// Set to true (by Ctrl-C) to stop after the cells that are running.
    pub stop: Option<&'a AtomicBool>,
    /// The observer.
    pub progress: &'a dyn Progress,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        Self { jobs: 0, cache: None, stop: None, progress: &Silent }
    }
}

/// What the cells measured, by number.
#[derive(Clone, Debug)]
pub struct Cells {
    /// One entry per cell of [`Plan::cells`]; `None` if it did not run, or failed.
    pub observed: Vec<Option<Observed>>,
    /// The cells that failed, by number.
    pub failed: BTreeMap<usize, Failure>,
    /// How many came from the cache.
    pub cached: usize,
    /// How many ran, failed ones included.
    pub ran: usize,
    /// The run was stopped before all cells were done.
    pub interrupted: bool,
}

/// A cell as a message: for executors on other processes and machines.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Job {
    /// Number of the cell.
    pub number: usize,
    /// Engine that has to run it.
    pub engine: String,
    /// Key in the cache.
    pub key: String,
    /// Resolved scenario.
    pub scenario: String,
    /// Seed.
    pub seed: u64,
    /// Description.
    pub label: String,
    /// Whether its result may be cached.
    pub cached: bool,
}

/// The cells of a plan as jobs.
#[must_use]
pub fn jobs(plan: &Plan) -> Vec<Job> {
    let runs = plan.runs();
    let job = |(number, cell): (usize, Cell)| Job {
        number,
        engine: plan.engine.clone(),
        key: plan.key(runs[cell.run], cell.seed),
        scenario: runs[cell.run].text.clone(),
        seed: cell.seed,
        label: runs[cell.run].label.clone(),
        cached: runs[cell.run].version.is_ok(),
    };
    plan.cells().into_iter().enumerate().map(job).collect()
}

/// Runs a job anywhere; the answer is the text of a cache entry, or the reason why the cell failed: see [`accept`].
///
/// # Errors
/// If the job cannot be run here.
pub fn execute<R: CellRunner>(runner: &R, job: &Job) -> Result<String, JobError> {
    let engine = runner.engine();
    if engine != job.engine {
        return Err(JobError::OtherEngine { here: engine, planned: job.engine.clone() });
    }
    let scenario = runner.reread(&job.scenario)?;
    let version = runner.version(&scenario);
    if cell_key(&engine, &job.scenario, &version, job.seed) != job.key {
        return Err(JobError::OtherVersion);
    }
    Ok(match attempt(runner, &scenario, job.seed) {
        Ok(observed) => cache::encode(&engine, &job.key, &observed),
        Err(failure) => {
            let failed = Failed { failed: failure };
            serde_json::to_string(&failed)?
        }
    })
}

/// Why a job cannot be run here.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// The engine differs.
    #[error("this is engine {here}, but the study was planned with engine {planned}")]
    OtherEngine {
        /// The engine here.
        here: String,
        /// The engine of the plan.
        planned: String,
    },
    /// Its scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] Problem),
    /// The version of a part of the scenario differs, or the job was damaged.
    #[error(
        "a part of the scenario here, such as a control or a queue, is not the version that the study was planned with, or the job was damaged in transit"
    )]
    OtherVersion,
    /// The answer cannot be written.
    #[error(transparent)]
    Answer(#[from] serde_json::Error),
}

/// The answer of a cell that failed.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Failed {
    failed: Failure,
}

/// Parses the answer to a job: the measurements, or why the cell failed.
///
/// # Errors
/// If it is damaged or belongs to another cell.
pub fn accept(job: &Job, answer: &str) -> Result<Result<Observed, Failure>, EntryError> {
    if let Ok(Failed { failed }) = serde_json::from_str(answer) {
        return Ok(Err(failed));
    }
    cache::decode(answer, &job.engine, &job.key).map(Ok)
}

/// Runs one cell; a panic of the runner is a failure like any other.
pub(crate) fn attempt<R: CellRunner>(
    runner: &R,
    scenario: &Resolved,
    seed: u64,
) -> Result<Observed, Failure> {
    let result = caught(|| runner.run(scenario, seed));
    result.unwrap_or_else(|f| Err(Failure { message: f.message, detail: f.detail }))
}

/// Runs the cells of a plan that are not in the cache.
///
/// # Errors
/// If the cache cannot be written. Finished cells stay in it.
pub fn run<R: CellRunner>(runner: &R, plan: &Plan, options: &RunOptions<'_>) -> Result<Cells, StudyError> {
    let cells = plan.cells();
    let keys: Vec<String> = cell_keys(plan, &cells);
    let mut observed: Vec<Option<Observed>> = vec![None; cells.len()];
    let runs = plan.runs();
    let cacheable = |number: usize| runs[cells[number].run].version.is_ok();
    if let Some(cache) = options.cache {
        for (number, slot) in observed.iter_mut().enumerate().filter(|(number, _)| cacheable(*number)) {
            match cache.load(&plan.engine, &keys[number]) {
                Entry::Found(o) => *slot = Some(*o),
                Entry::Absent => {}
                Entry::Damaged(why) => options.progress.warn(&why),
            }
        }
        not_cached(plan).iter().for_each(|why| options.progress.warn(why));
    }
    let todo: Vec<usize> = (0..cells.len()).filter(|i| observed[*i].is_none()).collect();
    let cached = cells.len() - todo.len();
    options.progress.begin(cells.len(), cached);

    let stopped = || options.stop.is_some_and(|s| s.load(Ordering::Relaxed));
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(cached);
    let broken = AtomicBool::new(false);
    let finished = Mutex::new(Vec::with_capacity(todo.len()));
    let one = |number: usize| -> Result<Result<Observed, Failure>, StudyError> {
        let cell = cells[number];
        let result = attempt(runner, &runs[cell.run].scenario, cell.seed);
        if let (Some(cache), Ok(o), true) = (options.cache, &result, cacheable(number)) {
            cache.store(&plan.engine, &keys[number], o)?;
        }
        Ok(result)
    };
    let work = || {
        while !stopped() && !broken.load(Ordering::Relaxed) {
            let Some(&number) = todo.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            let result = one(number);
            let label = &runs[cells[number].run].label;
            match &result {
                // A cell that ended because of the request to stop did not fail.
                Ok(Err(_)) if stopped() => break,
                Ok(Err(failure)) => {
                    let message = &failure.message;
                    options
                        .progress
                        .warn(&format!("cell {label} (seed {}) failed: {message}", cells[number].seed));
                }
                Ok(Ok(_)) => {}
                Err(_) => broken.store(true, Ordering::Relaxed),
            }
            if result.is_ok() {
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                options.progress.cell(done, cells.len(), label);
            }
            finished.lock().expect("no thread panics while it holds the lock").push((number, result));
        }
    };
    let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if options.jobs == 0 { available } else { options.jobs }.min(todo.len());
    if threads > 1 {
        std::thread::scope(|s| {
            for _ in 0..threads {
                s.spawn(work);
            }
        });
    } else {
        // Without starting a thread, so that targets without threads run cells too.
        work();
    }
    options.progress.end();

    let mut finished = finished.into_inner().expect("all threads have ended");
    finished.sort_by_key(|(number, _)| *number);
    let ran = finished.len();
    let mut failed = BTreeMap::new();
    for (number, result) in finished {
        match result? {
            Ok(o) => observed[number] = Some(o),
            Err(failure) => drop(failed.insert(number, failure)),
        }
    }
    let interrupted = (0..cells.len()).any(|n| observed[n].is_none() && !failed.contains_key(&n));
    Ok(Cells { observed, failed, cached, ran, interrupted })
}

fn cell_keys(plan: &Plan, cells: &[Cell]) -> Vec<String> {
    let runs = plan.runs();
    cells.iter().map(|c| plan.key(runs[c.run], c.seed)).collect()
}

/// The cells that cannot be cached, one line per reason.
#[must_use]
pub fn not_cached(plan: &Plan) -> Vec<String> {
    let reasons: BTreeSet<String> =
        plan.scenarios.iter().filter_map(|p| Some(p.version.as_ref().err()?.to_string())).collect();
    reasons.into_iter().map(|why| format!("cells are not cached: {why}")).collect()
}
