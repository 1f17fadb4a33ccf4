//! Formatting of numbers.

use crate::stats::Estimate;
use skyhaul_base::math;

/// Four significant digits; small and large ones in scientific notation.
#[must_use]
pub fn number(x: f64) -> String {
    if !x.is_finite() {
        return if x.is_nan() {
            "–".to_owned()
        } else if x > 0.0 {
            "∞".to_owned()
        } else {
            "−∞".to_owned()
        };
    }
    if x != 0.0 && !(1e-4..1e7).contains(&math::abs(x)) {
        return minus(&format!("{x:.2e}"));
    }
    let text = digits(x, decimals(x, 4));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    minus(if text == "-0" { "0" } else { text })
}

/// `mean ± half`, with as many digits as the interval justifies; without an interval the mean alone. A value that is
/// infinite for a seed has no mean.
#[must_use]
pub fn estimate(e: &Estimate) -> String {
    if !e.mean.is_finite() {
        return number(f64::NAN);
    }
    if !e.half.is_finite() || e.half == 0.0 || math::abs(e.mean) >= 1e7 {
        return number(e.mean);
    }
    let places = decimals(e.half, 2).min(8);
    format!("{} ± {}", minus(&digits(e.mean, places)), digits(e.half, places))
}

/// The text with its unit after a space, if it has one.
#[must_use]
pub fn with_unit(text: String, unit: &str) -> String {
    if unit.is_empty() { text } else { format!("{text} {unit}") }
}

/// A share as a signed percentage, such as `+12.3 %`.
#[must_use]
pub fn percent(e: &Estimate) -> String {
    let p = Estimate { mean: 100.0 * e.mean, half: 100.0 * e.half, n: e.n };
    let sign = if p.mean > 0.0 { "+" } else { "" };
    format!("{sign}{} %", estimate(&p))
}

/// Decimals that show `significant` digits of x.
fn decimals(x: f64, significant: i32) -> usize {
    if x == 0.0 {
        return 0;
    }
    let magnitude = math::floor(math::log2(math::abs(x)) / core::f64::consts::LOG2_10) as i32;
    usize::try_from(significant - 1 - magnitude).unwrap_or(0)
}

fn digits(x: f64, places: usize) -> String {
    format!("{x:.places$}")
}

/// A true minus sign.
fn minus(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(rest) => format!("−{}", rest.replace("e-", "e−")),
        None => text.replace("e-", "e−"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let e = |mean, half| estimate(&Estimate { mean, half, n: 5 });
        assert_eq!(e(1234.56, 12.3), "1235 ± 12");
        assert_eq!(e(0.5, 0.001_23), "0.5000 ± 0.0012");
        assert_eq!(e(7.0, 0.0), "7");
        assert_eq!(e(7.25, f64::INFINITY), "7.25");
        assert_eq!(e(f64::INFINITY, f64::NAN), "–");
        assert_eq!(percent(&Estimate { mean: 0.3065, half: 0.01, n: 3 }), "+30.6 ± 1.0 %");
    }
}
