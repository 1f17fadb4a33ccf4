//! What a search found.

use super::bench::{Bench, Tried, error, misfit};
use super::search::Course;
use super::spec::{Choice, Spec, labels_of};
use super::{key, ranked};
use crate::model::{Fit, LeftOut};
use crate::planned::Plan;
use crate::runner::CellRunner;
use crate::stats::Estimate;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// Name of the study.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Version and fingerprint of the engine.
    pub engine: String,
    /// How the search went.
    pub course: Course,
    /// Number of readings that the options make.
    pub size: u64,
    /// Readings that were measured and differ from each other at some number.
    pub measured: usize,
    /// Readings that the scenario refuses.
    pub refused: usize,
    /// Cells of the search.
    pub cells: usize,
    /// Largest number of cells.
    pub budget: u64,
    /// First seed of the search, and number of seeds.
    pub seeds: (u64, u32),
    /// First fresh seed, and number of fresh seeds.
    pub fresh: (u64, u32),
    /// Cells that failed.
    pub failed: usize,
    /// The papers.
    pub papers: Vec<String>,
    /// The printed numbers.
    pub numbers: Vec<NumberRow>,
    /// The printed numbers that do not count.
    pub left_out: Vec<LeftOut>,
    /// Readings with fresh seeds, by misfit over all papers.
    pub readings: Vec<ReadingRow>,
    /// The reading fitted to each paper, with its misfit on the other papers; last the reading fitted to all papers.
    pub tests: Vec<TestRow>,
    /// The options, with the least misfit of each value.
    pub options: Vec<OptionRow>,
}

/// A printed number.
#[derive(Clone, Debug)]
pub struct NumberRow {
    /// Its name.
    pub id: String,
    /// The paper.
    pub paper: String,
    /// Place in the paper.
    pub place: Option<String>,
    /// Title of the metric, with unit.
    pub heading: String,
    /// The printed value.
    pub value: f64,
    /// Weight of its squared error.
    pub weight: f64,
}

/// A reading with fresh seeds.
#[derive(Clone, Debug)]
pub struct ReadingRow {
    /// Its name, if it has one.
    pub label: Option<String>,
    /// The options that do not have their first value: name and value of each.
    pub words: Vec<(String, String)>,
    /// Misfit over all papers.
    pub misfit: f64,
    /// Misfit of each paper.
    pub of_papers: Vec<f64>,
    /// Our values of the printed numbers.
    pub values: Vec<Estimate>,
    /// For each printed number the logarithm of our value over it.
    pub errors: Vec<f64>,
    /// Place among the measured readings in the search, over all papers; 1 is the best.
    pub rank: Option<usize>,
    /// The choice itself.
    choice: Choice,
}

/// A reading fitted to one paper, tested on the others.
#[derive(Clone, Debug)]
pub struct TestRow {
    /// The paper; `None`: all.
    pub paper: Option<String>,
    /// Index of the reading.
    pub reading: usize,
    /// Misfit of the reading on the paper that it is fitted to.
    pub own: f64,
    /// Misfit of the reading over the other papers.
    pub others: Option<f64>,
    /// In the search: least and largest misfit, over the other papers, of all readings with the same values on this paper. The
    /// numbers of this paper cannot choose among these readings.
    pub open: Option<(f64, f64)>,
}

/// A free option.
#[derive(Clone, Debug)]
pub struct OptionRow {
    /// Its name.
    pub name: String,
    /// What is open.
    pub says: Option<String>,
    /// Its values.
    pub values: Vec<ValueRow>,
}

/// A value of a free option.
#[derive(Clone, Debug)]
pub struct ValueRow {
    /// Its name.
    pub label: String,
    /// In the search: the least misfit of the readings with this value over all papers, then on each paper; infinite if no such
    /// reading was measured.
    pub least: Vec<f64>,
}

/// The outcome, with what is known before the search filled in.
pub(super) struct Frame<'a> {
    fit: &'a Fit,
    spec: &'a Spec,
    done: Fitted,
}

