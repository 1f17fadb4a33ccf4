//! Correlation of successive frames of one type: closed forms, and that of a given sequence.
//!
//! With D(u) the size at a position u on the circle, Var its variance, d_v its Fourier coefficients and f_v those of the
//! innovation (\[Mel\] §3.3, with \[Mel\] as in [`tes`](super::tes); Jagerman, Melamed 1992), the autocorrelation at lag τ is
//! ρ(τ) = 2/Var Σ Re\[f_v^τ\] |d_v|², the sum over v = 1, 2, …; for TES− at odd τ it is 2/Var Σ Re\[f_v^τ d_v²\].

use super::tes::{Innovation, Sign};
use skyhaul_base::math;

/// Fourier coefficients of a function on the circle.
#[derive(Clone, Debug)]
pub struct Spectrum {
    /// For v = 1, 2, …: real and imaginary part.
    d: Vec<(f64, f64)>,
    variance: f64,
}

impl Spectrum {
    /// The first `terms` coefficients of `of` on [0, 1), from `points` samples, which should be many more than the
    /// coefficients.
    #[must_use]
    pub fn new(of: impl Fn(f64) -> f64, terms: usize, points: usize) -> Self {
        let n = points as f64;
        let values: Vec<f64> = (0..points).map(|i| of((i as f64 + 0.5) / n)).collect();
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        // Sample i is at (i + 1/2)/n, so every angle is a multiple of half a turn divided by n: one table serves all.
        let turn: Vec<(f64, f64)> = (0..2 * points)
            .map(|k| {
                let angle = -core::f64::consts::PI * k as f64 / n;
                (math::cos(angle), math::sin(angle))
            })
            .collect();
        let d = (1..=terms)
            .map(|v| {
                let (mut re, mut im) = (0.0, 0.0);
                for (i, x) in values.iter().enumerate() {
                    let (c, s) = turn[(v * (2 * i + 1)) % (2 * points)];
                    re += (x - mean) * c;
                    im += (x - mean) * s;
                }
                (re / n, im / n)
            })
            .collect();
        Self { d, variance }
    }

    /// Autocorrelations at lags 1 to `lags` of the process with this innovation.
    #[must_use]
    pub fn autocorrelation(&self, sign: Sign, innovation: &Innovation, lags: usize) -> Vec<f64> {
        let transforms: Vec<_> = (1..).take(self.d.len()).map(|v| innovation.transform(v)).collect();
        self.autocorrelation_from(sign, &transforms, lags)
    }
    /// The same, given the transforms of the innovation at 1, 2, ….
    #[must_use]
    pub fn autocorrelation_from(&self, sign: Sign, transforms: &[(f64, f64)], lags: usize) -> Vec<f64> {
        let mut rho = vec![0.0; lags];
        if self.variance <= 0.0 {
            return rho;
        }
        for (&f, (re, im)) in transforms.iter().zip(&self.d) {
            let mut power = f;
            let size = re * re + im * im;
            let square = (re * re - im * im, 2.0 * re * im);
            for (tau, sum) in (1..).zip(&mut rho) {
                *sum += if sign == Sign::Minus && tau % 2 == 1 {
                    power.0 * square.0 - power.1 * square.1
                } else {
                    power.0 * size
                };
                power = (power.0 * f.0 - power.1 * f.1, power.0 * f.1 + power.1 * f.0);
            }
        }
        rho.iter().map(|sum| 2.0 * sum / self.variance).collect()
    }
}

/// Number of Fourier coefficients that suffices for videos.
pub(super) const TERMS: usize = 200;
/// Number of samples of the function that suffices for that many coefficients.
pub(super) const POINTS: usize = 2048;

