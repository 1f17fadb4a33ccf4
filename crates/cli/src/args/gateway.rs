//! Arguments of `skyhaul gateway`.

use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum GatewayCommand {
    /// Show what a file says and what would be done to the system; nothing is changed.
    #[command(after_help = "Example:\n  skyhaul gateway check gateway.toml")]
    Check(GatewayFile),
    /// Print the rules of nftables and the rules and routes that a file leads to.
    #[command(after_help = "Example:\n  skyhaul gateway rules gateway.toml")]
    Rules(GatewayFile),
    /// Look for what would keep a gateway from working; status 1 if something would.
    #[command(after_help = "Example:\n  skyhaul gateway doctor gateway.toml")]
    Doctor(GatewayDoctorArgs),
    /// Run a gateway until Ctrl-C or `skyhaul gateway stop`.
    #[command(after_help = "Example:\n  skyhaul gateway run gateway.toml --metrics 127.0.0.1:9101")]
    Run(GatewayRunArgs),
    /// What a running gateway does.
    #[command(after_help = "Example:\n  skyhaul gateway status --json")]
    Status(GatewayStatusArgs),
    /// The connections of a running gateway, once a second until Ctrl-C.
    #[command(after_help = "Example:\n  skyhaul gateway top")]
    Top(GatewayNameArgs),
    /// Read the file of a running gateway again; connections stay. What cannot be read changes nothing.
    #[command(after_help = "Example:\n  skyhaul gateway reload")]
    Reload(GatewayNameArgs),
    /// End a running gateway in order: new connections are forwarded, those that exist have the time of limits.drain.
    #[command(after_help = "Example:\n  skyhaul gateway stop")]
    Stop(GatewayNameArgs),
    /// What takes everything away when a gateway was killed.
    #[command(hide = true)]
    Keeper(GatewayKeeperArgs),
}

#[derive(Args, Debug)]
pub(crate) struct GatewayFile {
    /// The file of the gateway.
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
    /// Where its lock and its socket are.
    #[arg(long, value_name = "DIR", default_value = "/run/skyhaul")]
    pub(crate) runtime: PathBuf,
    /// Counters for Prometheus at this address, such as 127.0.0.1:9101; port 0 chooses one.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayNameArgs {
    /// The name in its file.
    #[arg(value_name = "NAME", default_value = "gateway")]
    pub(crate) name: String,
    /// Where its socket is.
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
    /// With its connections, the oldest thousand of them.
    #[arg(long)]
    pub(crate) flows: bool,
}

#[derive(Args, Debug)]
pub(crate) struct GatewayKeeperArgs {
    pub(crate) words: Vec<String>,
}
