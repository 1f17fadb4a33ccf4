//! `skyhaul export`.

use crate::args::{ExportArgs, ExportFormat};
use crate::command::simulate::progress::Runs;
use crate::output::print;
use crate::stop::Stop;
use skyhaul_lab::export;

pub(crate) fn run(args: &ExportArgs) -> Result<(), Stop> {
    let out = args.out.clone().unwrap_or_else(|| args.results.clone());
    if !args.flow.is_empty() && !matches!(args.format, ExportFormat::Qlog) {
        return Err(Stop::bad("--flow applies only to --format qlog: leave it out"));
    }
    let written = match args.format {
        ExportFormat::Csv => export::csv(&args.results, &out)?,
        ExportFormat::Flent => export::flent(&args.results, &out)?,
        ExportFormat::Iperf3 => export::iperf3::iperf3(&args.results, &out)?,
        ExportFormat::Mahimahi => export::mahimahi(&args.results, &out)?,
        ExportFormat::Qlog => export::qlog(&args.results, &out, &args.flow, &Runs::new())?,
        ExportFormat::Parquet => export::parquet(&args.results, &out)?,
    };
    print(&written.iter().map(|p| format!("{}\n", p.display())).collect::<String>())
}
