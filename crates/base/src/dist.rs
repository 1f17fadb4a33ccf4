//! Distributions of random sizes and times, from which workloads draw.

#[cfg(feature = "serde")]
use crate::amount::plain;
#[cfg(feature = "schema")]
use crate::amount::{Size, Time};
use crate::{Duration, Rng, math};
use alloc::vec::Vec;

/// The largest size: TCP streams of the simulator count bytes in 63 bits.
const LARGEST_SIZE: u64 = 1 << 60;
/// The longest time: a leap year.
const LONGEST_TIME: Duration = Duration::from_secs(366 * 86_400);

/// Invalid parameters of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum InvalidDistribution {
    /// An upper bound not above the lower.
    #[error("must be above min: write a larger size")]
    Bounds,
    /// No size to choose from.
    #[error("empty: name at least one size")]
    EmptyList,
    /// A mean of more than a year.
    #[error("longer than a year")]
    LongTime,
    /// A shape at which the distribution has no mean.
    #[error("a shape of {0} has no mean: write a number above 1, such as 1.5")]
    NoMean(f64),
    /// A size outside the range of transfers, with its key.
    #[error("a transfer must have from 1 B to 2^60 B")]
    NoTransfer(&'static str),
    /// An invalid shape.
    #[error("{0}: write a number above 0, such as 1.2")]
    Shape(f64),
    /// A standard deviation out of bounds.
    #[error("{0}: write a number from 0 to 10")]
    Sigma(f64),
}

impl InvalidDistribution {
    /// The key concerned, as a path within the distribution; empty for the whole.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Bounds => "pareto.max",
            Self::EmptyList => "list",
            Self::LongTime => "",
            Self::NoMean(_) | Self::Shape(_) => "pareto.shape",
            Self::NoTransfer(key) => key,
            Self::Sigma(_) => "lognormal.sigma",
        }
    }
}

/// Times drawn at random. Short form: a time, always the same.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "TimesSpec"))]
pub enum Times {
    /// A constant.
    Constant(
        #[cfg_attr(feature = "serde", serde(with = "plain::time"))]
        #[cfg_attr(feature = "schema", schemars(with = "Time"))]
        Duration,
    ),
    /// Exponentially distributed with this mean.
    Exponential(
        #[cfg_attr(feature = "serde", serde(with = "plain::time"))]
        #[cfg_attr(feature = "schema", schemars(with = "Time"))]
        Duration,
    ),
    /// Pareto distributed.
    Pareto {
        /// The mean.
        #[cfg_attr(feature = "serde", serde(with = "plain::time"))]
        #[cfg_attr(feature = "schema", schemars(with = "Time"))]
        mean: Duration,
        /// The shape, above 1: the smaller, the heavier the tail; the variance is infinite up to 2.
        shape: f64,
    },
}

impl Times {
    /// The mean, in seconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant(mean) | Self::Exponential(mean) | Self::Pareto { mean, .. } => mean.as_secs_f64(),
        }
    }

    /// Refuses parameters outside their domain, and times longer than a year.
    ///
    /// # Errors
    /// The key, and a message that says what to write instead.
    pub fn validate(&self) -> Result<(), InvalidDistribution> {
        match *self {
            Self::Pareto { shape, .. } if !(shape > 1.0 && shape.is_finite()) => {
                Err(InvalidDistribution::NoMean(shape))
            }
            _ if self.mean() > LONGEST_TIME.as_secs_f64() => Err(InvalidDistribution::LongTime),
            _ => Ok(()),
        }
    }

    /// A sample (inverse transform: one draw from the stream, none for a constant). A Pareto distributed time is at most
    /// 366 days.
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        match *self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => Duration::from_secs_f64(rng.exponential(mean.as_secs_f64())),
            Self::Pareto { mean, shape } => {
                let least = mean.as_secs_f64() * (shape - 1.0) / shape;
                let long = least / math::pow(1.0 - rng.unit(), 1.0 / shape);
                Duration::from_secs_f64(long.min(LONGEST_TIME.as_secs_f64()))
            }
        }
    }
}

