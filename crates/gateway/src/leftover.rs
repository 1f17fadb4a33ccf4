//! What a gateway that was killed has left behind, and its removal.
//!
//! While a gateway runs, a file beside its lock says what it has changed and what was there before. The file goes when the changes
//! go. If it is found later, the gateway was killed and nobody has cleaned up: the next start of the same gateway, or
//! `skyhaul gateway clean`, then restores what was there before the first of them.

use crate::error::GatewayError;
use crate::system::{self, Before, Lock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Record {
    /// The network namespace in which it was changed, as the kernel names it.
    namespace: String,
    /// With `on-failure = "block"` it stays after a kill, on purpose.
    block: bool,
    before: Before,
}

/// The file about a gateway.
#[must_use]
pub(crate) fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.before"))
}

fn namespace() -> String {
    fs::read_link("/proc/thread-self/ns/net").map(|p| p.display().to_string()).unwrap_or_default()
}

/// What was there before a gateway that was killed in this namespace; `None` if none was, or it has been cleaned up after.
pub(crate) fn read(folder: &Path, name: &str) -> Option<Before> {
    record(folder, name).map(|r| r.before)
}

fn record(folder: &Path, name: &str) -> Option<Record> {
    let record: Record = serde_json::from_str(&fs::read_to_string(file(folder, name)).ok()?).ok()?;
    // Another namespace, or one before the last boot, has settings of its own.
    (record.namespace == namespace()).then_some(record)
}

/// Notes what is there before a gateway changes it.
pub(crate) fn note(folder: &Path, name: &str, block: bool, before: &Before) -> Result<(), GatewayError> {
    let path = file(folder, name);
    let record = Record { namespace: namespace(), block, before: before.clone() };
    let text = serde_json::to_string(&record).unwrap_or_default();
    // Renamed into place: half a file would be worth nothing.
    let new = path.with_extension("before.new");
    let write = || {
        let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, &path)
    };
    write().map_err(GatewayError::os(format!("write {}", path.display())))
}

/// Removes what a gateway has left behind whose file this is, unless it runs again; `gateway`: the process that has died. The kernel
/// may close its standard input to the keeper before it gives up its lock.
pub(crate) fn sweep(path: &Path, gateway: &str, before: &Before) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem().and_then(|n| n.to_str())) else {
        return;
    };
    // The next one restores what this one would have restored.
    let Ok(_lock) = Lock::take_as(folder, name, system::KEEPER, gateway) else { return };
    let _ = system::remove(before);
    forget(path);
}

/// Forgets what was there before: it is there again.
pub(crate) fn forget(path: &Path) {
    let _ = fs::remove_file(path);
}

/// The result of [`clean`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaned {
    /// Everything was removed and restored.
    All,
    /// There was nothing.
    Nothing,
    /// It was kept, because the gateway's file says `on-failure = "block"`.
    Kept,
}

/// Removes what a gateway that was killed has left behind in this namespace, and restores what it had changed. `keep_block`:
/// what a gateway with `on-failure = "block"` has left behind stays.
///
/// # Errors
/// If a gateway runs here, or the privileges are missing.
pub fn clean(folder: &Path, name: &str, keep_block: bool) -> Result<Cleaned, GatewayError> {
    let _lock = Lock::take(folder, name)?;
    let record = record(folder, name);
    if keep_block && record.as_ref().is_some_and(|r| r.block) {
        return Ok(Cleaned::Kept);
    }
    let before = record.map(|r| r.before);
    let table = format!("skyhaul_{}", name.replace('-', "_"));
    // Fails without privileges, before anything is removed.
    let there = system::has_table(&table)?;
    if before.is_none() && !there {
        return Ok(Cleaned::Nothing);
    }
    // Routes, rules and settings are the same for gateways of all names.
    if let Some(other) = running(folder).into_iter().find(|other| other != name) {
        return Err(GatewayError::OtherRuns(other));
    }
    system::remove(&before.unwrap_or_else(|| Before::unknown(table)))?;
    forget(&file(folder, name));
    Ok(Cleaned::All)
}

/// The names of gateways that run with this folder.
fn running(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|f| {
        let path = f.path();
        (path.extension()? == "lock").then(|| path.file_stem()?.to_str().map(str::to_owned))?
    });
    names.filter(|name| Lock::is_taken(folder, name)).collect()
}
