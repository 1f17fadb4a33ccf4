//! Why a configuration is invalid.

use alloc::string::{String, ToString};
use core::fmt;

/// An invalid configuration: the key, and a sentence that says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// The key that is wrong, as in scenario files, below the table of the orbit.
    pub key: String,
    /// The sentence.
    pub message: String,
    /// The file that is wrong, and its line; 0 means the whole file.
    pub file: Option<(String, usize)>,
}

impl Invalid {
    pub(crate) fn new(key: &str, message: impl fmt::Display) -> Self {
        Self { key: key.into(), message: message.to_string(), file: None }
    }
    /// The same error with the key below another key.
    pub(crate) fn below(mut self, key: &str) -> Self {
        self.key = if self.key.is_empty() { key.into() } else { alloc::format!("{key}.{}", self.key) };
        self
    }
}

/// Refuses a value outside [min, max], and NaN.
pub(crate) fn within(key: &str, value: f64, min: f64, max: f64, unit: &str) -> Result<(), Invalid> {
    if value >= min && value <= max {
        return Ok(());
    }
    Err(Invalid::new(key, format_args!("{value} {unit} is not from {min} to {max} {unit}")))
}
