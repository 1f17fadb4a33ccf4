//! Statistics over seeds: Student-t intervals, paired differences and ratios, fairness.
//!
//! All sums run in the order of the seeds, so that results do not depend on scheduling.

pub use skyhaul_analysis::fairness::jain;
pub use skyhaul_analysis::student::t_quantile_975;
use skyhaul_base::math;

/// A mean over seeds with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean (or the ratio of means).
    pub mean: f64,
    /// Half-width of the 95 % interval; infinite with fewer than two seeds.
    pub half: f64,
    /// Number of seeds.
    pub n: usize,
}

impl Estimate {
    /// Lower end.
    #[must_use]
    pub fn low(&self) -> f64 {
        self.mean - self.half
    }
    /// Upper end.
    #[must_use]
    pub fn high(&self) -> f64 {
        self.mean + self.half
    }
    /// True if there is a mean, which is finite.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.n > 0 && self.mean.is_finite()
    }
}

/// Arithmetic mean; NaN of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample standard deviation; NaN of fewer than two values.
#[must_use]
pub fn deviation(values: &[f64]) -> f64 {
    let m = mean(values);
    let sum = values.iter().map(|x| (x - m) * (x - m)).sum::<f64>();
    math::sqrt(sum / (values.len() as f64 - 1.0))
}

/// Mean with its 95 % Student-t interval.
#[must_use]
pub fn estimate(values: &[f64]) -> Estimate {
    Estimate { mean: mean(values), half: half_width(values), n: values.len() }
}

/// Mean of the paired differences `left − scale·right − offset`.
///
/// # Panics
/// If the sides have different numbers of seeds.
#[must_use]
pub fn paired_difference(left: &[f64], right: &[f64], scale: f64, offset: f64) -> Estimate {
    assert_eq!(left.len(), right.len(), "both sides run with the same seeds");
    let d: Vec<f64> = left.iter().zip(right).map(|(l, r)| l - scale * r - offset).collect();
    estimate(&d)
}

/// Ratio of means `left / right` with the interval of its linearisation, which uses the pairing.
///
/// # Panics
/// If the sides have different numbers of seeds.
#[must_use]
pub fn paired_ratio(left: &[f64], right: &[f64]) -> Estimate {
    assert_eq!(left.len(), right.len(), "both sides run with the same seeds");
    let ratio = mean(left) / mean(right);
    let residual: Vec<f64> = left.iter().zip(right).map(|(l, r)| l - ratio * r).collect();
    Estimate { mean: ratio, half: half_width(&residual) / mean(right).abs(), n: left.len() }
}

fn half_width(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::INFINITY;
    }
    // Equal values have no spread, whatever rounding the mean has.
    if values.iter().all(|v| *v == values[0]) {
        return 0.0;
    }
    let n = values.len();
    t_quantile_975(n - 1) * deviation(values) / math::sqrt(n as f64)
}

/// The q-quantile (0 … 1) with linear interpolation; NaN of nothing, and if a value or `q` is NaN.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> f64 {
    if values.iter().any(|x| x.is_nan()) {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q.clamp(0.0, 1.0) * last as f64;
    let below = math::floor(at) as usize;
    let above = (below + 1).min(last);
    sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])
}

/// Factor on an estimated number of seeds, because the spread is an estimate too.
const MARGIN: f64 = 1.05;

/// Largest number of seeds that a report recommends.
const MOST_SEEDS: f64 = 10_000.0;

/// The number of seeds needed to decide, if the interval shrinks with their square root: `distance` is the distance
/// of the estimate from the limit. `None` if more than 10 000 would be needed.
#[must_use]
pub fn seeds_needed(e: &Estimate, distance: f64) -> Option<u64> {
    if e.n < 2 {
        return Some(2);
    }
    let factor = e.half / distance.abs();
    let n = math::ceil(e.n as f64 * factor * factor * MARGIN);
    // At least one more: these seeds did not decide.
    (n.is_finite() && n <= MOST_SEEDS).then(|| (n as u64).max(e.n as u64 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_are_those_of_the_tables() {
        let known = [
            (1, 12.706_204_736),
            (2, 4.302_652_730),
            (3, 3.182_446_305),
            (4, 2.776_445_105),
            (5, 2.570_581_836),
            (9, 2.262_157_163),
            (10, 2.228_138_852),
            (19, 2.093_024_054),
            (29, 2.045_229_642),
            (30, 2.042_272_456),
            (60, 2.000_297_822),
            (120, 1.979_930_405),
            (1000, 1.962_339_081),
        ];
        for (df, t) in known {
            assert!((t_quantile_975(df) - t).abs() < 1e-8, "{df}: {}", t_quantile_975(df));
        }
        assert!((t_quantile_975(2000) - t_quantile_975(2001)).abs() < 2e-3);
    }

    #[test]
    fn interval_of_a_worked_example() {
        // 1 … 5: mean 3, s = 1.58114, half = 2.776445·1.58114/√5 = 1.963243.
        let e = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!((e.mean - 3.0).abs() < 1e-12 && (e.half - 1.963_243).abs() < 1e-6, "{e:?}");
        assert_eq!(estimate(&[0.1; 7]).half, 0.0);
        assert_eq!(estimate(&[4.0]).half, f64::INFINITY);
    }

    #[test]
    fn pairing_removes_what_both_sides_share() {
        let common = [10.0, 20.0, 30.0, 40.0];
        let left: Vec<f64> = common.iter().map(|c| c + 1.0).collect();
        let d = paired_difference(&left, &common, 1.0, 0.0);
        assert_eq!((d.mean, d.half), (1.0, 0.0));
        let twice: Vec<f64> = common.iter().map(|c| 2.0 * c).collect();
        let r = paired_ratio(&twice, &common);
        assert_eq!((r.mean, r.half), (2.0, 0.0));
    }

    #[test]
    fn fairness_and_quantiles() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), 2.5);
        assert_eq!(quantile(&[1.0], 0.95), 1.0);
        assert!(quantile(&[], 0.5).is_nan() && quantile(&[1.0, f64::NAN, 2.0], 0.5).is_nan());
    }

    #[test]
    fn more_seeds_are_asked_for_in_proportion() {
        let e = Estimate { mean: 1.0, half: 2.0, n: 10 };
        // Twice too wide: four times the seeds, and 5 % for the estimate of the spread.
        assert_eq!(seeds_needed(&e, 1.0), Some(42));
        assert_eq!(seeds_needed(&e, 1e-9), None);
        assert_eq!(seeds_needed(&Estimate { n: 1, ..e }, 1.0), Some(2));
    }
}