impl<'a> Frame<'a> {
    pub(super) fn new(plan: &Plan, fit: &'a Fit, spec: &'a Spec, budget: u64) -> Self {
        let study = &plan.file.study;
        let number = |(printed, n): (&crate::model::Printed, &super::spec::NumberSpec)| NumberRow {
            id: printed.id.clone(),
            paper: printed.paper.clone(),
            place: printed.place.clone(),
            heading: plan.metrics[n.metric].heading.clone(),
            value: n.value,
            weight: n.weight,
        };
        let seeds = study.seeds;
        let done = Fitted {
            name: plan.file.stem(),
            title: study.title.clone(),
            engine: plan.engine.clone(),
            course: Course::Grid,
            size: spec.size(),
            measured: 0,
            refused: 0,
            cells: 0,
            budget,
            seeds: (seeds.first, seeds.count),
            fresh: (seeds.first.wrapping_add(seeds.count.into()), fit.fresh),
            failed: 0,
            papers: spec.papers.clone(),
            numbers: fit.printed.iter().zip(&spec.numbers).map(number).collect(),
            left_out: fit.left_out.clone(),
            readings: Vec::new(),
            tests: Vec::new(),
            options: Vec::new(),
        };
        Self { fit, spec, done }
    }

    /// Adds what the search in `bench` found; `fresh` has measured the chosen readings with fresh seeds.
    pub(super) fn fill<R: CellRunner>(
        mut self,
        course: Course,
        bench: &Bench<'_, R>,
        fresh: &Bench<'_, R>,
        chosen: &[Choice],
    ) -> Fitted {
        let spec = self.spec;
        let every = ranked(bench, None);
        let mut once = BTreeSet::new();
        let order: Vec<Vec<u64>> = every.iter().map(|(_, c)| key(bench, spec, None, c)).collect();
        let order: Vec<Vec<u64>> = order.into_iter().filter(|k| once.insert(k.clone())).collect();
        let labels = labels_of(&spec.known);
        let row = |choice: &Choice| {
            let values = fresh.values(choice)?.to_vec();
            let errors = values.iter().zip(&spec.numbers).map(|(v, n)| error(v, n.value)).collect();
            let k = key(bench, spec, None, choice);
            Some(ReadingRow {
                label: labels.get(choice).cloned(),
                words: spec.words(choice),
                misfit: misfit(spec, &values, &|_| true),
                of_papers: (0..spec.papers.len()).map(|p| misfit(spec, &values, &|q| p == q)).collect(),
                values,
                errors,
                rank: order.iter().position(|o| *o == k).map(|i| i + 1),
                choice: choice.clone(),
            })
        };
        let mut readings: Vec<ReadingRow> = chosen.iter().filter_map(row).collect();
        readings.sort_by(|a, b| a.misfit.total_cmp(&b.misfit));
        let done = &mut self.done;
        done.course = course;
        done.measured = order.len();
        done.refused = bench.tried.values().filter(|t| matches!(t, Tried::Refused)).count();
        done.cells = bench.cells();
        done.failed = bench.failed + fresh.failed;
        done.tests = tests(bench, spec, &readings);
        done.readings = readings;
        done.options = options(bench, spec, self.fit);
        self.done
    }
}

fn tests<R: CellRunner>(bench: &Bench<'_, R>, spec: &Spec, readings: &[ReadingRow]) -> Vec<TestRow> {
    let mut all = Vec::new();
    if spec.papers.len() > 1 {
        for (p, paper) in spec.papers.iter().enumerate() {
            let best = |a: &usize, b: &usize| readings[*a].of_papers[p].total_cmp(&readings[*b].of_papers[p]);
            let Some(reading) = (0..readings.len()).min_by(best) else { continue };
            let row = &readings[reading];
            let own = key(bench, spec, Some(p), &row.choice);
            let same = bench.tried.keys().filter(|c| key(bench, spec, Some(p), c) == own);
            let there: Vec<f64> =
                same.map(|c| bench.misfit(c, &|q| q != p)).filter(|m| m.is_finite()).collect();
            let least = there.iter().copied().fold(f64::INFINITY, f64::min);
            let most = there.iter().copied().fold(0.0, f64::max);
            all.push(TestRow {
                paper: Some(paper.clone()),
                reading,
                own: row.of_papers[p],
                others: Some(misfit(spec, &row.values, &|q| q != p)),
                open: (there.len() > 1).then_some((least, most)),
            });
        }
    }
    if let Some(best) = readings.first() {
        all.push(TestRow { paper: None, reading: 0, own: best.misfit, others: None, open: None });
    }
    all
}

