//! One file per command.

mod completions;
#[cfg(target_os = "linux")]
mod doctor;
#[cfg(target_os = "linux")]
mod emulate;
#[cfg(target_os = "linux")]
mod evidence;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(target_os = "linux")]
mod kernel;
mod man;
#[cfg(target_os = "linux")]
mod metrics;
#[cfg(feature = "simulation")]
mod schema;
#[cfg(feature = "simulation")]
mod simulate;
#[cfg(target_os = "linux")]
mod wire;

use crate::args::Command;
use crate::stop::Stop;
use skyhaul_study::figure::FigureRenderer;
use std::ffi::OsString;

/// Runs a command; `own_command` is the command line that starts the program again.
pub(crate) fn run(
    command: &Command,
    #[cfg_attr(not(feature = "simulation"), expect(unused_variables))] renderer: Option<&dyn FigureRenderer>,
    own_command: &[OsString],
) -> Result<(), Stop> {
    match command {
        #[cfg(feature = "simulation")]
        Command::Simulate(command) => simulate::run(command, renderer, own_command),
        Command::Completions(args) => completions::run(args),
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
        Command::Man(args) => man::run(args),
        #[cfg(feature = "simulation")]
        Command::Schema(args) => schema::run(args),
        #[cfg(target_os = "linux")]
        Command::Wire(command) => wire::run(command),
    }
}
