//! One file per command.

mod check;
mod compare;
mod demo;
mod export;
mod reproduce;
mod run;
mod schema;
mod study;
mod wire;

use crate::args::Command;
use crate::stop::Stop;
use skyhaul_study::figure::FigureRenderer;

pub(crate) fn run(command: &Command, renderer: Option<&dyn FigureRenderer>) -> Result<(), Stop> {
    match command {
        Command::Check(args) => check::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Demo(args) => demo::run(args, renderer),
        Command::Reproduce(args) => reproduce::run(args, renderer),
        Command::Export(args) => export::run(args),
        Command::Run(args) => run::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Study(command) => study::run(command, renderer),
        Command::Wire(command) => wire::run(command),
    }
}
