//! The command line.

mod error;
mod fresh;
#[cfg(target_os = "linux")]
mod gateway;
mod wire;

#[cfg(target_os = "linux")]
use error::ArgumentError;
pub(crate) use fresh::*;
#[cfg(target_os = "linux")]
pub(crate) use gateway::*;
pub(crate) use wire::*;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// TCP over satellite paths, simulated: scenarios, and studies that compare with what papers state.
#[derive(Debug, Parser)]
#[command(name = "skyhaul", version, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "First figure in seconds: skyhaul demo")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Goodput of TCP-Peach against loss, beside what the paper states, with picture and page.
    #[command(after_help = "Example:\n  skyhaul demo --out results/demo")]
    Demo(DemoArgs),
    /// Print what a shell needs to complete this command.
    #[command(
        after_help = "Example:\n  skyhaul completions bash > ~/.local/share/bash-completion/completions/skyhaul"
    )]
    Completions(CompletionsArgs),
    /// Show what follows from a scenario (BDP, RTT, queue in time), and what looks wrong.
    #[command(
        after_help = "Examples:\n  skyhaul check preset:peach-geo --set links.sat.error.p=1e-2\n  skyhaul check preset:leo-walker-550 --figure passes.svg"
    )]
    Check(CheckArgs),
    /// Compare two results directories: which metrics differ by more than chance, which verdicts changed.
    #[command(
        after_help = "Examples:\n  skyhaul compare results/before results/after\n  skyhaul compare geo.toml --worlds sim,wire,kernel:reno,kernel:cubic,kernel:bbr --out results/worlds"
    )]
    Compare(CompareArgs),
    /// Look at what this machine can do for `emulate`; status 1 if emulation is not possible.
    #[cfg(target_os = "linux")]
    #[command(after_help = "Example:\n  skyhaul doctor --json")]
    Doctor(DoctorArgs),
    /// Let real programs cross a scenario's links, in real time (Linux, as root).
    #[cfg(target_os = "linux")]
    #[command(after_help = EMULATE_EXAMPLES)]
    Emulate(EmulateArgs),
    /// The first process of an enclosure: what emulate starts to start a program.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    EnclosureInit(EnclosureInitArgs),
    /// A gateway that splits TCP connections at a satellite link (Linux, as root).
    #[cfg(target_os = "linux")]
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// Show which satellites serve a link of a scenario, and write its delay over time as CSV.
    #[command(after_help = "Example:\n  skyhaul orbit preset:leo-walker-550 --csv > delay.csv")]
    Orbit(OrbitArgs),
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
    /// Turn measured profiles of links into a scenario.
    #[command(subcommand)]
    Import(ImportCommand),
    /// Open the page on which the simulator runs in a browser, served at a loopback port.
    #[command(after_help = "Example:\n  skyhaul lab --no-open --port 0")]
    Lab(LabArgs),
    /// List what there is: presets, studies, congestion controls, or what runs measure.
    #[command(after_help = "Examples:\n  skyhaul list controls\n  skyhaul list metrics --json")]
    List(ListArgs),
    /// Write the manual: a page for each command.
    #[command(hide = true)]
    Man(ManArgs),
    /// Begin a scenario or a study: a file with comments, which runs as it is.
    #[command(
        after_help = "Examples:\n  skyhaul new scenario geo.toml\n  skyhaul new study question.toml\n  skyhaul new scenario | skyhaul check -"
    )]
    New(NewArgs),
    /// List the scenarios that come with the program, or print one.
    #[command(after_help = "Examples:\n  skyhaul presets\n  skyhaul presets geo-today > mine.toml")]
    Presets(PresetsArgs),
    /// Films that flows of video send.
    #[command(subcommand)]
    Video(VideoCommand),
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
    /// A scenario file, preset:NAME, or - for the standard input.
    #[arg(value_name = "FILE|preset:NAME")]
    pub(crate) scenario: String,
    /// Change a key of the scenario; may be repeated. The value is TOML, quotes around words may be left out.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(target_os = "linux")]
