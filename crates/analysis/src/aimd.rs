//! Additive increase, multiplicative decrease: `alpha` packets per RTT, and the fraction `beta` of the window that
//! remains after a loss (\[YL\], \[PapTsa\]); Reno is (1, 1/2).

use crate::Value;
use crate::domain::{at_least_one, fraction, not_negative, positive, some_loss};
use skyhaul_base::math;

/// Rate of the sawtooth in packets per second under periodic losses without timeouts:
/// `sqrt(alpha (1 + beta) / (2 b (1 - beta) p)) / rtt`.
///
/// # Errors
/// If `p` is not in (0, 1], `rtt` or `alpha` not above 0, `b` below 1, `beta` not between 0 and 1.
pub fn sawtooth(p: f64, rtt: f64, b: f64, alpha: f64, beta: f64) -> Value {
    some_loss("p", p)?;
    positive("rtt", rtt)?;
    at_least_one("b", b)?;
    Ok(constant(alpha, beta)? / (rtt * math::sqrt(b * p)))
}

/// The constant of that law: `sqrt(alpha (1 + beta) / (2 (1 - beta)))`.
///
/// # Errors
/// If `alpha` is not above 0 or `beta` not between 0 and 1.
pub fn constant(alpha: f64, beta: f64) -> Value {
    positive("alpha", alpha)?;
    fraction("beta", beta)?;
    Ok(math::sqrt(alpha * (1.0 + beta) / (2.0 * (1.0 - beta))))
}

/// The same with timeouts (\[YL\]):
/// `1 / (rtt sqrt(2b(1-beta)p / (alpha(1+beta))) + t0 min(1, 3 sqrt((1-beta²)bp / (2 alpha))) p (1+32p²))`.
///
/// # Errors
/// As [`sawtooth`], or if `t0` is negative.
pub fn with_timeouts(p: f64, rtt: f64, t0: f64, b: f64, alpha: f64, beta: f64) -> Value {
    not_negative("t0", t0)?;
    let avoidance = 1.0 / sawtooth(p, rtt, b, alpha, beta)?;
    let timeouts = 3.0 * math::sqrt((1.0 - beta * beta) * b * p / (2.0 * alpha));
    Ok(1.0 / (avoidance + t0 * timeouts.min(1.0) * p * (1.0 + 32.0 * p * p)))
}

/// The increase that makes a flow as aggressive as Reno if losses end in timeouts: `4 (1 - beta²) / 3` (\[YL\],
/// \[PapTsa\] §5.4; 0.3125 for 7/8, published as 0.31).
///
/// # Errors
/// If `beta` is not between 0 and 1.
pub fn friendly_alpha(beta: f64) -> Value {
    fraction("beta", beta)?;
    Ok(4.0 * (1.0 - beta * beta) / 3.0)
}

/// The same if losses never end in timeouts: `3 (1 - beta) / (1 + beta)` (0.2 for 7/8).
///
/// # Errors
/// If `beta` is not between 0 and 1.
pub fn friendly_alpha_without_timeouts(beta: f64) -> Value {
    fraction("beta", beta)?;
    Ok(3.0 * (1.0 - beta) / (1.0 + beta))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;

    #[test]
    fn constants_of_the_sawtooth() {
        for (alpha, beta, want) in [(1.0, 0.5, 1.22474), (0.31, 0.875, 1.52480), (0.20, 0.875, 1.22474)] {
            near(constant(alpha, beta), want, 1e-5);
        }
        near(sawtooth(1e-2, 0.55, 1.0, 1.0, 0.5), 22.268, 1e-4);
        near(sawtooth(1e-2, 0.55, 2.0, 1.0, 0.5), 15.746, 1e-4);
        assert_eq!(constant(1.0, 1.0).unwrap_err().argument, "beta");
        assert_eq!(sawtooth(0.0, 0.55, 1.0, 1.0, 0.5).unwrap_err().argument, "p");
    }

    #[test]
    fn friendliness_of_the_increase() {
        near(friendly_alpha(0.5), 1.0, 1e-12);
        assert_eq!(friendly_alpha(0.875), Ok(0.3125));
        near(friendly_alpha_without_timeouts(0.5), 1.0, 1e-12);
        near(friendly_alpha_without_timeouts(0.875), 0.2, 1e-12);
    }

    #[test]
    fn gaimd_exceeds_reno_where_timeouts_are_rare() {
        let rows = [
            (1e-3, [70.131, 87.224, 70.060]),
            (1e-2, [21.390, 26.371, 21.181]),
            (5e-2, [8.157, 9.716, 7.804]),
        ];
        for (p, row) in rows {
            let flows = [(1.0, 0.5), (0.31, 0.875), (0.20, 0.875)];
            for ((alpha, beta), want) in flows.into_iter().zip(row) {
                near(with_timeouts(p, 0.55, 1.0, 1.0, alpha, beta), want, 1e-4);
            }
        }
        // Without timeouts: 1.52480 / 1.22474.
        let ratio = constant(0.31, 0.875).unwrap() / constant(1.0, 0.5).unwrap();
        near(Ok(ratio), 1.245, 1e-3);
        // Parity where timeouts dominate: T0 far above the RTT.
        let of = |alpha, beta| with_timeouts(1e-2, 1e-6, 1.0, 1.0, alpha, beta).unwrap();
        near(Ok(of(0.3125, 0.875) / of(1.0, 0.5)), 1.0, 1e-3);
    }
}
