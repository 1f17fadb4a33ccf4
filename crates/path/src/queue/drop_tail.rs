//! One FIFO that refuses what does not fit.

use super::limit::{Limit, Load};
use super::model::{Key, Model, Order};
use crate::packet::{DropReason, PacketView};
use alloc::collections::VecDeque;
use core::convert::Infallible;

/// One FIFO that ignores priorities.
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
        "one class, tail drop"
    }
}

/// The packets in the order of arrival.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    fifo: VecDeque<P>,
}

impl<P> DropTail<P> {
    pub(super) fn new() -> Self {
        Self { fifo: VecDeque::new() }
    }
}

impl<P: PacketView> Order<P> for DropTail<P> {
    #[inline]
    fn enqueue(
        &mut self,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let fits = held.admits(p.size(), limit);
        if fits {
            held.add(p.size());
            self.fifo.push_back(p);
        } else {
            lost(p, DropReason::Full);
        }
        fits
    }
    #[inline]
    fn dequeue(&mut self) -> Option<P> {
        self.fifo.pop_front()
    }
}
