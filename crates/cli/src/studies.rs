//! Studies: those that come with the program, running them, and what is shown of them.

use crate::cases::progress;
use crate::clock::Stopwatch;
use crate::parquet::Parquet;
use crate::stop::Stop;
use crate::text::Grid;
use indicatif::{ProgressBar, ProgressStyle};
use skyhaul_study::engine::Simulator;
use skyhaul_study::evaluation::{Evaluation, ValueRow};
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::format;
use skyhaul_study::model::StudyFile;
use skyhaul_study::output::{self, OutputOptions};
use skyhaul_study::plan::Plan;
use skyhaul_study::run::Progress;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// Name and text of the studies and papers inside the program, by name.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/studies.rs"));
}
pub(crate) use embedded::{PAPERS, STUDIES};

/// Names of the studies that come with the program.
pub fn names() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|s| s.0)
}

/// The simulator that runs cells.
pub fn simulator() -> &'static Simulator {
    static SIMULATOR: OnceLock<Simulator> = OnceLock::new();
    SIMULATOR.get_or_init(|| Simulator::new(crate::VERSION))
}

/// Reads a study: a file, or one that comes with the program.
///
/// # Errors
/// One line.
pub fn open(name: &str) -> Result<StudyFile, Stop> {
    let path = Path::new(name);
    if !path.exists() {
        let plain = name.strip_suffix(".toml").unwrap_or(name);
        if let Some((name, text)) = STUDIES.iter().find(|s| s.0 == plain) {
            return StudyFile::parse(text, &PathBuf::from(format!("{name}.toml"))).map_err(Stop::from);
        }
        if !name.ends_with(".toml") {
            let known: Vec<_> = names().collect();
            let known = known.join(", ");
            return Err(Stop::bad(format!(
                "{name}: no such file, and no study of this name comes with the program (those are: {known})"
            )));
        }
    }
    StudyFile::read(path).map_err(Stop::from)
}

/// Changes a key of the study's scenario, as `--set` says it.
///
/// # Errors
/// If there is no `=`. Whether the key exists shows when the study is planned.
pub fn set(file: &mut StudyFile, assignment: &str) -> Result<(), Stop> {
    let Some((path, value)) = assignment.split_once('=') else {
        return Err(Stop::bad(format!(
            "--set: {assignment}: write KEY=VALUE, such as links.sat.error.p=1e-2"
        )));
    };
    let value = value.trim();
    let value = value.parse().unwrap_or_else(|_| toml::Value::String(value.into()));
    file.study.set.0.insert(path.trim().into(), value);
    Ok(())
}

/// Resolves and checks a study.
///
/// # Errors
/// One line.
pub fn plan(file: StudyFile) -> Result<Plan, Stop> {
    skyhaul_study::plan::plan(simulator(), file).map_err(Stop::from)
}

/// Shows a run on the terminal.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new() -> Self {
        Self(progress(0))
    }
}

impl Progress for Bar {
    fn begin(&self, total: usize, cached: usize) {
        self.0.set_length(total as u64);
        self.0.set_position(cached as u64);
        self.0.reset_eta();
    }
    fn cell(&self, done: usize, _: usize, label: &str) {
        self.0.set_position(done as u64);
        self.0.set_message(label.to_owned());
    }
    fn warn(&self, message: &str) {
        self.0.suspend(|| warn(message));
    }
    fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// Shows a run of many studies: on a terminal as a bar; elsewhere as a line now and then.
#[derive(Debug)]
pub(crate) struct Whole {
    bar: ProgressBar,
    watch: Stopwatch,
    /// Cells at the beginning, and when the last line was written (s).
    said: Mutex<(usize, u64)>,
}

/// Seconds between lines where there is no terminal.
const BETWEEN: u64 = 30;

impl Whole {
    pub(crate) fn new() -> Self {
        let bar = ProgressBar::new(0);
        let style = "{bar:30} {pos} of {len} cells  {elapsed}, about {eta} left  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        Self { bar, watch: Stopwatch::start(), said: Mutex::new((0, 0)) }
    }

