//! `skyhaul reproduce`.

use crate::args::{ReproduceArgs, jobs};
use crate::command::simulate::progress::BatchProgress;
use crate::interrupt;
use crate::output::{print, warn};
use crate::stop::Stop;
use skyhaul_lab::reproduce::{Reproduction, Request, cache, shown};
use skyhaul_study::book::Book;
use skyhaul_study::figure::FigureRenderer;
use std::fmt::Write as _;

pub(crate) fn run(args: &ReproduceArgs, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    let request = Request {
        names: args.names.clone(),
        quick: args.batch.quick,
        studies: args.studies.clone(),
        seeds: args.batch.seeds,
        max_cells: args.max_cells,
        out: args.batch.out.clone(),
    };
    let all = Reproduction::begin(&request, &mut warn)?;
    let cache = cache(args.batch.cells.cache.clone())?;
    interrupt::listen();
    let bar = BatchProgress::new();
    let options = super::run_options(jobs(args.batch.cells.jobs), &cache, &bar);
    let totals = all.run(&options)?;
    if totals.interrupted {
        return Err(Stop::kept(totals.done, totals.cells, &cache));
    }
    let page = all.folder().join("report.html");
    let book = all.report(renderer, &mut warn)?;
    if args.batch.json {
        print(&format!("{:#}\n", book.summary()))?;
    } else {
        let mut out = shown(&book);
        let _ = writeln!(out, "\nReport:  {}", page.display());
        print(&out)?;
    }
    ending(&book, args.batch.check)
}

/// The end of the command: an error if studies or cells have no results, and with `--check` if a claim does not hold.
fn ending(book: &Book, check: bool) -> Result<(), Stop> {
    if let Some((study, why)) = book.refused().first() {
        return Err(Stop::Bad(match book.refused().len() {
            1 => format!("{study} could not be run: {why}"),
            n => format!("{n} studies could not be run; the first, {study}: {why}"),
        }));
    }
    if book.failed_cells() > 0 {
        return Err(Stop::Bad(format!("{} cells failed; the report names them", book.failed_cells())));
    }
    if check { super::study::judge(book.tally().claims()) } else { Ok(()) }
}
