//! The program as users meet it: what it prints, what it writes, and how it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program with a cache in the folder, and with an empty PATH, so that nothing renders figures.
fn skyhaul(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.args(args).current_dir(folder).env("PATH", "").env("SKYHAUL_CACHE", folder.join("the-cache"));
    command.stdin(Stdio::null());
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    skyhaul(folder, args).output().expect("the program starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// Runs a command that ends with status 0 and writes nothing but warnings about scenarios on standard error.
fn good(folder: &Path, args: &[&str]) -> String {
    let out = run(folder, args);
    let stderr = text(&out.stderr);
    let other: Vec<&str> = stderr.lines().filter(|l| !l.starts_with("skyhaul: warning: ")).collect();
    assert_eq!((out.status.code(), other), (Some(0), Vec::new()), "{args:?}");
    text(&out.stdout)
}

/// Runs a command that ends with status 2, prints nothing, and writes one line with all of `words` on standard error.
fn bad(folder: &Path, args: &[&str], words: &[&str]) {
    let out = run(folder, args);
    let line = text(&out.stderr);
    assert_eq!((out.status.code(), text(&out.stdout).as_str()), (Some(2), ""), "{args:?}: {line}");
    assert_eq!(line.matches('\n').count(), 1, "one line: {line}");
    assert!(line.starts_with("skyhaul: "), "{line}");
    for word in words {
        assert!(line.contains(word), "{word:?} is not in: {line}");
    }
}

const GEO: &str = r#"schema = 1
title = "Small"
duration = "5 s"
[links.sat]
packet = "1000 B"
rate = "1300 packets/s"
delay = "275 ms"
queue = "50 packets"
error = { kind = "per", p = 1e-3 }
[flows.bulk]
count = 2
cc = "sack"
endpoint = "ns2-2001"
rwnd = "64 segments"
"#;

const STUDY: &str = r#"schema = 1
title = "Small"
scenario = "geo.toml"
set = { "links.sat.error.p" = 0 }
seeds = { first = 1, count = 3 }
[[axis]]
name = "cc"
path = "flows.bulk.cc"
values = ["sack", "peach"]
[[metric]]
name = "goodput"
from = "flow.goodput_segments"
over = "sum"
unit = "segments/s"
[[claim]]
id = "1"
says = "Peach starts faster"
check = { kind = "greater", metric = "goodput", left = { cc = "peach" }, right = { cc = "sack" } }
[[figure]]
file = "start"
x = "cc"
y = "goodput"
"#;

/// Writes the scenario with `from` replaced by `to`.
fn with(folder: &Path, from: &str, to: &str) {
    assert!(GEO.contains(from), "{from} is in the scenario");
    fs::write(folder.join("geo.toml"), GEO.replacen(from, to, 1)).expect("writable");
}

#[test]
fn run_prints_groups_and_links() {
    let here = folder("run");
    with(&here, "5 s", "5 s");
    let out = good(&here, &["run", "geo.toml", "--seed", "7", "--digest"]);
    for word in [
        "Small · 5 s · seed 7",
        "bulk",
        "goodput",
        "kbit/s",
        "Jain",
        "sat    forward",
        "pushed out",
        "digest ",
    ] {
        assert!(out.contains(word), "{word}: {out}");
    }
    assert_eq!(out, good(&here, &["run", "geo.toml", "--seed", "7", "--digest"]), "the same again");
}

#[test]
fn several_values_run_every_combination_in_order() {
    let here = folder("axis");
    with(&here, "5 s", "2 s");
    let args = [
        "run",
        "geo.toml",
        "--set",
        "flows.bulk.cc=sack,peach",
        "--set",
        "links.sat.error.p=0,1e-2",
        "--json",
    ];
    let json: serde_json::Value = serde_json::from_str(&good(&here, &args)).expect("JSON");
    let choices: Vec<_> =
        json["cases"].as_array().expect("a list").iter().map(|c| c["choice"].to_string()).collect();
    assert_eq!(choices.len(), 4);
    assert_eq!(choices[1], r#"{"flows.bulk.cc":"sack","links.sat.error.p":"1e-2"}"#);
    let one = good(&here, &[&args[..], &["--jobs", "1"]].concat());
    assert_eq!(one, good(&here, &[&args[..], &["--jobs", "3"]].concat()));
}

#[test]
fn a_sweep_is_a_table_of_means_and_continues_from_its_cache() {
    let here = folder("sweep");
    with(&here, "5 s", "2 s");
    let sweep =
        ["sweep", "geo.toml", "--set", "flows.bulk.cc=sack,peach", "--set", "links.sat.error.p=0,1e-2"];
    let more = ["--set", "flows.bulk.count=1", "--seeds", "2", "--metric", "sum(flow.goodput)"];
    let args = [&sweep[..], &more, &["--metric", "late=max(flow.packet_delay_p95)"]].concat();
    let out = good(&here, &args);
    assert!(
        out.contains("goodput") && out.contains("late") && out.contains("peach") && out.contains("±"),
        "{out}"
    );
    let cells = || fs::read_dir(here.join("the-cache/cells")).expect("a cache").count();
    let first = cells();
    assert!(first > 0);
    // The same as JSON and as CSV: a row per run, from the cache.
    let json: serde_json::Value =
        serde_json::from_str(&good(&here, &[&args[..], &["--json"]].concat())).expect("JSON");
    assert_eq!(json["provenance"]["cells"], 8);
    let csv = good(&here, &[&args[..], &["--csv", "--jobs", "1"]].concat());
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column =
        |name: &str| rows[0].iter().position(|c| *c == name).unwrap_or_else(|| panic!("{name}: {csv}"));
    assert_eq!((rows.len(), cells()), (1 + 8, first));
    // A single run gives the same.
    let by_hand =
        ["run", "geo.toml", "--set", "flows.bulk.cc=peach", "--set", "links.sat.error.p=1e-2", "--set"];
    let by_hand = good(&here, &[&by_hand[..], &["flows.bulk.count=1", "--seed", "2", "--json"]].concat());
    let by_hand: serde_json::Value = serde_json::from_str(&by_hand).expect("JSON");
    let chosen = rows
        .iter()
        .find(|row| (row[column("cc")], row[column("seed")]) == ("peach", "2") && row[column("p")] == "0.01");
    let goodput: f64 = chosen.expect("a row")[column("goodput")].parse().expect("a number");
    assert_eq!(by_hand["goodput_bit_s"], goodput, "{csv}");
    // The delay is measured although the scenario does not ask for it: more than propagation.
    assert!(
        rows[1..].iter().all(|row| row[column("late")].parse::<f64>().expect("a number") > 0.275),
        "{csv}"
    );
    // `--out` writes the results directory of a study.
    let out = run(&here, &[&args[..], &["--out", "results/sweep"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(
        here.join("results/sweep/report.html").is_file()
            && here.join("results/sweep/cells.parquet").is_file()
    );
    let piped = fed(&here, &["sweep", "-", "--set", "flows.bulk.count=1,2", "--seeds", "1"], GEO);
    assert_eq!((piped.status.code(), text(&piped.stderr)), (Some(0), String::new()));
}

#[test]
fn a_wrong_sweep_is_refused_as_a_wrong_run() {
    let here = folder("wrong-sweep");
    with(&here, "5 s", "2 s");
    bad(&here, &["sweep", "geo.toml"], &["--set", "no key has several values", "skyhaul run"]);
    bad(&here, &["sweep", "geo.toml", "--set", "flows.bulk.cc=sack"], &["no key has several values"]);
    for set in ["links.sat.eror.p=0,1e-2", "flows.bulk.cc=sack,peech", "flows.bulk.count=1,0"] {
        let run = text(&run(&here, &["run", "geo.toml", "--set", set]).stderr);
        bad(&here, &["sweep", "geo.toml", "--set", set], &[run.trim_end()]);
    }
    let counts = ["sweep", "geo.toml", "--set", "flows.bulk.count=1,2"];
    for (more, words) in [
        (&["--metric", "sum(flow.goodputt)"][..], &["--metric: `sum(flow.goodputt)`", "goodput"][..]),
        (&["--metric", "a b=run.goodput"], &["--metric", "NAME=EXPRESSION"]),
        (&["--set", "flows.bulk.count=3"], &["--set flows.bulk.count", "axis `count`"]),
        (&["--max-cells", "3"], &["10 cells, more than 3"]),
        (&["--set", "links.sat.delay"], &["KEY=VALUE"]),
        (&["--out", "."], &[". holds files"]),
    ] {
        bad(&here, &[&counts[..], more].concat(), words);
    }
    bad(&here, &["sweep", "nowhere.toml", "--set", "seed=1,2"], &["nowhere.toml"]);
}

#[test]
fn transfers_are_written_as_a_table() {
    let here = folder("transfers");
    with(&here, "[flows.bulk]", "[flows.bulk]\napp = { kind = \"pages\", segments = 20 }");
    let out = good(&here, &["run", "geo.toml", "--transfers", "pages.csv", "--out", "results"]);
    assert!(out.contains("pages"), "{out}");
    let table = fs::read_to_string(here.join("pages.csv")).expect("a table");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some("group,index,number,start_s,bytes,end_s,completed,duration_s"));
    let open = lines.clone().filter(|line| line.split(',').nth(6) == Some("0")).count();
    assert!(lines.clone().count() > 2 && open == 2, "{table}");
    assert!(lines.all(|line| line.split(',').nth(4) == Some("19200")), "{table}");
    // Results as CSV have the same numbers.
    good(&here, &["export", "results", "--format", "csv"]);
    let exported = fs::read_to_string(here.join("results/transfers.csv")).expect("a table");
    assert_eq!(exported.replace("\r\n", "\n"), table);
    let two = ["run", "geo.toml", "--set", "flows.bulk.count=1,2", "--transfers", "two.csv"];
    bad(&here, &two, &["--transfers", "one run", "makes 2"]);
    bad(&here, &["run", "geo.toml", "--transfers", "geo.toml/pages.csv"], &["geo.toml/pages.csv"]);
}

#[test]
fn results_are_a_directory_that_runs_again_to_the_same() {
    let here = folder("out");
    with(&here, "count = 2", "count = 3");
    let out = good(&here, &["run", "geo.toml", "--digest", "--out", "results/geo"]);
    assert!(out.contains("Results: results/geo"), "{out}");
    let dir = here.join("results/geo");
    for file in [
        "manifest.json",
        "scenario.resolved.toml",
        "summary.json",
        "flows.parquet",
        "links.parquet",
        "series.parquet",
        "transfers.parquet",
    ] {
        assert!(dir.join(file).is_file(), "{file}");
    }
    let first: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("summary.json")).unwrap()).unwrap();
    let again = good(&here, &["run", "results/geo/scenario.resolved.toml", "--digest", "--json"]);
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert_eq!(first, again);
    // Older results are replaced, other files are not.
    good(&here, &["run", "geo.toml", "--out", "results/geo"]);
    good(&here, &["run", "geo.toml", "--set", "flows.bulk.cc=sack,peach", "--out", "results/both"]);
    assert!(here.join("results/both/002-flows.bulk.cc=peach/flows.parquet").is_file());
    bad(&here, &["run", "geo.toml", "--out", "."], &[". holds files", "--out"]);
}

#[test]
fn run_warns_as_check_does() {
    let here = folder("warns");
    with(&here, "64 segments", "8 segments");
    let out = run(&here, &["run", "geo.toml"]);
    let stderr = text(&out.stderr);
    assert!(stderr.contains("skyhaul: warning: flows.bulk.rwnd: "), "{stderr}");
    let check = good(&here, &["check", "geo.toml"]);
    let message = stderr.lines().next().and_then(|l| l.rsplit_once(": ")).expect("a warning").1;
    assert!(check.contains(message), "{message} is not in {check}");
}

#[test]
fn a_run_that_was_cut_short_or_goes_on_elsewhere_is_told_from_other_files() {
    let here = folder("lease");
    with(&here, "5 s", "2 s");
    // What a killed run leaves: its mark, and a table without a manifest.
    fs::create_dir_all(here.join("out")).unwrap();
    fs::write(here.join("out/.skyhaul"), "").unwrap();
    fs::write(here.join("out/flows.parquet"), "half").unwrap();
    good(&here, &["run", "geo.toml", "--set", "flows.bulk.cc=sack,peach", "--out", "out"]);
    assert!(here.join("out/002-flows.bulk.cc=peach/flows.parquet").is_file());
    fs::write(here.join("out/notes.txt"), "mine").unwrap();
    good(&here, &["run", "geo.toml", "--set", "flows.bulk.cc=sack,reno", "--out", "out"]);
    assert!(!here.join("out/002-flows.bulk.cc=peach").exists(), "of the run before");
    assert!(here.join("out/002-flows.bulk.cc=reno").is_dir() && here.join("out/notes.txt").is_file());
    let mark = fs::File::open(here.join("out/.skyhaul")).unwrap();
    mark.lock().unwrap();
    bad(&here, &["run", "geo.toml", "--out", "out"], &["another skyhaul writes into out", "--out"]);
}

#[test]
fn no_name_in_a_study_leads_out_of_the_results() {
    let here = folder("names");
    with(&here, "5 s", "2 s");
    for (from, to) in [("file = \"start\"", "file = \"../../victim\""), ("file = \"start\"", "file = \"..\"")]
    {
        fs::write(here.join("study.toml"), STUDY.replacen(from, to, 1)).unwrap();
        bad(
            &here,
            &["study", "run", "study.toml", "--out", "out"],
            &["study.toml", "figure[0].file", "without folders"],
        );
    }
    let table = "[[table]]\nfile = \"../../victim\"\nrows = \"cc\"\nmetric = \"goodput\"\n";
    fs::write(here.join("study.toml"), format!("{STUDY}{table}")).unwrap();
    bad(
        &here,
        &["study", "run", "study.toml", "--out", "out"],
        &["study.toml", "table[0].file", "without folders"],
    );
    assert!(!here.join("victim.parquet").exists() && !here.join("../victim.parquet").exists());
}

#[test]
fn an_event_after_the_end_is_a_warning() {
    let here = folder("late-event");
    let event = "[[event]]\nat = \"60 s\"\nset = { \"links.sat.up\" = false }\n";
    fs::write(here.join("geo.toml"), format!("{GEO}{event}")).unwrap();
    let out = run(&here, &["run", "geo.toml"]);
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains(
            "event: the change comes after the end of the run and never takes effect; it is at 60 s"
        ),
        "{stderr}"
    );
}

#[test]
fn what_a_file_says_does_not_steer_the_terminal() {
    let here = folder("terminal");
    with(&here, "title = \"Small\"", "title = \"\\u001b[2JSmall\"");
    let out = good(&here, &["run", "geo.toml", "--set", "duration='2 s'"]);
    assert!(!out.contains('\u{1b}') && out.contains("\\u001b[2JSmall"), "{out}");
    // In JSON the title keeps its value.
    with(&here, "title = \"Small\"", "title = \"\\u007f\\u009b2JSmall\"");
    let out = good(&here, &["run", "geo.toml", "--set", "duration='2 s'", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["title"], "\u{7f}\u{9b}2JSmall");
    assert!(!out.contains('\u{9b}'), "{out}");
}

#[test]
fn wrong_scenarios_are_refused_with_file_line_and_key() {
    let here = folder("wrong");
    let check = |from: &str, to: &str, words: &[&str]| {
        with(&here, from, to);
        bad(&here, &["run", "geo.toml"], words);
        bad(&here, &["check", "geo.toml"], words);
    };
    check("error =", "eror =", &["geo.toml:9", "links.sat.eror", "unknown key", "did you mean \"error\""]);
    check("\"275 ms\"", "275", &["geo.toml:7", "links.sat.delay", "275", "unit"]);
    check("\"275 ms\"", "\"275 parsec\"", &["geo.toml:7", "links.sat.delay", "parsec"]);
    check("\"275 ms\"", "\"275 Mbit/s\"", &["geo.toml:7", "links.sat.delay", "time"]);
    check(
        "p = 1e-3",
        "p = 1.2",
        &["geo.toml:9", "links.sat.error.p", "1.2 is not a probability", "from 0 to 1"],
    );
    check("\"1300 packets/s\"", "\"0 packets/s\"", &["geo.toml:6", "links.sat.rate"]);
    check("count = 2", "count = 0", &["geo.toml:11", "flows.bulk.count"]);
    check("\"sack\"", "\"sock\"", &["geo.toml:12", "flows.bulk.cc", "did you mean \"sack\""]);
    check("[links.sat]", "[links.sat", &["geo.toml:4", "not TOML"]);
    let flows = &GEO[GEO.find("[flows").expect("a table")..];
    check(flows, "", &["geo.toml", "flows"]);
    bad(&here, &["run", "nowhere.toml"], &["nowhere.toml", "no such file"]);
    bad(&here, &["run", "preset:peach-gio"], &["did you mean \"peach-geo\""]);
    bad(&here, &["run", "preset:peach-geo", "--set", "duration"], &["--set", "KEY=VALUE"]);
    for seed in ["-1", "minus"] {
        bad(
            &here,
            &["run", "preset:peach-geo", "--seed", seed],
            &[seed, "--seed", "write a whole number ≥ 0"],
        );
    }
    let huge = "99999999999999999999";
    bad(&here, &["run", "preset:peach-geo", "--seed", huge], &[huge, "the number is too large"]);
    let range = ["'-3'", "write a whole number from 1 to 65535"];
    bad(&here, &["run", "preset:peach-geo", "--jobs", "-3"], &range);
    bad(&here, &["rum"], &["rum", "--help"]);
}

#[test]
fn check_derives_and_warns() {
    let here = folder("check");
    with(&here, "5 s", "5 s");
    assert!(good(&here, &["check", "geo.toml"]).contains("BDP"));
    let json: serde_json::Value =
        serde_json::from_str(&good(&here, &["check", "geo.toml", "--json"])).expect("JSON");
    assert!(json["flows"][0]["base_rtt_s"].as_f64().is_some_and(|x| x > 0.55));
}

#[test]
fn schemas_are_json() {
    let here = folder("schema");
    for kind in ["scenario", "study"] {
        let json: serde_json::Value = serde_json::from_str(&good(&here, &["schema", kind])).expect("JSON");
        assert!(json["properties"].is_object(), "{kind}");
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let here = folder("help");
    let help = good(&here, &["--help"]);
    assert!(help.contains("skyhaul demo"));
    // Commands are listed in the order in which a user meets them.
    let order =
        ["check", "run", "compare", "sweep", "study", "reproduce", "gateway", "schema", "completions"];
    let places = order.map(|c| help.find(&format!("\n  {c} ")).unwrap_or_else(|| panic!("{c}: {help}")));
    assert!(places.is_sorted(), "{help}");
    for args in [
        &["demo"][..],
        &["check"],
        &["run"],
        &["sweep"],
        &["study", "run"],
        &["study", "check"],
        &["study", "report"],
        &["study", "fit"],
        &["schema"],
    ] {
        let help = good(&here, &[args, &["--help"]].concat());
        assert!(help.contains("Example"), "{args:?}: {help}");
        assert!(help.contains(&format!("skyhaul {}", args.join(" "))), "{args:?}: {help}");
    }
}

fn study(folder: &Path, from: &str, to: &str) {
    assert!(STUDY.contains(from), "{from} is in the study");
    with(folder, "5 s", "8 s");
    fs::write(folder.join("small.toml"), STUDY.replacen(from, to, 1)).expect("writable");
}

#[test]
fn a_study_is_run_checked_and_reported() {
    let here = folder("study");
    study(&here, "1", "1");
    let first = good(&here, &["study", "run", "small.toml"]);
    assert!(first.contains("segments/s") && first.contains("holds"), "{first}");
    assert_eq!(good(&here, &["study", "check", "small.toml", "--jobs", "1"]), first, "out of the cache");
    let out = run(&here, &["study", "report", "small.toml", "--out", "r"]);
    assert_eq!(out.status.code(), Some(0));
    assert!(text(&out.stderr).contains("vl-convert"), "how to get pictures");
    for file in ["manifest.json", "summary.json", "cells.parquet", "report.html", "figures/start.vl.json"] {
        assert!(here.join("r").join(file).is_file(), "{file}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&good(&here, &["study", "run", "small.toml", "--seeds", "2", "--json"]))
            .expect("JSON");
    assert_eq!(json["provenance"]["cells"], 4);
    // A claim that does not hold.
    study(
        &here,
        r#"left = { cc = "peach" }, right = { cc = "sack" }"#,
        r#"left = { cc = "sack" }, right = { cc = "peach" }"#,
    );
    let out = run(&here, &["study", "check", "small.toml"]);
    assert_eq!((out.status.code(), text(&out.stderr).as_str()), (Some(1), ""));
    assert!(text(&out.stdout).contains("differs"));
}

/// A search over the openings of Peach, for a number that a slow start gives.
const SEARCH: &str = r#"
[[metric]]
name = "gain"
from = "metric.goodput / base.goodput"
base = { cc = "sack" }
[fit]
seeds = 2
fresh = 2
[[fit.option]]
name = "start"
path = "flows.bulk.cc.start"
values = ["sudden", "slow"]
only = { cc = "peach" }
[[fit.printed]]
id = "1"
paper = "A"
metric = "gain"
at = { cc = "peach" }
value = 1.0
[[fit.left_out]]
id = "2"
paper = "A"
says = "1.5"
why = "it contradicts the first"
"#;

#[test]
fn the_readings_of_a_study_are_fitted() {
    let here = folder("fit");
    study(&here, "1", "1");
    bad(&here, &["study", "fit", "small.toml"], &["small.toml: `fit`", "[[fit.option]]"]);
    fs::write(here.join("small.toml"), format!("{STUDY}{SEARCH}")).expect("writable");
    let out = good(&here, &["study", "fit", "small.toml", "--out", "r", "--jobs", "1"]);
    for words in [
        "2 of 2 readings",
        "6 cells of at most 2000, seeds 1-2",
        "seeds 3-4",
        "start: slow",
        "it contradicts",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let kept = fs::read_to_string(here.join("r/fit.txt")).expect("the text");
    assert_eq!(out, format!("{kept}\nResults: r\n"));
    let json = good(&here, &["study", "fit", "small.toml", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["readings"][0]["options"]["start"], "slow");
    assert_eq!((&json["search"]["kind"], &json["search"]["cells"]), (&"grid".into(), &6.into()));
    let file: serde_json::Value =
        serde_json::from_slice(&fs::read(here.join("r/fit.json")).expect("the file")).expect("JSON");
    assert_eq!(json, file, "the same again, out of the cache");
    // The folder is a results directory; `--max-cells` limits the search.
    assert!(here.join("r/manifest.json").is_file());
    let one = good(&here, &["study", "fit", "small.toml", "--seeds", "1", "--max-cells", "2"]);
    assert!(one.contains("the budget is used up") && one.contains("2 cells of at most 2, seeds 1."), "{one}");
    let wrong = format!("{STUDY}{SEARCH}").replace("value = 1.0", "value = 0");
    fs::write(here.join("small.toml"), wrong).expect("writable");
    bad(&here, &["study", "fit", "small.toml"], &["small.toml:", "fit.printed[0].value", "above 0"]);
}

#[test]
fn wrong_studies_are_refused_before_anything_runs() {
    let here = folder("wrong-study");
    let check = |from: &str, to: &str, words: &[&str]| {
        study(&here, from, to);
        bad(&here, &["study", "run", "small.toml"], words);
    };
    check("flows.bulk.cc", "flows.bulk.colour", &["small.toml:8", "axis[0].path", "colour"]);
    check("flows.bulk.cc", "flows.web.cc", &["small.toml:8", "axis[0].path", "there is no flows.web"]);
    check("goodput_segments", "godput", &["small.toml", "metric[0].from", "godput"]);
    check("left = { cc = \"peach\" }", "left = { cc = \"peech\" }", &["small.toml", "peech"]);
    check("title", "titel", &["small.toml:2", "titel"]);
    // A metric that does not exist, wherever it is named.
    let unknown = ["there is no metric `godput`", "accepted: goodput"];
    let claim = "metric = \"goodput\", left";
    check(claim, "metric = \"godput\", left", &[&["small.toml:", "claim[0].check"], &unknown[..]].concat());
    check("y = \"goodput\"", "y = \"godput\"", &[&["small.toml:", "figure[0].y"], &unknown[..]].concat());
    // `check` has status 2 as well, also for a claim about a value that the axis does not have.
    bad(&here, &["study", "check", "small.toml"], &unknown);
    study(&here, "left = { cc = \"peach\" }", "left = { cc = \"reno\" }");
    bad(
        &here,
        &["study", "check", "small.toml"],
        &["small.toml:", "claim[0]", "reno", "accepted: sack, peach"],
    );
    check("count = 3", "count = 0", &["small.toml:5", "seeds"]);
    bad(&here, &["study", "run", "nowhere.toml"], &["nowhere.toml", "no such file"]);
    bad(&here, &["study", "run", "peach-2001/fig99"], &["peach-2001/fig11"]);
    assert!(!here.join("the-cache").exists(), "nothing ran");
}

#[test]
fn cells_that_fail_do_not_stop_the_others_and_are_a_status() {
    let here = folder("failing-cells");
    fs::write(here.join("geo.toml"), GEO).expect("writable");
    // A path without delay and with an unlimited rate cannot be simulated, which shows when the cell runs.
    let nothing = "set = { \"links.sat.rate\" = \"unlimited\", \"links.sat.delay\" = \"0 s\", \"links.sat.queue\" = \"50 packets\" }";
    study(
        &here,
        "values = [\"sack\", \"peach\"]",
        &format!("values = [\"sack\", {{ value = \"peach\", {nothing} }}]"),
    );
    let out = run(&here, &["study", "report", "small.toml", "--out", "out"]);
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    assert_eq!(out.status.code(), Some(2), "{stderr}");
    let last = stderr.lines().last().expect("a line");
    assert!(last.starts_with("skyhaul: 3 of 6 cells failed; the first, cc = peach (seed 1)"), "{stderr}");
    assert!(last.contains("neither delay nor rate"), "{stderr}");
    assert!(
        stdout.contains("✗ failed: cc = peach (seed 1)") && stdout.contains("could not be evaluated"),
        "{stdout}"
    );
    let page = fs::read_to_string(here.join("out/report.html")).expect("a page all the same");
    assert!(page.contains("3 of 6 cells failed"));
}

/// A path with an unlimited rate, whose memory is not estimated before the run.
const VAST: &str = r#"schema = 1
duration = "5 s"
max-memory = "1 MB"
[links.sat]
rate = "unlimited"
delay = "1 s"
[flows.bulk]
path = ["sat"]
transport = "udp"
app = { kind = "cbr", rate = "100 Mbit/s", packet = "1000 B" }
"#;

#[test]
fn a_run_that_uses_up_its_memory_ends_with_what_was_reached() {
    let here = folder("memory");
    fs::write(here.join("vast.toml"), VAST).expect("writable");
    for args in [&["run", "vast.toml", "--out", "out"][..], &["run", "vast.toml", "--json"]] {
        let out = run(&here, args);
        let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
        assert_eq!(out.status.code(), Some(1), "{stderr}");
        let line = stderr.lines().find(|l| l.contains("max-memory")).expect("a line");
        assert!(
            line.starts_with("skyhaul: max-memory: the run ended at 0.")
                && line.contains(" MB of memory, more than the 1 MB that")
                && line.ends_with("larger max-memory"),
            "{line}"
        );
        assert!(stdout.contains("max-memory: the run ended at 0.") && stdout.contains("bulk"), "{stdout}");
    }
    let summary = fs::read_to_string(here.join("out/summary.json")).expect("nothing is lost");
    assert!(
        summary.contains("\"ended_early\": \"max-memory: ") && summary.contains("\"duration_s\": 0."),
        "{summary}"
    );
    // With more memory it runs to its end.
    let all = run(&here, &["run", "vast.toml", "--json", "--set", "max-memory=4 GB"]);
    assert!(all.status.success() && !text(&all.stdout).contains("ended_early"));
    // In a study, only the cells that use up their memory have no result.
    let study = STUDY.replace("values = [\"sack\", \"peach\"]", "values = [\"sack\", { value = \"peach\", set = { max-memory = \"20 kB\", \"flows.bulk.rwnd\" = \"2000 segments\", \"links.sat.rate\" = \"unlimited\", \"links.sat.queue\" = \"50 packets\", \"links.sat.error\" = \"none\", duration = \"60 s\" } }]");
    fs::write(here.join("geo.toml"), GEO).expect("writable");
    fs::write(here.join("small.toml"), study).expect("writable");
    let out = run(&here, &["study", "report", "small.toml", "--out", "study"]);
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{stderr}");
    let last = stderr.lines().last().expect("a line");
    assert!(
        last.starts_with("skyhaul: 3 of 6 cells failed") && last.contains("max-memory: the run ended at"),
        "{stderr}"
    );
}

#[test]
fn controls_of_a_user_are_refused_here() {
    let here = folder("own-controls");
    fs::write(here.join("geo.toml"), GEO).expect("writable");
    for command in ["run", "check"] {
        let words = ["flows.bulk.cc: nobody provides the control \"mine\"", "controls={\"mine\": YourClass}"];
        bad(&here, &[command, "geo.toml", "--set", "flows.bulk.cc=user:mine"], &words);
    }
}

#[test]
fn a_damaged_cell_is_named_and_runs_again() {
    let here = folder("damaged");
    study(&here, "1", "1");
    let first = good(&here, &["study", "run", "small.toml"]);
    let cells = here.join("the-cache/cells");
    let some =
        |dir: &Path| fs::read_dir(dir).expect("a folder").next().expect("an entry").expect("readable").path();
    let cell = some(&some(&cells));
    let whole = fs::read(&cell).expect("a cell");
    fs::write(&cell, &whole[..whole.len() - 9]).expect("writable");
    let out = run(&here, &["study", "run", "small.toml"]);
    let line = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{line}");
    assert!(line.contains("runs again") && line.contains("the-cache"), "{line}");
    assert_eq!(text(&out.stdout), first);
    assert_eq!(fs::read(&cell).expect("a cell"), whole, "repaired");
}

#[test]
fn output_that_cannot_be_written_is_said_in_one_line() {
    let here = folder("unwritable");
    study(&here, "1", "1");
    fs::write(here.join("file"), "").expect("writable");
    bad(&here, &["run", "geo.toml", "--out", "file/results"], &["file/results"]);
    bad(&here, &["run", "geo.toml", "--out", "file"], &["file"]);
    bad(&here, &["study", "report", "small.toml", "--out", "file"], &["file"]);
    bad(&here, &["study", "run", "small.toml", "--cache", "file"], &["cannot write file"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_in_one_line() {
    let here = folder("full");
    study(&here, "1", "1");
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let out = skyhaul(&here, &["run", "geo.toml"]).stdout(full()).output().expect("starts");
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(text(&out.stderr), "skyhaul: cannot write standard output: the disk is full\n");
    fs::create_dir(here.join("r")).expect("writable");
    fs::write(here.join("r/manifest.json"), "{}").expect("writable");
    std::os::unix::fs::symlink("/dev/full", here.join("r/series.parquet")).expect("a link");
    good(&here, &["run", "geo.toml", "--out", "r"]);
    let kind = fs::symlink_metadata(here.join("r/series.parquet")).expect("there").file_type();
    assert!(kind.is_file(), "the link was replaced, not followed");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let here = folder("closed");
    let mut child = skyhaul(&here, &["schema", "scenario"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let out = child.wait_with_output().expect("ends");
    assert_eq!((out.status.code(), text(&out.stderr).as_str()), (Some(0), ""));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_finished_cells_and_says_how_to_go_on() {
    let here = folder("ctrl-c");
    study(&here, "count = 3", "count = 3000");
    let child = skyhaul(&here, &["study", "run", "small.toml", "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let cells = here.join("the-cache/cells");
    for _ in 0..600 {
        if cells.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let id = child.id().to_string();
    let killed =
        Command::new("/bin/sh").args(["-c", "kill -INT \"$1\"", "sh", &id]).status().expect("a shell");
    assert!(killed.success());
    let out = child.wait_with_output().expect("ends");
    let line = text(&out.stderr);
    assert_eq!(out.status.code(), Some(130), "{line}");
    assert!(line.contains("of 6000 cells done") && line.contains("run the same command again"), "{line}");
    assert!(fs::read_dir(&cells).is_ok_and(|mut d| d.next().is_some()));
}

/// Feeds `input` to the program.
fn fed(folder: &Path, args: &[&str], input: &str) -> Output {
    let mut child = skyhaul(folder, args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

#[test]
fn new_files_run_as_they_are() {
    let folder = folder("new");
    good(&folder, &["new", "scenario", "mine.toml"]);
    good(&folder, &["new", "study", "question.toml"]);
    for (file, kind) in [("mine.toml", "scenario"), ("question.toml", "study")] {
        let text = fs::read_to_string(folder.join(file)).expect("it is there");
        // Where editors look for the schema: the file that the repository keeps.
        let line = text.lines().next().and_then(|l| l.strip_prefix("#:schema https://")).expect("a schema");
        assert!(line.ends_with(&format!("/schema/{kind}.json")), "{line}");
        assert_eq!(good(&folder, &["new", kind]), text);
    }
    assert!(good(&folder, &["run", "mine.toml", "--set", "duration=5s"]).contains("My scenario"));
    let args = ["study", "run", "question.toml", "--seeds", "2", "--set", "duration=5s"];
    assert!(good(&folder, &args).contains("My question"));
    bad(&folder, &["new", "scenario", "mine.toml"], &["mine.toml exists already", "choose another name"]);
    bad(&folder, &["new", "paper"], &["paper", "scenario, study"]);
}

#[test]
fn a_dash_is_the_standard_input() {
    let folder = folder("stdin");
    fs::write(folder.join("base.toml"), GEO).expect("a file");
    let by_file = good(&folder, &["run", "base.toml", "--json"]);
    for input in [GEO, "\u{feff}schema = 1\nextends = \"base.toml\"\n"] {
        let out = fed(&folder, &["run", "-", "--json"], input);
        assert_eq!((out.status.code(), text(&out.stdout)), (Some(0), by_file.clone()));
    }
    // Standard input is read once for all combinations.
    let out = fed(&folder, &["check", "-", "--set", "seed=1,2"], GEO);
    assert_eq!(text(&out.stdout).matches("── seed=").count(), 2);
    let study = "schema = 1\ntitle = \"Piped\"\nscenario = \"base.toml\"\nseeds = { first = 1, count = 2 }\n\
                 [[axis]]\nname = \"loss\"\npath = \"links.sat.error.p\"\nvalues = [0, 1e-2]\n\
                 [[metric]]\nname = \"goodput\"\nfrom = \"flow.goodput\"\nover = \"sum\"\n";
    let out = fed(&folder, &["study", "run", "-"], study);
    assert!(text(&out.stdout).starts_with("Piped\n"), "{}", text(&out.stderr));
    let out = fed(&folder, &["run", "-"], "schema = 1\nduraton = \"5 s\"\n");
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).starts_with("skyhaul: -:2: duraton: unknown key"), "{}", text(&out.stderr));
}

#[test]
fn lists_have_what_files_may_name() {
    let folder = folder("lists");
    let names = |what: &str| -> Vec<String> {
        let all: serde_json::Value =
            serde_json::from_str(&good(&folder, &["list", what, "--json"])).expect("JSON");
        let all = all.as_array().expect("a list").iter();
        all.map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(good(&folder, &["list", "presets"]), good(&folder, &["presets"]));
    for name in names("presets") {
        good(&folder, &["presets", &name]);
    }
    assert_eq!(names("controls"), skyhaul_cc::NAMES);
    assert!(names("studies").contains(&"peach-2001/fig11".to_owned()));
    let metrics = good(&folder, &["list", "metrics"]);
    for name in ["flow.goodput ", "link.LINK.forward.utilization ", "run.events ", "series.cwnd "] {
        assert!(metrics.lines().any(|l| l.starts_with(name)), "{name}");
    }
    bad(&folder, &["list", "links"], &["presets, studies, controls, metrics"]);
}

#[test]
fn shells_and_manuals_know_every_command() {
    let folder = folder("manual");
    let help = good(&folder, &["--help"]);
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|l| *l != "Commands:")
        .skip(1)
        .take_while(|l| l.starts_with("  "))
        .filter_map(|l| l.strip_prefix("  ")?.split(' ').next())
        .filter(|c| !c.is_empty())
        .collect();
    assert!(commands.len() > 10 && !commands.contains(&"man"), "{commands:?}");
    good(&folder, &["man", "man"]);
    for command in &commands {
        let page = fs::read_to_string(folder.join(format!("man/skyhaul-{command}.1"))).expect("a page");
        assert!(page.contains(".SH SYNOPSIS"), "{command}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = good(&folder, &["completions", shell]);
        assert!(commands.iter().all(|c| script.contains(c)), "{shell}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_gateway_says_what_it_would_do() {
    let folder = folder("gateway");
    let file = "[terrestrial]\ninterface = \"no-such-lan\"\n[satellite]\ninterface = \"no-such-sat\"\nrate = \"10 Mbit/s\"\n";
    fs::write(folder.join("g.toml"), file).expect("writes");
    let summary = good(&folder, &["gateway", "check", "g.toml"]);
    for part in ["table inet skyhaul_gateway", "paced to 10 Mbit/s", "cubic", "new connections are forwarded"]
    {
        assert!(summary.contains(part), "{part}: {summary}");
    }
    let rules = good(&folder, &["gateway", "rules", "g.toml"]);
    assert!(
        rules.starts_with("create table inet skyhaul_gateway\n") && rules.contains("ip rule add"),
        "{rules}"
    );
    bad(
        &folder,
        &["gateway", "run", "g.toml", "--runtime", "run"],
        &["there is no interface \"no-such-lan\""],
    );
    bad(&folder, &["gateway", "status", "--runtime", "run"], &["no gateway called \"gateway\" runs"]);
    assert!(good(&folder, &["gateway", "clean", "--help"]).contains("[default: gateway]"));
    // With several gateways a capture needs a name; without one it leaves no empty file.
    fs::create_dir_all(folder.join("two")).expect("a folder");
    let locks =
        ["a", "b"].map(|name| fs::File::create(folder.join(format!("two/{name}.lock"))).expect("a file"));
    locks.iter().for_each(|lock| lock.lock().expect("locks"));
    let capture = ["gateway", "capture", "--pcap", "a.pcapng", "--runtime", "two"];
    bad(&folder, &capture, &["several gateways run: name one of a, b"]);
    assert!(!folder.join("a.pcapng").exists());
    bad(&folder, &["gateway", "stop", "other", "--runtime", "run"], &["no gateway called \"other\" runs"]);
    bad(&folder, &["gateway", "check", "missing.toml"], &["missing.toml: cannot read it"]);
    bad(&folder, &["gateway", "check", "/dev/zero"], &["it is no configuration"]);
    fs::write(folder.join("bad.toml"), file.replace("10 Mbit/s", "10")).expect("writes");
    bad(&folder, &["gateway", "check", "bad.toml"], &["bad.toml: satellite.rate: "]);
}
