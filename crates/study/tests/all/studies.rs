//! The studies of this repository are sound; those without chance are run.

use skyhaul_scenario::Resolved;
use skyhaul_study::claim::Verdict;
use skyhaul_study::engine::Simulator;
use skyhaul_study::evaluation::evaluate;
use skyhaul_study::model::{Paper, Profile, Raw, StudyFile};
use skyhaul_study::observed::Observed;
use skyhaul_study::plan::{plan, plan_profile};
use skyhaul_study::run::{RunOptions, run};
use skyhaul_study::runner::{CellRunner, Failure, Problem, Resolution, Setting, Unversioned, Vocabulary};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

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
            } else if path.extension().is_some_and(|e| e == "toml") && !path.ends_with(Paper::FILE) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The simulator for a single study. It resolves equal settings once: most of those of the quick profile are those of the
/// whole study.
struct Once<'a> {
    simulator: &'a Simulator,
    known: Mutex<BTreeMap<String, Resolution>>,
}

impl CellRunner for Once<'_> {
    fn engine(&self) -> String {
        self.simulator.engine()
    }
    fn vocabulary(&self) -> Vocabulary {
        self.simulator.vocabulary()
    }
    fn resolve(&self, base: &Raw, dir: &Path, settings: &[Setting]) -> Result<Resolution, Problem> {
        let values: Vec<_> = settings.iter().map(|s| (&s.path, &s.value)).collect();
        let mut known = self.known.lock().expect("no panic while it is locked");
        let key = format!("{values:?}");
        if let Some(resolution) = known.get(&key) {
            return Ok(resolution.clone());
        }
        let new = self.simulator.resolve(base, dir, settings)?;
        known.insert(key, new.clone());
        Ok(new)
    }
    fn reread(&self, text: &str) -> Result<Resolved, Problem> {
        self.simulator.reread(text)
    }
    fn version(&self, scenario: &Resolved) -> Result<String, Unversioned> {
        self.simulator.version(scenario)
    }
    fn run(&self, scenario: &Resolved, seed: u64) -> Result<Observed, Failure> {
        self.simulator.run(scenario, seed)
    }
}

#[test]
fn every_study_resolves() {
    let simulator = Simulator::new("test");
    let all = studies();
    assert!(all.len() >= 10, "{all:?}");
    for path in all {
        let runner = Once { simulator: &simulator, known: Mutex::default() };
        let file = StudyFile::read(&path).unwrap_or_else(|e| panic!("{e}"));
        let quick = plan_profile(&runner, file.clone(), Profile::Quick).unwrap_or_else(|e| panic!("{e}"));
        let plan = plan(&runner, file).unwrap_or_else(|e| panic!("{e}"));
        assert!(quick.cells().len() <= plan.cells().len());
        assert!(!plan.claims.is_empty() && !plan.file.study.figure.is_empty(), "{}", path.display());
    }
}

