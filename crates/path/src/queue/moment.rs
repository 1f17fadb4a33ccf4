//! The context of a call to a queue.

use crate::packet::PacketView;
use skyhaul_base::{Instant, Rng};

/// The time, the random stream, and the packet that was marked.
#[derive(Debug)]
pub struct Moment<'a> {
    /// The time. It does not decrease from one moment to the next.
    pub now: Instant,
    /// The random stream of the queue. Deterministic disciplines do not draw.
    pub rng: &'a mut Rng,
    /// The [`PacketView::kind`] of the marked packet; at most one per call.
    pub marked: Option<u8>,
    /// The marked packet does not wait: it arrives or leaves.
    at_hand: bool,
}

impl<'a> Moment<'a> {
    /// This time, without a mark.
    #[inline]
    pub fn new(now: Instant, rng: &'a mut Rng) -> Self {
        Self { now, rng, marked: None, at_hand: false }
    }
    /// ECN-marks a waiting packet [RFC 3168 §5].
    pub fn mark(&mut self, p: &mut impl PacketView) {
        debug_assert!(self.marked.is_none(), "one packet is marked at a time");
        p.mark_ce();
        self.marked = Some(p.kind());
    }
    /// ECN-marks the packet that arrives or leaves.
    pub fn mark_at_hand(&mut self, p: &mut impl PacketView) {
        self.mark(p);
        self.at_hand = true;
    }
    /// The marked packet, unless it is an arrival that was not admitted: its mark is lost with it.
    pub fn marked_and_kept(&self, admitted: bool) -> Option<u8> {
        self.marked.filter(|_| admitted || !self.at_hand)
    }
}
