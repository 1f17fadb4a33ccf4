//! Closed forms, by name.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use skyhaul_analysis::forms::{FORMS, Form};
use skyhaul_analysis::period::{Governs, Path, Period};
use skyhaul_analysis::predict::{self, Active, Bounds};
use skyhaul_analysis::{DomainError, fairness};

fn domain(e: DomainError) -> PyErr {
    PyValueError::new_err(e.to_string())
}

/// The closed forms: name, names of the arguments, description.
#[pyfunction]
pub(crate) fn closed_forms() -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
    FORMS.iter().map(|f| (f.name, f.arguments.to_vec(), f.description)).collect()
}

/// The value of a closed form.
#[pyfunction]
#[pyo3(signature = (name, *arguments))]
pub(crate) fn closed_form(name: &str, arguments: Vec<f64>) -> PyResult<f64> {
    let form = Form::named(name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no closed form \"{name}\"")))?;
    if arguments.len() != form.arguments.len() {
        let message =
            format!("{name}({}) was given {} arguments", form.arguments.join(", "), arguments.len());
        return Err(PyTypeError::new_err(message));
    }
    form.value(&arguments).map_err(domain)
}

/// RTT, T, T', their maximum and its name; with `acks`, acknowledgements delayed by `d`.
#[pyfunction]
#[pyo3(signature = (forward, reverse, packet, ack, propagation, w, acks=None, d=0.0))]
#[expect(clippy::too_many_arguments, reason = "a path is five numbers")]
pub(crate) fn transmission_period(
    forward: f64,
    reverse: f64,
    packet: f64,
    ack: f64,
    propagation: f64,
    w: f64,
    acks: Option<f64>,
    d: f64,
) -> PyResult<(f64, f64, f64, f64, &'static str)> {
    let path = Path::new(forward, reverse, packet, ack, propagation).map_err(domain)?;
    let Period { rtt, data, acks, length, governs } =
        path.delayed_period(w, acks.unwrap_or(w), d).map_err(domain)?;
    let governs = match governs {
        Governs::Rtt => "rtt",
        Governs::Data => "data",
        Governs::Acks => "acks",
    };
    Ok((rtt, data, acks, length, governs))
}

/// The smallest limit on the rate of a flow, and its name.
#[pyfunction]
pub(crate) fn predict_rate(
    fair_share: f64,
    window: f64,
    loss: f64,
    return_link: f64,
) -> PyResult<(f64, &'static str)> {
    let (rate, active) =
        predict::predict(&Bounds { fair_share, window, loss, return_link }).map_err(domain)?;
    let active = match active {
        Active::FairShare => "fair_share",
        Active::Loss => "loss",
        Active::None => "none",
        Active::ReturnLink => "return_link",
        Active::Window => "window",
    };
    Ok((rate, active))
}

/// Jain's fairness index.
#[pyfunction]
pub(crate) fn jain(values: Vec<f64>) -> PyResult<f64> {
    // Up to this bound no square overflows.
    match values.iter().find(|x| !(0.0..=1e100).contains(*x)) {
        _ if values.is_empty() => {
            Err(PyValueError::new_err("values is empty: fairness needs at least one flow"))
        }
        Some(x) => Err(PyValueError::new_err(format!("values has {x}: write numbers from 0 to 1e100"))),
        None => Ok(fairness::jain(&values)),
    }
}
