//! Movies from traces of video.

use crate::error::{ScenarioError, lab};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use skyhaul_lab::LabError;
use skyhaul_lab::film::{Mode, fit_movie, flow_name};
use std::path::PathBuf;

/// Fits a movie to a trace: JSON of the results, and the lines of a scenario that sends it in flows of the group
/// `flow`.
#[pyfunction]
pub(crate) fn fit_video(
    py: Python<'_>,
    trace: PathBuf,
    coupled: bool,
    flow: &str,
) -> PyResult<(String, String)> {
    let flow = flow_name(flow).map_err(|why| ScenarioError::new_err(format!("flow: {why}")))?;
    let mode = if coupled { Mode::Coupled } else { Mode::Independent };
    let fitted = py.detach(|| fit_movie(&trace, mode)).map_err(|e| match e {
        LabError::Read { .. } => PyOSError::new_err(e.to_string()),
        LabError::Trace { .. } => ScenarioError::new_err(e.to_string()),
        other => lab(other),
    })?;
    Ok((fitted.json().to_string(), fitted.scenario(flow)))
}
