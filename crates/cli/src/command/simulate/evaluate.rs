//! `skyhaul evaluate`.

use crate::args::{EvaluateArgs, jobs};
use crate::command::simulate::progress::{BatchProgress, Runs};
use crate::interrupt;
use crate::output::{print, warn};
use crate::stop::Stop;
use skyhaul_cc::Controls;
use skyhaul_lab::LabError;
use skyhaul_lab::engine::simulator;
use skyhaul_lab::evaluate::{Evaluated, Evaluating, Request, shown};
use skyhaul_lab::leaderboard::{self, Extent, Ranking};
use skyhaul_lab::reproduce::cache;
use skyhaul_lab::results::json_text;
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::leaderboard::Row;
use skyhaul_study::requirement::Judgement;
use std::fmt::Write as _;

pub(crate) fn run(args: &EvaluateArgs, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    let Some(control) = args.control.clone().filter(|_| !args.all) else { return all(args, renderer) };
    let request = Request {
        control,
        names: args.names.clone(),
        quick: args.batch.quick,
        cases: args.cases.clone(),
        seeds: args.batch.seeds,
        out: args.batch.out.clone(),
    };
    let all = Evaluating::begin(&request, simulator(), &mut warn)?;
    let cache = cache(args.batch.cells.cache.clone())?;
    interrupt::listen();
    let bar = BatchProgress::new();
    let options = super::run_options(jobs(args.batch.cells.jobs), &cache, &bar);
    let totals = all.run(simulator(), &options)?;
    if totals.interrupted {
        return Err(Stop::kept(totals.done, totals.cells, &cache));
    }
    if args.qlog {
        let stopped = |e: LabError| match e {
            LabError::Stopped => Stop::kept(totals.done, totals.cells, &cache),
            other => other.into(),
        };
        all.qlog(&Controls::default(), &Runs::new()).map_err(stopped)?;
    }
    let evaluated = all.report(renderer, &mut warn)?;
    if args.batch.json {
        print(&format!("{:#}\n", evaluated.summary()))?;
    } else {
        let mut out = shown(&evaluated);
        let _ = writeln!(out, "\nReport:  {}", evaluated.folder.join("report.html").display());
        print(&out)?;
    }
    if args.batch.check { judge(&evaluated) } else { Ok(()) }
}

/// Evaluates all controls and writes one table over them.
fn all(args: &EvaluateArgs, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    let request = leaderboard::Request {
        controls: args.controls.clone(),
        names: args.control.iter().chain(&args.names).cloned().collect(),
        quick: args.batch.quick,
        cases: args.cases.clone(),
        seeds: args.batch.seeds,
        with: args.with.clone(),
        out: args.batch.out.clone(),
    };
    let all = Ranking::begin(&request, simulator(), &mut warn)?;
    let cache = cache(args.batch.cells.cache.clone())?;
    let jobs = jobs(args.batch.cells.jobs);
    let extent = all.extent(Some(&cache));
    warn(&estimated(extent, jobs));
    interrupt::listen();
    let bar = BatchProgress::new();
    let options = super::run_options(jobs, &cache, &bar);
    let folder = all.folder().to_owned();
    let table = all.run(extent, simulator(), &options, renderer, &mut warn).map_err(|e| match e {
        LabError::StoppedCells { done, cells } => Stop::kept(done, cells, &cache),
        other => other.into(),
    })?;
    if args.batch.json {
        print(&json_text(&table))?;
    } else {
        let mut out = leaderboard::shown(&table);
        let _ = writeln!(out, "\nReport:  {}", folder.join("report.html").display());
        print(&out)?;
    }
    let unmet = |r: &Row| {
        [Judgement::NotMet, Judgement::Undecided, Judgement::Failed].iter().any(|j| r.count(*j) > 0)
    };
    if args.batch.check && table.rows.iter().any(unmet) { Err(Stop::Claim) } else { Ok(()) }
}

/// The cells of all controls and the time that they take, in words.
fn estimated(extent: Extent, jobs: usize) -> String {
    let Extent { controls, cells, cached } = extent;
    let time = |seconds: f64| {
        if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
    };
    let (processor, elapsed) = (extent.seconds(), extent.seconds() / jobs as f64);
    format!(
        "{controls} controls, {cells} cells, {cached} of them in the cache: about {} of processor time, {} with {jobs} \
         jobs",
        time(processor),
        time(elapsed)
    )
}

/// The status with `--check`. Without it a failed case is one of the results of a control, and the status is 0.
fn judge(evaluated: &Evaluated) -> Result<(), Stop> {
    let summary = evaluated.summary();
    let count = |key: &str| summary["counts"][key].as_u64().unwrap_or(0);
    match count("not_met") + count("undecided") + count("failed") {
        0 => Ok(()),
        _ => Err(Stop::Claim),
    }
}