    /// A line for a log, if the last one is old.
    fn line(&self, done: usize, total: usize) -> Option<String> {
        let now = self.watch.elapsed().as_secs();
        let mut said = self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !self.bar.is_hidden() || now < said.1 + BETWEEN {
            return None;
        }
        said.1 = now;
        let ran = done.saturating_sub(said.0).max(1);
        let left = now * (total - done) as u64 / ran as u64;
        Some(format!("{done} of {total} cells, {now} s, about {left} s left"))
    }
}

impl Progress for Whole {
    fn begin(&self, total: usize, cached: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(cached as u64);
        self.bar.reset_eta();
        self.said.lock().unwrap_or_else(std::sync::PoisonError::into_inner).0 = cached;
    }
    fn cell(&self, done: usize, total: usize, label: &str) {
        self.bar.set_position(done as u64);
        self.bar.set_message(label.to_owned());
        if let Some(line) = self.line(done, total) {
            warn(&line);
        }
    }
    fn warn(&self, message: &str) {
        self.bar.suspend(|| warn(message));
    }
    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// One line on standard error that stops nothing.
pub(crate) fn warn(message: &str) {
    let _ = writeln!(std::io::stderr(), "skyhaul: {message}");
}

/// Writes the results directory of a study, then draws the figures as PNG and SVG. A picture that cannot be
/// drawn is told in one line and stops nothing. Returns the files written.
///
/// # Errors
/// The file that cannot be written.
pub fn write(
    e: &Evaluation,
    folder: &Path,
    renderer: Option<&dyn FigureRenderer>,
    wall_s: Option<f64>,
) -> Result<Vec<PathBuf>, Stop> {
    crate::results::prepare(folder)?;
    let mut manifest = crate::results::manifest("study");
    manifest["wall_s"] = wall_s.into();
    let options =
        OutputOptions { tables: &Parquet, manifest: manifest.as_object(), ..OutputOptions::default() };
    let mut written = output::write(e, folder, &options)?;
    if e.figures.is_empty() {
        return Ok(written);
    }
    let command = crate::picture::Command::find();
    let Some(renderer) = renderer.or(command.as_ref().map(|c| c as &dyn FigureRenderer)) else {
        warn(crate::picture::HOW_TO);
        return Ok(written);
    };
    written.extend(pictures(e, folder, renderer));
    Ok(written)
}

/// Draws the figures of a study as PNG and SVG; those that could be drawn.
pub(crate) fn pictures(e: &Evaluation, folder: &Path, renderer: &dyn FigureRenderer) -> Vec<PathBuf> {
    let mut written = Vec::new();
    for figure in e.figures.iter().filter(|f| !f.is_empty()) {
        let spec = figure.spec.to_string();
        for ending in ["png", "svg"] {
            let path = folder.join("figures").join(format!("{}.{ending}", figure.name));
            match renderer.render(&spec, &path) {
                Ok(()) => written.push(path),
                Err(why) => warn(&format!("cannot draw {}: {why}", path.display())),
            }
        }
    }
    written
}

/// Means with intervals under the default reading: a table per metric, the last axis across and all others
/// down; with a single axis, or none, one table of all metrics.
#[must_use]
pub fn values(e: &Evaluation, metrics: impl Fn(&str) -> bool) -> String {
    let v = &e.values;
    let Some(first) = v.rows.first() else { return String::new() };
    let rows: Vec<&ValueRow> = v.rows.iter().filter(|r| r.reading == first.reading).collect();
    let chosen = v.metrics.iter().enumerate().filter(|(_, name)| metrics(name));
    let Some(last) = v.axes.len().checked_sub(1).filter(|last| *last > 0) else {
        let chosen: Vec<(usize, &String)> = chosen.collect();
        let heads = v.axes.iter().chain(chosen.iter().map(|(_, name)| *name)).map(String::as_str);
        let mut grid = Grid::new(&heads.collect::<Vec<_>>());
        for row in rows {
            let cells = chosen.iter().map(|(m, _)| format::estimate(&row.metrics[*m]));
            grid.row(row.at.iter().cloned().chain(cells).collect());
        }
        return grid.lines(2);
    };
    let mut across: Vec<&str> = Vec::new();
    for row in &rows {
        if !across.contains(&row.at[last].as_str()) {
            across.push(&row.at[last]);
        }
    }
    let table = |(m, name): (usize, &String)| {
        let heads = v.axes[..last].iter().map(String::as_str).chain(across.iter().copied());
        let mut grid = Grid::new(&heads.collect::<Vec<_>>());
        let mut lines: Vec<Vec<String>> = Vec::new();
        for row in &rows {
            let cell = format::estimate(&row.metrics[m]);
            // The last axis varies fastest: the cells of a line follow each other.
            match lines.last_mut().filter(|l| l[..last] == row.at[..last]) {
                Some(line) => line.push(cell),
                None => lines.push([&row.at[..last], &[cell]].concat()),
            }
        }
        lines.into_iter().for_each(|line| grid.row(line));
        format!("{name}\n{}", grid.lines(2))
    };
    chosen.map(table).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_of_the_repository_comes_with_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
        let mut files = Vec::new();
        for paper in std::fs::read_dir(&root).expect("studies") {
            let paper = paper.expect("readable").path();
            for study in std::fs::read_dir(&paper).into_iter().flatten() {
                let study = study.expect("readable").path();
                if study.extension().is_some_and(|e| e == "toml") {
                    let name = study.strip_prefix(&root).expect("below").with_extension("");
                    files.push(name.to_string_lossy().replace('\\', "/"));
                }
            }
        }
        files.sort();
        let papers = PAPERS.iter().map(|(name, _)| format!("{name}/paper"));
        let mut all: Vec<String> = names().map(str::to_owned).chain(papers).collect();
        all.sort();
        assert_eq!(all, files);
    }

    #[test]
    fn every_study_can_be_planned() {
        for name in names() {
            let plan = open(name).and_then(plan);
            assert!(plan.is_ok(), "{name}: {plan:?}");
        }
    }
}
