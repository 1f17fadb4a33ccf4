//! Writing files so that nobody meets half of one.

use crate::error::StudyError;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file under a temporary name and then gives it its own: a reader never sees half of it, and an
/// older version survives a full disk.
///
/// # Errors
/// If it cannot be written; no temporary file is left.
pub fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let dir = path.parent().unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(dir)?;
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
    write().inspect_err(|_| drop(std::fs::remove_file(&temporary)))
}

/// As [`replace`]; the error names the file.
///
/// # Errors
/// If it cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StudyError> {
    replace(path, bytes).map_err(|source| StudyError::Write { path: path.to_owned(), source })
}
