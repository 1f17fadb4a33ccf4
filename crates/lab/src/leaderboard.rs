//! A leaderboard: all controls evaluated with the same cases, and one table over them.
//!
//! Each control has an evaluation of its own in the folder, written as soon as its cells have run. The table takes the numbers
//! of a row from the `evaluation.json` of the control, also for finished evaluations that are added.

use crate::clock;
use crate::control;
use crate::engine::simulator;
use crate::error::LabError;
use crate::evaluate::{self, Evaluating, checked};
use crate::lease::Lease;
use crate::results;
use crate::text::Grid;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::{Value, json};
use skyhaul_cc::{Config, NAMES};
use skyhaul_study::cache::Cache;
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::files::read_text;
use skyhaul_study::format;
use skyhaul_study::leaderboard::{Leaderboard, Measured, Number, NumberColumn, Row, SCHEMA, Section};
use skyhaul_study::overview::places;
use skyhaul_study::plan::Plan;
use skyhaul_study::report;
use skyhaul_study::requirement::Judgement;
use skyhaul_study::run::{Progress, RunOptions};
use skyhaul_study::runner::CellRunner;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Name of the machine-readable table.
pub const FILE: &str = "leaderboard.json";
/// Name of the folder with an evaluation for each control.
pub const CONTROLS: &str = "controls";
/// Processor time of a cell of the built-in cases, s: NewReno, Hybla, Hark and BBRv3, each with its baselines and one seed, took
/// 103 s for 1849 cells, and cells with another control than a baseline a quarter more than the mean (release program, Intel
/// Xeon).
pub const CELL_SECONDS: f64 = 0.07;

/// What to evaluate, and the folder for the table.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The controls, as for an evaluation; all built-in ones if empty.
    pub controls: Vec<String>,
    /// Names of cases; all if empty.
    pub names: Vec<String>,
    /// Fewer seeds and shorter runs, as each case says.
    pub quick: bool,
    /// Cases of this folder instead of the built-in ones.
    pub cases: Option<PathBuf>,
    /// Number of seeds, instead of each case's.
    pub seeds: Option<u32>,
    /// Folders of finished evaluations that become rows too, such as those of a control of one's own.
    pub with: Vec<PathBuf>,
    /// The folder; by default `results/evaluate-all`, and `-quick` in the quick profile.
    pub out: Option<PathBuf>,
}

impl Request {
    /// The folder of the results.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let usual = if self.quick { "results/evaluate-all-quick" } else { "results/evaluate-all" };
        self.out.clone().unwrap_or_else(|| usual.into())
    }

    /// The options that follow the control and the cases in the command of a single evaluation.
    fn options(&self) -> String {
        let mut words = Vec::new();
        if let Some(dir) = &self.cases {
            words.push(format!("--cases {}", quoted(&dir.display().to_string())));
        }
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.extend(self.seeds.map(|n| format!("--seeds {n}")));
        words.join(" ")
    }

    /// The command that evaluates all controls again and writes this table.
    fn command(&self) -> String {
        let mut words = vec!["skyhaul evaluate --all".to_owned()];
        words.extend(self.names.iter().cloned());
        words.extend(self.controls.iter().map(|c| format!("--control {}", quoted(c))));
        words.extend(self.with.iter().map(|dir| format!("--with {}", quoted(&dir.display().to_string()))));
        words.push(self.options());
        words.retain(|w| !w.is_empty());
        words.join(" ")
    }
}

/// The word, quoted for a POSIX shell where necessary.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.contains(['"', '$', '`', '\\', '!']) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    format!("\"{word}\"")
}

/// How much there is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Controls that are evaluated.
    pub controls: usize,
    /// Cells of these controls; a cell that several controls share counts once.
    pub cells: usize,
    /// Cells that are in the cache.
    pub cached: usize,
}

impl Extent {
    /// The estimated processor time of the cells that are not in the cache, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (self.cells - self.cached) as f64 * CELL_SECONDS
    }
}

/// The evaluations of all controls in progress, and the table over them.
#[derive(Debug)]
pub struct Ranking {
    request: Request,
    folder: PathBuf,
    /// One evaluation for each control that is evaluated here.
    each: Vec<Evaluating>,
    /// Folders and summaries of the finished evaluations to add.
    added: Vec<(PathBuf, Value)>,
    stopwatch: clock::Stopwatch,
    _lease: Lease,
}

