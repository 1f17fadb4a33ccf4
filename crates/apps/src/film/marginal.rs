//! Sizes of frames of a type: a distribution, sampled by the inverse of its cumulative distribution function.

use super::{gamma, normal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_base::amount::{Size, plain};
use skyhaul_base::math;
use std::sync::Arc;

/// The largest frame, bytes.
pub(super) const LARGEST: u64 = 1 << 24;
/// Cells of the table for the inverse of a distribution.
const CELLS: usize = 512;
/// Maximum cells of a histogram.
const MAX_CELLS: usize = 4096;

/// The sizes of frames of one type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Marginal {
    /// A gamma distribution.
    Gamma {
        /// The shape, above 0: the inverse of the square of the coefficient of variation.
        shape: f64,
        /// The scale: the mean is scale times shape.
        #[serde(with = "plain::size")]
        #[schemars(with = "Size")]
        scale: u64,
    },
    /// A histogram of measured sizes, uniform within each cell.
    Histogram {
        /// Bounds of the cells, ascending: one more than `shares`.
        #[serde(with = "plain::sizes")]
        #[schemars(with = "Vec<Size>")]
        edges: Vec<u64>,
        /// Weight of each cell; normalised by the sum.
        shares: Vec<f64>,
    },
    /// A lognormal distribution.
    Lognormal {
        /// The median.
        #[serde(with = "plain::size")]
        #[schemars(with = "Size")]
        median: u64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
}

/// Why sizes are invalid: the key within the sizes, and a sentence.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InvalidSizes {
    /// An invalid shape.
    #[error("{0}: write a shape from 0.01 to 10000, such as 2")]
    Shape(f64),
    /// An invalid scale or median.
    #[error("write a size from 1 B to 16 MiB")]
    Size(&'static str),
    /// A deviation out of bounds.
    #[error("{0}: write a number from 0 to 5")]
    Sigma(f64),
    /// A histogram without cells, with too many, or with a different number of shares.
    #[error("{edges} edges and {shares} shares: write from 1 to {MAX_CELLS} shares, and one edge more")]
    Cells {
        /// Number of edges.
        edges: usize,
        /// Number of shares.
        shares: usize,
    },
    /// Edges that are not ascending.
    #[error("{0} B is not above the previous edge: write ascending sizes, at most 16 MiB")]
    Edge(u64),
    /// Invalid shares.
    #[error("write numbers ≥ 0, at least one of them above 0")]
    Shares,
    /// Bounds that exclude everything.
    #[error("write a size above least, 16 MiB at most")]
    Bounds,
    /// Frames without bytes.
    #[error("the mean is {0} B: write sizes with a mean of at least 1 B")]
    Nothing(f64),
}

impl InvalidSizes {
    /// The key within the table of the type of frames.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Self::Shape(_) => "sizes.gamma.shape",
            Self::Size(key) => key,
            Self::Sigma(_) => "sizes.lognormal.sigma",
            Self::Cells { .. } | Self::Shares => "sizes.histogram.shares",
            Self::Edge(_) => "sizes.histogram.edges",
            Self::Bounds => "most",
            Self::Nothing(_) => "sizes",
        }
    }
}

impl Marginal {
    fn validate(&self) -> Result<(), InvalidSizes> {
        let size = |n: u64, key| {
            if (1..=LARGEST).contains(&n) { Ok(()) } else { Err(InvalidSizes::Size(key)) }
        };
        match self {
            Self::Gamma { shape, .. } if !(0.01..=1e4).contains(shape) => Err(InvalidSizes::Shape(*shape)),
            Self::Gamma { scale, .. } => size(*scale, "sizes.gamma.scale"),
            Self::Lognormal { sigma, .. } if !(0.0..=5.0).contains(sigma) => Err(InvalidSizes::Sigma(*sigma)),
            Self::Lognormal { median, .. } => size(*median, "sizes.lognormal.median"),
            Self::Histogram { edges, shares } => {
                if shares.is_empty() || shares.len() > MAX_CELLS || edges.len() != shares.len() + 1 {
                    return Err(InvalidSizes::Cells { edges: edges.len(), shares: shares.len() });
                }
                if let Some(w) = edges.windows(2).find(|w| w[1] <= w[0] || w[1] > LARGEST) {
                    return Err(InvalidSizes::Edge(w[1]));
                }
                let sum: f64 = shares.iter().sum();
                let sound = shares.iter().all(|p| *p >= 0.0) && sum > 0.0 && sum.is_finite();
                if sound { Ok(()) } else { Err(InvalidSizes::Shares) }
            }
        }
    }
}

/// The inverse of a distribution of sizes within bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Inverse {
    curve: Curve,
    least: f64,
    most: f64,
    mean: f64,
    variance: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Curve {
    /// Sizes at cumulative probabilities, with linear interpolation.
    Cells(Arc<[(f64, f64)]>),
    /// Sizes at multiples of 1/[`CELLS`], with linear interpolation; in the first and the last cell the
    /// distribution itself.
    Smooth { at: Arc<[f64; CELLS]>, exact: Exact },
}

