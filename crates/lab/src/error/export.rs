//! Errors of exports.

use std::path::PathBuf;

/// Why results cannot be written in another format.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A folder holds no results.
    #[error(
        "{}: there is no manifest.json: name a results directory of `skyhaul run --out` or `study report`",
        results.display()
    )]
    NoManifest {
        /// The folder.
        results: PathBuf,
    },
    /// A file cannot be parsed.
    #[error("cannot read {}: {}", path.display(), why.lines().next().unwrap_or_default())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A table of comma-separated values cannot be written.
    #[error("cannot write {}: {why}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Parquet files would be copied onto themselves.
    #[error(
        "{}: its tables are Parquet files already: name another folder for copies with --out",
        results.display()
    )]
    SameFolder {
        /// The folder.
        results: PathBuf,
    },
    /// There are no tables.
    #[error("{}: there are no tables", results.display())]
    NoTables {
        /// The folder.
        results: PathBuf,
    },
    /// The format needs single runs.
    #[error(
        "{}: this format holds single runs: name a results directory of `skyhaul run --out`",
        results.display()
    )]
    NoRun {
        /// The folder.
        results: PathBuf,
    },
    /// The run did not record the required series.
    #[error(
        "{}: the run recorded no {without}: run it again with{sample} --set \"record.series=[{all}]\"",
        folder.display()
    )]
    NotRecorded {
        /// The folder.
        folder: PathBuf,
        /// The missing series.
        without: String,
        /// The option that samples, if it is missing.
        sample: &'static str,
        /// The series to record.
        all: String,
    },
    /// No flow uses TCP.
    #[error("{}: no flow uses TCP, which this format requires", folder.display())]
    NoTcp {
        /// The folder.
        folder: PathBuf,
    },
    /// No link has a rate.
    #[error("{}: no link has a rate, which a Mahimahi trace requires", folder.display())]
    NoRate {
        /// The folder.
        folder: PathBuf,
    },
    /// A trace would be too long.
    #[error("{name}: the trace would exceed {most} packets: export a shorter run, or one over a slower link")]
    TooLong {
        /// The link.
        name: String,
        /// Most lines.
        most: usize,
    },
    /// A trace would be empty.
    #[error("{name}: no packet could leave during the run, and a trace cannot be empty")]
    Empty {
        /// The link.
        name: String,
    },
    /// There would be too many open files.
    #[error(
        "{}: {files} flows exceed the limit of {most} files: select some with --flow GROUP or GROUP[INDEX]",
        folder.display()
    )]
    TooManyFlows {
        /// The folder.
        folder: PathBuf,
        /// Their number.
        files: usize,
        /// Most.
        most: usize,
    },
    /// This engine would not reproduce the run.
    #[error(
        "{}: `engine`: engine {engine} made this run, and this program would reproduce it differently; accepted: {here}: run \
         the scenario again",
        manifest.display()
    )]
    OtherEngine {
        /// Its manifest.
        manifest: PathBuf,
        /// The engine that made the run.
        engine: String,
        /// The engine here.
        here: String,
    },
}
