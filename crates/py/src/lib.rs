//! `skyhaul._core`: the functions of the Rust crates that the Python package needs. The public interface is in
//! `python/skyhaul`.
#![forbid(unsafe_code)]
#![expect(clippy::needless_pass_by_value, reason = "arguments of Python functions arrive as values")]

mod analysis;
mod attack;
mod compare;
mod control;
mod error;
mod evaluation;
mod film;
mod progress;
mod reproduction;
mod run;
mod study;
mod table;
mod unfinished;

/// The extension module.
#[pyo3::pymodule]
mod _core {
    #[pymodule_export]
    use super::analysis::{closed_form, closed_forms, jain, predict_rate, transmission_period};
    #[pymodule_export]
    use super::attack::{Found, attack};
    #[pymodule_export]
    use super::compare::compare;
    #[pymodule_export]
    use super::control::base::{Control, Random};
    #[pymodule_export]
    use super::control::events::{Ack, Loss, Lost, Probe, RateSample, Sent, Start, Transmit};
    #[pymodule_export]
    use super::error::{ControlError, ScenarioError, SkyhaulError, StudyError};
    #[pymodule_export]
    use super::evaluation::{Evaluated, Evaluating};
    #[pymodule_export]
    use super::film::fit_video;
    #[pymodule_export]
    use super::reproduction::{Reproduced, Reproduction};
    #[pymodule_export]
    use super::run::{RunResult, cache_dir, check, presets, quantities, run, schema};
    #[pymodule_export]
    use super::study::{Outcome, Study, estimate, main, number, run_cell, short, studies, sweep_text};
    #[pymodule_export]
    use super::table::Table;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(m: &Bound<'_, PyModule>) -> PyResult<()> {
        // Each error sets its own; these are the defaults.
        let error = m.py().get_type::<ControlError>();
        error.setattr("time_s", f64::NAN)?;
        error.setattr("flow", "")?;
        error.setattr("method", "")?;
        m.add("__version__", skyhaul_lab::VERSION)
    }
}