/// A distribution without bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Exact {
    Gamma { of_scale_1: gamma::Quantiles, scale: f64 },
    Lognormal { median: f64, sigma: f64 },
}

impl Exact {
    fn gamma(shape: f64, scale: f64) -> Self {
        Self::Gamma { of_scale_1: gamma::Quantiles::new(shape, LARGEST as f64 / scale), scale }
    }
    /// The quantile `x` of the sizes; `guess` is a nearby value.
    fn at(self, x: f64, guess: f64) -> f64 {
        match self {
            Self::Gamma { of_scale_1, scale } => scale * of_scale_1.at(x, guess / scale),
            Self::Lognormal { median, sigma } => {
                (median * math::exp(sigma * normal::inverse(x))).min(LARGEST as f64)
            }
        }
    }
}

impl Inverse {
    /// A distribution with these sizes; smaller ones count as `least`, larger ones as `most` bytes.
    ///
    /// # Errors
    /// What is invalid.
    pub fn new(sizes: &Marginal, least: u64, most: u64) -> Result<Self, InvalidSizes> {
        sizes.validate()?;
        if most <= least || most > LARGEST {
            return Err(InvalidSizes::Bounds);
        }
        let curve = match sizes {
            Marginal::Gamma { shape, scale } => smooth(Exact::gamma(*shape, *scale as f64)),
            Marginal::Lognormal { median, sigma } => {
                smooth(Exact::Lognormal { median: *median as f64, sigma: *sigma })
            }
            Marginal::Histogram { edges, shares } => {
                let sum: f64 = shares.iter().sum();
                let mut below = 0.0;
                let mut cells = vec![(0.0, edges[0] as f64)];
                for (share, edge) in shares.iter().zip(&edges[1..]) {
                    below += share / sum;
                    cells.push((below, *edge as f64));
                }
                Curve::Cells(cells.into())
            }
        };
        let (least, most) = (least as f64, most as f64);
        let mut inverse = Self { curve, least, most, mean: 0.0, variance: 0.0 };
        let square = inverse.integral(|s| s * s);
        inverse.mean = inverse.integral(|s| s);
        inverse.variance = square - inverse.mean * inverse.mean;
        if inverse.mean < 1.0 {
            return Err(InvalidSizes::Nothing(inverse.mean));
        }
        Ok(inverse)
    }

    /// The quantile `x`, from 0 to 1, of the sizes, bytes.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        let size = match &self.curve {
            Curve::Cells(cells) => within(cells, x),
            Curve::Smooth { at, exact } => {
                let place = x * CELLS as f64;
                match place as usize {
                    0 => exact.at(x, at[1]),
                    cell if cell + 1 >= CELLS => exact.at(x, at[CELLS - 1]),
                    cell => at[cell] + (place - cell as f64) * (at[cell + 1] - at[cell]),
                }
            }
        };
        size.clamp(self.least, self.most)
    }

    /// Mean in bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }
    /// Variance in bytes².
    #[must_use]
    pub fn variance(&self) -> f64 {
        self.variance
    }
    /// The largest size in bytes.
    #[must_use]
    pub fn largest(&self) -> f64 {
        self.at(1.0)
    }

    /// The mean of a function of the sizes: the midpoint rule, finer in the first and the last cell.
    fn integral(&self, of: impl Fn(f64) -> f64) -> f64 {
        let midpoints = |from: f64, to: f64, n: usize| -> f64 {
            let width = (to - from) / n as f64;
            (0..n).map(|i| of(self.at(from + (i as f64 + 0.5) * width))).sum::<f64>() * width
        };
        let edge = 1.0 / CELLS as f64;
        midpoints(0.0, edge, 32)
            + midpoints(edge, 1.0 - edge, 4 * (CELLS - 2))
            + midpoints(1.0 - edge, 1.0, 128)
    }
}

/// Interpolates linearly between the sizes at cumulative probabilities.
fn within(cells: &[(f64, f64)], x: f64) -> f64 {
    let next = cells.partition_point(|(below, _)| *below <= x).clamp(1, cells.len() - 1);
    let ((x0, s0), (x1, s1)) = (cells[next - 1], cells[next]);
    if x1 > x0 { s0 + (x - x0) * (s1 - s0) / (x1 - x0) } else { s1 }
}

