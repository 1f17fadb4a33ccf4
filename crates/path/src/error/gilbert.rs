//! Bursts of losses from a two-state Markov chain (Gilbert 1960, Elliott 1963).
//!
//! ```text
//!            p_gb
//!        ───────────▶
//!  Good (k_g)       Bad (k_b)        k: probability that a packet sent in this state is lost
//!        ◀───────────
//!            p_bg
//! ```
//! Per packet: draw the loss from the present state, then move. The chain starts in its stationary
//! distribution.

use crate::param::{ParamError, probability, within};
use skyhaul_base::Rng;
use skyhaul_base::rng::Chance;

/// The chain and its present state. Two draws per packet, and one more at the first for the initial state.
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
    /// If an argument is no probability.
    pub fn new(p_gb: f64, p_bg: f64, k_g: f64, k_b: f64) -> Result<Self, ParamError> {
        let (p_gb, p_bg) = (probability("p_gb", p_gb)?, probability("p_bg", p_bg)?);
        let (k_g, k_b) = (probability("k_g", k_g)?, probability("k_b", k_b)?);
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
        Ok(chain)
    }

    /// The classical case k_g = 0, k_b = 1 with a mean loss of `loss` and bursts of `burst` packets on average:
    /// p_bg = 1/burst, p_gb = loss/(burst·(1 − loss)).
    ///
    /// # Errors
    /// If `burst` is below 1, `loss` is no probability, or `loss` is so high that even good periods of one
    /// packet are too long: loss ≤ burst/(1 + burst).
    pub fn from_loss_and_burst(loss: f64, burst: f64) -> Result<Self, ParamError> {
        let burst = within("burst", burst, 1.0, f64::MAX)?;
        let loss = within("loss", loss, 0.0, burst / (1.0 + burst))?;
        // The bound on `loss` may be met with a rounding error.
        Self::new((loss / (burst * (1.0 - loss))).min(1.0), 1.0 / burst, 0.0, 1.0)
    }

    /// Share of packets sent in the bad state in the long run. A chain that never moves stays good.
    #[must_use]
    pub fn share_bad(&self) -> f64 {
        if self.p_gb == 0.0 { 0.0 } else { self.p_gb / (self.p_gb + self.p_bg) }
    }
    /// Share of packets lost in the long run.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let bad = self.share_bad();
        bad * self.k_b + (1.0 - bad) * self.k_g
    }
    /// Mean number of packets sent in one stay in the bad state.
    #[must_use]
    pub fn mean_burst(&self) -> f64 {
        1.0 / self.p_bg
    }

    /// True if the packet is lost; moves the chain on.
    pub fn loses(&mut self, rng: &mut Rng) -> bool {
        let bad = self.is_bad.unwrap_or_else(|| rng.chance(self.stationary));
        let state = if bad { self.bad } else { self.good };
        let lost = rng.chance(state.loss);
        self.is_bad = Some(bad ^ rng.chance(state.leave));
        lost
    }
}
