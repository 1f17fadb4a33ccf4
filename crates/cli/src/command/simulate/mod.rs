//! The commands of the simulator, one file per command.

mod attack;
mod check;
mod compare;
mod demo;
mod evaluate;
mod export;
mod import;
mod lab;
mod list;
mod new;
mod orbit;
mod presets;
mod progress;
mod reproduce;
mod run;
mod study;
mod sweep;
mod video;
mod worlds;

use crate::args::SimulateCommand;
use crate::interrupt;
use crate::stop::Stop;
use skyhaul_study::cache::Cache;
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::run::{Progress, RunOptions};
use std::ffi::OsString;

/// How a command runs cells: it stops when a signal has come.
fn run_options<'a>(jobs: usize, cache: &'a Cache, progress: &'a dyn Progress) -> RunOptions<'a> {
    RunOptions { jobs, cache: Some(cache), stop: Some(interrupt::flag()), progress }
}

/// Runs a command; `own_command` is the command line that starts the program again.
pub(super) fn run(
    command: &SimulateCommand,
    renderer: Option<&dyn FigureRenderer>,
    own_command: &[OsString],
) -> Result<(), Stop> {
    match command {
        SimulateCommand::Attack(args) => attack::run(args),
        SimulateCommand::Check(args) => check::run(args, renderer),
        SimulateCommand::Compare(args) => compare::run(args),
        SimulateCommand::Demo(args) => demo::run(args, renderer),
        SimulateCommand::Orbit(args) => orbit::run(args),
        SimulateCommand::Reproduce(args) => reproduce::run(args, renderer),
        SimulateCommand::Evaluate(args) => evaluate::run(args, renderer),
        SimulateCommand::Export(args) => export::run(args),
        SimulateCommand::Import(command) => import::run(command),
        SimulateCommand::Lab(args) => lab::run(args, own_command),
        SimulateCommand::List(args) => list::run(args),
        SimulateCommand::New(args) => new::run(args),
        SimulateCommand::Presets(args) => presets::run(args),
        SimulateCommand::Run(args) => run::run(args),
        SimulateCommand::Sweep(args) => sweep::run(args, renderer),
        SimulateCommand::Study(command) => study::run(command, renderer),
        SimulateCommand::Video(command) => video::run(command),
    }
}