fn smooth(exact: Exact) -> Curve {
    let mut at = [0.0; CELLS];
    for cell in 1..CELLS {
        at[cell] = exact.at(cell as f64 / CELLS as f64, at[cell - 1]);
    }
    Curve::Smooth { at: Arc::new(at), exact }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Rng;

    fn moments(sizes: &Marginal, least: u64, most: u64) -> (f64, f64) {
        let inverse = Inverse::new(sizes, least, most).unwrap();
        let mut rng = Rng::stream(1, "sizes");
        let n = 200_000;
        let drawn: Vec<f64> = (0..n).map(|_| inverse.at(rng.unit())).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(n);
        let variance = drawn.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        assert!(math::abs(mean / inverse.mean() - 1.0) < 0.01, "{mean} {}", inverse.mean());
        assert!(math::abs(variance / inverse.variance() - 1.0) < 0.03, "{variance} {}", inverse.variance());
        (inverse.mean(), math::sqrt(inverse.variance()) / inverse.mean())
    }

    #[test]
    fn parametric_sizes_have_their_moments() {
        let (mean, cov) = moments(&Marginal::Gamma { shape: 6.25, scale: 480 }, 1, LARGEST);
        assert!(math::abs(mean - 3000.0) < 1.0 && math::abs(cov - 0.4) < 1e-3, "{mean} {cov}");
        let (mean, _) = moments(&Marginal::Lognormal { median: 1000, sigma: 0.5 }, 1, LARGEST);
        assert!(math::abs(mean - 1000.0 * math::exp(0.125)) < 2.0, "{mean}");
    }

    #[test]
    fn sizes_in_the_tails_are_those_of_the_distribution() {
        // Of the bounds, `least` reaches into the first cell or beyond it, and `most` into the last one or before it.
        for (shape, least, most) in
            [(6.25, 26, 8511), (1.452, 26, 8511), (1.452, 1, LARGEST), (1.687, 900, 2000)]
        {
            let inverse = Inverse::new(&Marginal::Gamma { shape, scale: 700 }, least, most).unwrap();
            let exact = gamma::Quantiles::new(shape, 1e6);
            let edge = 1.0 / CELLS as f64;
            for i in 1..200 {
                let part = edge * f64::from(i) / 200.0;
                for x in [part, 1.0 - part, 1.0 - part * 1e-6] {
                    let expected = (700.0 * exact.at(x, shape)).clamp(least as f64, most as f64);
                    assert!(
                        math::abs(inverse.at(x) / expected - 1.0) < 1e-9,
                        "{shape} {x}: {}",
                        inverse.at(x)
                    );
                }
            }
            assert_eq!((inverse.at(0.0), inverse.at(1.0)), (least as f64, most as f64));
        }
    }

    #[test]
    fn a_histogram_is_met_exactly() {
        let sizes = Marginal::Histogram { edges: vec![100, 200, 600], shares: vec![3.0, 1.0] };
        let inverse = Inverse::new(&sizes, 1, 1000).unwrap();
        for (x, size) in [(0.0, 100.0), (0.375, 150.0), (0.75, 200.0), (0.875, 400.0), (1.0, 600.0)] {
            assert!(math::abs(inverse.at(x) - size) < 1e-9, "{x}: {}", inverse.at(x));
        }
        assert!(math::abs(inverse.mean() - (0.75 * 150.0 + 0.25 * 400.0)) < 0.1);
        let bounded = Inverse::new(&sizes, 150, 300).unwrap();
        assert_eq!((bounded.at(0.0), bounded.at(1.0)), (150.0, 300.0));
        // An empty cell has no frames.
        let sizes = Marginal::Histogram { edges: vec![0, 10, 20, 30], shares: vec![1.0, 0.0, 1.0] };
        let inverse = Inverse::new(&sizes, 0, 100).unwrap();
        assert!((0..1000).all(|i| !(10.5..19.5).contains(&inverse.at(f64::from(i) / 1000.0))));
    }

    #[test]
    fn sizes_without_sense_are_refused_and_say_where() {
        let refused = |sizes: Marginal, least, most| {
            let e = Inverse::new(&sizes, least, most).unwrap_err();
            format!("{}: {e}", e.key())
        };
        let gamma = |shape, scale| Marginal::Gamma { shape, scale };
        assert!(refused(gamma(0.0, 1), 1, 9).starts_with("sizes.gamma.shape: 0"));
        assert!(refused(gamma(f64::NAN, 1), 1, 9).starts_with("sizes.gamma.shape"));
        assert!(refused(gamma(2.0, 0), 1, 9).starts_with("sizes.gamma.scale"));
        assert!(refused(gamma(2.0, 9), 9, 9).starts_with("most: write a size above least"));
        let histogram = |edges: &[u64], shares: &[f64]| Marginal::Histogram {
            edges: edges.into(),
            shares: shares.into(),
        };
        assert!(refused(histogram(&[1], &[]), 1, 9).starts_with("sizes.histogram.shares: 1 edges and 0"));
        assert!(refused(histogram(&[5, 5], &[1.0]), 1, 9).starts_with("sizes.histogram.edges: 5 B"));
        assert!(refused(histogram(&[5, 6], &[-1.0]), 1, 9).contains("write numbers ≥ 0"));
        assert!(refused(histogram(&[5, 6], &[0.0]), 1, 9).contains("above 0"));
        assert!(refused(histogram(&[0, 1], &[1.0]), 0, 9).starts_with("sizes: the mean is 0.5"));
        let lognormal = Marginal::Lognormal { median: 0, sigma: 1.0 };
        assert!(refused(lognormal, 1, 9).starts_with("sizes.lognormal.median"));
    }
}
