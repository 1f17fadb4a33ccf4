//! Arguments of `skyhaul gateway`.

use super::wire::quantity;
use clap::{Args, Subcommand};
use skyhaul_base::amount::{Size, Time};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum GatewayCommand {
    /// Show what a file configures and what running it would change in the system; changes nothing.
    #[command(after_help = "Example:\n  skyhaul gateway check gateway.toml")]
    Check(GatewayFile),
    /// Print the nftables rules, policy rules and routes that a file results in.
    #[command(after_help = "Example:\n  skyhaul gateway rules gateway.toml")]
    Rules(GatewayFile),
    /// Check for problems that would keep a gateway from working; exit status 1 if there are any.
    #[command(after_help = "Example:\n  skyhaul gateway doctor gateway.toml")]
    Doctor(GatewayDoctorArgs),
    /// Run a gateway until Ctrl-C or `skyhaul gateway stop`.
    #[command(after_help = "Example:\n  skyhaul gateway run gateway.toml --metrics 127.0.0.1:9101")]
    Run(GatewayRunArgs),
    /// Show the status of a running gateway; if several run and no name is given, list them.
    #[command(after_help = "Example:\n  skyhaul gateway status --json")]
    Status(GatewayStatusArgs),
    /// Show the connections of a running gateway, once a second until Ctrl-C.
    #[command(after_help = "Example:\n  skyhaul gateway top")]
    Top(GatewayNameArgs),
    /// Show what a running gateway has observed of connections: does splitting help?
    #[command(after_help = "Example:\n  skyhaul gateway evidence")]
    Evidence(GatewayEvidenceArgs),
    /// Make a running gateway read its file again; connections stay. A file that cannot be read changes nothing.
    #[command(after_help = "Example:\n  skyhaul gateway reload")]
    Reload(GatewayNameArgs),
    /// Stop a running gateway gracefully, and wait until it has ended: it forwards new connections and gives existing ones the time
    /// of limits.drain.
    #[command(after_help = "Example:\n  skyhaul gateway stop")]
    Stop(GatewayStopArgs),
    /// Write packets (pcapng) and transport events (qlog) of chosen connections over the link, until a limit or Ctrl-C.
    #[command(
        visible_alias = "trace",
        after_help = "Examples:\n  skyhaul gateway capture --flow 17 --pcap slow.pcapng --qlog slow.sqlog\n  \
                      skyhaul gateway capture --server 203.0.113.7:443 --packets 1000 --pcap web.pcapng"
    )]
    Capture(GatewayCaptureArgs),
    /// Remove what a killed gateway has left behind, and restore the settings that it had changed.
    #[command(after_help = "Example:\n  skyhaul gateway clean")]
    Clean(GatewayCleanArgs),
    /// The process that cleans up after a gateway that was killed.
    #[command(hide = true)]
    Keeper(GatewayKeeperArgs),
}

#[derive(Args, Debug)]
pub(crate) struct GatewayFile {
    /// The gateway file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayRuntime {
    /// Folder of lock files and sockets of gateways [default: /run/skyhaul, or a folder in it in another network namespace].
    #[arg(long = "runtime", value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl GatewayRuntime {
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(skyhaul_gateway::place::folder)
    }
}

#[derive(Args, Debug)]
pub(crate) struct GatewayDoctorArgs {
    #[command(flatten)]
    pub(crate) file: GatewayFile,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Prove the path: open a connection over the link to this server. A gateway that does not run yet runs for this test.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) probe: Option<SocketAddr>,
    /// Address of a host from which the probe comes [default: the first neighbour on the terrestrial interface].
    #[arg(long, value_name = "ADDRESS", requires = "probe")]
    pub(crate) from: Option<std::net::IpAddr>,
    /// Count the SYNs that arrive in this time, and explain what becomes of them.
    #[arg(long, value_name = "TIME", value_parser = quantity::<Time>)]
    pub(crate) watch: Option<Time>,
    #[command(flatten)]
    pub(crate) runtime: GatewayRuntime,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayCaptureArgs {
    #[command(flatten)]
    pub(crate) gateway: GatewayNameArgs,
    /// One connection: its number in `skyhaul gateway status --flows`.
    #[arg(long, value_name = "N", conflicts_with_all = ["client", "server"])]
    pub(crate) flow: Option<u64>,
    /// Connections of this client: ADDRESS, ADDRESS:PORT or :PORT.
    #[arg(long, value_name = "END")]
    pub(crate) client: Option<String>,
    /// Connections to this server: ADDRESS, ADDRESS:PORT or :PORT.
    #[arg(long, value_name = "END")]
    pub(crate) server: Option<String>,
    /// New file for the packets.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// New file for the events.
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
    /// Capture payloads, too; otherwise only headers.
    #[arg(long)]
    pub(crate) payload: bool,
    /// End after this number of packets.
    #[arg(long, value_name = "N", requires = "pcap")]
    pub(crate) packets: Option<u64>,
    /// End when the files have this size together.
    #[arg(long, value_name = "SIZE", default_value = "100MB", value_parser = quantity::<Size>)]
    pub(crate) bytes: Size,
    /// End after this time.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::<Time>)]
    pub(crate) time: Time,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayCleanArgs {
    /// The gateway's name, as its file gives it.
    #[arg(value_name = "NAME", default_value = "gateway")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) runtime: GatewayRuntime,
    /// Leave what a gateway with `on-failure = "block"` has left behind, so that connections stay blocked.
    #[arg(long)]
    pub(crate) keep_block: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayRunArgs {
    #[command(flatten)]
    pub(crate) file: GatewayFile,
    #[command(flatten)]
    pub(crate) runtime: GatewayRuntime,
    /// Serve Prometheus metrics at this address, such as 127.0.0.1:9101; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayNameArgs {
    /// The gateway's name, as its file gives it [default: the one that runs, or gateway].
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) runtime: GatewayRuntime,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayStopArgs {
    #[command(flatten)]
    pub(crate) gateway: GatewayNameArgs,
    /// Do not wait until the gateway has ended.
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayStatusArgs {
    #[command(flatten)]
    pub(crate) gateway: GatewayNameArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Include the connections of the gateway, at most the oldest thousand; not for several gateways.
    #[arg(long)]
    pub(crate) flows: bool,
    /// Exit with status 1 unless the gateway splits new connections and knows that they reach it.
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayEvidenceArgs {
    #[command(flatten)]
    pub(crate) gateway: GatewayNameArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayKeeperArgs {
    pub(crate) arguments: Vec<String>,
}
