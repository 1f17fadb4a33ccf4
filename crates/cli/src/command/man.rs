//! `skyhaul man`: the pages that packages install.

use crate::args::{Cli, ManArgs};
use crate::stop::Stop;
use clap::CommandFactory as _;

pub(crate) fn run(args: &ManArgs) -> Result<(), Stop> {
    let write = || {
        std::fs::create_dir_all(&args.folder)?;
        clap_mangen::generate_to(Cli::command(), &args.folder)
    };
    write().map_err(|e| Stop::write(&args.folder, &e))
}