impl Ranking {
    /// Checks all controls and the evaluations to add, plans all cases and creates the folders. Cases that cannot be
    /// planned are reported with `warn`, once.
    ///
    /// # Errors
    /// As [`Evaluating::begin`]; a control among the cases, or twice; no requirement that a case answers; a headline that no
    /// case measures; a folder to add that holds no evaluation of the same cases.
    pub fn begin<R: CellRunner>(
        request: &Request,
        runner: &R,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Self, LabError> {
        if request.seeds == Some(0) {
            return Err(LabError::NoSeeds);
        }
        if let Some(name) = request.names.iter().find(|n| Config::by_name(n).is_some() || n.starts_with('{'))
        {
            let message =
                format!("with --all a name is that of a case; name controls with --control {}", quoted(name));
            return Err(LabError::Control { control: name.clone(), message });
        }
        let controls: Vec<String> = match &request.controls[..] {
            [] => NAMES.iter().map(|n| (*n).to_owned()).collect(),
            chosen => chosen.to_vec(),
        };
        let added = request
            .with
            .iter()
            .map(|dir| Ok((dir.clone(), finished(dir)?)))
            .collect::<Result<Vec<_>, LabError>>()?;
        let mut slugs = BTreeSet::new();
        for control in &controls {
            checked(control, runner)?;
            if !slugs.insert(control::slug(control)) {
                return Err(LabError::Control {
                    control: control.clone(),
                    message: "it is named twice".to_owned(),
                });
            }
        }
        for (dir, summary) in &added {
            let control = summary["control"].as_str().unwrap_or_default();
            if !slugs.insert(control::slug(control)) {
                let why = format!("it evaluates {control}, which is a row already");
                return Err(LabError::NoRow { path: dir.clone(), why });
            }
        }
        let folder = request.folder();
        let single = |control: &String| evaluate::Request {
            control: control.clone(),
            names: request.names.clone(),
            quick: request.quick,
            cases: request.cases.clone(),
            seeds: request.seeds,
            out: Some(folder.join(CONTROLS).join(control::slug(control))),
        };
        // Errors in the cases are reported before a folder is created.
        evaluate::opened(&single(&controls[0]))?;
        let lease = Lease::take(&folder)?;
        manifest(&folder, request, None)?;
        let mut warned = BTreeSet::new();
        let mut once = |line: &str| {
            if warned.insert(line.to_owned()) {
                warn(line);
            }
        };
        let each = controls.iter().map(|c| Evaluating::begin(&single(c), runner, &mut once));
        let each = each.collect::<Result<Vec<_>, _>>()?;
        check_cases(&each[0])?;
        for (dir, summary) in &added {
            check_comparable(dir, summary, &each[0])?;
        }
        let stopwatch = clock::Stopwatch::start();
        Ok(Self { request: request.clone(), folder, each, added, stopwatch, _lease: lease })
    }

    /// The folder of the table.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How much there is to run.
    #[must_use]
    pub fn extent(&self, cache: Option<&Cache>) -> Extent {
        let mut keys = BTreeSet::new();
        for plan in self.each.iter().flat_map(|e| e.cases().plans()) {
            let runs = plan.runs();
            keys.extend(plan.cells().iter().map(|c| plan.key(runs[c.run], c.seed)));
        }
        let cached = cache.map_or(0, |cache| keys.iter().filter(|key| cache.path(key).is_file()).count());
        Extent { controls: self.each.len(), cells: keys.len(), cached }
    }

    /// Runs the cells that are not in the cache, control by control, and writes the evaluation of each as soon as it is
    /// complete; then the table. `extent` is for the progress.
    ///
    /// # Errors
    /// A file that cannot be written, or a request to stop: what has run is in the cache, and the evaluations that are
    /// complete are in the folder.
    pub fn run<R: CellRunner>(
        self,
        extent: Extent,
        runner: &R,
        options: &RunOptions<'_>,
        renderer: Option<&dyn FigureRenderer>,
        warn: &mut dyn FnMut(&str),
    ) -> Result<Leaderboard, LabError> {
        let Self { request, folder, each, added, stopwatch, _lease } = self;
        let done = AtomicUsize::new(extent.cached);
        options.progress.begin(extent.cells, extent.cached);
        let mut summaries = Vec::new();
        for one in each {
            let progress =
                Together { all: options.progress, extent, done: &done, control: one.control().to_owned() };
            let totals = one.run(runner, &RunOptions { progress: &progress, ..*options });
            let ended = match totals {
                Ok(totals) if !totals.interrupted => one.report(renderer, warn),
                Ok(_) => {
                    let done = done.load(Ordering::Relaxed).min(extent.cells);
                    Err(LabError::StoppedCells { done, cells: extent.cells })
                }
                Err(e) => Err(e.into()),
            };
            match ended {
                Ok(evaluated) => summaries.push(evaluated.summary()),
                Err(e) => {
                    options.progress.end();
                    return Err(e);
                }
            }
        }
        options.progress.end();
        let mut rows = Vec::new();
        for summary in &summaries {
            let control = summary["control"].as_str().unwrap_or_default();
            let page = format!("{CONTROLS}/{}/report.html", control::slug(control));
            rows.push(row(summary, page));
        }
        for (dir, summary) in &added {
            let page = dir.canonicalize().unwrap_or_else(|_| dir.clone()).join("report.html");
            rows.push(row(summary, file_url(&page)));
        }
        let mut table = table_of(&request, &summaries[0], rows);
        table.sort();
        remove_stale(&folder, &summaries)?;
        results::text(&folder.join("report.html"), &report::leaderboard(&table))?;
        results::json_file(&folder.join(FILE), &table)?;
        // Last: the manifest declares the table complete.
        manifest(&folder, &request, Some(stopwatch.elapsed().as_secs_f64()))?;
        Ok(table)
    }
}

/// Bytes of a path that are encoded in a URL: all but unreserved ones (RFC 3986 §2.3) and those between the parts of a path.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b':');

/// The address of a file (RFC 8089); `path` is absolute.
fn file_url(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    if !cfg!(windows) {
        return format!("file://{}", percent_encode(bytes, ENCODED));
    }
    // `\\?\C:\a`, as `canonicalize` writes it, is `/C:/a`.
    let bytes = bytes.strip_prefix(br"\\?\").unwrap_or(bytes);
    let bytes: Vec<u8> = bytes.iter().map(|b| if *b == b'\\' { b'/' } else { *b }).collect();
    format!("file:///{}", percent_encode(&bytes, ENCODED))
}

/// The progress of the evaluation of one control, counted over the cells of all controls.
struct Together<'a> {
    all: &'a dyn Progress,
    extent: Extent,
    done: &'a AtomicUsize,
    control: String,
}

impl Progress for Together<'_> {
    fn cell(&self, _: usize, _: usize, label: &str) {
        // A cell that several controls share and that fails is not in the cache: it runs, and is counted, once per control.
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.all.cell(done.min(self.extent.cells), self.extent.cells, &format!("{}: {label}", self.control));
    }
    fn warn(&self, message: &str) {
        self.all.warn(&format!("{}: {message}", self.control));
    }
}

