//! Evaluations of controls that a program provides: verdicts, also of controls that fail, overviews, event logs, and tables
//! over several controls.

use skyhaul_cc::{Ack, CongestionControl, Controls, Cx, Signal, Window, user};
use skyhaul_lab::engine::simulator;
use skyhaul_lab::evaluate::{Evaluated, Evaluating, Request, evaluate, shown};
use skyhaul_lab::leaderboard::{self, Ranking};
use skyhaul_lab::run::NoObserver;
use skyhaul_study::cache::Cache;
use skyhaul_study::requirement::{Judgement, requirements};
use skyhaul_study::run::{Progress, RunOptions};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const PAPER: &str = r#"schema = 1
title = "What is required"
row = [{ id = "1", says = "It delivers" }, { id = "2", says = "The standard delivers" }]
[overview]
title = "Numbers"
columns = ["candidate", "NewReno"]
section = [{ id = "2.1", says = "Throughput" }, { id = "2.8", says = "Users", open = "nobody was asked" }]
headline = [{ says = "Goodput alone", study = "alone", metric = "goodput" }]
"#;

const CASE: &str = r#"schema = 1
title = "Alone"
seeds = { first = 1, count = 2 }
[scenario]
schema = 1
duration = "10 s"
[scenario.links.net]
packet = "1500 B"
rate = "4 Mbit/s"
delay = "20 ms"
queue = "1 BDP"
[scenario.flows.own]
cc = "candidate"
start = { uniform = ["0 s", "1 s"] }
[[axis]]
name = "own"
path = "flows.own.cc"
values = ["candidate", "newreno"]
[[metric]]
name = "goodput"
from = "sum(flow.goodput) / 1e6"
[[claim]]
id = "1 own"
says = "It delivers"
kind = "number"
at = { own = "candidate" }
check = { kind = "within", metric = "goodput", within = [2, 4] }
[[claim]]
id = "2 standard"
says = "The standard delivers"
kind = "number"
at = { own = "newreno" }
check = { kind = "within", metric = "goodput", within = [2, 4] }
[[figure]]
file = "goodput"
title = "Goodput of two controls"
x = "own"
y = "goodput"
series = "own"
x_scale = "category"

[[overview]]
id = "2.1"
says = "Goodput alone"
metric = "goodput"
sides = [{ own = "candidate" }, { own = "newreno" }]
better = "more"
"#;

/// What is wrong with a control.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It panics with the hundredth acknowledgement.
    Panics,
    /// Its window becomes NaN.
    NotANumber,
    /// It sends one segment at a time, and listens to nothing.
    Sleeps,
    /// It sends nothing at all.
    NeverWakes,
    /// Nothing.
    None,
}

#[derive(Debug)]
struct Broken {
    fault: Fault,
    acks: u32,
}

