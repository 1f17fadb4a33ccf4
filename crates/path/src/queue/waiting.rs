//! One FIFO with the arrival time of each packet and, if requested, the low-priority packets apart.

use super::limit::Load;
use super::moment::Moment;
use crate::packet::{DropReason, PacketView};
use alloc::collections::VecDeque;
use skyhaul_base::Instant;

/// A packet that waits.
#[derive(Clone, Debug)]
pub(super) struct Timed<P> {
    /// Arrival time.
    pub(super) since: Instant,
    /// Its arrival number, which merges the classes back into one queue.
    arrival: u64,
    pub(super) packet: P,
}

/// The packets in the order of arrival.
///
/// If signals go to low priority first, each class has its own deque, so that a victim is found without a search.
/// Otherwise all packets are in one.
#[derive(Clone, Debug)]
pub(super) struct Waiting<P> {
    by_class: bool,
    high: VecDeque<Timed<P>>,
    low: VecDeque<Timed<P>>,
    low_bytes: u64,
    /// Number of low-priority packets, from the head, marked in place of high-priority ones.
    marked: usize,
    arrivals: u64,
    bytes: u64,
}

/// The effect of a congestion signal.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Signal<P> {
    /// A packet was marked: this one, or a low-priority one in its place.
    Marked(P),
    /// A low-priority packet was dropped in place of this one.
    Spared(P),
    /// This packet was dropped.
    Dropped,
}

impl<P> Waiting<P> {
    /// An empty queue. `by_class`: signals go to low priority first.
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
    /// Number of waiting low-priority packets, if classes are distinguished.
    pub(super) fn low_len(&self) -> usize {
        self.low.len()
    }
    /// Number of the latest arrival.
    pub(super) fn youngest(&self) -> Option<u64> {
        self.high.back().map(|p| p.arrival).max(self.low.back().map(|p| p.arrival))
    }
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Bytes of waiting low-priority packets, if classes are distinguished.
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

    /// Signals congestion to the flow of `p`, which is not waiting (yet, or any more): by a mark if `may_mark` and
    /// the packet allows it, otherwise by a drop. If classes are distinguished and `p` has high priority, the
    /// signal hits the low-priority packet nearest the head that was not hit before; if all were, none of them is
    /// dropped as long as `p` can be marked.
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

    /// Admits a packet if there is room. If classes are distinguished, high priority makes room by pushing out low
    /// priority: youngest first, and only if it then fits. True if it was admitted.
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
