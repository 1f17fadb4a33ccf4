//! The commands of the simulator.

use super::{ATTACK_EXAMPLES, AttackArgs, ListArgs, MAX_SEED, NewArgs, Scenario};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The commands of the simulator: its scenarios, runs, studies, and what is made of their results.
#[derive(Debug, Subcommand)]
pub(crate) enum SimulateCommand {
    /// Reproduce one figure of a paper: the goodput of TCP-Peach against the loss rate.
    #[command(after_help = "Example:\n  skyhaul demo --out results/demo")]
    Demo(DemoArgs),
    /// Create a scenario or a study file with comments, ready to run.
    #[command(
        after_help = "Examples:\n  skyhaul new scenario geo.toml\n  skyhaul new study question.toml\n  skyhaul new scenario | skyhaul check -"
    )]
    New(NewArgs),
    /// List the built-in scenarios, or print one.
    #[command(after_help = "Examples:\n  skyhaul presets\n  skyhaul presets geo-today > mine.toml")]
    Presets(PresetsArgs),
    /// List presets, studies, congestion controls, or the metrics of a run.
    #[command(after_help = "Examples:\n  skyhaul list controls\n  skyhaul list metrics --json")]
    List(ListArgs),
    /// Show what a scenario implies (RTT, BDP, queueing delay), and warn of likely mistakes.
    #[command(
        after_help = "Examples:\n  skyhaul check preset:peach-geo --set links.sat.error.p=1e-2\n  skyhaul check preset:leo-walker-550 --figure passes.svg"
    )]
    Check(CheckArgs),
    /// Show which satellites serve a link of a scenario, or print its delay over time as CSV.
    #[command(after_help = "Example:\n  skyhaul orbit preset:leo-walker-550 --csv > delay.csv")]
    Orbit(OrbitArgs),
    /// Run a scenario.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Compare two results directories: metrics that differ significantly, and verdicts that changed. With --worlds, run a
    /// scenario in the simulator and over emulated links, side by side.
    #[command(
        after_help = "Examples:\n  skyhaul compare results/before results/after\n  skyhaul compare geo.toml --worlds sim,wire,kernel:reno,kernel:cubic,kernel:bbr --out results/worlds"
    )]
    Compare(CompareArgs),
    /// Run a scenario with every combination of values of some keys, and every seed: a table of means with intervals.
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(SweepArgs),
    /// Run studies: scenarios × axes × seeds, with claims and figures.
    #[command(subcommand)]
    Study(StudyCommand),
    /// Run all studies and write one report: which claims of which paper hold.
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce(ReproduceArgs),
    /// Evaluate a congestion control as RFC 9743 asks of proposals: one page with a verdict per requirement.
    #[command(after_help = EVALUATE_EXAMPLES)]
    Evaluate(EvaluateArgs),
    /// Search for the scenario in which a congestion control does worst.
    #[command(after_help = ATTACK_EXAMPLES)]
    Attack(AttackArgs),
    /// Convert a results directory to another format.
    #[command(after_help = "Example:\n  skyhaul export results/geo --format csv --out results/geo-csv")]
    Export(ExportArgs),
    /// Turn measured link profiles into a scenario.
    #[command(subcommand)]
    Import(ImportCommand),
    /// Fit video models to traces of frame sizes.
    #[command(subcommand)]
    Video(VideoCommand),
    /// Serve the simulator as a web page on a loopback port, and open it in the browser.
    #[command(after_help = "Example:\n  skyhaul lab --no-open --port 0")]
    Lab(LabArgs),
}

const RUN_EXAMPLES: &str = "Examples:
  skyhaul run preset:peach-geo
  skyhaul run geo.toml --set links.sat.error.p=1e-2 --set flows.bulk.cc=sack,peach --out results/geo
  skyhaul run geo.toml --pcap trace.pcapng --pcap-at sender --pcap-flow bulk[0]";

