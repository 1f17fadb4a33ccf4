//! Frames of a byte stream of which data is missing.

use crate::frame::FrameType as Type;
use skyhaul_base::Instant;
use std::collections::VecDeque;

/// How far a film reaches after a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Complete packets.
    pub(super) packets: u64,
    /// Bytes in these packets.
    pub(super) packed: u64,
    /// All bytes; those beyond the packets wait for the next frame.
    pub(super) bytes: u64,
}

/// A frame of which data is missing, or that was not sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) number: u64,
    pub(super) at: Instant,
    /// How far the film reaches after it; as far as before if it was not sent.
    pub(super) reach: Reach,
    pub(super) kind: Type,
    pub(super) sent: bool,
    /// Produced after the warm-up.
    pub(super) counts: bool,
}

impl Waiting {
    /// In the place of one.
    pub(super) const NONE: Self = Self {
        number: 0,
        at: Instant::ZERO,
        reach: Reach { packets: 0, packed: 0, bytes: 0 },
        kind: Type::I,
        sent: false,
        counts: false,
    };
}

/// These frames, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    pub(super) list: VecDeque<Waiting>,
    /// How far the film reaches before the first of them.
    pub(super) before: Reach,
    /// Number of frames before them.
    pub(super) gone: u64,
}

impl Frames {
    /// The first one is complete.
    #[inline]
    pub(super) fn pop(&mut self) {
        if let Some(frame) = self.list.pop_front() {
            self.before = frame.reach;
            self.gone += 1;
        }
    }

    /// How far the film reaches before the frame at `place`.
    #[inline]
    pub(super) fn before(&self, place: usize) -> Reach {
        let before = place.checked_sub(1).and_then(|p| self.list.get(p));
        before.map_or(self.before, |f| f.reach)
    }

    /// The end of packet `number`, which `to` reaches and `from` does not.
    #[inline]
    pub(super) fn packet_end(from: Reach, to: Reach, number: u64, payload: u64) -> u64 {
        if number + 1 == to.packets { to.packed } else { from.packed + (number + 1 - from.packets) * payload }
    }

    /// The place of the frame with the first packet that ends after byte `from`, and the number of this packet.
    pub(super) fn packet_after(&self, from: u64, payload: u64) -> Option<(usize, u64)> {
        let place = self.list.partition_point(|f| f.reach.packed <= from);
        let (before, to) = (self.before(place), self.list.get(place)?.reach);
        let number = before.packets + from.saturating_sub(before.packed) / payload;
        Some((place, number.min(to.packets.saturating_sub(1))))
    }
}
