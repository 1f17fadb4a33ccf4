//! TES processes: sequences that are uniform on the unit circle, with correlations given by their innovations.
//!
//! \[Mel\] B. Melamed, "The empirical TES methodology: modeling empirical time series", Journal of Applied Mathematics and
//! Stochastic Analysis 10(4), 1997; D. Jagerman, B. Melamed, "The transition and autocorrelation structure of TES
//! processes", Stochastic Models 8, 1992. Applied to frames of MPEG-4: A. Matrawy, I. Lambadaris, C. Huang, "MPEG4 traffic
//! modeling using the transform expand sample methodology", IEEE Workshop on Networked Appliances, 2002.

use skyhaul_base::{Rng, math};

/// x − ⌊x⌋ for x in [−1, 2], always below 1 despite rounding.
pub(super) fn fraction(x: f64) -> f64 {
    debug_assert!((-1.0..=2.0).contains(&x), "{x} is at most once around the circle away");
    let f = if x < 0.0 {
        x + 1.0
    } else if x >= 1.0 {
        x - 1.0
    } else {
        x
    };
    if f < 1.0 { f } else { 0.0 }
}

/// The sign of the TES process.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub enum Sign {
    /// TES+: neighbouring values are similar.
    #[default]
    #[serde(rename = "+")]
    Plus,
    /// TES−: every second value is mirrored, so that neighbouring values differ.
    #[serde(rename = "-")]
    Minus,
}

/// The density of the increment between values: steps, each chosen with its weight. Drawing takes two numbers of
/// the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Innovation {
    steps: Vec<Step>,
}

/// One step of a density: uniform between two bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Lower bound.
    pub from: f64,
    /// Upper bound, above the lower.
    pub to: f64,
    /// Probability.
    pub weight: f64,
}

impl Innovation {
    /// Uniform on [−`half`, `half`).
    #[must_use]
    pub fn uniform(half: f64) -> Self {
        Self { steps: vec![Step { from: -half, to: half, weight: 1.0 }] }
    }
    /// These steps, with weights divided by their sum. `None` if there is none, one is empty, a weight is negative,
    /// all are zero, or one reaches beyond ±1, once around the circle.
    #[must_use]
    pub fn steps(steps: &[Step]) -> Option<Self> {
        let sum: f64 = steps.iter().map(|s| s.weight).sum();
        let sound = |s: &Step| s.from >= -1.0 && s.from < s.to && s.to <= 1.0 && s.weight >= 0.0;
        if !(steps.iter().all(sound) && sum > 0.0 && sum.is_finite()) {
            return None;
        }
        Some(Self { steps: steps.iter().map(|s| Step { weight: s.weight / sum, ..*s }).collect() })
    }
    /// Whether each step and its mirror image have the same weight, as TES− requires.
    #[must_use]
    pub fn is_symmetric(&self) -> bool {
        let alike = |a: f64, b: f64| math::abs(a - b) < 1e-12;
        self.steps.iter().all(|s| {
            let mirrored = |t: &&Step| alike(t.from, -s.to) && alike(t.to, -s.from);
            let same = |t: &&Step| alike(t.from, s.from) && alike(t.to, s.to);
            let weight =
                |of: &dyn Fn(&&Step) -> bool| -> f64 { self.steps.iter().filter(of).map(|t| t.weight).sum() };
            alike(weight(&mirrored), weight(&same))
        })
    }
    /// A draw.
    pub fn draw(&self, rng: &mut Rng) -> f64 {
        let (mut which, place) = (rng.unit(), rng.unit());
        let last = self.steps.len() - 1;
        for (i, s) in self.steps.iter().enumerate() {
            if which < s.weight || i == last {
                return s.from + (s.to - s.from) * place;
            }
            which -= s.weight;
        }
        0.0
    }
    /// The characteristic function at −2πv: E\[exp(−i2πvV)\], real and imaginary part.
    #[must_use]
    pub fn transform(&self, v: u32) -> (f64, f64) {
        let v = f64::from(v);
        self.steps.iter().fold((0.0, 0.0), |(re, im), s| {
            let size = s.weight * sinc(v * (s.to - s.from));
            let angle = -core::f64::consts::PI * v * (s.from + s.to);
            (re + size * math::cos(angle), im + size * math::sin(angle))
        })
    }
}

/// sin(πx) / (πx).
fn sinc(x: f64) -> f64 {
    let angle = core::f64::consts::PI * x;
    if math::abs(angle) < 1e-9 { 1.0 } else { math::sin(angle) / angle }
}

