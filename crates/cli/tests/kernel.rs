//! `skyhaul kernel` with the running kernel: every control loads, carries connections, and is gone afterwards.
//!
//! Controls are registered for the whole machine, whatever the network namespace. All tests that change them are in this program, and
//! take turns; a control that was installed before is left alone.
#![cfg(target_os = "linux")]

use serde_json::Value;
use skyhaul_net::Namespace;
use skyhaul_testkit::need;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The name in `SKYHAUL_REQUIRE` of a kernel that takes congestion controls as BPF programs.
const BPF: &str = "kernel-bpf";

static KERNEL: Mutex<()> = Mutex::new(());

fn skyhaul(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_skyhaul")).args(args).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The one line of a refusal.
fn refused(args: &[&str]) -> String {
    let out = skyhaul(args);
    assert_eq!(out.status.code(), Some(2), "{args:?}: {}", text(&out.stderr));
    let line = text(&out.stderr);
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

/// The controls that the command lists: name, name in the kernel, whether it is installed.
fn listed() -> Vec<(String, String, bool)> {
    let out = skyhaul(&["kernel", "list", "--json"]);
    let all: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let word = |v: &Value| v.as_str().expect("text").to_owned();
    let row =
        |v: &Value| (word(&v["name"]), word(&v["kernel"]), v["installed"].as_bool().expect("a truth value"));
    all.as_array().expect("an array").iter().map(row).collect()
}

fn is_installed(name: &str) -> bool {
    listed().iter().any(|(n, _, installed)| n == name && *installed)
}

/// The controls that the kernel holds as programs, by their ids.
fn programs() -> BTreeSet<u64> {
    let shown = Command::new("bpftool").args(["-j", "struct_ops", "list"]).output().expect("bpftool runs");
    let all: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    all.as_array().expect("an array").iter().filter_map(|p| p["id"].as_u64()).collect()
}

/// Removes a control when a test ends, even by a panic.
struct Remove(String);
impl Drop for Remove {
    fn drop(&mut self) {
        skyhaul(&["kernel", "remove", &self.0]);
    }
}

/// A turn at the kernel; `None`, after a skip with the reason, where the kernel takes no congestion controls as programs.
fn turn() -> Option<MutexGuard<'static, ()>> {
    let turn = KERNEL.lock().unwrap_or_else(PoisonError::into_inner);
    if !need::program("bpftool") || !need::program("ss") {
        return None;
    }
    if is_installed("gaimd") {
        return Some(turn);
    }
    let _remove = Remove("gaimd".into());
    let out = skyhaul(&["kernel", "install", "gaimd"]);
    if !out.status.success() {
        need::skip(BPF, text(&out.stderr));
        return None;
    }
    Some(turn)
}

/// Sends 1 MiB over the loopback interface of a new network namespace whose default control is `kernel`. Returns whether the connection
/// had that control; `None` where no namespace can be made.
fn carries(kernel: &str) -> Option<bool> {
    let space = need::granted(Namespace::new())?;
    space.sysctl("net/ipv4/tcp_congestion_control", kernel).expect("it may be the default");
    let sent = space.within(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let reader = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("all of it")
        });
        let mut stream = TcpStream::connect(address).expect("it connects");
        stream.write_all(&vec![7; 1 << 20]).expect("it sends");
        let shown = Command::new("ss").args(["-t", "-i", "-n"]).output().expect("ss runs");
        drop(stream);
        assert_eq!(reader.join().expect("no panic"), 1 << 20, "{kernel}");
        text(&shown.stdout).split_whitespace().any(|w| w == kernel)
    });
    Some(sent.expect("within the namespace"))
}

#[test]
fn every_control_carries_a_connection_and_is_gone_afterwards() {
    let Some(_turn) = turn() else { return };
    for (name, kernel, before) in listed() {
        if before {
            continue;
        }
        let (kept, remove) = (programs(), Remove(name.clone()));
        let out = skyhaul(&["kernel", "install", &name]);
        assert!(out.status.success(), "{name}: {}", text(&out.stderr));
        assert_eq!(text(&out.stdout), format!("{name}: installed as {kernel}\n"));
        if let Some(used) = carries(&kernel) {
            assert!(used, "{kernel} is the control of the connection, as ss -i shows");
        }
        drop(remove);
        assert!(!is_installed(&name), "{name}");
        // The kernel drops the program with the last connection that uses it.
        let gone = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            programs().is_subset(&kept)
        });
        assert!(gone, "{kernel}");
    }
    let left = std::fs::read_dir("/run").into_iter().flatten().flatten();
    assert!(!left.into_iter().any(|e| e.file_name().to_string_lossy().ends_with(".bpf.o")));
}

