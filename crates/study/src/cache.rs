//! Finished cells on disk: one small file each, written atomically, with a checksum.
//!
//! ```text
//! {"format":1,"engine":"…","key":"…","sha256":"…"}\n
//! {…what the cell measured…}\n
//! ```
//! The key covers scenario, seed and engine version, so entries never go stale; a damaged entry is reported and
//! counts as absent. Several processes may share a cache.

use crate::error::StudyError;
use crate::observed::Observed;
use crate::plan::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A folder of finished cells.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

#[derive(Deserialize, Serialize)]
struct Header {
    format: u32,
    engine: String,
    key: String,
    sha256: String,
}

const FORMAT: u32 = 1;

/// What the cache has under a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// Nothing.
    Absent,
    /// A file that cannot be used; one line that names it.
    Damaged(String),
    /// What the cell measured.
    Found(Box<Observed>),
}

impl Cache {
    /// The cache in a folder, which is made when the first cell is stored.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Where to cache by default: `$SKYHAUL_CACHE`, `$XDG_CACHE_HOME/skyhaul`, `$HOME/.cache/skyhaul`, or
    /// `.cache/skyhaul` here.
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
            Err(e) => return Entry::Damaged(format!("{}: {e}; the cell runs again", path.display())),
        };
        match std::str::from_utf8(&text)
            .map_err(|_| "not text".to_owned())
            .and_then(|t| decode(t, engine, key))
        {
            Ok(Some(observed)) => Entry::Found(Box::new(observed)),
            Ok(None) => Entry::Absent,
            Err(why) => Entry::Damaged(format!("{}: {why}; the cell runs again", path.display())),
        }
    }

    /// Stores a cell; other processes see either nothing or all of it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn store(&self, engine: &str, key: &str, observed: &Observed) -> Result<(), StudyError> {
        write_atomically(&self.path(key), encode(engine, key, observed).as_bytes())
    }
}

/// The text of an entry: what a worker on another machine sends back.
#[must_use]
pub fn encode(engine: &str, key: &str, observed: &Observed) -> String {
    let body = serde_json::to_string(observed).expect("maps with string keys and numbers are JSON");
    let sha256 = hex(&Sha256::digest(body.as_bytes()));
    let header = Header { format: FORMAT, engine: engine.to_owned(), key: key.to_owned(), sha256 };
    let header = serde_json::to_string(&header).expect("strings are JSON");
    format!("{header}\n{body}\n")
}

/// Reads the text of an entry; `None` if it belongs to another engine or format.
///
/// # Errors
/// If it is damaged; in words.
pub fn decode(text: &str, engine: &str, key: &str) -> Result<Option<Observed>, String> {
    let Some((header, body)) = text.split_once('\n') else { return Err("the entry is cut off".to_owned()) };
    let header: Header = serde_json::from_str(header).map_err(|_| "its first line is damaged".to_owned())?;
    if header.format != FORMAT || header.engine != engine {
        return Ok(None);
    }
    if header.key != key {
        return Err("it belongs to another cell".to_owned());
    }
    let body = body.strip_suffix('\n').ok_or_else(|| "the entry is cut off".to_owned())?;
    if hex(&Sha256::digest(body.as_bytes())) != header.sha256 {
        return Err("its checksum is wrong".to_owned());
    }
    serde_json::from_str(body).map(Some).map_err(|e| format!("it cannot be read ({e})"))
}

/// Writes a file under a temporary name and then gives it its own: a reader never sees half of it, and an
/// older version survives a full disk.
///
/// # Errors
/// If it cannot be written; no temporary file is left.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StudyError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let fail = |source| StudyError::Write { path: path.to_owned(), source };
    let dir = path.parent().unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(dir).map_err(fail)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = dir.join(format!(".{name}.{}.{unique}.tmp", std::process::id()));
    let write = || {
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        // A rename may reach the disk before the content does.
        file.sync_data()?;
        std::fs::rename(&temporary, path)
    };
    write().map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        fail(e)
    })
}
