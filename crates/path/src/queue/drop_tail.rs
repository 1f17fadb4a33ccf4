//! One FIFO that refuses what does not fit.

use super::Load;
use crate::packet::{DropReason, PacketView};
use alloc::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct DropTail<P> {
    fifo: VecDeque<P>,
}

impl<P: PacketView> DropTail<P> {
    pub(super) fn new() -> Self {
        Self { fifo: VecDeque::new() }
    }
    pub(super) fn enqueue(
        &mut self,
        p: P,
        held: &mut Load,
        limit: Load,
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
    pub(super) fn dequeue(&mut self) -> Option<P> {
        self.fifo.pop_front()
    }
}
