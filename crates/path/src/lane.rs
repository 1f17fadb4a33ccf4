//! Packets in flight: they have left the transmitter and have not arrived.

use crate::packet::PacketView;
use alloc::collections::BinaryHeap;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Ordering;
use skyhaul_base::Instant;

/// Packets in flight with their arrival times.
#[derive(Clone, Debug)]
pub enum Lane<P> {
    /// Arrivals in the order of departures.
    Fifo(VecDeque<(P, Instant)>),
    /// Arrivals in the order of time; simultaneous ones in the order of departures.
    Reordering {
        /// The packets, earliest arrival on top.
        heap: BinaryHeap<Flight<P>>,
        /// Number of departures so far, which orders simultaneous arrivals.
        departures: u64,
    },
}

/// A packet in flight on a link that may reorder.
#[derive(Clone, Debug)]
pub struct Flight<P> {
    at: Instant,
    departure: u64,
    packet: P,
}

impl<P: Default> Lane<P> {
    /// An empty lane.
    #[must_use]
    pub fn new(allow_reorder: bool) -> Self {
        if allow_reorder {
            Self::Reordering { heap: BinaryHeap::new(), departures: 0 }
        } else {
            Self::Fifo(VecDeque::new())
        }
    }
    /// Adds a packet that arrives at `at`; on a FIFO lane, not before the packet ahead of it. True if it is the
    /// next to arrive.
    #[inline(always)]
    pub fn push(&mut self, at: Instant, packet: P) -> bool {
        match self {
            Self::Fifo(lane) => {
                debug_assert!(lane.back().is_none_or(|(_, last)| *last <= at), "a FIFO lane never reorders");
                let first = lane.is_empty();
                lane.push_back((packet, at));
                first
            }
            Self::Reordering { heap, departures } => {
                let first = heap.peek().is_none_or(|f| at < f.at);
                heap.push(Flight { at, departure: *departures, packet });
                *departures += 1;
                first
            }
        }
    }
    /// Arrival time of the next packet.
    #[inline]
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        match self {
            Self::Fifo(lane) => lane.front().map(|(_, at)| *at),
            Self::Reordering { heap, .. } => heap.peek().map(|f| f.at),
        }
    }
    /// Takes the next packet if it has arrived by `now`.
    #[inline(always)]
    pub fn pop(&mut self, now: Instant) -> Option<P> {
        if self.next()? > now {
            return None;
        }
        match self {
            Self::Fifo(lane) => lane.pop_front().map(|(p, _)| p),
            Self::Reordering { heap, .. } => heap.pop().map(|f| f.packet),
        }
    }
    /// The `n`-th packet in the order of arrival, on FIFO lanes.
    #[inline]
    #[must_use]
    pub fn peek(&self, n: usize) -> Option<&P> {
        match self {
            Self::Fifo(lane) => lane.get(n).map(|(p, _)| p),
            Self::Reordering { .. } => None,
        }
    }
    /// How many packets are in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fifo(lane) => lane.len(),
            Self::Reordering { heap, .. } => heap.len(),
        }
    }
    /// True if nothing is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Removes, in the order of arrival, everything that would arrive after `now`.
    pub fn cut(&mut self, now: Instant, mut lost: impl FnMut(P)) {
        match self {
            Self::Fifo(lane) => {
                let mut cut = Vec::new();
                while lane.back().is_some_and(|(_, at)| *at > now) {
                    cut.extend(lane.pop_back());
                }
                cut.into_iter().rev().for_each(|(p, _)| lost(p));
            }
            Self::Reordering { heap, .. } => {
                let mut kept = Vec::new();
                // Ascending in the reversed order of `Flight` is descending in time.
                for flight in core::mem::take(heap).into_sorted_vec().into_iter().rev() {
                    if flight.at <= now { kept.push(flight) } else { lost(flight.packet) }
                }
                *heap = kept.into();
            }
        }
    }
}

impl<P: PacketView> Lane<P> {
    /// How many bytes are in flight; walks over all packets.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Fifo(lane) => lane.iter().map(|(p, _)| u64::from(p.size())).sum(),
            Self::Reordering { heap, .. } => heap.iter().map(|f| u64::from(f.packet.size())).sum(),
        }
    }
}

// `BinaryHeap` keeps its greatest element on top, hence the reversed order.
impl<P> Ord for Flight<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.departure).cmp(&(self.at, self.departure))
    }
}
impl<P> PartialOrd for Flight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> PartialEq for Flight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<P> Eq for Flight<P> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }
    fn drain(lane: &mut Lane<char>, now: u64) -> Vec<char> {
        core::iter::from_fn(|| lane.pop(at(now))).collect()
    }

    #[test]
    fn a_reordering_lane_delivers_by_time_then_by_departure() {
        let mut lane = Lane::new(true);
        for (t, p) in [(5, 'a'), (3, 'b'), (5, 'c'), (4, 'd')] {
            lane.push(at(t), p);
        }
        assert_eq!(lane.next(), Some(at(3)));
        assert_eq!(drain(&mut lane, 4), ['b', 'd']);
        assert_eq!(drain(&mut lane, 9), ['a', 'c']);
    }

    #[test]
    fn a_cut_loses_only_what_has_not_arrived() {
        for allow_reorder in [false, true] {
            let mut lane = Lane::new(allow_reorder);
            for (t, p) in [(3, 'a'), (4, 'b'), (4, 'c'), (6, 'd'), (7, 'e')] {
                lane.push(at(t), p);
            }
            let mut lost = Vec::new();
            lane.cut(at(4), |p| lost.push(p));
            assert_eq!((lost, lane.len()), (alloc::vec!['d', 'e'], 3));
            assert_eq!(drain(&mut lane, 9), ['a', 'b', 'c']);
        }
    }
}
