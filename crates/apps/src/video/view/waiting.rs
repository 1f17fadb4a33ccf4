//! Frames of a byte stream of which data is missing, and those that will be produced next.

use crate::frame::FrameType as Type;
use crate::video::packet::Reach;
use skyhaul_base::Instant;
use std::collections::VecDeque;

/// A frame of which data is missing, or that was not sent.
#[derive(Clone, Copy, Debug)]
pub(in crate::video) struct Waiting {
    pub(super) at: Instant,
    /// How far the film reaches after it, as in [`Reach`]; as far as before if it was not sent. A film may have many
    /// waiting frames, so that they are kept small.
    packets: u64,
    packed: u64,
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
    pub(in crate::video) const fn none(at: Instant) -> Self {
        Self { at, packets: 0, packed: 0, rest: 0, kind: Type::I, sent: false, counts: false, plain: false }
    }

    /// A frame after which the film reaches so far.
    #[inline(always)]
    pub(in crate::video) fn new(at: Instant, reach: Reach, kind: Type, sent: bool, counts: bool) -> Self {
        let Reach { packets, packed, rest } = reach;
        Self { at, packets, packed, rest, kind, sent, counts, plain: sent & counts & (rest == 0) }
    }
    /// When it is produced.
    #[inline(always)]
    pub(in crate::video) fn at(&self) -> Instant {
        self.at
    }
    /// How far the film reaches after it; as far as before if it was not sent.
    #[inline(always)]
    pub(in crate::video) fn reach(&self) -> Reach {
        let Self { packets, packed, rest, .. } = *self;
        Reach { packets, packed, rest }
    }
}

/// These frames, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    pub(super) list: VecDeque<Waiting>,
    /// How far the film reaches before the first of them.
    pub(super) before: Reach,
    /// Number of frames before them.
    pub(super) gone: u64,
    /// Number of frames produced. Frames of the list beyond them are known in advance.
    pub(super) produced: u64,
}

impl Frames {
    /// The first one is complete.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        if let Some(frame) = self.list.pop_front() {
            self.before = frame.reach();
            self.gone += 1;
        }
    }
    /// The first ones are complete; the film reaches so far before the others.
    #[inline(always)]
    pub(super) fn remove(&mut self, frames: usize, before: Reach) {
        self.list.drain(..frames);
        self.gone += frames as u64;
        self.before = before;
    }

    /// How many of the list are produced.
    #[inline(always)]
    pub(super) fn there(&self) -> usize {
        (self.produced - self.gone) as usize
    }
    /// How far the film reaches that was produced.
    pub(super) fn reach(&self) -> Reach {
        self.before(self.there())
    }
    /// The next frame to be produced, if it is known in advance.
    #[inline(always)]
    pub(super) fn upcoming(&self) -> Option<&Waiting> {
        self.list.get(self.there())
    }

    /// How far the film reaches before the frame at `place`.
    #[inline]
    pub(super) fn before(&self, place: usize) -> Reach {
        let before = place.checked_sub(1).and_then(|p| self.list.get(p));
        before.map_or(self.before, Waiting::reach)
    }

    /// The end of packet `number`, which `to` reaches and `from` does not.
    #[inline(always)]
    pub(super) fn packet_end(from: Reach, to: Reach, number: u64, payload: u64) -> u64 {
        if number + 1 == to.packets { to.packed } else { from.packed + (number + 1 - from.packets) * payload }
    }

    /// The place of the frame with the first packet that ends after byte `from`, and the number of this packet.
    pub(super) fn packet_after(&self, from: u64, payload: u64) -> Option<(usize, u64)> {
        let place = self.list.partition_point(|f| f.packed <= from);
        let (before, to) = (self.before(place), self.list.get(place)?.reach());
        let number = before.packets + from.saturating_sub(before.packed) / payload;
        Some((place, number.min(to.packets.saturating_sub(1))))
    }
}
