//! Means and differences of means, with 95 % intervals.
//!
//! Two intervals are given. The *pointwise* one (Welch's t) has its coverage at one moment that was fixed in advance. The *lasting*
//! one covers the true value at all moments together with 95 %, so that one may look at any time and stop when it excludes zero. It
//! is a normal mixture (Robbins, Annals of Math. Statistics 41(5), 1970; asymptotic as in Waudby-Smith et al., arXiv:2103.06476):
//! with the standard error `s` and a prior of width τ, the half-width is `s √((1 + s²/τ²)(2 ln(1/α) + ln(1 + τ²/s²)))`.

use skyhaul_analysis::student::t_quantile_975;

/// Width τ of the prior of a difference of logarithms: the lasting interval is narrowest for effects of about this size.
const EFFECT: f64 = 0.3;
/// Error probability of the intervals.
const ALPHA: f64 = 0.05;
/// Groups of clients whose sums are kept when arms are assigned by client.
pub(crate) const GROUPS: usize = 16;

/// Running mean and variance (Welford, Technometrics 4(3), 1962).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Moments {
    n: u64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

impl Moments {
    pub(crate) fn add(&mut self, x: f64) {
        self.n += 1;
        let from = x - self.mean;
        self.mean += from / self.n as f64;
        self.squares += from * (x - self.mean);
    }
    fn mean(&self) -> Option<Mean> {
        let n = self.n as f64;
        (self.n >= 2).then(|| Mean {
            n: self.n,
            mean: self.mean,
            variance: self.squares / (n - 1.0) / n,
            freedom: n - 1.0,
        })
    }
}

/// Number and sum of samples per group of clients. A client's connections resemble each other, so the variance is taken between groups,
/// not between connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Grouped([(u64, f64); GROUPS]);

impl Grouped {
    pub(crate) fn add(&mut self, group: usize, x: f64) {
        if let Some(of) = self.0.get_mut(group % GROUPS) {
            of.0 += 1;
            of.1 += x;
        }
    }
    /// The ratio estimator of a mean over clusters (Cochran, Sampling Techniques, 3rd ed., §9A.2).
    fn mean(&self) -> Option<Mean> {
        let (n, sum) = self.0.iter().fold((0, 0.0), |(n, sum), of| (n + of.0, sum + of.1));
        let groups = self.0.iter().filter(|of| of.0 > 0).count() as f64;
        if groups < 2.0 {
            return None;
        }
        let mean = sum / n as f64;
        let square = |of: &(u64, f64)| (of.1 - of.0 as f64 * mean).powi(2);
        let squares = self.0.iter().map(square).sum::<f64>();
        let variance = groups / (groups - 1.0) * squares / (n as f64).powi(2);
        Some(Mean { n, mean, variance, freedom: groups - 1.0 })
    }
}

/// Samples of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Samples {
    /// Independent samples.
    Single(Moments),
    /// Samples that depend on each other within a client.
    Grouped(Box<Grouped>),
}

impl Samples {
    pub(crate) fn new(grouped: bool) -> Self {
        if grouped { Self::Grouped(Box::default()) } else { Self::Single(Moments::default()) }
    }
    pub(crate) fn add(&mut self, group: usize, x: f64) {
        match self {
            Self::Single(m) => m.add(x),
            Self::Grouped(g) => g.add(group, x),
        }
    }
    pub(crate) fn mean(&self) -> Option<Mean> {
        match self {
            Self::Single(m) => m.mean(),
            Self::Grouped(g) => g.mean(),
        }
    }
}

/// A mean, and the variance of this mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mean {
    pub(crate) n: u64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    /// Degrees of freedom of the variance.
    pub(crate) freedom: f64,
}

/// An estimate with its two intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) n: [u64; 2],
    pub(crate) value: f64,
    /// Half-width of the pointwise 95 % interval.
    pub(crate) pointwise: f64,
    /// Half-width of the lasting 95 % interval.
    pub(crate) lasting: f64,
}

