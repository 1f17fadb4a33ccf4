//! The results of a study without the machinery behind it, for reports, files and bindings.

use crate::claim::{self, ClaimResult, Verdict};
use crate::error::StudyError;
use crate::figure::{self, FigureData};
use crate::format;
use crate::model::{Axis, Profile, headings};
use crate::overview::{self, Line};
use crate::planned::Plan;
use crate::results::Results;
use crate::run::Cells;
use crate::runner::Failure;
use crate::space::Space;
use crate::stats::{self, Center, Estimate};
use crate::summary::Summary;
use crate::table::{Column, Table};
use crate::tabulate::{self, Tabulated};
use serde::Serialize;
use serde_json::{Value, json};

/// The outcome of a study.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Name: the file without extension.
    pub name: String,
    /// Title.
    pub title: String,
    /// The name of the control under test in texts for readers; `None` without such a control.
    pub candidate: Option<String>,
    /// The publication and figure that it reproduces.
    pub source: Option<String>,
    /// The question and the method.
    pub about: Option<String>,
    /// Provenance.
    pub provenance: Provenance,
    /// Description of the base scenario.
    pub words: Vec<(String, String)>,
    /// The axes: heading and labels of the values of each.
    pub axes: Vec<(String, Vec<String>)>,
    /// The base scenario, resolved.
    pub scenario_text: String,
    /// The study file.
    pub study_text: String,
    /// Readings: label and difference; the default first.
    pub readings: Vec<(String, String)>,
    /// Claims in the order of the study.
    pub claims: Vec<ClaimResult>,
    /// Figures in the order of the study.
    pub figures: Vec<FigureData>,
    /// Tables in the order of the study.
    pub tables: Vec<Tabulated>,
    /// Its lines of the overview over all studies of the folder.
    pub overview: Vec<Line>,
    /// Means with intervals.
    pub values: Values,
    /// One row per cell; if some failed, a column gives the reason.
    pub cells: Table,
    /// Cells that have not run.
    pub missing: usize,
    /// Cells that failed, in the order of their numbers.
    pub failed: Vec<FailedCell>,
}

/// A cell without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedCell {
    /// Label of the combination.
    pub cell: String,
    /// The seed.
    pub seed: u64,
    /// Why, in one line.
    pub message: String,
    /// More lines, such as a traceback.
    pub detail: Option<String>,
}

/// Provenance of results; nothing in it depends on the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// Version of this software.
    pub version: String,
    /// Version and fingerprint of the engine.
    pub engine: String,
    /// How much of the study ran.
    pub profile: Profile,
    /// Hash of scenario, study and engine.
    pub hash: String,
    /// First seed.
    pub first_seed: u64,
    /// Number of seeds.
    pub seeds: u32,
    /// Number of cells.
    pub cells: usize,
}

impl Provenance {
    /// Last seed.
    #[must_use]
    pub fn last_seed(&self) -> u64 {
        self.first_seed.wrapping_add(u64::from(self.seeds) - 1)
    }
}

/// Metrics by combination.
#[derive(Clone, Debug)]
pub struct Values {
    /// Headings of the axes.
    pub axes: Vec<String>,
    /// Headings of the metrics.
    pub metrics: Vec<String>,
    /// The rows.
    pub rows: Vec<ValueRow>,
}

/// Metrics of one combination.
#[derive(Clone, Debug)]
pub struct ValueRow {
    /// The reading.
    pub reading: String,
    /// Labels of the axis values.
    pub at: Vec<String>,
    /// Metrics in order.
    pub metrics: Vec<Estimate>,
    /// The metrics as text for a reader; see [`format::sample`].
    pub shown: Vec<String>,
    /// For each metric its median, if the metric is shown by its median.
    pub medians: Vec<Option<Center>>,
    /// For each metric the number of seeds without a value.
    pub without: Vec<usize>,
}

/// Number of claims per verdict under the default reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Hold.
    pub holds: usize,
    /// Differ.
    pub differs: usize,
    /// Undecided.
    pub undecided: usize,
    /// Could not be evaluated.
    pub not_evaluable: usize,
    /// Not in the profile that ran.
    pub not_in_profile: usize,
}

impl Counts {
    /// All claims.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.holds + self.differs + self.undecided + self.not_evaluable + self.not_in_profile
    }

    /// The sum, verdict by verdict.
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        Self {
            holds: self.holds + other.holds,
            differs: self.differs + other.differs,
            undecided: self.undecided + other.undecided,
            not_evaluable: self.not_evaluable + other.not_evaluable,
            not_in_profile: self.not_in_profile + other.not_in_profile,
        }
    }
}

