//! Partial buffer sharing: one FIFO that low priority may enter only while few packets are queued.

use super::Load;
use super::drop_tail::DropTail;
use crate::packet::{DropReason, PacketView};

#[derive(Clone, Debug)]
pub(super) struct Threshold<P> {
    fifo: DropTail<P>,
    low_below: u32,
}

impl<P: PacketView> Threshold<P> {
    pub(super) fn new(low_below: u32) -> Self {
        Self { fifo: DropTail::new(), low_below }
    }
    /// `busy` is 1 if the packet in service counts as queued.
    pub(super) fn enqueue(
        &mut self,
        p: P,
        held: &mut Load,
        limit: Load,
        busy: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        if p.low_priority() && held.packets.saturating_add(busy) >= self.low_below {
            lost(p, DropReason::Full);
            return false;
        }
        self.fifo.enqueue(p, held, limit, lost)
    }
    pub(super) fn dequeue(&mut self) -> Option<P> {
        self.fifo.dequeue()
    }
}
