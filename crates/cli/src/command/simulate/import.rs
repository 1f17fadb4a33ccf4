//! `skyhaul import`.

use crate::args::{ErrantArgs, ImportCommand};
use crate::output::print;
use crate::stop::Stop;
use skyhaul_lab::errant;

pub(crate) fn run(command: &ImportCommand) -> Result<(), Stop> {
    match command {
        ImportCommand::Errant(args) => errant(args),
    }
}

fn errant(args: &ErrantArgs) -> Result<(), Stop> {
    let profiles = errant::read(&args.file)?;
    let text = match &args.profile {
        None => profiles.iter().map(|p| p.name() + "\n").collect(),
        Some(name) => errant::find(&args.file, &profiles, name)?.scenario(args.jitter),
    };
    match &args.out {
        None => print(&text),
        Some(path) => std::fs::write(path, text).map_err(|e| Stop::write(path, &e)),
    }
}