const EMULATE_EXAMPLES: &str = "Examples:
  skyhaul emulate preset:peach-geo -- bash
  skyhaul emulate geo.toml --duration 60s --json -- iperf3 -c 10.83.0.2
  skyhaul emulate geo.toml --ns-client left --ns-server right --duration 60s";

#[cfg(target_os = "linux")]
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(target_os = "linux")]
#[derive(Args, Debug)]
pub(crate) struct EmulateArgs {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// Seed of the random streams, instead of the scenario's.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: Option<u64>,
    /// Group of flows whose path is emulated [default: the first].
    #[arg(long, value_name = "NAME")]
    pub(crate) flow: Option<String>,
    /// End after this time, such as 60s or 500ms [default: with the program, or with Ctrl-C].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<skyhaul_base::Duration>,
    /// Data of the scenario comes to the client; by default it comes from there.
    #[arg(long)]
    pub(crate) download: bool,
    /// Longest packet, bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..=65535))]
    pub(crate) mtu: u16,
    /// Addresses are 10.83.N.1 and fd00:5348:0:N::1 at the client, .2 and ::2 at the other end; N is decimal, and
    /// hexadecimal for IPv6.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) net: u8,
    /// Write forward.pcapng and reverse.pcapng into this folder; the cause of a loss is a comment.
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,
    /// Overwrite the files of --pcap even if they are no captures of this program.
    #[arg(long, requires = "pcap")]
    pub(crate) force: bool,
    /// Counters for Prometheus at this address, such as 127.0.0.1:9100; port 0 chooses one.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
    /// Join two interfaces of these names, which the command makes here, without addresses: routes are yours.
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with_all = ["program", "ns_client", "ns_server"])]
    pub(crate) interfaces: Vec<String>,
    /// Show counters while it runs, if standard error is a terminal.
    #[arg(long)]
    pub(crate) live: bool,
    /// End with status 2 as soon as a packet leaves more than a millisecond late.
    #[arg(long)]
    pub(crate) strict: bool,
    /// How long before a release threads wait awake instead of asleep, microseconds.
    #[arg(long = "spin", value_name = "MICROSECONDS", default_value_t = 50)]
    pub(crate) spin_us: u16,
    /// Network namespace of the client, by name or process id [default: that of the command].
    #[arg(long, value_name = "NAME|PID", conflicts_with = "program")]
    pub(crate) ns_client: Option<String>,
    /// Network namespace of the server, by name or process id [default: that of the command].
    #[arg(long, value_name = "NAME|PID", conflicts_with = "program")]
    pub(crate) ns_server: Option<String>,
    /// A program, and its arguments: it runs in a network of its own whose only way out is the link.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) program: Vec<std::ffi::OsString>,
}

#[cfg(target_os = "linux")]
#[derive(Args, Debug)]
pub(crate) struct EnclosureInitArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

/// A time with its unit.
#[cfg(target_os = "linux")]
fn time(text: &str) -> Result<skyhaul_base::Duration, ArgumentError> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        _ => return Err(ArgumentError::Time),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 => Ok(skyhaul_base::Duration::from_secs_f64(n * scale)),
        _ => Err(ArgumentError::PositiveTime),
    }
}