/// Evaluates metrics, claims and figures.
///
/// # Errors
/// None for a plan that was made by [`crate::plan::plan`].
pub fn evaluate(plan: &Plan, cells: &Cells) -> Result<Evaluation, StudyError> {
    let results = Results::new(plan, cells);
    let study = &plan.file.study;
    let others = study.reading.iter().map(|r| {
        let set: Vec<_> = r.set.0.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        let set = set.join(", ");
        (r.label.clone(), r.says.as_ref().map_or(set.clone(), |s| format!("{s} ({set})")))
    });
    let default = (study.as_read.clone(), "the default".to_owned());
    Ok(Evaluation {
        name: plan.file.stem(),
        title: study.title.clone(),
        candidate: plan.file.candidate.clone(),
        source: study.source.clone(),
        about: study.about.clone(),
        provenance: Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: plan.engine.clone(),
            profile: plan.profile,
            hash: plan.hash.clone(),
            first_seed: study.seeds.first,
            seeds: study.seeds.count,
            cells: cells.observed.len(),
        },
        words: plan.words.clone(),
        axes: axis_words(plan),
        scenario_text: plan.base_text.clone(),
        study_text: plan.study_text.clone(),
        readings: std::iter::once(default).chain(others).collect(),
        claims: claim::evaluate(&results),
        figures: figure::draw(&results)?,
        tables: tabulate::fill(&results)?,
        overview: overview::measure(&results)?,
        values: values(&results),
        cells: table(&results),
        missing: cells.observed.iter().filter(|o| o.is_none()).count() - cells.failed.len(),
        failed: failed(plan, cells),
    })
}

/// The heading of each axis, with the labels of its values in the profile.
fn axis_words(plan: &Plan) -> Vec<(String, Vec<String>)> {
    let labels = |(axis, only): (&Axis, &Option<Vec<usize>>)| {
        let runs = |i: &usize| only.as_ref().is_none_or(|o| o.contains(i));
        (0..axis.values.len()).filter(runs).map(|i| axis.label(i)).collect()
    };
    let axes = &plan.file.study.axis;
    headings(axes).into_iter().zip(axes.iter().zip(&plan.only).map(labels)).collect()
}

fn failed(plan: &Plan, cells: &Cells) -> Vec<FailedCell> {
    let (all, runs) = (plan.cells(), plan.runs());
    let one = |(number, why): (&usize, &Failure)| FailedCell {
        cell: runs[all[*number].run].label.clone(),
        seed: all[*number].seed,
        message: why.message.clone(),
        detail: why.detail.clone(),
    };
    cells.failed.iter().map(one).collect()
}

/// The combinations that a reading changes; for the default, all.
fn combinations(results: &Results<'_>) -> Vec<(usize, usize)> {
    let readings = results.plan.grid.len();
    let n = Space::of(&results.plan.file).len();
    let all = (0..readings).flat_map(|r| (0..n).map(move |c| (r, c)));
    let shown = |(r, c): &(usize, usize)| (*r == 0 || results.differs(*r, *c)) && results.is_planned(*r, *c);
    all.filter(shown).collect()
}

fn labels(plan: &Plan, combination: usize) -> Vec<String> {
    let index = Space::of(&plan.file).unflatten(combination);
    plan.file.study.axis.iter().zip(index).map(|(a, i)| a.label(i)).collect()
}

fn values(results: &Results<'_>) -> Values {
    let plan = results.plan;
    let readings = plan.readings();
    let summaries: Vec<Summary> = (0..plan.metrics.len()).map(|m| results.shown(m)).collect();
    let median = |(v, summary): (&[f64], &Summary)| (*summary == Summary::Median).then(|| stats::median(v));
    let row = |(reading, c): (usize, usize)| {
        let values = || (0..plan.metrics.len()).map(move |m| results.metric(reading, c, m));
        ValueRow {
            reading: readings[reading].clone(),
            at: labels(plan, c),
            metrics: values().map(stats::estimate).collect(),
            shown: values().zip(&summaries).map(|(v, s)| format::sample(v, *s)).collect(),
            medians: values().zip(&summaries).map(median).collect(),
            without: values().map(|v| v.iter().filter(|x| !x.is_finite()).count()).collect(),
        }
    };
    Values {
        axes: headings(&plan.file.study.axis),
        metrics: plan.metrics.iter().map(|m| m.heading.clone()).collect(),
        rows: combinations(results).into_iter().map(row).collect(),
    }
}

/// The columns of a table of cells beside those of axes and metrics. The last one is there only if cells failed.
const FIXED_COLUMNS: [&str; 3] = ["reading", "seed", "failed"];

/// The name of the column of an axis or a metric: `name`, with `kind` in front as long as another column has this name. An
/// axis and a metric may have the same name.
fn column_name(columns: &[(String, Column)], kind: &str, name: &str) -> String {
    let mut name = name.to_owned();
    while FIXED_COLUMNS.contains(&name.as_str()) || columns.iter().any(|(other, _)| *other == name) {
        name = format!("{kind}.{name}");
    }
    name
}

