//! Frames that will be sent.

use super::groups::BLOCK;
use crate::frame::FrameType as Type;
use core::ops::Range;

/// Some frames of a film. Many may wait, so that they are kept small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coded {
    /// Bytes, at least 1, and types of the first ones; no other is P or B.
    pub(super) bytes: [u32; BLOCK],
    pub(super) kinds: [Type; BLOCK],
    /// How many there are.
    pub(super) count: usize,
}

impl Coded {
    /// There are none.
    pub(super) const NONE: Self = Self { bytes: [1; BLOCK], kinds: [Type::I; BLOCK], count: 0 };

    /// Bytes of each.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u32] {
        self.bytes.get(..self.count).unwrap_or(&self.bytes)
    }
    /// The type of each.
    #[inline(always)]
    pub(super) fn kinds(&self) -> &[Type] {
        self.kinds.get(..self.count).unwrap_or(&self.kinds)
    }
    /// How many of those at these places are of each type.
    #[inline]
    pub(super) fn of_each_type(&self, places: Range<usize>) -> [u64; Type::COUNT] {
        let mut of = [0; Type::COUNT];
        if places.len() < self.count {
            let kinds = self.kinds.get(places).unwrap_or(&[]);
            kinds.iter().for_each(|kind| of[*kind as usize] += 1);
            return of;
        }
        // All at once. They are less than 256.
        let all = |of: Type| self.kinds.iter().map(|kind| u8::from(*kind == of)).sum::<u8>();
        let (p, b) = (all(Type::P), all(Type::B));
        (of[Type::P as usize], of[Type::B as usize]) = (p.into(), b.into());
        of[Type::I as usize] = (self.count as u64).saturating_sub(u64::from(p) + u64::from(b));
        of
    }
    /// Bytes and type of one, if there are so many.
    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<(u32, Type)> {
        Some((*self.bytes().get(place)?, *self.kinds().get(place)?))
    }
    /// Bytes and type of each.
    #[inline(always)]
    pub(super) fn frames(&self) -> impl ExactSizeIterator<Item = (u32, Type)> {
        self.bytes().iter().copied().zip(self.kinds().iter().copied())
    }
}
