//! Arguments of what helps to begin: new files, lists, completions, the manual.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// What to begin.
    pub(crate) kind: NewKind,
    /// Where it goes; by default it is printed. A file that is there already stays as it is.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NewKind {
    /// Links, flows, and what is recorded.
    Scenario,
    /// What varies, what is measured, and what is claimed.
    Study,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// What to list.
    pub(crate) what: Listed,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Listed {
    /// Scenarios that come with the program.
    Presets,
    /// Studies that come with the program.
    Studies,
    /// Congestion controls, as `cc` of flows names them.
    Controls,
    /// What runs measure, as metrics of studies name it, with units.
    Metrics,
}

#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// Which shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder that the pages go to.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
