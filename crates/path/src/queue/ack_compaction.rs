//! ACK compaction (RFC 3449 §5.3.2): a pure acknowledgement that arrives at the queue replaces waiting ones of its
//! connection that it makes redundant, and informs the far side of the link of their number and spacing. The far
//! side recreates them, so that the sender sees the acknowledgements that the receiver sent.
//!
//! Redundancy is defined as for ACK filtering. The far side is that of [`Hop`](crate::Hop).

use super::ack_filter::AckFilter;
use super::model::{Key, Model};
use crate::queue::Limit;
use alloc::boxed::Box;
use core::convert::Infallible;

/// Replaces redundant acknowledgements by one that carries their number; the far side of the link recreates them.
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
    const SEES_ALL: bool = true;
    type Order<P> = Box<AckFilter<P>>;
    type Invalid = Infallible;

    fn validate(&self, _: Limit) -> Result<(), Infallible> {
        Ok(())
    }
    fn build<P>(&self) -> Box<AckFilter<P>> {
        Box::new(AckFilter::aggressive())
    }
    fn words(&self) -> &'static str {
        "redundant acknowledgements compacted into one, and regenerated behind the link"
    }
    fn share_of_acks(&self) -> f64 {
        // No minimum: only as many are forwarded as the link carries, even if that is none.
        0.0
    }
    fn compacts_acks(&self) -> bool {
        true
    }
}
