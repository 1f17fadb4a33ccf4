//! What the cells yield: metric values by combination and seed.

use crate::expr::{self, Vars};
use crate::model::Over;
use crate::observed::Observed;
use crate::plan::{Plan, PlannedMetric, Prepared};
use crate::run::Cells;
use crate::runner::Failure;
use std::collections::BTreeMap;

/// Metric values of all scenarios, and the cells behind them.
#[derive(Debug)]
pub struct Results<'a, S> {
    /// The plan.
    pub plan: &'a Plan<S>,
    /// The cells.
    pub cells: &'a Cells,
    /// `values[scenario][metric][seed]`; NaN where there is none.
    values: Vec<Vec<Vec<f64>>>,
}

impl<'a, S> Results<'a, S> {
    /// Evaluates all metrics.
    #[must_use]
    pub fn new(plan: &'a Plan<S>, cells: &'a Cells) -> Self {
        let mut r = Self { plan, cells, values: Vec::new() };
        r.values = plan.scenarios.iter().map(|p| r.of_scenario(p)).collect();
        r
    }

    fn of_scenario(&self, p: &Prepared<S>) -> Vec<Vec<f64>> {
        let metrics = &self.plan.metrics;
        let mut values = vec![Vec::with_capacity(self.plan.seeds()); metrics.len()];
        for seed in 0..self.plan.seeds() {
            let observed = self.cell(p.run, seed);
            let mut known = BTreeMap::new();
            for (column, metric) in values.iter_mut().zip(metrics) {
                let x = observed.map_or(f64::NAN, |o| value(metric, o, &p.constants, &known));
                column.push(x);
                known.insert(metric.name.clone(), x);
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
        &self.values[self.plan.grid[reading][combination]][metric]
    }

    /// What a cell measured.
    #[must_use]
    pub fn observed(&self, reading: usize, combination: usize, seed: usize) -> Option<&'a Observed> {
        self.cell(self.plan.scenarios[self.plan.grid[reading][combination]].run, seed)
    }

    /// Why a cell failed, if it did.
    #[must_use]
    pub fn failure(&self, reading: usize, combination: usize, seed: usize) -> Option<&'a Failure> {
        let run = self.plan.scenarios[self.plan.grid[reading][combination]].run;
        self.cells.failed.get(&(run * self.plan.seeds() + seed))
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
) -> f64 {
    let vars = Vars { observed, group: metric.group.as_deref(), constants, metrics };
    let values = expr::evaluate(&metric.expr, &vars);
    let function = match metric.over {
        None => return if let [one] = values[..] { one } else { f64::NAN },
        Some(Over::Jain) => "jain",
        Some(Over::Max) => "max",
        Some(Over::Mean | Over::PerGroup) => "mean",
        Some(Over::Min) => "min",
        Some(Over::Sum) => "sum",
    };
    expr::aggregate(function, &values)
}