/// Autocorrelations of a sequence at lags 1 to `lags` (the biased estimator: divided by the length); zeros for a
/// constant sequence.
#[must_use]
pub fn of_sequence(values: &[f64], lags: usize) -> Vec<f64> {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let square: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    let at = |lag: usize| -> f64 {
        if square <= 0.0 {
            return 0.0;
        }
        let later = values.get(lag..).unwrap_or_default();
        values.iter().zip(later).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / square
    };
    (1..=lags).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::film::tes::{Process, Step, stitch};
    use skyhaul_base::Rng;

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!(math::abs(a - b) <= tolerance, "{a} and {b}");
    }

    /// Closed form and long run against the oracles.
    fn check(sign: Sign, xi: f64, half: f64, oracles: &[(usize, f64)]) {
        let innovation = Innovation::uniform(half);
        let most = oracles.iter().map(|o| o.0).max().unwrap();
        let spectrum = Spectrum::new(|u| stitch(xi, u), 400, 4096);
        let closed = spectrum.autocorrelation(sign, &innovation, most);
        let mut process = Process::new(sign, innovation, Rng::stream(1, "tes"));
        let run: Vec<f64> = (0..2_000_000).map(|_| stitch(xi, process.step())).collect();
        let measured = of_sequence(&run, most);
        for &(lag, rho) in oracles {
            near(closed[lag - 1], rho, 6e-4);
            near(measured[lag - 1], rho, 0.01);
        }
    }

    #[test]
    fn without_stitching() {
        check(Sign::Plus, 1.0, 0.1, &[(1, 0.72), (2, 0.64), (10, 0.3215)]);
    }
    #[test]
    fn stitched_in_the_middle() {
        check(Sign::Plus, 0.5, 0.1, &[(1, 0.9280), (2, 0.8656), (10, 0.5059)]);
        check(Sign::Plus, 0.5, 0.08, &[(1, 0.9529), (2, 0.9107), (10, 0.6447), (25, 0.3408)]);
        // A symmetric distortion makes both processes one.
        check(Sign::Minus, 0.5, 0.1, &[(1, 0.9280), (2, 0.8656), (10, 0.5059)]);
    }
    #[test]
    fn mirrored() {
        check(Sign::Minus, 0.3, 0.1, &[(1, 0.3118), (2, 0.8458), (3, 0.2588)]);
    }

    #[test]
    fn the_decay_time_of_the_rule_of_thumb() {
        // 3 / (2π²L²) steps to 1/e, for the first harmonic.
        for half in [0.0283_f64, 0.0462, 0.08] {
            let steps = 3.0 / (2.0 * core::f64::consts::PI * core::f64::consts::PI * half * half);
            let lags = steps.round() as usize;
            let rho = Spectrum::new(|u| stitch(0.5, u), 100, 2048).autocorrelation(
                Sign::Plus,
                &Innovation::uniform(half),
                lags,
            );
            near(rho[lags - 1], math::exp(-1.0), 0.02);
        }
    }

    #[test]
    fn a_drift_oscillates() {
        let drift = Innovation::steps(&[Step { from: 0.2, to: 0.3, weight: 1.0 }]).unwrap();
        let rho = Spectrum::new(|u| stitch(0.5, u), 200, 2048).autocorrelation(Sign::Plus, &drift, 4);
        assert!(rho[1] < -0.8 && rho[3] > 0.8, "{rho:?}");
        let mut process = Process::new(Sign::Plus, drift, Rng::stream(2, "tes"));
        let run: Vec<f64> = (0..200_000).map(|_| stitch(0.5, process.step())).collect();
        of_sequence(&run, 4).iter().zip(rho).for_each(|(a, b)| near(*a, b, 0.02));
    }

    #[test]
    fn sequences_by_hand() {
        // Deviations 1, -1, 1, -1: lag 1 is -3/4, lag 2 is 2/4.
        assert_eq!(of_sequence(&[3.0, 1.0, 3.0, 1.0], 5), [-0.75, 0.5, -0.25, 0.0, 0.0]);
        assert_eq!(of_sequence(&[2.0, 2.0], 1), [0.0]);
        assert_eq!(of_sequence(&[], 2), [0.0, 0.0]);
    }
}
