//! Arguments of `skyhaul kernel`.

use clap::{Args, Subcommand};

#[derive(Subcommand, Debug)]
pub(crate) enum KernelCommand {
    /// Load congestion controls into the running kernel: any program can then choose them, until they are removed or the machine is
    /// shut down.
    #[command(after_help = "Example:\n  skyhaul kernel install hark && iperf3 -c 192.0.2.1 -C skyhaul_hark")]
    Install(KernelControls),
    /// List the congestion controls that the kernel can load, and which are installed.
    #[command(after_help = "Example:\n  skyhaul kernel list --json")]
    List(KernelListArgs),
    /// Remove congestion controls from the running kernel. Connections that use them go on until they are closed.
    #[command(after_help = "Examples:\n  skyhaul kernel remove hark\n  skyhaul kernel remove --all")]
    Remove(KernelRemoveArgs),
}

#[derive(Args, Debug)]
pub(crate) struct KernelControls {
    /// The controls, by the names that `skyhaul kernel list` shows.
    #[arg(value_name = "CONTROL", required = true)]
    pub(crate) controls: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct KernelListArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KernelRemoveArgs {
    /// The controls, by the names that `skyhaul kernel list` shows.
    #[arg(value_name = "CONTROL", required_unless_present = "all")]
    pub(crate) controls: Vec<String>,
    /// All that are installed.
    #[arg(long, conflicts_with = "controls")]
    pub(crate) all: bool,
}
