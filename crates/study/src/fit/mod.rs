//! The search over readings (`skyhaul study fit`): which of the readings that the papers allow gives the numbers that
//! they print?
//!
//! ```text
//! [fit] ──Spec──▶ Bench ◀──search── all readings, or one option at a time from several starts
//!                   │
//!                   └──▶ finalists, and the named readings ──▶ Bench with fresh seeds ──▶ Fitted
//! ```
//! The misfit of a reading is the root of the weighted mean of ln²(ours / printed). The cells are ordinary cells in the
//! ordinary cache: a search that was stopped continues where it was. A search chooses by its seeds, so that the chosen
//! readings look better than they are; what is reported is measured with seeds that the search has not used.

mod bench;
mod outcome;
mod search;
mod spec;

pub use outcome::{Fitted, NumberRow, OptionRow, ReadingRow, TestRow, ValueRow};
pub use search::Course;

use crate::error::StudyError;
use crate::model::{Fit, StudyFile};
use crate::plan::plan;
use crate::planned::Plan;
use crate::run::RunOptions;
use crate::runner::CellRunner;
use bench::{Bench, Step};
use spec::{Choice, Spec};
use std::collections::BTreeSet;

/// How a search ended.
#[derive(Clone, Debug)]
pub enum Ending {
    /// It is complete.
    Complete(Box<Fitted>),
    /// The caller asked to stop; finished cells are in the cache.
    Stopped {
        /// Cells of the search that were finished before the last step.
        cells: usize,
    },
}

/// Searches the readings of a study.
///
/// # Errors
/// If the study has no search or an invalid one, or the cache cannot be written.
pub fn fit<R: CellRunner>(
    runner: &R,
    file: StudyFile,
    options: &RunOptions<'_>,
) -> Result<Ending, StudyError> {
    let (mut file, fit) = reduced(file)?;
    let budget = file.max_cells.unwrap_or(fit.budget);
    file.study.seeds.count = fit.seeds.unwrap_or(file.study.seeds.count);
    let mut fresh = file.clone();
    fresh.study.seeds.first = file.study.seeds.first.wrapping_add(file.study.seeds.count.into());
    fresh.study.seeds.count = fit.fresh;
    let planned = unlimited(runner, file)?;
    let spec = Spec::new(&planned.file, &fit, &planned.metrics)?;
    let seeds = u64::from(planned.file.study.seeds.count);
    let report = outcome::Frame::new(&planned, &fit, &spec, budget);
    let mut bench = Bench::new(runner, options, &spec, planned, budget);
    accepts(&mut bench, &spec)?;
    let Some(course) = search::search(&mut bench, &spec, fit.seed, (budget, seeds))? else {
        return Ok(Ending::Stopped { cells: bench.cells() });
    };
    let chosen = finalists(&bench, &spec, fit.finalists);
    let mut again = Bench::new(runner, options, &spec, unlimited(runner, fresh)?, u64::MAX);
    if again.measure(&chosen)? != Step::Done {
        return Ok(Ending::Stopped { cells: bench.cells() });
    }
    Ok(Ending::Complete(Box::new(report.fill(course, &bench, &again, &chosen))))
}

/// The study without what a search does not use, and its search.
fn reduced(mut file: StudyFile) -> Result<(StudyFile, Fit), StudyError> {
    let Some(fit) = file.study.fit.clone() else {
        let message = "this study has no search over readings";
        return Err(file.refuse("fit", message, &["[fit] with [[fit.option]] and [[fit.printed]]"]));
    };
    for (key, count) in [("fit.seeds", fit.seeds), ("fit.fresh", Some(fit.fresh))] {
        if count == Some(0) {
            return Err(file.refuse(key, "without seeds there is nothing to report", &["1 and more"]));
        }
    }
    let study = &mut file.study;
    study.reading.clear();
    study.claim.clear();
    study.figure.clear();
    study.table.clear();
    study.overview.clear();
    Ok((file, fit))
}

/// Plans a study whose number of cells is limited by the budget of the search.
fn unlimited<R: CellRunner>(runner: &R, mut file: StudyFile) -> Result<Plan, StudyError> {
    file.max_cells = Some(u64::MAX);
    plan(runner, file)
}

