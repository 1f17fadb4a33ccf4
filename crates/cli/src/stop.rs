//! Abnormal ends of the program, with their exit statuses.

use crate::interrupt;
use skyhaul_lab::LabError;
use skyhaul_study::StudyError;
#[cfg(feature = "simulation")]
use skyhaul_study::cache::Cache;
use std::fmt;
use std::path::Path;

/// An abnormal end of the program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Stop {
    /// Wrong input, or output that cannot be written: one line with the problem and its place. Status 2.
    #[error("{0}")]
    Bad(String),
    /// Everything ran, but a claim does not hold. Status 1.
    #[cfg(feature = "simulation")]
    #[error("a claim does not hold")]
    Claim,
    /// Everything ran, but two results differ. Status 1.
    #[cfg(feature = "simulation")]
    #[error("the results differ")]
    Different,
    /// Stopped by the user: what is kept and how to continue. Status 130, or 143 after SIGTERM.
    #[error("{0}")]
    Interrupted(String),
    /// The reader closed the output. Status 0.
    #[error("the reader closed the output")]
    Closed,
    /// Ends with this status without a message: the status of a child program, or of a check whose report says why.
    #[error("ended with status {0}")]
    Status(u8),
    /// No command was given: print the help. Status 2.
    #[error("{0}")]
    Usage(String),
}

impl Stop {
    /// The exit status.
    #[must_use]
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Bad(_) | Self::Usage(_) => 2,
            #[cfg(feature = "simulation")]
            Self::Claim | Self::Different => 1,
            Self::Interrupted(_) => interrupt::status(),
            Self::Closed => 0,
            Self::Status(status) => *status,
        }
    }

    /// Wrong input, or output that cannot be written; `message` is one line.
    pub(crate) fn bad(message: impl fmt::Display) -> Self {
        Self::Bad(message.to_string())
    }

    /// Stopped before all cells were done; finished cells stay in the cache.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub(crate) fn kept(done: usize, cells: usize, cache: &Cache) -> Self {
        Self::Interrupted(format!(
            "stopped with {done} of {cells} cells done; they are kept in {}: run the same command again to continue",
            cache.dir().display()
        ))
    }

    /// A search stopped before it was complete; its cells stay in the cache.
    #[cfg(feature = "simulation")]
    #[must_use]
    pub(crate) fn searching(cells: usize, cache: &Cache) -> Self {
        Self::Interrupted(format!(
            "stopped with {cells} cells of the search and those of the last step done; they are kept in {}: run the same \
             command again to continue",
            cache.dir().display()
        ))
    }

    /// A file or folder that could not be written.
    #[must_use]
    pub(crate) fn write(path: &Path, e: &std::io::Error) -> Self {
        Self::Bad(format!("cannot write {}: {}", path.display(), skyhaul_study::io_words(e)))
    }
}

impl From<StudyError> for Stop {
    fn from(e: StudyError) -> Self {
        Self::bad(e)
    }
}

impl From<LabError> for Stop {
    fn from(e: LabError) -> Self {
        if e.is_stop() { Self::Interrupted(e.to_string()) } else { Self::bad(e) }
    }
}
