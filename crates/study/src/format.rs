//! Formatting of numbers.

use crate::stats::{self, Center, Estimate, SKEWED_FROM};
use crate::summary::Summary;
use skyhaul_base::math;
use skyhaul_base::readable::{self, decimals, fixed};

/// Four significant digits, by the rule of [`readable`].
#[must_use]
pub fn number(x: f64) -> String {
    readable::significant(x, readable::COMPARED)
}

/// `mean ± half`, with as many digits as the interval justifies; without an interval, and from 1e7 on, the mean alone. A value
/// that is infinite for a seed has no mean.
#[must_use]
pub fn estimate(e: &Estimate) -> String {
    if !e.mean.is_finite() {
        return number(f64::NAN);
    }
    if !e.half.is_finite() || e.half == 0.0 || math::abs(e.mean) >= 1e7 {
        return number(e.mean);
    }
    let places = decimals(e.half, 2).min(8);
    format!("{} ± {}", fixed(e.mean, places), fixed(e.half, places))
}

/// A median with its 95 % interval, as in `median 2.5 (2 … 240)`, or with the smallest and the largest value if there are too
/// few seeds for one. Equal values have neither.
#[must_use]
pub fn median(values: &[f64]) -> String {
    let c = stats::median(values);
    let end = |q| stats::quantile(values, q);
    let (low, high) = c.interval().unwrap_or((end(0.0), end(1.0)));
    range(c.value, low, high)
}

/// A mean or a median with its interval; without one, or if it has no length, the value alone.
#[must_use]
pub fn center(c: &Center) -> String {
    match c.summary {
        Summary::Mean => estimate(&Estimate { mean: c.value, half: c.half, n: c.n }),
        Summary::Median => {
            let (low, high) = c.interval().unwrap_or((c.value, c.value));
            range(c.value, low, high)
        }
    }
}

fn range(median: f64, low: f64, high: f64) -> String {
    if low == high {
        return format!("median {}", number(median));
    }
    format!("median {} ({} … {})", number(median), number(low), number(high))
}

/// Whether a reader is shown the median of these values instead of the mean: `summary` says so, or the 95 % interval of the
/// mean of positive values reaches zero.
fn shows_median(values: &[f64], summary: Summary) -> bool {
    let positive = || values.len() >= SKEWED_FROM && values.iter().all(|x| *x > 0.0);
    summary == Summary::Median || (positive() && stats::estimate(values).low() <= 0.0)
}

/// The mean on which a verdict is, with the median behind it where [`sample`] shows the median.
#[must_use]
pub fn mean(values: &[f64], summary: Summary) -> String {
    let text = estimate(&stats::estimate(values));
    if !shows_median(values, summary) {
        return text;
    }
    format!("{text} (median {})", number(stats::quantile(values, 0.5)))
}

/// The values of a metric over the seeds, for a reader: [`estimate`] or [`median`], as `summary` says; the median, too, where
/// the 95 % interval of a mean of positive values reaches zero. Seeds without a value, such as the time of pages that
/// never finished, are counted, and the median is that of the others.
#[must_use]
pub fn sample(values: &[f64], summary: Summary) -> String {
    let known: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    let without = values.len() - known.len();
    if known.is_empty() {
        return number(f64::NAN);
    }
    if without > 0 {
        return format!(
            "– ({without} of {} seeds without a value, median of the others {})",
            values.len(),
            number(stats::quantile(&known, 0.5))
        );
    }
    if shows_median(values, summary) { median(values) } else { estimate(&stats::estimate(values)) }
}

/// As [`estimate`], with four significant digits of the mean at most, for numbers side by side. An interval smaller
/// than the last digit is left out.
#[must_use]
pub fn brief(e: &Estimate) -> String {
    let whole = !e.mean.is_finite() || !e.half.is_finite() || math::abs(e.mean) >= 1e7;
    if whole || e.half == 0.0 || e.mean == 0.0 {
        return estimate(e);
    }
    let places = decimals(e.half, 2).min(decimals(e.mean, 4)).min(8);
    let half = fixed(e.half, places);
    if half.chars().any(|c| ('1'..='9').contains(&c)) {
        return format!("{} ± {half}", fixed(e.mean, places));
    }
    number(e.mean)
}

/// A mean with as many digits as [`estimate`] gives a mean with the half-width `half`; as [`number`] if `half` is zero or not
/// finite.
#[must_use]
pub fn rounded(x: f64, half: f64) -> String {
    if !x.is_finite() || !half.is_finite() || half == 0.0 || math::abs(x) >= 1e7 {
        return number(x);
    }
    fixed(x, decimals(half, 2).min(8))
}

/// As [`estimate`], with a plus sign in front of a positive mean.
#[must_use]
pub fn signed(e: &Estimate) -> String {
    let sign = if e.mean > 0.0 && e.mean.is_finite() { "+" } else { "" };
    format!("{sign}{}", estimate(e))
}

/// The text with its unit after a space, if it has one.
#[must_use]
pub fn with_unit(text: String, unit: &str) -> String {
    if unit.is_empty() { text } else { format!("{text} {unit}") }
}