#[derive(Args, Debug)]
pub(crate) struct LabArgs {
    /// Print the address, but open no browser.
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Port on 127.0.0.1; 0 picks a free one.
    #[arg(long, value_name = "PORT", default_value_t = 8550)]
    pub(crate) port: u16,
    /// Folder of the page, as `make lab` builds it [default: share/skyhaul/lab beside the program's folder, or site/lab/dist in
    /// the checkout].
    #[arg(long, value_name = "DIR")]
    pub(crate) page: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// Draw the elevation, delay and outages of the first satellite link over the run: .svg or .png (with vl-convert), or
    /// .json for its Vega-Lite specification.
    #[arg(long, value_name = "FILE")]
    pub(crate) figure: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct OrbitArgs {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// The link [default: the first with satellites].
    #[arg(long, value_name = "NAME")]
    pub(crate) link: Option<String>,
    /// Print the series as CSV: time_s, satellite, elevation_deg (at the senders' end), delay_ms (one way), up.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// A results directory; with --worlds, a scenario file or preset:NAME.
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// Another results directory of the same kind.
    #[arg(value_name = "B", required_unless_present = "worlds", conflicts_with = "worlds")]
    pub(crate) b: Option<PathBuf>,
    /// Compare results even if different engine versions made them.
    #[arg(long, conflicts_with = "worlds")]
    pub(crate) across_versions: bool,
    /// Run all flows of a scenario in several worlds: sim (the simulator), and over emulated links in real time wire (the same
    /// transport), wire-to-kernel (the same transport sends, the kernel's TCP receives), kernel:NAME (the kernel's TCP with
    /// congestion control NAME, which may be one of `skyhaul kernel list`).
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) worlds: Vec<String>,
    /// Number of seeds per world, starting from the scenario's.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "worlds", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) repeat: u16,
    /// Concurrent real-time runs; by default one for every two processors, at most four.
    #[arg(long, value_name = "N", requires = "worlds", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Change a key of the scenario; may be repeated. Values separated by commas run every combination.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "worlds")]
    pub(crate) set: Vec<String>,
    /// Write a page with figures, and the samples, into this folder.
    #[arg(long, value_name = "DIR", requires = "worlds")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    // A --set whose values are separated by commas runs every combination.
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// Seed of the random streams, instead of the scenario's.
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: Option<u64>,
    /// Write a results directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Number of concurrent runs; by default one per processor.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Print a hash of all events: equal hashes mean equal runs.
    #[arg(long)]
    pub(crate) digest: bool,
    /// Write a row per page and random transfer as CSV: group and index of the flow, number, start, size, end, whether it was
    /// completed, duration.
    #[arg(long, value_name = "FILE")]
    pub(crate) transfers: Option<PathBuf>,
    /// Capture the packets in a pcapng file for Wireshark; a comment gives the cause of each loss.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Where to capture: sender, receiver, links.NAME, links.NAME.forward or .reverse; may be repeated [default: sender].
    #[arg(long, value_name = "PLACE", requires = "pcap")]
    pub(crate) pcap_at: Vec<String>,
    /// Flows to capture: a group, or GROUP[INDEX]; may be repeated [default: all].
    #[arg(long, value_name = "FLOW", requires = "pcap")]
    pub(crate) pcap_flow: Vec<String>,
    /// Bytes captured per packet; headers are always captured. Wireshark can verify checksums only in whole packets.
    #[arg(long, value_name = "BYTES", requires = "pcap", default_value_t = 100)]
    pub(crate) pcap_snaplen: u16,
    /// Overwrite the file of --pcap even if this program did not write it.
    #[arg(long, requires = "pcap")]
    pub(crate) force: bool,
}

const SWEEP_EXAMPLES: &str = "Examples:
  skyhaul sweep preset:peach-geo --set flows.bulk.cc=sack,peach --set links.sat.error.p=0,1e-3,1e-2 --seeds 3
  skyhaul sweep geo.toml --set flows.bulk.cc=cubic,bbr --metric p95=max(flow.packet_delay_p95) --csv > cells.csv";

#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    // A key that --set gives several values, separated by commas, varies; a key with one value is a setting.
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// What to measure, as in studies: EXPRESSION or NAME=EXPRESSION; may be repeated [default: sum(flow.goodput)].
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) metric: Vec<String>,
    /// First seed [default: 1].
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: Option<u64>,
    /// Number of seeds.
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: u32,
    /// Largest number of runs [default: 200000].
    #[arg(long, value_name = "N")]
    pub(crate) max_cells: Option<u64>,
    #[command(flatten)]
    pub(crate) cells: CellArgs,
    /// Folder for the results, figures and a page.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print a row per run as CSV: the values, the seed, the metrics.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

