//! `attack` as users meet it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    let out = command.arg("attack").args(args).current_dir(folder).stdin(Stdio::null()).output();
    let out = out.expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (out.status.code(), text(out.stdout), text(out.stderr))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

const BOUNDS: &str = "duration = \"10 s\"
rate = [\"1 Mbit/s\", \"4 Mbit/s\"]
rtt = [\"20 ms\", \"80 ms\"]
start = \"0 s\"
";

#[test]
fn a_search_writes_a_scenario_that_replays() {
    let here = folder("attack");
    fs::write(here.join("bounds.toml"), BOUNDS).expect("writable");
    let args =
        ["newreno", "--goal", "queue", "--budget", "24 runs", "--bounds", "bounds.toml", "--out", "out"];
    let (status, text, stderr) = run(&here, &args);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{text}");
    for words in ["queue of newreno: 24 cases", "worst: ", "10 fresh seeds", "rtt", "Results: out"] {
        assert!(text.contains(words), "{words:?} is not in: {text}");
    }
    // The same command again finds everything in its journal.
    let (_, json, _) = run(&here, &[&args[..], &["--json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let wanted = report["worst"]["value"].as_f64().expect("a value");
    let mut again = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    let again = again.args(["run", "out/worst.toml", "--json"]).current_dir(&here).output();
    let again: serde_json::Value =
        serde_json::from_slice(&again.expect("it runs").stdout).expect("JSON of the run");
    let number = |text: &str| text.split(' ').next().and_then(|n| n.parse::<f64>().ok()).expect("a number");
    let packets = again["links"][0]["mean_queue_packets"].as_f64().expect("a queue");
    let case = &report["worst"]["case"];
    let ns = |text: &str| match text.split_once(' ').expect("a unit") {
        (n, "ms") => n.parse::<f64>().expect("a number") * 1e6,
        (n, "us") => n.parse::<f64>().expect("a number") * 1e3,
        other => panic!("{other:?}"),
    };
    let rate = case["rate"].as_str().expect("a rate");
    let scale = if rate.contains("Mbit") { 1e6 } else { 1e3 };
    let rtt = ns(case["rtt"].as_str().expect("a time")) / 1e9;
    let value = packets * 12_000.0 / (number(rate) * scale).round() / rtt;
    assert!((value - wanted).abs() < 1e-9 * wanted, "{value} {wanted}");
}

#[test]
fn wrong_arguments_are_refused_in_one_line() {
    let here = folder("attack-bad");
    for (args, words) in [
        (
            &["newreno", "--goal", "win", "--budget", "9 runs"][..],
            "goal win: there is no such goal; accepted: harm",
        ),
        (&["newreno", "--goal", "harm", "--budget", "0 runs"], "budget 0 runs: nothing would be searched"),
        (&["newreno", "--goal", "harm", "--budget", "soon"], "10min or \"500 runs\""),
        (&["newreno", "--goal", "harm", "--budget", "5 runs"], "5 runs are too few"),
        (&["luigi", "--goal", "harm", "--budget", "500 runs"], "luigi"),
        (&["newreno", "--goal", "harm"], "--budget"),
    ] {
        let (status, out, line) = run(&here, args);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{args:?}: {line}");
        assert!(line.contains(words) && line.matches('\n').count() == 1, "{args:?}: {line}");
    }
    assert!(!here.join("results").exists());
}