fn table(results: &Results<'_>) -> Table {
    let plan = results.plan;
    let readings = plan.readings();
    let seeds: Vec<u64> = plan.file.study.seeds.iter().collect();
    let rows: Vec<(usize, usize, usize)> = combinations(results)
        .into_iter()
        .flat_map(|(r, c)| (0..seeds.len()).map(move |s| (r, c, s)))
        .filter(|(r, c, s)| results.observed(*r, *c, *s).is_some() || results.failure(*r, *c, *s).is_some())
        .collect();
    let text = |f: &dyn Fn(&(usize, usize, usize)) -> String| Column::text(rows.iter().map(f));
    let mut columns = vec![("reading".to_owned(), text(&|(r, _, _)| readings[*r].clone()))];
    for (a, axis) in plan.file.study.axis.iter().enumerate() {
        let name = column_name(&columns, "axis", &axis.name);
        columns.push((name, text(&|(_, c, _)| labels(plan, *c)[a].clone())));
        if axis.values.iter().all(|v| v.number().is_some()) {
            let x =
                |c: usize| axis.values[Space::of(&plan.file).unflatten(c)[a]].number().unwrap_or(f64::NAN);
            let xs = rows.iter().map(|(_, c, _)| x(*c)).collect();
            let name = column_name(&columns, "axis", &format!("{}_x", axis.name));
            columns.push((name, Column::real(xs)));
        }
    }
    columns.push(("seed".to_owned(), Column::Count(rows.iter().map(|(_, _, s)| seeds[*s]).collect())));
    for (m, metric) in plan.metrics.iter().enumerate() {
        let xs = rows.iter().map(|(r, c, s)| results.metric(*r, *c, m)[*s]).collect();
        columns.push((column_name(&columns, "metric", &metric.name), Column::real(xs)));
    }
    if !results.cells.failed.is_empty() {
        let why = |(r, c, s): &(usize, usize, usize)| {
            results.failure(*r, *c, *s).map_or("", |f| &f.message).to_owned()
        };
        columns.push(("failed".to_owned(), text(&why)));
    }
    Table::new(columns)
}

impl Evaluation {
    /// The verdicts on all claims under the default reading.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts_of(|_| true)
    }

    /// The verdicts on the claims that the totals count.
    #[must_use]
    pub fn counted(&self) -> Counts {
        self.counts_of(ClaimResult::counts)
    }

    /// The verdicts on the claims that the totals do not count.
    #[must_use]
    pub fn not_counted(&self) -> Counts {
        self.counts_of(|claim| !claim.counts())
    }

    /// The verdicts on the claims that `which` chooses.
    #[must_use]
    pub fn counts_of(&self, which: impl Fn(&ClaimResult) -> bool) -> Counts {
        let mut c = Counts::default();
        for claim in self.claims.iter().filter(|claim| which(claim)) {
            match claim.verdict() {
                Verdict::Holds => c.holds += 1,
                Verdict::Differs => c.differs += 1,
                Verdict::Undecided { .. } => c.undecided += 1,
                Verdict::NotInProfile => c.not_in_profile += 1,
                Verdict::NotEvaluable { .. } => c.not_evaluable += 1,
            }
        }
        c
    }

    /// `summary.json`: provenance, verdicts and means.
    #[must_use]
    pub fn summary(&self) -> Value {
        let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
        let row = |r: &ValueRow| {
            let at: serde_json::Map<String, Value> =
                self.values.axes.iter().cloned().zip(r.at.iter().map(|l| json!(l))).collect();
            let estimate = |((e, without), median): ((&Estimate, &usize), &Option<Center>)| {
                let mut estimate = json!({ "mean": number(e.mean), "ci95": number(e.half), "n": e.n });
                if let Some(m) = median {
                    estimate["median"] = number(m.value);
                    estimate["low"] = number(m.low);
                    estimate["high"] = number(m.high);
                }
                if *without > 0 {
                    estimate["without_value"] = json!(without);
                }
                estimate
            };
            let all = r.metrics.iter().zip(&r.without).zip(&r.medians).map(estimate);
            let metrics: serde_json::Map<String, Value> =
                self.values.metrics.iter().cloned().zip(all).collect();
            json!({ "reading": r.reading, "at": at, "metrics": metrics })
        };
        json!({
            "study": self.name,
            "title": self.title,
            "source": self.source,
            "provenance": self.provenance,
            "counts": self.counted(),
            "aside": self.not_counted(),
            "missing_cells": self.missing,
            "failed_cells": self.failed,
            "claims": self.claims,
            "values": self.values.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}
