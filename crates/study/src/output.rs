//! The results directory.
//!
//! ```text
//! manifest.json            what made it: versions, hash, seeds, and what the caller adds (host, date)
//! study.toml               the study
//! scenario.resolved.toml   the base scenario with nothing left open
//! summary.json             verdicts and means with intervals
//! tables/NAME.parquet      each table of the study: means with intervals
//! cells.parquet            one row per cell (the ending is the table writer's)
//! figures/NAME.vl.json     Vega-Lite, data inside; NAME.svg and so on if there is a renderer
//! report.html  report.txt  the report
//! ```
//! Except for the caller's additions to the manifest, the same study gives the same bytes for any number of threads
//! and interruptions.

use crate::error::StudyError;
use crate::evaluation::Evaluation;
use crate::figure::FigureRenderer;
use crate::files::{make_room, replace_by, write_atomically};
use crate::report;
use crate::table::{Csv, TableWriter};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// What is written besides the fixed files, and by whom.
#[derive(Clone, Copy)]
pub struct OutputOptions<'a> {
    /// Renders figures; `None` writes only their specifications.
    pub renderer: Option<&'a dyn FigureRenderer>,
    /// Extensions of the image files.
    pub image_extensions: &'a [&'a str],
    /// Writes tables.
    pub tables: &'a dyn TableWriter,
    /// Added to the manifest.
    pub manifest: Option<&'a Map<String, Value>>,
}

impl Default for OutputOptions<'_> {
    fn default() -> Self {
        Self { renderer: None, image_extensions: &["svg", "png"], tables: &Csv, manifest: None }
    }
}

/// Writes the results directory; returns the files written.
///
/// # Errors
/// If a file cannot be written or a figure cannot be drawn.
pub fn write(e: &Evaluation, dir: &Path, options: &OutputOptions<'_>) -> Result<Vec<PathBuf>, StudyError> {
    let mut written = Vec::new();
    let mut put = |name: &str, text: &str| -> Result<PathBuf, StudyError> {
        let path = dir.join(name);
        make_room(dir, &path).map_err(|source| StudyError::Write { path: path.clone(), source })?;
        write_atomically(&path, text.as_bytes())?;
        written.push(path.clone());
        Ok(path)
    };
    let mut manifest = json!({
        "kind": "study",
        "study": e.name,
        "title": e.title,
        "provenance": e.provenance,
        "missing_cells": e.missing,
        "failed_cells": e.failed.len(),
    });
    for (key, value) in options.manifest.into_iter().flatten() {
        manifest[key] = value.clone();
    }
    put("manifest.json", &pretty(&manifest))?;
    put("study.toml", &e.study_text)?;
    put("scenario.resolved.toml", &e.scenario_text)?;
    put("summary.json", &pretty(&e.summary()))?;
    put("report.html", &report::html(e))?;
    put("report.txt", &report::text(e))?;
    let mut specs = Vec::new();
    for f in e.figures.iter().filter(|f| !f.is_empty()) {
        let text = pretty(&f.spec);
        put(&format!("figures/{}.vl.json", f.name), &text)?;
        specs.push((&f.name, text));
    }
    let mut tables = vec![("cells".to_owned(), e.cells.clone())];
    tables.extend(e.tables.iter().map(|t| (format!("tables/{}", t.name), t.numbers())));
    for (name, table) in tables {
        let path = dir.join(format!("{name}.{}", options.tables.extension()));
        let refuse = |source| StudyError::Write { path: path.clone(), source };
        make_room(dir, &path).map_err(&refuse)?;
        replace_by(&path, |temporary| options.tables.write(&table, temporary)).map_err(refuse)?;
        written.push(path);
    }
    let Some(renderer) = options.renderer else { return Ok(written) };
    for (name, text) in &specs {
        for extension in options.image_extensions {
            // Appended, not replaced: a name may contain dots.
            let path = dir.join(format!("figures/{name}.{extension}"));
            renderer
                .render(text, &path)
                .map_err(|source| StudyError::Render { path: path.clone(), source })?;
            written.push(path);
        }
    }
    Ok(written)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("values with string keys are JSON") + "\n"
}
