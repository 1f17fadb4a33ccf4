//! The studies of this repository are sound; those without chance are run.

use skyhaul_study::claim::Verdict;
use skyhaul_study::engine::Simulator;
use skyhaul_study::evaluation::evaluate;
use skyhaul_study::model::StudyFile;
use skyhaul_study::plan::plan;
use skyhaul_study::run::{RunOptions, run};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies")
}

fn studies() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder()];
    while let Some(dir) = folders.pop() {
        for entry in std::fs::read_dir(&dir).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "toml") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_study_resolves() {
    let simulator = Simulator::new("test");
    let all = studies();
    assert!(all.len() >= 10, "{all:?}");
    for path in all {
        let file = StudyFile::read(&path).unwrap_or_else(|e| panic!("{e}"));
        let plan = plan(&simulator, file).unwrap_or_else(|e| panic!("{e}"));
        assert!(!plan.claims.is_empty() && !plan.file.study.figure.is_empty(), "{}", path.display());
    }
}

#[test]
fn the_claims_of_the_paper_are_all_there() {
    let mut ids = Vec::new();
    for path in studies().iter().filter(|p| p.to_string_lossy().contains("peach-2001")) {
        let file = StudyFile::read(path).unwrap_or_else(|e| panic!("{e}"));
        ids.extend(file.study.claim.into_iter().map(|c| c.id.split(' ').next().unwrap_or("").to_owned()));
    }
    let numbers = (1..=28).chain([31]).filter(|n| ![11, 19].contains(n));
    for n in numbers {
        let id = format!("0.{n}");
        assert!(ids.contains(&id), "claim {id} belongs to no study");
    }
}

#[test]
fn worked_examples_give_the_same_verdicts_as_ever() {
    let simulator = Simulator::new("test");
    for name in ["fig03", "fig07", "fig09"] {
        let file = StudyFile::read(&folder().join(format!("peach-2001/{name}.toml"))).expect(name);
        let plan = plan(&simulator, file).expect(name);
        let evaluation =
            evaluate(&plan, &run(&simulator, &plan, &RunOptions::default()).expect(name)).expect(name);
        for c in &evaluation.claims {
            assert_eq!(*c.verdict(), Verdict::Holds, "{name}: claim {}: {}", c.id, c.outcomes[0].ours);
        }
    }
}
