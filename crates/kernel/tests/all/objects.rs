//! The compiled programs that come with the crate are those of the sources.

use skyhaul_kernel::CONTROLS;
use skyhaul_testkit::need;
use std::path::Path;
use std::process::Command;

const BPF: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");

#[test]
fn every_source_is_a_control_with_a_licence() {
    let mut sources: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(BPF).expect("the folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".c") || name.ends_with(".h") || name.ends_with(".sh") {
            let text = std::fs::read_to_string(&path).expect("text");
            let licence = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only";
            assert!(text.lines().take(2).any(|l| l.contains(licence)), "{name} states its licence");
        }
        sources.extend(name.strip_suffix(".bpf.c").map(str::to_owned));
    }
    sources.sort();
    assert_eq!(sources, CONTROLS.iter().map(|c| c.name).collect::<Vec<_>>());
}

#[test]
fn the_compiled_programs_are_those_of_the_sources() {
    if !need::program("clang-14") || !need::program("bpftool") {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("objects");
    std::fs::create_dir_all(&folder).expect("a folder");
    let done =
        Command::new("sh").arg(Path::new(BPF).join("build.sh")).arg(&folder).output().expect("sh runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for c in CONTROLS {
        let built = std::fs::read(folder.join(format!("{}.bpf.o", c.name))).expect("built");
        // Not with assert_eq, which would print both.
        assert!(built == c.object, "{} differs from its source: run crates/kernel/bpf/build.sh", c.name);
    }
}
