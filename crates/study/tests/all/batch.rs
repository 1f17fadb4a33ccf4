//! Several studies in one queue come out as each alone.

use crate::common;

use common::{Fake, STUDY, contents, folder, parse};
use skyhaul_study::StudyError;
use skyhaul_study::batch::{Totals, run_all};
use skyhaul_study::cache::Cache;
use skyhaul_study::evaluation::evaluate;
use skyhaul_study::plan::{Plan, plan};
use skyhaul_study::run::{Cells, RunOptions, run};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

const CELLS: usize = 72;

fn plans(runner: &Fake) -> Vec<Plan> {
    let texts = [
        STUDY.to_owned(),
        STUDY.replace("1e-3, 0.01]", "2e-3, 0.01]"),
        STUDY.replace("1e-3, 0.01]", "3e-3, 0.01]"),
    ];
    texts.iter().map(|t| plan(runner, parse(t)).expect("a study")).collect()
}

/// Totals, and the summary of each study that was finished.
fn ran(runner: &Fake, jobs: usize, cache: Option<&Cache>) -> (Totals, Vec<Option<serde_json::Value>>) {
    let plans = plans(runner);
    let got = Mutex::new(vec![None; plans.len()]);
    let finished = |i: usize, cells: Cells| -> Result<(), StudyError> {
        let e = evaluate(&plans[i], &cells)?;
        assert!(got.lock().unwrap()[i].replace(e.summary()).is_none(), "once");
        Ok(())
    };
    let options = RunOptions { jobs, cache, stop: Some(&runner.stop), ..RunOptions::default() };
    let totals = run_all(runner, &plans, &options, &finished).expect("cells");
    (totals, got.into_inner().unwrap())
}

#[test]
fn together_they_come_out_as_alone() {
    let fake = Fake::default();
    let alone: Vec<_> = plans(&fake)
        .iter()
        .map(|p| {
            let cells = run(&fake, p, &RunOptions::default()).expect("cells");
            Some(evaluate(p, &cells).expect("an evaluation").summary())
        })
        .collect();
    for jobs in [1, 5] {
        let (totals, together) = ran(&Fake::default(), jobs, None);
        assert_eq!(totals, Totals { cells: 3 * CELLS, done: 3 * CELLS, interrupted: false });
        assert_eq!(together, alone);
    }
}

#[test]
fn a_stopped_batch_goes_on_and_shared_cells_run_once() {
    let dir = folder("batch-cache");
    let cache = Cache::new(&dir);
    let first = Fake { stop_after: 80, ..Fake::default() };
    let (totals, finished) = ran(&first, 1, Some(&cache));
    assert!(totals.interrupted && totals.done < totals.cells);
    assert_eq!(finished.iter().filter(|f| f.is_some()).count(), 1, "only the first was complete");
    let second = Fake::default();
    let (totals, finished) = ran(&second, 1, Some(&cache));
    assert!(!totals.interrupted && finished.iter().all(Option::is_some));
    // All three share two of three loss rates.
    let distinct = CELLS + 2 * CELLS / 3;
    assert_eq!(first.ran.load(Ordering::Relaxed) + second.ran.load(Ordering::Relaxed), distinct);
    assert_eq!(contents(&dir).len(), distinct);
    // Damage is found although the file is there.
    let (file, bytes) = contents(&dir).swap_remove(7);
    std::fs::write(dir.join(&file), &bytes[..bytes.len() / 2]).expect("writable");
    let third = Fake::default();
    assert_eq!(ran(&third, 2, Some(&cache)).1, finished);
    assert!(third.ran.load(Ordering::Relaxed) >= 1);
    assert_eq!(std::fs::read(dir.join(&file)).expect("a file"), bytes);
}

#[test]
fn a_failing_cell_stops_neither_its_study_nor_the_others() {
    for seed in [4, 5] {
        let (totals, finished) = ran(&Fake { fail_on: Some(seed), ..Fake::default() }, 3, None);
        assert_eq!(totals.done, totals.cells);
        for summary in finished {
            let failed = summary.expect("finished")["failed_cells"].as_array().map_or(0, Vec::len);
            assert_eq!(failed, 9);
        }
    }
}
