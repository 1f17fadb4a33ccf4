//! The router of the GTNetS simulator: a dummy is refused when more than one packet is queued.

use super::limit::Limit;
use super::model::{Key, Model};
use super::threshold::Threshold;
use core::convert::Infallible;

/// Low priority is refused when more than one packet is queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {}

impl Model for Config {
    const KEYS: &'static [Key] = &[];
    type Order<P> = Threshold<P>;
    type Invalid = Infallible;

    fn validate(&self, _: Limit) -> Result<(), Infallible> {
        Ok(())
    }
    fn build<P>(&self) -> Threshold<P> {
        Threshold::new(2)
    }
    fn words(&self) -> &'static str {
        "probes only into an almost empty queue"
    }
}
