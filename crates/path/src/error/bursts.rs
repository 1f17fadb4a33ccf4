//! Bursts given by mean values: another parametrisation of the Gilbert-Elliott chain.

use super::gilbert::{self, GilbertElliott};
use super::model::Model;
use crate::param::Refusal;
use alloc::boxed::Box;
use alloc::string::String;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Probability;
use skyhaul_base::math;

/// Loss bursts with a given mean loss and mean length: a Gilbert-Elliott chain without losses in the good state.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Fraction of packets lost.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub loss: f64,
    /// Mean number of packets lost in a row, at least 1.
    pub burst: f64,
}

/// Impossible bursts.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// Shorter than one packet, or NaN.
    #[error("{0} is not a burst length: write a number ≥ 1")]
    Burst(f64),
    /// There is no room for a good packet between two bursts. The bound is rounded down, so that it is accepted.
    #[error(
        "with bursts of {burst} packets, at most {} of all packets can be lost",
        math::floor(*.most * 1e4) / 1e4
    )]
    Loss {
        /// Mean number of packets lost in a row.
        burst: f64,
        /// The maximum loss.
        most: f64,
    },
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        match self {
            Self::Burst(_) => "burst",
            Self::Loss { .. } => "loss",
        }
    }
}

impl Config {
    fn chain(&self) -> Result<gilbert::Config, Invalid> {
        let Self { loss, burst } = *self;
        if !(burst >= 1.0 && burst.is_finite()) {
            return Err(Invalid::Burst(burst));
        }
        let most = burst / (1.0 + burst);
        gilbert::Config::from_loss_and_burst(loss, burst).map_err(|_| Invalid::Loss { burst, most })
    }
    fn checked(&self) -> gilbert::Config {
        self.chain().expect("bursts that `validate` accepts")
    }
}

impl Model for Config {
    type Losses = Box<GilbertElliott>;
    type Invalid = Invalid;
    type Canonical = gilbert::Config;

    fn validate(&self) -> Result<(), Invalid> {
        self.chain().map(|_| ())
    }
    fn build(&self) -> Box<GilbertElliott> {
        self.checked().build()
    }
    fn canonical(self) -> gilbert::Config {
        self.checked()
    }
    fn mean_loss(&self, size: u32) -> f64 {
        self.checked().mean_loss(size)
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        self.checked().words(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn bursts_that_cannot_be_are_refused() {
        let refused = |loss, burst| Config { loss, burst }.validate().unwrap_err();
        assert_eq!(refused(0.1, 0.5), Invalid::Burst(0.5));
        assert_eq!(refused(0.9, 2.0), Invalid::Loss { burst: 2.0, most: 2.0 / 3.0 });
        assert_eq!(refused(0.9, 2.0).key(), "loss");
        // The bound that a message names is accepted.
        assert!(refused(0.9, 2.0).to_string().contains("at most 0.6666 of"));
        assert!(Config { loss: 0.6666, burst: 2.0 }.validate().is_ok());
        assert_eq!(Config { loss: 0.5, burst: 1.0 }.canonical().p_gb, 1.0);
    }
}
