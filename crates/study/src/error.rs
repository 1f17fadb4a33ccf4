//! Errors of studies.

use skyhaul_scenario::shortened;
use std::io::ErrorKind;
use std::path::PathBuf;

/// An error of a study: one line with the place and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The file is not TOML of the expected form.
    #[error("{}{}: {}", path.display(), at(*line), shortened(message))]
    Parse {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// The study has an invalid value.
    #[error("{}{}: `{key}`: {}{}", path.display(), at(*line), shortened(message), list(accepted))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: Option<usize>,
        /// The key.
        key: String,
        /// What is wrong.
        message: String,
        /// The accepted values.
        accepted: Vec<String>,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {}", path.display(), io_words(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be written; what was stored before is kept.
    #[error("cannot write {}: {}", path.display(), write_problem(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A renderer of figures failed.
    #[error("cannot draw {}: {source}", path.display())]
    Render {
        /// The picture.
        path: PathBuf,
        /// Why.
        source: RenderError,
    },
    /// The result of a remote cell is invalid.
    #[error("the result for {label} cannot be used: {source}")]
    Answer {
        /// Label of the cell.
        label: String,
        /// Why.
        source: EntryError,
    },
    /// A remote cell returned a result that was not requested.
    #[error("the result for {label} cannot be used: this cell was not requested")]
    NotRequested {
        /// Label of the cell.
        label: String,
    },
}

/// Why a renderer cannot draw a figure.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The renderer cannot be reached.
    #[error("{}", io_words(.0))]
    Io(#[from] std::io::Error),
    /// The message of the renderer.
    #[error("{0}")]
    Message(String),
}

/// Why the text of an entry cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// The entry is from another engine, or the list of quantities has changed.
    #[error("the result is from another engine")]
    Foreign,
    /// Part of the entry is missing.
    #[error("the entry is truncated")]
    CutOff,
    /// Its first line is invalid.
    #[error("its first line is damaged")]
    Header,
    /// Its key belongs to another cell.
    #[error("it belongs to another cell")]
    OtherCell,
    /// Its checksum does not match.
    #[error("its checksum is wrong")]
    Checksum,
    /// Its content cannot be parsed.
    #[error("it cannot be read ({0})")]
    Unreadable(serde_json::Error),
    /// The entry is not UTF-8.
    #[error("it is not text")]
    NotText,
}

/// The error message of the system, without its number.
#[must_use]
pub fn io_words(e: &std::io::Error) -> String {
    match e.kind() {
        ErrorKind::NotFound => "no such file or directory".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::StorageFull => "the disk is full".into(),
        ErrorKind::NotADirectory => "not a directory".into(),
        ErrorKind::IsADirectory => "is a directory".into(),
        ErrorKind::InvalidData if e.get_ref().is_none() => "not UTF-8 text".into(),
        _ => {
            let text = e.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_owned()
        }
    }
}

fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |l| format!(":{l}"))
}

fn list(accepted: &[String]) -> String {
    if accepted.is_empty() { String::new() } else { format!("; accepted: {}", accepted.join(", ")) }
}

fn write_problem(e: &std::io::Error) -> String {
    match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "the disk is full; finished cells are kept: free some space and run again to continue".to_owned()
        }
        _ => format!("{}; finished cells are kept", io_words(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_its_path_and_the_way_out() {
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let text = StudyError::Write { path: "/data/cells/ab.json".into(), source }.to_string();
        assert!(
            text.contains("/data/cells/ab.json") && text.contains("full") && text.contains("kept"),
            "{text}"
        );
    }
}
