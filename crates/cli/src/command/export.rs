//! `skyhaul export`.

use crate::args::{ExportArgs, ExportFormat};
use crate::stop::Stop;
use crate::{export, print};

pub(crate) fn run(args: &ExportArgs) -> Result<(), Stop> {
    let out = args.out.clone().unwrap_or_else(|| args.results.clone());
    let written = match args.format {
        ExportFormat::Csv => export::csv(&args.results, &out)?,
    };
    print(&written.iter().map(|p| format!("{}\n", p.display())).collect::<String>())
}
