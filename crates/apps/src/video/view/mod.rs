//! Results of a video viewer: every measure, from frames produced and data arrived.
//!
//! ```text
//! Frame (produced) ──▶ Viewer ──▶ Viewed
//! Arrival (bytes in order, segments, datagrams) ──▶
//! ```
//! A recorded run contains the same two kinds of events, so all results can be derived from it. On a byte stream, a
//! packet is the unit divided by the application, and arrives when its last byte is available in order.
//!
//! Frames are remembered, and the packets of a byte stream follow from them ([`seen`]). A packet in order only leaves
//! its time ([`batch`]); those of a frame are counted at once when it is complete.

mod batch;
mod decode;
mod gaps;
mod lateness;
mod playout;
mod seen;
mod settings;
mod smooth;

use super::packet::{Cut, Cutter, Pieces};
use crate::datagram::{Datagram, Delays, Measured};
use crate::frame::{Fate, Frame, FrameType as Type};
use crate::viewed::{FIXED, Share, Viewed};
use crate::workload::Arrival;
use batch::Batch;
use decode::Decoder;
use gaps::Gaps;
use lateness::Lateness;
use playout::Playout;
use seen::{Ahead, Packet, Seen};
pub(super) use settings::InvalidViewer;
pub use settings::Settings;
use skyhaul_base::{Duration, Instant};
use smooth::Smooth;
use std::collections::VecDeque;

/// How long after its deadline a frame sent by datagrams is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Observes a video. Times must not decrease among frames, nor among arrivals, and a frame is reported before it
/// arrives; all frames may be reported before the first arrival.
#[derive(Clone, Debug)]
pub struct Viewer {
    settings: Settings,
    stream: bool,
    cutter: Cutter,
    frames: VecDeque<Seen>,
    /// Number of frames before these.
    gone: u64,
    /// Number of `frames`, from the front, that have been judged; and on a byte stream, that are complete or not
    /// sent.
    judged: usize,
    done: usize,
    /// After this time, the first frame that was not judged can be, even if no frame becomes complete.
    due: Instant,
    /// The next packet: on a byte stream the next one in order, with datagrams the first one that is remembered.
    next_packet: u64,
    /// On a byte stream: up to here nothing becomes complete, neither a packet nor a frame.
    idle_until: u64,
    /// On a byte stream: the last packet of the current frame, and its end; 0 if there is none.
    last_packet: (u64, u64),
    /// On a byte stream: packets of the current frame that are not counted yet; and whether the next one in order
    /// needs only its time, since `wire` and `delivery` know the same of what came before.
    batch: Batch,
    in_step: bool,
    /// On a byte stream: packets that arrived out of order.
    ahead: Ahead,
    /// With datagrams: those that are remembered.
    packets: VecDeque<Packet>,
    /// The packet after those of the last frame.
    behind: u64,
    /// On a byte stream: bytes in packets, and bytes produced.
    ends: (u64, u64),
    /// Bytes that arrived, and those of frames that could be decoded in time.
    arrived: u64,
    useful: u64,
    target: Option<f64>,
    switched: f64,
    /// Packets forgotten before they arrived.
    forgotten: u64,
    delivery: Gaps,
    wire: Gaps,
    delays: Delays,
    lateness: Lateness,
    smooth: Smooth,
    decoder: Decoder,
    playout: Playout,
    viewed: Viewed,
}

impl Viewer {
    /// Before the first frame of a video with this frame rate and division into packets, over a byte stream or as
    /// datagrams.
    #[must_use]
    pub fn new(settings: Settings, frames: f64, cut: Cut, stream: bool) -> Self {
        Self {
            stream,
            cutter: Cutter::new(cut),
            frames: VecDeque::new(),
            gone: 0,
            judged: 0,
            done: 0,
            due: Instant::MAX,
            next_packet: 0,
            idle_until: u64::MAX,
            last_packet: (0, 0),
            batch: Batch::default(),
            in_step: true,
            ahead: Ahead::default(),
            packets: VecDeque::new(),
            behind: 0,
            ends: (0, 0),
            arrived: 0,
            useful: 0,
            target: None,
            switched: 0.0,
            forgotten: 0,
            delivery: Gaps::new(settings.threshold),
            wire: Gaps::new(settings.threshold),
            delays: Delays::default(),
            lateness: Lateness::default(),
            smooth: Smooth::default(),
            decoder: Decoder::default(),
            playout: Playout::new(1.0 / frames, settings.start, settings.resume, !stream),
            viewed: Viewed::default(),
            settings,
        }
    }

    /// A frame was produced.
    pub fn produced(&mut self, frame: &Frame) {
        let pieces = (frame.fate == Fate::Sent).then(|| self.cutter.frame(frame.bytes));
        self.cut(frame, pieces.as_ref());
    }