/// A title with its unit in parentheses, if it has one.
#[must_use]
pub fn heading(title: &str, unit: &str) -> String {
    if unit.is_empty() { title.to_owned() } else { format!("{title} ({unit})") }
}

/// A ratio of medians as a factor, such as `×1.2 (1.1 … 1.4)`.
#[must_use]
pub fn factor(c: &Center) -> String {
    let range = c.interval().filter(|(low, high)| low < high);
    let range =
        range.map_or_else(String::new, |(low, high)| format!(" ({} … {})", number(low), number(high)));
    format!("×{}{range}", number(c.value))
}

/// A relative difference as a signed percentage, such as `+12.3 %`; from tenfold on as a factor, such as `×242`.
#[must_use]
pub fn percent(e: &Estimate) -> String {
    if e.mean >= 9.0 {
        return format!("×{}", estimate(&Estimate { mean: 1.0 + e.mean, ..*e }));
    }
    let p = Estimate { mean: 100.0 * e.mean, half: 100.0 * e.half, n: e.n };
    format!("{} %", signed(&p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_shown_only_where_it_describes_the_seeds() {
        let (sample, of_median) =
            (|v: &[f64]| sample(v, Summary::Mean), |v: &[f64]| sample(v, Summary::Median));
        assert_eq!(of_median(&[9.0, 10.0, 11.0, 10.0, 10.0]), "median 10 (9 … 11)");
        assert_eq!(of_median(&[9.0; 3]), "median 9");
        // The second smallest and the second largest of ten.
        assert_eq!(of_median(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 100.0]), "median 5.5 (2 … 9)");
        assert_eq!(of_median(&[4.0, f64::NAN]), "– (1 of 2 seeds without a value, median of the others 4)");
        assert_eq!(sample(&[9.0, 10.0, 11.0, 10.0, 10.0]), "10.00 ± 0.88");
        // One seed in ten waits for minutes.
        assert_eq!(sample(&[2.0, 3.0, 2.5, 240.0, 2.0]), "median 2.5 (2 … 240)");
        // Values on both sides of zero have a mean.
        assert_eq!(sample(&[-1.0, 1.0, -2.0, 2.0, 0.0]), "0.0 ± 2.0");
        let starved = [4.0, f64::NAN, 6.0, f64::NAN, 8.0];
        assert_eq!(sample(&starved), "– (2 of 5 seeds without a value, median of the others 6)");
        // A verdict is on the mean; the reader sees the median, too.
        let long = [2.0, 3.0, 2.5, 240.0, 2.0];
        assert_eq!(mean(&long, Summary::Mean), "50 ± 132 (median 2.5)");
        assert_eq!(mean(&[9.0, 10.0, 11.0, 10.0, 10.0], Summary::Mean), "10.00 ± 0.88");
        assert_eq!(factor(&stats::median(&[1.0, 1.2, 1.4, 1.1, 1.3, 1.25])), "×1.225 (1 … 1.4)");
        assert_eq!(sample(&[f64::NAN; 3]), "–");
        assert_eq!(sample(&[]), "–");
    }

    #[test]
    fn digits_follow_the_precision() {
        for (x, text) in [
            (0.0, "0"),
            (1234.567, "1235"),
            (0.012_345_6, "0.01235"),
            (-3.0, "−3"),
            (1e-6, "1.00e−6"),
            (100.0, "100"),
            (f64::NAN, "–"),
            (f64::INFINITY, "∞"),
        ] {
            assert_eq!(number(x), text);
        }
        assert_eq!(percent(&Estimate { mean: 0.123, half: 0.01, n: 5 }), "+12.3 ± 1.0 %");
        assert_eq!(percent(&Estimate { mean: 240.66, half: 5.2, n: 5 }), "×241.7 ± 5.2");
        let e = |mean, half| estimate(&Estimate { mean, half, n: 5 });
        assert_eq!(e(1234.56, 12.3), "1235 ± 12");
        assert_eq!(e(0.5, 0.001_23), "0.5000 ± 0.0012");
        assert_eq!(e(7.0, 0.0), "7");
        assert_eq!(e(7.25, f64::INFINITY), "7.25");
        assert_eq!(e(f64::INFINITY, f64::NAN), "–");
        let b = |mean, half| brief(&Estimate { mean, half, n: 5 });
        assert_eq!(b(0.045_508_5, 0.000_002_2), "0.04551");
        assert_eq!(b(-3.069_76, 0.000_002), "−3.07");
        assert_eq!(b(94.587, 0.014), "94.59 ± 0.01");
        assert_eq!(b(0.000_2, 0.2), "0.00 ± 0.20");
        assert_eq!(b(1234.56, 12.3), "1235 ± 12");
        assert_eq!(b(0.0, 0.001_23), "0.0000 ± 0.0012");
        assert_eq!(b(7.0, 0.0), "7");
        assert_eq!(
            [rounded(57.4815, 1.63), rounded(57.4815, f64::INFINITY), rounded(-3.0, 0.0)],
            ["57.5", "57.48", "−3"]
        );
        assert_eq!(percent(&Estimate { mean: 0.3065, half: 0.01, n: 3 }), "+30.6 ± 1.0 %");
    }
}
