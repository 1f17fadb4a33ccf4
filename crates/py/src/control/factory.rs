//! Creates the instances of a user's control class, one per connection.

use super::base::Control;
use super::bridge::Bridge;
use super::fail;
use super::value::keywords;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use skyhaul_cc::user::{self, Options, Request};
use skyhaul_cc::{Config, CongestionControl, Controls};
use skyhaul_scenario::Resolved;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The user's own controls: name, class, and a fingerprint of the class's source if it is known.
pub(crate) type UserControls = Vec<(String, Py<PyType>, Option<String>)>;

/// Creates instances of one class.
#[derive(Debug)]
struct Factory {
    class: Py<PyType>,
    /// Name of the class.
    name: String,
    fingerprint: Option<String>,
    /// Ends the run once it is true.
    stop: Arc<AtomicBool>,
}

/// The factories of the controls that a call from Python provides; `stop` ends the runs that use them.
///
/// # Errors
/// If a class has no name.
pub(crate) fn controls(py: Python<'_>, own: &UserControls, stop: &Arc<AtomicBool>) -> PyResult<Controls> {
    let mut controls = Controls::default();
    for (name, class, fingerprint) in own {
        let factory = Factory {
            class: class.clone_ref(py),
            name: class.bind(py).name()?.to_string(),
            fingerprint: fingerprint.clone(),
            stop: stop.clone(),
        };
        controls.provide(name, factory);
    }
    Ok(controls)
}

/// Whether a run of this scenario calls Python. Such a run holds the interpreter's lock throughout: to take the lock for
/// each event would cost more than most controls, and Python hands it to waiting threads every few milliseconds anyway.
pub(crate) fn uses_own(scenario: &Resolved) -> bool {
    scenario.flows.iter().any(|g| matches!(g.cc, Config::User(_)))
}

impl Factory {
    fn make<'py>(&self, py: Python<'py>, request: &Request<'_>) -> PyResult<Bound<'py, Control>> {
        let object = self.class.bind(py).call((), Some(&keywords(py, request.options)?))?;
        let control = object.cast_into::<Control>().map_err(|e| {
            PyTypeError::new_err(format!("{} is no instance of skyhaul.Control", e.into_inner()))
        })?;
        Control::bind(&control, request.rules, request.flow)?;
        Ok(control)
    }
}

impl user::Factory for Factory {
    fn build(&self, request: &Request<'_>) -> Result<Box<dyn CongestionControl>, user::Error> {
        Python::attach(|py| match self.make(py, request) {
            Ok(control) => {
                Ok(Box::new(Bridge::new(&control, &self.name, request.flow, self.stop.clone())) as _)
            }
            // Ends the run, as an exception from any other method does.
            Err(e) => fail(py, e, request.flow, &self.name, "__init__"),
        })
    }

    fn check(&self, options: &Options) -> Result<(), user::Error> {
        let refusal = |py: Python<'_>| {
            let helper = py.import("skyhaul._control")?.getattr("refused_options")?;
            helper.call1((&self.class, keywords(py, options)?))?.extract::<Option<String>>()
        };
        match Python::attach(|py| refusal(py).map_err(|e| e.to_string())) {
            Ok(None) => Ok(()),
            Ok(Some(why)) | Err(why) => Err(why.into()),
        }
    }

    fn fingerprint(&self) -> Option<String> {
        self.fingerprint.clone()
    }
}
