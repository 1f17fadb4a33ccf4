//! Common parts of disciplines that handle acknowledgements: the waiting packets with their parsed
//! acknowledgements, and the state of each flow.

use super::limit::Load;
use crate::packet::{Acknowledgement, DropReason, PacketView};
use alloc::collections::{BTreeMap, VecDeque};

/// Maximum flows remembered; beyond it all are forgotten. The cost is one duplicate that is not recognised, or one
/// acknowledgement that is kept.
const MOST_FLOWS: usize = 65_536;

/// A packet that waits.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting<P> {
    pub(super) packet: P,
    /// Its content, if it is a pure acknowledgement.
    pub(super) ack: Option<Acknowledgement>,
    /// Its position among all acknowledgements of its flow that arrived, from 0.
    pub(super) order: u64,
    /// No later acknowledgement may replace it.
    pub(super) stays: bool,
}

impl<P: PacketView> Waiting<P> {
    /// A packet, parsed once when it arrives.
    pub(super) fn new(packet: P) -> Self {
        let ack = packet.ack();
        Self { packet, ack, order: 0, stays: false }
    }
    /// Its content, if it is a pure acknowledgement of this connection of this flow.
    pub(super) fn ack_of(&self, flow: u32, connection: u16) -> Option<&Acknowledgement> {
        let ack = self.ack.as_ref().filter(|a| a.connection == connection)?;
        (self.packet.flow() == flow).then_some(ack)
    }
}

/// The waiting packets: in one line, or with a separate line for pure acknowledgements, which is served first.
#[derive(Clone, Debug)]
pub(super) struct Lines<P> {
    /// The line of acknowledgements, or of all packets.
    pub(super) acks: VecDeque<Waiting<P>>,
    data: VecDeque<Waiting<P>>,
    acks_first: bool,
}

impl<P> Lines<P> {
    pub(super) fn new(acks_first: bool) -> Self {
        Self { acks: VecDeque::new(), data: VecDeque::new(), acks_first }
    }
}

impl<P: PacketView> Lines<P> {
    /// Index of the last acknowledgement of a connection.
    pub(super) fn last_of(&self, flow: u32, connection: u16) -> Option<usize> {
        self.acks.iter().rposition(|w| w.ack_of(flow, connection).is_some())
    }

    /// Keeps the first of several acknowledgements with one number if it waits: without it the second, the flow's
    /// `order`-th, would not be a duplicate.
    pub(super) fn keep_base(&mut self, flow: u32, connection: u16, order: u64) {
        let last = self.last_of(flow, connection).and_then(|at| self.acks.get_mut(at));
        if let Some(w) = last {
            // Only the directly preceding one counts; if it is not waiting, it was refused or has left.
            w.stays |= w.order + 1 == order;
        }
    }

    /// Admits a packet at the end of its line if there is room; otherwise it is lost.
    pub(super) fn push(
        &mut self,
        p: Waiting<P>,
        held: &mut Load,
        limit: Load,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        let size = p.packet.size();
        let fits = held.admits(size, limit);
        if !fits {
            lost(p.packet, DropReason::Full);
            return false;
        }
        held.add(size);
        let line = if self.acks_first && p.ack.is_none() { &mut self.data } else { &mut self.acks };
        line.push_back(p);
        true
    }
    /// Takes the next packet to serve.
    pub(super) fn pop(&mut self) -> Option<P> {
        self.acks.pop_front().or_else(|| self.data.pop_front()).map(|w| w.packet)
    }
}

/// State of each flow's acknowledgements, whether they waited or not.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows(BTreeMap<u32, History>);

#[derive(Clone, Copy, Debug)]
struct History {
    /// The last one.
    ack: Acknowledgement,
    /// Number of acknowledgements of its connection.
    count: u64,
    /// Number of acknowledgements of the flow.
    total: u64,
}

/// Position of an acknowledgement among those of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The one before it had the same number: fast retransmit counts it (RFC 5681 §3.2).
    pub(super) duplicate: bool,
    /// Number of earlier ones.
    pub(super) before: u64,
    /// Number of earlier ones of its flow.
    pub(super) order: u64,
}

impl Flows {
    /// An acknowledgement of `flow` arrives.
    pub(super) fn note(&mut self, flow: u32, ack: &Acknowledgement) -> Position {
        if let Some(history) = self.0.get_mut(&flow) {
            let last = core::mem::replace(&mut history.ack, *ack);
            let goes_on = last.connection == ack.connection;
            let (before, order) = (if goes_on { history.count } else { 0 }, history.total);
            (history.count, history.total) = (before + 1, order + 1);
            return Position { duplicate: goes_on && last.number == ack.number, before, order };
        }
        if self.0.len() == MOST_FLOWS {
            self.0.clear();
        }
        self.0.insert(flow, History { ack: *ack, count: 1, total: 1 });
        Position { duplicate: false, before: 0, order: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(connection: u16, number: u32) -> Acknowledgement {
        Acknowledgement { connection, number, ecn: 0, stamp: None, tells_more: false }
    }

    #[test]
    fn a_duplicate_has_the_number_of_the_one_before_it_in_its_connection() {
        let mut flows = Flows::default();
        let mut note = |flow, connection, number| {
            let position = flows.note(flow, &ack(connection, number));
            (position.duplicate, position.before)
        };
        assert_eq!(note(1, 0, 100), (false, 0));
        assert_eq!(note(2, 0, 100), (false, 0));
        assert_eq!(note(1, 0, 100), (true, 1));
        assert_eq!(note(1, 0, 200), (false, 2));
        assert_eq!(note(1, 1, 200), (false, 0));
        assert_eq!(note(1, 1, 200), (true, 1));
        assert_eq!(note(2, 0, 100), (true, 1));
    }

    #[test]
    fn memory_of_flows_is_bounded() {
        let mut flows = Flows::default();
        for flow in 0..MOST_FLOWS as u32 {
            flows.note(flow, &ack(0, 1));
        }
        assert_eq!((flows.0.len(), flows.note(0, &ack(0, 1)).duplicate), (MOST_FLOWS, true));
        flows.note(u32::MAX, &ack(0, 1));
        assert_eq!(flows.0.len(), 1);
    }
}
