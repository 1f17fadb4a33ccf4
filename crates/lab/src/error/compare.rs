//! Errors of comparisons.

use std::path::PathBuf;

/// Why results cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The results are of different kinds.
    #[error("{} is a result of {left}, {} of {right}: compare two results of the same kind", a.display(), b.display())]
    Kinds {
        /// The left ones.
        a: PathBuf,
        /// The right ones.
        b: PathBuf,
        /// Kind of the left ones.
        left: &'static str,
        /// Kind of the right ones.
        right: &'static str,
    },
    /// The results are of different profiles.
    #[error(
        "{} used the {left} profile, {} the {right} profile: these are different experiments",
        a.display(), b.display()
    )]
    Profiles {
        /// The left ones.
        a: PathBuf,
        /// The right ones.
        b: PathBuf,
        /// Profile of the left ones.
        left: String,
        /// Profile of the right ones.
        right: String,
    },
    /// The results are of different engines.
    #[error(
        "{}: `engine`: {} was made by engine {right}, {} by engine {left}; accepted: {left}, or any engine with --across-versions",
        manifest.display(), b.display(), a.display()
    )]
    Engines {
        /// Manifest of the right ones.
        manifest: PathBuf,
        /// The left ones.
        a: PathBuf,
        /// The right ones.
        b: PathBuf,
        /// Engine of the left ones.
        left: String,
        /// Engine of the right ones.
        right: String,
    },
    /// A manifest is of an unknown kind.
    #[error("{}: results of an unknown kind, `{kind}`; accepted: run, study, reproduce, evaluate", manifest.display())]
    UnknownKind {
        /// The manifest.
        manifest: PathBuf,
        /// What it says.
        kind: String,
    },
    /// A reproduction or an evaluation is incomplete.
    #[error("{}: the results of {kind} that was interrupted: run it again to complete it", path.display())]
    Incomplete {
        /// Its folder.
        path: PathBuf,
        /// Its kind, with an article.
        kind: &'static str,
    },
    /// The path is not a folder.
    #[error("cannot read {}: {words}", path.display())]
    NoFolder {
        /// The path.
        path: PathBuf,
        /// What is there.
        words: &'static str,
    },
    /// A folder holds no results.
    #[error("{} is not a results directory: it has no manifest.json", path.display())]
    NoResults {
        /// The folder.
        path: PathBuf,
    },
    /// The content of a file is damaged.
    #[error("{}: damaged: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The evidence.
        why: String,
    },
    /// A key of a file is missing or wrong.
    #[error("{}: `{key}`: {what}; accepted: {accepted}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The problem.
        what: &'static str,
        /// The accepted values.
        accepted: &'static str,
    },
}
