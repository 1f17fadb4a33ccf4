//! `evaluate` as users meet it: verdicts per requirement, whatever the control does.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skyhaul"));
    command.args(args).current_dir(folder).env("PATH", "").env("SKYHAUL_CACHE", folder.join("the-cache"));
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    let text = |b: Vec<u8>| String::from_utf8(b).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("evaluate-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("cases")).expect("a folder for the test");
    fs::write(folder.join("cases/paper.toml"), PAPER).expect("writable");
    fs::write(folder.join("cases/harm.toml"), HARM).expect("writable");
    folder
}

fn read(path: PathBuf) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("readable")).expect("JSON")
}

fn verdict<'a>(evaluation: &'a Value, section: &str) -> &'a str {
    let all = evaluation["requirements"].as_array().expect("a list");
    let found = all.iter().find(|r| r["section"] == section).expect("a requirement");
    found["verdict"].as_str().expect("a word")
}

const PAPER: &str = r#"schema = 1
title = "What is required"
row = [{ id = "1", says = "No <harm>" }, { id = "2", says = "No losses" }, { id = "3", says = "Peace" }]
[[open]]
id = "3 world"
says = "Peace on Earth"
why = "The simulator has none"
"#;

const HARM: &str = r#"schema = 1
title = "Harm"
seeds = { first = 1, count = 6 }
quick = { seeds = 3 }
[scenario]
schema = 1
duration = "20 s"
[scenario.links.net]
packet = "1500 B"
rate = "4 Mbit/s"
delay = "20 ms"
queue = "1 BDP"
[scenario.flows.own]
cc = "candidate"
rwnd = "4000 segments"
start = { uniform = ["0 s", "1 s"] }
[scenario.flows.rival]
cc = "newreno"
rwnd = "4000 segments"
start = { uniform = ["0 s", "1 s"] }
[[axis]]
name = "own"
path = "flows.own.cc"
values = ["candidate", "newreno"]
[[metric]]
name = "rival"
from = "sum(flow[rival].goodput) / 1e6"
unit = "Mbit/s"
[[metric]]
name = "lost"
from = "100 * sum(flow[own].lost_full) / sum(flow[own].segments_sent)"
unit = "%"
[[claim]]
id = "1 rival"
says = "The rival keeps half of what it has beside its own kind"
check = { kind = "greater", metric = "rival", left = { own = "candidate" }, right = { own = "newreno" }, by = -0.5 }
[[claim]]
id = "2 loss"
says = "At most a tenth is lost"
kind = "number"
at = { own = "candidate" }
check = { kind = "within", metric = "lost", within = [0, 10] }
"#;

#[test]
fn a_control_that_never_yields_is_found_and_a_standard_one_is_not() {
    let here = folder("harm");
    let bad = [
        "evaluate",
        "{ name = 'scps-like', rate-mbps = 5.0 }",
        "--quick",
        "--cases",
        "cases",
        "--out",
        "bad",
    ];
    let (status, out, err) = run(&here, &bad);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("not met") && out.contains("The rival keeps half"), "{out}");
    let all = read(here.join("bad/evaluation.json"));
    assert_eq!(all["schema"], "skyhaul.evaluate/1");
    assert_eq!(["1", "2", "3"].map(|s| verdict(&all, s)), ["not-met", "not-met", "not-measured"]);
    assert_eq!(all["requirements"][2]["not_measured"][0]["why"], "The simulator has none");
    assert!(all["requirements"][0]["claims"][0]["cases"][0]["decided"]["ci95"].is_number(), "{all}");

    let good = ["evaluate", "newreno", "--quick", "--cases", "cases", "--out", "good", "--json"];
    let (status, out, err) = run(&here, &good);
    assert_eq!(status, Some(0), "{err}");
    let all: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(["1", "2"].map(|s| verdict(&all, s)), ["met", "met"]);
    assert_eq!(all, read(here.join("good/evaluation.json")));
    let page = fs::read_to_string(here.join("good/report.html")).expect("a page");
    assert!(page.contains("Evaluation of newreno") && page.contains("No &lt;harm&gt;"));
    assert!(page.contains("Not measured:") && page.contains("Peace on Earth"));

    let (status, _, _) = run(&here, &[&bad[..], &["--check"]].concat());
    assert_eq!(status, Some(1), "--check tells");
    let (status, out, err) = run(&here, &["compare", "bad", "good"]);
    assert_eq!(status, Some(1), "{err}");
    let words = [
        "an evaluation of newreno, engine",
        "\nrequirements\n  §1 No <harm>: not met → met",
        "2 verdicts on requirements and 1 of 1 cases",
    ];
    assert!(words.iter().all(|w| out.contains(w)), "{out}");
    // One reading, that of all studies without others, needs no name.
    assert!(out.contains("own = candidate") && !out.contains("as printed"), "{out}");
}

