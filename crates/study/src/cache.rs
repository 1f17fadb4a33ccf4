//! Finished cells on disk: one small file each, written atomically, with a checksum.
//!
//! ```text
//! {"format":1,"engine":"…","quantities":"…","key":"…","sha256":"…"}\n
//! {…what the cell measured…}\n
//! ```
//! The key covers scenario, seed and engine version, so entries never become stale. An entry from before a quantity
//! was added lacks it and counts as absent; a damaged entry is also reported. Several processes may share a cache.

use crate::error::{EntryError, StudyError, io_words};
use crate::files::write_atomically;
use crate::key::{hex, quantities};
use crate::observed::Observed;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// A folder of finished cells.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

#[derive(Deserialize, Serialize)]
struct Header {
    format: u32,
    engine: String,
    #[serde(default)]
    quantities: String,
    key: String,
    sha256: String,
}

const FORMAT: u32 = 1;

/// The entry of the cache under a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// Nothing.
    Absent,
    /// A file that cannot be used; one line with its name and the reason.
    Damaged(String),
    /// The measurements of the cell.
    Found(Box<Observed>),
}

impl Cache {
    /// The cache in a folder, which is created with the first cell stored.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The default folder: `$SKYHAUL_CACHE`, `$XDG_CACHE_HOME/skyhaul`, `$HOME/.cache/skyhaul`, or `.cache/skyhaul`
    /// in the current folder.
    #[must_use]
    pub fn default_dir() -> PathBuf {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        var("SKYHAUL_CACHE")
            .or_else(|| var("XDG_CACHE_HOME").map(|d| d.join("skyhaul")))
            .or_else(|| var("HOME").map(|d| d.join(".cache/skyhaul")))
            .unwrap_or_else(|| PathBuf::from(".cache/skyhaul"))
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// File of a key.
    #[must_use]
    pub fn path(&self, key: &str) -> PathBuf {
        let (folder, rest) = key.split_at(key.len().min(2));
        self.dir.join("cells").join(folder).join(format!("{rest}.json"))
    }

    /// Looks a cell up.
    #[must_use]
    pub fn load(&self, engine: &str, key: &str) -> Entry {
        let path = self.path(key);
        let text = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Entry::Absent,
            Err(e) => {
                return Entry::Damaged(format!("{}: {}; the cell runs again", path.display(), io_words(&e)));
            }
        };
        let text = std::str::from_utf8(&text).map_err(|_| EntryError::NotText);
        match text.and_then(|t| decode(t, engine, key)) {
            Ok(observed) => Entry::Found(Box::new(observed)),
            Err(EntryError::Foreign) => Entry::Absent,
            Err(why) => Entry::Damaged(format!("{}: {why}; the cell runs again", path.display())),
        }
    }

    /// Stores a cell atomically for other processes.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self, engine: &str, key: &str, observed: &Observed) -> Result<(), StudyError> {
        write_atomically(&self.path(key), encode(engine, key, observed).as_bytes())
    }
}

/// The text of an entry, which a worker on another machine sends back.
#[must_use]
pub fn encode(engine: &str, key: &str, observed: &Observed) -> String {
    let body = serde_json::to_string(observed).expect("maps with string keys and numbers are JSON");
    let sha256 = hex(&Sha256::digest(body.as_bytes()));
    let header = Header {
        format: FORMAT,
        engine: engine.to_owned(),
        quantities: quantities().to_owned(),
        key: key.to_owned(),
        sha256,
    };
    let header = serde_json::to_string(&header).expect("strings are JSON");
    format!("{header}\n{body}\n")
}

/// Reads the text of an entry.
///
/// # Errors
/// If it is damaged, or belongs to another cell or engine.
pub fn decode(text: &str, engine: &str, key: &str) -> Result<Observed, EntryError> {
    let (header, body) = text.split_once('\n').ok_or(EntryError::CutOff)?;
    let header: Header = serde_json::from_str(header).map_err(|_| EntryError::Header)?;
    if header.format != FORMAT || header.engine != engine || header.quantities != quantities() {
        return Err(EntryError::Foreign);
    }
    if header.key != key {
        return Err(EntryError::OtherCell);
    }
    let body = body.strip_suffix('\n').ok_or(EntryError::CutOff)?;
    if hex(&Sha256::digest(body.as_bytes())) != header.sha256 {
        return Err(EntryError::Checksum);
    }
    serde_json::from_str(body).map_err(EntryError::Unreadable)
}