#[test]
fn a_control_is_installed_once_and_removed_once() {
    let Some(_turn) = turn() else { return };
    if is_installed("gaimd") {
        return;
    }
    assert!(refused(&["kernel", "remove", "gaimd"]).contains("skyhaul_gaimd is not installed"));
    let _remove = Remove("gaimd".into());
    assert!(skyhaul(&["kernel", "install", "gaimd"]).status.success());
    assert!(refused(&["kernel", "install", "gaimd"]).contains("skyhaul_gaimd is installed already"));
    // A default is not removed while its namespace uses it.
    if let Some(space) = need::granted(Namespace::new()) {
        space.sysctl("net/ipv4/tcp_congestion_control", "skyhaul_gaimd").expect("it may be the default");
        let line = space.within(|| refused(&["kernel", "remove", "gaimd"])).expect("within the namespace");
        assert!(line.contains("sysctl -w net.ipv4.tcp_congestion_control="), "{line}");
        assert!(is_installed("gaimd"));
    }
    let out = skyhaul(&["kernel", "remove", "gaimd"]);
    assert_eq!(text(&out.stdout), "gaimd: removed\n", "{}", text(&out.stderr));
    assert!(!is_installed("gaimd"));
}

#[test]
fn worlds_load_a_control_and_remove_it() {
    let Some(_turn) = turn() else { return };
    if need::granted(Namespace::new()).is_none() || is_installed("hark") {
        return;
    }
    let file = std::env::temp_dir().join(format!("skyhaul-kernel-{}.toml", std::process::id()));
    let scenario = "duration = \"4 s\"\n[links.sat]\nrate = \"5 Mbit/s\"\ndelay = \"50 ms\"\nqueue = \"100 packets\"\n\
                    reverse = { error = \"none\" }\n[flows.bulk]\npath = [\"sat\"]\nendpoint = \"modern\"\n\
                    cc = { name = \"hark\", probes = false }\n";
    std::fs::write(&file, scenario).expect("written");
    let path = file.to_string_lossy();
    let out = skyhaul(&["compare", &path, "--worlds", "sim,wire,kernel:hark", "--jobs", "2", "--json"]);
    std::fs::remove_file(&file).expect("removed");
    assert!(out.status.success(), "{}", text(&out.stderr));
    let found: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    for world in found["worlds"].as_array().expect("an array") {
        let goodput = world["goodput_bit_s"][0].as_f64().expect("a number");
        assert!((1.5e6..5e6).contains(&goodput), "{world}");
    }
    assert!(!is_installed("hark"));
}

#[test]
fn what_cannot_be_installed_is_refused_in_a_line() {
    let why = "which gives a congestion control no means to send dummy segments";
    assert!(refused(&["kernel", "install", "peach"]).contains(why));
    assert!(refused(&["kernel", "install", "cubic"]).contains("of its own"));
    assert!(refused(&["kernel", "install", "hrk"]).contains("write one of gaimd, hark"));
    // Every name is checked before anything is loaded.
    assert!(refused(&["kernel", "install", "tibet", "hrk"]).contains("\"hrk\""));
    assert!(refused(&["kernel", "remove"]).contains("CONTROL"));
    let table = text(&skyhaul(&["kernel", "list"]).stdout);
    assert!(table.lines().any(|l| l.starts_with("hark") && l.contains("skyhaul_hark")), "{table}");
}

#[test]
fn a_user_is_told_what_is_missing() {
    if !need::program("unshare") || is_installed("hark") {
        return;
    }
    // Root in a user namespace has no rights over the kernel.
    let args = ["-U", "-r", env!("CARGO_BIN_EXE_skyhaul"), "kernel", "install", "hark"];
    let out = Command::new("unshare").args(args).output().expect("unshare runs");
    let line = text(&out.stderr);
    if line.starts_with("unshare:") {
        need::skip("namespaces", line);
        return;
    }
    assert_eq!(out.status.code(), Some(2), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    // The first thing that is missing on this machine.
    assert!(["CAP_BPF", "apt install bpftool", "/sys/kernel/btf"].iter().any(|w| line.contains(w)), "{line}");
}
