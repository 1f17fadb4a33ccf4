//! An evaluation: the test cases of a document such as RFC 9743, which says what a proposal for congestion control has to
//! show, with the control under test as the candidate, and one report over the document's requirements. Each case is a
//! study, and they run as those of a reproduction do.

use crate::cases::Case;
use crate::control;
use crate::engine::simulator;
use crate::error::LabError;
use crate::export;
use crate::lease::Lease;
use crate::library::{self, PaperStudies};
use crate::reproduce::{Bound, Extent, Reproduction};
use crate::results;
use crate::run::{RunObserver, whole};
use crate::text::Grid;
use serde_json::{Value, json};
use skyhaul_base::Duration;
use skyhaul_cc::Controls;
use skyhaul_scenario::resolved::Series;
use skyhaul_study::StudyError;
use skyhaul_study::batch::Totals;
use skyhaul_study::book::{Book, Chapter};
use skyhaul_study::claim::Verdict;
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::model::{Profile, Raw};
use skyhaul_study::overview;
use skyhaul_study::plan::Plan;
use skyhaul_study::report;
use skyhaul_study::requirement::{Answer, Judgement, requirements};
use skyhaul_study::run::RunOptions;
use skyhaul_study::runner::{CellRunner, Setting};
use skyhaul_study::sections;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Schema of `evaluation.json`.
pub const SCHEMA: &str = "skyhaul.evaluate/1";
/// Name of the machine-readable results.
pub const FILE: &str = "evaluation.json";
/// Name of the folder of a case with the event logs of its example.
pub const QLOG: &str = "qlog";
/// Interval between the samples of the round-trip time in event logs.
const SAMPLE: Duration = Duration::from_millis(100);

/// What to evaluate, and where the report goes.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The control: a name, or an inline table such as `{ name = "newreno", max-burst = 4 }`.
    pub control: String,
    /// Names of cases; all if empty.
    pub names: Vec<String>,
    /// Fewer seeds and shorter runs, as each case says.
    pub quick: bool,
    /// Cases of this folder instead of the built-in ones.
    pub cases: Option<PathBuf>,
    /// Number of seeds, instead of each case's.
    pub seeds: Option<u32>,
    /// The folder; by default `results/evaluate-NAME`, with the options of the control behind its name, and `-quick`
    /// in the quick profile.
    pub out: Option<PathBuf>,
}

impl Request {
    /// The folder of the results.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let usual = || {
            let (name, end) = (control::slug(&self.control), if self.quick { "-quick" } else { "" });
            PathBuf::from(format!("results/evaluate-{name}{end}"))
        };
        self.out.clone().unwrap_or_else(usual)
    }
}

/// An evaluation in progress.
#[derive(Debug)]
pub struct Evaluating {
    all: Reproduction,
    control: String,
    /// Whether only some cases were asked for.
    partial: bool,
}

/// The results of an evaluation.
#[derive(Debug)]
pub struct Evaluated {
    /// The control, as it was given.
    pub control: String,
    /// The results of all cases.
    pub book: Book,
    /// The results folder.
    pub folder: PathBuf,
    /// Whether only some cases were asked for.
    partial: bool,
}

/// Evaluates a control in one call. The caller may provide the control itself (`user:NAME` in the request).
///
/// # Errors
/// As [`Evaluating::begin`], a file that cannot be written, or a request to stop.
pub fn evaluate(
    request: &Request,
    controls: Controls,
    options: &RunOptions<'_>,
    warn: &mut dyn FnMut(&str),
) -> Result<Evaluated, LabError> {
    let runner = simulator().with_controls(controls);
    let all = Evaluating::begin(request, &runner, warn)?;
    let totals = all.run(&runner, options)?;
    if totals.interrupted {
        return Err(LabError::StoppedCells { done: totals.done, cells: totals.cells });
    }
    all.report(None, warn)
}

impl Evaluating {
    /// Checks the control, plans the cases and creates the folder. Cases that cannot be planned are reported with
    /// `warn`, and listed in the report.
    ///
    /// # Errors
    /// An unknown control or case, options that a control refuses, an unsuitable results folder, or no case at all that
    /// can be planned.
    pub fn begin<R: CellRunner>(
        request: &Request,
        runner: &R,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Self, LabError> {
        if request.seeds == Some(0) {
            return Err(LabError::NoSeeds);
        }
        let control = checked(&request.control, runner)?;
        let mut papers = opened(request)?;
        for paper_studies in &mut papers {
            for (_, case) in &mut paper_studies.studies {
                let Ok(file) = case else { continue };
                file.test_control(&control);
                file.candidate = Some(control::slug(&request.control));
                if let Err(e) = overview::check_sections(file, &paper_studies.paper) {
                    *case = Err(e);
                }
            }
        }
        let profile = if request.quick { Profile::Quick } else { Profile::Full };
        let folder = request.folder();
        let extent = Extent { profile, seeds: request.seeds, max_cells: None };
        let mut first = None;
        let mut on_line = |line: &str| {
            first.get_or_insert_with(|| line.to_owned());
            warn(line);
        };
        let all = Reproduction::start("evaluate", papers, folder, extent, runner, &mut on_line)?;
        match first {
            Some(first) if all.plans().is_empty() => Err(LabError::NoCases { first }),
            _ => Ok(Self { all, control: request.control.clone(), partial: !request.names.is_empty() }),
        }
    }

    /// The cases that are planned, and what they are about.
    pub(crate) fn cases(&self) -> &Reproduction {
        &self.all
    }

    /// The control, as it was given.
    pub(crate) fn control(&self) -> &str {
        &self.control
    }

    /// Whether only some cases were asked for.
    pub(crate) const fn is_partial(&self) -> bool {
        self.partial
    }

    /// The folder of the report.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.all.folder()
    }