    /// A frame was produced, and divided into these pieces if it was sent.
    #[inline]
    pub(super) fn cut(&mut self, frame: &Frame, pieces: Option<&Pieces>) {
        let before = self.target.replace(frame.target);
        if let Some(before) = before.filter(|b| *b != frame.target) {
            self.viewed.switches += 1;
            self.switched += (frame.target - before).abs();
        }
        let counts = frame.at >= Instant::ZERO + self.settings.warm;
        if counts {
            self.viewed.frames[frame.kind as usize] += 1;
            self.viewed.skipped += u64::from(frame.fate == Fate::Skipped);
            self.viewed.gaps += u64::from(frame.fate == Fate::Gap);
        }
        self.playout.produced(frame.at, frame.number);
        let mut seen = Seen::unsent(frame, counts, self.behind, self.ends);
        if let Some(pieces) = pieces {
            let payload = self.cutter.cut().payload;
            seen.sent(pieces, payload, self.stream);
            self.behind = seen.packets.1;
            self.ends = seen.ends();
            self.viewed.packets += if counts { pieces.ready } else { 0 };
            if !self.stream {
                for i in 0..pieces.ready {
                    let len = if i + 1 == pieces.ready { pieces.last } else { payload };
                    self.packets.push_back(Packet { at: frame.at, len: len as u32, arrived: false, counts });
                }
            }
        }
        if self.judged == self.frames.len() {
            self.due = seen.due(self.settings.deadline);
        }
        self.frames.push_back(seen);
        if self.idle_until == u64::MAX && self.stream {
            self.expect();
        }
    }

    /// The video has ended: nothing more is produced.
    pub fn over(&mut self, now: Instant) {
        if let Some(last) = self.frames.back() {
            self.playout.over(now, last.number);
        }
    }
    /// The transport gave up.
    pub fn died(&mut self, now: Instant) {
        self.viewed.died.get_or_insert(now);
    }

