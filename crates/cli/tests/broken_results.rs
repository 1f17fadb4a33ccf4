//! Results directories that are broken, or of another engine: refused in one line with file, key and what is accepted.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.args(args).current_dir(folder).env("PATH", "").env("SKYHAUL_CACHE", folder.join("the-cache"));
    let out = command.output().expect("the program starts");
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

/// A folder with the results of a study, twice, and of a run with two combinations.
fn results(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broken-{name}"));
    let _ = fs::remove_dir_all(&here);
    fs::create_dir_all(&here).expect("a folder for the test");
    let study = r#"schema = 1
title = "Small"
scenario = "preset:peach-geo"
set = { duration = "3 s", "flows.bulk.count" = 1, record = {} }
seeds = { first = 1, count = 2 }
[[axis]]
name = "cc"
path = "flows.bulk.cc"
values = ["sack", "peach"]
[[metric]]
name = "goodput"
from = "flow.goodput_segments"
over = "sum"
[[claim]]
id = "1"
says = "Peach starts faster"
check = { kind = "greater", metric = "goodput", left = { cc = "peach" }, right = { cc = "sack" } }
"#;
    fs::write(here.join("small.toml"), study).expect("writable");
    for out in ["a", "b"] {
        let (status, _, stderr) = run(&here, &["study", "report", "small.toml", "--out", out]);
        assert_eq!(status, Some(0), "{stderr}");
    }
    let set = ["--set", "duration='3 s'", "--set", "flows.bulk.cc=sack,peach"];
    let (status, _, stderr) = run(&here, &[&["run", "preset:peach-geo", "--out", "r"], &set[..]].concat());
    assert_eq!(status, Some(0), "{stderr}");
    here
}

/// Changes a JSON file, calls `then`, and restores the file.
fn with(file: &Path, change: impl FnOnce(&mut Value), then: impl FnOnce()) {
    let text = fs::read(file).expect("a file");
    let mut value = serde_json::from_slice(&text).expect("JSON");
    change(&mut value);
    fs::write(file, value.to_string()).expect("writable");
    then();
    fs::write(file, text).expect("writable");
}

fn remove(value: &mut Value, key: &str) {
    assert!(value.as_object_mut().and_then(|o| o.remove(key)).is_some(), "{key}");
}

/// Checks that a command ends with status 2, prints nothing, and writes one line with all words on standard error.
fn refused(here: &Path, args: &[&str], words: &[&str]) {
    let (status, stdout, stderr) = run(here, args);
    assert_eq!((status, stdout.as_str(), stderr.lines().count()), (Some(2), "", 1), "{args:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{word:?} is not in: {stderr}");
    }
}

#[test]
fn a_missing_key_is_named_with_its_file_and_what_belongs_there() {
    let here = results("keys");
    let compare = ["compare", "a", "b"];
    assert_eq!(run(&here, &compare).0, Some(0), "sound as they are");
    with(
        &here.join("b/manifest.json"),
        |m| remove(m, "engine"),
        || {
            // Two directories without the key are not taken for results of the same engine.
            refused(&here, &compare, &["b/manifest.json: `engine`: it is missing", "accepted: text such as"]);
            refused(&here, &["compare", "b", "b"], &["b/manifest.json: `engine`"]);
        },
    );
    with(
        &here.join("b/manifest.json"),
        |m| m["engine"] = 9.into(),
        || {
            refused(&here, &compare, &["b/manifest.json: `engine`: it has another type"]);
        },
    );
    with(
        &here.join("b/manifest.json"),
        |m| m["kind"] = "poem".into(),
        || {
            let kinds = "accepted: run, study, reproduce, evaluate";
            refused(&here, &compare, &["b/manifest.json", "unknown kind, `poem`", kinds]);
        },
    );
    with(
        &here.join("b/summary.json"),
        |s| remove(s, "claims"),
        || {
            refused(
                &here,
                &compare,
                &["b/summary.json: `claims`: it is missing", "accepted: a list of claims"],
            );
        },
    );
    // The results of a run with several combinations.
    let compare = ["compare", "r", "r"];
    assert_eq!(run(&here, &compare).0, Some(0), "sound as they are");
    with(
        &here.join("r/manifest.json"),
        |m| remove(&mut m["cases"][1], "folder"),
        || {
            refused(&here, &compare, &["r/manifest.json: `folder`: it is missing", "name of a folder"]);
        },
    );
    let case = fs::read_dir(here.join("r")).expect("a folder").flatten().find(|e| e.path().is_dir());
    let case = case.expect("a combination").path().join("summary.json");
    with(
        &case,
        |s| remove(s, "seed"),
        || {
            refused(&here, &compare, &["summary.json: `seed`: it is missing", "accepted: a whole number"]);
        },
    );
    fs::remove_file(&case).expect("a file");
    refused(&here, &compare, &["summary.json: no such file or directory"]);
}

#[test]
fn results_of_another_engine_are_not_compared_unknowingly() {
    let here = results("engine");
    let engine = serde_json::from_slice::<Value>(&fs::read(here.join("a/manifest.json")).expect("a file"));
    let engine = engine.expect("JSON")["engine"].as_str().expect("an engine").to_owned();
    with(
        &here.join("b/manifest.json"),
        |m| m["engine"] = "0.0.9-ffffffff".into(),
        || {
            let accepted = format!("accepted: {engine}, or any engine with --across-versions");
            let words = ["b/manifest.json: `engine`: ", "0.0.9-ffffffff", &accepted];
            refused(&here, &["compare", "a", "b"], &words);
            assert_eq!(run(&here, &["compare", "a", "b", "--across-versions"]).0, Some(0));
            // An export reads tables, whatever engine wrote them.
            assert_eq!(run(&here, &["export", "b", "--format", "csv", "--out", "c"]).0, Some(0));
            // A report replaces older results altogether, so that a directory never holds those of two engines.
            fs::write(here.join("b/figures-of-old.txt"), "of another engine").expect("writable");
            assert_eq!(run(&here, &["study", "report", "small.toml", "--out", "b"]).0, Some(0));
            let now: Value = serde_json::from_slice(&fs::read(here.join("b/manifest.json")).expect("a file"))
                .expect("JSON");
            assert_eq!(now["engine"], engine.as_str());
        },
    );
}

#[test]
fn a_table_that_was_cut_is_named() {
    let here = results("tables");
    let table = here.join("b/cells.parquet");
    let whole = fs::read(&table).expect("a table");
    // An empty file, a beginning, all but the last byte, and an intact end after a damaged middle.
    let mut middle = whole.clone();
    middle[4..40].fill(0xff);
    for broken in [&whole[..0], &whole[..40], &whole[..whole.len() / 2], &whole[..whole.len() - 1], &middle] {
        fs::write(&table, broken).expect("writable");
        refused(&here, &["compare", "a", "b"], &["b/cells.parquet: damaged: "]);
        refused(&here, &["export", "b", "--format", "csv", "--out", "c"], &["cannot read b/cells.parquet: "]);
    }
    fs::remove_file(&table).expect("a file");
    refused(&here, &["compare", "a", "b"], &["cannot read b/cells.parquet: no such file or directory"]);
}
