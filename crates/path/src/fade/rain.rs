//! Rain on the path.
//!
//! \[P.1853\] ITU-R P.1853, "Time series synthesis of tropospheric impairments": attenuation is log-normal, and its
//! logarithm is a first-order Gaussian process (T. Maseng, P. M. Bakken, "A stochastic dynamic model of rain
//! attenuation", IEEE Transactions on Communications 29(5), 1981). With one sample per second
//!
//! ```text
//! X(j+1) = ρ·X(j) + sqrt(1 − ρ²)·N(0, 1),     ρ = exp(−β·1 s)
//! A(j)   = max(exp(m + σ·X(j)) − A_off, 0) dB,  A_off = exp(m + σ·Qinv(P0))
//! ```
//! with the probability P0 that it rains. The first X is drawn from N(0, 1), so no warm-up is needed.
//!
//! The default is a temperate climate in the Ka band: the fit of the code published with \[P.1853\] (ONERA, 2010)
//! to its example. The dynamics, β, were validated with measurements at middle latitudes; another climate or
//! elevation needs at least its own statistics (ITU-R P.618).

use super::Invalid;
use super::carrier;
use super::model::{Model, Sky, Weather};
use super::normal;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
#[cfg(feature = "schema")]
use skyhaul_base::amount::{Decibels, Frequency, Probability};
use skyhaul_base::{Duration, Instant, Rng, math};

/// Time between two samples.
const STEP: Duration = Duration::from_secs(1);

/// A point of the attenuation statistics: the attenuation that is exceeded for a share of time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ExceededSpec"))]
pub struct Exceeded {
    /// Share of time, as a fraction.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub share: f64,
    /// The attenuation exceeded for that share of time.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::decibels"))]
    #[cfg_attr(feature = "schema", schemars(with = "Decibels"))]
    pub attenuation: f64,
}

/// Rain: log-normal attenuation that changes every second.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Attenuation statistics to which `m` and `sigma` are fitted: attenuations, and the shares of time for which they
    /// are exceeded. Shares above `rain-probability` are not used.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub exceeded: Vec<Exceeded>,
    /// Mean of the natural logarithm of the attenuation in dB; -3.794 by default.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub m: Option<f64>,
    /// Standard deviation of that logarithm; 1.779 by default.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub sigma: Option<f64>,
    /// Probability that it rains on the path; 0.0491 by default.
    #[cfg_attr(
        feature = "serde",
        serde(default = "rain_probability", with = "skyhaul_base::amount::plain::probability")
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub rain_probability: f64,
    /// Rate of change of the process (P.1853); 2e-4 /s by default.
    #[cfg_attr(feature = "serde", serde(default = "beta", with = "skyhaul_base::amount::plain::frequency"))]
    #[cfg_attr(feature = "schema", schemars(with = "Frequency"))]
    pub beta: f64,
    /// Ratio of the attenuation in dB in this direction to that of the statistics, for another frequency; 1 by default.
    #[cfg_attr(feature = "serde", serde(default = "one"))]
    pub scale: f64,
    /// Both directions have the same rain, so that their attenuations differ only by `scale`; true by default.
    #[cfg_attr(feature = "serde", serde(default = "yes"))]
    pub shared: bool,
    /// The carrier that fades.
    pub carrier: carrier::Config,
}

#[cfg(feature = "serde")]
fn rain_probability() -> f64 {
    TEMPERATE.2
}
#[cfg(feature = "serde")]
fn beta() -> f64 {
    BETA
}
#[cfg(feature = "serde")]
fn one() -> f64 {
    1.0
}
#[cfg(feature = "serde")]
fn yes() -> bool {
    true
}

/// m, σ and P0 of the default.
const TEMPERATE: (f64, f64, f64) = (-3.794, 1.779, 0.0491);
/// The dynamics of [P.1853].
const BETA: f64 = 2e-4;

