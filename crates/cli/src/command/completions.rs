//! `skyhaul completions`.

use crate::args::{Cli, CompletionsArgs};
use crate::output::print;
use crate::stop::Stop;
use clap::CommandFactory as _;

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Stop> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "skyhaul", &mut script);
    print(&String::from_utf8_lossy(&script))
}
