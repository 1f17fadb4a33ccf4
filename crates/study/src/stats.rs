//! Statistics over seeds: means with Student-t intervals, medians with intervals of order statistics, paired differences and
//! ratios, fairness.
//!
//! All sums run in the order of the seeds, so that results do not depend on scheduling.

use crate::summary::Summary;
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

/// The mean or the median of values over the seeds, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Center {
    /// Which of both.
    pub summary: Summary,
    /// The mean or the median.
    pub value: f64,
    /// Lower end of the interval; infinite with too few seeds.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Length of the longer part of the interval, below or above the value.
    pub half: f64,
    /// Number of seeds.
    pub n: usize,
}

impl From<Estimate> for Center {
    fn from(e: Estimate) -> Self {
        Self { summary: Summary::Mean, value: e.mean, low: e.low(), high: e.high(), half: e.half, n: e.n }
    }
}

impl Center {
    /// That of these values.
    #[must_use]
    pub fn of(summary: Summary, values: &[f64]) -> Self {
        match summary {
            Summary::Mean => estimate(values).into(),
            Summary::Median => median(values),
        }
    }
    /// True if there is a value, which is finite.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.n > 0 && self.value.is_finite()
    }
    /// The interval, unless there are too few seeds for one.
    #[must_use]
    pub fn interval(&self) -> Option<(f64, f64)> {
        (self.low.is_finite() && self.high.is_finite()).then_some((self.low, self.high))
    }
    /// That of the negative values, or the same.
    #[must_use]
    pub fn times_sign(self, sign: f64) -> Self {
        if sign < 0.0 { Self { value: -self.value, low: -self.high, high: -self.low, ..self } } else { self }
    }
    /// The same value without an interval: no chance is involved.
    #[must_use]
    pub fn certain(self) -> Self {
        Self { low: self.value, high: self.value, half: 0.0, ..self }
    }
}

/// Median with its 95 % interval of order statistics, which assumes nothing about the distribution: the k-th smallest to
/// the k-th largest value, k as large as possible with 2·P(B < k) ≤ 5 %, where B is binomial with n and ½ (David and Nagaraja,
/// Order Statistics, 2003, §7.1). Fewer than six values have none: the smallest and the largest of five surround the median
/// with a probability of 94 %.
#[must_use]
pub fn median(values: &[f64]) -> Center {
    let n = values.len();
    let value = quantile(values, 0.5);
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    if value.is_nan() {
        (low, high) = (value, value);
    } else if n > 1 && values.iter().all(|v| *v == values[0]) {
        // Equal values have no spread, as for means.
        (low, high) = (value, value);
    } else if let Some(k) = rank(n).checked_sub(1) {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        (low, high) = (sorted[k], sorted[n - 1 - k]);
    }
    let half = (value - low).max(high - value);
    Center { summary: Summary::Median, value, low, high, half, n }
}

/// The largest k with 2·P(B < k) ≤ 5 % for a binomial B with n and ½; 0 if there is none.
fn rank(n: usize) -> usize {
    let factorial = |m: usize| math::ln_gamma(m as f64 + 1.0);
    // P(B = k): 2⁻ⁿ alone is below the smallest number for some thousand seeds.
    let p = |k: usize| {
        math::exp(factorial(n) - factorial(k) - factorial(n - k) - n as f64 * core::f64::consts::LN_2)
    };
    let (mut below, mut k) = (0.0, 0);
    while k < n {
        below += p(k);
        // Rounding must not decide where the sum is 5 % exactly.
        if 2.0 * below > 0.05 + 1e-12 {
            break;
        }
        k += 1;
    }
    k
}

/// Least number of seeds by which a sample is judged to be skewed.
pub const SKEWED_FROM: usize = 5;

