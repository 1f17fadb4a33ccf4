//! Traces that scenarios and studies name, relative to their file, and `--set`, relative to the working directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_skyhaul")).args(args).current_dir(folder).output().expect("it starts")
}

fn done(folder: &Path, args: &[&str]) -> String {
    let out = run(folder, args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// A folder with `studies/s.toml` beside two traces.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("studies")).expect("a folder for the test");
    for (file, text) in [
        ("studies/slow.csv", "time_s,rate_mbit_s\n0,1\n"),
        ("studies/fast.csv", "time_s,rate_mbit_s\n0,2\n"),
        (
            "studies/s.toml",
            r#"
schema = 1
title = "Two traces"
set = { "links.sat.rate" = { trace = "slow.csv" } }
seeds = { count = 2 }
[scenario]
duration = "20 s"
links.sat = { delay = "50 ms", rate = "8 Mbit/s", queue = "50 packets" }
flows.f = { transport = "udp", app = { kind = "cbr", rate = "4 Mbit/s" } }
[[axis]]
name = "trace"
path = "links.sat.rate"
values = [{ value = { trace = "slow.csv" }, label = "slow" }, { value = { trace = "fast.csv" }, label = "fast" }]
[[metric]]
name = "rate"
from = "flow.goodput"
over = "sum"
"#,
        ),
        (
            "studies/geo.toml",
            "schema = 1\nduration = \"20 s\"\n[flows.f]\n[links.sat]\nrate = { trace = \"fast.csv\" }\ndelay = \"50 ms\"\n",
        ),
    ] {
        fs::write(folder.join(file), text).expect("written");
    }
    folder
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_scenario_names_files_beside_it_and_the_command_files_where_it_stands() {
    let folder = folder("traces-scenario");
    let result = |args: &[&str]| json(&done(&folder, &[&["run", "--json"], args].concat()));
    let fast = result(&["studies/geo.toml"]);
    let again = result(&["studies/geo.toml", "--set", "links.sat.rate={ trace = 'studies/fast.csv' }"]);
    assert_eq!((&fast["scenario"], &fast["goodput_bit_s"]), (&again["scenario"], &again["goodput_bit_s"]));
    let both = "links.sat.rate={ trace = 'studies/fast.csv' }, { trace = 'studies/slow.csv' }";
    let cases = result(&["studies/geo.toml", "--set", both]);
    let goodput = |i: usize| cases["cases"][i]["goodput_bit_s"].as_f64().expect("a rate");
    assert!(goodput(0) > 1.5 * goodput(1), "{} {}", goodput(0), goodput(1));
    let out = run(&folder, &["run", "studies/geo.toml", "--set", "links.sat.rate={ trace = 'fast.csv' }"]);
    let line = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(line.contains("--set: links.sat.rate.trace: cannot read fast.csv"), "{line}");
    // A broken file is named with its line.
    fs::write(folder.join("studies/fast.csv"), "time_s,rate_mbit_s\n0,2\n0,3\n").expect("written");
    let out = run(&folder, &["check", "studies/geo.toml"]);
    let line = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && line.contains("studies/fast.csv:3: times must ascend"), "{line}");
}

#[test]
fn a_study_names_files_beside_it() {
    let folder = folder("traces-study");
    let args = ["study", "report", "studies/s.toml", "--json", "--out", "r", "--cache", "c"];
    done(&folder, &args);
    let cells = done(&folder, &["export", "r", "--format", "csv", "-o", "x"]);
    assert!(cells.contains("cells.csv"), "{cells}");
    let mut reader = csv::Reader::from_path(folder.join("x/cells.csv")).expect("cells");
    let names = reader.headers().expect("names").clone();
    let column =
        |name: &str| names.iter().position(|n| n == name).unwrap_or_else(|| panic!("{name} of {names:?}"));
    let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.expect("a row")).collect();
    let mean = |label: &str| {
        let of: Vec<f64> = rows
            .iter()
            .filter(|r| &r[column("trace")] == label)
            .map(|r| r[column("rate")].parse().expect("a number"))
            .collect();
        assert_eq!(of.len(), 2, "{label}");
        of.iter().sum::<f64>() / 2.0
    };
    // Datagrams fill either: twice the rate is twice the goodput, but for what is on its way at the end.
    let ratio = mean("fast") / mean("slow");
    assert!((ratio - 2.0).abs() < 0.02, "{ratio}");
    // Finished cells are found again by the content of the files.
    fs::write(folder.join("studies/slow.csv"), "time_s,rate_mbit_s\n0,1.5\n").expect("written");
    done(&folder, &args);
    done(&folder, &["export", "r", "--format", "csv", "-o", "x"]);
    let text = fs::read_to_string(folder.join("x/cells.csv")).expect("cells");
    assert!(
        rows.iter().filter(|r| &r[column("trace")] == "slow").all(|r| !text.contains(&r[column("rate")])),
        "{text}"
    );
}
