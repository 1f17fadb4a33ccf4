//! One file per command.

mod check;
mod run;
mod schema;

use crate::Renderer;
use crate::args::Command;
use crate::stop::Stop;

pub(crate) fn run(command: Command, _renderer: Option<&dyn Renderer>) -> Result<(), Stop> {
    match command {
        Command::Check(args) => check::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Demo(_) | Command::Study(_) => Err(Stop::bad("not here yet")),
    }
}
