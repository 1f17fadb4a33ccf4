//! Measures readings: resolves them, runs the cells that are new, and evaluates the metrics of the printed numbers.

use super::spec::{Choice, NumberSpec, Spec};
use crate::error::StudyError;
use crate::model::StudyFile;
use crate::observed::Observed;
use crate::plan::{axis_settings, base_settings, resolve};
use crate::planned::{Plan, Prepared, combination_label};
use crate::results::Results;
use crate::run::{Cells, RunOptions, run};
use crate::runner::{CellRunner, Setting};
use crate::space::Space;
use crate::stats::{Estimate, estimate};
use skyhaul_base::math;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

/// A reading that was tried.
#[derive(Clone, Debug)]
pub(super) enum Tried {
    /// Its metrics, one for each printed number.
    Measured(Vec<Estimate>),
    /// The scenario refuses it.
    Refused,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// All readings are measured, or refused.
    Done,
    /// Nothing ran: it would have exceeded the budget.
    OverBudget,
    /// The caller asked to stop.
    Stopped,
}

/// The readings measured so far, and what a further one needs to be measured.
pub(super) struct Bench<'a, R> {
    runner: &'a R,
    options: &'a RunOptions<'a>,
    spec: &'a Spec,
    base: Vec<Setting>,
    /// The study. Its scenarios are those of all readings so far. The first one, which never runs, stands for combinations that
    /// no number needs.
    plan: Plan,
    /// The scenario for a combination and the values of the options that apply to that combination.
    known: BTreeMap<(usize, Choice), usize>,
    /// Scenarios with the same text, which share a run.
    same: BTreeMap<String, Vec<usize>>,
    /// What was measured, by run and seed.
    observed: Vec<Option<Observed>>,
    /// The readings tried.
    pub(super) tried: BTreeMap<Choice, Tried>,
    /// Largest number of cells.
    budget: u64,
    /// Cells that failed.
    pub(super) failed: usize,
}

impl<'a, R: CellRunner> Bench<'a, R> {
    /// For a planned study.
    pub(super) fn new(
        runner: &'a R,
        options: &'a RunOptions<'a>,
        spec: &'a Spec,
        mut plan: Plan,
        budget: u64,
    ) -> Self {
        let base = base_settings(&plan.file);
        plan.scenarios.truncate(1);
        plan.scenarios.iter_mut().for_each(|p| p.run = None);
        let (known, same, tried) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self {
            runner,
            options,
            spec,
            base,
            plan,
            known,
            same,
            observed: Vec::new(),
            tried,
            budget,
            failed: 0,
        }
    }

    /// The study.
    pub(super) const fn file(&self) -> &StudyFile {
        &self.plan.file
    }

    /// Cells so far.
    pub(super) fn cells(&self) -> usize {
        self.observed.len()
    }

