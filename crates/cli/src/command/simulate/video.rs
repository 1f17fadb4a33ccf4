//! `skyhaul video`.

use crate::args::{VideoCommand, VideoFitArgs};
use crate::output::print;
use crate::stop::Stop;
use skyhaul_lab::film::{Mode, fit_movie, flow_name};

pub(crate) fn run(command: &VideoCommand) -> Result<(), Stop> {
    match command {
        VideoCommand::Fit(args) => fit(args),
    }
}

fn fit(args: &VideoFitArgs) -> Result<(), Stop> {
    let flow = flow_name(&args.flow).map_err(|why| Stop::bad(format!("--flow: {why}")))?;
    let mode = if args.coupled { Mode::Coupled } else { Mode::Independent };
    let fitted = fit_movie(&args.trace, mode)?;
    let text = if args.json { format!("{:#}\n", fitted.json()) } else { fitted.scenario(flow) };
    match &args.out {
        None => print(&text),
        Some(path) => std::fs::write(path, text).map_err(|e| Stop::write(path, &e)),
    }
}
