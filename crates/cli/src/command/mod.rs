//! One file per command.

mod attack;
mod check;
mod compare;
mod completions;
mod demo;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod emulate;
mod evaluate;
#[cfg(target_os = "linux")]
mod evidence;
mod export;
#[cfg(target_os = "linux")]
mod gateway;
mod import;
#[cfg(target_os = "linux")]
mod kernel;
mod lab;
mod list;
mod man;
#[cfg(target_os = "linux")]
mod metrics;
mod new;
mod orbit;
mod presets;
mod reproduce;
mod run;
mod schema;
mod study;
mod sweep;
mod video;
#[cfg(target_os = "linux")]
mod wire;
mod worlds;

use crate::args::Command;
use crate::stop::Stop;
use skyhaul_study::figure::FigureRenderer;
use std::ffi::OsString;

/// Runs a command; `own_command` is the command line that starts the program again.
pub(crate) fn run(
    command: &Command,
    renderer: Option<&dyn FigureRenderer>,
    own_command: &[OsString],
) -> Result<(), Stop> {
    match command {
        Command::Attack(args) => attack::run(args),
        Command::Check(args) => check::run(args, renderer),
        Command::Compare(args) => compare::run(args),
        Command::Completions(args) => completions::run(args),
        Command::Demo(args) => demo::run(args, renderer),
        #[cfg(target_os = "linux")]
        Command::Doctor(args) => doctor::run(args),
        #[cfg(target_os = "linux")]
        Command::Emulate(args) => emulate::run(args, own_command),
        #[cfg(target_os = "linux")]
        Command::EnclosureInit(args) => emulate::init(&args.arguments),
        #[cfg(target_os = "linux")]
        Command::Gateway(command) => gateway::run(command, own_command),
        #[cfg(target_os = "linux")]
        Command::Kernel(command) => kernel::run(command),
        Command::Orbit(args) => orbit::run(args),
        Command::Reproduce(args) => reproduce::run(args, renderer),
        Command::Evaluate(args) => evaluate::run(args, renderer),
        Command::Export(args) => export::run(args),
        Command::Import(command) => import::run(command),
        Command::Lab(args) => lab::run(args, own_command),
        Command::List(args) => list::run(args),
        Command::Man(args) => man::run(args),
        Command::New(args) => new::run(args),
        Command::Presets(args) => presets::run(args),
        Command::Run(args) => run::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Sweep(args) => sweep::run(args, renderer),
        Command::Study(command) => study::run(command, renderer),
        Command::Video(command) => video::run(command),
        #[cfg(target_os = "linux")]
        Command::Wire(command) => wire::run(command),
    }
}
