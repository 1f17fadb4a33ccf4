//! A whole search: bounds, search, fresh seeds, what matters, and files.

use crate::attack::budget::Budget;
use crate::attack::goal::{Goal, Role};
use crate::attack::journal::{self, Head, Journal};
use crate::attack::observer::SearchObserver;
use crate::attack::point::Point;
use crate::attack::pool::WorkerPool;
use crate::attack::report::{self, FailedCase, NeighbourCase, SearchResult, Worst};
use crate::attack::search::{Cases, search, swarm};
use crate::attack::setup::{Outcome, TestSetup};
use crate::attack::space::{BoundsSource, Space};
use crate::control;
use crate::engine::simulator;
use crate::error::{AttackError, LabError};
use crate::lease::Lease;
use crate::results::{MANIFEST, text};
use skyhaul_cc::Controls;
use skyhaul_study::runner::CellRunner as _;
use skyhaul_study::stats::{Estimate, estimate};
use std::path::{Path, PathBuf};

/// Number of cases of the search that are run with further seeds to choose the worst.
const FINALISTS: usize = 4;
/// Further seeds for the choice among the finalists, besides that of the search.
const CHOICE: u64 = 3;
/// Seeds of the reported mean; neither the search nor the choice has seen them.
const FRESH: u64 = 10;
/// Largest number of cases with trouble that get a scenario file.
const FILES: usize = 10;

/// What to search, and where the results go.
#[derive(Clone, Debug)]
pub struct Request {
    /// The control: a name, or an inline table such as `{ name = "newreno", max-burst = 4 }`.
    pub control: String,
    /// What "worst" means.
    pub goal: Goal,
    /// The limit of the search.
    pub budget: Budget,
    /// The bounds.
    pub bounds: BoundsSource,
    /// Seed of the search and of its runs.
    pub seed: u64,
    /// Number of threads.
    pub jobs: usize,
    /// The folder; by default `results/attack-CONTROL-GOAL`, with the options of the control behind its name.
    pub out: Option<PathBuf>,
    /// User-defined controls, which the search may name as `user:NAME`.
    pub controls: Controls,
}

impl Request {
    /// The folder of the results.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let usual = || {
            let control = control::slug(&self.control);
            Path::new("results").join(format!("attack-{control}-{}", self.goal.name()))
        };
        self.out.clone().unwrap_or_else(usual)
    }
}

/// Searches, and writes the folder: the worst case as scenario files, a report, the journal.
///
/// # Errors
/// If the request is refused before anything runs; if no case can be measured; if files cannot be written; or if the
/// search was stopped, when what was found is written and the same request continues.
pub fn hunt(request: &Request, watch: &dyn SearchObserver) -> Result<SearchResult, LabError> {
    let goal = request.goal;
    let space = Space::read(&request.bounds, goal)?;
    let setup =
        TestSetup::new(&request.control, goal, space.duration, request.seed, request.controls.clone())?;
    let middle = space.middle();
    setup.check(&middle)?;
    space.moved(&middle, "neighbours").iter().try_for_each(|other| setup.check(other))?;
    if let Budget::Runs(runs) = request.budget {
        let least = (swarm(&space) * goal.roles().len()) as u64;
        if runs < least {
            return Err(AttackError::TooFew { runs, least }.into());
        }
    }
    let folder = request.folder();
    let lease = Lease::take(&folder)?;
    if folder.join(MANIFEST).exists() {
        return Err(AttackError::Other { folder, what: "command".into() }.into());
    }
    let head = Head {
        control: setup.control.clone(),
        goal: goal.name().into(),
        bounds: space.identity(),
        seed: request.seed,
        engine: simulator().engine(),
    };
    let (journal, known) = Journal::open(&folder, &head)?;
    let pool = WorkerPool::new(&setup, request.jobs, request.budget, Some(&journal), known, watch);
    let cases = search(&space, goal, request.seed, &pool);
    watch.confirm();
    let found = cases.and_then(|cases| conclude(&space, &pool, &cases));
    watch.end();
    let found = found?;
    let written = write(&folder, &setup, &found)?;
    if watch.stopped() {
        let kept = format!(
            "{} cases done, the worst so far in {}",
            found.cases,
            folder.join(report::WORST).display()
        );
        return Err(AttackError::Stopped { kept }.into());
    }
    lease.finish(&written)?;
    Ok(found)
}