    /// Runs the cells that are not in the cache, with the runner that planned them.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn run<R: CellRunner>(&self, runner: &R, options: &RunOptions<'_>) -> Result<Totals, StudyError> {
        self.all.run_on(runner, options)
    }

    /// Runs one cell of each case once more, and writes its events: the first combination of the case, which has the
    /// candidate in it, with the first seed. Beside the logs, one of each flow, are the results of this run, as
    /// `skyhaul run` writes them, its scenario included.
    ///
    /// `controls` are the user's own, as those of the runner. Returns the logs.
    ///
    /// # Errors
    /// A run that fails or is stopped, or a file that cannot be written.
    pub fn qlog(&self, controls: &Controls, watch: &dyn RunObserver) -> Result<Vec<PathBuf>, LabError> {
        let mut logs = Vec::new();
        for (i, plan) in self.all.plans().iter().enumerate() {
            let folder = self.folder().join("studies").join(self.all.name(i)).join(QLOG);
            let lease = Lease::take(&folder)?;
            let case = example(plan);
            let result = whole(&case, controls, watch)?;
            let mut written = results::write(&folder, &case, &result, None)?;
            let of_case = export::qlog_with(&folder, &folder, &[], controls, watch)?;
            written.extend(of_case.iter().cloned());
            lease.finish(&written)?;
            logs.extend(of_case);
        }
        Ok(logs)
    }

    /// Renders the figures, if there is a renderer, and writes page and JSON.
    ///
    /// # Errors
    /// The file that cannot be written.
    pub fn report(
        self,
        renderer: Option<&dyn FigureRenderer>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Evaluated, LabError> {
        let bound = self.all.bind(renderer, warn);
        results::text(
            &bound.folder.join("report.html"),
            &report::evaluation(&bound.book, &self.control, self.partial),
        )?;
        results::json_file(&bound.folder.join(FILE), &summary(&bound.book, &self.control))?;
        bound.complete()?;
        let Bound { book, folder, .. } = bound;
        Ok(Evaluated { control: self.control, book, folder, partial: self.partial })
    }
}

impl Evaluated {
    /// The content of `evaluation.json`.
    #[must_use]
    pub fn summary(&self) -> Value {
        summary(&self.book, &self.control)
    }
}

/// The cases that are asked for.
pub(crate) fn opened(request: &Request) -> Result<Vec<PaperStudies>, LabError> {
    let papers = match &request.cases {
        Some(dir) => library::folder(dir)?,
        None => vec![library::evaluation()?],
    };
    chosen(papers, &request.names)
}

/// Reads a control and has the simulator check it.
pub(crate) fn checked<R: CellRunner>(text: &str, runner: &R) -> Result<Raw, LabError> {
    let value = control::read(text)?;
    let path = "flows.own.cc".to_owned();
    let setting = Setting { path, value: value.clone(), origin: "control".to_owned() };
    let tried = runner.resolve(&Raw::String("preset:geo-today".to_owned()), Path::new(""), &[setting]);
    tried.map_err(|p| LabError::Control { control: text.to_owned(), message: p.message })?;
    Ok(value)
}

/// The first combination of a case with its first seed, recorded as event logs need it.
fn example(plan: &Plan) -> Case {
    let mut scenario = plan.scenarios[plan.grid[0][0]].scenario.clone();
    let seed = plan.file.study.seeds.first;
    scenario.title = format!("{}: {}", plan.file.study.title, plan.label(0));
    scenario.seed = seed;
    scenario.record.sample.get_or_insert(SAMPLE);
    scenario.record.series.extend([Series::InFlight, Series::Srtt]);
    scenario.record.series.sort_unstable();
    scenario.record.series.dedup();
    Case { choice: Vec::new(), scenario, seed }
}

