//! The journal of a search: the outcome of every case, so that a search that was stopped continues.
//!
//! The first line says which search it is; each further line is a case. A search with the same seed asks for the same
//! cases in the same order, so the journal need not hold the state of the search. A last line cut short by a kill is
//! dropped.

use crate::attack::point::Point;
use crate::attack::setup::Outcome;
use crate::error::{AttackError, LabError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Name of the file.
pub(super) const FILE: &str = "journal.jsonl";

/// Which search it is.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) control: String,
    pub(super) goal: String,
    pub(super) bounds: String,
    pub(super) seed: u64,
    pub(super) engine: String,
}

impl Head {
    /// In what this search differs from another, for a message; `None` if it is the same.
    fn differs(&self, other: &Self) -> Option<String> {
        [
            ("control", &self.control, &other.control),
            ("goal", &self.goal, &other.goal),
            ("engine", &self.engine, &other.engine),
        ]
        .into_iter()
        .find(|(_, a, b)| a != b)
        .map(|(what, a, b)| format!("{what}, {a} instead of {b}"))
        .or_else(|| {
            (self.seed != other.seed).then(|| format!("seed, {} instead of {}", self.seed, other.seed))
        })
        .or_else(|| (self.bounds != other.bounds).then(|| "search, with other bounds".to_owned()))
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line {
    case: Point,
    outcome: Outcome,
}

/// An open journal.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens the journal of a folder, with the cases that it holds.
    ///
    /// # Errors
    /// If it is of another search, damaged, or cannot be read or written.
    pub(super) fn open(folder: &Path, head: &Head) -> Result<(Self, BTreeMap<String, Outcome>), LabError> {
        let path = folder.join(FILE);
        let mut known = BTreeMap::new();
        let mut whole = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(LabError::read(&path)(e)),
        };
        // What follows the last line break was being written when the program was killed.
        whole.truncate(whole.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1));
        let damaged = |line: usize| AttackError::Journal { path: path.clone(), line };
        for (i, line) in whole.split_inclusive(|b| *b == b'\n').enumerate() {
            if i == 0 {
                let other: Head = serde_json::from_slice(line).map_err(|_| damaged(1))?;
                if let Some(what) = other.differs(head) {
                    return Err(AttackError::Other { folder: folder.to_owned(), what }.into());
                }
                continue;
            }
            let Line { case, outcome } = serde_json::from_slice(line).map_err(|_| damaged(i + 1))?;
            known.insert(case.key(), outcome);
        }
        let file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(LabError::write(&path))?;
        file.set_len(whole.len() as u64).map_err(LabError::write(&path))?;
        let journal = Self { path, file: Mutex::new(file) };
        if whole.is_empty() {
            journal.put(head)?;
        }
        Ok((journal, known))
    }

    /// Notes a case.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn note(&self, case: &Point, outcome: &Outcome) -> Result<(), LabError> {
        self.put(&Line { case: case.clone(), outcome: outcome.clone() })
    }

    fn put(&self, value: &impl Serialize) -> Result<(), LabError> {
        let mut line = serde_json::to_string(value).unwrap_or_else(|_| unreachable!("all keys are strings"));
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).map_err(LabError::write(&self.path))
    }
}
