//! The inverse of the normal distribution.

use skyhaul_base::math;

/// The quantile `p`, bounded to [1e-300, 1 − 1e-16], of a normal variable with mean 0 and standard deviation 1.
/// P. J. Acklam's rational approximation, "An algorithm for computing the inverse normal cumulative distribution
/// function" (2003), without its refinement step: its relative error is below 1.2e-9.
pub(super) fn inverse(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    /// The tails, below this and above its complement, have a separate approximation.
    const TAIL: f64 = 0.024_25;
    let p = p.clamp(1e-300, 1.0 - 1e-16);
    let tail = |p: f64| {
        let q = math::sqrt(-2.0 * math::ln(p));
        horner(&C, q) / horner(&D, q)
    };
    if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        horner(&A, r) * q / horner(&B, r)
    }
}

/// The polynomial with these coefficients, the highest power first.
fn horner(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_quantiles() {
        let table = [
            (0.5, 0.0),
            (0.841_344_746_068_543, 1.0),
            (0.975, 1.959_963_984_540_054),
            (0.025, -1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813),
            (1e-6, -4.753_424_308_822_899),
            (0.01, -2.326_347_874_040_841),
        ];
        for (p, x) in table {
            assert!(math::abs(inverse(p) - x) < 2e-8, "{p}: {}", inverse(p));
        }
        assert!(inverse(0.0).is_finite() && inverse(1.0).is_finite());
    }
}
