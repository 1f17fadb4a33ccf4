//! Chores of the repository that need code. `cargo run -p xtask -- layers` reads the real dependency graph and
//! fails on an edge that the architecture does not have, and on files of one crate that use each other in a circle.

mod circles;

use circles::Sources;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Which of our crates a crate may depend on. Arrows point down only.
const MAY_USE: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("analysis", &["base"]),
    ("apps", &["base"]),
    ("cc", &["base"]),
    ("path", &["base"]),
    ("orbit", &["base", "path"]),
    ("quic", &["base", "cc"]),
    ("rate", &["analysis", "base"]),
    ("relay", &["base"]),
    ("repair", &["base", "path"]),
    ("trace", &["base"]),
    ("tcp", &["base", "cc"]),
    ("wire", &["base", "tcp"]),
    ("scenario", &["analysis", "apps", "base", "cc", "orbit", "path", "rate", "relay", "repair", "tcp"]),
    (
        "sim",
        &["analysis", "apps", "base", "cc", "path", "rate", "relay", "repair", "tcp", "trace", "scenario"],
    ),
    ("net", &["apps", "base", "cc", "path", "rate", "relay", "scenario", "tcp", "trace", "wire"]),
    ("study", &["analysis", "apps", "base", "cc", "tcp", "trace", "scenario", "sim"]),
    ("lab", &["apps", "base", "cc", "path", "rate", "tcp", "trace", "wire", "scenario", "sim", "study"]),
    (
        "gateway",
        &["analysis", "base", "cc", "net", "path", "relay", "repair", "scenario", "tcp", "trace", "wire"],
    ),
    ("kernel", &[]),
    ("cli", &["base", "cc", "gateway", "kernel", "net", "path", "wire", "scenario", "sim", "study", "lab"]),
    ("py", &["analysis", "base", "cc", "scenario", "sim", "study", "lab", "cli"]),
    ("wasm", &["base", "cc", "trace", "scenario", "sim"]),
    ("testkit", &["base", "cc", "path", "repair", "tcp", "wire"]),
];

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("layers") => layers(),
        _ => {
            eprintln!("usage: cargo run -p xtask -- layers");
            ExitCode::from(2)
        }
    }
}

fn layers() -> ExitCode {
    let out =
        match Command::new(env!("CARGO")).args(["metadata", "--no-deps", "--format-version", "1"]).output() {
            Ok(out) if out.status.success() => out.stdout,
            Ok(out) => {
                eprintln!("cargo metadata failed: {}", String::from_utf8_lossy(&out.stderr));
                return ExitCode::from(2);
            }
            Err(e) => {
                eprintln!("cannot run cargo: {e}");
                return ExitCode::from(2);
            }
        };
    let meta: serde_json::Value = match serde_json::from_slice(&out) {
        Ok(meta) => meta,
        Err(e) => {
            eprintln!("cargo metadata is not JSON: {e}");
            return ExitCode::from(2);
        }
    };
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut wrong = Vec::new();
    let (mut edges, mut files) = (0, 0);
    for package in meta["packages"].as_array().into_iter().flatten() {
        let Some(from) = package["name"].as_str().and_then(|n| n.strip_prefix("skyhaul-")) else { continue };
        let Some(may) = allowed.get(from) else {
            wrong.push(format!("crate {from} has no place in the table of layers (xtask/src/main.rs)"));
            continue;
        };
        let source =
            package["manifest_path"].as_str().and_then(|m| Path::new(m).parent()).map(|p| p.join("src"));
        match source.as_deref().map(Sources::read) {
            Some(Ok(sources)) => {
                files += sources.len();
                wrong.extend(sources.circles().iter().map(|circle| {
                    let uses =
                        circle.iter().map(|(file, used)| format!("\n  {file} uses {}", used.join(", ")));
                    format!("{from} has files that use each other in a circle:{}", uses.collect::<String>())
                }));
            }
            Some(Err(e)) => wrong.push(format!("{from}: cannot read its files: {e}")),
            None => wrong.push(format!("{from}: cargo metadata does not say where it is")),
        }
        for dep in package["dependencies"].as_array().into_iter().flatten() {
            // Tests may look sideways; what ships may not.
            if dep["kind"].as_str() == Some("dev") {
                continue;
            }
            if let Some(to) = dep["name"].as_str().and_then(|n| n.strip_prefix("skyhaul-")) {
                edges += 1;
                if !may.contains(&to) {
                    wrong.push(format!("{from} depends on {to}, which the architecture does not allow"));
                }
            }
        }
    }
    for w in &wrong {
        eprintln!("layers: {w}");
    }
    if wrong.is_empty() {
        println!(
            "layers: {edges} dependencies between our crates, all downwards; {files} files without a circle"
        );
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
