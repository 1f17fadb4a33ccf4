//! Sizes drawn at random.

use crate::short::Text;
use schemars::{Schema, SchemaGenerator};
use skyhaul_base::quantity::{QuantityError, Size, plain};
use skyhaul_base::{Rng, math};

/// Largest transfer: a TCP stream of the simulator counts bytes in 63 bits.
const LARGEST: u64 = 1 << 60;

/// Sizes drawn at random. Short form: a size, always the same.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SizesSpec")]
pub enum Sizes {
    /// Always the same.
    Constant(
        #[serde(with = "plain::size")]
        #[schemars(with = "Size")]
        u64,
    ),
    /// Exponentially distributed with this mean.
    Exponential(
        #[serde(with = "plain::size")]
        #[schemars(with = "Size")]
        u64,
    ),
    /// One of these, each as likely.
    List(
        #[serde(with = "plain::sizes")]
        #[schemars(with = "Vec<Size>")]
        Vec<u64>,
    ),
    /// The logarithm is normal.
    Lognormal {
        /// Half of the sizes are below.
        #[serde(with = "plain::size")]
        #[schemars(with = "Size")]
        median: u64,
        /// Deviation of the natural logarithm.
        sigma: f64,
    },
    /// Pareto distributed between two bounds.
    Pareto {
        /// Smallest.
        #[serde(with = "plain::size")]
        #[schemars(with = "Size")]
        min: u64,
        /// Largest.
        #[serde(with = "plain::size")]
        #[schemars(with = "Size")]
        max: u64,
        /// The shape, more than 0: the smaller, the heavier the tail.
        shape: f64,
    },
}

/// Why sizes make no sense.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// A list of no sizes.
    #[error("empty: name at least one size")]
    Empty,
    /// The key, and what is wrong with it.
    #[error("a transfer has from 1 B to 2^60 B")]
    Bytes(&'static str),
    /// The deviation of a lognormal size.
    #[error("{0}: write a number from 0 to 10")]
    Sigma(f64),
    /// The shape of a Pareto distribution.
    #[error("{0} is no shape: write a number above 0, such as 1.2")]
    Shape(f64),
    /// The bounds of a Pareto distribution.
    #[error("not above min: write a larger size")]
    Bounds,
}

impl Invalid {
    /// What follows the key of the sizes.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Empty => ".list",
            Self::Bytes(key) => key,
            Self::Sigma(_) => ".lognormal.sigma",
            Self::Shape(_) => ".pareto.shape",
            Self::Bounds => ".pareto.max",
        }
    }
}

impl Sizes {
    /// Refuses parameters that are outside their domain or contradict each other.
    ///
    /// # Errors
    /// The first of them.
    pub fn validate(&self) -> Result<(), Invalid> {
        let good = |key, n: u64| if (1..=LARGEST).contains(&n) { Ok(()) } else { Err(Invalid::Bytes(key)) };
        match *self {
            Self::Constant(n) => good("", n),
            Self::Exponential(mean) => good(".exponential", mean),
            Self::List(ref list) if list.is_empty() => Err(Invalid::Empty),
            Self::List(ref list) => list.iter().try_for_each(|n| good(".list", *n)),
            Self::Lognormal { sigma, .. } if !(0.0..=10.0).contains(&sigma) => Err(Invalid::Sigma(sigma)),
            Self::Lognormal { median, .. } => good(".lognormal.median", median),
            Self::Pareto { shape, .. } if !(shape > 0.0 && shape.is_finite()) => Err(Invalid::Shape(shape)),
            Self::Pareto { min, max, .. } => {
                good(".pareto.min", min)?;
                good(".pareto.max", max)?;
                if min < max { Ok(()) } else { Err(Invalid::Bounds) }
            }
        }
    }

    /// The mean in bytes; that of a lognormal size does not know the largest transfer that is simulated.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant(mean) | Self::Exponential(mean) => mean as f64,
            Self::List(ref sizes) => sizes.iter().map(|s| *s as f64).sum::<f64>() / sizes.len() as f64,
            Self::Lognormal { median, sigma } => median as f64 * math::exp(sigma * sigma / 2.0),
            Self::Pareto { min, max, shape } => {
                let (low, high) = (min as f64, max as f64);
                let share = low / high;
                if (shape - 1.0).abs() < 1e-9 {
                    return low * math::ln(1.0 / share) / (1.0 - share);
                }
                let scale = low * shape / (shape - 1.0) / (1.0 - math::pow(share, shape));
                scale * (1.0 - math::pow(share, shape - 1.0))
            }
        }
    }

    /// A draw: one of the stream, two for a lognormal size, none for a constant.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let size = match *self {
            Self::Constant(size) => return size,
            Self::List(ref sizes) => return sizes[rng.below(sizes.len() as u64) as usize],
            Self::Exponential(mean) => rng.exponential(mean as f64),
            Self::Lognormal { median, sigma } => median as f64 * math::exp(sigma * rng.normal()),
            Self::Pareto { min, max, shape } => {
                let (low, high) = (min as f64, max as f64);
                let u = rng.unit() * (1.0 - math::pow(low / high, shape));
                (low / math::pow(1.0 - u, 1.0 / shape)).min(high)
            }
        };
        // Out-of-range floats saturate.
        (math::floor(size + 0.5) as u64).clamp(1, LARGEST)
    }
}

impl Text for Sizes {
    const EXPECTING: &'static str = "a size such as \"30 kB\", or a table such as { exponential = \"30 kB\" }, \
        { list = [\"10 kB\", \"1 MB\"] }, { lognormal = { median = \"10 kB\", sigma = 1.5 } } or \
        { pareto = { min = \"4 kB\", max = \"10 MB\", shape = 1.2 } }";
    fn from_text(text: &str) -> Result<Self, QuantityError> {
        text.parse::<Size>().map(|s| Self::Constant(s.0))
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a size with a unit, such as \"{n} kB\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Size>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_that_is_stated() {
        let all = [
            Sizes::Constant(1000),
            Sizes::Exponential(1000),
            Sizes::List(vec![500, 1500]),
            Sizes::Lognormal { median: 1000, sigma: 0.5 },
            Sizes::Pareto { min: 500, max: 50_000, shape: 1.5 },
            Sizes::Pareto { min: 500, max: 50_000, shape: 1.0 },
        ];
        for sizes in all {
            let mut rng = Rng::stream(7, "test");
            let found = (0..200_000).map(|_| sizes.draw(&mut rng) as f64).sum::<f64>() / 200_000.0;
            assert!((found / sizes.mean() - 1.0).abs() < 0.02, "{sizes:?}: {found} against {}", sizes.mean());
        }
        // ∫ x α L^α x^(−α−1) dx from L to H over 1 − (L/H)^α, α = 1.5, L = 500, H = 50000: 1350 / 0.999.
        let pareto = Sizes::Pareto { min: 500, max: 50_000, shape: 1.5 };
        assert!((pareto.mean() - 1350.0 / 0.999).abs() < 1e-6, "{}", pareto.mean());
    }

    #[test]
    fn bounded_sizes_stay_within_their_bounds() {
        let sizes = Sizes::Pareto { min: 500, max: 50_000, shape: 0.3 };
        let mut rng = Rng::stream(1, "test");
        for _ in 0..10_000 {
            assert!((500..=50_000).contains(&sizes.draw(&mut rng)));
        }
    }
}