/// Whether positive values are skewed by the rule of Altman and Bland (BMJ 313, 1996, p. 1200): their mean is below twice
/// their standard deviation, so a normal distribution with these two would have values below zero.
#[must_use]
pub fn is_skewed(values: &[f64]) -> bool {
    values.len() >= SKEWED_FROM
        && values.iter().all(|x| x.is_finite() && *x > 0.0)
        && mean(values) < 2.0 * deviation(values)
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

/// The paired differences `left − scale·right − offset`.
///
/// # Panics
/// If the sides have different numbers of seeds.
#[must_use]
pub fn differences(left: &[f64], right: &[f64], scale: f64, offset: f64) -> Vec<f64> {
    assert_eq!(left.len(), right.len(), "both sides run with the same seeds");
    left.iter().zip(right).map(|(l, r)| l - scale * r - offset).collect()
}

/// Mean of the [`differences`].
///
/// # Panics
/// If the sides have different numbers of seeds.
#[must_use]
pub fn paired_difference(left: &[f64], right: &[f64], scale: f64, offset: f64) -> Estimate {
    estimate(&differences(left, right, scale, offset))
}

/// The median of the ratios, seed by seed.
///
/// # Panics
/// If the sides have different numbers of seeds.
#[must_use]
pub fn median_ratio(left: &[f64], right: &[f64]) -> Center {
    assert_eq!(left.len(), right.len(), "both sides run with the same seeds");
    median(&left.iter().zip(right).map(|(l, r)| l / r).collect::<Vec<_>>())
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

/// Least number of seeds with an interval of the median.
const LEAST_FOR_MEDIAN: usize = 6;

/// Factor on an estimated number of seeds, because the spread is an estimate too.
const MARGIN: f64 = 1.05;

/// Largest number of seeds that a report recommends.
const MOST_SEEDS: f64 = 10_000.0;

/// The number of seeds needed to decide, if the interval shrinks with their square root: `distance` is the distance
/// of the estimate from the limit. `None` if more than 10 000 would be needed.
#[must_use]
pub fn seeds_needed(e: &Center, distance: f64) -> Option<u64> {
    let least = match e.summary {
        Summary::Mean => 2,
        Summary::Median => LEAST_FOR_MEDIAN,
    };
    if e.n < least {
        return Some(least as u64);
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
        let e = Center { summary: Summary::Mean, value: 1.0, low: -1.0, high: 3.0, half: 2.0, n: 10 };
        // Twice too wide: four times the seeds, and 5 % for the estimate of the spread.
        assert_eq!(seeds_needed(&e, 1.0), Some(42));
        assert_eq!(seeds_needed(&e, 1e-9), None);
        assert_eq!(seeds_needed(&Center { n: 1, ..e }, 1.0), Some(2));
        assert_eq!(seeds_needed(&Center { n: 5, summary: Summary::Median, ..e }, 1.0), Some(6));
    }

    #[test]
    fn medians_have_the_intervals_of_the_tables() {
        // n, rank of the lower end: the published table of 95 % intervals for the median.
        for (n, k) in
            [(5, 0), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (14, 3), (15, 4), (17, 5), (20, 6), (50, 18)]
        {
            assert_eq!(rank(n), k, "{n}");
        }
        assert!(rank(5000) > 2400);
        let ten: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        let c = median(&ten);
        assert_eq!((c.value, c.low, c.high, c.n), (5.5, 2.0, 9.0, 10));
        assert_eq!(median(&[3.0; 4]).interval(), Some((3.0, 3.0)));
        assert_eq!((median(&ten[..5]).interval(), median(&[1.0]).interval()), (None, None));
        assert!(!median(&[]).is_valid() && !median(&[1.0, f64::NAN]).is_valid());
        let back = c.times_sign(-1.0);
        assert_eq!((back.value, back.low, back.high), (-5.5, -9.0, -2.0));
    }

    /// The interval of the median contains it in 95 % of samples and more, whatever the distribution; that of the mean
    /// misses it far too often where the tail is long.
    #[test]
    fn intervals_of_medians_hold_for_long_tails() {
        let mut rng = skyhaul_base::Rng::stream(1, "tails");
        let (mut medians, mut means, samples) = (0, 0, 4000);
        for _ in 0..samples {
            // Log-normal with σ = 2: median 1, mean e².
            let values: Vec<f64> = (0..10).map(|_| math::exp(2.0 * rng.normal())).collect();
            let (m, e) = (median(&values), estimate(&values));
            medians += u32::from(m.low <= 1.0 && 1.0 <= m.high);
            let mean = math::exp(2.0);
            means += u32::from(e.low() <= mean && mean <= e.high());
        }
        let share = |n: u32| f64::from(n) / f64::from(samples);
        // Exactly: 1 − 22/1024.
        assert!((share(medians) - 0.9785).abs() < 0.01, "{}", share(medians));
        assert!(share(means) < 0.8, "{}", share(means));
    }

    #[test]
    fn values_are_skewed_where_a_normal_distribution_would_go_below_zero() {
        assert!(is_skewed(&[2.0, 3.0, 2.5, 240.0, 2.0]));
        assert!(!is_skewed(&[9.0, 10.0, 11.0, 10.0, 10.0]));
        // Values of which some are not positive, and few values, say nothing.
        assert!(!is_skewed(&[0.0, 3.0, 2.5, 240.0, 2.0]) && !is_skewed(&[2.0, 3.0, 240.0]));
        assert!(!is_skewed(&[2.0, 3.0, f64::NAN, 240.0, 2.0]));
    }
}
