//! `skyhaul sweep`.

use super::study::{all_ran, finish_plan};
use crate::args::{SweepArgs, jobs};
use crate::interrupt;
use crate::output::{print, warn};
use crate::stop::Stop;
use skyhaul_lab::clock::Stopwatch;
use skyhaul_lab::lease::Lease;
use skyhaul_lab::{studies, sweep};
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::table::csv;
use std::fmt::Write as _;

pub(crate) fn run(args: &SweepArgs, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    let (sweep, settings) = sweep::parse(&args.scenario.scenario, &args.scenario.set, &args.metric)?;
    let mut file = sweep.study()?;
    for assignment in &settings {
        studies::set(&mut file, assignment)?;
    }
    file.study.seeds.first = args.seed.unwrap_or(file.study.seeds.first);
    file.study.seeds.count = args.seeds;
    file.max_cells = args.max_cells;
    interrupt::listen();
    let plan = sweep.plan(file)?;
    // An unsuitable results folder is refused before the runs, not after them.
    let lease = args.out.as_deref().map(Lease::take).transpose()?;
    let watch = Stopwatch::start();
    let e = finish_plan(&plan, args.cells.cache.clone(), jobs(args.cells.jobs))?;
    let mut out = match (args.scenario.json, args.csv) {
        (true, _) => format!("{:#}\n", e.summary()),
        (_, true) => csv(&e.cells),
        _ => studies::text(&e, |_| true),
    };
    if let Some(folder) = &args.out {
        let took = watch.elapsed().as_secs_f64();
        let written = studies::write(&e, folder, renderer, Some(took), &mut warn)?;
        lease.map_or(Ok(()), |l| l.finish(&written))?;
        if !args.scenario.json && !args.csv {
            let _ = writeln!(out, "\nResults: {}", folder.display());
        }
    }
    print(&out)?;
    all_ran(&e)
}