impl CongestionControl for Broken {
    fn window(&self) -> Window {
        let cwnd = match self.fault {
            Fault::NotANumber if self.acks > 100 => f64::NAN,
            Fault::Sleeps => 1.0,
            Fault::NeverWakes => 0.0,
            Fault::Panics | Fault::NotANumber | Fault::None => 10.0,
        };
        Window { cwnd, ssthresh: f64::INFINITY }
    }
    fn on_ack(&mut self, _: &mut Cx<'_>, _: &Ack) {
        self.acks += 1;
        assert!(!matches!(self.fault, Fault::Panics) || self.acks < 100, "a hundred is enough");
    }
    fn on_congestion(&mut self, _: &mut Cx<'_>, _: Signal) {}
    fn on_timeout(&mut self, _: &mut Cx<'_>, _: u32) {}
}

fn controls(fault: Fault) -> Controls {
    let mut controls = Controls::default();
    controls.provide("mine", move |_: &user::Request<'_>| Ok(Box::new(Broken { fault, acks: 0 }) as _));
    controls
}

/// A request with its cases in a folder of its own.
fn request(name: &str) -> Request {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("evaluate-{name}"));
    let _ = fs::remove_dir_all(&here);
    fs::create_dir_all(here.join("cases")).expect("a folder");
    fs::write(here.join("cases/paper.toml"), PAPER).expect("writable");
    fs::write(here.join("cases/alone.toml"), CASE).expect("writable");
    Request {
        control: "user:mine".to_owned(),
        cases: Some(here.join("cases")),
        out: Some(here.join("out")),
        ..Request::default()
    }
}

fn evaluated(fault: Fault) -> Evaluated {
    let request = request(&format!("{fault:?}"));
    let options = RunOptions::default();
    evaluate(&request, controls(fault), &options, &mut |line| panic!("{line}")).expect("an evaluation")
}

fn judged(e: &Evaluated) -> Vec<Judgement> {
    requirements(&e.book.chapters[0]).iter().map(|r| r.judgement).collect()
}

#[test]
fn a_control_that_panics_ends_its_case_with_the_reason() {
    let e = evaluated(Fault::Panics);
    assert_eq!(judged(&e), [Judgement::Failed, Judgement::Met]);
    assert!(shown(&e).contains("a hundred is enough"), "{}", shown(&e));
    let summary = e.summary();
    assert_eq!(summary["counts"]["failed"], 1);
    assert!(
        summary["failed_cells"][0]["cells"][0]["message"].as_str().is_some_and(|m| m.contains("a hundred"))
    );
    let page = fs::read_to_string(e.folder.join("report.html")).expect("a page");
    assert!(page.contains("a hundred is enough"));
}

#[test]
fn a_control_that_is_no_number_or_sleeps_does_not_pass() {
    for fault in [Fault::NotANumber, Fault::Sleeps, Fault::NeverWakes] {
        let e = evaluated(fault);
        let all = judged(&e);
        assert!(matches!(all[0], Judgement::Failed | Judgement::NotMet), "{fault:?}: {}", shown(&e));
        assert_eq!(all[1], Judgement::Met, "{fault:?}");
    }
}

#[test]
fn the_overview_has_means_and_paired_differences() {
    let e = evaluated(Fault::None);
    let all = e.summary();
    let sections = all["overview"]["sections"].as_array().expect("sections");
    assert_eq!(sections.len(), 2);
    assert_eq!(sections[1]["not_measured"], "nobody was asked");
    let line = &sections[0]["lines"][0];
    let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (text("case"), text("says"), text("better")),
        ("alone".into(), "Goodput alone".into(), "more".into())
    );
    let place = &line["places"][0];
    let number = |v: &serde_json::Value| v["mean"].as_f64().expect("a number");
    let (own, other) = (number(&place["values"]["candidate"]), number(&place["values"]["NewReno"]));
    assert!(own > 0.0 && other > own, "{line:#}");
    let less = &place["first_less"]["NewReno"];
    assert!((number(less) - (own - other)).abs() < 1e-9 && less["n"] == 2, "{line:#}");
    let page = fs::read_to_string(e.folder.join("report.html")).expect("a page");
    assert!(page.contains("mine less NewReno") && page.contains("nobody was asked"));
    assert!(shown(&e).lines().all(|l| !l.contains("candidate")), "{}", shown(&e));
    // Legends and axes of figures have the name of the control.
    let figures = e.book.evaluations().flat_map(|study| &study.figures);
    let drawn: Vec<_> = figures.flat_map(|f| &f.rows).map(|r| (r.series.as_str(), r.at.as_str())).collect();
    assert_eq!(drawn, [("mine", "mine"), ("newreno", "newreno")]);
    assert!(!page.contains("\"candidate\""));
    // Ten segments per 40 ms are less than the link carries: significantly worse.
    assert!(page.contains("<td class=\"number differs\">"));
}

#[test]
fn a_line_of_a_section_that_does_not_exist_refuses_its_case() {
    for (from, to, words) in [
        ("id = \"2.1\"\nsays", "id = \"2.9\"\nsays", "no section `2.9`"),
        ("metric = \"goodput\"\nsides", "metric = \"gudput\"\nsides", "no metric `gudput`"),
        ("{ own = \"newreno\" }]", "{ own = \"reno\" }]", "no value `reno`"),
        ("{ own = \"newreno\" }]", "{}]", "by some sides only"),
        ("sides = [", "for_each = \"path\"\nsides = [", "no axis `path`"),
    ] {
        let request = request("overview");
        let file = request.cases.clone().expect("a folder").join("alone.toml");
        assert!(CASE.contains(from), "{from}");
        fs::write(&file, CASE.replacen(from, to, 1)).expect("writable");
        let mut warnings = Vec::new();
        let all =
            Evaluating::begin(&request, &simulator().with_controls(controls(Fault::None)), &mut |line| {
                warnings.push(line.to_owned());
            });
        // It is the only case.
        let end = all.map(drop).expect_err("nothing is left").to_string();
        let [line] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(end.contains(line.as_str()) && end.starts_with("no case can be run"), "{end}");
        assert!(line.contains(words) && line.contains("alone.toml:") && !line.contains('\n'), "{line}");
    }
}

#[test]
fn event_logs_of_a_case_are_those_of_a_run_that_replays() {
    let request = request("qlog");
    let own = controls(Fault::None);
    let runner = simulator().with_controls(own.clone());
    let all = Evaluating::begin(&request, &runner, &mut |line| panic!("{line}")).expect("planned");
    let logs = all.qlog(&own, &NoObserver).expect("written");
    let folder = request.out.clone().expect("a folder").join("studies/cases/alone/qlog");
    assert_eq!(logs, [folder.join("own[0].sqlog")]);
    let log = fs::read_to_string(&logs[0]).expect("a log");
    // JSON text sequences (RFC 7464): each record has a separator in front.
    let records: Vec<serde_json::Value> =
        log.split('\u{1e}').skip(1).map(|r| serde_json::from_str(r).expect("JSON")).collect();
    assert_eq!(records[0]["trace"]["title"], "flows.own[0]");
    let count = |name: &str| records.iter().filter(|r| r["name"] == name).count();
    let flows = fs::read_to_string(folder.join("summary.json")).expect("a summary");
    let flows: serde_json::Value = serde_json::from_str(&flows).expect("JSON");
    // Two segments of the handshake carry no data.
    assert_eq!(Some(count("tcp:packet_sent") as u64 - 2), flows["flows"][0]["segments_sent"].as_u64());
    assert!(count("tcp:packet_received") > 100 && count("tcp:metrics_updated") > 100);
    let scenario = fs::read_to_string(folder.join("scenario.resolved.toml")).expect("a scenario");
    assert!(scenario.contains("user") && scenario.contains("own = candidate"), "{scenario}");
}

#[test]
fn a_control_that_panics_when_asked_is_refused_in_one_line() {
    struct Rude;
    impl user::Factory for Rude {
        fn build(&self, _: &user::Request<'_>) -> Result<Box<dyn CongestionControl>, user::Error> {
            panic!("not today")
        }
        fn check(&self, _: &user::Options) -> Result<(), user::Error> {
            panic!("who asks?")
        }
    }
    let mut own = Controls::default();
    own.provide("mine", Rude);
    let e = evaluate(&request("rude"), own, &RunOptions::default(), &mut |_| {}).expect_err("it panics");
    assert!(e.to_string().contains("who asks?") && !e.to_string().contains('\n'), "{e}");
}

#[test]
fn a_request_to_stop_says_how_far_it_came() {
    let stop = AtomicBool::new(true);
    let options = RunOptions { stop: Some(&stop), ..RunOptions::default() };
    let e = evaluate(&request("stop"), controls(Fault::None), &options, &mut |_| {}).expect_err("stopped");
    assert!(e.is_stop() && e.to_string().contains("0 of 4 cells"), "{e}");
}

#[test]
fn the_default_folder_tells_options_apart() {
    let folder =
        |control: &str, quick| Request { control: control.to_owned(), quick, ..Request::default() }.folder();
    let plain = folder("hark", false);
    assert_eq!(plain, Path::new("results/evaluate-hark"));
    assert_eq!(folder("{ name = 'hark' }", false), plain);
    assert_eq!(
        folder("{ name = 'hark', probes = false }", true),
        Path::new("results/evaluate-hark-probes-false-quick")
    );
}

/// A request for a table over controls, with the cases of a request for one.
fn over(one: &Request, controls: &[&str]) -> leaderboard::Request {
    leaderboard::Request {
        controls: controls.iter().map(|c| (*c).to_owned()).collect(),
        cases: one.cases.clone(),
        out: one.out.clone(),
        ..leaderboard::Request::default()
    }
}

/// Notes the cells that ran, and asks to stop at the first of a control.
#[derive(Default)]
struct Noted {
    begun: Mutex<Vec<(usize, usize)>>,
    ran: Mutex<Vec<(usize, String)>>,
    stop: AtomicBool,
    at: &'static str,
}

impl Progress for Noted {
    fn begin(&self, total: usize, cached: usize) {
        self.begun.lock().expect("sound").push((total, cached));
    }
    fn cell(&self, done: usize, _: usize, label: &str) {
        self.ran.lock().expect("sound").push((done, label.to_owned()));
        if !self.at.is_empty() && label.starts_with(self.at) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_table_that_is_stopped_keeps_what_is_complete_and_goes_on() {
    let one = request("table");
    let request = over(&one, &["newreno", "sack", "reno"]);
    let folder = request.out.clone().expect("a folder");
    let cache = Cache::new(folder.with_file_name("the-cache"));
    let begin = || Ranking::begin(&request, simulator(), &mut |line| panic!("{line}")).expect("planned");
    let run = |progress: &Noted| {
        let all = begin();
        let extent = all.extent(Some(&cache));
        let stop = Some(&progress.stop);
        let options = RunOptions { jobs: 1, cache: Some(&cache), stop, progress };
        (extent, all.run(extent, simulator(), &options, None, &mut |_| {}))
    };
    let stopping = Noted { at: "sack: ", ..Noted::default() };
    let (extent, end) = run(&stopping);
    // NewReno, which is the baseline too, SACK and Reno, with two seeds each.
    assert_eq!((extent.controls, extent.cells, extent.cached), (3, 6, 0));
    assert!(extent.seconds() > 0.0);
    let end = end.expect_err("stopped");
    assert!(end.is_stop() && end.to_string().contains("3 of 6 cells"), "{end}");
    let single = |control: &str| folder.join("controls").join(control).join("evaluation.json");
    assert!(single("newreno").is_file() && !single("sack").exists());
    assert!(!folder.join(leaderboard::FILE).exists());
    let manifest = |folder: &Path| -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(folder.join("manifest.json")).expect("a file"))
            .expect("JSON")
    };
    assert_eq!(manifest(&folder)["complete"], false);

