//! Independent packet losses. [Peach §V] uses probabilities from 0 to 1e-2, [Peach+] up to 5e-2.

use super::model::{Losses, Model};
use crate::packet::PacketView;
use crate::param::{ParamError, probability};
use alloc::format;
use alloc::string::String;
use skyhaul_base::Rng;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Probability;
use skyhaul_base::rng::Chance;

/// Independent packet losses.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Loss probability of a packet, the same for data and probes.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub p: f64,
}

/// Loses each packet with the same probability. One draw per packet, none if the probability is 0.
#[derive(Clone, Copy, Debug)]
pub struct Per(Chance);

impl Model for Config {
    type Losses = Per;
    type Invalid = ParamError;
    type Canonical = Self;

    fn validate(&self) -> Result<(), ParamError> {
        probability("p", self.p).map(|_| ())
    }
    fn build(&self) -> Per {
        Per(Chance::new(self.p))
    }
    fn canonical(self) -> Self {
        self
    }
    fn mean_loss(&self, _: u32) -> f64 {
        self.p
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        format!("independent losses with probability {}", number(self.p))
    }
}

impl Losses for Per {
    #[inline(always)]
    fn loses(&mut self, _: &impl PacketView, rng: &mut Rng) -> bool {
        !self.0.is_never() && rng.chance(self.0)
    }
}