    /// Processes an arrival.
    #[inline]
    pub fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        let complete = match *arrival {
            Arrival::InOrder { bytes } => self.in_order(now, bytes),
            Arrival::Segment { from, to } => {
                self.segment(now, from, to);
                false
            }
            Arrival::Next { from, to } => {
                // Data in order has been seen on the wire as well; only data beyond it needs a separate check.
                if from > self.arrived {
                    self.segment(now, from, to);
                }
                self.in_order(now, to)
            }
            Arrival::Datagram(d) => self.datagram(now, &d),
        };
        if complete || now > self.due {
            self.judge(now);
        }
    }

    /// A byte stream is complete up to this many bytes. Whether frames have become complete and are to be judged.
    #[inline]
    fn in_order(&mut self, now: Instant, bytes: u64) -> bool {
        if bytes <= self.arrived {
            return false;
        }
        self.smooth.arrived(now, bytes - self.arrived);
        self.arrived = bytes;
        if bytes < self.idle_until {
            return false;
        }
        let (last, packed) = self.last_packet;
        if self.in_step && self.next_packet < last && self.batch.has_room() {
            // Usually it is one packet, and not the last one of its frame.
            let payload = self.cutter.cut().payload;
            let end = if self.next_packet + 1 == last { packed } else { self.idle_until + payload };
            if bytes < end {
                self.batch.push(now);
                self.next_packet += 1;
                self.idle_until = end;
                return false;
            }
        }
        self.advance(now, bytes)
    }

    /// Finds out what is complete next on a byte stream: a packet, or a frame.
    fn expect(&mut self) {
        let payload = self.cutter.cut().payload;
        let next = self.current();
        (self.idle_until, self.last_packet) = match next {
            Some(f) => (f.next_end(self.next_packet, payload), f.last_packet()),
            None => (u64::MAX, (0, 0)),
        };
    }

    /// Packets, and maybe frames, of a byte stream are complete.
    #[inline(never)]
    fn advance(&mut self, now: Instant, bytes: u64) -> bool {
        let (payload, before) = (self.cutter.cut().payload, self.done);
        while let Some(frame) = self.frames.get(self.done) {
            let (at, counts, behind) = (frame.at, frame.counts, frame.packets.1);
            while self.next_packet < behind && frame.next_end(self.next_packet, payload) <= bytes {
                let number = self.next_packet;
                if !self.in_step {
                    if !self.ahead.next() {
                        self.wire.arrived(now, number, counts);
                    }
                    self.delivery.arrived(now, number, counts);
                    if counts {
                        take(&mut self.delays, &mut self.viewed, number, now - at);
                    }
                } else {
                    if !self.batch.has_room() {
                        self.batch.count(
                            frame,
                            number,
                            [&mut self.delivery, &mut self.wire],
                            (&mut self.delays, &mut self.viewed),
                        );
                    }
                    self.batch.push(now);
                }
                self.next_packet = number + 1;
            }
            if frame.sent {
                if frame.end > bytes {
                    break;
                }
                self.batch.count(
                    frame,
                    self.next_packet,
                    [&mut self.delivery, &mut self.wire],
                    (&mut self.delays, &mut self.viewed),
                );
            }
            self.complete(now);
        }
        self.expect();
        if !self.in_step {
            self.in_step = self.ahead.is_empty() && self.wire.agrees(&self.delivery);
        }
        self.done > before
    }

    /// On a byte stream: the first frame that was sent and is not complete.
    fn current(&self) -> Option<&Seen> {
        self.frames.range(self.done.min(self.frames.len())..).find(|f| f.sent)
    }

    /// Counts the packets that have left only their times.
    fn settle(&mut self) {
        let Some(frame) = self.current().cloned() else { return };
        self.batch.count(
            &frame,
            self.next_packet,
            [&mut self.delivery, &mut self.wire],
            (&mut self.delays, &mut self.viewed),
        );
    }

    /// On a byte stream: all data of the frame at `done` has arrived, or it was not sent.
    #[inline]
    fn complete(&mut self, now: Instant) {
        let Some(frame) = self.frames.get_mut(self.done) else { return };
        if frame.sent {
            frame.complete = Some(now);
            self.playout.complete(now, frame.number);
        }
        if self.done > 0 || self.judged > 0 {
            if self.done < self.judged && frame.sent && frame.counts {
                self.lateness.complete(now - frame.at);
            }
            self.done += 1;
            return;
        }
        // Usually it is the oldest one, and nothing is left to be known of it.
        let in_time = frame.sent && now <= frame.at + self.settings.deadline;
        let (kind, bytes, delay) = (frame.kind, frame.bytes, frame.sent.then(|| now - frame.at));
        let counts = frame.counts;
        self.frames.pop_front();
        self.gone += 1;
        self.verdict(kind, bytes, in_time, counts, delay);
        self.due = self.frames.front().map_or(Instant::MAX, |f| f.due(self.settings.deadline));
    }

    /// These bytes of a byte stream arrived, in order or not.
    #[inline(never)]
    fn segment(&mut self, now: Instant, from: u64, to: u64) {
        let from = from.max(self.arrived);
        if to <= from {
            return;
        }
        self.settle();
        self.in_step = false;
        let (payload, frames) = (self.cutter.cut().payload, (&self.frames, self.gone));
        let wire = &mut self.wire;
        let new = |number, counts| wire.arrived(now, number, counts);
        self.ahead.segment((from, to), self.next_packet, frames, payload, new);
    }

    /// A datagram arrived. Its number is that of the packet; possibly only its lower half was transmitted. Whether a
    /// frame has become complete.
    #[inline(never)]
    fn datagram(&mut self, now: Instant, d: &Datagram) -> bool {
        // The number nearest to those expected.
        let ahead = (d.number as u32).wrapping_sub(self.next_packet as u32) as i32;
        let Some(number) = self.next_packet.checked_add_signed(ahead.into()) else { return false };
        let place = number.wrapping_sub(self.next_packet) as usize;
        self.smooth.arrived(now, d.len.into());
        let Some(packet) = self.packets.get_mut(place) else {
            // Long forgotten, or never produced.
            self.arrived += u64::from(d.len);
            return false;
        };
        if core::mem::replace(&mut packet.arrived, true) {
            return false;
        }
        self.arrived += u64::from(packet.len);
        self.delivery.arrived(now, number, packet.counts);
        if packet.counts {
            take(&mut self.delays, &mut self.viewed, number, now - packet.at);
        }
        let mut complete = false;
        let first = self.frames.partition_point(|f| f.packets.1 <= number);
        for place in first..self.frames.len() {
            let frame = &mut self.frames[place];
            if frame.packets.0 > number {
                break;
            }
            if !frame.sent {
                continue;
            }
            frame.missing = frame.missing.saturating_sub(1);
            if frame.missing == 0 {
                complete = true;
                frame.complete = Some(now);
                self.playout.complete(now, frame.number);
                if place < self.judged && frame.counts {
                    self.lateness.complete(now - frame.at);
                }
            }
        }
        complete
    }

    /// Judges frames that are complete or past their deadline, and forgets those that can no longer change.
    #[inline(never)]
    fn judge(&mut self, now: Instant) {
        self.due = Instant::MAX;
        while let Some(frame) = self.frames.get(self.judged) {
            let due = frame.due(self.settings.deadline);
            if frame.sent && frame.complete.is_none() && now <= due {
                self.due = due;
                break;
            }
            let (kind, bytes, counts) = (frame.kind, frame.bytes, frame.counts);
            let in_time = frame.complete.is_some_and(|t| t <= frame.at + self.settings.deadline);
            let delay = frame.complete.map(|t| t - frame.at);
            self.verdict(kind, bytes, in_time, counts, delay);
            self.judged += 1;
        }
        while self.judged > 0 {
            let Some(frame) = self.frames.front() else { break };
            let done = if self.stream { self.done > 0 } else { frame.complete.is_some() || !frame.sent };
            if !done && (self.stream || now <= frame.at + self.settings.deadline + REMEMBERED) {
                break;
            }
            let behind = frame.packets.1;
            if !self.stream {
                self.forget_packets(behind);
            }
            self.frames.pop_front();
            self.gone += 1;
            self.judged -= 1;
            self.done = self.done.saturating_sub(1);
        }
    }

    /// A frame of so many bytes was complete in time or not, after `delay` if it ever was.
    #[inline]
    fn verdict(&mut self, kind: Type, bytes: u64, in_time: bool, counts: bool, delay: Option<Duration>) {
        let decodable = self.decoder.next(kind, in_time);
        self.useful += if decodable { bytes } else { 0 };
        if counts {
            self.viewed.complete[kind as usize].count(in_time);
            self.viewed.decodable.count(decodable);
            self.lateness.judged();
            if let Some(delay) = delay {
                self.lateness.complete(delay);
            }
        }
    }

    /// Forgets datagrams before this one.
    fn forget_packets(&mut self, behind: u64) {
        while let Some(packet) = self.packets.front().filter(|_| self.next_packet < behind) {
            if !packet.arrived && packet.counts {
                self.forgotten += 1;
            }
            self.packets.pop_front();
            self.next_packet += 1;
        }
    }

    /// Packets that have not arrived and still count, with the times of their frames.
    fn missing(&self) -> impl Iterator<Item = (Instant, u64)> + '_ {
        let datagrams = self.packets.iter().filter(|p| !p.arrived && p.counts).map(|p| (p.at, 1));
        let frames = self.frames.iter().filter(|f| self.stream && f.counts);
        datagrams.chain(frames.map(|f| (f.at, f.packets.1.saturating_sub(f.packets.0.max(self.next_packet)))))
    }

    /// Video received and not yet displayed, s; `None` before the first frame.
    #[must_use]
    pub fn buffered(&self, now: Instant) -> Option<f64> {
        self.playout.buffered(now)
    }

    /// Total stall time so far, s; `None` before the first frame. It never decreases.
    #[must_use]
    pub fn stood(&self, now: Instant) -> Option<f64> {
        self.playout.stood_by(now)
    }

    /// The results until `end`.
    #[must_use]
    pub fn result(&self, end: Instant) -> Viewed {
        let mut v = self.clone();
        v.settle();
        v.judge(end);
        let began = v.playout.began();
        let mut r = core::mem::take(&mut v.viewed);
        for (late, most) in r.late.iter_mut().zip(FIXED) {
            let waiting: u64 = v.missing().filter(|(at, _)| *at + most < end).map(|(_, n)| n).sum();
            late.part += waiting + v.forgotten;
            late.of = r.packets;
        }
        r.played = v.playout.result(end);
        r.still = began.map(|began| match r.played.startup {
            None => 1.0,
            Some(_) => {
                let whole = r.played.stalled + r.played.played;
                if whole > 0.0 { r.played.stalled / whole } else { f64::from(u8::from(end > began)) }
            }
        });
        let bytes = v.arrived;
        r.useless = Share { part: bytes.saturating_sub(v.useful), of: bytes };
        r.switched_by = (r.switches > 0).then(|| v.switched / r.switches as f64);
        (r.variation, r.silence) = v.smooth.result(end);
        r.measured = v.delays.measured();
        r.frame_delays = v.lateness.quantiles();
        let share = |part, of| Some(Share { part, of });
        r.delayed = share(v.delivery.by_number, v.delivery.received);
        r.delayed_arrival = share(v.delivery.by_arrival, v.delivery.received);
        r.delayed_wire = if v.stream { share(v.wire.by_number, v.wire.received) } else { None };
        if r.died.is_some() {
            // If the video broke off, earlier results would look too good.
            (r.delayed, r.delayed_arrival, r.delayed_wire, r.variation) = (None, None, None, None);
            (r.frame_delays, r.useless) = Default::default();
            r.measured = Measured {
                delivered: r.measured.delivered,
                missing: r.measured.missing,
                ..Measured::default()
            };
        }
        r
    }
}

/// A packet that counts arrived, `delay` after its production.
#[inline]
fn take(delays: &mut Delays, viewed: &mut Viewed, number: u64, delay: Duration) {
    delays.packet(number, delay);
    // They are ascending: usually none is exceeded.
    if delay > FIXED[0] {
        viewed.count_late(delay);
    }
}

#[cfg(test)]
mod tests;
