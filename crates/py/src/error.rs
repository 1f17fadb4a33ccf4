//! Exceptions: the same one-line messages as on the command line.

use pyo3::PyErr;
use pyo3::exceptions::{PyException, PyOSError};
use skyhaul_lab::LabError;

pyo3::create_exception!(skyhaul, SkyhaulError, PyException, "Base class of the errors that Skyhaul raises.");
pyo3::create_exception!(
    skyhaul,
    ScenarioError,
    SkyhaulError,
    "A scenario that cannot be run; one line with file, line, key and accepted forms."
);
pyo3::create_exception!(
    skyhaul,
    StudyError,
    SkyhaulError,
    "A study that cannot be run or written; one line with file, line, key and accepted forms."
);
pyo3::create_exception!(
    skyhaul,
    ControlError,
    SkyhaulError,
    "A congestion control that failed during a run; its cause is the exception that the control raised."
);

pub(crate) fn scenario(e: skyhaul_scenario::ScenarioError) -> PyErr {
    // Python has an argument `set` instead of an option.
    ScenarioError::new_err(e.with_overrides_called("set").to_string())
}

pub(crate) fn build(e: skyhaul_sim::BuildError) -> PyErr {
    ScenarioError::new_err(e.to_string())
}

pub(crate) fn study(e: skyhaul_study::StudyError) -> PyErr {
    match e {
        skyhaul_study::StudyError::Read { .. } | skyhaul_study::StudyError::Write { .. } => {
            PyOSError::new_err(e.to_string())
        }
        _ => StudyError::new_err(e.to_string()),
    }
}

/// For operations shared with the command line.
pub(crate) fn lab(e: LabError) -> PyErr {
    StudyError::new_err(e.to_string())
}

/// For results that cannot be written.
pub(crate) fn output(e: LabError) -> PyErr {
    PyOSError::new_err(e.to_string())
}
