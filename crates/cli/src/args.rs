//! The command line.

mod wire;

pub(crate) use wire::*;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// TCP over satellite paths, simulated: scenarios, and studies that compare with what papers state.
#[derive(Debug, Parser)]
#[command(name = "skyhaul", version, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "First figure in a minute: skyhaul demo")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Goodput of TCP-Peach against loss, beside what the paper states, with picture and page.
    #[command(after_help = "Example:\n  skyhaul demo --out results/demo")]
    Demo(DemoArgs),
    /// Show what follows from a scenario (BDP, RTT, queue in time), and what looks wrong.
    #[command(after_help = "Example:\n  skyhaul check preset:peach-geo --set links.sat.error.p=1e-2")]
    Check(CheckArgs),
    /// Compare two results directories: which metrics differ by more than chance, which verdicts changed.
    #[command(after_help = "Example:\n  skyhaul compare results/before results/after")]
    Compare(CompareArgs),
    /// Run a scenario.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Studies: scenarios × axes × seeds, with claims and figures.
    #[command(subcommand)]
    Study(StudyCommand),
    /// Run all studies and write one report over them: which claims of which paper hold.
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce(ReproduceArgs),
    /// Write the tables of a results directory in another format.
    #[command(after_help = "Example:\n  skyhaul export results/geo --format csv --out results/geo-csv")]
    Export(ExportArgs),
    /// The same transport on the wire (Linux): a TCP stack of our own over a TUN interface, with real programs.
    #[command(subcommand)]
    Wire(WireCommand),
    /// Print the JSON Schema of a kind of file.
    #[command(after_help = "Example:\n  skyhaul schema scenario > scenario.schema.json")]
    Schema(SchemaArgs),
}

const RUN_EXAMPLES: &str = "Examples:
  skyhaul run preset:peach-geo
  skyhaul run geo.toml --set links.sat.error.p=1e-2 --set flows.bulk.cc=sack,peach --out results/geo
  skyhaul run geo.toml --pcap trace.pcapng --pcap-at sender --pcap-flow bulk[0]";

#[derive(Args, Debug)]
pub(crate) struct Scenario {
    /// A scenario file, or preset:NAME.
    #[arg(value_name = "FILE|preset:NAME")]
    pub(crate) scenario: String,
    /// Change a key of the scenario; may be repeated. The value is TOML, quotes around words may be left out.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Results of run, study or reproduce.
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// Results of the same kind.
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
    /// Compare results of different engines too.
    #[arg(long)]
    pub(crate) across_versions: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Several values with commas in --set run every combination.
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// Seed of the random streams, instead of the scenario's.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: Option<u64>,
    /// Write a results directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Runs at the same time; by default one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Compute the hash of all events, which is equal exactly for equal runs.
    #[arg(long)]
    pub(crate) digest: bool,
    /// Write the packets as a capture file (pcapng), as Wireshark reads it; the cause of a loss is its comment.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Where packets are captured: sender, receiver, links.NAME, links.NAME.forward; may be repeated [default: sender].
    #[arg(long, value_name = "PLACE", requires = "pcap")]
    pub(crate) pcap_at: Vec<String>,
    /// Whose packets are captured: a group, or GROUP[INDEX]; may be repeated [default: all].
    #[arg(long, value_name = "FLOW", requires = "pcap")]
    pub(crate) pcap_flow: Vec<String>,
    /// Bytes kept of each packet; headers are kept in any case. With all of them Wireshark can verify the checksums.
    #[arg(long, value_name = "BYTES", requires = "pcap", default_value_t = 100)]
    pub(crate) pcap_snaplen: u16,
}

/// A file can express no larger seed.
const MAX_SEED: u64 = i64::MAX as u64;

#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// Run what is missing of a study and show its metrics and verdicts.
    #[command(
        after_help = "Example:\n  skyhaul study run studies/peach-2001/fig11.toml --seeds 5 --out results/fig11"
    )]
    Run(StudyArgs),
    /// As run, and end with status 1 if a claim differs or is undecided, 2 if one could not be evaluated.
    #[command(after_help = "Example:\n  skyhaul study check studies/peach-2001/fig11.toml")]
    Check(StudyArgs),
    /// Run what is missing of a study and write its report: figures and one HTML page.
    #[command(
        after_help = "Example:\n  skyhaul study report studies/peach-2001/fig11.toml --out results/fig11"
    )]
    Report(StudyArgs),
}

#[derive(Args, Debug)]
pub(crate) struct StudyArgs {
    /// A study file, or the name of one that comes with the program.
    #[arg(value_name = "FILE|NAME")]
    pub(crate) study: String,
    /// Change a key of the study's scenario; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// First seed, instead of the study's.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: Option<u64>,
    /// How many seeds, instead of the study's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: Option<u32>,
    /// Runs at the same time; by default one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Where results and report go.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Where finished cells are kept; by default $SKYHAUL_CACHE, or skyhaul in the user's folder of caches.
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

const REPRODUCE_EXAMPLES: &str = "Examples:
  skyhaul reproduce --quick
  skyhaul reproduce peach-2001 geo-today/alone --out results/mine
  skyhaul reproduce --studies my-studies --check";

#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// Papers (all their studies) and studies, such as peach-2001 or peach-2001/fig11; by default all.
    #[arg(value_name = "PAPER|STUDY")]
    pub(crate) names: Vec<String>,
    /// The quick profile: fewer seeds, shorter runs, no other readings, as each study says.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Studies of this folder (PAPER/STUDY.toml) instead of those that come with the program.
    #[arg(long, value_name = "DIR")]
    pub(crate) studies: Option<PathBuf>,
    /// How many seeds, instead of those of the studies.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: Option<u32>,
    /// Runs at the same time; by default one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Where the report and the results go; by default results/reproduce, or results/reproduce-quick.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Where finished cells are kept; by default $SKYHAUL_CACHE, or skyhaul in the user's folder of caches.
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// End with status 1 if a claim differs or is undecided, 2 if one could not be evaluated.
    #[arg(long)]
    pub(crate) check: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Where picture, page and tables go.
    #[arg(long, value_name = "DIR", default_value = "results/demo")]
    pub(crate) out: PathBuf,
    /// Runs at the same time; by default one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// A results directory of `run --out` or of a study.
    #[arg(value_name = "DIR")]
    pub(crate) results: PathBuf,
    /// Format of the files.
    #[arg(long)]
    pub(crate) format: ExportFormat,
    /// Where the files go; by default beside the tables.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Whose events qlog holds: a group, or GROUP[INDEX]; may be repeated [default: all].
    #[arg(long, value_name = "FLOW")]
    pub(crate) flow: Vec<String>,
}

/// What a results directory can become.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A file per table (RFC 4180), units in the names of the columns.
    Csv,
    /// A data file of flent (version 4) per run.
    Flent,
    /// The layout of `iperf3 -J`, a file per run and group of flows.
    Iperf3,
    /// A log of events (JSON-SEQ) per flow; runs the scenario again.
    Qlog,
    /// The tables as they are, a Parquet file each.
    Parquet,
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// Which file.
    pub(crate) kind: SchemaKind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaKind {
    /// What to run.
    Scenario,
    /// What to vary, to measure and to claim.
    Study,
    /// What belongs to a folder of studies.
    Paper,
}