fn manifest(folder: &Path, request: &Request, wall_s: Option<f64>) -> Result<(), LabError> {
    let mut manifest = results::manifest("evaluate");
    manifest["kind"] = json!("leaderboard");
    manifest["profile"] = json!(if request.quick { "quick" } else { "full" });
    manifest["complete"] = json!(wall_s.is_some());
    manifest["wall_s"] = json!(wall_s);
    results::json_file(&folder.join(results::MANIFEST), &manifest)
}

/// Removes the evaluations of controls that an older table had.
fn remove_stale(folder: &Path, summaries: &[Value]) -> Result<(), LabError> {
    let now: BTreeSet<String> =
        summaries.iter().map(|s| control::slug(s["control"].as_str().unwrap_or_default())).collect();
    for old in fs::read_dir(folder.join(CONTROLS)).into_iter().flatten().flatten() {
        let kept = now.contains(&*old.file_name().to_string_lossy());
        if !kept && old.path().join(results::MANIFEST).is_file() {
            fs::remove_dir_all(old.path()).map_err(LabError::write(&old.path()))?;
        }
    }
    Ok(())
}

/// Checks that some claim answers a requirement, and that the headlines of the cases exist.
fn check_cases(one: &Evaluating) -> Result<(), LabError> {
    let all = one.cases();
    let plan_of = |study: &str| -> Option<&Plan> { all.plans().iter().find(|p| p.file.stem() == study) };
    let mut names = Vec::new();
    let mut answered = false;
    for (paper, studies) in all.papers() {
        names.extend(studies.iter().cloned());
        let mut ids = all.plans().iter().flat_map(|p| &p.file.study.claim).map(|c| &c.id);
        answered |= ids.any(|id| paper.row.iter().any(|row| row.is_named_by(id)));
        for h in paper.overview.iter().flat_map(|o| &o.headline) {
            // A case that was not asked for, or cannot be run, has no number.
            let Some(plan) = plan_of(&h.study) else {
                if one.is_partial() || studies.contains(&h.study) {
                    continue;
                }
                let (headline, name) = (h.says.clone(), h.study.clone());
                return Err(LabError::NoHeadline {
                    headline,
                    what: "study",
                    name,
                    known: studies.join(", "),
                });
            };
            let known = places(plan);
            if !known.iter().any(|(metric, at)| (metric, at) == (&h.metric, &h.at)) {
                let word = |(metric, at): &(String, String)| format!("{metric} at \"{at}\"");
                let known = known.iter().map(word).collect::<Vec<_>>().join(", ");
                let (headline, name) = (h.says.clone(), format!("{} at \"{}\"", h.metric, h.at));
                return Err(LabError::NoHeadline { headline, what: "line of an overview", name, known });
            }
        }
    }
    if answered { Ok(()) } else { Err(LabError::NoRequirement { cases: names.join(", ") }) }
}

