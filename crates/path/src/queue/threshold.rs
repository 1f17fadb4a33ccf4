//! Partial buffer sharing: one FIFO that admits low priority only while few packets are queued. Nothing is evicted.
//! A packet that finds the transmitter idle does not queue, and the threshold never refuses it.

use super::drop_tail::DropTail;
use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use super::moment::Moment;
use crate::packet::{DropReason, PacketView};
use crate::param::Refusal;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Count;

/// Refuses low priority unless fewer than `low-below` packets are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// A threshold queue admits low priority while fewer packets than this are queued.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub low_below: u64,
}

/// The threshold exceeds the limit: the queue is full before low priority is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is more than the queue holds, so it never acts: write less, or raise `limit`")]
pub struct MoreThanTheQueue(pub u64);

impl Refusal for MoreThanTheQueue {
    fn key(&self) -> &'static str {
        "low-below"
    }
}

impl Model for Config {
    const KEYS: &'static [Key] = &[Key {
        name: "low-below",
        elsewhere: "only the kind \"threshold\" has this key",
        missing: Some("a threshold queue needs it, such as low-below = 25"),
    }];
    type Order<P> = Threshold<P>;
    type Invalid = MoreThanTheQueue;

    fn validate(&self, limit: Limit) -> Result<(), MoreThanTheQueue> {
        match limit {
            Limit::Packets(most) if self.low_below > most.into() => Err(MoreThanTheQueue(self.low_below)),
            _ => Ok(()),
        }
    }
    fn build<P>(&self) -> Threshold<P> {
        Threshold::new(u32::try_from(self.low_below).unwrap_or(u32::MAX))
    }
    fn words(&self) -> &'static str {
        "probes admitted only below a threshold"
    }
}

/// The packets in the order of arrival.
#[derive(Clone, Debug)]
pub struct Threshold<P> {
    fifo: DropTail<P>,
    low_below: u32,
}

impl<P> Threshold<P> {
    pub(super) fn new(low_below: u32) -> Self {
        Self { fifo: DropTail::new(), low_below }
    }
}

impl<P: PacketView> Order<P> for Threshold<P> {
    fn enqueue(
        &mut self,
        at: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        counted: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        if p.low_priority() && held.packets.saturating_add(u32::from(counted > 0)) >= self.low_below {
            lost(p, DropReason::Full);
            return false;
        }
        self.fifo.enqueue(at, p, held, limit, counted, lost)
    }
    fn dequeue(
        &mut self,
        at: &mut Moment<'_>,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Option<P> {
        self.fifo.dequeue(at, held, lost)
    }
}
