//! Evaluates cases on several threads, within the budget.

use crate::attack::budget::Budget;
use crate::attack::journal::Journal;
use crate::attack::observer::SearchObserver;
use crate::attack::point::Point;
use crate::attack::search::Evaluate;
use crate::attack::setup::{Outcome, TestSetup};
use crate::clock::Stopwatch;
use crate::error::LabError;
use crate::run;
use crate::workers;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Threads that run cases.
pub(super) struct WorkerPool<'a> {
    pub(super) setup: &'a TestSetup,
    pub(super) jobs: usize,
    pub(super) watch: &'a dyn SearchObserver,
    budget: Budget,
    clock: Stopwatch,
    journal: Option<&'a Journal>,
    known: BTreeMap<String, Outcome>,
    progress: Mutex<Progress>,
}

/// The finished cases of the search: their number, and the worst value.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    cases: usize,
    worst: Option<f64>,
}

impl<'a> WorkerPool<'a> {
    pub(super) fn new(
        setup: &'a TestSetup,
        jobs: usize,
        budget: Budget,
        journal: Option<&'a Journal>,
        known: BTreeMap<String, Outcome>,
        watch: &'a dyn SearchObserver,
    ) -> Self {
        let progress = Mutex::default();
        Self { setup, jobs, watch, budget, clock: Stopwatch::start(), journal, known, progress }
    }

    /// Runs cases with seeds; `None` for those that were stopped. `allowed` says whether one may still begin.
    pub(super) fn run(
        &self,
        all: &[(Point, u64)],
        allowed: &(dyn Fn() -> bool + Sync),
        done: &(dyn Fn(usize, &Outcome) -> Result<(), LabError> + Sync),
    ) -> Result<Vec<Option<Outcome>>, LabError> {
        let stop = Stopped(self.watch);
        let failed = AtomicBool::new(false);
        let more = || !self.watch.stopped() && !failed.load(Ordering::Relaxed) && allowed();
        let case = |i: usize| {
            let (point, seed) = &all[i];
            let mut outcome = None;
            self.watch.around(&mut || outcome = self.setup.run(point, *seed, &stop));
            let outcome = outcome?;
            let noted = done(i, &outcome);
            failed.fetch_or(noted.is_err(), Ordering::Relaxed);
            Some(noted.map(|()| outcome))
        };
        workers::share(all.len(), self.jobs, &more, &case).into_iter().map(Option::transpose).collect()
    }

    /// Reports a finished case of the search to the observer.
    fn report(&self, outcome: &Outcome) {
        let goal = self.setup.goal;
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.cases += 1;
        let is_worse = |v: f64| progress.worst.is_none_or(|w| goal.cost(v) < goal.cost(w));
        if let Some(value) = outcome.value().filter(|v| is_worse(*v)) {
            progress.worst = Some(value);
        }
        let runs = (progress.cases * goal.roles().len()) as u64;
        let (spent, budget) = match self.budget {
            Budget::Runs(most) => (runs, most),
            Budget::Time(most) => (self.clock.elapsed().as_secs(), most.as_secs().max(1)),
        };
        self.watch.case(spent.min(budget), budget, progress.cases, progress.worst);
    }
}

impl Evaluate for WorkerPool<'_> {
    fn evaluate(&self, cases: &[Point]) -> Result<Vec<Option<Outcome>>, LabError> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; cases.len()];
        let finished = self.progress.lock().unwrap_or_else(PoisonError::into_inner).cases;
        // Known cases count too: a search that goes on ends where one without a break ends.
        let allowed = match self.budget {
            Budget::Runs(most) => (most as usize / self.setup.goal.roles().len()).saturating_sub(finished),
            Budget::Time(_) => usize::MAX,
        };
        let mut missing = Vec::new();
        for (i, case) in cases.iter().enumerate().take(allowed) {
            match self.known.get(&case.key()) {
                Some(outcome) => {
                    self.report(outcome);
                    outcomes[i] = Some(outcome.clone());
                }
                None => missing.push(i),
            }
        }
        let todo: Vec<(Point, u64)> = missing.iter().map(|i| (cases[*i].clone(), self.setup.seed)).collect();
        let in_time = || match self.budget {
            Budget::Time(most) => self.clock.elapsed() < most,
            Budget::Runs(_) => true,
        };
        let done = |i: usize, outcome: &Outcome| {
            self.report(outcome);
            self.journal.map_or(Ok(()), |j| j.note(&todo[i].0, outcome))
        };
        for (i, outcome) in missing.into_iter().zip(self.run(&todo, &in_time, &done)?) {
            outcomes[i] = outcome;
        }
        Ok(outcomes)
    }
}

/// A request to stop, for single runs.
struct Stopped<'a>(&'a dyn SearchObserver);

impl run::RunObserver for Stopped<'_> {
    fn stopped(&self) -> bool {
        self.0.stopped()
    }
}
