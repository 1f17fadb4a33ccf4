//! Runs the cells of several studies together on all cores.
//!
//! All cells wait in one queue, study by study. A study is handed over as soon as its last cell has finished, so that
//! few studies are in memory at a time. Results are those of [`crate::run::run`].

use crate::cache::Entry;
use crate::error::StudyError;
use crate::observed::Observed;
use crate::planned::{Cell, Plan, Prepared};
use crate::run::{Cells, RunOptions, attempt, not_cached};
use crate::runner::{CellRunner, Failure};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Totals of a run over several studies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All cells.
    pub cells: usize,
    /// Cells that were in the cache or ran, including failed ones.
    pub done: usize,
    /// Whether it was stopped before all cells had finished.
    pub interrupted: bool,
}

/// The cells of a study so far.
#[derive(Default)]
struct CellResults {
    observed: BTreeMap<usize, Observed>,
    failed: BTreeMap<usize, Failure>,
    cached: usize,
}

/// A study, and the data that its cells need.
struct StudyWork<'a> {
    plan: &'a Plan,
    cells: Vec<Cell>,
    runs: Vec<&'a Prepared>,
    results: Mutex<CellResults>,
}

/// Runs the cells that are not in the cache. Once a study is complete, `finished` gets its position in `plans` and its
/// cells, on any thread.
///
/// # Errors
/// If the cache cannot be written, or the error of `finished`. Finished cells stay in the cache.
///
/// # Panics
/// If `finished` does.
pub fn run_all<R: CellRunner>(
    runner: &R,
    plans: &[Plan],
    options: &RunOptions<'_>,
    finished: &(dyn Fn(usize, Cells) -> Result<(), StudyError> + Sync),
) -> Result<Totals, StudyError> {
    let work = |plan| {
        let results = Mutex::new(CellResults::default());
        StudyWork { plan, cells: Plan::cells(plan), runs: Plan::runs(plan), results }
    };
    let studies: Vec<StudyWork<'_>> = plans.iter().map(work).collect();
    let queue: Vec<(usize, usize)> =
        studies.iter().enumerate().flat_map(|(s, w)| (0..w.cells.len()).map(move |n| (s, n))).collect();
    // Only for the progress shown: whether an entry of the cache is damaged is known only when it is read.
    let stored: Vec<bool> = queue.iter().map(|(s, n)| studies[*s].is_stored(*n, options)).collect();
    let cached = stored.iter().filter(|s| **s).count();
    plans.iter().flat_map(not_cached).for_each(|why| options.progress.warn(&why));
    options.progress.begin(queue.len(), cached);

    let stopped = || options.stop.is_some_and(|s| s.load(Ordering::Relaxed));
    let (next, done, handed_over) = (AtomicUsize::new(0), AtomicUsize::new(cached), AtomicUsize::new(0));
    let broken: Mutex<Option<StudyError>> = Mutex::new(None);
    let halt = AtomicBool::new(false);
    let conclude = |study: usize, cells: Cells| {
        handed_over.fetch_add(1, Ordering::Relaxed);
        finished(study, cells)
    };
    let one = |i: usize| -> Result<(), StudyError> {
        let (study, number) = queue[i];
        let work = &studies[study];
        let Some(complete) = work.cell(runner, number, options)? else { return Ok(()) };
        if !stored[i] {
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let label = format!("{}: {}", work.plan.file.stem(), work.label(number));
            options.progress.cell(done, queue.len(), &label);
        }
        if complete { conclude(study, work.take()) } else { Ok(()) }
    };
    let fail = |e: StudyError| {
        halt.store(true, Ordering::Relaxed);
        broken.lock().expect("no thread panics while it holds the lock").get_or_insert(e);
    };
    let thread = || {
        while !stopped() && !halt.load(Ordering::Relaxed) {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= queue.len() {
                break;
            }
            one(i).unwrap_or_else(fail);
        }
    };
    for (study, work) in studies.iter().enumerate().filter(|(_, w)| w.cells.is_empty()) {
        conclude(study, work.take())?;
    }
    let available = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if options.jobs == 0 { available } else { options.jobs };
    std::thread::scope(|s| {
        for _ in 0..threads.clamp(1, queue.len().max(1)) {
            s.spawn(thread);
        }
    });
    options.progress.end();
    if let Some(e) = broken.into_inner().expect("all threads have ended") {
        return Err(e);
    }
    Ok(Totals {
        cells: queue.len(),
        done: done.into_inner(),
        interrupted: handed_over.into_inner() < plans.len(),
    })
}

impl StudyWork<'_> {
    fn label(&self, number: usize) -> &str {
        &self.runs[self.cells[number].run].label
    }

    fn key(&self, number: usize) -> String {
        let cell = self.cells[number];
        self.plan.key(self.runs[cell.run], cell.seed)
    }

    /// Whether its result may be cached.
    fn is_cacheable(&self, number: usize) -> bool {
        self.runs[self.cells[number].run].version.is_ok()
    }

    fn is_stored(&self, number: usize, options: &RunOptions<'_>) -> bool {
        self.is_cacheable(number) && options.cache.is_some_and(|c| c.path(&self.key(number)).is_file())
    }

    /// Gets a cell from the cache or runs it. Returns whether it was the last cell of the study; `None` if stopped.
    fn cell<R: CellRunner>(
        &self,
        runner: &R,
        number: usize,
        options: &RunOptions<'_>,
    ) -> Result<Option<bool>, StudyError> {
        let (cell, key, engine) = (self.cells[number], self.key(number), &self.plan.engine);
        let cache = options.cache.filter(|_| self.is_cacheable(number));
        let stored = match cache.map_or(Entry::Absent, |c| c.load(engine, &key)) {
            Entry::Found(observed) => Some(*observed),
            Entry::Absent => None,
            Entry::Damaged(why) => {
                options.progress.warn(&why);
                None
            }
        };
        let cached = stored.is_some();
        let result = stored.map_or_else(|| attempt(runner, &self.runs[cell.run].scenario, cell.seed), Ok);
        // A cell that ended because of the request to stop did not fail.
        if result.is_err() && options.stop.is_some_and(|s| s.load(Ordering::Relaxed)) {
            return Ok(None);
        }
        if let (Some(cache), Ok(o), false) = (cache, &result, cached) {
            cache.store(engine, &key, o)?;
        }
        if let Err(failure) = &result {
            let (study, label, why) = (self.plan.file.stem(), self.label(number), &failure.message);
            options.progress.warn(&format!("{study}: cell {label} (seed {}) failed: {why}", cell.seed));
        }
        let mut g = self.results.lock().expect("no thread panics while it holds the lock");
        g.cached += usize::from(cached);
        match result {
            Ok(o) => drop(g.observed.insert(number, o)),
            Err(failure) => drop(g.failed.insert(number, failure)),
        }
        Ok(Some(g.observed.len() + g.failed.len() == self.cells.len()))
    }

    /// Takes the gathered cells.
    fn take(&self) -> Cells {
        let g = std::mem::take(&mut *self.results.lock().expect("no thread panics while it holds the lock"));
        let CellResults { mut observed, failed, cached } = g;
        let ran = self.cells.len() - cached;
        let observed = (0..self.cells.len()).map(|n| observed.remove(&n)).collect();
        Cells { observed, failed, cached, ran, interrupted: false }
    }
}