/// The options of all commands that run cells: how many at once, and where finished cells are kept.
#[derive(Args, Debug)]
pub(crate) struct CellArgs {
    /// Number of concurrent runs; by default one per processor.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Cache of finished cells; by default $SKYHAUL_CACHE, or skyhaul in the user's cache folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// Run the missing cells of a study and show its metrics and verdicts.
    #[command(
        after_help = "Example:\n  skyhaul study run studies/peach-2001/fig11.toml --seeds 5 --out results/fig11"
    )]
    Run(StudyArgs),
    /// Same as run, but exit with status 1 if a claim differs or is undecided, 2 if one could not be evaluated.
    #[command(after_help = "Example:\n  skyhaul study check studies/peach-2001/fig11.toml")]
    Check(StudyArgs),
    /// Run the missing cells of a study and write its report: figures and one HTML page.
    #[command(
        after_help = "Example:\n  skyhaul study report studies/peach-2001/fig11.toml --out results/fig11"
    )]
    Report(StudyArgs),
    /// Search the readings that the texts allow for the one whose numbers are nearest to the printed ones.
    ///
    /// The study names its free options and the printed numbers under [fit]. Readings are fitted to each paper and tested
    /// on the others, then fitted to all; what is reported is measured with fresh seeds. --max-cells limits the cells of the
    /// search. After Ctrl-C, the same command continues.
    #[command(after_help = "Example:\n  skyhaul study fit peach-2001/readings-fit --json")]
    Fit(StudyArgs),
}

#[derive(Args, Debug)]
pub(crate) struct StudyArgs {
    /// A study file, the name of a built-in study, or - for standard input.
    #[arg(value_name = "FILE|NAME")]
    pub(crate) study: String,
    /// Change a key of the study's scenario; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// First seed, instead of the study's.
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: Option<u64>,
    /// Number of seeds, instead of the study's.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: Option<u32>,
    /// Largest number of cells, instead of the study's limit.
    #[arg(long, value_name = "N")]
    pub(crate) max_cells: Option<u64>,
    #[command(flatten)]
    pub(crate) cells: CellArgs,
    /// Folder for the results and the report; by default report writes results/STUDY, and the others write none.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
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
    /// Papers (with all their studies) or single studies, such as peach-2001 or peach-2001/fig11; by default all.
    #[arg(value_name = "PAPER|STUDY")]
    pub(crate) names: Vec<String>,
    /// Run the studies in this folder (PAPER/STUDY.toml) instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub(crate) studies: Option<PathBuf>,
    /// Largest number of cells per study, instead of each study's limit.
    #[arg(long, value_name = "N")]
    pub(crate) max_cells: Option<u64>,
    #[command(flatten)]
    pub(crate) batch: BatchArgs,
}

const EVALUATE_EXAMPLES: &str = "Examples:
  skyhaul evaluate newreno --quick
  skyhaul evaluate \"{ name = 'newreno', max-burst = 4 }\" --quick --out results/bursts
  skyhaul evaluate --all --quick
  skyhaul compare results/evaluate-newreno-quick results/bursts";

#[derive(Args, Debug)]
pub(crate) struct EvaluateArgs {
    /// The control: a name (see list controls), or an inline table with its name and options. With --all, the first of the
    /// cases.
    #[arg(value_name = "CONTROL", required_unless_present = "all")]
    pub(crate) control: Option<String>,
    /// Only these cases; by default all.
    #[arg(value_name = "CASE")]
    pub(crate) names: Vec<String>,
    /// Evaluate all controls, each in a folder of its own, and write one table over them.
    #[arg(long)]
    pub(crate) all: bool,
    /// With --all: only this control, a name or an inline table; may be repeated.
    #[arg(long = "control", value_name = "CONTROL", requires = "all")]
    pub(crate) controls: Vec<String>,
    /// With --all: a row for the finished evaluation in this folder, such as that of a control of your own; may be repeated.
    #[arg(long, value_name = "DIR", requires = "all")]
    pub(crate) with: Vec<PathBuf>,
    /// Run the cases in this folder (CASE.toml, and paper.toml with the requirements) instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    pub(crate) cases: Option<PathBuf>,
    /// Write the events of one cell of each case as qlog, in studies/FOLDER/CASE/qlog; FOLDER is evaluation, or with
    /// --cases the name of that folder.
    #[arg(long, conflicts_with = "all")]
    pub(crate) qlog: bool,
    #[command(flatten)]
    pub(crate) batch: BatchArgs,
}

