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
[overview]
title = "Numbers"
columns = ["candidate", "newreno"]
section = [{ id = "a", says = "Goodput" }]
headline = [{ says = "Goodput of the rival", study = "harm", metric = "rival" }]
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
[[overview]]
id = "a"
metric = "rival"
sides = [{ own = "candidate" }, { own = "newreno" }]
better = "more"
"#;

/// A case that answers the third requirement.
fn peace() -> String {
    HARM.replace("\"1 rival\"", "\"3 rival\"").replace("\"2 loss\"", "\"3 loss\"")
}

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
    // Each number has the name of its control and its unit; the difference is the candidate's from the baseline.
    let line = out.lines().find(|l| l.trim_start().starts_with("newreno ")).expect("a comparison");
    let (values, rest) = line.trim().split_once(": ").expect("values and their difference");
    assert!(values.contains(" Mbit/s, scps-like-rate-mbps-5.0 ") && values.ends_with(" Mbit/s"), "{line}");
    assert!(rest.starts_with('−') && rest.contains(" ± ") && rest.contains(" Mbit/s (−"), "{line}");
    assert!(rest.ends_with(" %): fails"), "{line}");
    assert!(
        out.lines().any(|l| l.starts_with("    scps-like-rate-mbps-5.0 ") && l.ends_with(" %: fails")),
        "{out}"
    );
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
    // A study without other readings does not name its only one.
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
    // An evaluation without --qlog removes the logs of an earlier one.
    let (status, _, err) = run(&here, &args[..9]);
    assert_eq!(status, Some(0), "{err}");
    assert!(!logs.exists());
}

#[test]
fn requirements_that_were_not_asked_for_fold_away() {
    let here = folder("folded");
    fs::write(here.join("cases/peace.toml"), peace()).expect("writable");
    let all = ["evaluate", "newreno", "--quick", "--seeds", "2", "--cases", "cases", "--out", "out"];
    let page = || fs::read_to_string(here.join("out/report.html")).expect("a page");
    let (status, out, err) = run(&here, &all);
    assert_eq!(status, Some(0), "{err}");
    assert!(!out.contains("not asked for") && !page().contains("not asked for"), "{out}");
    let (status, out, err) = run(&here, &[&["evaluate", "newreno", "peace"], &all[2..]].concat());
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("Requirements that were not asked for: 2\n") && !out.contains("No <harm>"), "{out}");
    let page = page();
    let (before, folded) = page.split_once("<details class=\"aside\">").expect("folded");
    let folded = folded.split_once("<h2").expect("the rest").0;
    assert!(before.contains("id=\"r-3\"") && !before.contains("id=\"r-1\""));
    assert!(folded.contains("id=\"r-1\"") && folded.contains("id=\"r-2\"") && !folded.contains("id=\"r-3\""));
}

/// The arguments for a table over two controls.
const TABLE: [&str; 10] = [
    "evaluate",
    "--all",
    "--control",
    "newreno",
    "--control",
    "{ name = 'vegas' }",
    "--quick",
    "--cases",
    "cases",
    "--json",
];