/// Stitching (\[Mel\] §3.2): maps a position `u` on the circle, at least 0 and below 1, to a value that does not jump where the
/// circle closes. The value rises from 0 to 1 at `xi` and falls back to 0 at the end. `xi` = 1 leaves `u` unchanged, and
/// `xi` = 0 gives 1 − `u`. A uniform distribution stays uniform.
#[must_use]
pub fn stitch(xi: f64, u: f64) -> f64 {
    if u < xi { u / xi } else { (1.0 - u) / (1.0 - xi) }
}

/// A running TES process. Its values are uniform on [0, 1).
#[derive(Clone, Debug)]
pub struct Process {
    sign: Sign,
    innovation: Innovation,
    /// Position on the circle.
    u: f64,
    /// The current value is the second, fourth and so on, which TES− mirrors.
    odd: bool,
    rng: Rng,
}

impl Process {
    /// A process that starts at a random position on the circle.
    #[must_use]
    pub fn new(sign: Sign, innovation: Innovation, mut rng: Rng) -> Self {
        let u = rng.unit();
        Self { sign, innovation, u, odd: false, rng }
    }
    /// Returns the current value and advances.
    pub fn step(&mut self) -> f64 {
        let value = if self.odd && self.sign == Sign::Minus { fraction(1.0 - self.u) } else { self.u };
        self.u = fraction(self.u + self.innovation.draw(&mut self.rng));
        self.odd = !self.odd;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_function_is_drawn_as_it_stands() {
        let steps = [
            Step { from: -0.3, to: -0.1, weight: 1.0 },
            Step { from: 0.0, to: 0.1, weight: 2.0 },
            Step { from: 0.1, to: 0.4, weight: 1.0 },
        ];
        let density = Innovation::steps(&steps).unwrap();
        let mut rng = Rng::stream(1, "v");
        let n = 100_000;
        let drawn: Vec<f64> = (0..n).map(|_| density.draw(&mut rng)).collect();
        let share = |a: f64, b: f64| drawn.iter().filter(|v| **v >= a && **v < b).count() as f64 / n as f64;
        for (from, to, expected) in [(-0.3, -0.1, 0.25), (0.0, 0.1, 0.5), (0.1, 0.4, 0.25), (-0.1, 0.0, 0.0)]
        {
            assert!(math::abs(share(from, to) - expected) < 0.008, "{from}: {}", share(from, to));
        }
        assert!(!density.is_symmetric() && Innovation::uniform(0.2).is_symmetric());
        // The characteristic function is the mean of the drawn.
        let (re, im) = density.transform(2);
        let mean = |f: fn(f64) -> f64| {
            drawn.iter().map(|v| f(-4.0 * core::f64::consts::PI * v)).sum::<f64>() / n as f64
        };
        assert!(math::abs(re - mean(math::cos)) < 0.01 && math::abs(im - mean(math::sin)) < 0.01);
    }

    #[test]
    fn invalid_densities_are_refused() {
        let one = |from, to, weight| Innovation::steps(&[Step { from, to, weight }]);
        assert!(one(-0.1, 0.1, 5.0).is_some());
        for none in [
            one(0.1, 0.1, 1.0),
            one(0.2, 0.1, 1.0),
            one(0.0, 1.5, 1.0),
            one(0.0, 0.1, -1.0),
            one(0.0, 0.1, 0.0),
            one(f64::NAN, 0.1, 1.0),
        ] {
            assert_eq!(none, None);
        }
        assert_eq!(Innovation::steps(&[]), None);
    }

    #[test]
    fn stitching_is_continuous_around_the_circle() {
        for xi in [0.1, 0.3, 0.5, 0.9] {
            assert!(stitch(xi, 0.0) == 0.0 && stitch(xi, 1.0 - 1e-12) < 1e-10);
            assert!(
                math::abs(stitch(xi, xi) - 1.0) < 1e-12 && math::abs(stitch(xi, xi - 1e-13) - 1.0) < 1e-11
            );
        }
        assert_eq!((stitch(1.0, 0.7), stitch(0.0, 0.7)), (0.7, 1.0 - 0.7));
    }

    #[test]
    fn values_are_uniform_whatever_the_innovations() {
        let drift = Innovation::steps(&[Step { from: 0.0, to: 0.05, weight: 1.0 }]).unwrap();
        for (sign, innovation) in [(Sign::Plus, drift), (Sign::Minus, Innovation::uniform(0.4))] {
            let mut p = Process::new(sign, innovation, Rng::stream(3, "u"));
            let mut cells = [0u32; 10];
            let n = 400_000;
            for _ in 0..n {
                let u = p.step();
                assert!((0.0..1.0).contains(&u));
                cells[(u * 10.0) as usize] += 1;
            }
            for count in cells {
                assert!(math::abs(f64::from(count) / f64::from(n) - 0.1) < 0.005, "{cells:?}");
            }
        }
    }
}
