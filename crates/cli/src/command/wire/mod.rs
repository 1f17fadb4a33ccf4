//! `skyhaul wire`: the transport against real programs.

#[cfg(target_os = "linux")]
mod datagrams;
#[cfg(target_os = "linux")]
mod document;
#[cfg(target_os = "linux")]
mod exporter;
#[cfg(target_os = "linux")]
mod figures;
#[cfg(target_os = "linux")]
mod send;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod settings;
#[cfg(target_os = "linux")]
mod show;

use crate::args::WireCommand;
use crate::stop::Stop;

#[cfg(target_os = "linux")]
pub(crate) fn run(command: &WireCommand) -> Result<(), Stop> {
    match command {
        WireCommand::Serve(args) => serve::run(args),
        WireCommand::Send(args) => send::run(args),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &WireCommand) -> Result<(), Stop> {
    Err(Stop::bad("skyhaul wire needs Linux: packets go through a TUN interface"))
}