fn options<R: CellRunner>(bench: &Bench<'_, R>, spec: &Spec, fit: &Fit) -> Vec<OptionRow> {
    let least = |o: usize, i: usize, target: Option<usize>| {
        let with = bench.tried.keys().filter(|c| c[o] == i);
        let misfits = with.map(|c| bench.misfit(c, &|paper| target.is_none_or(|t| t == paper)));
        misfits.fold(f64::INFINITY, f64::min)
    };
    let targets = || std::iter::once(None).chain((0..spec.papers.len()).map(Some));
    let one = |(o, option): (usize, &super::spec::OptionSpec)| OptionRow {
        name: option.axis.name.clone(),
        says: fit.option[o].says.clone(),
        values: (0..option.axis.values.len())
            .map(|i| ValueRow {
                label: option.axis.label(i),
                least: targets().map(|target| least(o, i, target)).collect(),
            })
            .collect(),
    };
    spec.options.iter().enumerate().map(one).collect()
}

impl ReadingRow {
    /// The name of the reading, or the options that do not have their first value.
    #[must_use]
    pub fn title(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        match (&self.label, words.is_empty()) {
            (Some(label), _) => label.clone(),
            (None, true) => "first values".to_owned(),
            (None, false) => words.join("; "),
        }
    }
}

impl Fitted {
    /// What the command prints as JSON.
    #[must_use]
    pub fn summary(&self) -> Value {
        let number = |x: f64| if x.is_finite() { json!(x) } else { Value::Null };
        let papers = |all: &[f64]| {
            let of = self.papers.iter().cloned().zip(all.iter().map(|x| number(*x)));
            of.collect::<serde_json::Map<_, _>>()
        };
        let estimate = |(n, (e, error)): (&NumberRow, (&Estimate, &f64))| {
            let half = number(e.half);
            json!({ "id": n.id, "mean": number(e.mean), "ci95": half, "printed": n.value, "error": number(*error) })
        };
        let reading = |r: &ReadingRow| {
            let options: serde_json::Map<String, Value> =
                r.words.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            json!({
                "label": r.label,
                "options": options,
                "misfit": number(r.misfit),
                "papers": papers(&r.of_papers),
                "rank": r.rank,
                "numbers": self.numbers.iter().zip(r.values.iter().zip(&r.errors)).map(estimate).collect::<Vec<_>>(),
            })
        };
        let test = |t: &TestRow| {
            json!({
                "fitted": t.paper,
                "reading": t.reading,
                "misfit": number(t.own),
                "others": t.others.map(number),
                "open": t.open.map(|(least, most)| [number(least), number(most)]),
            })
        };
        let option = |o: &OptionRow| {
            let value = |v: &ValueRow| json!({ "value": v.label, "misfit": number(v.least[0]), "papers": papers(&v.least[1..]) });
            json!({ "name": o.name, "says": o.says, "values": o.values.iter().map(value).collect::<Vec<_>>() })
        };
        let printed = |n: &NumberRow| {
            let (id, paper, place) = (&n.id, &n.paper, &n.place);
            let metric = &n.heading;
            json!({
                "id": id, "paper": paper, "where": place, "metric": metric, "value": n.value, "weight": n.weight,
            })
        };
        let (course, starts, over) = match self.course {
            Course::Grid => ("grid", None, false),
            Course::Descent { starts, over_budget } => ("coordinates", Some(starts), over_budget),
        };
        json!({
            "schema": "skyhaul.fit/1",
            "study": self.name,
            "title": self.title,
            "engine": self.engine,
            "measure": "root of the weighted mean of the squared logarithms of ours over printed",
            "search": {
                "kind": course, "starts": starts, "budget_used_up": over, "readings": self.size,
                "measured": self.measured, "refused": self.refused, "cells": self.cells, "budget": self.budget,
                "first_seed": self.seeds.0, "seeds": self.seeds.1, "failed_cells": self.failed,
            },
            "fresh": { "first_seed": self.fresh.0, "seeds": self.fresh.1 },
            "printed": self.numbers.iter().map(printed).collect::<Vec<_>>(),
            "left_out": self.left_out,
            "readings": self.readings.iter().map(reading).collect::<Vec<_>>(),
            "tests": self.tests.iter().map(test).collect::<Vec<_>>(),
            "options": self.options.iter().map(option).collect::<Vec<_>>(),
        })
    }
}
