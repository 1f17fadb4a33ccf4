//! Packets of a byte stream of which the last byte has arrived out of order.

use super::frames::Frames;
use std::collections::VecDeque;

/// These packets.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// Which of the packets from the next one in order on; as few as possible.
    there: VecDeque<bool>,
    /// The first packet that ends after byte `.0`. The next segment usually begins there.
    after: (u64, Place),
}

/// The place of a packet in the film.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Its frame, counted from the first one of the film.
    frame: u64,
    /// Its number, and the byte with which it begins.
    number: u64,
    begin: u64,
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
        let (at, after) = self.after;
        let Place { frame, mut number, mut begin } =
            if at == from && after.frame >= frames.gone && after.number >= next {
                after
            } else {
                let (place, number) =
                    frames.packet_after(from, payload).unwrap_or((frames.list().len(), next));
                let begin = frames.before(place).begin(number, payload);
                Place { frame: frames.gone + place as u64, number, begin }
            };
        let mut place = (frame - frames.gone) as usize;
        'all: for frame in frames.list().get(place..).unwrap_or(&[]) {
            let reach = frame.reach();
            while number < reach.packets {
                let end = reach.end(begin, payload);
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
        self.after = (to, Place { frame: frames.gone + place as u64, number, begin });
    }
}
