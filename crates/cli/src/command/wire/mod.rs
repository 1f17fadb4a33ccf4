//! `skyhaul wire`: the transport against real programs.

mod datagrams;
mod document;
mod exporter;
mod figures;
mod send;
mod serve;
mod settings;
mod show;

use crate::args::WireCommand;
use crate::stop::Stop;

pub(crate) fn run(command: &WireCommand) -> Result<(), Stop> {
    match command {
        WireCommand::Serve(args) => serve::run(args),
        WireCommand::Send(args) => send::run(args),
    }
}