/// Chooses the worst case with further seeds, measures it with fresh ones, and changes its keys one by one.
fn conclude(space: &Space, pool: &WorkerPool<'_>, cases: &Cases) -> Result<SearchResult, LabError> {
    let (setup, goal) = (pool.setup, pool.setup.goal);
    let mut measured: Vec<(&Point, f64)> =
        cases.values().filter_map(|(point, outcome)| Some((point, outcome.value()?))).collect();
    // `cases` is in the order of the keys, which a stable sort keeps: ties do not depend on threads.
    measured.sort_by(|a, b| goal.cost(a.1).total_cmp(&goal.cost(b.1)));
    let finalists: Vec<&Point> = measured.iter().take(FINALISTS).map(|(point, _)| *point).collect();
    let Some(first) = finalists.first() else {
        if pool.watch.stopped() {
            return Err(AttackError::Stopped { kept: "nothing was found yet".into() }.into());
        }
        let why = |outcome: &Outcome| match outcome {
            Outcome::Failed { why } => why.clone(),
            _ => "not even the comparison delivers anything".into(),
        };
        let first = cases.values().next().map_or_else(|| "the budget is too short".into(), |c| why(&c.1));
        return Err(AttackError::Nothing { first }.into());
    };
    // A seed in a file is an integer of TOML, of 63 bits without its sign.
    let seeds =
        |from: u64, n: u64| (0..n).map(move |i| setup.seed.wrapping_add(from + i) & (i64::MAX as u64));
    let mut worst = (*first).clone();
    let mut least = f64::INFINITY;
    for point in finalists {
        let values = values(pool, point, seeds(0, 1 + CHOICE))?;
        let cost = goal.cost(estimate(&values).mean);
        if !values.is_empty() && cost < least {
            (worst, least) = (point.clone(), cost);
        }
    }
    let fresh = values(pool, &worst, seeds(1 + CHOICE, FRESH))?;
    let of = |point: &Point| cases.get(&point.key()).map(|(_, outcome)| outcome.clone());
    let Some(Outcome::Value { value, runs }) = of(&worst) else { unreachable!("finalists have values") };
    let mut moves: Vec<(&'static str, Point)> = Vec::new();
    for key in &space.varied {
        moves.extend(space.moved(&worst, key).into_iter().map(|point| (*key, point)));
    }
    let todo: Vec<(Point, u64)> = moves.iter().map(|(_, point)| (point.clone(), setup.seed)).collect();
    let outcomes = pool.run(&todo, &|| true, &|_, _| Ok(()))?;
    let moved = moves.iter().zip(&outcomes).filter_map(|((key, point), outcome)| {
        let value = outcome.as_ref()?.value();
        Some(NeighbourCase { key, worst: worst.text(key), instead: point.text(key), value })
    });
    let moved = moved.collect();
    let trouble = cases.values().filter_map(|(point, outcome)| {
        let why = match outcome {
            Outcome::Failed { why } => why.clone(),
            silent if silent.is_silent() => report::SILENT.to_owned(),
            _ => return None,
        };
        Some(FailedCase { case: point.clone(), why })
    });
    Ok(SearchResult {
        control: setup.control.clone(),
        goal,
        seed: setup.seed,
        cases: cases.len(),
        runs: cases.len() * goal.roles().len(),
        worst: Worst { value, fresh: Some(estimate(&fresh)).filter(Estimate::is_valid), runs, case: worst },
        moved,
        trouble: trouble.collect(),
        varied: space.varied.clone(),
    })
}

/// The values of a case with several seeds; failures and runs that were stopped have none.
fn values(
    pool: &WorkerPool<'_>,
    point: &Point,
    seeds: impl Iterator<Item = u64>,
) -> Result<Vec<f64>, LabError> {
    let todo: Vec<(Point, u64)> = seeds.map(|seed| (point.clone(), seed)).collect();
    let outcomes = pool.run(&todo, &|| true, &|_, _| Ok(()))?;
    Ok(outcomes.iter().filter_map(|o| o.as_ref()?.value()).collect())
}

/// Writes the files of what was found.
fn write(folder: &Path, setup: &TestSetup, found: &SearchResult) -> Result<Vec<PathBuf>, LabError> {
    let mut written = vec![folder.join(journal::FILE)];
    let mut put = |name: &str, content: &str| -> Result<(), LabError> {
        let path = folder.join(name);
        text(&path, content)?;
        written.push(path);
        Ok(())
    };
    for role in setup.goal.roles() {
        put(role.file(), &setup.scenario(&found.worst.case, *role, setup.seed)?.to_toml())?;
    }
    for (i, trouble) in found.trouble.iter().take(FILES).enumerate() {
        put(
            &report::trouble_file(i),
            &setup.scenario(&trouble.case, Role::Candidate, setup.seed)?.to_toml(),
        )?;
    }
    put("report.txt", &found.text())?;
    put("report.json", &crate::results::json_text(&found.summary()))?;
    Ok(written)
}
