//! Bursts of losses from a two-state Markov chain (Gilbert 1960, Elliott 1963).
//!
//! ```text
//!            p_gb
//!        ───────────▶
//!  Good (k_g)       Bad (k_b)        k: probability that a packet sent in this state is lost
//!        ◀───────────
//!            p_bg
//! ```
//! Per packet: draw the loss from the current state, then move. The chain starts in its stationary distribution.

use super::model::{Losses, Model};
use crate::packet::PacketView;
use crate::param::{ParamError, probability, within};
use alloc::boxed::Box;
use alloc::string::String;
use skyhaul_base::Rng;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Probability;
use skyhaul_base::rng::Chance;

/// A two-state Markov chain (Gilbert-Elliott) with one step per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Probability of a transition from the good to the bad state.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub p_gb: f64,
    /// Probability of a transition from the bad to the good state.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub p_bg: f64,
    /// Loss probability in the good state; 0 by default.
    #[cfg_attr(feature = "serde", serde(default, with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub k_g: f64,
    /// Loss probability in the bad state; 1 by default.
    #[cfg_attr(
        feature = "serde",
        serde(default = "always", with = "skyhaul_base::amount::plain::probability")
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub k_b: f64,
}

#[cfg(feature = "serde")]
fn always() -> f64 {
    1.0
}

impl Config {
    /// The classical case k_g = 0, k_b = 1 with a mean loss of `loss` and bursts of `burst` packets on average:
    /// p_bg = 1/burst, p_gb = loss/(burst·(1 − loss)).
    ///
    /// # Errors
    /// If `burst` is below 1, `loss` is no probability, or `loss` is so high that even good periods of one
    /// packet are too long: loss ≤ burst/(1 + burst).
    pub fn from_loss_and_burst(loss: f64, burst: f64) -> Result<Self, ParamError> {
        let burst = within("burst", burst, 1.0, f64::MAX)?;
        let loss = within("loss", loss, 0.0, burst / (1.0 + burst))?;
        // Rounding may exceed the bound on `loss` slightly.
        let p_gb = (loss / (burst * (1.0 - loss))).min(1.0);
        Ok(Self { p_gb, p_bg: 1.0 / burst, k_g: 0.0, k_b: 1.0 })
    }
}

impl Model for Config {
    type Losses = Box<GilbertElliott>;
    type Invalid = ParamError;
    type Canonical = Self;

    fn validate(&self) -> Result<(), ParamError> {
        let all = [("p-gb", self.p_gb), ("p-bg", self.p_bg), ("k-g", self.k_g), ("k-b", self.k_b)];
        all.into_iter().try_for_each(|(key, p)| probability(key, p).map(|_| ()))
    }
    fn build(&self) -> Box<GilbertElliott> {
        Box::new(GilbertElliott::of(self))
    }
    fn canonical(self) -> Self {
        self
    }
    fn mean_loss(&self, _: u32) -> f64 {
        GilbertElliott::of(self).mean_loss()
    }
    fn words(&self, _: &dyn Fn(f64) -> String) -> String {
        "losses in bursts (Gilbert–Elliott)".into()
    }
}

/// The chain and its current state. Two draws per packet, and one more at the first packet for the initial state.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    good: State,
    bad: State,
    stationary: Chance,
    /// `None` before the first packet.
    is_bad: Option<bool>,
    p_gb: f64,
    p_bg: f64,
    k_g: f64,
    k_b: f64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    loss: Chance,
    leave: Chance,
}

impl GilbertElliott {
    /// A chain that moves from good to bad with probability `p_gb` per packet and back with `p_bg`, and loses
    /// packets with probability `k_g` in the good and `k_b` in the bad state. (netem's `gemodel p r 1-h 1-k`
    /// is `p_gb p_bg k_b k_g`.)
    ///
    /// # Errors
    /// If an argument is not a probability.
    pub fn new(p_gb: f64, p_bg: f64, k_g: f64, k_b: f64) -> Result<Self, ParamError> {
        let config = Config { p_gb, p_bg, k_g, k_b };
        config.validate().map(|()| Self::of(&config))
    }

    fn of(&Config { p_gb, p_bg, k_g, k_b }: &Config) -> Self {
        let mut chain = Self {
            good: State { loss: Chance::new(k_g), leave: Chance::new(p_gb) },
            bad: State { loss: Chance::new(k_b), leave: Chance::new(p_bg) },
            stationary: Chance::NEVER,
            is_bad: None,
            p_gb,
            p_bg,
            k_g,
            k_b,
        };
        chain.stationary = Chance::new(chain.share_bad());
        chain
    }

    /// A chain of [`Config::from_loss_and_burst`].
    ///
    /// # Errors
    /// As there.
    pub fn from_loss_and_burst(loss: f64, burst: f64) -> Result<Self, ParamError> {
        Config::from_loss_and_burst(loss, burst).map(|config| Self::of(&config))
    }

    /// Long-run fraction of packets sent in the bad state. A chain that never moves stays good.
    #[must_use]
    pub fn share_bad(&self) -> f64 {
        if self.p_gb == 0.0 { 0.0 } else { self.p_gb / (self.p_gb + self.p_bg) }
    }
    /// Long-run fraction of packets lost.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let bad = self.share_bad();
        bad * self.k_b + (1.0 - bad) * self.k_g
    }
    /// Mean number of packets in one stay in the bad state.
    #[must_use]
    pub fn mean_burst(&self) -> f64 {
        1.0 / self.p_bg
    }

    /// Whether the packet is lost; advances the chain.
    pub fn loses(&mut self, rng: &mut Rng) -> bool {
        let bad = self.is_bad.unwrap_or_else(|| rng.chance(self.stationary));
        let state = if bad { self.bad } else { self.good };
        let lost = rng.chance(state.loss);
        self.is_bad = Some(bad ^ rng.chance(state.leave));
        lost
    }
}

