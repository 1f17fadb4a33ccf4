//! A film sent by datagrams.

use super::tally::Tally;
use crate::datagram::Datagram;
use crate::frame::{Fate, Frame, FrameType as Type};
use crate::video::packet::Pieces;
use skyhaul_base::{Duration, Instant};
use std::collections::VecDeque;

/// How long after its deadline a frame is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// A remembered frame.
#[derive(Clone, Debug)]
struct Seen {
    number: u64,
    at: Instant,
    bytes: u64,
    /// From the packet with its first byte to the one after that with its last byte; empty for a frame that was not
    /// sent.
    packets: (u64, u64),
    /// Packets that have not arrived.
    missing: u64,
    complete: Option<Instant>,
    kind: Type,
    sent: bool,
    /// Produced after the warm-up.
    counts: bool,
}

impl Seen {
    /// When it can be judged even if it is not complete.
    #[inline]
    fn due(&self, tally: &Tally) -> Instant {
        if self.sent { tally.due(self.at) } else { Instant::ZERO }
    }
}

/// A packet that has not arrived, or is still remembered.
#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Instant,
    len: u32,
    arrived: bool,
    counts: bool,
}

/// The frames and packets of a film.
#[derive(Clone, Debug)]
pub(super) struct Datagrams {
    /// Payload of a full packet, bytes.
    payload: u64,
    frames: VecDeque<Seen>,
    /// Number of `frames`, from the front, that have been judged.
    judged: usize,
    /// After this time, the first frame that was not judged can be, even if no frame becomes complete.
    due: Instant,
    packets: VecDeque<Packet>,
    /// The first packet that is remembered, and the one after those of the last frame.
    next: u64,
    behind: u64,
    /// Place of the frame of the last packet that arrived: usually the next one is of the same frame.
    place: usize,
    /// Bytes that arrived.
    arrived: u64,
    /// Packets forgotten before they arrived.
    forgotten: u64,
}

impl Datagrams {
    /// Before the first frame.
    pub(super) fn new(payload: u64) -> Self {
        Self {
            payload,
            frames: VecDeque::new(),
            judged: 0,
            due: Instant::MAX,
            packets: VecDeque::new(),
            next: 0,
            behind: 0,
            place: 0,
            arrived: 0,
            forgotten: 0,
        }
    }

    /// Bytes that arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }
    /// Packets forgotten before they arrived.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// A frame was produced, and divided into these pieces if it was sent.
    pub(super) fn produced(&mut self, frame: &Frame, counts: bool, pieces: Option<&Pieces>, tally: &Tally) {
        let Frame { number, at, kind, .. } = *frame;
        let mut seen = Seen {
            number,
            at,
            bytes: 0,
            packets: (self.behind, self.behind),
            missing: 0,
            complete: None,
            kind,
            sent: frame.fate == Fate::Sent,
            counts,
        };
        if let Some(pieces) = pieces {
            seen.bytes = pieces.bytes;
            seen.missing = pieces.last_packet + 1 - pieces.first_packet;
            seen.packets = (pieces.first_packet, pieces.last_packet + 1);
            self.behind = seen.packets.1;
            for i in 0..pieces.ready {
                let len = if i + 1 == pieces.ready { pieces.last } else { self.payload };
                self.packets.push_back(Packet { at, len: len as u32, arrived: false, counts });
            }
        }
        if self.judged == self.frames.len() {
            self.due = seen.due(tally);
        }
        self.frames.push_back(seen);
    }

    /// A datagram arrived. Its number is that of the packet; possibly only its lower half was transmitted.
    #[inline(never)]
    pub(super) fn came(&mut self, now: Instant, d: &Datagram, tally: &mut Tally) {
        if self.packet(now, d, tally) || now > self.due {
            self.judge(now, tally);
        }
    }

    /// Whether a frame has become complete.
    #[inline]
    fn packet(&mut self, now: Instant, d: &Datagram, tally: &mut Tally) -> bool {
        // The number nearest to those expected.
        let ahead = (d.number as u32).wrapping_sub(self.next as u32) as i32;
        let Some(number) = self.next.checked_add_signed(ahead.into()) else { return false };
        tally.smooth.more(now, d.len.into());
        let Some(packet) = self.packets.get_mut(number.wrapping_sub(self.next) as usize) else {
            // Long forgotten, or never produced.
            self.arrived += u64::from(d.len);
            return false;
        };
        if core::mem::replace(&mut packet.arrived, true) {
            return false;
        }
        self.arrived += u64::from(packet.len);
        tally.packet(now, number, now - packet.at, packet.counts);
        let mut complete = false;
        self.place = self.find(number);
        let mut place = self.place;
        while let Some(frame) = self.frames.get_mut(place).filter(|f| f.packets.0 <= number) {
            place += 1;
            if !frame.sent {
                continue;
            }
            frame.missing = frame.missing.saturating_sub(1);
            if frame.missing == 0 {
                complete = true;
                frame.complete = Some(now);
                tally.playout.complete(now, frame.number);
                if place <= self.judged && frame.counts {
                    tally.lateness.complete(now - frame.at);
                }
            }
        }
        complete
    }

    /// The place of the first frame with packet `number` or a later one.
    #[inline]
    fn find(&self, number: u64) -> usize {
        let is_behind = |place: usize| self.frames.get(place).is_some_and(|f| f.packets.1 <= number);
        let is_first = |place: usize| !is_behind(place) && (place == 0 || is_behind(place - 1));
        // Usually that of the last packet, or the next one.
        let near = [self.place, self.place + 1].into_iter().find(|place| is_first(*place));
        near.unwrap_or_else(|| self.frames.partition_point(|f| f.packets.1 <= number))
    }

    /// Judges frames that are complete or past their deadline, and forgets those that can no longer change.
    #[inline(never)]
    pub(super) fn judge(&mut self, now: Instant, tally: &mut Tally) {
        self.due = Instant::MAX;
        while let Some(frame) = self.frames.get(self.judged) {
            let due = frame.due(tally);
            if frame.sent && frame.complete.is_none() && now <= due {
                self.due = due;
                break;
            }
            let in_time = frame.complete.is_some_and(|t| t <= tally.due(frame.at));
            tally.verdict(frame.kind, frame.bytes, in_time, frame.counts);
            if let Some(at) = frame.complete.filter(|_| frame.counts) {
                tally.lateness.complete(at - frame.at);
            }
            self.judged += 1;
        }
        while self.judged > 0 {
            let Some(frame) = self.frames.front() else { break };
            let done = frame.complete.is_some() || !frame.sent;
            if !done && now <= tally.due(frame.at) + REMEMBERED {
                break;
            }
            let behind = frame.packets.1;
            self.forget(behind);
            self.frames.pop_front();
            self.judged -= 1;
            self.place = self.place.saturating_sub(1);
        }
    }

    /// Forgets the packets before this one.
    fn forget(&mut self, behind: u64) {
        while let Some(packet) = self.packets.front().filter(|_| self.next < behind) {
            if !packet.arrived && packet.counts {
                self.forgotten += 1;
            }
            self.packets.pop_front();
            self.next += 1;
        }
    }

    /// Number of packets that have not arrived and count, of frames for which `is_old` is true.
    pub(super) fn missing(&self, is_old: impl Fn(Instant) -> bool) -> u64 {
        self.packets.iter().filter(|p| !p.arrived && p.counts && is_old(p.at)).count() as u64
    }
}