    let going_on = Noted::default();
    let (extent, table) = run(&going_on);
    let table = table.expect("complete");
    assert_eq!((extent.cells, extent.cached), (6, 3));
    assert_eq!(*going_on.begun.lock().expect("sound"), [(6, 3)], "one bar over all");
    let ran = going_on.ran.lock().expect("sound").clone();
    let done: Vec<usize> = ran.iter().map(|(done, _)| *done).collect();
    assert_eq!(done, [4, 5, 6], "{ran:?}");
    assert!(ran[0].1.starts_with("sack: ") && ran[2].1.starts_with("reno: "), "{ran:?}");
    assert_eq!(manifest(&folder)["complete"], true);

    // The same without an interruption and without a cache.
    let other = leaderboard::Request { out: Some(folder.with_file_name("whole")), ..request.clone() };
    let all = Ranking::begin(&other, simulator(), &mut |line| panic!("{line}")).expect("planned");
    let extent = all.extent(None);
    let whole = all.run(extent, simulator(), &RunOptions::default(), None, &mut |_| {}).expect("a table");
    assert_eq!(whole.rows, table.rows);
    assert_eq!(whole.rows.len(), 3);
    assert!(whole.rows.iter().all(|r| r.numbers["Goodput alone"].mean > 1.0 && r.verdicts.len() == 2));

