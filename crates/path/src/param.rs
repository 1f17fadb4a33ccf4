//! Why a parameter of a model is invalid.

use alloc::format;
use alloc::string::String;
use core::convert::Infallible;
use core::error::Error;

/// Why a configuration is refused: displays as a sentence that says what to write instead.
pub trait Refusal: Error {
    /// The key that is wrong, as in scenario files.
    fn key(&self) -> &'static str;
}

/// An invalid parameter of a model.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// The value lies outside its range, or is not a number.
    #[error("`{name}` is {value}, but must {}", range(*min, *max))]
    OutOfRange {
        /// Name of the parameter, as in scenario files.
        name: &'static str,
        /// The value given.
        value: f64,
        /// Smallest accepted value.
        min: f64,
        /// Largest accepted value; [`f64::MAX`] stands for no bound but infinity.
        max: f64,
    },
}

/// What a value must do, for messages.
fn range(min: f64, max: f64) -> String {
    if max == f64::MAX { format!("be finite and at least {min}") } else { format!("lie in [{min}, {max}]") }
}

impl Refusal for ParamError {
    fn key(&self) -> &'static str {
        match self {
            Self::OutOfRange { name, .. } => name,
        }
    }
}

/// An invalid configuration with its own message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// The key, as in scenario files.
    pub key: &'static str,
    /// What to write instead.
    pub message: String,
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        self.key
    }
}

impl Refusal for Infallible {
    fn key(&self) -> &'static str {
        match *self {}
    }
}

/// `value` if it lies in [min, max]; refuses NaN.
pub(crate) fn within(name: &'static str, value: f64, min: f64, max: f64) -> Result<f64, ParamError> {
    if value >= min && value <= max {
        Ok(value)
    } else {
        Err(ParamError::OutOfRange { name, value, min, max })
    }
}

/// `value` if it is a probability.
pub(crate) fn probability(name: &'static str, value: f64) -> Result<f64, ParamError> {
    within(name, value, 0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_message_names_the_parameter_and_its_range() {
        let e = probability("p", 1.5).unwrap_err();
        assert_eq!(e.to_string(), "`p` is 1.5, but must lie in [0, 1]");
        let e = within("alpha", f64::INFINITY, 0.0, f64::MAX).unwrap_err();
        assert_eq!(e.to_string(), "`alpha` is inf, but must be finite and at least 0");
        assert!(probability("p", f64::NAN).is_err());
        assert!(probability("p", -0.1).is_err() && probability("p", f64::INFINITY).is_err());
        assert_eq!((probability("p", 0.0), probability("p", 1.0)), (Ok(0.0), Ok(1.0)));
    }
}