    /// Measures readings that are not measured yet.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub(super) fn measure(&mut self, choices: &[Choice]) -> Result<Step, StudyError> {
        let (mut rows, mut once): (Vec<(Choice, Vec<usize>)>, _) = (Vec::new(), BTreeSet::new());
        for choice in choices {
            if self.tried.contains_key(choice) || !once.insert(choice) {
                continue;
            }
            match self.scenarios(choice) {
                Ok(scenarios) => rows.push((choice.clone(), scenarios)),
                Err(_) => drop(self.tried.insert(choice.clone(), Tried::Refused)),
            }
        }
        let step = self.run(&rows)?;
        if step == Step::Done {
            // A few at a time: `Results` keeps all metrics of the readings that it evaluates.
            rows.chunks(64).for_each(|rows| self.evaluate(rows));
        }
        Ok(step)
    }

    /// The scenarios of a reading, at the combinations that any number needs.
    ///
    /// # Errors
    /// If the scenario refuses it.
    pub(super) fn scenarios(&mut self, choice: &[usize]) -> Result<Vec<usize>, StudyError> {
        let spec = self.spec;
        spec.needs.iter().map(|c| self.scenario(*c, choice)).collect()
    }

    fn scenario(&mut self, combination: usize, choice: &[usize]) -> Result<usize, StudyError> {
        let spec = self.spec;
        let here =
            || spec.options.iter().zip(choice).enumerate().filter(|(_, (o, _))| o.applies[combination]);
        let key = (combination, here().map(|(_, (_, i))| *i).collect::<Choice>());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let file = &self.plan.file;
        let (mut settings, mut constants) = (self.base.clone(), file.study.constants.clone());
        let index = Space::of(file).unflatten(combination);
        for (a, (axis, i)) in file.study.axis.iter().zip(&index).enumerate() {
            axis_settings(axis, &format!("axis[{a}]"), *i, &mut settings);
            constants.extend(axis.values[*i].constants.clone());
        }
        let mut label = combination_label(file, &index);
        for (o, (option, i)) in here() {
            axis_settings(&option.axis, &format!("fit.option[{o}]"), *i, &mut settings);
            constants.extend(option.axis.values[*i].constants.clone());
            label = format!("{label}, {} = {}", option.axis.name, option.axis.label(*i));
        }
        let resolved = resolve(self.runner, file, &settings)?;
        let version = self.runner.version(&resolved.scenario);
        let all = &mut self.plan.scenarios;
        let same = self.same.entry(resolved.text.clone()).or_default();
        let twin = same.iter().copied().find(|i| all[*i].constants == constants);
        let at = twin.unwrap_or_else(|| {
            let run = same.first().and_then(|i| all[*i].run);
            same.push(all.len());
            let (scenario, text) = (resolved.scenario, resolved.text);
            all.push(Prepared { scenario, text, version, label, constants, run });
            all.len() - 1
        });
        self.known.insert(key, at);
        Ok(at)
    }

    /// Runs the scenarios of readings that have not run.
    fn run(&mut self, rows: &[(Choice, Vec<usize>)]) -> Result<Step, StudyError> {
        let all = &self.plan.scenarios;
        let mut once = BTreeSet::new();
        let used = rows.iter().flat_map(|(_, scenarios)| scenarios).map(|at| &all[*at]);
        let new = used.filter(|p| p.run.is_none() && once.insert(&p.text));
        let groups: Vec<Vec<usize>> = new.map(|p| self.same[&p.text].clone()).collect();
        if groups.is_empty() {
            return Ok(Step::Done);
        }
        let seeds = self.plan.seeds();
        if (self.observed.len() + groups.len() * seeds) as u64 > self.budget {
            return Ok(Step::OverBudget);
        }
        let one = |(run, group): (usize, &Vec<usize>)| Prepared { run: Some(run), ..all[group[0]].clone() };
        let some = groups.iter().enumerate().map(one).collect();
        let all = std::mem::replace(&mut self.plan.scenarios, some);
        let cells = run(self.runner, &self.plan, self.options);
        self.plan.scenarios = all;
        let cells = cells?;
        if cells.interrupted {
            return Ok(Step::Stopped);
        }
        let first = self.observed.len() / seeds;
        for (run, group) in groups.iter().enumerate() {
            group.iter().for_each(|i| self.plan.scenarios[*i].run = Some(first + run));
        }
        self.failed += cells.failed.len();
        self.observed.extend(cells.observed);
        Ok(Step::Done)
    }

    /// Evaluates readings whose cells have run.
    fn evaluate(&mut self, rows: &[(Choice, Vec<usize>)]) {
        let spec = self.spec;
        let combinations = Space::of(&self.plan.file).len();
        let row = |(_, scenarios): &(Choice, Vec<usize>)| {
            let mut row = vec![0; combinations];
            spec.needs.iter().zip(scenarios).for_each(|(c, scenario)| row[*c] = *scenario);
            row
        };
        self.plan.grid = rows.iter().map(row).collect();
        let cells = Cells {
            observed: take(&mut self.observed),
            failed: BTreeMap::new(),
            cached: 0,
            ran: 0,
            interrupted: false,
        };
        let results = Results::new(&self.plan, &cells);
        for (reading, (choice, _)) in rows.iter().enumerate() {
            let value = |n: &NumberSpec| estimate(results.metric(reading, n.at, n.metric));
            self.tried.insert(choice.clone(), Tried::Measured(spec.numbers.iter().map(value).collect()));
        }
        self.observed = cells.observed;
    }

    /// The metrics of a reading, if it could be measured.
    pub(super) fn values(&self, choice: &[usize]) -> Option<&[Estimate]> {
        match self.tried.get(choice)? {
            Tried::Measured(values) => Some(values),
            Tried::Refused => None,
        }
    }

    /// Misfit of a reading; infinite if it could not be measured.
    pub(super) fn misfit(&self, choice: &[usize], counts: &dyn Fn(usize) -> bool) -> f64 {
        self.values(choice).map_or(f64::INFINITY, |values| misfit(self.spec, values, counts))
    }
}

/// Logarithm of a metric over the printed number; infinite if the metric has no value or is not positive.
pub(super) fn error(value: &Estimate, printed: f64) -> f64 {
    let ratio = value.mean / printed;
    if ratio > 0.0 && ratio.is_finite() { math::ln(ratio) } else { f64::INFINITY }
}

/// Root of the weighted mean of the squared errors, over the papers that count.
pub(super) fn misfit(spec: &Spec, values: &[Estimate], counts: &dyn Fn(usize) -> bool) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (number, value) in spec.numbers.iter().zip(values).filter(|(n, _)| counts(n.paper)) {
        let e = error(value, number.value);
        sum += number.weight * e * e;
        weights += number.weight;
    }
    math::sqrt(sum / weights)
}