    // A smaller table leaves nothing of the larger one.
    let fewer = over(&one, &["sack"]);
    let all = Ranking::begin(&fewer, simulator(), &mut |line| panic!("{line}")).expect("planned");
    let extent = all.extent(Some(&cache));
    assert_eq!((extent.cells, extent.cached), (4, 4));
    let options = RunOptions { cache: Some(&cache), ..RunOptions::default() };
    all.run(extent, simulator(), &options, None, &mut |_| {}).expect("a table");
    assert!(single("sack").is_file() && !single("newreno").exists());
}

#[test]
fn a_control_of_ones_own_is_a_row_without_a_command() {
    let one = request("row");
    let own = evaluate(&one, controls(Fault::None), &RunOptions::default(), &mut |line| panic!("{line}"))
        .expect("an evaluation");
    let with = vec![own.folder.clone()];
    let out = Some(own.folder.with_file_name("table"));
    let request = leaderboard::Request { with, out, ..over(&one, &["newreno"]) };
    let all = Ranking::begin(&request, simulator(), &mut |line| panic!("{line}")).expect("planned");
    let extent = all.extent(None);
    let table = all.run(extent, simulator(), &RunOptions::default(), None, &mut |_| {}).expect("a table");
    let row = table.rows.iter().find(|r| r.control == "user:mine").expect("a row");
    assert_eq!(row.command, None);
    let summary = own.summary();
    let mean = &summary["overview"]["sections"][0]["lines"][0]["places"][0]["values"]["candidate"]["mean"];
    assert_eq!(Some(row.numbers["Goodput alone"].mean), mean.as_f64());
    let text = leaderboard::shown(&table);
    assert!(text.contains("user:mine") && text.contains("Goodput alone"), "{text}");
}

#[test]
fn the_built_in_cases_have_the_headlines_of_the_table() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("evaluate-built-in");
    let _ = fs::remove_dir_all(&out);
    let request = leaderboard::Request {
        controls: vec!["newreno".to_owned()],
        quick: true,
        out: Some(out),
        ..leaderboard::Request::default()
    };
    // A headline without its line, or an unknown case, is refused here.
    let all = Ranking::begin(&request, simulator(), &mut |line| panic!("{line}")).expect("planned");
    let extent = all.extent(None);
    assert!(extent.cells > 1000 && extent.cells.is_multiple_of(10), "{extent:?}");
}

#[test]
fn a_metric_that_is_shown_by_its_median_has_no_place_in_an_overview() {
    let request = request("median");
    let of = "from = \"sum(flow.goodput) / 1e6\"\n";
    let case = CASE.replace(of, &format!("{of}summary = \"median\"\n"));
    fs::write(request.cases.as_ref().expect("cases").join("alone.toml"), case).expect("writable");
    let mut lines = String::new();
    let all = evaluate(&request, controls(Fault::None), &RunOptions::default(), &mut |line| lines += line);
    lines += &all.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(
        lines.contains("`overview[0].metric`: an overview has means, and `goodput` is shown by its median"),
        "{lines}"
    );
}
