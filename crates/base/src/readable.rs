//! Numbers for a reader. The output of the command, reports in HTML and Python show numbers by this one rule.

use crate::math;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

/// Number of significant digits of measured values in studies, where values are compared.
pub const COMPARED: i32 = 4;
/// Number of significant digits elsewhere.
pub const USUAL: i32 = 3;

/// The number `x` with `digits` significant digits, or with all digits before the decimal point if there are more, and without
/// zeros at the end of the fraction. Below 1e-4 and from 1e7 on, three digits in scientific notation. A missing value (NaN) is a
/// dash.
#[must_use]
pub fn significant(x: f64, digits: i32) -> String {
    if x.is_nan() {
        return "–".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "∞".to_owned() } else { "−∞".to_owned() };
    }
    if x != 0.0 && !(1e-4..1e7).contains(&math::abs(x)) {
        return minus(&format!("{x:.2e}"));
    }
    let text = format!("{x:.*}", decimals(x, digits));
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    minus(text)
}

/// The number `x` with `decimals` digits behind the decimal point.
#[must_use]
pub fn fixed(x: f64, decimals: usize) -> String {
    minus(&format!("{x:.decimals$}"))
}

/// The number of decimals with which `x` shows `significant` significant digits.
#[must_use]
pub fn decimals(x: f64, significant: i32) -> usize {
    if x == 0.0 {
        return 0;
    }
    let magnitude = math::floor(math::log2(math::abs(x)) / core::f64::consts::LOG2_10) as i32;
    usize::try_from(significant - 1 - magnitude).unwrap_or(0)
}

/// The text of a number with typographic minus signs in place of hyphens. Zero has none.
fn minus(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(rest) if !rest.contains(|c| ('1'..='9').contains(&c)) => rest.to_owned(),
        Some(rest) => format!("−{}", rest.replace("e-", "e−")),
        None => text.replace("e-", "e−"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_count_and_idle_zeros_do_not() {
        for (x, three, four) in [
            (0.0, "0", "0"),
            (-0.0, "0", "0"),
            (9.996, "10", "9.996"),
            (1234.567, "1235", "1235"),
            (0.012_345_6, "0.0123", "0.01235"),
            (-3.0, "−3", "−3"),
            (1e-6, "1.00e−6", "1.00e−6"),
            (-2.5e9, "−2.50e9", "−2.50e9"),
            (1000.0, "1000", "1000"),
            (99.95, "100", "99.95"),
            (f64::NAN, "–", "–"),
            (f64::NEG_INFINITY, "−∞", "−∞"),
        ] {
            assert_eq!((&*significant(x, USUAL), &*significant(x, COMPARED)), (three, four), "{x}");
        }
        assert_eq!([fixed(-0.25, 1), fixed(12.347, 2), fixed(-0.04, 1)], ["−0.2", "12.35", "0.0"]);
    }
}
