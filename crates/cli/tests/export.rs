//! `export`: files against the tables that they come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_skyhaul")).args(args).current_dir(folder).output().expect("it starts")
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

#[test]
fn csv_has_the_numbers_of_the_run_to_the_last_digit() {
    let folder = folder("export-csv");
    let more = ["--set", "duration='20 s'", "--set", "flows.bulk.count=3", "--set", "record.sample='500 ms'"];
    let args = [&["run", "preset:peach-geo", "--json", "--out", "r"][..], &more].concat();
    let out = run(&folder, &args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let measured: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let out = run(&folder, &["export", "r", "--format", "csv", "--out", "c"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8_lossy(&out.stdout).lines().count(), 3);

    let text = fs::read_to_string(folder.join("c/flows.csv")).expect("the table");
    assert!(text.ends_with("\r\n"));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().expect("names").clone();
    let column = |name: &str| names.iter().position(|n| n == name).expect("the column");
    let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.expect("a row")).collect();
    assert_eq!(rows.len(), 3);
    for (row, flow) in rows.iter().zip(measured["flows"].as_array().expect("flows")) {
        for name in ["goodput_bit_s", "segments_acked", "mean_srtt_s", "started_s"] {
            let read: f64 = row[column(name)].parse().expect("a number");
            assert_eq!(Some(read), flow[name].as_f64(), "{name}");
        }
        assert_eq!(row[column("segments_sent")].parse().ok(), flow["segments_sent"].as_u64());
        assert_eq!(&row[column("group")], "bulk");
        // Bulk flows never finish: a gap, not a number.
        assert_eq!((&row[column("finished_s")], &flow["finished_s"]), ("", &serde_json::Value::Null));
    }
    let series =
        csv::Reader::from_path(folder.join("c/series.csv")).expect("the table").into_records().count();
    assert!(series > 3 * 40, "{series} rows");
}

#[test]
fn what_is_no_results_directory_is_refused_in_one_line() {
    let folder = folder("export-refused");
    fs::write(folder.join("x.parquet"), "not a table").expect("a file");
    for setting in ["nothing", "a folder of other files", "a broken table"] {
        let name = if setting == "nothing" { "nowhere" } else { "." };
        if setting == "a broken table" {
            fs::write(folder.join("manifest.json"), "{}").expect("a file");
        }
        let out = run(&folder, &["export", name, "--format", "csv", "--out", "c"]);
        let line = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!((out.status.code(), line.lines().count()), (Some(2), 1), "{setting}: {line}");
        let words = if setting == "a broken table" { "x.parquet" } else { "manifest.json" };
        assert!(line.contains(words), "{setting}: {line}");
    }
}
