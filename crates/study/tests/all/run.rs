//! Cells run once, on any number of threads, and survive interruptions and damage.

use crate::common;

use common::{Fake, STUDY, contents, folder, parse, planned};
use skyhaul_study::StudyError;
use skyhaul_study::cache::{Cache, Entry};
use skyhaul_study::claim::Verdict;
use skyhaul_study::evaluation::{Evaluation, evaluate};
use skyhaul_study::output::{self, OutputOptions};
use skyhaul_study::plan::{cell_key, plan};
use skyhaul_study::run::{Progress, RunOptions, accept, execute, jobs, run};
use skyhaul_study::table::Column;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Cells of the study: at each of three loss rates SACK, Peach, and Peach in the other reading, with eight seeds each.
const CELLS: usize = 72;

#[derive(Default)]
struct ProgressLog {
    begun: Mutex<Option<(usize, usize)>>,
    cells: Mutex<Vec<usize>>,
    warnings: Mutex<Vec<String>>,
}

impl Progress for ProgressLog {
    fn begin(&self, total: usize, cached: usize) {
        *self.begun.lock().unwrap() = Some((total, cached));
    }
    fn cell(&self, done: usize, _: usize, _: &str) {
        self.cells.lock().unwrap().push(done);
    }
    fn warn(&self, message: &str) {
        self.warnings.lock().unwrap().push(message.to_owned());
    }
}

fn evaluated(runner: &Fake, jobs: usize, cache: Option<&Cache>) -> Evaluation {
    let p = planned(runner);
    let options = RunOptions { jobs, cache, stop: Some(&runner.stop), ..RunOptions::default() };
    evaluate(&p, &run(runner, &p, &options).expect("cells")).expect("an evaluation")
}

fn written(e: &Evaluation, name: &str) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let dir = folder(name);
    output::write(e, &dir, &OutputOptions::default()).expect("files");
    contents(&dir)
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let one = evaluated(&Fake::default(), 1, None);
    let many = evaluated(&Fake::default(), 7, None);
    assert_eq!(written(&one, "threads-1"), written(&many, "threads-7"));
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped_and_ends_the_same() {
    let cache = Cache::new(folder("resume-cache"));
    let first = Fake { stop_after: 20, ..Fake::default() };
    let interrupted = evaluated(&first, 2, Some(&cache));
    assert!(interrupted.missing > 0 && interrupted.missing <= CELLS - 20, "{}", interrupted.missing);
    assert!(
        matches!(interrupted.claims[0].verdict(), Verdict::NotEvaluable { .. }),
        "{:?}",
        interrupted.claims[0]
    );
    let done = first.ran.load(Ordering::Relaxed);

    let second = Fake::default();
    let resumed = evaluated(&second, 2, Some(&cache));
    assert_eq!(second.ran.load(Ordering::Relaxed), CELLS - done, "finished cells are not run again");
    let fresh = evaluated(&Fake::default(), 3, None);
    assert_eq!(written(&resumed, "resumed"), written(&fresh, "fresh"));
}

