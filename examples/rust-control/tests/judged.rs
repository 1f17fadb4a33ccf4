//! The control in an evaluation and in an attack.

use rust_control::controls;
use skyhaul_cc::Controls;
use skyhaul_lab::LabError;
use skyhaul_lab::attack::{BoundsSource, Budget, Goal, NoObserver, Request as Attack, hunt};
use skyhaul_lab::evaluate::{Evaluated, Request, evaluate};
use skyhaul_study::cache::Cache;
use skyhaul_study::run::{Progress, RunOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const PAPER: &str = r#"
schema = 1
title = "What is asked"
row = [{ id = "1", says = "It is quick over long paths" }, { id = "2", says = "It is no quicker over short ones" }]
"#;

const CASE: &str = r#"
schema = 1
title = "Alone"
scenario = "preset:peach-geo"
set = { duration = "60 s", record = {}, "links.sat.error.p" = 5e-3, "flows.bulk.count" = 1, "flows.bulk.rwnd" = "256 segments" }
seeds = { first = 1, count = 4 }

[[axis]]
name = "path"
values = [{ label = "long", set = { "links.sat.delay" = "275 ms" } }, { label = "short", set = { "links.sat.delay" = "40 ms" } }]

[[axis]]
name = "cc"
path = "flows.bulk.cc"
values = ["candidate", "sack"]

[[metric]]
name = "goodput"
from = "sum(flow.goodput) / 1e6"
unit = "Mbit/s"

[[claim]]
id = "1 long"
says = "It delivers at least half as much again as SACK"
at = { path = "long" }
check = { kind = "greater", metric = "goodput", left = { cc = "candidate" }, right = { cc = "sack" }, by = 0.5 }

[[claim]]
id = "2 short"
says = "It delivers the same as SACK, to within a hundredth"
at = { path = "short" }
check = { kind = "ratio", metric = "goodput", left = { cc = "candidate" }, right = { cc = "sack" }, within = [0.99, 1.01] }
"#;

fn folder(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&here);
    fs::create_dir_all(here.join("cases")).expect("a folder");
    fs::write(here.join("cases/paper.toml"), PAPER).expect("writable");
    fs::write(here.join("cases/alone.toml"), CASE).expect("writable");
    here
}

/// Counts the cells that run.
#[derive(Default)]
struct Count(AtomicUsize);

impl Progress for Count {
    fn cell(&self, _: usize, _: usize, _: &str) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn evaluated(here: &Path, control: &str, controls: Controls) -> Result<(Evaluated, usize), LabError> {
    let request = Request {
        control: control.to_owned(),
        cases: Some(here.join("cases")),
        out: Some(here.join("out")),
        ..Request::default()
    };
    let cache = Cache::new(here.join("cache"));
    let count = Count::default();
    let options = RunOptions { jobs: 2, cache: Some(&cache), progress: &count, stop: None };
    let found = evaluate(&request, controls, &options, &mut |line| panic!("{line}"))?;
    Ok((found, count.0.into_inner()))
}

#[test]
fn an_evaluation_judges_it_and_keeps_its_cells() {
    let here = folder("judged");
    let (found, ran) = evaluated(&here, "user:constant-rate", controls()).expect("an evaluation");
    let all = found.summary();
    let verdict = |i: usize| all["requirements"][i]["verdict"].as_str().unwrap_or_default().to_owned();
    assert_eq!((verdict(0), verdict(1)), ("met".to_owned(), "met".to_owned()), "{all:#}");
    assert_eq!(all["control"], "user:constant-rate");
    assert_eq!(ran, 16);
    let (_, again) = evaluated(&here, "user:constant-rate", controls()).expect("an evaluation");
    assert_eq!(again, 0, "its version is part of the key");
    // Other options are another control: with a reference above the RTT it is SACK.
    let slow = "{ name = 'user', control = 'constant-rate', options = { reference-rtt-ms = 1000 } }";
    let (found, ran) = evaluated(&here, slow, controls()).expect("an evaluation");
    assert_eq!(found.summary()["requirements"][0]["verdict"], "not-met");
    assert_eq!(ran, 8, "only its own cells are new");
}

#[test]
fn an_attack_finds_where_it_is_not_quick() {
    let here = folder("attacked");
    let request = Attack {
        control: "user:constant-rate".to_owned(),
        goal: Goal::Collapse,
        budget: Budget::Runs(24),
        bounds: BoundsSource::Text(
            "duration = \"20 s\"\nrate = \"4 Mbit/s\"\nrtt = [\"50 ms\", \"600 ms\"]\nbuffer = \"1 BDP\"\n\
             loss = [0, 0.05]\nburst = 1\njitter = \"0 s\"\n"
                .to_owned(),
        ),
        seed: 1,
        jobs: 2,
        out: Some(here.join("out")),
        controls: controls(),
    };
    let found = hunt(&request, &NoObserver).expect("a search");
    assert!(found.value() < 0.5 && found.troubles() == 0, "{}", found.text());
    assert!(here.join("out/worst.toml").is_file());
}

#[test]
fn who_does_not_provide_it_is_told_in_one_line() {
    let here = folder("unknown");
    let why = evaluated(&here, "user:constant-rate", Controls::default()).expect_err("nobody has it");
    let line = why.to_string();
    assert!(line.contains("constant-rate") && !line.contains('\n'), "{line}");
    assert!(!here.join("out").exists());
}
