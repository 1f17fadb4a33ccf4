//! Congestion controls written in Python.
//!
//! [`base::Control`] is the base class: it holds the window, what is known of the path, and requests to the sender, and
//! behaves like NewReno with SACK unless a method is overridden. [`bridge::Bridge`] is the simulator's view: it calls
//! only the methods that the class overrides, and reads the attribute `policy`. [`factory::Factory`] creates one
//! instance per connection.

pub(crate) mod base;
mod bridge;
pub(crate) mod events;
mod factory;
mod policy;
mod value;

pub(crate) use factory::{UserControls, controls, uses_own};

use crate::error;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use skyhaul_cc::user::Failed;
use skyhaul_sim::Failure;
use std::panic::resume_unwind;

/// An exception on its way from a control to the caller of the simulation.
#[derive(Debug)]
struct Raised {
    error: PyErr,
    flow: String,
    /// Class and method, as in `MyControl.on_ack`.
    method: String,
}

/// Ends the run: unwinds to [`skyhaul_sim::caught`], which makes a [`Failure`] of it.
fn fail(py: Python<'_>, error: PyErr, flow: &str, class: &str, method: &str) -> ! {
    let value = error.value(py);
    let kind = value.get_type().name().map_or_else(|_| "an exception".to_owned(), |n| n.to_string());
    let words = value.to_string().replace('\n', " ");
    let separator = if words.is_empty() { "" } else { ": " };
    let message = format!("flow {flow}: {class}.{method} raised {kind}{separator}{words}");
    let detail = traceback(py, &error).ok();
    let method = format!("{class}.{method}");
    let source = Raised { error, flow: flow.to_owned(), method };
    resume_unwind(Box::new(Failed { message, detail, source: Some(Box::new(source)) }))
}

fn traceback(py: Python<'_>, error: &PyErr) -> PyResult<String> {
    // `PyErr::value` may lack the traceback; `into_value` attaches it.
    let value = error.clone_ref(py).into_value(py);
    let lines = py.import("traceback")?.call_method1("format_exception", (value,))?;
    Ok(lines.extract::<Vec<String>>()?.concat().trim_end().to_owned())
}

/// The exception of a failed run: `ControlError`, with the simulated time `time_s`, the `flow` and the `method`, and with
/// what the control raised as its cause. If the failure is not from Python, such as a broken invariant, it has no cause, and
/// `flow` and `method` are None. Exceptions that are not errors (Ctrl-C, exit) are passed on unchanged.
pub(crate) fn exception(py: Python<'_>, failure: Failure) -> PyErr {
    let (words, at) = (failure.to_string(), failure.at.as_secs_f64());
    let raised = failure.source.and_then(|s| s.downcast::<Raised>().ok()).map(|raised| *raised);
    if let Some(raised) = raised.as_ref().filter(|r| !r.error.is_instance_of::<PyException>(py)) {
        return raised.error.clone_ref(py);
    }
    let e = error::ControlError::new_err(words);
    let value = e.value(py);
    let (flow, method) = raised.as_ref().map(|r| (&r.flow, &r.method)).unzip();
    let reported = value
        .setattr("time_s", at)
        .and_then(|()| value.setattr("flow", flow))
        .and_then(|()| value.setattr("method", method));
    if let Some(raised) = raised {
        e.set_cause(py, Some(raised.error));
    }
    reported.err().unwrap_or(e)
}
