//! A study whose cells run elsewhere, as messages, and return one by one in any order.

use crate::cache::{Cache, Entry};
use crate::error::StudyError;
use crate::observed::Observed;
use crate::planned::Plan;
use crate::run::{Cells, Job, accept, jobs, not_cached};
use crate::runner::Failure;
use std::collections::BTreeMap;

/// The outstanding and the finished cells of a study.
#[derive(Clone, Debug, Default)]
pub struct CellTracker {
    observed: Vec<Option<Observed>>,
    failed: BTreeMap<usize, Failure>,
    cached: usize,
    /// Jobs without an answer, by cell number.
    out: BTreeMap<usize, Job>,
}

/// What an answer changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Whether the study now has all its cells.
    pub complete: bool,
    /// Why the cell failed, in one line that names it.
    pub failure: Option<String>,
}

impl CellTracker {
    /// The cells that are not in the cache, as jobs whose labels begin with `name`, so that no two studies hand out
    /// the same message; and warnings about the cache.
    #[must_use]
    pub fn open(plan: &Plan, name: &str, cache: Option<&Cache>) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        if cache.is_some() {
            warnings.extend(not_cached(plan));
        }
        let mut tracker = Self::default();
        for mut job in jobs(plan) {
            let stored = cache.filter(|_| job.cached).map(|c| c.load(&job.engine, &job.key));
            let found = match stored {
                Some(Entry::Found(observed)) => Some(*observed),
                Some(Entry::Damaged(why)) => {
                    warnings.push(why);
                    None
                }
                Some(Entry::Absent) | None => None,
            };
            tracker.cached += usize::from(found.is_some());
            if found.is_none() {
                job.label = format!("{name}: {}", job.label);
                tracker.out.insert(job.number, job);
            }
            tracker.observed.push(found);
        }
        (tracker, warnings)
    }

    /// The jobs to run.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.out.values()
    }

    /// Whether no cell is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes the answer to a job, and caches it if allowed.
    ///
    /// # Errors
    /// If the answer is damaged or was not requested, or the cache cannot be written.
    pub fn answer(&mut self, job: &Job, text: &str, cache: Option<&Cache>) -> Result<Arrival, StudyError> {
        if self.out.get(&job.number) != Some(job) {
            return Err(StudyError::NotRequested { label: job.label.clone() });
        }
        let wrong = |source| StudyError::Answer { label: job.label.clone(), source };
        let mut failure = None;
        match accept(job, text).map_err(wrong)? {
            Ok(observed) => {
                if let Some(cache) = cache.filter(|_| job.cached) {
                    cache.store(&job.engine, &job.key, &observed)?;
                }
                self.observed[job.number] = Some(observed);
            }
            Err(f) => {
                failure = Some(format!("cell {} (seed {}) failed: {}", job.label, job.seed, f.message));
                self.failed.insert(job.number, f);
            }
        }
        self.out.remove(&job.number);
        Ok(Arrival { complete: self.is_complete(), failure })
    }

    /// The finished cells.
    #[must_use]
    pub fn into_cells(self) -> Cells {
        let ran = self.observed.len() - self.out.len() - self.cached;
        let interrupted = !self.is_complete();
        Cells { observed: self.observed, failed: self.failed, cached: self.cached, ran, interrupted }
    }
}