impl Config {
    /// The default rain with this carrier.
    #[must_use]
    pub fn temperate(carrier: carrier::Config) -> Self {
        Self {
            exceeded: Vec::new(),
            m: None,
            sigma: None,
            rain_probability: TEMPERATE.2,
            beta: BETA,
            scale: 1.0,
            shared: true,
            carrier,
        }
    }

    /// m and σ: as given, or from a least-squares fit of ln A against Qinv(share).
    #[must_use]
    pub fn fitted(&self) -> (f64, f64) {
        if self.exceeded.is_empty() {
            return (self.m.unwrap_or(TEMPERATE.0), self.sigma.unwrap_or(TEMPERATE.1));
        }
        let points = || {
            let rain = self.exceeded.iter().filter(|e| e.share <= self.rain_probability);
            rain.map(|e| (normal::exceeded_with(e.share), math::ln(e.attenuation)))
        };
        let n = points().count() as f64;
        let (mut x, mut y) = (0.0, 0.0);
        points().for_each(|(px, py)| (x, y) = (x + px / n, y + py / n));
        let (mut products, mut squares) = (0.0, 0.0);
        for (px, py) in points() {
            products += (px - x) * (py - y);
            squares += (px - x) * (px - x);
        }
        let sigma = products / squares;
        (y - sigma * x, sigma)
    }

    /// The attenuation in dB that the fit gives a dry path, to be subtracted.
    #[must_use]
    pub fn offset(&self) -> f64 {
        let (m, sigma) = self.fitted();
        math::exp(m + sigma * normal::exceeded_with(self.rain_probability))
    }

    /// Refuses points that do not determine a line.
    fn validate_points(&self) -> Result<(), Invalid> {
        let refuse = |message| Err(Invalid { key: "exceeded", message });
        if self.m.is_some() || self.sigma.is_some() {
            return refuse("m and sigma are fitted to this: leave out either this or m and sigma".into());
        }
        for (i, e) in self.exceeded.iter().enumerate() {
            if !(e.share > 0.0 && e.share < 1.0) {
                return refuse(format!("a share of {}: write a number above 0 and below 1", e.share));
            }
            if !(e.attenuation > 0.0 && e.attenuation <= 200.0) {
                return refuse(format!("{} dB: write above 0 dB, up to 200 dB", e.attenuation));
            }
            let before = i.checked_sub(1).map(|j| self.exceeded[j]);
            if before.is_some_and(|b| b.share >= e.share || b.attenuation <= e.attenuation) {
                return refuse("sort them by ascending share and descending attenuation".into());
            }
        }
        let rain = self.exceeded.iter().filter(|e| e.share <= self.rain_probability).count();
        if rain < 2 {
            return refuse(format!(
                "only {rain} of them have a share of at most rain-probability, {}: write at least two",
                self.rain_probability
            ));
        }
        Ok(())
    }
}

impl Model for Config {
    type Run = Rain;

    fn validate(&self) -> Result<(), Invalid> {
        let within = |key, x: f64, min: f64, max: f64| {
            if x >= min && x <= max {
                return Ok(());
            }
            Err(Invalid { key, message: format!("{x}: write a number from {min} to {max}") })
        };
        within("rain-probability", self.rain_probability, 1e-6, 0.999)?;
        within("beta", self.beta, 1e-9, 10.0)?;
        within("scale", self.scale, 0.0, 100.0)?;
        if !self.exceeded.is_empty() {
            self.validate_points()?;
        }
        let (m, sigma) = self.fitted();
        within("m", m, -50.0, 10.0)?;
        within("sigma", sigma, 1e-3, 10.0)?;
        self.carrier.validate()
    }
    fn carrier(&self) -> Option<&carrier::Config> {
        Some(&self.carrier)
    }
    fn carrier_mut(&mut self) -> Option<&mut carrier::Config> {
        Some(&mut self.carrier)
    }
    fn shared(&self) -> bool {
        self.shared
    }
    fn exceeded(&self, a: f64) -> f64 {
        if a < 0.0 || self.scale == 0.0 {
            return f64::from(u8::from(a < 0.0));
        }
        let (m, sigma) = self.fitted();
        normal::above((math::ln(a / self.scale + self.offset()) - m) / sigma)
    }
    fn loss(&self) -> f64 {
        0.0
    }
    fn words(&self) -> String {
        "rain".into()
    }
    fn run(&self, mut rng: Rng) -> Rain {
        let (m, sigma) = self.fitted();
        let rho = math::exp(-self.beta * STEP.as_secs_f64());
        let x = rng.normal();
        Rain {
            m,
            sigma,
            offset: self.offset(),
            scale: self.scale,
            rho,
            noise: math::sqrt(1.0 - rho * rho),
            x,
            next: Instant::ZERO + STEP,
            rng,
        }
    }
}

