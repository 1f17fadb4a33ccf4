//! Where the locks and sockets of gateways are, and which gateways run.

use crate::config::Config;
use crate::system::{self, Lock};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory of locks and control sockets.
pub const FOLDER: &str = "/run/skyhaul";

/// Interval between checks whether a gateway has ended.
const CHECK: Duration = Duration::from_millis(20);

/// The directory for the calling thread's network namespace: [`FOLDER`] in the namespace of process 1, a subdirectory of [`FOLDER`] in any
/// other. So gateways of several namespaces may have the same name.
#[must_use]
pub fn folder() -> PathBuf {
    let of = |who: &str| fs::read_link(format!("/proc/{who}/ns/net")).ok()?.to_str().map(str::to_owned);
    folder_of(of("thread-self"), of("1"))
}

/// The directory for the namespace `own`; `first` is the namespace of process 1. Both are named as the kernel names them, such as
/// `net:[4026531840]`. Without the right to look at process 1, `first` is `None`, and every namespace counts as the first.
fn folder_of(own: Option<String>, first: Option<String>) -> PathBuf {
    match (own, first) {
        (Some(own), Some(first)) if own != first => {
            let number = own.trim_start_matches("net:[").trim_end_matches(']');
            Path::new(FOLDER).join(format!("net-{number}"))
        }
        _ => FOLDER.into(),
    }
}

/// The names of the gateways that run with this directory, in alphabetical order.
#[must_use]
pub fn running(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|f| {
        let path = f.path();
        (path.extension()? == "lock").then(|| path.file_stem()?.to_str().map(str::to_owned))?
    });
    let mut names: Vec<_> = names.filter(|name| Lock::is_taken(folder, name)).collect();
    names.sort();
    names
}

/// The configuration with the slot that its gateway has, or would take if it started now.
#[must_use]
pub fn placed(mut config: Config, folder: &Path) -> Config {
    config.slot = system::may_run(&config, folder).unwrap_or_default();
    config
}

/// The gateways that run in other network namespaces: the directory and the name of each.
#[must_use]
pub fn running_elsewhere(folder: &Path) -> Vec<(PathBuf, String)> {
    let base = Path::new(FOLDER);
    let inside = fs::read_dir(base).into_iter().flatten().flatten().map(|f| f.path()).filter(|p| p.is_dir());
    let mut others: Vec<_> = inside.chain([base.to_owned()]).filter(|p| p != folder).collect();
    others.sort();
    others.into_iter().flat_map(|of| running(&of).into_iter().map(move |n| (of.clone(), n))).collect()
}

/// A wait for the end of the process that runs a gateway.
#[derive(Debug)]
pub struct Ending {
    folder: PathBuf,
    name: String,
    /// The number of the process that held the gateway's lock at first; `None`: no process did.
    holder: Option<String>,
}

impl Ending {
    /// For the process that runs the gateway of this name now.
    #[must_use]
    pub fn of(folder: &Path, name: &str) -> Self {
        Self { folder: folder.into(), name: name.into(), holder: Lock::holder(folder, name) }
    }
    /// Returns when the process has ended.
    pub fn wait(&self) {
        let Self { folder, name, holder } = self;
        while Lock::is_taken(folder, name) && Lock::holder(folder, name) == *holder {
            std::thread::sleep(CHECK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_has_a_directory() {
        let of = |n: &str| Some(format!("net:[{n}]"));
        assert_eq!(folder_of(of("7"), of("7")), Path::new(FOLDER));
        assert_eq!(folder_of(of("8"), of("7")), Path::new("/run/skyhaul/net-8"));
        assert_eq!(folder_of(of("8"), None), Path::new(FOLDER));
    }

    #[test]
    fn gateways_that_run_are_listed() {
        let folder = std::env::temp_dir().join(format!("skyhaul-place-{}", std::process::id()));
        let locks = ["b", "a"].map(|name| Lock::take(&folder, name).expect("takes"));
        fs::write(folder.join("dead.lock"), "1").expect("writes");
        assert_eq!(running(&folder), ["a", "b"]);
        assert_eq!(Lock::holder(&folder, "a"), Some(std::process::id().to_string()));
        drop(locks);
        assert_eq!(running(&folder), [""; 0]);
        Ending::of(&folder, "a").wait();
        fs::remove_dir_all(&folder).expect("removes");
    }
}
