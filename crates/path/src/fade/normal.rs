//! The normal distribution with mean 0 and deviation 1.

use skyhaul_base::math;

/// Probability of a value above `x`: Q(x).
pub(super) fn above(x: f64) -> f64 {
    0.5 * math::erfc(x * core::f64::consts::FRAC_1_SQRT_2)
}

/// The value that is exceeded with probability `p`, which lies in (0, 1): the inverse of [`above`].
///
/// It starts from the approximation of Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.2.23, whose
/// error is below 4.5e-4, and applies three steps of Halley's method, each of which triples the number of correct
/// digits.
pub(super) fn exceeded_with(p: f64) -> f64 {
    if p > 0.5 {
        return -exceeded_with(1.0 - p);
    }
    let t = math::sqrt(-2.0 * math::ln(p));
    let numerator = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let denominator = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let mut x = t - numerator / denominator;
    for _ in 0..3 {
        let density = math::exp(-0.5 * x * x) / math::sqrt(core::f64::consts::TAU);
        let step = (above(x) - p) / density;
        x += step / (1.0 - 0.5 * x * step);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_published_tables() {
        // Upper percentage points of the normal distribution, as in any table of it.
        for (p, x) in [
            (0.5, 0.0),
            (0.1, 1.281_551_565_5),
            (0.05, 1.644_853_627),
            (0.01, 2.326_347_874),
            (1e-3, 3.090_232_306),
            (1e-4, 3.719_016_485),
            (1e-6, 4.753_424_309),
            (0.9, -1.281_551_565_5),
        ] {
            assert!((exceeded_with(p) - x).abs() < 1e-9, "{p}: {}", exceeded_with(p));
        }
    }

    #[test]
    fn each_is_the_inverse_of_the_other() {
        for i in -160..=160 {
            let x = f64::from(i) / 20.0;
            // Q(x) near 1 has an error of its last digit, which the inverse divides by the density.
            let slack = 1e-12 + 4e-16 / (1e-300 + math::exp(-0.5 * x * x)) * f64::from(u8::from(x < 0.0));
            assert!((exceeded_with(above(x)) - x).abs() < slack, "{x}");
        }
    }
}
