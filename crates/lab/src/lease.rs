//! The lock of a results folder: one program writes at a time, and results of an older one are removed once the new
//! results are complete.
//!
//! A file `.skyhaul` marks the folder as Skyhaul's, even if the program that created it was killed, and lists the
//! files written. A lock on this file keeps other programs out; the system releases it when the program ends in any
//! way.

use crate::error::LabError;
use crate::results::{CACHE, MANIFEST};
use skyhaul_study::files::stays_inside;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Component, Path, PathBuf};

/// The file with the mark, the lock and the list.
const MARK: &str = ".skyhaul";

/// The right to write into a folder, until it is dropped.
#[derive(Debug)]
pub struct Lease {
    folder: PathBuf,
    mark: File,
}

impl Lease {
    /// Creates the folder and locks it.
    ///
    /// # Errors
    /// If it cannot be created, holds files but no results, or another program writes into it.
    pub fn take(folder: &Path) -> Result<Self, LabError> {
        let wrong = |source| LabError::Results { folder: folder.to_owned(), source };
        prepare(folder)?;
        let path = folder.join(MARK);
        let mark = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(wrong)?;
        match mark.try_lock() {
            Ok(()) => Ok(Self { folder: folder.to_owned(), mark }),
            Err(TryLockError::WouldBlock) => Err(LabError::Busy { folder: folder.to_owned() }),
            Err(TryLockError::Error(source)) => Err(wrong(source)),
        }
    }

    /// Completes the results: removes files that an older program wrote and this one did not, with folders that
    /// become empty.
    ///
    /// # Errors
    /// If the list cannot be read or written, or an old file cannot be removed.
    pub fn finish(mut self, written: &[PathBuf]) -> Result<(), LabError> {
        let path = self.folder.join(MARK);
        let mut old = String::new();
        self.mark.read_to_string(&mut old).map_err(LabError::read(&path))?;
        let inside = |p: &PathBuf| Some(p.strip_prefix(&self.folder).ok()?.to_str()?.replace('\\', "/"));
        let mut now: Vec<String> = written.iter().filter_map(inside).collect();
        now.sort();
        for name in
            old.lines().filter(|n| is_inside(n) && now.binary_search_by(|w| w.as_str().cmp(n)).is_err())
        {
            remove(&self.folder, name)?;
        }
        let text: String = now.iter().flat_map(|n| [n.as_str(), "\n"]).collect();
        let fail = LabError::write(&path);
        self.mark
            .set_len(0)
            .and_then(|()| self.mark.rewind())
            .and_then(|()| self.mark.write_all(text.as_bytes()))
            .map_err(fail)
    }
}

/// Prepares a results folder: creates it, and refuses one with other files.
fn prepare(folder: &Path) -> Result<(), LabError> {
    let wrong = |source| LabError::Results { folder: folder.to_owned(), source };
    match fs::read_dir(folder) {
        Ok(entries) => {
            // Temporary files that a killed program left do not count.
            let left_over = |name: &str| name.starts_with('.') && name.ends_with(".tmp");
            let names = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned());
            let foreign = names.into_iter().any(|name| name != CACHE && !left_over(&name));
            if foreign && !is_ours(folder) {
                return Err(LabError::NotOurs { folder: folder.to_owned() });
            }
            Ok(())
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => fs::create_dir_all(folder).map_err(wrong),
        Err(e) => Err(wrong(e)),
    }
}

fn is_ours(folder: &Path) -> bool {
    [MARK, MANIFEST].iter().any(|name| folder.join(name).is_file())
}

/// Whether a line of the list names a path below the folder.
fn is_inside(name: &str) -> bool {
    !name.is_empty() && Path::new(name).components().all(|c| matches!(c, Component::Normal(_)))
}

fn remove(folder: &Path, name: &str) -> Result<(), LabError> {
    let path = folder.join(name);
    // Only below the folder, also through symbolic links; a file that is gone already is no error.
    if stays_inside(folder, &path).is_err() {
        return Ok(());
    }
    match fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(LabError::write(&path)(e)),
        _ => {}
    }
    let above = path.ancestors().skip(1).take_while(|d| *d != folder);
    // A folder with other files stays.
    above.map(fs::remove_dir).take_while(Result::is_ok).for_each(drop);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("skyhaul-lease-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    fn put(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
        let path = |n: &&str| folder.join(n);
        names.iter().map(path).for_each(|p| {
            fs::create_dir_all(p.parent().expect("below")).and_then(|()| fs::write(p, "x")).expect("written");
        });
        names.iter().map(path).collect()
    }

    #[test]
    fn one_program_at_a_time() {
        let dir = folder("one");
        let first = Lease::take(&dir).expect("free");
        assert!(matches!(Lease::take(&dir), Err(LabError::Busy { .. })));
        drop(first);
        Lease::take(&dir).expect("free again");
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn a_run_that_was_killed_does_not_block_the_next() {
        let dir = folder("killed");
        drop(Lease::take(&dir).expect("free"));
        put(&dir, &["flows.parquet"]);
        Lease::take(&dir).expect("ours, without a manifest");
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn files_of_others_are_refused_and_kept() {
        let dir = folder("others");
        put(&dir, &["thesis.tex"]);
        assert!(matches!(Lease::take(&dir), Err(LabError::NotOurs { .. })));
        assert!(dir.join("thesis.tex").is_file() && !dir.join(MARK).exists());
        fs::remove_dir_all(&dir).expect("removed");
    }

    #[test]
    fn what_an_older_run_wrote_goes_and_nothing_else() {
        let dir = folder("older");
        let lease = Lease::take(&dir).expect("free");
        let old =
            put(&dir, &["manifest.json", "001-a/flows.parquet", "002-b/flows.parquet", "figures/x.svg"]);
        lease.finish(&old).expect("listed");
        put(&dir, &["figures/of-mine.svg"]);
        // Entries of the list that lead out of the folder are not trusted.
        let list = fs::read_to_string(dir.join(MARK)).expect("a list");
        let outside = dir.with_extension("victim");
        fs::write(&outside, "x").expect("written");
        let evil = format!("../{}", outside.file_name().expect("a name").to_string_lossy());
        fs::write(dir.join(MARK), format!("{list}{evil}\n/etc/hostname\n")).expect("written");
        let lease = Lease::take(&dir).expect("ours");
        let new = put(&dir, &["manifest.json", "001-a/flows.parquet"]);
        lease.finish(&new).expect("tidied");
        assert!(new.iter().all(|p| p.is_file()) && outside.is_file());
        assert!(!dir.join("002-b").exists() && !dir.join("figures/x.svg").exists());
        assert!(dir.join("figures/of-mine.svg").is_file());
        fs::remove_dir_all(&dir).and_then(|()| fs::remove_file(&outside)).expect("removed");
    }
}
