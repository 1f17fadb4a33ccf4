//! Built-in studies, running studies, and their output.

use crate::cases;
use crate::engine::simulator;
use crate::error::LabError;
use crate::parquet::Parquet;
use crate::text::Grid;
use skyhaul_study::StudyError;
use skyhaul_study::evaluation::{Evaluation, ValueRow};
use skyhaul_study::figure::FigureRenderer;
use skyhaul_study::files::{STDIN, read_stdin};
use skyhaul_study::model::{Axis, StudyFile};
use skyhaul_study::output::{self, OutputOptions};
use skyhaul_study::plan::Plan;
use skyhaul_study::report;
use std::path::{Path, PathBuf};

/// Names and texts of the built-in studies and papers, by name.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/studies.rs"));
}
pub(crate) use embedded::{EVALUATION, PAPERS, STUDIES};

/// Names of the built-in studies.
pub fn names() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|s| s.0)
}

/// Reads a study: a file, `-` for standard input, or a built-in study.
///
/// # Errors
/// If it does not exist or is invalid.
pub fn open(name: &str) -> Result<StudyFile, LabError> {
    if name == STDIN {
        // Files that the study names are looked for in the current folder.
        let path = PathBuf::from("stdin.toml");
        let text = read_stdin().map_err(|source| StudyError::Read { path: STDIN.into(), source })?;
        return Ok(StudyFile::parse(&text, &path)?);
    }
    let path = Path::new(name);
    if !path.exists() {
        let plain = name.strip_suffix(".toml").unwrap_or(name);
        if let Some((name, text)) = STUDIES.iter().find(|s| s.0 == plain) {
            return Ok(StudyFile::parse(text, &PathBuf::from(format!("{name}.toml")))?);
        }
        if !name.ends_with(".toml") {
            let known = names().collect::<Vec<_>>().join(", ");
            return Err(LabError::NoStudy { name: name.to_owned(), known });
        }
    }
    Ok(StudyFile::read(path)?)
}

/// Changes a key of the study's scenario, as `--set` does. The value also replaces that of the quick profile.
///
/// # Errors
/// If there is no `=`, or if an axis sets the key in every combination, so that the value would never be used. Planning
/// the study checks whether the key exists.
pub fn set(file: &mut StudyFile, assignment: &str) -> Result<(), LabError> {
    let Some((path, value)) = assignment.split_once('=') else {
        return Err(LabError::NoValue { text: assignment.to_owned() });
    };
    let (path, value) = (path.trim(), value.trim());
    // An axis is applied after `--set`: it overwrites the key if it sets the key or a table that contains it.
    let covers =
        |set: &String| path == set || path.strip_prefix(set.as_str()).is_some_and(|k| k.starts_with('.'));
    let varies = |axis: &&Axis| {
        axis.path.0.iter().any(covers) || axis.values.iter().all(|v| v.set.0.keys().any(covers))
    };
    if let Some(axis) = file.study.axis.iter().find(varies) {
        return Err(LabError::SetByAxis { key: path.to_owned(), axis: axis.name.clone() });
    }
    let value = cases::value(value);
    if let Some(quick) = &mut file.study.quick {
        quick.set.0.remove(path);
    }
    file.study.set.0.insert(path.into(), value);
    Ok(())
}

/// Resolves all combinations of a study and checks its names, for the simulator.
///
/// # Errors
/// If it does not exist or is invalid.
pub fn plan(file: StudyFile) -> Result<Plan, LabError> {
    Ok(skyhaul_study::plan::plan(simulator(), file)?)
}

/// Writes the results directory of a study, then draws the figures as PNG and SVG. A figure that cannot be rendered
/// is reported with `warn`, in one line. Returns the files written.
///
/// # Errors
/// The file that cannot be written.
pub fn write(
    e: &Evaluation,
    folder: &Path,
    renderer: Option<&dyn FigureRenderer>,
    wall_s: Option<f64>,
    warn: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, LabError> {
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
        let install = crate::picture::INSTALL;
        warn(&format!("no figure files: {install}; the page report.html shows the same figures"));
        return Ok(written);
    };
    written.extend(pictures(e, folder, renderer, warn));
    Ok(written)
}

/// Renders the figures of a study as PNG and SVG; returns those that succeeded.
pub(crate) fn pictures(
    e: &Evaluation,
    folder: &Path,
    renderer: &dyn FigureRenderer,
    warn: &mut dyn FnMut(&str),
) -> Vec<PathBuf> {
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

/// What the command prints of a study: the head, means with intervals, then the counts and the claims with their verdicts.
#[must_use]
pub fn text(e: &Evaluation, metrics: impl Fn(&str) -> bool) -> String {
    let text = report::text(e);
    // The values stand between the head, which ends at the first empty line, and the claims.
    let (head, claims) = text.split_once("\n\n").unwrap_or((&text, ""));
    format!("{head}\n\n{}\n{claims}", values(e, metrics))
}

/// Means with intervals, or medians where the spread is large, under the default reading: one table per metric, with the
/// last axis across and all others down; with one axis or none, a single table of all metrics. `metrics` chooses them by
/// name.
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
            let cells = chosen.iter().map(|(m, _)| row.shown[*m].clone());
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
            let cell = row.shown[m].clone();
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
    fn a_key_that_an_axis_varies_cannot_be_set() {
        let study = || open("aqm/geo").expect("a study");
        let mut file = study();
        for key in ["flows.own.cc", "flows.own.cc.name", "links.sat.queue", "links.sat.queue.limit"] {
            let e = set(&mut file, &format!("{key}=x")).expect_err(key).to_string();
            assert!(e.starts_with(&format!("--set {key}: axis `")) && !e.contains('\n'), "{e}");
        }
        // What contains a varied key, or stands beside it, can be; so can what the quick profile sets.
        for key in ["links.sat", "links.sat.rate", "duration"] {
            set(&mut file, &format!("{key}=7 s")).unwrap_or_else(|e| panic!("{key}: {e}"));
        }
        assert!(study().study.quick.expect("a quick profile").set.0.contains_key("duration"));
        assert!(!file.study.quick.expect("a quick profile").set.0.contains_key("duration"));
        assert_eq!(file.study.set.0["duration"].as_str(), Some("7 s"));
    }

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
    fn what_a_claim_repeats_is_a_claim_that_counts() {
        let claims: Vec<_> = names()
            .flat_map(|name| {
                let file = open(name).expect("the test above");
                file.study.claim.into_iter().map(move |claim| (format!("{name}/{}", claim.id), claim))
            })
            .collect();
        for (name, claim) in &claims {
            let Some(other) = &claim.repeats else { continue };
            let found = claims.iter().find(|(name, _)| name == other).map(|(_, claim)| claim);
            let counts = found.is_some_and(|c| c.repeats.is_none());
            assert!(counts && name != other, "{name} repeats {other}");
        }
    }

    #[test]
    fn every_study_can_be_planned() {
        for name in names() {
            let plan = open(name).and_then(plan);
            assert!(plan.is_ok(), "{name}: {plan:?}");
        }
    }
}
