//! The command line.

#[cfg(feature = "simulation")]
mod attack;
#[cfg(target_os = "linux")]
mod error;
#[cfg(feature = "simulation")]
mod fresh;
#[cfg(target_os = "linux")]
mod gateway;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(feature = "simulation")]
mod simulate;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(feature = "simulation")]
pub(crate) use attack::*;
#[cfg(target_os = "linux")]
use error::ArgumentError;
#[cfg(feature = "simulation")]
pub(crate) use fresh::*;
#[cfg(target_os = "linux")]
pub(crate) use gateway::*;
#[cfg(target_os = "linux")]
pub(crate) use kernel::*;
#[cfg(feature = "simulation")]
pub(crate) use simulate::*;
#[cfg(target_os = "linux")]
pub(crate) use wire::*;

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

#[cfg_attr(
    feature = "simulation",
    doc = "Simulate TCP over satellite paths: run scenarios, and check the claims of papers with studies."
)]
#[cfg_attr(
    not(feature = "simulation"),
    doc = "TCP over satellite paths, on real packets: gateways, emulated links, the transport itself."
)]
#[derive(Debug, Parser)]
#[command(name = "skyhaul", version, arg_required_else_help = true, disable_help_subcommand = true)]
#[cfg_attr(feature = "simulation", command(after_help = "For a first figure within seconds: skyhaul demo"))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(feature = "simulation")]
    #[command(flatten)]
    Simulate(SimulateCommand),
    /// Check whether this machine can run `emulate`; exit status 1 if it cannot (Linux).
    #[cfg(target_os = "linux")]
    #[command(after_help = "Example:\n  skyhaul doctor --json")]
    Doctor(DoctorArgs),
    /// Emulate a scenario's links in real time, for real programs (Linux, as root).
    #[cfg(target_os = "linux")]
    #[command(after_help = EMULATE_EXAMPLES)]
    Emulate(EmulateArgs),
    /// The first process in the network namespace of `emulate -- CMD`: emulate starts it, and it starts CMD.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    EnclosureInit(EnclosureInitArgs),
    /// Run the simulator's TCP stack on real packets, over a TUN interface (Linux).
    #[cfg(target_os = "linux")]
    #[command(subcommand)]
    Wire(WireCommand),
    /// Run a gateway that splits TCP connections at a satellite link (Linux, as root).
    #[cfg(target_os = "linux")]
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// Congestion controls of this project in the running kernel, as BPF programs (Linux, as root).
    #[cfg(target_os = "linux")]
    #[command(subcommand)]
    Kernel(KernelCommand),
    #[cfg(feature = "simulation")]
    /// Print the JSON Schema of scenario, study or paper files.
    #[command(after_help = "Example:\n  skyhaul schema scenario > scenario.schema.json")]
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    #[command(
        after_help = "Example:\n  skyhaul completions bash > ~/.local/share/bash-completion/completions/skyhaul"
    )]
    Completions(CompletionsArgs),
    /// Write manual pages, one for each command.
    #[command(hide = true)]
    Man(ManArgs),
}

#[derive(Args, Debug)]
pub(crate) struct Scenario {
    /// A scenario file, preset:NAME, or - for standard input.
    #[arg(value_name = "FILE|preset:NAME")]
    pub(crate) scenario: String,
    /// Change a key of the scenario; may be repeated. The value is TOML; words need no quotes.
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
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: Option<u64>,
    /// Flow group whose path is emulated [default: the first].
    #[arg(long, value_name = "NAME")]
    pub(crate) flow: Option<String>,
    /// Stop after this time, such as 60s or 500ms [default: until the program exits, or Ctrl-C].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<skyhaul_base::Duration>,
    /// The client receives the scenario's data; by default it sends it.
    #[arg(long)]
    pub(crate) download: bool,
    /// Largest packet (MTU), bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..=65535))]
    pub(crate) mtu: u16,
    /// Number of the networks, 0 to 255: the client has 10.83.N.1 and fd00:5348:0:N::1, the other end .2 and ::2, with N
    /// in decimal digits in both.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) net: u8,
    /// Write forward.pcapng and reverse.pcapng into this folder; a comment gives the cause of each loss.
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,
    /// Overwrite the files of --pcap even if this program did not write them.
    #[arg(long, requires = "pcap")]
    pub(crate) force: bool,
    /// Serve Prometheus metrics at this address, such as 127.0.0.1:9100; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<std::net::SocketAddr>,
    /// Create two interfaces with these names, joined by the links; addresses and routes are left to you.
    #[arg(long, value_names = ["A", "B"], num_args = 2, conflicts_with_all = ["program", "ns_client", "ns_server"])]
    pub(crate) interfaces: Vec<String>,
    /// Show live counters if standard error is a terminal.
    #[arg(long)]
    pub(crate) live: bool,
    /// Exit with status 2 as soon as a packet leaves more than a millisecond late.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Busy-wait instead of sleeping for the last part of the time until a packet leaves a link: this long, microseconds.
    #[arg(long = "spin", value_name = "MICROSECONDS", default_value_t = 50)]
    pub(crate) spin_us: u16,
    /// Network namespace of the client, by name or process id [default: the current one].
    #[arg(long, value_name = "NAME|PID", conflicts_with = "program")]
    pub(crate) ns_client: Option<String>,
    /// Network namespace of the server, by name or process id [default: the current one].
    #[arg(long, value_name = "NAME|PID", conflicts_with = "program")]
    pub(crate) ns_server: Option<String>,
    /// Program to run, with its arguments, in a network namespace whose only way out is the link.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) program: Vec<std::ffi::OsString>,
}

#[cfg(target_os = "linux")]
#[derive(Args, Debug)]
pub(crate) struct EnclosureInitArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

/// Parses a time above zero.
#[cfg(target_os = "linux")]
fn time(text: &str) -> Result<skyhaul_base::Duration, ArgumentError> {
    let time: Option<skyhaul_base::amount::Time> = text.parse().ok();
    time.map(|t| t.0).filter(|t| !t.is_zero()).ok_or(ArgumentError::PositiveTime)
}

/// The largest seed that a file can express: integers of TOML are signed.
const MAX_SEED: u64 = i64::MAX as u64;

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Folder for the pages.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