/// Sizes drawn at random. Short form: a size, always the same.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SizesSpec"))]
pub enum Sizes {
    /// A constant.
    Constant(
        #[cfg_attr(feature = "serde", serde(with = "plain::size"))]
        #[cfg_attr(feature = "schema", schemars(with = "Size"))]
        u64,
    ),
    /// Exponentially distributed with this mean.
    Exponential(
        #[cfg_attr(feature = "serde", serde(with = "plain::size"))]
        #[cfg_attr(feature = "schema", schemars(with = "Size"))]
        u64,
    ),
    /// One of these sizes, with equal probability.
    List(
        #[cfg_attr(feature = "serde", serde(with = "plain::sizes"))]
        #[cfg_attr(feature = "schema", schemars(with = "Vec<Size>"))]
        Vec<u64>,
    ),
    /// Lognormally distributed.
    Lognormal {
        /// The median.
        #[cfg_attr(feature = "serde", serde(with = "plain::size"))]
        #[cfg_attr(feature = "schema", schemars(with = "Size"))]
        median: u64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// Pareto distributed between two bounds.
    Pareto {
        /// Smallest.
        #[cfg_attr(feature = "serde", serde(with = "plain::size"))]
        #[cfg_attr(feature = "schema", schemars(with = "Size"))]
        min: u64,
        /// Largest.
        #[cfg_attr(feature = "serde", serde(with = "plain::size"))]
        #[cfg_attr(feature = "schema", schemars(with = "Size"))]
        max: u64,
        /// The shape, above 0: the smaller, the heavier the tail.
        shape: f64,
    },
}

impl Sizes {
    /// The mean in bytes; for a lognormal size, without regard to the largest simulated transfer.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant(mean) | Self::Exponential(mean) => mean as f64,
            Self::List(ref sizes) => sizes.iter().map(|s| *s as f64).sum::<f64>() / sizes.len() as f64,
            Self::Lognormal { median, sigma } => median as f64 * math::exp(sigma * sigma / 2.0),
            Self::Pareto { min, max, shape } => {
                let (low, high) = (min as f64, max as f64);
                let ratio = low / high;
                if (shape - 1.0).abs() < 1e-9 {
                    return low * math::ln(1.0 / ratio) / (1.0 - ratio);
                }
                let scale = low * shape / (shape - 1.0) / (1.0 - math::pow(ratio, shape));
                scale * (1.0 - math::pow(ratio, shape - 1.0))
            }
        }
    }

    /// Refuses parameters outside their domain, and sizes that a transfer cannot have.
    ///
    /// # Errors
    /// The key, and a message that says what to write instead.
    pub fn validate(&self) -> Result<(), InvalidDistribution> {
        let transfer = |key, n: u64| {
            let good = (1..=LARGEST_SIZE).contains(&n);
            if good { Ok(()) } else { Err(InvalidDistribution::NoTransfer(key)) }
        };
        match *self {
            Self::Constant(n) => transfer("", n),
            Self::Exponential(mean) => transfer("exponential", mean),
            Self::List(ref list) if list.is_empty() => Err(InvalidDistribution::EmptyList),
            Self::List(ref list) => list.iter().try_for_each(|n| transfer("list", *n)),
            Self::Lognormal { sigma, .. } if !(0.0..=10.0).contains(&sigma) => {
                Err(InvalidDistribution::Sigma(sigma))
            }
            Self::Lognormal { median, .. } => transfer("lognormal.median", median),
            Self::Pareto { shape, .. } if !(shape > 0.0 && shape.is_finite()) => {
                Err(InvalidDistribution::Shape(shape))
            }
            Self::Pareto { min, max, .. } => {
                transfer("pareto.min", min)?;
                transfer("pareto.max", max)?;
                if min >= max { Err(InvalidDistribution::Bounds) } else { Ok(()) }
            }
        }
    }

    /// A sample in whole bytes, from 1 to 2^60: one draw from the stream, two for a lognormal size, none for a constant.
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
        (math::floor(size + 0.5) as u64).clamp(1, LARGEST_SIZE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(n: u32, mut draw: impl FnMut(&mut Rng) -> f64) -> f64 {
        let mut rng = Rng::stream(7, "test");
        (0..n).map(|_| draw(&mut rng)).sum::<f64>() / f64::from(n)
    }

    #[test]
    fn draws_have_the_mean_that_is_stated() {
        let all = [
            Sizes::Constant(1000),
            Sizes::Exponential(1000),
            Sizes::List(alloc::vec![500, 1500]),
            Sizes::Lognormal { median: 1000, sigma: 0.5 },
            Sizes::Pareto { min: 500, max: 50_000, shape: 1.5 },
            Sizes::Pareto { min: 500, max: 50_000, shape: 1.0 },
        ];
        for sizes in all {
            let found = mean(200_000, |rng| sizes.draw(rng) as f64);
            assert!((found / sizes.mean() - 1.0).abs() < 0.02, "{sizes:?}: {found} against {}", sizes.mean());
        }
        let second = Duration::from_secs(1);
        let all =
            [Times::Constant(second), Times::Exponential(second), Times::Pareto { mean: second, shape: 3.0 }];
        for times in all {
            let found = mean(200_000, |rng| times.draw(rng).as_secs_f64());
            assert!((found - 1.0).abs() < 0.02, "{times:?}: {found}");
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
