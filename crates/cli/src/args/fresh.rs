//! Arguments of `new` and `list`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct NewArgs {
    /// The kind of file.
    pub(crate) kind: NewKind,
    /// File to write; by default the text is printed. An existing file is not overwritten.
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum NewKind {
    /// A scenario: links, flows and recorded series.
    Scenario,
    /// A study: axes, metrics and claims.
    Study,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// What to list.
    pub(crate) what: ListTopic,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ListTopic {
    /// Built-in scenarios.
    Presets,
    /// Built-in studies.
    Studies,
    /// Congestion controls, by the names that the key `cc` of a flow accepts.
    Controls,
    /// Metrics of a run, by the names that studies use, with units.
    Metrics,
}
