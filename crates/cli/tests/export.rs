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
    assert_eq!(String::from_utf8_lossy(&out.stdout).lines().count(), 4);

    let text = fs::read_to_string(folder.join("c/flows.csv")).expect("the table");
    assert!(text.ends_with("\r\n"));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().expect("names").clone();
    let column = |name: &str| names.iter().position(|n| n == name).expect("the column");
    let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.expect("a row")).collect();
    assert_eq!(rows.len(), 3);
    for (row, flow) in rows.iter().zip(measured["flows"].as_array().expect("flows")) {
        for name in ["goodput_bit_s", "unique_segments", "mean_srtt_s", "started_s"] {
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

/// A recorded run of three flows with losses.
fn recorded(name: &str, series: &str) -> (PathBuf, serde_json::Value) {
    let folder = folder(name);
    let series = format!("record.series=[{series}]");
    let mut args = vec!["run", "preset:peach-geo", "--json", "--out", "r"];
    for set in
        ["duration='20 s'", "flows.bulk.count=3", "links.sat.error.p=5e-3", "record.sample='500 ms'", &series]
    {
        args.extend(["--set", set]);
    }
    let out = run(&folder, &args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    (folder, serde_json::from_slice(&out.stdout).expect("JSON"))
}

fn exported(folder: &Path, format: &str) {
    let out = run(folder, &["export", "r", "--format", format, "-o", "x"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).expect("the file")).expect("JSON")
}

const EVERYTHING: &str = "'acked', 'cwnd', 'in-flight', 'queue', 'retransmissions', 'srtt'";

#[test]
fn parquet_tables_are_those_of_the_run() {
    let (folder, _) = recorded("export-parquet", EVERYTHING);
    exported(&folder, "parquet");
    for table in ["flows", "links", "series", "transfers"] {
        let name = format!("{table}.parquet");
        let (from, to) = (fs::read(folder.join("r").join(&name)), fs::read(folder.join("x").join(&name)));
        assert_eq!(from.expect("the table"), to.expect("its copy"), "{name}");
    }
    let out = run(&folder, &["export", "r", "--format", "parquet"]);
    assert!(String::from_utf8_lossy(&out.stderr).contains("Parquet files already"));
}

/// What flent's reader asks of a file, from its description of version 4.
#[test]
fn flent_files_have_the_structure_that_its_reader_asks_for() {
    let (folder, measured) = recorded("export-flent", EVERYTHING);
    exported(&folder, "flent");
    let data = json(&folder.join("x/run.flent"));
    assert_eq!(data["version"], 4);
    let x: Vec<f64> =
        data["x_values"].as_array().expect("times").iter().map(|x| x.as_f64().expect("s")).collect();
    assert!(x.len() == 41 && x.windows(2).all(|w| w[1] - w[0] == 0.5), "{x:?}");
    let meta = &data["metadata"];
    for key in ["NAME", "TITLE", "HOST"] {
        assert!(meta[key].is_string(), "{key}");
    }
    for key in ["LENGTH", "TOTAL_LENGTH", "STEP_SIZE"] {
        assert!(meta[key].is_f64(), "{key}");
    }
    for key in ["TIME", "T0"] {
        assert_eq!(meta[key], "1970-01-01T00:00:00.000000Z");
    }
    let results = data["results"].as_object().expect("series");
    // A stream, its window and its round-trip time for each flow, and both queues.
    assert_eq!(results.len(), 3 * 3 + 2);
    for (name, values) in results {
        assert_eq!(values.as_array().map(Vec::len), Some(x.len()), "{name}");
    }
    for (i, flow) in measured["flows"].as_array().expect("flows").iter().enumerate() {
        let name = format!("TCP upload::{}", i + 1);
        let mean = flow["goodput_bit_s"].as_f64().expect("a rate") / 1e6;
        assert_eq!(meta["SERIES_META"][&name]["MEAN_VALUE"].as_f64(), Some(mean));
        let points = data["raw_values"][&name].as_array().expect("points");
        // Rates times their spans are what was delivered.
        let sum: f64 =
            points.iter().map(|p| p["val"].as_f64().expect("Mbit/s") * p["dur"].as_f64().expect("s")).sum();
        let all = flow["bytes_acked"].as_f64().expect("bytes") * 8e-6;
        assert!((sum - all).abs() < 1e-3 * all, "{sum} {all}");
        assert!(points.iter().all(|p| p["t"].is_f64()));
    }
}

/// Keys of `iperf3 -J` (3.12, TCP, two streams) that a simulation has no value for.
const NOT_SIMULATED: [&str; 13] = [
    "end.cpu_utilization_percent.host_system",
    "end.cpu_utilization_percent.host_total",
    "end.cpu_utilization_percent.host_user",
    "end.cpu_utilization_percent.remote_system",
    "end.cpu_utilization_percent.remote_total",
    "end.cpu_utilization_percent.remote_user",
    "end.streams[].sender.max_snd_wnd",
    "intervals[].streams[].pmtu",
    "intervals[].streams[].rttvar",
    "intervals[].streams[].snd_wnd",
    "start.rcvbuf_actual",
    "start.sndbuf_actual",
    "start.sock_bufsize",
];

fn keys(value: &serde_json::Value, path: &str, out: &mut std::collections::BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, inner) in map {
                keys(inner, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, out);
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|v| keys(v, &format!("{path}[]"), out)),
        _ => drop(out.insert(path.to_owned())),
    }
}

#[test]
fn iperf3_files_have_the_keys_of_the_real_one() {
    let (folder, measured) = recorded("export-iperf3", EVERYTHING);
    exported(&folder, "iperf3");
    let report = json(&folder.join("x/bulk.iperf3.json"));
    let mut found = std::collections::BTreeSet::new();
    keys(&report, "", &mut found);
    let real: std::collections::BTreeSet<String> =
        include_str!("data/iperf3-3.12.keys").lines().map(str::to_owned).collect();
    let missing: Vec<&str> = real.difference(&found).map(String::as_str).collect();
    assert_eq!(missing, NOT_SIMULATED);
    assert_eq!(found.difference(&real).count(), 0);

    let flows = measured["flows"].as_array().expect("flows");
    let sum = |key: &str| flows.iter().map(|f| f[key].as_u64().expect("a count")).sum::<u64>();
    assert_eq!(report["end"]["sum_received"]["bytes"], sum("bytes_acked"));
    assert_eq!(report["end"]["sum_sent"]["retransmits"], sum("retransmissions"));
    assert!(sum("retransmissions") > 0);
    let intervals = report["intervals"].as_array().expect("intervals");
    assert_eq!(intervals.len(), 40);
    let total = |key: &str| intervals.iter().map(|i| i["sum"][key].as_u64().expect("a count")).sum::<u64>();
    assert_eq!((total("bytes"), total("retransmits")), (sum("bytes_acked"), sum("retransmissions")));
    let rtt = intervals[39]["streams"][0]["rtt"].as_f64().expect("microseconds");
    assert!((550e3..700e3).contains(&rtt), "{rtt}");
}

#[test]
fn qlog_files_tell_every_packet_and_its_fate() {
    let (folder, measured) = recorded("export-qlog", EVERYTHING);
    exported(&folder, "qlog");
    for flow in measured["flows"].as_array().expect("flows") {
        let path = folder.join(format!("x/bulk[{}].sqlog", flow["index"]));
        let text = fs::read_to_string(path).expect("a log");
        // RFC 7464: each text stands between a record separator and a line feed.
        let records: Vec<serde_json::Value> = text
            .split_inclusive('\n')
            .map(|r| serde_json::from_str(r.strip_prefix('\u{1e}').expect("a separator")).expect("JSON"))
            .collect();
        assert_eq!(records[0]["file_schema"], "urn:ietf:params:qlog:file:sequential");
        assert_eq!(records[0]["trace"]["vantage_point"]["type"], "network");
        let events = &records[1..];
        let time = |e: &serde_json::Value| e["time"].as_f64().expect("ms");
        assert!(events.windows(2).all(|w| time(&w[0]) <= time(&w[1])));
        let count = |name: &str, of: &dyn Fn(&serde_json::Value) -> bool| {
            events.iter().filter(|e| e["name"] == name && of(&e["data"])).count() as u64
        };
        let kind = |kind: &'static str| move |d: &serde_json::Value| d["header"]["packet_type"] == kind;
        assert_eq!(count("tcp:packet_sent", &kind("data")), flow["segments_sent"].as_u64().expect("a count"));
        assert_eq!(count("tcp:packet_sent", &kind("probe")), flow["probes_sent"].as_u64().expect("a count"));
        assert_eq!(count("tcp:packet_received", &kind("ack")), flow["acks"].as_u64().expect("a count"));
        let lost = count("tcp:packet_lost", &|d| d["trigger"] == "error" && d["link"] == "links.sat.forward");
        assert!(lost > 0);
        assert_eq!(
            lost,
            flow["lost_error"].as_u64().expect("a count") + count("tcp:packet_lost", &kind("probe"))
        );
        assert!(count("tcp:metrics_updated", &|d| d["smoothed_rtt"].is_f64()) > 30);
        assert!(count("tcp:metrics_updated", &|d| d["congestion_window"].is_u64()) > 30);
    }
}

/// A replayed trace is exported unchanged, and the trace of another link shows the changes of its rate.
#[test]
fn mahimahi_traces_hold_what_a_link_could_send() {
    let folder = folder("export-mahimahi");
    let lines: Vec<String> = [1, 1, 5, 30, 31, 100].iter().map(ToString::to_string).collect();
    fs::write(folder.join("up.trace"), lines.join("\n") + "\n").expect("written");
    let scenario = "schema = 1\nduration = '100 ms'\n[flows.f]\nhandshake = false\nknown-rtt = '10 ms'\n[links.sat]\n\
                    rate = { mahimahi = 'up.trace' }\ndelay = '5 ms'\nreverse = { rate = '1.504 Mbit/s' }\n\
                    [[event]]\nat = '20 ms'\nset = { 'links.sat.reverse.up' = false }\n\
                    [[event]]\nat = '60 ms'\nset = { 'links.sat.reverse.up' = true }\n\
                    [[event]]\nat = '70 ms'\nset = { 'links.sat.reverse.rate' = '3.008 Mbit/s' }\n";
    fs::write(folder.join("s.toml"), scenario).expect("written");
    let out = run(&folder, &["run", "s.toml", "--out", "r"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    exported(&folder, "mahimahi");
    let read = |name: &str| fs::read_to_string(folder.join("x").join(name)).expect("a trace");
    assert_eq!(read("links.sat.forward.mahimahi").lines().collect::<Vec<_>>(), lines);
    // 1504 bytes take 8 ms. The packet in transmission at 20 ms still leaves; packets that begin after 70 ms take 4 ms.
    let reverse = ["8", "16", "24", "68", "76", "80", "84", "88", "92", "96", "100"];
    assert_eq!(read("links.sat.reverse.mahimahi").lines().collect::<Vec<_>>(), reverse);
    // A results directory holds the trace, so that runs need the file no longer.
    fs::remove_file(folder.join("up.trace")).expect("removed");
    let out = run(&folder, &["check", "r/scenario.resolved.toml"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let out = run(&folder, &["run", "s.toml"]);
    let line = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && line.contains("up.trace"), "{line}");
}

#[test]
fn what_a_run_has_not_recorded_is_named_with_its_key() {
    let (folder, _) = recorded("export-missing", "'acked'");
    for (format, missing) in
        [("flent", "cwnd, srtt"), ("iperf3", "cwnd, retransmissions, srtt"), ("qlog", "in-flight, srtt")]
    {
        let out = run(&folder, &["export", "r", "--format", format, "-o", "x"]);
        let line = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!((out.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains(missing) && line.contains("record.series=['acked', "), "{line}");
    }
    // A run of another engine cannot be repeated.
    let (folder, _) = recorded("export-engine", EVERYTHING);
    let path = folder.join("r/manifest.json");
    let mut manifest = json(&path);
    manifest["engine"] = "0.0.9-ffffffff".into();
    fs::write(&path, manifest.to_string()).expect("written");
    let out = run(&folder, &["export", "r", "--format", "qlog", "-o", "x"]);
    let line = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && line.contains("r/manifest.json: `engine`: "), "{line}");
    assert!(line.contains("0.0.9-ffffffff") && line.contains("accepted: "), "{line}");
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
