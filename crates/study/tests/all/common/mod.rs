//! A runner without a simulator: goodput follows from the settings and a little noise from the seed.

use skyhaul_scenario::{Document, Resolved};
use skyhaul_study::model::{Raw, StudyFile};
use skyhaul_study::observed::{Number, Observed, Sampled};
use skyhaul_study::plan::{Plan, plan};
use skyhaul_study::runner::{CellRunner, Failure, Problem, Resolution, Setting, Unversioned, Vocabulary};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// See the module.
#[derive(Default)]
pub(crate) struct Fake {
    /// Cells that ran.
    pub(crate) ran: AtomicUsize,
    /// Raised after so many cells, as Ctrl-C would; 0: never.
    pub(crate) stop_after: usize,
    /// What is raised.
    pub(crate) stop: AtomicBool,
    /// Fails on this seed.
    pub(crate) fail_on: Option<u64>,
    /// Another engine.
    pub(crate) engine: Option<String>,
    /// Version of a user's own part.
    pub(crate) version: Option<Result<String, String>>,
}

/// Settings of a scenario.
type Settings = BTreeMap<String, String>;

/// Something resolved, with the settings as its title.
fn scenario(settings: &str) -> Resolved {
    let mut any = Document::preset("peach-geo").and_then(|d| d.resolve()).expect("a preset");
    any.title = settings.to_owned();
    any
}

/// The settings that a text names.
fn settings(text: &str) -> Settings {
    let parts: Vec<&str> = text.split('"').collect();
    parts.chunks(4).filter(|c| c.len() == 4).map(|c| (c[1].to_owned(), c[3].to_owned())).collect()
}

const PATHS: [&str; 3] = ["cc", "loss", "recovery"];

impl CellRunner for Fake {
    fn engine(&self) -> String {
        self.engine.clone().unwrap_or_else(|| "fake-1".to_owned())
    }

    fn vocabulary(&self) -> Vocabulary {
        Vocabulary {
            flow: vec!["unique_segments".to_owned()],
            link: vec!["forward.dropped_error".to_owned()],
            run: vec!["duration".to_owned()],
        }
    }

    fn resolve(&self, base: &Raw, _: &Path, settings: &[Setting]) -> Result<Resolution, Problem> {
        let mut all = Settings::from([("base".to_owned(), base.as_str().unwrap_or("a table").to_owned())]);
        for s in settings {
            if !PATHS.contains(&s.path.as_str()) {
                let accepted = PATHS.map(str::to_owned).to_vec();
                let message = "leads nowhere".to_owned();
                return Err(Problem { path: Some(s.path.clone()), message, accepted });
            }
            let value = s.value.as_str().map_or_else(|| s.value.to_string(), str::to_owned);
            all.insert(s.path.clone(), value);
        }
        Ok(Resolution {
            scenario: scenario(&format!("{all:?}")),
            text: format!("{all:?}"),
            words: vec![("Link".to_owned(), "1 <Mbit/s>".to_owned())],
            links: vec!["sat".to_owned()],
            groups: vec!["bulk".to_owned()],
            series: vec!["cwnd".to_owned()],
        })
    }

    fn reread(&self, text: &str) -> Result<Resolved, Problem> {
        Ok(scenario(text))
    }

    fn version(&self, _: &Resolved) -> Result<String, Unversioned> {
        self.version.clone().unwrap_or_else(|| Ok(String::new())).map_err(|why| Unversioned { why })
    }

