//! Packets of a byte stream of which the last byte has arrived out of order.

use super::frames::Frames;
use std::collections::VecDeque;

/// These packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// Which of the packets from the next one in order on; as few as possible.
    there: VecDeque<bool>,
    /// The first packet that ends after byte `.0`: its frame, counted from the first one of the film, and its number.
    /// The next segment usually begins there.
    after: (u64, u64, u64),
}

impl Ahead {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.there.is_empty()
    }

    /// The next packet in order has arrived; whether its last byte was here before.
    #[inline]
    pub(super) fn next(&mut self) -> bool {
        self.there.pop_front().unwrap_or(false)
    }

    /// So many packets after the next one in order, one has arrived; whether it is new.
    #[inline]
    fn is_new(&mut self, ahead: usize) -> bool {
        if let Some(there) = self.there.get_mut(ahead) {
            return !core::mem::replace(there, true);
        }
        if ahead > self.there.len() {
            self.there.resize(ahead, false);
        }
        self.there.push_back(true);
        true
    }
    /// Bytes `[from, to)` have arrived, and everything in order before `from`. Calls `new` with each packet that
    /// ends among them for the first time, and whether it counts; `next` is the next packet in order.
    pub(super) fn segment(
        &mut self,
        (from, to): (u64, u64),
        next: u64,
        frames: &Frames,
        payload: u64,
        mut new: impl FnMut(u64, bool),
    ) {
        let (at, frame, number) = self.after;
        let (mut place, mut number) = if at == from && frame >= frames.gone && number >= next {
            ((frame - frames.gone) as usize, number)
        } else {
            frames.packet_after(from, payload).unwrap_or((frames.list().len(), next))
        };
        let before = frames.before(place);
        // Where the next packet begins.
        let mut begin = before.packed + number.saturating_sub(before.packets) * payload;
        'all: for frame in frames.list().get(place..).unwrap_or(&[]) {
            let reach = frame.reach();
            while number < reach.packets {
                let end = (begin + payload).min(reach.packed);
                if end > to {
                    break 'all;
                }
                if self.is_new(number.saturating_sub(next) as usize) {
                    new(number, frame.counts);
                }
                (number, begin) = (number + 1, end);
            }
            place += 1;
        }
        self.after = (to, frames.gone + place as u64, number);
    }
}
