//! The settings of the system before a gateway changed them, in a file next to its lock.
//!
//! The file goes when the changes go. If it is found later, the gateway was killed and nobody has cleaned up: the next start of the
//! same gateway, or `skyhaul gateway clean`, then restores what was there before the first of them.

use crate::error::GatewayError;
use crate::slot::Slot;
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
    /// The slot of the gateway; `None` if it is not known.
    #[serde(default)]
    pub(crate) slot: Option<Slot>,
    /// Whether the gateway leads packets to the repair of datagrams.
    #[serde(default = "yes")]
    pub(crate) repairs: bool,
    /// The interfaces of the gateway: that towards the link, and those towards hosts.
    #[serde(default)]
    pub(crate) link: String,
    #[serde(default)]
    pub(crate) hosts: Vec<String>,
}

fn yes() -> bool {
    true
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

/// The names of other gateways of this namespace that have changed something, each with its settings.
pub(crate) fn others(folder: &Path, name: &str) -> Vec<(String, SavedSettings)> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|f| f.path());
    let names = files.filter_map(|path| {
        (path.extension()? == "before").then(|| path.file_stem()?.to_str().map(str::to_owned))?
    });
    let others = names.filter(|other| other != name);
    let mut all: Vec<_> = others.filter_map(|other| read(folder, &other).map(|of| (other, of))).collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all
}

/// A lock of the folder, which gateways hold while they change what all of them share.
#[derive(Debug)]
pub(crate) struct Turn {
    _folder: Option<File>,
}

/// Maximum number of attempts, 10 ms apart, to get a turn.
const ATTEMPTS: u32 = 1000;

impl Turn {
    /// Waits for other gateways. If one of them holds the lock for very long, it has been stopped: nobody waits for that.
    pub(crate) fn wait(folder: &Path) -> Self {
        let Ok(file) = File::open(folder) else { return Self { _folder: None } };
        for _ in 0..ATTEMPTS {
            if file.try_lock().is_ok() {
                return Self { _folder: Some(file) };
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Self { _folder: None }
    }
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
            slot: Some(Slot::default()),
            repairs: false,
            link: "sat0".into(),
            hosts: vec!["lan0".into()],
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
