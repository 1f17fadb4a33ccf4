//! The cases of this crate, file by file. They are read at run time, so that a changed case needs no build.

use super::{Case, SyntaxError, parse};
use std::fs;
use std::path::Path;

/// The cases of every file, with its name, in the order of names.
///
/// # Errors
/// The first mistake in any of them, or that a file cannot be read.
pub fn all() -> Result<Vec<(String, Vec<Case>)>, SyntaxError> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
    let unread =
        |e: std::io::Error| SyntaxError { file: folder.display().to_string(), line: 0, what: e.to_string() };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        paths.push(entry.map_err(unread)?.path());
    }
    paths.retain(|p| p.extension().is_some_and(|e| e == "case"));
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).map_err(unread)?;
        let cases = parse(&name, &text)?;
        files.push((name, cases));
    }
    Ok(files)
}
