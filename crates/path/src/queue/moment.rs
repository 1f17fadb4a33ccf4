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
}

impl<'a> Moment<'a> {
    /// This time, nothing marked yet.
    #[inline]
    pub fn new(now: Instant, rng: &'a mut Rng) -> Self {
        Self { now, rng, marked: None }
    }
    /// Marks a packet as having met congestion [RFC 3168 §5].
    pub fn mark(&mut self, p: &mut impl PacketView) {
        debug_assert!(self.marked.is_none(), "one packet is marked at a time");
        p.mark_ce();
        self.marked = Some(p.kind());
    }
}