/// The `evaluation.json` of a finished evaluation.
fn finished(dir: &Path) -> Result<Value, LabError> {
    let path = dir.join(evaluate::FILE);
    let text = read_text(&path).map_err(LabError::read(&path))?;
    let wrong = |why: String| LabError::NoRow { path: path.clone(), why };
    let summary: Value = serde_json::from_str(&text).map_err(|e| wrong(format!("damaged: {e}")))?;
    if summary["schema"] != evaluate::SCHEMA {
        return Err(wrong(format!("`schema` is {}; accepted: \"{}\"", summary["schema"], evaluate::SCHEMA)));
    }
    Ok(summary)
}

/// Checks that a finished evaluation is of the same engine, profile, cases and seeds.
fn check_comparable(dir: &Path, summary: &Value, one: &Evaluating) -> Result<(), LabError> {
    let plans = one.cases().plans();
    let wrong = |key: &str, found: &Value, accepted: String| {
        let why = format!("`{key}` is {found}; accepted: {accepted}");
        Err(LabError::NoRow { path: dir.join(evaluate::FILE), why })
    };
    let engine = simulator().engine();
    if summary["engine"] != engine {
        return wrong("engine", &summary["engine"], json!(engine).to_string());
    }
    let profile = plans.first().map_or(Value::Null, |p| json!(p.profile));
    if summary["profile"] != profile {
        return wrong("profile", &summary["profile"], profile.to_string());
    }
    for plan in plans {
        let (name, seeds) = (plan.file.stem(), json!(plan.seeds()));
        let cases = summary["cases"].as_array().into_iter().flatten();
        let case = cases.clone().find(|c| c["name"] == name);
        let Some(case) = case else {
            let known = Value::Array(cases.map(|c| c["name"].clone()).collect());
            return wrong("cases", &known, format!("one with {name}"));
        };
        if case["provenance"]["seeds"] != seeds {
            return wrong(
                &format!("cases.{name}.provenance.seeds"),
                &case["provenance"]["seeds"],
                seeds.to_string(),
            );
        }
    }
    Ok(())
}

/// A row from `evaluation.json`.
fn row(summary: &Value, page: String) -> Row {
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let list = |v: &Value, key: &str| v[key].as_array().cloned().unwrap_or_default();
    let control = text(summary, "control");
    let verdict = |r: &Value| Some((text(r, "section"), serde_json::from_value(r["verdict"].clone()).ok()?));
    let verdicts: BTreeMap<String, Judgement> =
        list(summary, "requirements").iter().filter_map(verdict).collect();
    let number = |h: &Value| {
        let number = serde_json::from_value(h["value"].clone()).ok()?;
        Some((text(h, "says"), number))
    };
    let numbers: BTreeMap<String, Number> = list(summary, "headlines").iter().filter_map(number).collect();
    // A user-defined control has no command: only the program that defines it can run it.
    let user_defined = control::read(&control).ok().is_some_and(|v| {
        let name = v.get("name").unwrap_or(&v).as_str().unwrap_or_default();
        name == "user" || name.starts_with("user:")
    });
    let command = (!user_defined).then(|| format!("skyhaul evaluate {}", quoted(&control)));
    Row { control, page, command, verdicts, numbers }
}