#[derive(Args, Debug)]
pub(crate) struct LabArgs {
    /// Say where the page is, and open no browser.
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Port at 127.0.0.1; 0 chooses one.
    #[arg(long, value_name = "PORT", default_value_t = 8550)]
    pub(crate) port: u16,
    /// Folder of the page that make lab has built [default: share/skyhaul/lab beside the program's folder, or the checkout].
    #[arg(long, value_name = "DIR")]
    pub(crate) page: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// Draw the first link over satellites, elevation, delay and outages over the run: .svg or .png through vl-convert, or
    /// .json, its input.
    #[arg(long, value_name = "FILE")]
    pub(crate) figure: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct OrbitArgs {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// The link [default: the first over satellites].
    #[arg(long, value_name = "NAME")]
    pub(crate) link: Option<String>,
    /// Print the series as CSV: time_s, satellite, elevation_deg (at the senders' end), delay_ms (one way), up.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Results of run, study or reproduce; with --worlds a scenario file, or preset:NAME.
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// Results of the same kind.
    #[arg(value_name = "B", required_unless_present = "worlds", conflicts_with = "worlds")]
    pub(crate) b: Option<PathBuf>,
    /// Compare results of different engines too.
    #[arg(long, conflicts_with = "worlds")]
    pub(crate) across_versions: bool,
    /// Run a scenario in several worlds, in real time: sim, wire (our transport over the emulated links),
    /// wire-to-kernel, kernel:NAME (the kernel's congestion control NAME). All its flows run, whatever they carry.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) worlds: Vec<String>,
    /// How many seeds each world runs, from the scenario's on.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "worlds", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) repeat: u16,
    /// Runs in real time at the same time; by default one for every two processors, four at most.
    #[arg(long, value_name = "N", requires = "worlds", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Change a key of the scenario; may be repeated. Several values with commas run every combination.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "worlds")]
    pub(crate) set: Vec<String>,
    /// Write a page with the figures, and the samples, into this folder.
    #[arg(long, value_name = "DIR", requires = "worlds")]
    pub(crate) out: Option<PathBuf>,
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
    /// Overwrite the file of --pcap even if it is no capture of this program.
    #[arg(long, requires = "pcap")]
    pub(crate) force: bool,
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
    /// A study file, the name of one that comes with the program, or - for the standard input.
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
    /// Most cells that the study may have, instead of what it says.
    #[arg(long, value_name = "N")]
    pub(crate) max_cells: Option<u64>,
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
    /// Most cells that a study may have, instead of what it says.
    #[arg(long, value_name = "N")]
    pub(crate) max_cells: Option<u64>,
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
    /// The other readings of the paper, too; takes minutes.
    #[arg(long)]
    pub(crate) full: bool,
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

#[derive(Subcommand, Debug)]
pub(crate) enum VideoCommand {
    /// Find the movie that comes nearest to a trace of frame sizes, and print it as part of a scenario.
    #[command(after_help = "Example:\n  skyhaul video fit film.txt --flow video > movie.toml")]
    Fit(VideoFitArgs),
}

#[derive(Args, Debug)]
pub(crate) struct VideoFitArgs {
    /// A trace: lines of number, type, milliseconds and bytes, or of bytes alone.
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    /// Large frames of all types come together, as in films.
    #[arg(long)]
    pub(crate) coupled: bool,
    /// The group of flows that is to send it.
    #[arg(long, value_name = "NAME", default_value = "video")]
    pub(crate) flow: String,
    /// Where it goes; by default it is printed.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// JSON: the movie, and how near it comes.
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
    /// A trace of Mahimahi per direction of a link: when packets could leave.
    Mahimahi,
    /// A log of events (JSON-SEQ) per flow; runs the scenario again.
    Qlog,
    /// The tables as they are, a Parquet file each.
    Parquet,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ImportCommand {
    /// Profiles of ERRANT (Trevisan, Khatouni, Mellia 2020): a CSV file of mean rates and latencies. Without a profile the
    /// command lists them.
    #[command(
        after_help = "Examples:\n  skyhaul import errant profiles.csv\n  skyhaul import errant profiles.csv telenor/norway/4G/good > mobile.toml"
    )]
    Errant(ErrantArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ErrantArgs {
    /// The file of profiles.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// A profile: operator, country, technology and signal quality, with slashes between.
    #[arg(value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// The deviation of the latency becomes jitter of single packets, which may overtake each other.
    #[arg(long)]
    pub(crate) jitter: bool,
    /// Where the scenario goes; by default it is printed.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct PresetsArgs {
    /// The one to print.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// JSON: names and titles.
    #[arg(long)]
    pub(crate) json: bool,
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

/// How many runs at a time: what was asked for, or one per processor.
pub(crate) fn jobs(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}
