//! Comparison of results directories.

use crate::error::SkyhaulError;
use pyo3::prelude::*;
use skyhaul_lab::compare as lab_compare;
use std::path::PathBuf;

/// The differences between two results directories: JSON, and text for a terminal.
#[pyfunction]
#[pyo3(signature = (a, b, across_versions=false))]
pub(crate) fn compare(
    py: Python<'_>,
    a: PathBuf,
    b: PathBuf,
    across_versions: bool,
) -> PyResult<(String, String)> {
    let work = || {
        let read = |path: &PathBuf| lab_compare::read(path).map_err(|e| e.to_string());
        let (left, right) = (read(&a)?, read(&b)?);
        let all = lab_compare::compare(&left, &right, across_versions).map_err(|e| e.to_string())?;
        Ok((lab_compare::json(&left, &right, &all).to_string(), lab_compare::text(&left, &right, &all)))
    };
    py.detach(work).map_err(|e: String| SkyhaulError::new_err(e))
}
