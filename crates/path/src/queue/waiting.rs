//! One FIFO that knows since when each packet waits and, if asked, which are of low priority.

use super::limit::Load;
use super::moment::Moment;
use crate::packet::{DropReason, PacketView};
use alloc::collections::VecDeque;
use skyhaul_base::Instant;

/// A packet that waits.
#[derive(Clone, Debug)]
pub(super) struct Timed<P> {
    /// Since when.
    pub(super) since: Instant,
    /// Its number among the arrivals, which merges the classes back into one queue.
    arrival: u64,
    pub(super) packet: P,
}

/// The packets in the order of arrival.
///
/// Where signals go to low priority first, each class has a deque of its own, so that finding a victim never means a
/// search. Otherwise all packets are in one.
#[derive(Clone, Debug)]
pub(super) struct Waiting<P> {
    by_class: bool,
    high: VecDeque<Timed<P>>,
    low: VecDeque<Timed<P>>,
    low_bytes: u64,
    /// How many of `low`, from the head on, were marked instead of one of high priority.
    marked: usize,
    arrivals: u64,
    bytes: u64,
}

/// What a signal of congestion did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Signal<P> {
    /// A packet was marked: this one, or one of low priority in its place.
    Marked(P),
    /// A packet of low priority was dropped in the place of this one.
    Spared(P),
    /// This packet was dropped.
    Dropped,
}

impl<P> Waiting<P> {
    /// Nothing waits yet. `by_class` if signals go to low priority first.
    pub(super) fn new(by_class: bool) -> Self {
        Self {
            by_class,
            high: VecDeque::new(),
            low: VecDeque::new(),
            low_bytes: 0,
            marked: 0,
            arrivals: 0,
            bytes: 0,
        }
    }
    pub(super) fn len(&self) -> usize {
        self.high.len() + self.low.len()
    }
    /// How many of low priority wait, if classes count.
    pub(super) fn low_len(&self) -> usize {
        self.low.len()
    }
    /// The number of the youngest among the arrivals.
    pub(super) fn youngest(&self) -> Option<u64> {
        self.high.back().map(|p| p.arrival).max(self.low.back().map(|p| p.arrival))
    }
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
    /// How many bytes of low priority wait, if classes count.
    pub(super) fn low_bytes(&self) -> u64 {
        self.low_bytes
    }
}

impl<P: PacketView> Waiting<P> {
    pub(super) fn push(&mut self, since: Instant, packet: P) {
        let (size, low) = (u64::from(packet.size()), self.by_class && packet.low_priority());
        self.bytes += size;
        let timed = Timed { since, arrival: self.arrivals, packet };
        self.arrivals += 1;
        if low {
            self.low_bytes += size;
            self.low.push_back(timed);
        } else {
            self.high.push_back(timed);
        }
    }

    /// Takes the packet at the head.
    pub(super) fn pop(&mut self) -> Option<Timed<P>> {
        let low_first = match (self.high.front(), self.low.front()) {
            (Some(h), Some(l)) => l.arrival < h.arrival,
            (high, _) => high.is_none(),
        };
        if low_first {
            return self.pop_low();
        }
        let head = self.high.pop_front()?;
        self.bytes -= u64::from(head.packet.size());
        Some(head)
    }

    /// Takes the packet of low priority nearest the head.
    pub(super) fn pop_low(&mut self) -> Option<Timed<P>> {
        self.marked = self.marked.saturating_sub(1);
        let low = self.low.pop_front()?;
        Some(self.without(low))
    }

    /// Accounts for a packet of low priority that has left.
    fn without(&mut self, low: Timed<P>) -> Timed<P> {
        let size = u64::from(low.packet.size());
        self.bytes -= size;
        self.low_bytes -= size;
        low
    }

    /// Signals congestion to the flow of `p`, which does not wait (yet, or any more): by a mark if `may_mark` and the
    /// packet allows it, otherwise by a drop. Where classes count and `p` is of high priority, it hits the packet of low
    /// priority nearest the head that was not hit before; if all were, none of them is dropped as long as `p` can be
    /// marked.
    pub(super) fn signal(
        &mut self,
        at: &mut Moment<'_>,
        mut p: P,
        may_mark: bool,
        held: &mut Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> Signal<P> {
        if !self.low.is_empty() && !p.low_priority() {
            if let Some(low) = self.low.get_mut(self.marked)
                && may_mark
                && low.packet.is_ect()
            {
                at.mark(&mut low.packet);
                self.marked += 1;
                return Signal::Marked(p);
            }
            let victim = if self.marked < self.low.len() {
                self.low.remove(self.marked).map(|low| self.without(low))
            } else if may_mark && p.is_ect() {
                None
            } else {
                self.pop_low()
            };
            if let Some(victim) = victim {
                held.remove(victim.packet.size());
                lost(victim.packet, DropReason::Aqm);
                return Signal::Spared(p);
            }
        }
        if may_mark && p.is_ect() {
            at.mark_at_hand(&mut p);
            return Signal::Marked(p);
        }
        lost(p, DropReason::Aqm);
        Signal::Dropped
    }

    /// Admits a packet if there is room, which high priority makes by pushing out low priority where classes count: the
    /// youngest first, and none in vain. True if it was admitted.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        p: P,
        held: &mut Load,
        limit: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let size = p.size();
        if !held.admits(size, limit) && (p.low_priority() || !self.make_room(size, held, limit, lost)) {
            lost(p, DropReason::Full);
            return false;
        }
        held.add(size);
        self.push(now, p);
        true
    }

    fn make_room(
        &mut self,
        size: u32,
        held: &mut Load,
        limit: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let high = Load { packets: held.packets - self.low.len() as u32, bytes: held.bytes - self.low_bytes };
        if !high.admits(size, limit) {
            return false;
        }
        while !held.admits(size, limit) {
            let Some(victim) = self.low.pop_back() else { return false };
            let victim = self.without(victim);
            self.marked = self.marked.min(self.low.len());
            held.remove(victim.packet.size());
            lost(victim.packet, DropReason::PushedOut);
        }
        true
    }
}
