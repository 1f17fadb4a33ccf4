//! The moment at which a queue is asked.

use crate::packet::PacketView;
use skyhaul_base::{Instant, Rng};

/// The time, where chance comes from, and which packet was marked.
#[derive(Debug)]
pub struct Moment<'a> {
    /// The time. It does not decrease from one moment to the next.
    pub now: Instant,
    /// The random stream of the queue. Disciplines without chance do not draw.
    pub rng: &'a mut Rng,
    /// The [`PacketView::kind`] of the packet that was marked; never more than one at a time.
    pub marked: Option<u8>,
    /// It is the packet that does not wait: one that arrives, or leaves.
    at_hand: bool,
}

impl<'a> Moment<'a> {
    /// This time, nothing marked yet.
    #[inline]
    pub fn new(now: Instant, rng: &'a mut Rng) -> Self {
        Self { now, rng, marked: None, at_hand: false }
    }
    /// Marks a packet that waits as having met congestion [RFC 3168 §5].
    pub fn mark(&mut self, p: &mut impl PacketView) {
        debug_assert!(self.marked.is_none(), "one packet is marked at a time");
        p.mark_ce();
        self.marked = Some(p.kind());
    }
    /// Marks the packet that arrives, or the one that leaves.
    pub fn mark_at_hand(&mut self, p: &mut impl PacketView) {
        self.mark(p);
        self.at_hand = true;
    }
    /// The packet that was marked, unless it is the one that arrived and was not let in: its mark is lost with it.
    pub fn marked_and_kept(&self, let_in: bool) -> Option<u8> {
        self.marked.filter(|_| let_in || !self.at_hand)
    }
}
