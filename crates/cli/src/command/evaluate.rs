//! `skyhaul evaluate`.

use crate::args::{EvaluateArgs, jobs};
use crate::interrupt;
use crate::output::{print, warn};
use crate::progress::{BatchProgress, Runs};
use crate::stop::Stop;
use skyhaul_cc::Controls;
use skyhaul_lab::LabError;
use skyhaul_lab::engine::simulator;
use skyhaul_lab::evaluate::{Evaluated, Evaluating, Request, shown};
use skyhaul_lab::reproduce::cache;
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::run::RunOptions;
use std::fmt::Write as _;

pub(crate) fn run(args: &EvaluateArgs, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    let request = Request {
        control: args.control.clone(),
        names: args.names.clone(),
        quick: args.batch.quick,
        cases: args.cases.clone(),
        seeds: args.batch.seeds,
        out: args.batch.out.clone(),
    };
    let all = Evaluating::begin(&request, simulator(), &mut warn)?;
    let cache = cache(args.batch.cache.clone())?;
    interrupt::listen();
    let bar = BatchProgress::new();
    let options = RunOptions {
        jobs: jobs(args.batch.jobs),
        cache: Some(&cache),
        stop: Some(interrupt::flag()),
        progress: &bar,
    };
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

/// Cases that failed belong to the results of a control; only `--check` makes them a status.
fn judge(evaluated: &Evaluated) -> Result<(), Stop> {
    let summary = evaluated.summary();
    let count = |key: &str| summary["counts"][key].as_u64().unwrap_or(0);
    match count("not_met") + count("undecided") + count("failed") {
        0 => Ok(()),
        _ => Err(Stop::Claim),
    }
}
