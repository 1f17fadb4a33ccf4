//! Cells that come back from elsewhere, one by one and in any order, give what a run here gives.

use crate::common;

use common::{Fake, folder, planned};
use skyhaul_study::StudyError;
use skyhaul_study::cache::Cache;
use skyhaul_study::evaluation::evaluate;
use skyhaul_study::run::{Job, RunOptions, execute, run};
use skyhaul_study::tracker::CellTracker;

#[test]
fn any_order_gives_the_same_and_what_is_stored_is_not_asked_for_again() {
    let fake = Fake::default();
    let plan = planned(&fake);
    let here = evaluate(&plan, &run(&fake, &plan, &RunOptions::default()).expect("cells")).expect("values");
    let dir = folder("gathering");
    let cache = Cache::new(&dir);

    let (mut first, warnings) = CellTracker::open(&plan, "a/b", Some(&cache));
    assert!(warnings.is_empty() && !first.is_complete());
    let jobs: Vec<Job> = first.jobs().cloned().collect();
    assert_eq!(jobs.len(), plan.cells().len());
    assert!(jobs.iter().all(|j| j.label.starts_with("a/b: ")));
    let answer = |job: &Job| execute(&fake, job).expect("an answer");
    for job in jobs.iter().rev().take(5) {
        let arrival = first.answer(job, &answer(job), Some(&cache)).expect("taken");
        assert!(!arrival.complete && arrival.failure.is_none());
    }
    let cells = first.into_cells();
    assert!(cells.interrupted && cells.ran == 5 && cells.cached == 0);

    let (mut second, _) = CellTracker::open(&plan, "a/b", Some(&cache));
    let rest: Vec<Job> = second.jobs().cloned().collect();
    assert_eq!(rest[..], jobs[..jobs.len() - 5]);
    for (i, job) in rest.iter().enumerate().rev() {
        assert_eq!(second.answer(job, &answer(job), Some(&cache)).expect("taken").complete, i == 0);
    }
    let cells = second.into_cells();
    assert!(!cells.interrupted && cells.ran == rest.len() && cells.cached == 5);
    assert_eq!(evaluate(&plan, &cells).expect("values").summary(), here.summary());
    assert!(CellTracker::open(&plan, "a/b", Some(&cache)).0.is_complete());
}

#[test]
fn what_nobody_asked_for_and_what_is_damaged_is_refused() {
    let fake = Fake::default();
    let plan = planned(&fake);
    let (mut tracker, _) = CellTracker::open(&plan, "a/b", None);
    let jobs: Vec<Job> = tracker.jobs().cloned().collect();
    let answer = execute(&fake, &jobs[0]).expect("an answer");
    let line = |r: Result<_, StudyError>| {
        r.map(|_: skyhaul_study::tracker::Arrival| ()).expect_err("refused").to_string()
    };
    // The answer of another cell, or one that was cut short.
    let other = line(tracker.answer(&jobs[1], &answer, None));
    assert!(other.starts_with("the result for a/b: ") && other.contains("cannot be used"), "{other}");
    let cut = line(tracker.answer(&jobs[0], &answer[..answer.len() / 2], None));
    assert!(cut.contains("cannot be used"), "{cut}");
    assert!(tracker.answer(&jobs[0], &answer, None).is_ok());
    let twice = line(tracker.answer(&jobs[0], &answer, None));
    assert!(twice.contains("this cell was not requested"), "{twice}");
    // A failure of the cell is reported with its name, and is no error of the tracker.
    let failed = r#"{"failed":{"message":"a bad day"}}"#;
    let arrival = tracker.answer(&jobs[1], failed, None).expect("taken");
    let why = arrival.failure.expect("it failed");
    assert!(why.contains(&jobs[1].label) && why.ends_with("failed: a bad day"), "{why}");
    assert_eq!(tracker.into_cells().failed.len(), 1);
}