#[test]
fn a_damaged_entry_is_reported_and_runs_again() {
    let dir = folder("damage-cache");
    let cache = Cache::new(&dir);
    let before = evaluated(&Fake::default(), 2, Some(&cache));
    let files = contents(&dir);
    assert_eq!(files.len(), CELLS);
    type Damage<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let damage: [Damage<'_>; 6] = [
        &|b| b[..b.len() / 2].to_vec(),
        &|_| Vec::new(),
        // One digit of a result is changed: the result is plausible, and wrong.
        &|b| String::from_utf8_lossy(b).replacen("\"duration\":10", "\"duration\":11", 1).into_bytes(),
        // The entry of another cell.
        &|_| files[7].1.clone(),
        &|b| [b, b"x"].concat(),
        &|b| b.iter().map(|x| x ^ 0x80).collect(),
    ];
    for (i, f) in damage.iter().enumerate() {
        std::fs::write(dir.join(&files[i].0), f(&files[i].1)).unwrap();
    }
    let (runner, log) = (Fake::default(), ProgressLog::default());
    let p = planned(&runner);
    let options = RunOptions { cache: Some(&cache), progress: &log, ..RunOptions::default() };
    let after = evaluate(&p, &run(&runner, &p, &options).expect("cells")).expect("an evaluation");
    let warnings = log.warnings.lock().unwrap();
    assert_eq!(warnings.len(), damage.len(), "{warnings:?}");
    for (i, (file, _)) in files[..damage.len()].iter().enumerate() {
        let name = file.to_string_lossy().into_owned();
        let w: Vec<_> = warnings.iter().filter(|w| w.contains(&name)).collect();
        assert!(w.len() == 1 && !w[0].contains('\n') && w[0].contains("runs again"), "{i}: {w:?}");
    }
    assert_eq!(runner.ran.load(Ordering::Relaxed), damage.len());
    assert_eq!(log.begun.lock().unwrap().unwrap(), (CELLS, CELLS - damage.len()));
    assert_eq!(log.cells.lock().unwrap().iter().max(), Some(&CELLS));
    assert_eq!(before.summary(), after.summary());
    assert_eq!(contents(&dir), files, "the cache is whole again, without left-overs");
}

#[test]
fn another_engine_does_not_use_cached_results() {
    let dir = folder("engine-cache");
    let cache = Cache::new(&dir);
    evaluated(&Fake::default(), 2, Some(&cache));
    let other = Fake { engine: Some("fake-2".to_owned()), ..Fake::default() };
    evaluated(&other, 2, Some(&cache));
    assert_eq!(other.ran.load(Ordering::Relaxed), CELLS);
    // Not even for a cell with the same key.
    let key = cell_key("fake-1", "text", &Ok(String::new()), 1);
    let o = skyhaul_study::observed::Observed::default();
    cache.store("fake-1", &key, &o).unwrap();
    assert_eq!(cache.load("fake-2", &key), Entry::Absent);
    assert!(matches!(cache.load("fake-1", &key), Entry::Found(_)));
}

#[test]
fn a_cache_that_cannot_be_written_is_an_error_with_its_path() {
    let dir = folder("blocked-cache");
    std::fs::write(dir.join("cells"), "a file where a folder should be").unwrap();
    let cache = Cache::new(&dir);
    let runner = Fake::default();
    let p = planned(&runner);
    let options = RunOptions { jobs: 1, cache: Some(&cache), ..RunOptions::default() };
    let e = run(&runner, &p, &options).expect_err("no folder");
    assert!(matches!(&e, StudyError::Write { path, .. } if path.starts_with(&dir)), "{e}");
    assert!(e.to_string().contains("blocked-cache") && e.to_string().contains("kept"), "{e}");
}