/// Rain in progress.
#[derive(Clone, Debug)]
pub struct Rain {
    m: f64,
    sigma: f64,
    offset: f64,
    scale: f64,
    rho: f64,
    noise: f64,
    x: f64,
    next: Instant,
    rng: Rng,
}

impl Sky for Rain {
    fn weather(&self) -> Weather {
        let a = math::exp(self.m + self.sigma * self.x) - self.offset;
        Weather { attenuation: self.scale * a.max(0.0), loss: 0.0 }
    }
    fn next(&self) -> Instant {
        self.next
    }
    fn step(&mut self) {
        self.x = self.rho * self.x + self.noise * self.rng.normal();
        self.next += STEP;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn temperate() -> Config {
        Config::temperate(carrier::Config::default())
    }
    fn points(points: &[(f64, f64)]) -> Vec<Exceeded> {
        points.iter().map(|&(share, attenuation)| Exceeded { share, attenuation }).collect()
    }

    #[test]
    fn the_default_is_what_was_published_with_it() {
        let c = temperate();
        assert_eq!(c.fitted(), (-3.794, 1.779));
        assert!((c.offset() - 0.426).abs() < 5e-4, "{}", c.offset());
        // 3 dB: (ln 3.426 + 3.794)/1.779 = 2.825, which is exceeded for 0.236 % of time; 10 dB for 0.028 %.
        assert!((c.exceeded(3.0) - 2.36e-3).abs() < 5e-6, "{}", c.exceeded(3.0));
        assert!((c.exceeded(10.0) - 2.8e-4).abs() < 5e-6, "{}", c.exceeded(10.0));
        assert!((c.exceeded(0.0) - 0.0491).abs() < 1e-12);
        let rain = c.run(Rng::stream(1, "x"));
        assert!((rain.rho - 0.999_8).abs() < 5e-8 && (rain.noise - 0.019_998_0).abs() < 5e-8);
    }

    #[test]
    fn the_fit_is_a_line_through_logarithms() {
        // Points of a log-normal attenuation give it back.
        let (m, sigma) = (-2.5, 1.4);
        let at = |share| (share, (m + sigma * normal::exceeded_with(share)).exp());
        let exact = Config {
            exceeded: points(&[1e-4, 1e-3, 1e-2, 3e-2, 0.5].map(at)),
            rain_probability: 0.04,
            ..temperate()
        };
        let fit = exact.fitted();
        assert!((fit.0 - m).abs() < 1e-12 && (fit.1 - sigma).abs() < 1e-12, "{fit:?}");
        // 16 dB, 5.63 dB and 1.39 dB, by hand: Qinv 3.71902, 3.09023, 2.32635; ln A 2.77259, 1.72811, 0.32930. Means
        // 3.04520 and 1.61000; sum of products 1.70947, sum of squares 0.97280.
        let c = Config { exceeded: points(&[(1e-4, 16.0), (1e-3, 5.63), (1e-2, 1.39)]), ..temperate() };
        let (m, sigma) = c.fitted();
        assert!((sigma - 1.7573).abs() < 5e-4 && (m - -3.7412).abs() < 1.5e-3, "{m} {sigma}");
        assert!(c.validate().is_ok());
    }

    #[test]
    fn the_share_of_time_above_a_level_is_that_of_the_distribution() {
        // With β = 1 /s neighbours have the correlation ρ = 1/e, and being above a level no more than that: n samples
        // tell as much as n·(1 − ρ)/(1 + ρ) = 0.462·n independent ones. Four deviations of those.
        let n = 2_000_000;
        let mut rain = Config { beta: 1.0, ..temperate() }.run(Rng::stream(1, "links.sat.fade"));
        let (mut above, mut far_above) = (0, 0);
        for _ in 0..n {
            let a = rain.weather().attenuation;
            above += u32::from(a > 3.0);
            far_above += u32::from(a > 10.0);
            rain.step();
        }
        for (count, p) in [(above, 2.36e-3), (far_above, 2.8e-4)] {
            let deviation = (p / (0.462 * f64::from(n))).sqrt();
            let share = f64::from(count) / f64::from(n);
            assert!((share - p).abs() < 4.0 * deviation, "{p}: {share} ± {deviation}");
        }
    }

    #[test]
    fn the_process_forgets_within_five_thousand_seconds() {
        // X(0)·X(5000 s) has mean 1/e and deviation sqrt(1 + 1/e²) = 1.066. Both have mean 0 and variance 1, whose
        // estimates have the deviations 1 and sqrt(2). Five deviations over 400 series.
        let n = 400;
        let (mut product, mut squares, mut sums) = (0.0, [0.0; 2], [0.0; 2]);
        for seed in 0..n {
            let mut rain = temperate().run(Rng::stream(seed, "links.sat.fade"));
            let first = rain.x;
            (0..5000).for_each(|_| rain.step());
            assert_eq!(rain.next(), Instant::ZERO + Duration::from_secs(5001));
            product += first * rain.x;
            for (i, x) in [first, rain.x].into_iter().enumerate() {
                squares[i] += x * x;
                sums[i] += x;
            }
        }
        let n = n as f64;
        assert!((product / n - (-1.0f64).exp()).abs() < 5.0 * 1.066 / n.sqrt(), "{}", product / n);
        for (square, sum) in squares.into_iter().zip(sums) {
            assert!((square / n - 1.0).abs() < 5.0 * 2f64.sqrt() / n.sqrt(), "{square}");
            assert!((sum / n).abs() < 5.0 / n.sqrt(), "{sum}");
        }
    }

    #[test]
    fn one_rain_over_two_frequencies_differs_by_its_scale() {
        let down = temperate();
        let up = Config { scale: 1.9, ..temperate() };
        let (mut a, mut b) = (down.run(Rng::stream(3, "x")), up.run(Rng::stream(3, "x")));
        let mut rained = 0;
        for _ in 0..200_000 {
            a.step();
            b.step();
            let (a, b) = (a.weather().attenuation, b.weather().attenuation);
            assert!((b - 1.9 * a).abs() <= 1e-12 * b);
            rained += u32::from(a > 0.0);
        }
        assert!(rained > 0);
        assert!((up.exceeded(1.9 * 3.0) - down.exceeded(3.0)).abs() < 1e-12);
    }

    #[test]
    fn rain_without_sense_is_refused() {
        let key = |c: Config| c.validate().unwrap_err().key;
        assert_eq!(key(Config { rain_probability: 0.0, ..temperate() }), "rain-probability");
        assert_eq!(key(Config { sigma: Some(-1.0), ..temperate() }), "sigma");
        assert_eq!(key(Config { beta: f64::NAN, ..temperate() }), "beta");
        let some = points(&[(1e-4, 16.0), (1e-3, 5.63)]);
        assert_eq!(key(Config { m: Some(1.0), exceeded: some.clone(), ..temperate() }), "exceeded");
        assert_eq!(key(Config { exceeded: vec![some[0]], ..temperate() }), "exceeded");
        assert_eq!(key(Config { exceeded: vec![some[1], some[0]], ..temperate() }), "exceeded");
        assert_eq!(key(Config { exceeded: points(&[(0.2, 2.0), (0.3, 1.0)]), ..temperate() }), "exceeded");
        let carrier = carrier::Config { margin: f64::NAN, ..carrier::Config::default() };
        assert_eq!(key(Config { carrier, ..temperate() }), "carrier.margin");
    }
}
