//! Metric values of the cells, by combination and seed.

use crate::expr::{self, Vars};
use crate::metric::PlannedMetric;
use crate::model::Aggregation;
use crate::observed::Observed;
use crate::planned::Plan;
use crate::run::Cells;
use crate::runner::Failure;
use crate::space::Space;
use crate::stats;
use crate::summary::Summary;
use std::collections::BTreeMap;

/// Metric values of all scenarios, and the cells behind them.
#[derive(Debug)]
pub struct Results<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The cells.
    pub cells: &'a Cells,
    /// `values[metric][reading][combination · seeds + seed]`; NaN where there is none.
    values: Vec<Vec<Vec<f64>>>,
    /// What tables and figures show of each metric.
    shown: Vec<Summary>,
}

impl<'a> Results<'a> {
    /// Evaluates all metrics.
    #[must_use]
    pub fn new(plan: &'a Plan, cells: &'a Cells) -> Self {
        let mut r = Self { plan, cells, values: Vec::new(), shown: Vec::new() };
        for metric in &plan.metrics {
            let of_reading = |reading| r.of_reading(metric, reading);
            let values = (0..plan.grid.len()).map(of_reading).collect();
            r.values.push(values);
        }
        r.shown = (0..plan.metrics.len()).map(|m| r.summary(m)).collect();
        r
    }

    /// What tables and figures show of a metric: what the study says; otherwise the median of a duration, which has a true
    /// zero, if the values of some combination are skewed. A value below zero shows that they are differences of durations, which
    /// have no true zero. It is the same in all combinations, so that a column or a curve is of one kind.
    fn summary(&self, metric: usize) -> Summary {
        let planned = &self.plan.metrics[metric];
        let all = || self.values[metric].iter();
        let skewed = || all().any(|of| of.chunks(self.plan.seeds().max(1)).any(stats::is_skewed));
        let negative = || all().flatten().any(|x| *x < 0.0);
        let by_values = || planned.is_duration() && skewed() && !negative();
        let usual = || if by_values() { Summary::Median } else { Summary::Mean };
        planned.summary.unwrap_or_else(usual)
    }

    /// What tables and figures show of a metric.
    #[must_use]
    pub fn shown(&self, metric: usize) -> Summary {
        self.shown[metric]
    }

    fn of_reading(&self, metric: &PlannedMetric, reading: usize) -> Vec<f64> {
        let (plan, seeds) = (self.plan, self.plan.seeds());
        let space = Space::of(&plan.file);
        let mut values = Vec::with_capacity(space.len() * seeds);
        for combination in 0..space.len() {
            let constants = &plan.scenarios[plan.grid[reading][combination]].constants;
            let mut index = space.unflatten(combination);
            for (i, pin) in index.iter_mut().zip(&metric.base) {
                *i = pin.unwrap_or(*i);
            }
            let base = (!metric.base.is_empty()).then(|| space.flatten(&index));
            for seed in 0..seeds {
                let earlier = |at: usize| -> BTreeMap<String, f64> {
                    let of = |name: &String| {
                        let m = self.values.get(plan.metric(name)?)?;
                        Some((name.clone(), m[reading][at * seeds + seed]))
                    };
                    metric.needs.iter().filter_map(of).collect()
                };
                let here = earlier(combination);
                let there = base.map(earlier).unwrap_or_default();
                let x = self
                    .observed(reading, combination, seed)
                    .map_or(f64::NAN, |o| value(metric, o, constants, &here, &there));
                values.push(x);
            }
        }
        values
    }

    fn cell(&self, run: usize, seed: usize) -> Option<&'a Observed> {
        self.cells.observed.get(run * self.plan.seeds() + seed)?.as_ref()
    }

    /// Values of a metric over the seeds.
    #[must_use]
    pub fn metric(&self, reading: usize, combination: usize, metric: usize) -> &[f64] {
        let seeds = self.plan.seeds();
        &self.values[metric][reading][combination * seeds..(combination + 1) * seeds]
    }

    /// What a cell measured.
    #[must_use]
    pub fn observed(&self, reading: usize, combination: usize, seed: usize) -> Option<&'a Observed> {
        self.cell(self.plan.scenarios[self.plan.grid[reading][combination]].run?, seed)
    }

    /// Why a cell failed, if it did.
    #[must_use]
    pub fn failure(&self, reading: usize, combination: usize, seed: usize) -> Option<&'a Failure> {
        let run = self.plan.scenarios[self.plan.grid[reading][combination]].run?;
        self.cells.failed.get(&(run * self.plan.seeds() + seed))
    }

    /// True if a combination belongs to the profile.
    #[must_use]
    pub fn is_planned(&self, reading: usize, combination: usize) -> bool {
        self.plan.scenarios[self.plan.grid[reading][combination]].run.is_some()
    }

    /// True if a reading would change a combination, but does not run it.
    #[must_use]
    pub fn lacks(&self, reading: usize, combination: usize) -> bool {
        self.plan.lacks[reading][combination]
    }

    /// True if all seeds of a combination have run.
    #[must_use]
    pub fn is_complete(&self, reading: usize, combination: usize) -> bool {
        (0..self.plan.seeds()).all(|s| self.observed(reading, combination, s).is_some())
    }

    /// True if a reading changes a combination.
    #[must_use]
    pub fn differs(&self, reading: usize, combination: usize) -> bool {
        self.plan.grid[reading][combination] != self.plan.grid[0][combination]
    }
}

fn value(
    metric: &PlannedMetric,
    observed: &Observed,
    constants: &BTreeMap<String, f64>,
    metrics: &BTreeMap<String, f64>,
    base: &BTreeMap<String, f64>,
) -> f64 {
    let vars = Vars { observed, group: metric.group.as_deref(), constants, metrics, base };
    let values = expr::evaluate(&metric.expr, &vars);
    let function = match metric.over {
        None => return if let [one] = values[..] { one } else { f64::NAN },
        Some(Aggregation::Jain) => "jain",
        Some(Aggregation::Max) => "max",
        Some(Aggregation::Mean | Aggregation::PerGroup) => "mean",
        Some(Aggregation::Min) => "min",
        Some(Aggregation::Sum) => "sum",
    };
    expr::aggregate(function, &values)
}
