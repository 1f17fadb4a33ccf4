//! Duplication: a link delivers some packets twice.
//!
//! Links duplicate where a retransmission of the link layer follows a lost acknowledgement, or where two paths carry the same
//! packet and the far side does not remove the copy. The copy follows directly after the packet, and takes neither room in the
//! queue nor time of the transmitter (*our choice*; netem copies before the queue).

use crate::packet::{KINDS, PacketView};
use skyhaul_base::{Instant, Rng};

/// The copies of one link.
#[derive(Clone, Debug)]
pub(super) struct Duplication<P> {
    /// Probability that a packet is delivered twice.
    p: f64,
    rng: Rng,
    /// The copy that is delivered next, and when it is due.
    held: Option<(Instant, P)>,
    /// Copies delivered, by [`PacketView::kind`].
    made: [u64; KINDS],
}

impl<P: PacketView> Duplication<P> {
    pub(super) fn new(p: f64, rng: Rng) -> Self {
        Self { p, rng, held: None, made: [0; KINDS] }
    }
    /// Decides whether the packet that the link delivers now is delivered twice. It draws one number for each packet.
    pub(super) fn draws(&mut self) -> bool {
        self.rng.unit() < self.p
    }
    /// Keeps the copy, which is delivered next.
    pub(super) fn hold(&mut self, now: Instant, copy: P) {
        debug_assert!(self.held.is_none(), "a copy is delivered before the next packet");
        self.made[usize::from(copy.kind()) % KINDS] += 1;
        self.held = Some((now, copy));
    }
    /// When a copy is due.
    pub(super) fn next(&self) -> Instant {
        self.held.as_ref().map_or(Instant::MAX, |held| held.0)
    }
    /// The copy that is due.
    pub(super) fn take(&mut self) -> Option<P> {
        self.held.take().map(|held| held.1)
    }
    pub(super) fn made(&self) -> &[u64; KINDS] {
        &self.made
    }
}
