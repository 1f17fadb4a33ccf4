//! The unit of a gateway under a real systemd, in namespaces of its own: see `packaging/test-unit.sh`.
#![cfg(target_os = "linux")]

use skyhaul_testkit::need;
use std::process::Command;

#[test]
fn the_unit_works_under_systemd() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/test-unit.sh");
    let out = Command::new(script).arg(env!("CARGO_BIN_EXE_skyhaul")).output().expect("runs");
    let stdout = String::from_utf8_lossy(&out.stdout);
    eprint!("{stdout}");
    assert!(out.status.success(), "{stdout}{}", String::from_utf8_lossy(&out.stderr));
    let last = stdout.lines().last().unwrap_or_default();
    match last.strip_prefix("test-unit: skipped: ") {
        Some(why) => need::skip("systemd", why),
        None => assert!(last.ends_with("all is well"), "{last}"),
    }
}
