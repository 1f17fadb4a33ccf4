//! Arguments of `skyhaul gateway`.

use clap::{Args, Subcommand};
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
    /// Show the status of a running gateway.
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
    /// Stop a running gateway gracefully: it forwards new connections and gives existing ones the time of limits.drain.
    #[command(after_help = "Example:\n  skyhaul gateway stop")]
    Stop(GatewayNameArgs),
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
pub(crate) struct GatewayDoctorArgs {
    #[command(flatten)]
    pub(crate) file: GatewayFile,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayRunArgs {
    #[command(flatten)]
    pub(crate) file: GatewayFile,
    /// Folder of its lock file and its socket.
    #[arg(long, value_name = "DIR", default_value = "/run/skyhaul")]
    pub(crate) runtime: PathBuf,
    /// Serve Prometheus metrics at this address, such as 127.0.0.1:9101; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayNameArgs {
    /// The gateway's name, as its file gives it.
    #[arg(value_name = "NAME", default_value = "gateway")]
    pub(crate) name: String,
    /// Folder of its socket.
    #[arg(long, value_name = "DIR", default_value = "/run/skyhaul")]
    pub(crate) runtime: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayStatusArgs {
    #[command(flatten)]
    pub(crate) of: GatewayNameArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Include its connections, at most the oldest thousand.
    #[arg(long)]
    pub(crate) flows: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayEvidenceArgs {
    #[command(flatten)]
    pub(crate) of: GatewayNameArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayKeeperArgs {
    pub(crate) words: Vec<String>,
}
