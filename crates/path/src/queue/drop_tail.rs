//! One FIFO that refuses what does not fit.

use super::limit::Load;
use super::model::{Order, without_options};
use super::moment::Moment;
use crate::packet::{DropReason, PacketView};
use alloc::collections::VecDeque;

without_options! {
    /// One FIFO that ignores priorities.
    DropTail, "one class, tail drop", blind: true, DropTail::new()
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
        _: &mut Moment<'_>,
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
    fn dequeue(&mut self, _: &mut Moment<'_>, _: &mut Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        self.fifo.pop_front()
    }
}