#[test]
fn the_table_has_the_numbers_of_the_single_evaluations() {
    let here = folder("table");
    let (status, out, err) = run(&here, &TABLE);
    assert_eq!(status, Some(0), "{err}");
    let lines: Vec<&str> = err.lines().collect();
    // Three seeds of the candidate beside NewReno, and of NewReno beside itself, which is the first control.
    assert!(lines[0].contains("2 controls, 6 cells, 0 of them in the cache: about"), "{err}");
    let table: Value = serde_json::from_str(&out).expect("JSON");
    let here_all = here.join("results/evaluate-all-quick");
    assert_eq!(table, read(here_all.join("leaderboard.json")));
    assert_eq!(table["schema"], "skyhaul.leaderboard/1");
    assert_eq!(
        table["command"],
        "skyhaul evaluate --all --control newreno --control \"{ name = 'vegas' }\" --cases cases --quick"
    );
    let page = fs::read_to_string(here_all.join("report.html")).expect("a page");
    let rows = table["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2);
    for (control, folder) in [("newreno", "newreno"), ("{ name = 'vegas' }", "vegas")] {
        let single = ["evaluate", control, "harm", "--cases", "cases", "--quick", "--out", folder];
        assert_eq!(run(&here, &single).0, Some(0), "{control}");
        let single = read(here.join(folder).join("evaluation.json"));
        assert_eq!(single, read(here_all.join("controls").join(folder).join("evaluation.json")));
        let row = rows.iter().find(|r| r["control"] == control).expect("a row");
        for section in ["1", "2"] {
            assert_eq!(row["verdicts"][section], verdict(&single, section), "{control} §{section}");
        }
        let values = &single["overview"]["sections"][0]["lines"][0]["places"][0]["values"]["candidate"];
        assert!(values["mean"].as_f64().is_some_and(|x| x > 0.0), "{values}");
        assert_eq!(&row["numbers"]["Goodput of the rival"], values, "{control}");
        // Cells lead to places of the page, and name the command above.
        let own =
            fs::read_to_string(here_all.join("controls").join(folder).join("report.html")).expect("a page");
        for anchor in ["r-1", "cases--harm"] {
            assert!(
                page.contains(&format!("href=\"controls/{folder}/report.html#{anchor}\"")),
                "{folder} {anchor}"
            );
            assert!(own.contains(&format!("id=\"{anchor}\"")), "{folder} {anchor}");
        }
    }
    assert!(page.contains("data-command=\"skyhaul evaluate newreno harm --cases cases --quick\""), "{page}");
    let quoted =
        "data-command=\"skyhaul evaluate &quot;{ name = 'vegas' }&quot; harm --cases cases --quick\"";
    assert!(page.contains(quoted), "{page}");
    // The third requirement has no verdict for anybody, and no column.
    assert!(
        !page.contains(">§3<") && page.contains("§3 Peace") && page.contains("Goodput of the rival (Mbit/s)")
    );
    assert!(!page.contains("http"), "the page fetches nothing");

    // The text has the same, and --check the same status as that of a single evaluation.
    let (status, text, _) = run(&here, &[&TABLE[..9], &["--check"]].concat());
    let unmet = rows.iter().any(|r| {
        r["verdicts"].as_object().is_some_and(|v| v.values().any(|j| j == "not-met" || j == "undecided"))
    });
    assert_eq!(status, Some(i32::from(unmet)), "{text}");
    assert!(text.contains("Leaderboard of 2 controls") && text.contains("{ name = 'vegas' }"), "{text}");
}

#[test]
fn a_finished_evaluation_becomes_a_row_if_it_is_of_the_same_cells() {
    let here = folder("with");
    let own = ["evaluate", "sack", "--quick", "--cases", "cases", "--out", "sack"];
    assert_eq!(run(&here, &own).0, Some(0));
    let table = ["evaluate", "--all", "--control", "newreno", "--cases", "cases", "--out", "all"];
    let with = |more: &[&str]| run(&here, &[&table[..], more].concat());
    let (status, out, err) = with(&["--quick", "--with", "sack", "--json"]);
    assert_eq!(status, Some(0), "{err}");
    let found: Value = serde_json::from_str(&out).expect("JSON");
    let row = found["rows"].as_array().expect("rows").iter().find(|r| r["control"] == "sack").expect("a row");
    assert_eq!(row["command"], "skyhaul evaluate sack");
    assert!(
        row["page"].as_str().is_some_and(|p| p.starts_with("file:///") && p.ends_with("sack/report.html"))
    );
    assert!(row["numbers"]["Goodput of the rival"]["mean"].is_number());
    // What has a meaning in a URL is encoded.
    fs::rename(here.join("sack"), here.join("1 # of 50%")).expect("renames");
    let (status, out, err) = with(&["--quick", "--with", "1 # of 50%", "--json"]);
    assert_eq!(status, Some(0), "{err}");
    assert!(out.contains("/1%20%23%20of%2050%25/report.html\""), "{out}");
    fs::rename(here.join("1 # of 50%"), here.join("sack")).expect("renames");

    fs::create_dir_all(here.join("empty")).expect("a folder");
    for (more, part) in [
        (&["--with", "sack"][..], "`profile` is \"quick\"; accepted: \"full\""),
        (&["--quick", "--seeds", "2", "--with", "sack"], "seeds` is 3; accepted: 2"),
        (&["--quick", "--with", "empty"], "evaluation.json"),
        (&["--quick", "--control", "sack", "--with", "sack"], "which is a row already"),
    ] {
        let (status, out, err) = with(more);
        assert_eq!((status, out.as_str(), err.lines().count()), (Some(2), "", 1), "{more:?}: {err}");
        assert!(err.contains(part), "{more:?}: {err}");
    }
}

#[test]
fn what_cannot_be_a_table_is_refused_in_one_line() {
    let here = folder("no-table");
    let start = ["evaluate", "--all", "--cases", "cases", "--out", "no"];
    for (more, part) in [
        (&["newreno"][..], "newreno: with --all a name is that of a case"),
        (&["harm", "newreno"], "--control newreno"),
        (&["peace"], "no such case"),
        (&["--control", "newremo"], "did you mean \"newreno\"?"),
        (&["--control", "newreno", "--control", "newreno"], "named twice"),
        (&["--qlog"], "--qlog"),
        (&["--with", "nowhere"], "nowhere"),
    ] {
        let (status, out, err) = run(&here, &[&start[..], more].concat());
        assert_eq!((status, out.as_str(), err.lines().count()), (Some(2), "", 1), "{more:?}: {err}");
        assert!(err.contains(part), "{more:?}: {err}");
        assert!(!here.join("no").exists(), "{more:?}");
    }
    for args in [
        &["evaluate"][..],
        &["evaluate", "newreno", "--control", "sack"],
        &["evaluate", "newreno", "--with", "x"],
    ] {
        let (status, _, err) = run(&here, args);
        assert_eq!((status, err.lines().count()), (Some(2), 1), "{args:?}: {err}");
    }
    let refuse = |paper: &str, case: &str, part: &str| {
        fs::write(here.join("cases/paper.toml"), paper).expect("writable");
        fs::write(here.join("cases/harm.toml"), case).expect("writable");
        let (status, out, err) = run(&here, &[&start[..], &["--control", "newreno"]].concat());
        assert_eq!((status, out.as_str(), err.lines().count()), (Some(2), "", 1), "{part}: {err}");
        assert!(err.contains(part), "{part}: {err}");
    };
    let elsewhere = HARM.replace("\"1 rival\"", "\"8 rival\"").replace("\"2 loss\"", "\"9 loss\"");
    refuse(PAPER, &elsewhere, "no requirement is left: no claim of harm");
    refuse(
        &PAPER.replace("study = \"harm\"", "study = \"ham\""),
        HARM,
        "there is no such study: ham (known: harm)",
    );
    let metric = PAPER.replace("metric = \"rival\"", "metric = \"river\"");
    refuse(&metric, HARM, "there is no such line of an overview: river at \"\" (known: rival at \"\")");
}
