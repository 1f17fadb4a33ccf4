//! `skyhaul study run`, `check`, `report` and `fit`.

use crate::args::{StudyArgs, StudyCommand, jobs};
use crate::command::simulate::progress::Bar;
use crate::interrupt;
use crate::output::{print, warn};
use crate::stop::Stop;
use skyhaul_lab::clock::Stopwatch;
use skyhaul_lab::engine::simulator;
use skyhaul_lab::lease::Lease;
use skyhaul_lab::{LabError, readings, studies};
use skyhaul_study::cache::Cache;
use skyhaul_study::evaluation::{Counts, Evaluation, evaluate};
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::fit::{Ending, fit};
use skyhaul_study::model::StudyFile;
use skyhaul_study::plan::Plan;
use skyhaul_study::run::run as run_cells;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

pub(crate) fn run(command: &StudyCommand, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    let (StudyCommand::Run(args)
    | StudyCommand::Check(args)
    | StudyCommand::Report(args)
    | StudyCommand::Fit(args)) = command;
    let mut file = studies::open(&args.study)?;
    for assignment in &args.set {
        studies::set(&mut file, assignment)?;
    }
    if let Some(first) = args.seed {
        file.study.seeds.first = first;
    }
    if let Some(count) = args.seeds {
        file.study.seeds.count = count;
        file.study.fit.iter_mut().for_each(|fit| fit.seeds = Some(count));
    }
    file.max_cells = args.max_cells;
    let folder = match command {
        StudyCommand::Report(_) if args.out.is_none() => Some(PathBuf::from("results").join(file.stem())),
        _ => args.out.clone(),
    };
    // An unsuitable results folder is refused before the runs, not after them.
    let lease = folder.as_deref().map(Lease::take).transpose()?;
    if matches!(command, StudyCommand::Fit(_)) {
        return search(file, args, folder.as_deref().zip(lease));
    }
    let watch = Stopwatch::start();
    let e = finish(file, args.cells.cache.clone(), jobs(args.cells.jobs))?;
    let mut out = if args.json { format!("{:#}\n", e.summary()) } else { studies::text(&e, |_| true) };
    if let Some(folder) = &folder {
        let took = watch.elapsed().as_secs_f64();
        let written = studies::write(&e, folder, renderer, Some(took), &mut warn)?;
        lease.map_or(Ok(()), |l| l.finish(&written))?;
        if !args.json {
            let _ = writeln!(out, "\nResults: {}", folder.display());
            let _ = writeln!(out, "Report:  {}", folder.join("report.html").display());
        }
    }
    print(&out)?;
    all_ran(&e)?;
    match command {
        StudyCommand::Check(_) => judge(e.counts()),
        _ => Ok(()),
    }
}

/// Searches the readings of a study, and writes what it found into the folder `out`.
fn search(file: StudyFile, args: &StudyArgs, out: Option<(&Path, Lease)>) -> Result<(), Stop> {
    interrupt::listen();
    let cache = opened(args.cells.cache.clone())?;
    let bar = Bar::new();
    let options = super::run_options(jobs(args.cells.jobs), &cache, &bar);
    let found = match fit(simulator(), file, &options)? {
        Ending::Complete(found) => found,
        Ending::Stopped { cells } => return Err(Stop::searching(cells, &cache)),
    };
    let text = readings::text(&found);
    let mut shown = if args.json { format!("{:#}\n", found.summary()) } else { text.clone() };
    if let Some((folder, lease)) = out {
        lease.finish(&readings::write(&found, &text, folder)?)?;
        if !args.json {
            let _ = writeln!(shown, "\nResults: {}", folder.display());
        }
    }
    print(&shown)?;
    match found.failed {
        0 => Ok(()),
        1 => Err(Stop::Bad("a cell failed".to_owned())),
        n => Err(Stop::Bad(format!("{n} cells failed"))),
    }
}

/// The cache. Its folder is created before the work, so that a folder that cannot be written is refused at once.
fn opened(cache: Option<PathBuf>) -> Result<Cache, Stop> {
    let cache = Cache::new(cache.unwrap_or_else(Cache::default_dir));
    std::fs::create_dir_all(cache.dir()).map_err(LabError::write(cache.dir()))?;
    Ok(cache)
}

/// An error if a claim does not hold or could not be evaluated.
pub(crate) fn judge(counts: Counts) -> Result<(), Stop> {
    match counts.not_evaluable {
        0 if counts.differs + counts.undecided > 0 => Err(Stop::Claim),
        0 => Ok(()),
        1 => Err(Stop::Bad("a claim could not be evaluated".to_owned())),
        n => Err(Stop::Bad(format!("{n} claims could not be evaluated"))),
    }
}

/// Runs the missing cells and evaluates the study.
pub(crate) fn finish(file: StudyFile, cache: Option<PathBuf>, jobs: usize) -> Result<Evaluation, Stop> {
    interrupt::listen();
    finish_plan(&studies::plan(file)?, cache, jobs)
}

/// Runs the missing cells of a planned study and evaluates it. The caller has installed the signal handlers.
pub(crate) fn finish_plan(plan: &Plan, cache: Option<PathBuf>, jobs: usize) -> Result<Evaluation, Stop> {
    let cache = opened(cache)?;
    let bar = Bar::new();
    let options = super::run_options(jobs, &cache, &bar);
    let cells = run_cells(simulator(), plan, &options)?;
    if cells.interrupted {
        let done = cells.observed.iter().filter(|o| o.is_some()).count();
        return Err(Stop::kept(done, cells.observed.len(), &cache));
    }
    Ok(evaluate(plan, &cells)?)
}

/// An error if some cells of a study failed.
pub(crate) fn all_ran(e: &Evaluation) -> Result<(), Stop> {
    let Some(first) = e.failed.first() else { return Ok(()) };
    let (n, all) = (e.failed.len(), e.provenance.cells);
    let (cell, seed, why) = (&first.cell, first.seed, &first.message);
    Err(Stop::Bad(format!("{n} of {all} cells failed; the first, {cell} (seed {seed}): {why}")))
}
