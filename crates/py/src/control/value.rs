//! Values from Python: validation and error messages.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use skyhaul_cc::user::{OptionValue, Options};

/// A value with its type, for an error message; a long value is shown as its type alone.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "a value".to_owned(), |r| r.to_string());
    let kind = value.get_type().name().map_or_else(|_| "object".to_owned(), |n| n.to_string());
    if text.chars().count() > 60 { kind } else { format!("{text} ({kind})") }
}

/// A number for which `good` holds, or an exception that says what is accepted:
/// `what: 0.5 (float) is not accepted: write …`.
pub(crate) fn number(
    what: &str,
    value: &Bound<'_, PyAny>,
    accepted: &str,
    good: impl Fn(f64) -> bool,
) -> PyResult<f64> {
    let words = || format!("{what}: {} is not accepted: write {accepted}", shown(value));
    match value.extract::<f64>() {
        Ok(x) if good(x) => Ok(x),
        Ok(_) => Err(PyValueError::new_err(words())),
        Err(_) => Err(PyTypeError::new_err(words())),
    }
}

/// A whole number, 1 or more.
pub(crate) fn count(what: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    match value.extract::<u32>() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(PyValueError::new_err(format!(
            "{what}: {} is not accepted: write a whole number, 1 or more",
            shown(value)
        ))),
    }
}

/// One of a list of words.
pub(crate) fn word<T: Copy>(what: &str, value: &Bound<'_, PyAny>, known: &[(&str, T)]) -> PyResult<T> {
    let text = value.extract::<String>().ok();
    let found = text.and_then(|t| known.iter().find(|(name, _)| *name == t));
    found.map(|(_, v)| *v).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        PyValueError::new_err(format!(
            "{what}: {} is not accepted: write {}",
            shown(value),
            names.join(" or ")
        ))
    })
}

/// The value of an option as a Python object.
fn option<'py>(py: Python<'py>, value: &OptionValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        OptionValue::Flag(b) => b.into_pyobject(py)?.to_owned().into_any(),
        OptionValue::Integer(i) => i.into_pyobject(py)?.into_any(),
        OptionValue::Real(x) => x.into_pyobject(py)?.into_any(),
        OptionValue::Text(s) => s.into_pyobject(py)?.into_any(),
        OptionValue::List(all) => {
            let all: Vec<_> = all.iter().map(|v| option(py, v)).collect::<PyResult<_>>()?;
            PyList::new(py, all)?.into_any()
        }
        OptionValue::Table(all) => {
            let table = PyDict::new(py);
            for (key, value) in all {
                table.set_item(key, option(py, value)?)?;
            }
            table.into_any()
        }
    })
}

/// Options as keyword arguments: `reference-rtt` becomes `reference_rtt`.
pub(crate) fn keywords<'py>(py: Python<'py>, options: &Options) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    for (key, value) in &options.0 {
        table.set_item(key.replace('-', "_"), option(py, value)?)?;
    }
    Ok(table)
}
