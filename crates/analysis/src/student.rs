//! Student's t distribution.

use skyhaul_base::math;

/// 97.5 % quantile of Student's t with `df` degrees of freedom.
#[must_use]
pub fn t_quantile_975(df: usize) -> f64 {
    assert!(df > 0, "at least one degree of freedom");
    // Beyond this the normal quantile is off by less than 1 in 1000 and the sum below only costs time.
    if df > 2000 {
        return 1.959_963_984_540_054;
    }
    let (mut low, mut high) = (1.9, 13.0);
    for _ in 0..60 {
        let mid = 0.5 * (low + high);
        if t_central(mid, df) < 0.95 { low = mid } else { high = mid }
    }
    0.5 * (low + high)
}

/// P(|T| < t) for integer degrees of freedom: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
fn t_central(t: f64, df: usize) -> f64 {
    let nu = df as f64;
    let cos2 = nu / (nu + t * t);
    let cos = math::sqrt(cos2);
    let sin = t / math::sqrt(nu + t * t);
    if df % 2 == 0 {
        // sin θ (1 + 1/2 cos² θ + (1·3)/(2·4) cos⁴ θ + …)
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..df / 2 {
            term *= cos2 * (2 * k - 1) as f64 / (2 * k) as f64;
            sum += term;
        }
        sin * sum
    } else {
        // 2/π (θ + sin θ (cos θ + 2/3 cos³ θ + …))
        let theta = atan(t / math::sqrt(nu));
        let (mut term, mut sum) = (cos, 0.0);
        for k in 1..=df / 2 {
            sum += term;
            term *= cos2 * (2 * k) as f64 / (2 * k + 1) as f64;
        }
        core::f64::consts::FRAC_2_PI * (theta + sin * sum)
    }
}

/// Inverse tangent of x ≥ 0: three halvings of the angle, then its series.
fn atan(x: f64) -> f64 {
    let half = |x: f64| x / (1.0 + math::sqrt(1.0 + x * x));
    let y = half(half(half(x)));
    let y2 = y * y;
    // y < tan(π/16) < 0.2, so 13 terms leave less than 1e-19.
    let series = (0..13).rev().fold(0.0, |sum, k| 1.0 / f64::from(2 * k + 1) - y2 * sum);
    8.0 * y * series
}
