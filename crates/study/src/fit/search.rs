//! The search: all readings if the budget allows, otherwise one option at a time from several starts.

use super::bench::{Bench, Step};
use super::spec::{Choice, Spec};
use crate::error::StudyError;
use crate::runner::CellRunner;
use skyhaul_base::Rng;

/// Largest number of readings of which all are tried, whatever the budget: more take minutes even without running a cell.
const GRID: u64 = 100_000;
/// The search ends after so many starts in a row without a new cell.
const IDLE: usize = 100;
/// Attempts to draw a random start that the scenario accepts.
const DRAWS: usize = 1000;

/// How a search went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// All readings were tried.
    Grid,
    /// Options were changed one at a time, from this number of starts.
    Descent {
        /// Starts that were begun.
        starts: usize,
        /// The budget ended the search.
        over_budget: bool,
    },
}

/// Searches; `None` if the caller asked to stop.
pub(super) fn search<R: CellRunner>(
    bench: &mut Bench<'_, R>,
    spec: &Spec,
    seed: u64,
    (budget, seeds): (u64, u64),
) -> Result<Option<Course>, StudyError> {
    if spec.size() <= GRID && spec.runs().saturating_mul(seeds) <= budget {
        let all: Vec<Choice> = spec.all().collect();
        let step = bench.measure(&all)?;
        return Ok((step == Step::Done).then_some(Course::Grid));
    }
    let mut rng = Rng::stream(seed, "fit");
    let mut given = Vec::new();
    for choice in std::iter::once(vec![0; spec.options.len()]).chain(spec.known.iter().map(|k| k.1.clone())) {
        if !given.contains(&choice) {
            given.push(choice);
        }
    }
    given.reverse();
    let (mut starts, mut idle) = (0, 0);
    while idle < IDLE {
        let Some(start) = given.pop().or_else(|| drawn(bench, spec, &mut rng)) else { break };
        starts += 1;
        let before = bench.cells();
        // All papers together first: the fit to all papers is the result, and those to single papers test it.
        for target in std::iter::once(None).chain((0..spec.papers.len()).map(Some)) {
            match descend(bench, spec, target, &start)? {
                Step::Done => {}
                Step::OverBudget => return Ok(Some(Course::Descent { starts, over_budget: true })),
                Step::Stopped => return Ok(None),
            }
        }
        idle = if bench.cells() == before { idle + 1 } else { 0 };
    }
    Ok(Some(Course::Descent { starts, over_budget: false }))
}

/// A random reading that the scenario accepts.
fn drawn<R: CellRunner>(bench: &mut Bench<'_, R>, spec: &Spec, rng: &mut Rng) -> Option<Choice> {
    (0..DRAWS).find_map(|_| {
        let choice: Choice =
            spec.options.iter().map(|o| rng.below(o.axis.values.len() as u64) as usize).collect();
        bench.scenarios(&choice).is_ok().then_some(choice)
    })
}

/// Changes one option after the other, as long as the misfit of a paper (`None`: of all) becomes smaller.
fn descend<R: CellRunner>(
    bench: &mut Bench<'_, R>,
    spec: &Spec,
    target: Option<usize>,
    start: &Choice,
) -> Result<Step, StudyError> {
    let counts = |paper: usize| target.is_none_or(|t| t == paper);
    let mut here = start.clone();
    let step = bench.measure(std::slice::from_ref(&here))?;
    if step != Step::Done {
        return Ok(step);
    }
    loop {
        let before = bench.misfit(&here, &counts);
        for (o, option) in spec.options.iter().enumerate() {
            if !spec.matters(o, |n| counts(n.paper)) {
                continue;
            }
            let moved = |i: usize| {
                let mut choice = here.clone();
                choice[o] = i;
                choice
            };
            let others: Vec<Choice> = (0..option.axis.values.len()).map(moved).collect();
            let step = bench.measure(&others)?;
            if step != Step::Done {
                return Ok(step);
            }
            // Of readings with equal misfits the present one stays.
            for choice in others {
                if bench.misfit(&choice, &counts) < bench.misfit(&here, &counts) {
                    here = choice;
                }
            }
        }
        // Where nothing can be measured, the misfit stays infinite, which is not less.
        if bench.misfit(&here, &counts).partial_cmp(&before) != Some(std::cmp::Ordering::Less) {
            return Ok(Step::Done);
        }
    }
}