#[test]
fn a_failing_cell_is_shown_and_the_others_go_on() {
    // The fake runner returns an error on an even seed and panics on an odd one.
    for (seed, part) in [(4, "no such luck"), (5, "broke an invariant")] {
        let dir = folder(&format!("failing-cache-{seed}"));
        let cache = Cache::new(&dir);
        let (runner, log) = (Fake { fail_on: Some(seed), ..Fake::default() }, ProgressLog::default());
        let p = planned(&runner);
        let options = RunOptions { jobs: 3, cache: Some(&cache), progress: &log, ..RunOptions::default() };
        let cells = run(&runner, &p, &options).expect("the others");
        // One seed fails in each of the nine scenarios.
        assert_eq!((cells.failed.len(), cells.ran, cells.interrupted), (9, CELLS, false));
        assert_eq!(contents(&dir).len(), CELLS - 9, "failed cells are not cached");
        assert_eq!(log.cells.lock().unwrap().iter().max(), Some(&CELLS));
        let warnings = log.warnings.lock().unwrap();
        let names_the_cell = |w: &&String| {
            w.contains("loss = 0, cc = SACK") && w.contains(&format!("seed {seed}")) && w.contains(part)
        };
        assert!(warnings.iter().any(|w| names_the_cell(&w)) && warnings.len() == 9, "{warnings:?}");

        let e = evaluate(&p, &cells).expect("an evaluation");
        assert_eq!((e.missing, e.failed.len()), (0, 9));
        assert_eq!((e.failed[0].cell.as_str(), e.failed[0].seed), ("loss = 0, cc = SACK", seed));
        assert_eq!(e.counts().not_evaluable, 5);
        let Verdict::NotEvaluable { reason } = e.claims[1].verdict() else { panic!("{:?}", e.claims[1]) };
        assert!(reason.contains(&format!("failed with seed {seed}")) && reason.contains(part), "{reason}");
        let (name, Column::Text { values, rows }) = e.cells.columns().last().expect("columns") else {
            panic!("no texts")
        };
        assert_eq!((name.as_str(), rows.len()), ("failed", CELLS));
        assert_eq!(rows.iter().filter(|r| values[**r as usize].contains(part)).count(), 9);
        let (html, text) = (skyhaul_study::report::html(&e), skyhaul_study::report::text(&e));
        assert!(text.contains(part) && html.contains("9 of 72 cells failed"), "{text}");
        // Only the returned error has more lines than its message.
        if seed == 4 {
            assert!(text.contains("    line <2>\n") && html.contains("line &lt;2&gt;"), "{text}");
        }
        assert_eq!(e.summary()["failed_cells"][0]["seed"], seed);

        // A worker reports the same failure. Without the fault, only the failed cells run again.
        let job = &jobs(&p)[usize::try_from(seed).unwrap() - 1];
        let answer = execute(&runner, job).expect("an answer");
        assert_eq!(accept(job, &answer).expect("whole").expect_err("failed"), cells.failed[&job.number]);
        let again = Fake::default();
        let healed =
            run(&again, &p, &RunOptions { cache: Some(&cache), ..RunOptions::default() }).expect("cells");
        assert_eq!((again.ran.load(Ordering::Relaxed), healed.failed.len()), (9, 0));
        let whole = evaluate(&p, &healed).expect("an evaluation");
        assert!(whole.cells.columns().iter().all(|(name, _)| name != "failed"));
    }
}

#[test]
fn cached_cells_belong_to_one_version_of_a_users_own_control() {
    let dir = folder("version-cache");
    let cache = Cache::new(&dir);
    let ran = |version: Option<Result<String, String>>| {
        let (runner, log) = (Fake { version, ..Fake::default() }, ProgressLog::default());
        let p = planned(&runner);
        let options = RunOptions { cache: Some(&cache), progress: &log, ..RunOptions::default() };
        run(&runner, &p, &options).expect("cells");
        (runner.ran.load(Ordering::Relaxed), log.warnings.into_inner().unwrap())
    };
    let v = |text: &str| Some(Ok(text.to_owned()));
    assert_eq!(ran(None), (CELLS, vec![]));
    assert_eq!((ran(v("1")), ran(v("1")), ran(v("2"))), ((CELLS, vec![]), (0, vec![]), (CELLS, vec![])));
    assert_eq!(contents(&dir).len(), 3 * CELLS);
    // Without a version, cells are neither read from the cache nor written to it, and a warning says so.
    for _ in 0..2 {
        let (cells, warnings) = ran(Some(Err("no source".to_owned())));
        assert_eq!((cells, warnings), (CELLS, vec!["cells are not cached: no source".to_owned()]));
    }
    assert_eq!(contents(&dir).len(), 3 * CELLS);
    // A worker with another version refuses.
    let planned = planned(&Fake { version: v("1"), ..Fake::default() });
    let other = Fake { version: v("2"), ..Fake::default() };
    assert!(execute(&other, &jobs(&planned)[0]).unwrap_err().to_string().contains("not the version"));
}

#[test]
fn workers_run_cells_and_return_their_results() {
    let runner = Fake::default();
    let p = planned(&runner);
    let here = run(&runner, &p, &RunOptions::default()).expect("cells");
    for job in jobs(&p).iter().step_by(11) {
        let text = serde_json::to_string(job).expect("a message");
        let received = serde_json::from_str(&text).expect("the same");
        let answer = execute(&runner, &received).expect("a result");
        let o = accept(job, &answer).expect("an answer").expect("a result");
        assert_eq!(Some(&o), here.observed[job.number].as_ref());
        // An answer that changed on its way is refused.
        assert!(accept(job, &answer.replacen("10", "11", 1)).is_err());
        let other = Fake { engine: Some("fake-2".into()), ..Fake::default() };
        assert!(execute(&other, job).unwrap_err().to_string().contains("fake-2"));
    }
}

