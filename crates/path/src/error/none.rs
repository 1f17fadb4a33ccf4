//! A channel without losses.

use super::model::{Losses, Model};
use crate::packet::PacketView;
use alloc::string::String;
use core::convert::Infallible;
use skyhaul_base::Rng;

/// No losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {}

/// Loses nothing. No draws.
#[derive(Clone, Copy, Debug)]
pub struct Lossless;

impl Model for Config {
    type Losses = Lossless;
    type Invalid = Infallible;
    type Canonical = Self;

    fn validate(&self) -> Result<(), Infallible> {
        Ok(())
    }
    fn build(&self) -> Lossless {
        Lossless
    }
    fn canonical(self) -> Self {
        self
    }
    fn mean_loss(&self, _: u32) -> f64 {
        0.0
    }
    fn words(&self, _: &dyn Fn(f64) -> String) -> String {
        "no errors".into()
    }
}

impl Losses for Lossless {
    #[inline]
    fn is_lossless(&self) -> bool {
        true
    }
    fn loses(&mut self, _: &impl PacketView, _: &mut Rng) -> bool {
        false
    }
}
