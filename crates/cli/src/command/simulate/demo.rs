//! `skyhaul demo`: a small study of TCP-Peach.

use super::study;
use crate::args::{DemoArgs, jobs};
use crate::output::{print, warn};
use crate::stop::Stop;
use skyhaul_lab::clock::Stopwatch;
use skyhaul_lab::lease::Lease;
use skyhaul_lab::studies;
use skyhaul_study::figure::FigureRenderer;
use std::fmt::Write as _;

/// Largest number of seeds: the study has more, which take longer.
const SEEDS: u32 = 5;
/// Metrics shown on the terminal; the page has all.
const SHOWN: [&str; 3] = ["Goodput", "Gain", "Dummies"];

pub(crate) fn run(args: &DemoArgs, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    let mut file = studies::open("peach-2001/fig11")?;
    file.study.seeds.count = file.study.seeds.count.min(SEEDS);
    if !args.full {
        file.study.reading.clear();
    }
    let lease = Lease::take(&args.out)?;
    let watch = Stopwatch::start();
    // Uses the common cache, so that later runs of this study find its cells.
    let e = study::finish(file, None, jobs(args.jobs))?;
    let took = watch.elapsed().as_secs_f64();
    let written = studies::write(&e, &args.out, renderer, Some(took), &mut warn)?;
    lease.finish(&written)?;
    if args.json {
        print(&format!("{:#}\n", e.summary()))?;
        return study::all_ran(&e);
    }
    // Results of other readings of the paper are on the page only.
    let mut brief = e.clone();
    brief.claims.iter_mut().for_each(|c| c.outcomes.truncate(1));
    let mut out = studies::text(&brief, |m| SHOWN.iter().any(|s| m.starts_with(s)));
    let files =
        |suffix: &'static str| written.iter().filter(move |p| p.extension().is_some_and(|x| x == suffix));
    if e.readings.len() > 1 {
        let _ = writeln!(
            out,
            "\nThe page also shows {} alternative readings of the paper.",
            e.readings.len() - 1
        );
    }
    if !args.full {
        out.push_str("\nThe paper allows other readings: skyhaul demo --full runs them too.\n");
    }
    let _ = writeln!(out, "\n{} cells in {took:.1} s", e.provenance.cells);
    for picture in files("png").chain(files("svg")) {
        let _ = writeln!(out, "Picture: {}", picture.display());
    }
    for page in files("html") {
        let _ = writeln!(out, "Page:    {}", page.display());
    }
    let _ = writeln!(out, "Tables:  {}", args.out.display());
    print(&out)?;
    study::all_ran(&e)
}