/// Keeps only the named cases, or all without names.
fn chosen(mut papers: Vec<PaperStudies>, names: &[String]) -> Result<Vec<PaperStudies>, LabError> {
    for name in names {
        let known: Vec<&str> = papers.iter().flat_map(|s| &s.studies).map(|(n, _)| n.as_str()).collect();
        if !known.contains(&name.as_str()) {
            let (name, known) = (name.clone(), known.join(", "));
            return Err(LabError::NoSuch { name, what: "case", known });
        }
    }
    if !names.is_empty() {
        papers.iter_mut().for_each(|s| s.studies.retain(|(n, _)| names.contains(n)));
    }
    Ok(papers)
}

fn summary(book: &Book, control: &str) -> Value {
    let all: Vec<_> = book.chapters.iter().flat_map(requirements).collect();
    let count = |j: Judgement| all.iter().filter(|r| r.judgement == j).count();
    let failed = |c: &Chapter| {
        let one = |e: &skyhaul_study::evaluation::Evaluation| json!({ "case": e.name, "cells": e.failed });
        c.evaluations().filter(|e| !e.failed.is_empty()).map(one).collect::<Vec<_>>()
    };
    let case = |c: &Chapter| {
        let one = |e: &skyhaul_study::evaluation::Evaluation| {
            let anchor = format!("{}--{}", c.name, e.name);
            json!({ "name": e.name, "title": e.title, "provenance": e.provenance, "anchor": anchor })
        };
        c.evaluations().map(one).collect::<Vec<_>>()
    };
    let refused = |(case, why): (String, String)| json!({ "case": case, "why": why });
    json!({
        "schema": SCHEMA,
        "control": control,
        "version": book.version,
        "engine": book.engine,
        "profile": book.profile,
        "document": book.chapters.first().map(|c| &c.paper.title),
        "counts": {
            "met": count(Judgement::Met),
            "not_met": count(Judgement::NotMet),
            "undecided": count(Judgement::Undecided),
            "failed": count(Judgement::Failed),
            "not_measured": count(Judgement::NotMeasured),
        },
        "overview": book.chapters.first().map(sections::json),
        "headlines": book.chapters.iter().flat_map(sections::headlines).collect::<Vec<_>>(),
        "requirements": all.iter().map(skyhaul_study::requirement::Requirement::json).collect::<Vec<_>>(),
        "cases": book.chapters.iter().flat_map(case).collect::<Vec<_>>(),
        "refused": book.refused().into_iter().map(refused).collect::<Vec<_>>(),
        "failed_cells": book.chapters.iter().flat_map(failed).collect::<Vec<_>>(),
    })
}

/// A line per requirement that was asked for, and every claim that does not hold, with the cases that contradict it.
#[must_use]
pub fn shown(e: &Evaluated) -> String {
    let book = &e.book;
    let mut out = format!(
        "Evaluation of {} · profile {} · Skyhaul {} · engine {}\n\n",
        e.control,
        book.profile.word(),
        book.version,
        book.engine
    );
    for c in &book.chapters {
        let (not_asked, all): (Vec<_>, Vec<_>) =
            requirements(c).into_iter().partition(|r| e.partial && r.judgement == Judgement::NotMeasured);
        let mut grid =
            Grid::new(&["§", "requirement", "verdict", "claims", "parts not measured"]).left(1).left(2);
        for r in &all {
            grid.row(vec![
                r.row.id.clone(),
                r.row.says.clone(),
                r.judgement.word().to_owned(),
                r.answers.len().to_string(),
                r.open.len().to_string(),
            ]);
        }
        out.push_str(&grid.lines(0));
        if !not_asked.is_empty() {
            let _ = writeln!(out, "Requirements that were not asked for: {}", not_asked.len());
        }
        for a in all.iter().flat_map(|r| &r.answers) {
            if !matches!(a.claim.verdict(), Verdict::Holds | Verdict::NotInProfile) {
                answer(&mut out, a);
            }
        }
        out.push('\n');
    }
    for (case, why) in book.refused() {
        let _ = writeln!(out, "\n{case} could not be run: {why}");
    }
    out
}

/// A claim that does not hold, and its cases.
fn answer(out: &mut String, a: &Answer<'_>) {
    let verdict = a.claim.verdict();
    let (case, id, word, says) = (a.case, &a.claim.id, verdict.word_for_control(), &a.claim.says);
    let _ = write!(out, "\n{case}  {id}  {word}: {says}");
    let detail = verdict.detail();
    if !detail.is_empty() {
        let _ = write!(out, " ({detail})");
    }
    if let Some(metric) = &a.claim.metric {
        let _ = write!(out, "\n    {metric}");
    }
    let cases = &a.claim.outcomes[0].cases;
    let (hold, rest): (Vec<_>, Vec<_>) = cases.iter().partition(|c| c.verdict == Verdict::Holds);
    for c in &rest {
        let parts = [c.case.as_str(), c.ours.as_str(), c.verdict.word_for_control()];
        let line = parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(": ");
        let _ = write!(out, "\n    {line}");
    }
    if !hold.is_empty() {
        let _ = write!(out, "\n    cases that hold: {}", hold.len());
    }
}