#[test]
fn verdicts_follow_from_the_numbers() {
    let e = evaluated(&Fake::default(), 0, None);
    let verdict = |i: usize, reading: usize| e.claims[i].outcomes[reading].verdict.clone();
    assert_eq!(verdict(0, 0), Verdict::Holds);
    assert_eq!(e.claims[0].outcomes[0].cases.len(), 3);
    // +83 % is measured; the claim is at most +10 %.
    assert_eq!(verdict(1, 0), Verdict::Differs);
    assert_eq!(verdict(2, 0), Verdict::Holds);
    // The accepted range, 1200 ± 1.2, lies within a confidence interval of about ± 25: more seeds would decide.
    assert!(
        matches!(verdict(3, 0), Verdict::Undecided { needs_seeds: Some(n) } if n > 8),
        "{:?}",
        verdict(3, 0)
    );
    assert_eq!(verdict(4, 0), Verdict::Holds);
    // With Reno's recovery the fake Peach is SACK with other noise.
    assert_eq!(e.claims[0].outcomes[1].reading, "Reno recovery");
    assert!(matches!(verdict(0, 1), Verdict::Undecided { .. }), "{:?}", verdict(0, 1));
    assert_eq!(e.claims[2].outcomes.len(), 1, "a reading that changes nothing is not shown");
    let c = e.counts();
    assert_eq!((c.holds, c.differs, c.undecided, c.not_evaluable), (3, 1, 1, 0));
}

#[test]
fn reports_contain_every_claim_and_nothing_unescaped() {
    let e = evaluated(&Fake::default(), 0, None);
    let (html, text) = (skyhaul_study::report::html(&e), skyhaul_study::report::text(&e));
    for (i, c) in e.claims.iter().enumerate() {
        assert!(html.contains(&format!("id=\"claim-{i}\"")), "{}", c.id);
        assert!(html.contains(&c.says) && text.contains(&c.says[..20]), "{}", c.says);
    }
    assert!(text.contains("3 hold, 1 differs, 1 undecided"), "{text}");
    assert!(html.contains("Goodput &lt;against&gt; loss") && !html.contains("<against>"));
    assert!(
        html.contains("1 &lt;Mbit/s&gt;")
            && html.contains("Reno recovery")
            && html.contains("out of thin air")
    );
    for outside in ["src=\"http", "href=\"http", "@import", "sourceMappingURL"] {
        assert!(!html.contains(outside), "{outside}");
    }
    assert!(text.lines().all(|l| l.chars().count() <= 110), "{text}");
    let index = skyhaul_study::report::index("All", &[(&e, "small/report.html".to_owned())]);
    assert!(index.contains("small/report.html") && !index.contains("out of thin air"));
}

#[test]
fn metrics_see_constants_of_axis_values() {
    let text = STUDY.replace(
        "values = [0, 1e-3, 0.01]",
        "values = [{ value = 0, let = { paper = 1190 } }, { value = 0.01, let = { paper = 600 } }]",
    );
    let text = text.replace(
        "[[claim]]\nid = \"1\"",
        "[[metric]]\nname = \"error\"\nfrom = \"abs(metric.goodput - let.paper) / let.paper\"\n\n[[claim]]\nid = \"1\"",
    );
    let runner = Fake::default();
    let p = plan(&runner, parse(&text)).expect("a study");
    let e = evaluate(&p, &run(&runner, &p, &RunOptions::default()).unwrap()).unwrap();
    let row = e.values.rows.iter().find(|r| r.at == ["0.01", "SACK"]).expect("a row");
    // SACK reaches about 600 there, as `paper` says.
    assert!(row.metrics[1].mean.abs() < 0.1, "{row:?}");
    // The plan keeps the name that the study was read under.
    assert_eq!(Path::new(&p.file.path), Path::new("small.study.toml"));
}