    fn run(&self, scenario: &Resolved, seed: u64) -> Result<Observed, Failure> {
        let scenario = settings(&scenario.title);
        assert!(self.fail_on != Some(seed) || seed % 2 == 0, "an odd seed breaks an invariant");
        if self.fail_on == Some(seed) {
            return Err(Failure {
                message: "no such luck".to_owned(),
                detail: Some("line 1\nline <2>".to_owned()),
            });
        }
        let loss: f64 = scenario.get("loss").and_then(|l| l.parse().ok()).unwrap_or(0.0);
        let peach = scenario.get("cc").is_some_and(|c| c == "peach");
        let reno = scenario.get("recovery").is_some_and(|c| c == "reno");
        // A shared part per seed, so that pairing matters, and a part per scenario.
        let shared = noise(seed, 0);
        let own = noise(seed, 1 + u64::from(peach));
        let base = if peach && !reno { 1200.0 - 1e4 * loss } else { 1000.0 - 4e4 * loss };
        let goodput = base + 50.0 * shared + 5.0 * own;
        let n = Number;
        let mut o = Observed::default();
        o.run.insert("duration".into(), n(10.0));
        o.flows.group = vec!["bulk".into(), "bulk".into()];
        o.flows.columns.insert("unique_segments".into(), vec![n(5.0 * goodput), n(5.0 * goodput)]);
        o.links.insert("sat".into(), BTreeMap::from([("forward.dropped_error".to_owned(), n(loss * 1e4))]));
        let time: Vec<Number> = (0..10).map(|t| n(f64::from(t))).collect();
        let value = time.iter().map(|t| n(t.0 * if peach { 2.0 } else { 1.0 })).collect();
        o.series.push(Sampled { name: "cwnd".into(), group: "bulk".into(), flow: 0, time, value });
        let ran = self.ran.fetch_add(1, Ordering::Relaxed) + 1;
        if ran == self.stop_after {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(o)
    }
}

/// Deterministic, in −1 … 1.
fn noise(seed: u64, stream: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 29;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 32;
    (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// A study with one of everything.
pub(crate) const STUDY: &str = r#"
schema = 1
title = "Goodput <against> loss"
source = "A paper, Fig. 11"
about = "What loss costs."
scenario = "fake"
seeds = { first = 1, count = 8 }

[[axis]]
name = "loss"
title = "Loss probability"
path = "loss"
values = [0, 1e-3, 0.01]

[[axis]]
name = "cc"
title = "Control"
path = "cc"
values = ["sack", "peach"]
labels = ["SACK", "Peach"]

[[reading]]
label = "Reno recovery"
says = "the figure instead of the text"
set = { recovery = "reno" }
only = { cc = "Peach" }

[[metric]]
name = "goodput"
title = "Goodput"
from = "flow.unique_segments / run.duration"
over = "sum"
unit = "segments/s"

[[claim]]
id = "1"
says = "Peach is ahead at every loss rate"
paper = "always higher"
where = "Fig. 11"
for_each = ["loss"]
check = { kind = "greater", metric = "goodput", left = { cc = "Peach" }, right = { cc = "SACK" } }

[[claim]]
id = "2"
says = "Peach gains a tenth at most at 1e-2"
kind = "number"
at = { loss = 0.01 }
check = { kind = "ratio", metric = "goodput", left = { cc = "Peach" }, right = { cc = "SACK" }, within = [1.0, 1.1] }
note = "out of thin air"

[[claim]]
id = "3"
says = "SACK falls with loss"
at = { cc = "SACK" }
check = { kind = "monotone", metric = "goodput", along = "loss", direction = "decreasing" }

[[claim]]
id = "4"
says = "Peach at 0 has exactly 1200"
kind = "exact"
at = { cc = "Peach", loss = 0 }
check = { kind = "equal", metric = "goodput", value = 1200, tolerance = 0.001, relative = true }

[[claim]]
id = "5"
says = "Its window is never below"
at = { loss = 0 }
check = { kind = "curve", series = "cwnd", relation = "above", left = { cc = "Peach" }, right = { cc = "SACK" } }

[[figure]]
file = "fig11.svg"
x = "loss"
y = "goodput"
series = "cc"
x_scale = "log"
readings = true

[[figure]]
file = "window.svg"
series = "cc"
at = { loss = 0 }
time = { series = "cwnd" }
"#;

/// The study above, planned.
pub(crate) fn planned(runner: &Fake) -> Plan {
    plan(runner, parse(STUDY)).expect("a study")
}

/// A study from text.
pub(crate) fn parse(text: &str) -> StudyFile {
    StudyFile::parse(text, Path::new("small.study.toml")).expect("a study")
}

/// An empty folder of its own for a test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("writable");
    dir
}

/// Everything below a folder: path and content, sorted.
pub(crate) fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let content = std::fs::read(&path).expect("a file");
                all.push((path.strip_prefix(dir).expect("below").to_owned(), content));
            }
        }
    }
    all.sort();
    all
}