impl Losses for Box<GilbertElliott> {
    #[inline(never)]
    fn loses(&mut self, _: &impl PacketView, rng: &mut Rng) -> bool {
        GilbertElliott::loses(self, rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(p_gb: f64, p_bg: f64, k_g: f64, k_b: f64) -> GilbertElliott {
        GilbertElliott::new(p_gb, p_bg, k_g, k_b).unwrap()
    }

    #[test]
    fn parameters_from_mean_loss_and_burst() {
        for (loss, burst, p_gb, p_bg) in [(0.01, 5.0, 2.0202e-3, 0.2), (1e-3, 10.0, 1.001e-4, 0.1)] {
            let c = GilbertElliott::from_loss_and_burst(loss, burst).unwrap();
            assert!((c.p_gb / p_gb - 1.0).abs() < 5e-5 && c.p_bg == p_bg, "{c:?}");
            assert!((c.mean_loss() - loss).abs() < 1e-15 && c.mean_burst() == burst);
        }
        assert!(GilbertElliott::from_loss_and_burst(0.5, 0.5).is_err());
        assert!(GilbertElliott::from_loss_and_burst(0.51, 1.0).is_err(), "p_gb would exceed 1");
        assert_eq!(GilbertElliott::from_loss_and_burst(0.5, 1.0).unwrap().p_gb, 1.0);
    }

    #[test]
    fn long_run_loss_and_burst_length_match_the_closed_forms() {
        let n = 2_000_000u32;
        for (loss, burst) in [(0.01, 5.0), (0.05, 2.0), (0.2, 20.0)] {
            let mut c = GilbertElliott::from_loss_and_burst(loss, burst).unwrap();
            let mut rng = Rng::stream(11, "links.sat.error");
            let (mut losses, mut bursts, mut before) = (0.0, 0.0, false);
            for _ in 0..n {
                let lost = c.loses(&mut rng);
                losses += f64::from(u8::from(lost));
                bursts += f64::from(u8::from(lost && !before));
                before = lost;
            }
            // Variance of the mean of a two-state chain with second eigenvalue r: p(1-p)(1+r)/(1-r)/n.
            let r = 1.0 - c.p_gb - c.p_bg;
            let dev = (loss * (1.0 - loss) * (1.0 + r) / (1.0 - r) / f64::from(n)).sqrt();
            let mean = losses / f64::from(n);
            assert!((mean - loss).abs() < 5.0 * dev, "{mean} {loss} {dev}");
            // Burst lengths are geometric.
            let dev = (burst * (burst - 1.0) / bursts).sqrt();
            let length = losses / bursts;
            assert!((length - burst).abs() < 5.0 * dev, "{length} {burst} {dev}");
        }
    }

    #[test]
    fn losses_in_both_states() {
        let (n, k_g, k_b) = (1_000_000u32, 0.02, 0.6);
        let mut c = chain(0.01, 0.05, k_g, k_b);
        let mut rng = Rng::stream(12, "links.sat.error");
        let mean = f64::from((0..n).map(|_| u32::from(c.loses(&mut rng))).sum::<u32>()) / f64::from(n);
        // Var = Var of Bernoulli + (k_b - k_g)² times the covariances of the state, summed.
        let (b, r) = (c.share_bad(), 0.94);
        let p = c.mean_loss();
        let var = p * (1.0 - p) + (k_b - k_g) * (k_b - k_g) * b * (1.0 - b) * 2.0 * r / (1.0 - r);
        assert!((p - (0.02 + 0.58 / 6.0)).abs() < 1e-12);
        assert!((mean - p).abs() < 5.0 * (var / f64::from(n)).sqrt(), "{mean} {p}");
    }

    #[test]
    fn the_chain_starts_stationary() {
        let n = 20_000u64;
        let first =
            (0..n).filter(|seed| chain(0.03, 0.07, 0.0, 1.0).loses(&mut Rng::stream(*seed, "e"))).count();
        let dev = (n as f64 * 0.3 * 0.7).sqrt();
        assert!((first as f64 - 0.3 * n as f64).abs() < 5.0 * dev, "{first}");
    }

    #[test]
    fn degenerate_chains() {
        let mut rng = Rng::stream(1, "e");
        let mut run =
            |mut c: GilbertElliott| (0..6).map(|_| c.loses(&mut rng)).collect::<alloc::vec::Vec<_>>();
        assert_eq!(run(chain(0.0, 0.0, 0.0, 1.0)), [false; 6], "a chain that never moves stays good");
        assert_eq!(run(chain(0.5, 0.0, 1.0, 1.0)), [true; 6]);
        let flip = run(chain(1.0, 1.0, 0.0, 1.0));
        assert!(flip.windows(2).all(|w| w[0] != w[1]), "strictly alternating: {flip:?}");
    }

    #[test]
    fn every_packet_takes_two_draws() {
        let mut c = chain(0.3, 0.3, 0.5, 0.5);
        let mut a = Rng::stream(1, "e");
        let mut b = a.clone();
        let _ = b.next_u64();
        for _ in 0..1000 {
            c.loses(&mut a);
            let _ = (b.next_u64(), b.next_u64());
            assert_eq!(a, b);
        }
    }
}