/// The difference `second − first`, averaged over strata with the number of their samples as weight. Strata without a mean of one
/// side are left out; `None` if no stratum is left.
pub(crate) fn difference(strata: impl Iterator<Item = (Option<Mean>, Option<Mean>)>) -> Option<Interval> {
    let both: Vec<_> = strata.filter_map(|(a, b)| Some((a?, b?))).collect();
    let weight = |(a, b): &(Mean, Mean)| (a.n + b.n) as f64;
    let all = both.iter().map(weight).sum::<f64>();
    let (mut value, mut variance, mut per_freedom, mut n) = (0.0, 0.0, 0.0, [0, 0]);
    for (a, b) in &both {
        let w = weight(&(*a, *b)) / all;
        value += w * (b.mean - a.mean);
        for side in [a, b] {
            let part = w * w * side.variance;
            variance += part;
            per_freedom += part * part / side.freedom;
        }
        n = [n[0] + a.n, n[1] + b.n];
    }
    if both.is_empty() {
        return None;
    }
    // Welch and Satterthwaite; rounded down, which widens the interval.
    let freedom = if per_freedom > 0.0 { variance * variance / per_freedom } else { 1.0 };
    let freedom = (freedom.floor() as usize).max(1);
    Some(Interval {
        n,
        value,
        pointwise: t_quantile_975(freedom) * variance.sqrt(),
        lasting: lasting(variance),
    })
}

/// The mean, and the half-width of its pointwise 95 % interval.
pub(crate) fn alone(mean: Mean) -> (f64, f64) {
    (mean.mean, quantile(mean.freedom) * mean.variance.sqrt())
}

/// 97.5 % quantile of the normal distribution.
const NORMAL: f64 = 1.959_963_984_540_054;

