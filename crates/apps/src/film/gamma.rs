//! The gamma distribution: its cumulative distribution function and the inverse.
//!
//! Series and continued fraction of the regularised incomplete gamma function: Abramowitz, Stegun, "Handbook of
//! Mathematical Functions", 6.5.29 and 6.5.31, the fraction by Lentz's method.

use skyhaul_base::math;

/// Maximum terms of the series or the fraction; shapes are bounded, so this is never reached.
const TERMS: u32 = 2000;
/// Tolerance at which they stop.
const SMALL: f64 = 1e-15;

/// Values of a distribution at a point.
#[derive(Clone, Copy, Debug)]
struct GammaValues {
    /// Probabilities of at most and of more than this; the smaller one in the tails has no error but rounding.
    below: f64,
    above: f64,
    density: f64,
}

/// Values for a gamma variable with this shape and scale 1 at `x`, above 0. The logarithm of Γ(`shape`) is passed in,
/// since it is expensive and a search needs it more than once.
fn values_at(shape: f64, ln_gamma: f64, x: f64) -> GammaValues {
    let front = math::exp(shape * math::ln(x) - x - ln_gamma);
    let density = front / x;
    if x < shape + 1.0 {
        let (mut term, mut sum) = (1.0 / shape, 1.0 / shape);
        for n in 1..TERMS {
            term *= x / (shape + f64::from(n));
            sum += term;
            if term < sum * SMALL {
                break;
            }
        }
        let below = (front * sum).min(1.0);
        return GammaValues { below, above: 1.0 - below, density };
    }
    let tiny = 1e-300;
    let mut b = x + 1.0 - shape;
    let (mut c, mut d) = (1.0 / tiny, 1.0 / b);
    let mut fraction = d;
    for n in 1..TERMS {
        let n = f64::from(n);
        let a = -n * (n - shape);
        b += 2.0;
        d = 1.0 / nonzero(a * d + b, tiny);
        c = nonzero(b + a / c, tiny);
        let factor = c * d;
        fraction *= factor;
        if math::abs(factor - 1.0) < SMALL {
            break;
        }
    }
    let above = (front * fraction).min(1.0);
    GammaValues { below: 1.0 - above, above, density }
}

fn nonzero(x: f64, tiny: f64) -> f64 {
    if math::abs(x) < tiny { tiny } else { x }
}

/// The inverse of the distribution of a gamma variable with scale 1, bounded above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantiles {
    shape: f64,
    ln_gamma: f64,
    most: f64,
    /// Probability of at most `most`.
    reached: f64,
}

impl Quantiles {
    /// Of a variable with this shape that is at most `most`.
    pub(super) fn new(shape: f64, most: f64) -> Self {
        let ln_gamma = math::ln_gamma(shape);
        let reached = if most > 0.0 { values_at(shape, ln_gamma, most).below } else { 0.0 };
        Self { shape, ln_gamma, most, reached }
    }

    /// The quantile `p`, from 0 to 1. The search starts at `guess`: a close guess saves steps and changes the result
    /// only by rounding.
    pub(super) fn at(&self, p: f64, guess: f64) -> f64 {
        let Self { shape, ln_gamma, most, reached } = *self;
        if p <= 0.0 {
            return 0.0;
        }
        if reached <= p {
            return most;
        }
        let (mut low, mut high) = (0.0, most);
        let mut x = if guess > low && guess < high { guess } else { 0.5 * most };
        // Newton's steps, halved if they leave the bracket. In the upper tail they are those of the logarithm of the
        // complement, which is nearly linear, and which rounding would spoil if it were taken from the probability.
        let above = 1.0 - p;
        for _ in 0..200 {
            let at = values_at(shape, ln_gamma, x);
            let upper = p >= 0.9;
            let excess = if upper { above - at.above } else { at.below - p };
            if excess > 0.0 {
                high = x;
            } else {
                low = x;
            }
            let step = if upper { at.above * math::ln(above / at.above) } else { excess };
            let density = at.density;
            let newton = x - step / density;
            let converges = newton > low && newton < high;
            let next = if converges { newton } else { 0.5 * (low + high) };
            // Far less than a byte. An error of Newton's method is about the square of the one before.
            let tolerance = if converges { 1e-7 * x } else { 1e-12 * x };
            if math::abs(next - x) <= tolerance || high < 1e-12 {
                return next;
            }
            x = next;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cumulative(shape: f64, x: f64) -> f64 {
        if x > 0.0 { values_at(shape, math::ln_gamma(shape), x).below } else { 0.0 }
    }
    fn inverse(shape: f64, p: f64, guess: f64, most: f64) -> f64 {
        Quantiles::new(shape, most).at(p, guess)
    }
    fn near(a: f64, b: f64, tolerance: f64) {
        assert!(math::abs(a - b) <= tolerance, "{a} and {b}");
    }

    #[test]
    fn cumulative_probabilities_that_have_a_closed_form() {
        for x in [0.01, 0.5, 1.0, 2.0, 3.5, 9.0, 30.0] {
            // Shape 1 is the exponential distribution, shape 3 the sum of three of them.
            near(cumulative(1.0, x), -math::expm1(-x), 1e-13);
            near(cumulative(3.0, x), 1.0 - math::exp(-x) * (1.0 + x + x * x / 2.0), 1e-13);
        }
        // Half of a chi-square variable with one degree of freedom: 1.96² / 2 is its 95 % point.
        near(cumulative(0.5, 1.959_963_984_540_054_f64 * 1.959_963_984_540_054 / 2.0), 0.95, 1e-12);
        assert!(cumulative(2.0, 0.0) == 0.0 && cumulative(2.0, 1e6) == 1.0);
    }

    #[test]
    fn the_inverse_inverts() {
        for shape in [0.5, 1.452, 1.687, 6.25, 400.0] {
            for p in [1e-5, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0 - 1e-9] {
                for guess in [0.0, 0.1, shape, 50.0] {
                    let x = inverse(shape, p, guess, 2000.0);
                    near(cumulative(shape, x), p, 1e-11);
                }
            }
        }
        // In the upper tail the complement is as accurate as it can be.
        for (q, x) in [(1e-3, -math::ln(1e-3)), (1e-9, -math::ln(1e-9)), (1e-12, -math::ln(1e-12))] {
            let found = values_at(1.0, 0.0, x).above;
            assert!(math::abs(found / q - 1.0) < 1e-12, "{q}: {found}");
        }
        assert!(inverse(0.05, 1e-6, 1.0, 2000.0) < 1e-11, "1e-120");
        assert_eq!(inverse(2.0, 1.0, 1.0, 77.0), 77.0, "bounded");
        assert_eq!(inverse(2.0, 0.0, 1.0, 77.0), 0.0);
    }
}
