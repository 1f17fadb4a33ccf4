//! `wire` and `emulate` without root: in a user namespace of one's own (`unshare -Urn`), where the kernel grants one.
#![cfg(target_os = "linux")]

use skyhaul_testkit::need;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a script in a user namespace and a network namespace of its own; `None`, with a message, where the kernel grants
/// none or no TUN device in one.
fn rootless(script: &str) -> Option<Output> {
    let unshare = |program: &[&str]| {
        let mut c = Command::new("unshare");
        c.arg("-Urn").args(program).env("SKYHAUL", env!("CARGO_BIN_EXE_skyhaul")).stdin(Stdio::null());
        c.output()
    };
    let tun = "exec 3<>/dev/net/tun && ip tuntap add dev probe mode tun";
    match unshare(&["bash", "-c", tun]) {
        Ok(out) if out.status.success() => Some(unshare(&["bash", "-c", script]).expect("starts")),
        Ok(out) => {
            need::skip("unshare", text(&out.stderr));
            None
        }
        Err(e) => {
            need::skip("unshare", e);
            None
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn wire_serves_in_a_user_namespace() {
    let script = r#"
set -e
exec 4< <("$SKYHAUL" wire serve --mode http --port 80 --once --address 10.84.0.2 2>&1)
read -r line <&4
exec 3<>/dev/tcp/10.84.0.2/80
printf 'GET /100000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n' >&3
echo "body $(tail -c 100000 <&3 | wc -c)"
ip -o link | grep -o 'qlen [0-9]*' | tail -1
exec 3>&-
cat <&4
"#;
    let Some(out) = rootless(script) else { return };
    let stdout = text(&out.stdout);
    assert!(out.status.success(), "{stdout}{}", text(&out.stderr));
    assert!(stdout.contains("body 100000\n"), "{stdout}");
    assert!(stdout.contains("qlen 10000\n"), "the queue has its length without root, too: {stdout}");
    assert!(!stdout.contains("warning"), "{stdout}");
}

#[test]
fn emulate_runs_a_program_in_a_user_namespace() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rootless");
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    let path = folder.join("short.toml");
    let scenario = "schema = 1\nduration = \"60 s\"\n[links.sat]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
                    queue = \"50 packets\"\n[flows.bulk]\ncc = \"sack\"\n";
    std::fs::write(&path, scenario).expect("written");
    // Nobody listens: the refusal has crossed the link there and back.
    let inner = "exec 3<>/dev/tcp/10.83.9.2/7001 || exit 7";
    let script = format!(
        r#""$SKYHAUL" emulate {} --net 9 --json -- bash -c '{inner}'"#,
        path.to_str().expect("UTF-8")
    );
    let Some(out) = rootless(&script) else { return };
    let stderr = text(&out.stderr);
    if stderr.contains("mount /proc") {
        need::skip("unshare", stderr);
        return;
    }
    assert_eq!(out.status.code(), Some(7), "{stderr}");
    assert!(stderr.contains("refused"), "{stderr}");
    assert!(stderr.contains("\"delivered_packets\""), "{stderr}");
}
