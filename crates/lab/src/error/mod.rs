//! Errors, each one line with the problem and its place.

mod attack;
mod capture;
mod compare;
mod export;
mod figure;

pub use attack::AttackError;
pub use capture::CaptureError;
pub use compare::CompareError;
pub use export::ExportError;
pub use figure::FigureError;

use skyhaul_scenario::ScenarioError;
use skyhaul_sim::{BuildError, Ended, Failure};
use skyhaul_study::{StudyError, io_words};
use std::io;
use std::path::{Path, PathBuf};

/// Why something cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A scenario cannot be simulated.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A user-defined control failed during a run.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// A run ended early at its memory limit, and its caller needs the whole run.
    #[error("{0}")]
    Ended(Ended),
    /// A study cannot be planned, run or written.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// A search cannot be made.
    #[error(transparent)]
    Attack(#[from] AttackError),
    /// Packets cannot be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Results cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// Results cannot be written in another format.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A figure cannot be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// A file or folder cannot be read.
    #[error("cannot read {}: {}", path.display(), io_words(source))]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A video trace or a table of profiles cannot be read.
    #[error("{}{}: {message}", path.display(), if *line > 0 { format!(":{line}") } else { String::new() })]
    Trace {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 for the whole.
        line: usize,
        /// The problem, and what is accepted.
        message: String,
    },
    /// A file or folder cannot be written.
    #[error("cannot write {}: {}", path.display(), io_words(source))]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A results folder cannot be created, listed or locked.
    #[error("cannot write results to {}: {}", folder.display(), io_words(source))]
    Results {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A results folder contains other files.
    #[error(
        "{} holds files but no manifest.json of skyhaul: name an empty or a new folder with --out",
        folder.display()
    )]
    NotOurs {
        /// The folder.
        folder: PathBuf,
    },
    /// Another program is writing into a results folder.
    #[error(
        "another skyhaul writes into {}: wait until it has ended, or name another folder with --out",
        folder.display()
    )]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// The combinations of values make too many runs.
    #[error("--set: more than {most} combinations; write a study instead")]
    TooManyCases {
        /// Largest number of combinations.
        most: usize,
    },
    /// No key of a sweep has several values.
    #[error(
        "--set: no key has several values: write KEY=VALUE,VALUE, such as links.sat.error.p=1e-3,1e-2; skyhaul run makes a \
         single run"
    )]
    NothingVaries,
    /// A key of a sweep is given twice with several values.
    #[error("--set {key}: this key has several values twice: write all of them once")]
    VariesTwice {
        /// The key.
        key: String,
    },
    /// A metric of a sweep without an expression or with an unsuitable name.
    #[error(
        "--metric {text:?}: write EXPRESSION or NAME=EXPRESSION, such as busy=link.sat.forward.utilization; a name has letters, \
         digits, - and _"
    )]
    NoMetric {
        /// What was written.
        text: String,
    },
    /// A change of a scenario has no `=`.
    #[error("--set: {text}: write KEY=VALUE, such as links.sat.error.p=1e-2")]
    NoValue {
        /// What was written.
        text: String,
    },
    /// An axis of the study sets the key in every combination.
    #[error(
        "--set {key}: axis `{axis}` of the study sets this key in every combination, so the value would not be used; \
             change the axis in a copy of the file"
    )]
    SetByAxis {
        /// The key.
        key: String,
        /// The axis.
        axis: String,
    },
    /// No study has this name.
    #[error("{name}: no such file, and no built-in study of this name (built in: {known})")]
    NoStudy {
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// A folder holds no studies.
    #[error("{} holds no studies: name a folder with PAPER/STUDY.toml, or STUDY.toml", folder.display())]
    NoStudies {
        /// The folder.
        folder: PathBuf,
    },
    /// No paper, no study of a paper, or no case of an evaluation has this name.
    #[error("{name}: there is no such {what} (known: {known})")]
    NoSuch {
        /// The name.
        name: String,
        /// `paper`, `study` or `case`.
        what: &'static str,
        /// The known names.
        known: String,
    },
    /// A control that is to be judged is refused.
    #[error("{control}: {message}")]
    Control {
        /// As it was given.
        control: String,
        /// The problem, and what is accepted.
        message: String,
    },
    /// None of the cases of an evaluation can be planned.
    #[error("no case can be run; the first: {first}")]
    NoCases {
        /// Why the first one cannot.
        first: String,
    },
    /// No claim of the chosen cases answers a requirement.
    #[error(
        "no requirement is left: no claim of {cases} begins with the number of a row of paper.toml; name a case that answers \
         one"
    )]
    NoRequirement {
        /// The cases.
        cases: String,
    },
    /// A headline names a number that no line of an overview has.
    #[error("paper.toml: overview.headline “{headline}”: there is no such {what}: {name} (known: {known})")]
    NoHeadline {
        /// Title of the headline.
        headline: String,
        /// What is unknown: a study, or a line of an overview.
        what: &'static str,
        /// The name.
        name: String,
        /// The known names.
        known: String,
    },
    /// An evaluation cannot be a row of a leaderboard.
    #[error("{}: {why}", path.display())]
    NoRow {
        /// Its folder or file.
        path: PathBuf,
        /// Why, and what is accepted.
        why: String,
    },
    /// A study without seeds.
    #[error("seeds: a study needs at least one seed")]
    NoSeeds,
    /// The user stopped the run.
    #[error("stopped; nothing was written")]
    Stopped,
    /// The user stopped the run of many cells.
    #[error("stopped with {done} of {cells} cells done; those in the cache do not run again")]
    StoppedCells {
        /// Cells that have run, or were in the cache.
        done: usize,
        /// All cells.
        cells: usize,
    },
    /// The user stopped the run while packets were captured.
    #[error("stopped; {} holds the packets captured until then", path.display())]
    StoppedCapture {
        /// The capture.
        path: PathBuf,
    },
}

impl LabError {
    /// True if the user stopped the run.
    #[must_use]
    pub const fn is_stop(&self) -> bool {
        matches!(
            self,
            Self::Stopped
                | Self::StoppedCells { .. }
                | Self::StoppedCapture { .. }
                | Self::Attack(AttackError::Stopped { .. })
        )
    }

    /// A file or folder that cannot be read.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Read { path: path.to_owned(), source }
    }

    /// A file or folder that cannot be written.
    pub fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Write { path: path.to_owned(), source }
    }
}