#[test]
fn finished_cells_are_kept_and_the_results_are_the_same() {
    let here = folder("again");
    let args = |out: &'static str| ["evaluate", "newreno", "--quick", "--cases", "cases", "--out", out];
    assert_eq!(run(&here, &args("one")).0, Some(0));
    let cached = || fs::read_dir(here.join("the-cache")).expect("a cache").count();
    let full = cached();
    assert!(full > 0);
    // As after an interruption: some cells are there, others are not.
    let first =
        fs::read_dir(here.join("the-cache")).expect("a cache").flatten().next().expect("an entry").path();
    if first.is_dir() { fs::remove_dir_all(&first) } else { fs::remove_file(&first) }.expect("removable");
    assert_eq!(run(&here, &args("two")).0, Some(0));
    assert_eq!(cached(), full);
    assert_eq!(read(here.join("one/evaluation.json")), read(here.join("two/evaluation.json")));
}

#[test]
fn what_cannot_be_evaluated_is_refused_in_one_line() {
    let here = folder("refused");
    for (control, part) in [
        ("newremo", "did you mean \"newreno\"?"),
        ("{ name = \"newreno\", max-brust = 4 }", "max-brust"),
        ("{ max-burst = 4 }", "no `name`"),
        ("{ name = ", "not an inline table"),
        ("user:mine", "mine"),
        (" ", "control: it is empty"),
    ] {
        let (status, out, err) = run(&here, &["evaluate", control, "--cases", "cases", "--out", "no"]);
        assert_eq!((status, out.as_str(), err.lines().count()), (Some(2), "", 1), "{control}: {err}");
        assert!(err.contains(part), "{control}: {err}");
        assert!(!here.join("no").exists(), "{control}");
    }
    let (status, _, err) = run(&here, &["evaluate", "newreno", "peace", "--cases", "cases"]);
    assert_eq!(status, Some(2));
    assert!(err.contains("no such case") && err.contains("harm"), "{err}");
}

#[test]
fn a_case_that_cannot_run_is_named_and_the_others_run() {
    let here = folder("broken");
    fs::write(here.join("cases/broken.toml"), HARM.replace("flow[own].lost_full", "flow[own].lost_ful"))
        .expect("writable");
    let (status, out, _) =
        run(&here, &["evaluate", "newreno", "--quick", "--cases", "cases", "--out", "out"]);
    assert_eq!(status, Some(0));
    assert!(out.contains("cases/broken could not be run") && out.contains("lost_ful"), "{out}");
    let all = read(here.join("out/evaluation.json"));
    assert_eq!(all["refused"][0]["case"], "cases/broken");
    assert_eq!(verdict(&all, "1"), "met");
}

#[test]
fn controls_with_other_options_have_another_folder() {
    let here = folder("folders");
    for control in ["newreno", "{ name = 'newreno', max-burst = 4 }"] {
        let (status, out, err) = run(&here, &["evaluate", control, "--quick", "--cases", "cases"]);
        assert_eq!(status, Some(0), "{control}: {out} {err}");
    }
    for name in ["evaluate-newreno-quick", "evaluate-newreno-max-burst-4-quick"] {
        assert!(here.join("results").join(name).join("evaluation.json").is_file(), "{name}");
    }
}

#[test]
fn a_cell_of_each_case_is_written_as_qlog() {
    let here = folder("qlog");
    let args =
        ["evaluate", "newreno", "--quick", "--seeds", "2", "--cases", "cases", "--out", "out", "--qlog"];
    let (status, out, err) = run(&here, &args);
    assert_eq!(status, Some(0), "{out} {err}");
    let logs = here.join("out/studies/cases/harm/qlog");
    for flow in ["own[0]", "rival[0]"] {
        let log = fs::read_to_string(logs.join(format!("{flow}.sqlog"))).expect("a log of each flow");
        assert!(log.starts_with('\u{1e}') && log.contains("tcp:packet_sent"), "{flow}");
    }
    // The scenario beside the logs is a run like any other, and gives the same.
    let (status, again, err) =
        run(&here, &["run", logs.join("scenario.resolved.toml").to_str().expect("a name"), "--json"]);
    assert_eq!(status, Some(0), "{err}");
    let again: Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!(again["flows"], read(logs.join("summary.json"))["flows"]);
    // What is there from before goes, and a comparison does not take it for a case.
    let (status, _, err) = run(&here, &args[..9]);
    assert_eq!(status, Some(0), "{err}");
    assert!(!logs.exists());
}
