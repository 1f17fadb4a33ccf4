//! Errors of searches for bad cases.

use std::path::PathBuf;

/// Why a search cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum AttackError {
    /// There is no such goal.
    #[error("goal {word}: there is no such goal; accepted: {accepted}")]
    Goal {
        /// What was written.
        word: String,
        /// The goals.
        accepted: String,
    },
    /// The budget is not one.
    #[error("budget {text}: {why}; write a time or a number of runs, such as 10min or \"500 runs\"")]
    Budget {
        /// What was written.
        text: String,
        /// The problem.
        why: &'static str,
    },
    /// The budget does not allow a single round.
    #[error("budget: {runs} runs are too few: a first round takes {least}; write at least \"{least} runs\"")]
    TooFew {
        /// What was written.
        runs: u64,
        /// The runs of the smallest first round.
        least: u64,
    },
    /// The bounds are wrong.
    #[error("{file}: `{key}`: {message}")]
    Bounds {
        /// The file.
        file: String,
        /// The key.
        key: String,
        /// The problem, and what is accepted.
        message: String,
    },
    /// The bounds leave nothing to search.
    #[error(
        "{file}: every key that goal {goal} varies ({keys}) has one value: give at least one of them a list of two"
    )]
    NoRoom {
        /// The file.
        file: String,
        /// The goal.
        goal: &'static str,
        /// The keys that the goal varies.
        keys: String,
    },
    /// The folder holds another search.
    #[error("{}: these are results of another {what}: name another folder with --out", folder.display())]
    Other {
        /// The folder.
        folder: PathBuf,
        /// In what it differs.
        what: String,
    },
    /// The journal is damaged.
    #[error("{}:{line}: not a line of a journal: remove it, or name another folder with --out", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// No case could be measured.
    #[error("no case could be measured; the first: {first}")]
    Nothing {
        /// Why the first one could not.
        first: String,
    },
    /// The user stopped the search.
    #[error("stopped; {kept}: run the same command again to continue")]
    Stopped {
        /// What was found, and where.
        kept: String,
    },
}
