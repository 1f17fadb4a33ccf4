//! Reading input files of a limited size, and writing files atomically, never outside the intended folder.

use crate::error::{StudyError, io_words};
use skyhaul_scenario::LoadError;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file under a temporary name and renames it: a reader never sees half of it, and an older version survives
/// a full disk.
///
/// # Errors
/// If it cannot be written; no temporary file is left.
pub fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    replace_by(path, |temporary| {
        let mut file = std::fs::File::create(temporary)?;
        file.write_all(bytes)?;
        // A rename may reach the disk before the content does.
        file.sync_data()
    })
}

/// As [`replace`], for content that `write` stores in a file of the given name.
///
/// # Errors
/// If it cannot be written; no temporary file is left.
pub fn replace_by(path: &Path, write: impl FnOnce(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let dir = path.parent().unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(dir)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = dir.join(format!(".{name}.{}.{unique}.tmp", std::process::id()));
    write(&temporary)
        .and_then(|()| std::fs::rename(&temporary, path))
        .inspect_err(|_| drop(std::fs::remove_file(&temporary)))
}

/// Largest input file, bytes: far larger than any real file, but small enough to stop an endless one (`/dev/zero`).
const LARGEST: u64 = 256 << 20;

/// Reads an input file: a scenario, a study, a recorded series. A byte order mark at its beginning is skipped.
///
/// # Errors
/// If it cannot be read, is not UTF-8 text, or is larger than 256 MiB.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    text_from(std::fs::File::open(path)?)
}

/// The name of standard input where a command takes a file.
pub const STDIN: &str = "-";

/// Reads standard input, as [`read_text`] reads a file.
///
/// # Errors
/// As [`read_text`].
pub fn read_stdin() -> std::io::Result<String> {
    text_from(std::io::stdin().lock())
}

fn text_from(source: impl std::io::Read) -> std::io::Result<String> {
    let refuse = |message: &str| Err(std::io::Error::new(std::io::ErrorKind::InvalidData, message));
    let mut bytes = Vec::new();
    source.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return refuse("larger than 256 MiB: no scenario, study or series is that long");
    }
    let text = match bytes.strip_prefix(b"\xEF\xBB\xBF") {
        Some(text) => text.to_vec(),
        None => bytes,
    };
    if text.starts_with(&[0xFF, 0xFE]) || text.starts_with(&[0xFE, 0xFF]) {
        return refuse("UTF-16 text: save it as UTF-8");
    }
    String::from_utf8(text).map_err(|_| std::io::ErrorKind::InvalidData.into())
}

/// [`read_text`] as the loader of scenarios.
///
/// # Errors
/// If [`read_text`] fails; the error has the system's words.
pub fn load(path: &str) -> Result<String, LoadError> {
    read_text(Path::new(path)).map_err(|e| LoadError::System(io_words(&e)))
}

/// The message for a name that is not plain.
pub(crate) const NOT_A_NAME: &str = "not a plain file name: write it without folders";

/// Whether a word is a plain file name: not empty, without folders and control characters.
#[must_use]
pub fn is_plain_name(name: &str) -> bool {
    let folders = name.contains(['/', '\\']) || name.split('.').all(str::is_empty);
    !folders && !name.chars().any(char::is_control)
}

/// Creates the folder of `path` below `root`, unless a symbolic link leads elsewhere. The file itself is replaced,
/// not followed ([`replace`]).
///
/// # Errors
/// If the folder cannot be created, or lies outside `root`.
pub fn make_room(root: &Path, path: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(root)?;
    stays_inside(root, path)?;
    std::fs::create_dir_all(path.parent().unwrap_or(root))
}

/// Refuses a `path` below `root` whose folder is elsewhere because of a symbolic link.
///
/// # Errors
/// If it is outside `root`, or `root` does not exist.
pub fn stays_inside(root: &Path, path: &Path) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(root);
    let root = root.canonicalize()?;
    // The nearest existing folder decides where the missing ones would be created.
    let nearest = dir.ancestors().find(|d| d.exists()).unwrap_or(&root).canonicalize()?;
    if !nearest.starts_with(&root) {
        let message =
            format!("{} leads to {}, outside of the results folder", dir.display(), nearest.display());
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// As [`replace`]; the error names the file.
///
/// # Errors
/// If it cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StudyError> {
    replace(path, bytes).map_err(|source| StudyError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_folders() {
        for name in ["fig11", "fig11.svg", "a b", "..a", "a..", "Größe"] {
            assert!(is_plain_name(name), "{name}");
        }
        for name in ["", ".", "..", "../victim", "a/b", "a\\b", "/etc/passwd", "a\u{1b}[31m", "a\n"] {
            assert!(!is_plain_name(name), "{name}");
        }
    }

    #[test]
    fn a_file_is_read_as_text_of_a_sensible_length() {
        let dir = std::env::temp_dir().join(format!("skyhaul-texts-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("made");
        let path = dir.join("a.toml");
        let of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            read_text(&path).map_err(|e| io_words(&e))
        };
        assert_eq!(of("\u{feff}duration = 1".as_bytes()).as_deref(), Ok("duration = 1"));
        assert_eq!(of(b"").as_deref(), Ok(""));
        assert_eq!(of(&[0xFF, 0xFE, b'a', 0]), Err("UTF-16 text: save it as UTF-8".to_owned()));
        assert_eq!(of(&[b'a', 0xC3]), Err("not UTF-8 text".to_owned()));
        std::fs::remove_dir_all(&dir).expect("removed");
        let endless = read_text(Path::new("/dev/zero")).map_err(|e| io_words(&e));
        assert!(cfg!(not(unix)) || endless.is_err_and(|e| e.starts_with("larger than 256 MiB")));
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_does_not_lead_outside() {
        let dir = std::env::temp_dir().join(format!("skyhaul-files-{}", std::process::id()));
        let (root, outside) = (dir.join("results"), dir.join("outside"));
        std::fs::create_dir_all(&root).expect("made");
        std::fs::create_dir_all(&outside).expect("made");
        std::os::unix::fs::symlink(&outside, root.join("figures")).expect("linked");
        let e = make_room(&root, &root.join("figures/a.svg")).expect_err("outside");
        assert!(e.to_string().contains("outside of the results folder"), "{e}");
        assert!(make_room(&root, &root.join("figures/deep/a.svg")).is_err());
        assert!(!outside.join("deep").exists());
        make_room(&root, &root.join("tables/deep/a.csv")).expect("inside");
        assert!(root.join("tables/deep").is_dir());
        // A link in place of the file is replaced.
        std::os::unix::fs::symlink(outside.join("victim"), root.join("report.html")).expect("linked");
        replace(&root.join("report.html"), b"ours").expect("written");
        assert!(!outside.join("victim").exists());
        std::fs::remove_dir_all(&dir).expect("removed");
    }
}