/// The table of these rows; its columns are the requirements and headlines of `summary`, one of the evaluations.
fn table_of(request: &Request, summary: &Value, rows: Vec<Row>) -> Leaderboard {
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    let list = |v: &Value, key: &str| v[key].as_array().cloned().unwrap_or_default();
    let (mut requirements, mut not_measured) = (Vec::new(), Vec::new());
    for r in list(summary, "requirements") {
        let requirement = Section { section: text(&r, "section"), title: text(&r, "title") };
        let judged =
            |row: &Row| row.verdicts.get(&requirement.section).is_some_and(|v| *v != Judgement::NotMeasured);
        if rows.iter().any(judged) {
            let mut cases: Vec<String> = list(&r, "claims").iter().map(|c| text(c, "case")).collect();
            cases.dedup();
            requirements.push(Measured { requirement, cases });
        } else {
            not_measured.push(requirement);
        }
    }
    let headline = |h: &Value| NumberColumn {
        title: text(h, "says"),
        unit: text(h, "unit"),
        better: serde_json::from_value(h["better"].clone()).unwrap_or_default(),
        case: text(h, "case"),
        anchor: text(h, "anchor"),
    };
    Leaderboard {
        schema: SCHEMA.to_owned(),
        document: text(summary, "document"),
        version: text(summary, "version"),
        engine: text(summary, "engine"),
        created: clock::now(),
        processor: processor(),
        profile: text(summary, "profile"),
        command: request.command(),
        options: request.options(),
        requirements,
        not_measured,
        numbers: list(summary, "headlines").iter().map(headline).collect(),
        rows,
    }
}

/// The model of the processor, or its architecture where /proc/cpuinfo does not name the model.
fn processor() -> String {
    let all = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = all.lines().find_map(|l| l.strip_prefix("model name"));
    model.map_or(std::env::consts::ARCH, |l| l.trim_start_matches([':', '\t', ' '])).to_owned()
}

/// A line per control with its counts and numbers, and one with its verdicts.
#[must_use]
pub fn shown(l: &Leaderboard) -> String {
    let mut out = format!(
        "Leaderboard of {} controls · profile {} · Skyhaul {} · engine {}\n\n",
        l.rows.len(),
        l.profile,
        l.version,
        l.engine
    );
    let counted = [Judgement::Met, Judgement::NotMet, Judgement::Undecided];
    let heads: Vec<String> = l.numbers.iter().map(NumberColumn::heading).collect();
    let heads: Vec<&str> = ["control"]
        .into_iter()
        .chain(counted.map(Judgement::word))
        .chain(heads.iter().map(String::as_str))
        .collect();
    let mut grid = Grid::new(&heads);
    for r in &l.rows {
        let number = |n: &NumberColumn| {
            r.numbers.get(&n.title).map_or("–".to_owned(), |v| format::brief(&v.estimate()))
        };
        let counts = counted.map(|j| r.count(j).to_string());
        grid.row([r.control.clone()].into_iter().chain(counts).chain(l.numbers.iter().map(number)).collect());
    }
    out.push_str(&grid.lines(0));
    let heads: Vec<String> = l.requirements.iter().map(|m| format!("§{}", m.requirement.section)).collect();
    let heads: Vec<&str> = ["control"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut grid = Grid::new(&heads);
    for r in &l.rows {
        let mark = |m: &Measured| {
            let j = r.verdicts.get(&m.requirement.section).copied().unwrap_or(Judgement::NotMeasured);
            j.symbol().to_owned()
        };
        grid.row([r.control.clone()].into_iter().chain(l.requirements.iter().map(mark)).collect());
    }
    let marks = Judgement::ALL.map(|j| format!("{} {}", j.symbol(), j.word())).join(", ");
    let _ = write!(out, "\n{marks}\n{}", grid.lines(0));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_words_of_a_shell() {
        for (word, want) in [
            ("newreno", "newreno"),
            ("results/a b", "\"results/a b\""),
            ("{ name = 'hark', probes = false }", "\"{ name = 'hark', probes = false }\""),
            ("{ name = \"hark\" }", "'{ name = \"hark\" }'"),
            ("a'$b", "'a'\\''$b'"),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(word), want);
        }
        let request = Request {
            controls: vec!["newreno".into(), "{ name = 'hark' }".into()],
            names: vec!["harm".into()],
            quick: true,
            seeds: Some(2),
            ..Request::default()
        };
        assert_eq!(
            request.command(),
            "skyhaul evaluate --all harm --control newreno --control \"{ name = 'hark' }\" --quick --seeds 2"
        );
        assert_eq!(request.folder(), Path::new("results/evaluate-all-quick"));
    }
}