/// 97.5 % quantile of Student's t. A fraction of a degree of freedom is cut off, which widens the interval.
fn quantile(freedom: f64) -> f64 {
    let freedom = freedom.floor().max(1.0);
    if freedom < 50.0 {
        return t_quantile_975(freedom as usize);
    }
    // Fisher's expansion (Abramowitz and Stegun, 26.7.5): constant work for many samples.
    let z = NORMAL;
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    let first = (z3 + z) / 4.0;
    let second = (5.0 * z5 + 16.0 * z3 + 3.0 * z) / 96.0;
    let third = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

/// Half-width of the lasting interval of an estimate with this variance.
fn lasting(variance: f64) -> f64 {
    if variance <= 0.0 {
        return 0.0;
    }
    let per = variance / (EFFECT * EFFECT);
    (variance * (1.0 + per) * (2.0 * (1.0 / ALPHA).ln() + (1.0 + 1.0 / per).ln())).sqrt()
}

/// The difference `first − second` of two shares, and the half-width of its pointwise 95 % interval (Agresti and Caffo, The American
/// Statistician 54(4), 2000). Each side is a count and its total.
pub(crate) fn shares(first: (u64, u64), second: (u64, u64)) -> (f64, f64) {
    let adjusted = |(x, n): (u64, u64)| {
        let n = n as f64 + 2.0;
        let p = (x as f64 + 1.0) / n;
        (p, p * (1.0 - p) / n)
    };
    let ((p, v), (q, w)) = (adjusted(first), adjusted(second));
    (p - q, NORMAL * (v + w).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Rng;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} is not {b}");
    }
    fn of(values: &[f64]) -> Option<Mean> {
        let mut m = Moments::default();
        values.iter().for_each(|x| m.add(*x));
        m.mean()
    }

    #[test]
    fn means_and_variances_are_the_closed_forms() {
        let m = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        near(m.mean, 5.0);
        near(m.variance, 32.0 / 7.0 / 8.0);
        assert_eq!(of(&[1.0]), None);
    }

    /// Two samples of Welch's kind, worked by hand: means 12 and 20, variances 10/3 and 18, four each.
    #[test]
    fn welch_by_hand() {
        let (a, b) = ([10.0, 11.0, 13.0, 14.0], [15.0, 18.0, 23.0, 24.0]);
        let d = difference(std::iter::once((of(&a), of(&b)))).unwrap();
        near(d.value, 8.0);
        let (va, vb) = (10.0 / 3.0 / 4.0, 54.0 / 3.0 / 4.0);
        // (va + vb)² / (va²/3 + vb²/3) = 4.076…: four degrees of freedom, whose quantile is 2.7764.
        let freedom: f64 = (va + vb) * (va + vb) / ((va * va + vb * vb) / 3.0);
        assert_eq!(freedom.floor(), 4.0);
        assert!((d.pointwise - 2.776_445_105_198 * f64::sqrt(va + vb)).abs() < 1e-6, "{d:?}");
        assert!(d.lasting > d.pointwise);
        // A stratum without samples of one side changes nothing.
        let more = difference([(of(&a), of(&b)), (of(&a), None)].into_iter()).unwrap();
        assert_eq!(more, d);
        // Two equal strata: the same difference, half the variance.
        let twice = difference([(of(&a), of(&b)); 2].into_iter()).unwrap();
        near(twice.value, 8.0);
        assert!(twice.pointwise < d.pointwise / f64::sqrt(2.0));
    }

    #[test]
    fn the_expansion_is_the_quantile() {
        for n in [50, 51, 100, 700, 1999] {
            let (found, exact) = (quantile(n as f64 + 0.9), t_quantile_975(n));
            assert!((found - exact).abs() < 1e-5, "{n}: {found} is not {exact}");
        }
    }

    #[test]
    fn groups_of_one_each_are_independent_samples() {
        let mut g = Grouped::default();
        let values: Vec<f64> = (0..GROUPS).map(|k| (k * k) as f64).collect();
        for (k, x) in values.iter().enumerate() {
            g.add(k, *x);
        }
        let (g, m) = (g.mean().unwrap(), of(&values).unwrap());
        near(g.mean, m.mean);
        near(g.variance, m.variance);
        assert_eq!(g.freedom, m.freedom);
        // One group alone says nothing about the others.
        let mut one = Grouped::default();
        (0..50).for_each(|_| one.add(3, 1.0));
        assert_eq!(one.mean(), None);
    }

    /// Repeated copies of a client's value are no new information.
    #[test]
    fn groups_see_that_copies_are_no_samples() {
        let (mut once, mut often) = (Grouped::default(), Grouped::default());
        for k in 0..GROUPS {
            once.add(k, k as f64);
            (0..100).for_each(|_| often.add(k, k as f64));
        }
        near(once.mean().unwrap().variance, often.mean().unwrap().variance);
    }

    #[test]
    fn shares_by_hand() {
        let (d, half) = shares((7, 8), (1, 8));
        near(d, 0.6);
        near(half, NORMAL * f64::sqrt(2.0 * 0.8 * 0.2 / 10.0));
    }

    /// An observer checks after every pair of samples that do not differ, and stops at the first interval without zero: the lasting one
    /// misleads at most 5 %, the pointwise one far more.
    #[test]
    fn who_looks_at_any_time_is_not_misled() {
        let mut rng = Rng::stream(7, "evidence");
        let (mut lasting, mut pointwise) = (0, 0);
        const RUNS: u32 = 300;
        for _ in 0..RUNS {
            let (mut a, mut b) = (Moments::default(), Moments::default());
            let mut misled = (false, false);
            for k in 0..1000 {
                // Logarithms of completion times: their spread is about 1.
                let mut draw = || (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                a.add(draw());
                b.add(draw());
                if k >= 19 && k % 5 == 0 {
                    let d = difference(std::iter::once((a.mean(), b.mean()))).unwrap();
                    misled.0 |= d.value.abs() > d.lasting;
                    misled.1 |= d.value.abs() > d.pointwise;
                }
            }
            lasting += u32::from(misled.0);
            pointwise += u32::from(misled.1);
        }
        assert!(lasting * 20 <= RUNS, "{lasting} of {RUNS}");
        assert!(pointwise * 5 > RUNS, "{pointwise} of {RUNS}");
    }
}