/// An error if the scenario refuses the first values together, or a value in every reading that is tried with it: with the
/// first values of the other options, with one of these changed, and in each named reading.
fn accepts<R: CellRunner>(bench: &mut Bench<'_, R>, spec: &Spec) -> Result<(), StudyError> {
    let first: Choice = vec![0; spec.options.len()];
    bench.scenarios(&first)?;
    for (_, choice) in &spec.known {
        bench.scenarios(choice)?;
    }
    let with = |choice: &Choice, o: usize, i: usize| {
        let mut choice = choice.clone();
        choice[o] = i;
        choice
    };
    for (o, option) in spec.options.iter().enumerate() {
        for i in 1..option.axis.values.len() {
            let alone = with(&first, o, i);
            let Err(why) = bench.scenarios(&alone) else { continue };
            let others = spec.options.iter().enumerate().filter(|(p, _)| *p != o);
            let pairs = others.flat_map(|(p, other)| (1..other.axis.values.len()).map(move |j| (p, j)));
            let mut others_changed: Vec<Choice> = pairs.map(|(p, j)| with(&alone, p, j)).collect();
            others_changed.extend(spec.known.iter().map(|(_, choice)| with(choice, o, i)));
            if !others_changed.iter().any(|choice| bench.scenarios(choice).is_ok()) {
                return Err(never(bench.file(), &format!("fit.option[{o}]"), &option.axis.label(i), why));
            }
        }
    }
    Ok(())
}

/// The error about a value that the scenario never accepts, at the value's option.
fn never(file: &StudyFile, option: &str, label: &str, why: StudyError) -> StudyError {
    match why {
        StudyError::Invalid { key, message, .. } if !key.starts_with(option) => {
            let message = format!("`{label}` is refused, whatever one other option is: {message}");
            file.refuse(&format!("{option}.values"), message, &[])
        }
        why => why,
    }
}

/// The best readings of each paper and of all papers together, and the named ones. Of readings that do not differ at any
/// printed number, one is chosen.
fn finalists<R: CellRunner>(bench: &Bench<'_, R>, spec: &Spec, each: usize) -> Vec<Choice> {
    let mut chosen: Vec<Choice> = spec.known.iter().map(|(_, choice)| choice.clone()).collect();
    chosen.push(vec![0; spec.options.len()]);
    for target in std::iter::once(None).chain((0..spec.papers.len()).map(Some)) {
        let mut different = BTreeSet::new();
        let best = ranked(bench, target)
            .into_iter()
            .filter(|(_, choice)| different.insert(key(bench, spec, target, choice)));
        chosen.extend(best.take(each).map(|(_, choice)| choice.clone()));
    }
    // A named reading that the search has not reached is measured with fresh seeds only.
    let mut once = BTreeSet::new();
    chosen.retain(|choice| {
        let known = key(bench, spec, None, choice);
        once.insert((known.is_empty().then(|| choice.clone()), known))
    });
    chosen
}

/// The measured readings by misfit; of equals, the one with more first values comes first.
fn ranked<'b, R: CellRunner>(bench: &'b Bench<'_, R>, target: Option<usize>) -> Vec<(f64, &'b Choice)> {
    let counts = |paper: usize| target.is_none_or(|t| t == paper);
    let changed = |choice: &Choice| choice.iter().filter(|i| **i > 0).count();
    let mut all: Vec<(f64, &Choice)> = bench.tried.keys().map(|c| (bench.misfit(c, &counts), c)).collect();
    all.retain(|(misfit, _)| misfit.is_finite());
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| changed(a.1).cmp(&changed(b.1))));
    all
}

/// The metrics of a reading at the printed numbers of a paper (`None`: of all papers), as bits: readings with equal keys do
/// not differ there.
fn key<R: CellRunner>(bench: &Bench<'_, R>, spec: &Spec, target: Option<usize>, choice: &Choice) -> Vec<u64> {
    let values = bench.values(choice).unwrap_or_default().iter().zip(&spec.numbers);
    values.filter(|(_, n)| target.is_none_or(|t| t == n.paper)).map(|(v, _)| v.mean.to_bits()).collect()
}
