//! Loads and removes controls with `bpftool`.

use crate::available::{default_control, is_available, names};
use crate::control::{CONTROLS, Control};
use crate::error::KernelError;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The types of the running kernel.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Debian installs the program in `/usr/sbin`, which is not in the paths of its users.
const BPFTOOL: [&str; 3] = ["bpftool", "/usr/sbin/bpftool", "/sbin/bpftool"];
/// Capabilities, by their numbers in linux/capability.h.
const NET_ADMIN: u32 = 12;
const SYS_ADMIN: u32 = 21;
const BPF: u32 = 39;

/// Loads a control into the running kernel. It stays until it is [removed](remove) or the machine is shut down; connections that use
/// it keep it.
///
/// # Errors
/// If it is installed already, the kernel lacks what is needed, or the caller is not allowed to; one line with the remedy.
pub fn install(control: &Control) -> Result<(), KernelError> {
    let Control { name, kernel, .. } = *control;
    if is_available(kernel) {
        return Err(KernelError::Installed { name, kernel });
    }
    if !Path::new(BTF).exists() {
        return Err(KernelError::NoBtf);
    }
    allowed()?;
    let file = Object::write(control)?;
    let done = bpftool(&["struct_ops", "register", &file.0.to_string_lossy()])?;
    if done.status.success() && is_available(kernel) { Ok(()) } else { Err(refused(kernel, &done)) }
}

/// Removes a control. Connections that use it go on until they are closed.
///
/// # Errors
/// If it is not installed, is the default of this network namespace, or the caller is not allowed to.
pub fn remove(control: &Control) -> Result<(), KernelError> {
    let kernel = control.kernel;
    if !is_available(kernel) {
        return Err(KernelError::NotInstalled { kernel });
    }
    if default_control() == kernel {
        let ours = |n: &String| CONTROLS.iter().any(|c| c.kernel == n);
        let names = names();
        let other = names.iter().find(|n| *n == "cubic").or_else(|| names.iter().find(|n| !ours(n)));
        return Err(KernelError::Default { kernel, other: other.cloned().unwrap_or_else(|| "reno".into()) });
    }
    allowed()?;
    let done = bpftool(&["struct_ops", "unregister", "name", kernel])?;
    // bpftool also complains about what was removed earlier and is still in use by connections.
    if is_available(kernel) { Err(refused(kernel, &done)) } else { Ok(()) }
}

/// A control that is removed when this guard is dropped, unless it was installed before the guard.
#[derive(Debug)]
pub struct Loaded(Option<&'static Control>);

impl Loaded {
    /// Installs a control if it is not there.
    ///
    /// # Errors
    /// As for [`install`].
    pub fn new(control: &'static Control) -> Result<Self, KernelError> {
        if is_available(control.kernel) {
            return Ok(Self(None));
        }
        install(control)?;
        Ok(Self(Some(control)))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(control) = self.0 {
            // Nobody can be told; `skyhaul kernel list` shows what is left.
            let _ = remove(control);
        }
    }
}

/// Whether the process may load such programs, as far as its capabilities tell.
fn allowed() -> Result<(), KernelError> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let Some(bits) = effective.and_then(|h| u64::from_str_radix(h.trim(), 16).ok()) else { return Ok(()) };
    let has = |capability: u32| bits >> capability & 1 == 1;
    if has(SYS_ADMIN) || has(BPF) && has(NET_ADMIN) { Ok(()) } else { Err(KernelError::NotAllowed) }
}

fn bpftool(arguments: &[&str]) -> Result<Output, KernelError> {
    for program in BPFTOOL {
        match Command::new(program).args(arguments).output() {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(KernelError::File { what: format!("run {program}"), why: e.to_string() }),
            Ok(done) => return Ok(done),
        }
    }
    Err(KernelError::NoBpftool)
}

/// The error with the line of `bpftool` or libbpf that says most.
fn refused(kernel: &'static str, done: &Output) -> KernelError {
    let text = String::from_utf8_lossy(&done.stderr);
    if text.contains("Operation not permitted") || text.contains("-EPERM") {
        return KernelError::NotAllowed;
    }
    let lines = || text.lines().map(str::trim).filter(|l| !l.is_empty());
    let telling = lines().find(|l| l.starts_with("libbpf: ") && l.contains("failed"));
    let line = telling.or_else(|| lines().next_back()).unwrap_or("bpftool does not say why");
    KernelError::Refused { kernel, line: line.trim_start_matches("libbpf: ").to_owned() }
}

/// The compiled program as a file, which `bpftool` reads.
struct Object(PathBuf);

impl Object {
    fn write(control: &Control) -> Result<Self, KernelError> {
        // Only root writes to /run: nobody else can put a file there.
        let run = Path::new("/run");
        let folder = if run.is_dir() { run.to_owned() } else { std::env::temp_dir() };
        let path = folder.join(format!("{}-{}.bpf.o", control.kernel, std::process::id()));
        // A new file: one that somebody else has put in a temporary folder is refused.
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        made.and_then(|mut f| {
            let file = Self(path.clone());
            f.write_all(control.object)?;
            Ok(file)
        })
        .map_err(|e| KernelError::File { what: format!("write {}", path.display()), why: e.to_string() })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