#[test]
fn a_metric_that_no_flow_of_any_combination_has_is_refused() {
    let planned = |metric: &str, transports: &str| {
        let text = format!(
            "schema = 1\ntitle = \"t\"\nscenario = \"preset:peach-geo\"\nseeds = {{ first = 1, count = 1 }}\n\
             set = {{ \"flows.udp\" = {{ transport = \"udp\", path = [\"sat\"], app = {{ kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"1000 B\" }} }} }}\n\
             [[axis]]\nname = \"to\"\npath = \"flows.udp.transport\"\nvalues = {transports}\n\
             [[metric]]\nname = \"m\"\nfrom = \"{metric}\"\n"
        );
        let file = StudyFile::parse(&text, Path::new("own.toml")).expect("a study");
        plan(&Simulator::new("test"), file).map(|_| ()).map_err(|e| e.to_string())
    };
    let e = planned("sum(flow[udp].retransmissions)", "[\"udp\", \"tfrc\"]").expect_err("refused");
    assert!(
        e.contains("metric[0].from") && e.contains("these flows have no `retransmissions`: only TCP has it"),
        "{e}"
    );
    let e = planned("sum(flow[bulk].pages)", "[\"udp\"]").expect_err("refused");
    assert!(e.contains("only applications that load pages or transfers have it"), "{e}");
    let e = planned("max(flow[bulk].delay_p95) + sum(flow.bytes_acked)", "[\"udp\"]").expect_err("refused");
    assert!(e.contains("only datagrams and video have it"), "{e}");
    // Some flow has each of these.
    for metric in ["sum(flow.retransmissions)", "max(flow[udp].delay_p95)", "sum(flow[bulk].timeouts)"] {
        planned(metric, "[\"udp\"]").unwrap_or_else(|e| panic!("{e}"));
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

/// Every folder of studies says what it belongs to; what it names exists.
#[test]
fn every_paper_is_sound() {
    let root = folder().join("..");
    for entry in std::fs::read_dir(folder()).expect("a folder").map(|e| e.expect("an entry").path()) {
        let path = entry.join(Paper::FILE);
        let paper = Paper::read(&path).unwrap_or_else(|e| panic!("{e}"));
        for study in &paper.order {
            assert!(entry.join(format!("{study}.toml")).is_file(), "{}: order: {study}", path.display());
        }
        for claim in &paper.elsewhere {
            let (file, name) = claim.test().expect("checked when it was read");
            let text = std::fs::read_to_string(root.join(file))
                .unwrap_or_else(|e| panic!("{}: claim {}: {file}: {e}", path.display(), claim.id));
            assert!(is_test(&text, name), "{}: claim {}: no test {name} in {file}", path.display(), claim.id);
        }
        let mut ids: Vec<String> = paper.elsewhere.iter().map(|c| c.id.clone()).collect();
        ids.extend(paper.open.iter().map(|c| c.id.clone()));
        for study in studies().iter().filter(|s| s.parent() == Some(&entry)) {
            let file = StudyFile::read(study).unwrap_or_else(|e| panic!("{e}"));
            let both = file.study.claim.iter().find(|c| ids.contains(&c.id));
            assert!(both.is_none(), "{}: claim {both:?} is in {} too", path.display(), study.display());
        }
    }
}

/// Whether a source has a test function of this name: in Rust one with an attribute that ends in `test]` (proptest
/// functions have it too), in Python one whose name begins with `test`.
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let rust = |i: usize| {
        let attributes = lines[..i].iter().rev().take_while(|l| l.starts_with("#[") || l.starts_with("//"));
        attributes.into_iter().any(|l| l.starts_with("#[") && l.contains("test"))
    };
    lines.iter().enumerate().any(|(i, line)| {
        let starts = |head: &str| line.strip_prefix(head).is_some_and(|l| l.starts_with(&format!("{name}(")));
        (starts("fn ") && rust(i)) || (name.starts_with("test") && starts("def "))
    })
}

#[test]
fn a_test_is_told_from_another_function() {
    let text =
        "#[test]\n// why\n#[ignore]\nfn a() {}\nfn b() {}\ndef test_c():\ndef d():\n    #[test]\n    fn e()";
    for (name, is) in [("a", true), ("b", false), ("test_c", true), ("d", false), ("e", true), ("f", false)] {
        assert_eq!(is_test(text, name), is, "{name}");
    }
}

/// Every key of the format is in the page on it.
#[test]
fn the_page_on_the_format_has_every_key() {
    let root = folder().join("..");
    let page = std::fs::read_to_string(root.join("docs/study-format.md")).expect("the page");
    for schema in ["study", "paper"] {
        let text = std::fs::read_to_string(root.join(format!("schema/{schema}.json"))).expect("a schema");
        let schema: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let mut keys = Vec::new();
        words(&schema, &mut keys);
        assert!(keys.len() > 10);
        for key in keys {
            assert!(page.contains(&format!("`{key}`")) || page.contains(&format!(" {key} =")), "`{key}`");
        }
    }
}

/// Names of properties, and the words that properties accept.
fn words(schema: &serde_json::Value, found: &mut Vec<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        found.extend(properties.keys().cloned());
    }
    found.extend(schema["const"].as_str().map(str::to_owned));
    match schema {
        serde_json::Value::Array(all) => all.iter().for_each(|s| words(s, found)),
        serde_json::Value::Object(all) => all.values().for_each(|s| words(s, found)),
        _ => {}
    }
}
