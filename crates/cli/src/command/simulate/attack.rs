//! `skyhaul attack`.

use crate::args::{AttackArgs, jobs};
use crate::command::simulate::progress::progress;
use crate::interrupt;
use crate::output::print;
use crate::stop::Stop;
use indicatif::ProgressBar;
use skyhaul_cc::Controls;
use skyhaul_lab::LabError;
use skyhaul_lab::attack::{BoundsSource, Request, SearchObserver, hunt};
use std::fmt::Write as _;

pub(crate) fn run(args: &AttackArgs) -> Result<(), Stop> {
    let (goal, budget) = args.parsed().map_err(LabError::from)?;
    let request = Request {
        control: args.control.clone(),
        goal,
        budget,
        bounds: args.bounds.clone().map_or(BoundsSource::BuiltIn, BoundsSource::File),
        seed: args.seed,
        jobs: jobs(args.jobs),
        out: args.out.clone(),
        controls: Controls::default(),
    };
    interrupt::listen();
    let found = hunt(&request, &Bar(progress(0)))?;
    if args.json {
        return print(&format!("{:#}\n", found.summary()));
    }
    let mut out = found.text();
    let _ = writeln!(out, "\nResults: {}", request.folder().display());
    print(&out)
}

/// Shows a search on the terminal; Ctrl-C stops it.
struct Bar(ProgressBar);

impl SearchObserver for Bar {
    fn case(&self, spent: u64, budget: u64, cases: usize, worst: Option<f64>) {
        self.0.set_length(budget);
        self.0.set_position(spent);
        let worst = worst.map_or_else(String::new, |w| format!(", worst {w:.3}"));
        self.0.set_message(format!("{cases} cases{worst}"));
    }
    fn confirm(&self) {
        self.0.set_message("fresh seeds");
    }
    fn end(&self) {
        self.0.finish_and_clear();
    }
    fn stopped(&self) -> bool {
        interrupt::requested()
    }
}
