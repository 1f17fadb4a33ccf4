//! The settings of the system before a gateway changed them, in a file next to its lock.
//!
//! The file goes when the changes go. If it is found later, the gateway was killed and nobody has cleaned up: the next start of the
//! same gateway, or `skyhaul gateway clean`, then restores what was there before the first of them.

use crate::error::GatewayError;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The table to remove, and the settings to restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SavedSettings {
    pub(crate) table: String,
    pub(crate) early_demux: bool,
    pub(crate) reflect_tos: bool,
    /// The interface for which the gateway has enabled forwarding.
    pub(crate) forwarding: Option<String>,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Record {
    /// The boot and the network namespace in which the settings were changed.
    namespace: String,
    /// `on-failure = "block"`: the table stays after a kill, on purpose.
    pub(crate) block: bool,
    pub(crate) before: SavedSettings,
}

/// The file about a gateway.
#[must_use]
pub(crate) fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.before"))
}

/// The kernel's names of this boot and of the calling thread's network namespace: the first namespace has the same name after each boot.
fn namespace() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/thread-self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// What was there before a gateway that was killed in this namespace; `None` if none was, or it has been cleaned up after.
pub(crate) fn read(folder: &Path, name: &str) -> Option<SavedSettings> {
    record(folder, name).map(|r| r.before)
}

/// The whole content of the file, under the same conditions as [`read`].
pub(crate) fn record(folder: &Path, name: &str) -> Option<Record> {
    let record: Record = serde_json::from_str(&fs::read_to_string(file(folder, name)).ok()?).ok()?;
    // Another namespace, or one before the last boot, had settings of its own.
    (record.namespace == namespace()).then_some(record)
}

/// Notes what is there before a gateway changes it.
pub(crate) fn note(
    folder: &Path,
    name: &str,
    block: bool,
    before: &SavedSettings,
) -> Result<(), GatewayError> {
    let path = file(folder, name);
    let record = Record { namespace: namespace(), block, before: before.clone() };
    let text = serde_json::to_string(&record).unwrap_or_default();
    // Renamed into place, so that a kill never leaves half a file.
    let new = path.with_extension("before.new");
    let write = || {
        let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, &path)
    };
    write().map_err(GatewayError::os(format!("write {}", path.display())))
}

/// Removes the file: what was there before is there again.
pub(crate) fn forget(path: &Path) {
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_an_earlier_boot_are_not_restored() {
        let folder = std::env::temp_dir().join(format!("skyhaul-saved-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("makes");
        let before = SavedSettings {
            table: "skyhaul_g".into(),
            early_demux: true,
            reflect_tos: false,
            forwarding: None,
        };
        note(&folder, "g", false, &before).expect("writes");
        assert_eq!(read(&folder, "g"), Some(before));
        let path = file(&folder, "g");
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("reads");
        let text = fs::read_to_string(&path).expect("reads").replace(boot.trim(), "earlier");
        fs::write(&path, text).expect("writes");
        assert_eq!(read(&folder, "g"), None);
        fs::remove_dir_all(&folder).expect("removes");
    }
}