/// The options that `reproduce` and `evaluate` share: how the studies run, and where the report goes.
#[derive(Args, Debug)]
pub(crate) struct BatchArgs {
    /// Use the quick profile of each study: fewer seeds, shorter runs, no alternative readings.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Number of seeds, instead of each study's.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seeds: Option<u32>,
    #[command(flatten)]
    pub(crate) cells: CellArgs,
    /// Folder for the report and the results; by default results/reproduce, results/evaluate-CONTROL, or results/evaluate-all,
    /// with the suffix -quick in the quick profile.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Exit with status 1 if a claim differs or is undecided, 2 if one could not be evaluated; with evaluate 1 if a requirement
    /// is not met, undecided or failed.
    #[arg(long)]
    pub(crate) check: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Run the alternative readings of the paper too; takes minutes.
    #[arg(long)]
    pub(crate) full: bool,
    /// Folder for the figure, the page and the tables.
    #[arg(long, value_name = "DIR", default_value = "results/demo")]
    pub(crate) out: PathBuf,
    /// Number of concurrent runs; by default one per processor.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum VideoCommand {
    /// Fit a movie model to a trace of frame sizes, and print it as part of a scenario.
    #[command(after_help = "Example:\n  skyhaul video fit film.txt --flow video > movie.toml")]
    Fit(VideoFitArgs),
}

#[derive(Args, Debug)]
pub(crate) struct VideoFitArgs {
    /// A trace: lines of frame number, type, milliseconds and bytes, or of bytes alone.
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Correlate the frame types: large frames of all types occur together, as in films.
    #[arg(long)]
    pub(crate) coupled: bool,
    /// The flow group that sends the movie.
    #[arg(long, value_name = "NAME", default_value = "video")]
    pub(crate) flow: String,
    /// File to write; by default the output is printed.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON: the movie, and how well it fits.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// A results directory of `run --out`, `sweep --out` or a study.
    #[arg(value_name = "DIR")]
    pub(crate) results: PathBuf,
    /// Format of the files.
    #[arg(long)]
    pub(crate) format: ExportFormat,
    /// Folder for the files; by default the results directory.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Flows in the qlog: a group, or GROUP[INDEX]; may be repeated [default: all].
    #[arg(long, value_name = "FLOW")]
    pub(crate) flow: Vec<String>,
}

/// The formats that a results directory can be exported to.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One CSV file per table (RFC 4180), with units in the column names.
    Csv,
    /// One flent data file (version 4) per run.
    Flent,
    /// The layout of `iperf3 -J`, one file per run and flow group.
    Iperf3,
    /// One Mahimahi trace per link direction: the times when packets could leave.
    Mahimahi,
    /// One event log (JSON-SEQ) per flow; runs the scenario again.
    Qlog,
    /// The tables unchanged, one Parquet file each.
    Parquet,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ImportCommand {
    /// Import a profile of ERRANT (Trevisan, Safari Khatouni, Giordano 2020) from a CSV file of mean rates and latencies. Without
    /// PROFILE, list the profiles.
    #[command(
        after_help = "Examples:\n  skyhaul import errant profiles.csv\n  skyhaul import errant profiles.csv telenor/norway/4G/good > mobile.toml"
    )]
    Errant(ErrantArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ErrantArgs {
    /// The CSV file of profiles.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// A profile: operator/country/technology/signal quality.
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Apply the standard deviation of the latency as per-packet jitter, which may reorder packets.
    #[arg(long)]
    pub(crate) jitter: bool,
    /// File for the scenario; by default it is printed.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct PresetsArgs {
    /// The preset to print.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print JSON: names and titles.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// The kind of file.
    pub(crate) kind: SchemaKind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaKind {
    /// A scenario: what to run.
    Scenario,
    /// A study: what to vary, measure and claim.
    Study,
    /// A paper: what its folder of studies shares.
    Paper,
}

/// The number of concurrent runs: the one asked for, or one per processor.
pub(crate) fn jobs(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}
