//! A router without support for priorities: [`DropTail`] under the name that priority experiments use. As such it is the
//! honest worst case for probes: they displace data.

use super::drop_tail::DropTail;
use super::limit::Limit;
use super::model::{Key, Model};
use core::convert::Infallible;

/// The same as drop-tail: a router without support for priorities.
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
    const BLIND: bool = true;
    type Order<P> = DropTail<P>;
    type Invalid = Infallible;

    fn validate(&self, _: Limit) -> Result<(), Infallible> {
        Ok(())
    }
    fn build<P>(&self) -> DropTail<P> {
        DropTail::new()
    }
    fn words(&self) -> &'static str {
        "one class, tail drop, marks ignored"
    }
}
