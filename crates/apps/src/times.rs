//! Times drawn at random.

use crate::short::Text;
use schemars::{Schema, SchemaGenerator};
use skyhaul_base::quantity::{QuantityError, Time, plain};
use skyhaul_base::{Duration, Rng, math};

/// Longest phase of a source.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// Times drawn at random. Short form: a time, always the same.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "TimesSpec")]
pub enum Times {
    /// Always the same.
    Constant(
        #[serde(with = "plain::time")]
        #[schemars(with = "Time")]
        Duration,
    ),
    /// Exponentially distributed with this mean.
    Exponential(
        #[serde(with = "plain::time")]
        #[schemars(with = "Time")]
        Duration,
    ),
    /// Pareto distributed.
    Pareto {
        /// The mean.
        #[serde(with = "plain::time")]
        #[schemars(with = "Time")]
        mean: Duration,
        /// The shape, more than 1: the smaller, the heavier the tail; the variance is infinite up to 2.
        shape: f64,
    },
}

/// Why times make no sense.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// A shape without a mean.
    #[error("{0} is no shape with a mean: write a number above 1, such as 1.5")]
    Shape(f64),
    /// The mean.
    #[error("longer than a year")]
    TooLong,
}

impl Invalid {
    /// What follows the key of the times.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Shape(_) => ".pareto.shape",
            Self::TooLong => "",
        }
    }
}

impl Times {
    /// Refuses a distribution without a mean, and one whose mean is longer than a year.
    ///
    /// # Errors
    /// Which of them.
    pub fn validate(&self) -> Result<(), Invalid> {
        match *self {
            Self::Pareto { shape, .. } if !(shape > 1.0 && shape.is_finite()) => Err(Invalid::Shape(shape)),
            _ if self.mean() > LONGEST.as_secs_f64() => Err(Invalid::TooLong),
            _ => Ok(()),
        }
    }

    /// The mean, in seconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant(mean) | Self::Exponential(mean) | Self::Pareto { mean, .. } => mean.as_secs_f64(),
        }
    }

    /// A draw (inverse transform: one draw of the stream, none for a constant).
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        match *self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => Duration::from_secs_f64(rng.exponential(mean.as_secs_f64())),
            Self::Pareto { mean, shape } => {
                let least = mean.as_secs_f64() * (shape - 1.0) / shape;
                let long = least / math::pow(1.0 - rng.unit(), 1.0 / shape);
                Duration::from_secs_f64(long.min(LONGEST.as_secs_f64()))
            }
        }
    }
}

impl Text for Times {
    const EXPECTING: &'static str = "a time such as \"1 s\", or a table such as { exponential = \"1 s\" } or \
        { pareto = { mean = \"1 s\", shape = 1.5 } }";
    fn from_text(text: &str) -> Result<Self, QuantityError> {
        text.parse::<Time>().map(|t| Self::Constant(t.0))
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a time with a unit, such as \"{n} s\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Time>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_that_is_stated() {
        let second = Duration::from_secs(1);
        let pareto = Times::Pareto { mean: second, shape: 3.0 };
        for times in [Times::Constant(second), Times::Exponential(second), pareto] {
            let mut rng = Rng::stream(7, "test");
            let found = (0..200_000).map(|_| times.draw(&mut rng).as_secs_f64()).sum::<f64>() / 200_000.0;
            assert!((found - 1.0).abs() < 0.02, "{times:?}: {found}");
        }
    }
}
