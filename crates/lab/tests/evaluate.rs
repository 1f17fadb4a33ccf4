//! Controls that fail during an evaluation: their cases end with the reason, the others go on.

use skyhaul_cc::{Ack, CongestionControl, Controls, Cx, Signal, Window, user};
use skyhaul_lab::engine::simulator;
use skyhaul_lab::evaluate::{Evaluated, Evaluating, Request, shown};
use skyhaul_study::requirement::{Judgement, requirements};
use skyhaul_study::run::RunOptions;
use std::fs;
use std::path::Path;

const PAPER: &str = r#"schema = 1
title = "What is required"
row = [{ id = "1", says = "It delivers" }, { id = "2", says = "The standard delivers" }]
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
"#;

/// What is wrong with a control.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It panics with the hundredth acknowledgement.
    Panics,
    /// Its window becomes what is not a number.
    NotANumber,
    /// It sends one segment at a time, and listens to nothing.
    Sleeps,
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
            Fault::Panics | Fault::NotANumber => 10.0,
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

fn evaluated(fault: Fault) -> Evaluated {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("evaluate-{fault:?}"));
    let _ = fs::remove_dir_all(&here);
    fs::create_dir_all(here.join("cases")).expect("a folder");
    fs::write(here.join("cases/paper.toml"), PAPER).expect("writable");
    fs::write(here.join("cases/alone.toml"), CASE).expect("writable");
    let mut controls = Controls::default();
    controls.provide("mine", move |_: &user::Request<'_>| Ok(Box::new(Broken { fault, acks: 0 }) as _));
    let runner = simulator().with_controls(controls);
    let request = Request {
        control: "user:mine".to_owned(),
        cases: Some(here.join("cases")),
        out: Some(here.join("out")),
        ..Request::default()
    };
    let all = Evaluating::begin(&request, &runner, &mut |line| panic!("{line}")).expect("planned");
    let totals = all.run(&runner, &RunOptions::default()).expect("writable");
    assert!(!totals.interrupted);
    all.report(None, &mut |_| {}).expect("writable")
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
    for fault in [Fault::NotANumber, Fault::Sleeps] {
        let e = evaluated(fault);
        let all = judged(&e);
        assert!(matches!(all[0], Judgement::Failed | Judgement::NotMet), "{fault:?}: {}", shown(&e));
        assert_eq!(all[1], Judgement::Met, "{fault:?}");
    }
}
