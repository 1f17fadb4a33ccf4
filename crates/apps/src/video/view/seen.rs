//! Remembered frames, and the packets of a byte stream, which follow from them.

use super::super::packet::Pieces;
use crate::frame::{Fate, Frame, FrameType as Type};
use skyhaul_base::{Duration, Instant};
use std::collections::VecDeque;

/// A remembered frame.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) number: u64,
    pub(super) at: Instant,
    pub(super) bytes: u64,
    /// From the packet with its first byte to the one after its last packet; empty for a frame that was not sent. On
    /// a byte stream the last packet is the last one that the frame completes, with datagrams that of its last byte.
    pub(super) packets: (u64, u64),
    /// On a byte stream: start of the first of these packets, end of the last one, and end of the frame's data.
    start: u64,
    packed: u64,
    pub(super) end: u64,
    /// With datagrams: packets that have not arrived.
    pub(super) missing: u64,
    pub(super) complete: Option<Instant>,
    pub(super) kind: Type,
    pub(super) sent: bool,
    /// Produced after the warm-up.
    pub(super) counts: bool,
}

impl Seen {
    /// A frame that was not sent; `packet` is the number of the next packet, `stream` the ends of all packets and of
    /// all data so far.
    pub(super) fn unsent(frame: &Frame, counts: bool, packet: u64, (packed, end): (u64, u64)) -> Self {
        Self {
            number: frame.number,
            at: frame.at,
            bytes: 0,
            packets: (packet, packet),
            start: packed,
            packed,
            end,
            missing: 0,
            complete: None,
            kind: frame.kind,
            sent: frame.fate == Fate::Sent,
            counts,
        }
    }

    /// It was sent in these pieces.
    pub(super) fn sent(&mut self, pieces: &Pieces, payload: u64, stream: bool) {
        self.bytes = pieces.bytes;
        let first = pieces.first_packet;
        self.missing = pieces.last_packet + 1 - first;
        self.packets = (first, first + if stream { pieces.ready } else { self.missing });
        self.end += pieces.bytes;
        if pieces.ready > 0 {
            self.packed += (pieces.ready - 1) * payload + pieces.last;
        }
    }

    /// Ends of all packets and of all data, including this frame's.
    pub(super) fn ends(&self) -> (u64, u64) {
        (self.packed, self.end)
    }

    /// When it can be judged even if it is not complete.
    #[inline]
    pub(super) fn due(&self, deadline: Duration) -> Instant {
        if self.sent { self.at + deadline } else { Instant::ZERO }
    }

    /// On a byte stream: where the next of its packets becomes complete, or itself, if `number` is the next packet.
    #[inline]
    pub(super) fn next_end(&self, number: u64, payload: u64) -> u64 {
        if number < self.packets.1 { self.packet_end(number, payload) } else { self.end }
    }

    /// On a byte stream: number and end of its last packet, if it has any.
    #[inline]
    pub(super) fn last_packet(&self) -> (u64, u64) {
        (self.packets.1.saturating_sub(1), self.packed)
    }

    /// On a byte stream: the end of its packet `number`.
    #[inline]
    fn packet_end(&self, number: u64, payload: u64) -> u64 {
        if number + 1 == self.packets.1 {
            self.packed
        } else {
            self.start + (number + 1 - self.packets.0) * payload
        }
    }

    /// On a byte stream: its first packet that ends after `from`, which is before the end of its last one.
    fn packet_after(&self, from: u64, payload: u64) -> u64 {
        let last = self.packets.1.saturating_sub(1);
        (self.packets.0 + from.saturating_sub(self.start) / payload).min(last)
    }
}

/// A datagram that has not arrived, or is still remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) at: Instant,
    pub(super) len: u32,
    pub(super) arrived: bool,
    pub(super) counts: bool,
}

/// Packets of a byte stream of which the last byte has arrived out of order.
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

    /// Bytes `[from, to)` have arrived, and everything in order before `from`. Calls `new` with each packet that
    /// ends among them for the first time; `next` is the next packet in order. `frames` are remembered after `gone`
    /// others.
    pub(super) fn segment(
        &mut self,
        (from, to): (u64, u64),
        next: u64,
        (frames, gone): (&VecDeque<Seen>, u64),
        payload: u64,
        mut new: impl FnMut(u64, bool),
    ) {
        let (at, frame, number) = self.after;
        let (mut place, mut number) = if at == from && frame >= gone && number >= next {
            ((frame - gone) as usize, number)
        } else {
            let place = frames.partition_point(|f| f.ends().0 <= from);
            (place, frames.get(place).map_or(next, |f| f.packet_after(from, payload)))
        };
        while let Some(frame) = frames.get(place) {
            while number < frame.packets.1 && frame.packet_end(number, payload) <= to {
                let ahead = number.saturating_sub(next) as usize;
                if ahead >= self.there.len() {
                    self.there.resize(ahead + 1, false);
                }
                if !core::mem::replace(&mut self.there[ahead], true) {
                    new(number, frame.counts);
                }
                number += 1;
            }
            if number < frame.packets.1 {
                break;
            }
            place += 1;
        }
        self.after = (to, gone + place as u64, number);
    }
}
