//! What can go wrong with a study.

use std::path::PathBuf;

/// An error of a study: one line that says where and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The file is no TOML of the expected form.
    #[error("{}{}: {message}", path.display(), at(*line))]
    Parse {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
    /// The study says something that cannot be.
    #[error("{}{}: `{key}`: {message}{}", path.display(), at(*line), list(accepted))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Its line.
        line: Option<usize>,
        /// The key.
        key: String,
        /// What is wrong.
        message: String,
        /// What would be accepted.
        accepted: Vec<String>,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file cannot be written; what was stored before stays.
    #[error("cannot write {}: {}", path.display(), write_problem(source))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A renderer of figures failed.
    #[error("cannot draw {}: {message}", path.display())]
    Render {
        /// The picture.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// A cell came back from elsewhere with something that is not its result.
    #[error("the answer for {label} cannot be used: {message}")]
    Answer {
        /// The cell in words.
        label: String,
        /// Why.
        message: String,
    },
}

fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |l| format!(":{l}"))
}

fn list(accepted: &[String]) -> String {
    if accepted.is_empty() { String::new() } else { format!("; accepted: {}", accepted.join(", ")) }
}

fn write_problem(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "the disk is full; finished cells are kept, free some space and run again to go on".to_owned()
        }
        _ => format!("{e}; finished cells are kept"),
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
