//! A frame of a byte stream, divided into packets.

use crate::frame::FrameType as Type;
use crate::video::packet::Reach;
use skyhaul_base::Instant;

/// A frame of which data is missing, or that was not sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// When it is produced.
    pub(super) at: Instant,
    /// How far the film reaches after it, as in [`Reach`]; as far as before if it was not sent.
    pub(super) packets: u64,
    pub(super) packed: u64,
    rest: u32,
    pub(super) kind: Type,
    pub(super) sent: bool,
    /// Produced after the warm-up.
    pub(super) counts: bool,
    /// It was sent, counts, and ends with a packet.
    pub(super) plain: bool,
}

impl Waiting {
    /// In the place of one at this time.
    pub(super) const fn none(at: Instant) -> Self {
        Self { at, packets: 0, packed: 0, rest: 0, kind: Type::I, sent: false, counts: false, plain: false }
    }

    /// A frame after which the film reaches so far.
    #[inline(always)]
    pub(super) fn new(at: Instant, reach: Reach, kind: Type, sent: bool, counts: bool) -> Self {
        let Reach { packets, packed, rest } = reach;
        Self { at, packets, packed, rest, kind, sent, counts, plain: sent & counts & (rest == 0) }
    }
    /// How far the film reaches after it; as far as before if it was not sent.
    #[inline(always)]
    pub(super) fn reach(&self) -> Reach {
        let Self { packets, packed, rest, .. } = *self;
        Reach { packets, packed, rest }
    }
}
