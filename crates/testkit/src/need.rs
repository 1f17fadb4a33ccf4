//! What a test needs of the machine. A test that lacks something ends early. libtest counts it as passed, so skips are
//! recorded here.
//!
//! Each skip is a line of `skipped.txt` in the folder of build products, which `make test` prints at its end. With
//! `SKYHAUL_REQUIRE=all`, or a list such as `SKYHAUL_REQUIRE=namespaces,nft`, a skip for want of these is a failure. What a kernel lacks
//! (`esp`, `vlan`) has to be in the list.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Network namespaces and TUN devices: root, or a kernel that grants them to users.
pub const NAMESPACES: &str = "namespaces";

/// The test that a program without libtest runs.
static TEST: Mutex<Option<String>> = Mutex::new(None);

/// Names the test that runs, in a program that does not use libtest.
pub fn test(name: &str) {
    *TEST.lock().unwrap_or_else(|e| e.into_inner()) = Some(name.into());
}

/// Prints and records that the test, or a part of it, is skipped because it lacks `need`.
///
/// # Panics
/// If `SKYHAUL_REQUIRE` is `all` or names the need.
pub fn skip(need: &str, why: impl Display) {
    let current = TEST.lock().unwrap_or_else(|e| e.into_inner()).clone();
    // libtest names the thread of a test after it.
    let test =
        current.unwrap_or_else(|| std::thread::current().name().unwrap_or("a thread of a test").to_owned());
    let program = std::env::current_exe().unwrap_or_default();
    let line = line(&program, &test, need, &why.to_string());
    eprintln!("{line}");
    if let Some(list) = list(&program) {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(list);
        if let Err(e) = opened.and_then(|mut f| f.write_all(format!("{line}\n").as_bytes())) {
            eprintln!("the skip could not be recorded: {e}");
        }
    }
    let required = std::env::var("SKYHAUL_REQUIRE").unwrap_or_default();
    assert!(!requires(&required, need), "SKYHAUL_REQUIRE={required}: {line}");
}

/// Prints that the kernel lacks `need`, which no program that could be installed would bring. This is no skip; see `make test-vm` for
/// another kernel.
///
/// # Panics
/// If `SKYHAUL_REQUIRE` names the need.
pub fn lacks(need: &str, why: impl Display) {
    eprintln!("note: {need}: {why}");
    let required = std::env::var("SKYHAUL_REQUIRE").unwrap_or_default();
    assert!(!names(&required, need), "SKYHAUL_REQUIRE={required}: {need}: {why}");
}

/// What was asked for; `None`, after a [`skip`], if it was refused.
pub fn granted<T, E: Display>(asked: Result<T, E>) -> Option<T> {
    asked.map_err(|e| skip(NAMESPACES, e)).ok()
}

/// Whether a program is installed; false after a [`skip`].
pub fn program(name: &str) -> bool {
    let find = format!("command -v {name}");
    let found =
        Command::new("sh").args(["-c", &find]).stdout(Stdio::null()).status().is_ok_and(|s| s.success());
    if !found {
        skip(name, "it is not installed");
    }
    found
}

/// One line, whatever the reason contains.
fn line(program: &Path, test: &str, need: &str, why: &str) -> String {
    let stem = program.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo appends a hash.
    let program = stem.rsplit_once('-').map_or(&*stem, |(name, _)| name);
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("SKIPPED {program}::{test}: {need}: {why}")
}

/// The list of skips: test programs are in `target/PROFILE/deps`.
fn list(program: &Path) -> Option<PathBuf> {
    let folder = program.parent().filter(|p| p.ends_with("deps"))?;
    Some(folder.parent()?.parent()?.join("skipped.txt"))
}

fn requires(required: &str, need: &str) -> bool {
    names(required, "all") || names(required, need)
}
fn names(required: &str, need: &str) -> bool {
    required.split([',', ' ']).any(|r| r == need)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_one_line_and_a_failure_where_it_is_required() {
        let program = Path::new("/target/debug/deps/wire-0123456789abcdef");
        assert_eq!(
            line(program, "it_serves", "nft", "there is\nnone "),
            "SKIPPED wire::it_serves: nft: there is none"
        );
        assert_eq!(list(program), Some("/target/skipped.txt".into()));
        assert_eq!(list(Path::new("/usr/bin/wire")), None);
        for (required, fails) in [
            ("", false),
            ("all", true),
            ("nft", true),
            ("tshark,nft", true),
            ("tshark nft", true),
            ("nf", false),
        ] {
            assert_eq!(requires(required, "nft"), fails, "{required}");
            // Nobody can install what the kernel lacks.
            assert_eq!(names(required, "nft"), fails && required != "all", "{required}");
        }
    }

    #[test]
    fn what_is_there_is_no_skip() {
        assert!(program("sh"));
        assert_eq!(granted(Ok::<_, String>(3)), Some(3));
    }
}
