//! Two-class discard priority: data pushes probes out of a full queue.
//!
//! Required by [Peach §III]: at a congested router low-priority packets are the first to be discarded, so that
//! probes cost data as little as possible. Linux `sch_skbprio` admits and serves as `StrictPushout` does.
//! Both variants keep one deque per class, so that finding a victim never means a search.

use super::{Load, Victim};
use crate::packet::{DropReason, PacketView};
use alloc::collections::VecDeque;

/// Discard priority and service priority.
#[derive(Clone, Debug)]
pub(super) struct StrictPushout<P> {
    high: VecDeque<P>,
    low: VecDeque<P>,
    low_bytes: u64,
    victim: Victim,
}

/// Discard priority only: served in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct FifoPushout<P> {
    /// The arrival number beside each packet merges the two deques back into one queue.
    classes: StrictPushout<Stamped<P>>,
    arrivals: u64,
}

#[derive(Clone, Debug)]
struct Stamped<P> {
    arrival: u64,
    packet: P,
}

impl<P: PacketView> PacketView for Stamped<P> {
    fn size(&self) -> u32 {
        self.packet.size()
    }
    fn low_priority(&self) -> bool {
        self.packet.low_priority()
    }
    fn flow(&self) -> u32 {
        self.packet.flow()
    }
}

impl<P: PacketView> StrictPushout<P> {
    pub(super) fn new(victim: Victim) -> Self {
        Self { high: VecDeque::new(), low: VecDeque::new(), low_bytes: 0, victim }
    }
    pub(super) fn enqueue(
        &mut self,
        p: P,
        held: &mut Load,
        limit: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let size = p.size();
        if !held.admits(size, limit) {
            // Evict nothing in vain: only if `p` fits among high-priority packets alone.
            let high = Load { packets: self.high.len() as u32, bytes: held.bytes - self.low_bytes };
            if p.low_priority() || !high.admits(size, limit) {
                lost(p, DropReason::Full);
                return false;
            }
            while !held.admits(size, limit) {
                let victim = match self.victim {
                    Victim::Oldest => self.low.pop_front(),
                    Victim::Youngest => self.low.pop_back(),
                };
                let victim =
                    victim.expect("a full queue that high priority does not fill holds low priority");
                self.low_bytes -= u64::from(victim.size());
                held.remove(victim.size());
                lost(victim, DropReason::PushedOut);
            }
        }
        held.add(size);
        if p.low_priority() {
            self.low_bytes += u64::from(size);
            self.low.push_back(p);
        } else {
            self.high.push_back(p);
        }
        true
    }
    pub(super) fn dequeue(&mut self) -> Option<P> {
        self.high.pop_front().or_else(|| self.dequeue_low())
    }
    fn dequeue_low(&mut self) -> Option<P> {
        let p = self.low.pop_front()?;
        self.low_bytes -= u64::from(p.size());
        Some(p)
    }
}

impl<P: PacketView> FifoPushout<P> {
    pub(super) fn new(victim: Victim) -> Self {
        Self { classes: StrictPushout::new(victim), arrivals: 0 }
    }
    pub(super) fn enqueue(
        &mut self,
        packet: P,
        held: &mut Load,
        limit: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.classes.enqueue(Stamped { arrival, packet }, held, limit, &mut |s, why| lost(s.packet, why))
    }
    pub(super) fn dequeue(&mut self) -> Option<P> {
        let low_first = match (self.classes.high.front(), self.classes.low.front()) {
            (Some(h), Some(l)) => l.arrival < h.arrival,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let next = if low_first { self.classes.dequeue_low() } else { self.classes.high.pop_front() };
        next.map(|s| s.packet)
    }
}
