//! Results of a video viewer: every measure, from frames produced and data arrived.
//!
//! ```text
//! Frame (produced) ──▶ Viewer ──▶ Viewed
//! Arrival (bytes in order, segments, datagrams) ──▶
//! ```
//! A recorded run contains the same two kinds of events, so all results can be derived from it. On a byte stream, a
//! packet is the unit divided by the application, and arrives when its last byte is available in order.

mod decode;
mod delayed;
mod lateness;
mod playout;
mod settings;
mod smooth;

use super::packet::{Cut, Cutter};
use crate::datagram::{Datagram, Delays, Measured};
use crate::frame::{Frame, FrameStatus};
use crate::viewed::{PLAYOUT_DELAYS, Share, Viewed};
use crate::watch::Arrival;
use decode::Decoder;
use delayed::Delayed;
use lateness::Lateness;
use playout::Playout;
pub(super) use settings::InvalidViewer;
pub use settings::Settings;
use skyhaul_base::{Duration, Instant};
use smooth::Smooth;
use std::collections::VecDeque;

/// How long after its deadline a frame in datagrams is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Memory of a frame and of a packet, bytes, in queues that grow by doubling.
const FRAME: u64 = 200;
const PACKET: u64 = 70;

/// A frame that is waited for, or remembered.
#[derive(Clone, Debug)]
struct Expected {
    frame: Frame,
    /// Produced after the warm-up.
    counts: bool,
    /// Number of the packet with its first byte, and of the packet after the one with its last byte; equal for a frame that was not
    /// sent.
    packets: (u64, u64),
    /// On a byte stream: its end.
    end: u64,
    /// In datagrams: packets that have not arrived.
    missing: u64,
    complete: Option<Instant>,
}

impl Expected {
    fn is_sent(&self) -> bool {
        self.frame.status == FrameStatus::Sent
    }
    /// Whether nothing more of it can arrive.
    fn is_done(&self) -> bool {
        self.complete.is_some() || !self.is_sent()
    }
}

/// A packet that is waited for, or remembered.
#[derive(Clone, Copy, Debug)]
struct Packet {
    /// When its frame was produced.
    at: Instant,
    counts: bool,
    /// On a byte stream: its end.
    end: u64,
    len: u64,
    /// On a byte stream: its last byte has arrived, in order or not. In datagrams: it has.
    arrived: bool,
}

/// Observes a video. Times must not decrease among frames, nor among arrivals, and a frame is reported before it
/// arrives; all frames may be reported before the first arrival.
#[derive(Clone, Debug)]
pub struct Viewer {
    settings: Settings,
    /// Over a byte stream, not as datagrams.
    stream: bool,
    cutter: Cutter,
    /// Frames in the order of coding, and how many of them, from the front, have been judged.
    frames: VecDeque<Expected>,
    judged: usize,
    /// Packets, and the number of the first of them.
    packets: VecDeque<Packet>,
    first_packet: u64,
    /// Number of the packet after those of the last frame.
    next_packet: u64,
    /// Bytes produced, and those of them in complete packets.
    produced: u64,
    packed: u64,
    /// Bytes that arrived, on a byte stream in order, and bytes of frames that could be decoded in time.
    arrived: u64,
    useful: u64,
    /// Packets forgotten before they arrived.
    forgotten: u64,
    /// Number of the last frame.
    last: Option<u64>,
    target: Option<f64>,
    switched: f64,
    delivery: Delayed,
    /// On a byte stream: packets as their last bytes arrive, in order or not.
    wire: Delayed,
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
            judged: 0,
            packets: VecDeque::new(),
            first_packet: 0,
            next_packet: 0,
            produced: 0,
            packed: 0,
            arrived: 0,
            useful: 0,
            forgotten: 0,
            last: None,
            target: None,
            switched: 0.0,
            delivery: Delayed::new(settings.threshold),
            wire: Delayed::new(settings.threshold),
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
        let before = self.target.replace(frame.target);
        if let Some(before) = before.filter(|b| *b != frame.target) {
            self.viewed.switches += 1;
            self.switched += (frame.target - before).abs();
        }
        let counts = frame.at >= Instant::ZERO + self.settings.warm;
        if counts {
            self.viewed.frames[frame.kind as usize] += 1;
            self.viewed.skipped += u64::from(frame.status == FrameStatus::Skipped);
            self.viewed.gaps += u64::from(frame.status == FrameStatus::Gap);
        }
        self.playout.produced(frame.at, frame.number);
        self.last = Some(frame.number);
        let mut expected = Expected {
            frame: *frame,
            counts,
            packets: (self.next_packet, self.next_packet),
            end: self.produced,
            missing: 0,
            complete: None,
        };
        if expected.is_sent() {
            self.divide(&mut expected);
        }
        self.frames.push_back(expected);
    }

    /// Divides a frame into packets, as its sender does.
    fn divide(&mut self, expected: &mut Expected) {
        let Expected { frame: Frame { at, bytes, .. }, counts, .. } = *expected;
        let pieces = self.cutter.frame(bytes);
        for i in 1..=pieces.ready {
            let len = if i == pieces.ready { pieces.last } else { self.cutter.cut().payload };
            self.pack(at, counts, len);
        }
        self.produced += pieces.bytes;
        self.next_packet = pieces.last_packet + 1;
        expected.frame.bytes = pieces.bytes;
        expected.packets = (pieces.first_packet, self.next_packet);
        expected.missing = self.next_packet - pieces.first_packet;
        expected.end = self.produced;
    }

    /// Adds a packet of a frame that was produced at `at`.
    fn pack(&mut self, at: Instant, counts: bool, len: u64) {
        self.packed += len;
        self.packets.push_back(Packet { at, counts, end: self.packed, len, arrived: false });
        self.viewed.packets += u64::from(counts);
    }

    /// The video has ended, and its last packet is sent although it is not full.
    pub fn flushed(&mut self) {
        let last = self.frames.iter().rfind(|f| f.is_sent()).map(|f| (f.frame.at, f.counts));
        if let (Some((at, counts)), Some(len)) = (last, self.cutter.finish()) {
            self.pack(at, counts, len);
        }
    }

    /// The video has ended: nothing more is produced.
    pub fn over(&mut self, now: Instant) {
        if let Some(last) = self.last {
            self.playout.over(now, last);
        }
    }
    /// The transport gave up.
    pub fn died(&mut self, now: Instant) {
        self.viewed.died.get_or_insert(now);
    }

    /// Processes an arrival.
    pub fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        match *arrival {
            Arrival::InOrder { bytes } if self.stream => self.in_order(now, bytes),
            Arrival::Segment { from, to } if self.stream => return self.segment(now, from, to),
            Arrival::Datagram(d) if !self.stream => self.datagram(now, &d),
            _ => return,
        }
        self.judge(now);
    }

    /// The stream is complete up to this many bytes.
    fn in_order(&mut self, now: Instant, bytes: u64) {
        if bytes <= self.arrived {
            return;
        }
        self.smooth.arrived(now, bytes - self.arrived);
        self.arrived = bytes;
        while let Some(packet) = self.packets.front().copied().filter(|p| p.end <= bytes) {
            if !packet.arrived {
                self.wire.arrived(now, self.first_packet, packet.counts);
            }
            self.packet_arrived(now, self.first_packet, packet);
            self.packets.pop_front();
            self.first_packet += 1;
        }
        // Frames are complete in order; those that are already are at the front, until they are judged.
        let first = self.frames.iter().position(|f| !f.is_done()).unwrap_or(self.frames.len());
        for place in first..self.frames.len() {
            if self.frames[place].end > bytes {
                break;
            }
            if self.frames[place].is_sent() {
                self.complete(now, place);
            }
        }
    }

    /// These bytes of the stream arrived, in order or not.
    fn segment(&mut self, now: Instant, from: u64, to: u64) {
        let first = self.packets.partition_point(|p| p.end <= from);
        for (number, packet) in (self.first_packet + first as u64..).zip(self.packets.range_mut(first..)) {
            if packet.end > to {
                return;
            }
            if !core::mem::replace(&mut packet.arrived, true) {
                self.wire.arrived(now, number, packet.counts);
            }
        }
    }

    /// A datagram arrived. Its number is that of the packet; possibly only its lower half was transmitted.
    fn datagram(&mut self, now: Instant, d: &Datagram) {
        // The number nearest to those expected.
        let ahead = (d.number as u32).wrapping_sub(self.first_packet as u32) as i32;
        let Some(number) = self.first_packet.checked_add_signed(ahead.into()) else { return };
        self.smooth.arrived(now, d.len.into());
        let Some(packet) = self.packets.get_mut(number.wrapping_sub(self.first_packet) as usize) else {
            // Long forgotten, or never produced.
            self.arrived += u64::from(d.len);
            return;
        };
        if core::mem::replace(&mut packet.arrived, true) {
            return;
        }
        let packet = *packet;
        self.arrived += packet.len;
        self.packet_arrived(now, number, packet);
        let first = self.frames.partition_point(|f| f.packets.1 <= number);
        for place in first..self.frames.len() {
            let frame = &mut self.frames[place];
            if frame.packets.0 > number {
                break;
            }
            if frame.is_sent() {
                frame.missing = frame.missing.saturating_sub(1);
                if frame.missing == 0 {
                    self.complete(now, place);
                }
            }
        }
    }

    /// A packet has arrived: on a byte stream, its last byte is available in order.
    fn packet_arrived(&mut self, now: Instant, number: u64, packet: Packet) {
        self.delivery.arrived(now, number, packet.counts);
        if packet.counts {
            let delay = now - packet.at;
            self.delays.packet(number, delay);
            for (late, most) in self.viewed.late.iter_mut().zip(PLAYOUT_DELAYS) {
                late.part += u64::from(delay > most);
            }
        }
    }

    /// All data of a frame has arrived.
    fn complete(&mut self, now: Instant, place: usize) {
        let expected = &mut self.frames[place];
        expected.complete = Some(now);
        self.playout.complete(now, expected.frame.number);
        if expected.counts && place < self.judged {
            self.lateness.complete(now - expected.frame.at);
        }
    }

    /// Judges frames that are complete or past their deadline, and forgets those that can no longer change.
    fn judge(&mut self, now: Instant) {
        while let Some(expected) = self.frames.get(self.judged) {
            let Frame { kind, at, bytes, .. } = expected.frame;
            let due = at + self.settings.deadline;
            if !expected.is_done() && now <= due {
                break;
            }
            let in_time = expected.complete.is_some_and(|t| t <= due);
            let decodable = self.decoder.next(kind, in_time);
            self.useful += if decodable { bytes } else { 0 };
            if expected.counts {
                self.viewed.complete[kind as usize].count(in_time);
                self.viewed.decodable.count(decodable);
                self.lateness.judged();
                if let Some(complete) = expected.complete {
                    self.lateness.complete(complete - at);
                }
            }
            self.judged += 1;
        }
        while self.judged > 0 {
            let Some(first) = self.frames.front() else { break };
            let forgets = now > first.frame.at + self.settings.deadline + REMEMBERED;
            if !first.is_done() && (self.stream || !forgets) {
                break;
            }
            if !self.stream {
                self.forget(first.packets.1);
            }
            self.frames.pop_front();
            self.judged -= 1;
        }
    }

    /// Forgets the datagrams before number `until`.
    fn forget(&mut self, until: u64) {
        while let Some(packet) = self.packets.front().filter(|_| self.first_packet < until) {
            self.forgotten += u64::from(!packet.arrived && packet.counts);
            self.packets.pop_front();
            self.first_packet += 1;
        }
    }

    /// Video received and not yet displayed, s; `None` before the first frame.
    #[must_use]
    pub fn buffered(&self, now: Instant) -> Option<f64> {
        self.playout.buffered(now)
    }

    /// Total stall time so far, s; `None` before the first frame. It never decreases.
    #[must_use]
    pub fn stalled(&self, now: Instant) -> Option<f64> {
        self.playout.stalled_until(now)
    }

    /// Memory of the frames and packets that are waited for or remembered, bytes.
    #[must_use]
    pub fn held(&self) -> u64 {
        FRAME * self.frames.len() as u64 + PACKET * self.packets.len() as u64
    }

    /// The results until `end`.
    #[must_use]
    pub fn result(&self, end: Instant) -> Viewed {
        // What is missing by then may arrive later.
        let mut v = self.clone();
        v.judge(end);
        let began = v.playout.began();
        let mut r = v.viewed;
        for (late, most) in r.late.iter_mut().zip(PLAYOUT_DELAYS) {
            // Packets that are still missing so long after their production.
            let missing = |p: &&Packet| p.counts && p.at + most < end && (self.stream || !p.arrived);
            late.part += v.packets.iter().filter(missing).count() as u64 + v.forgotten;
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
        r.useless = Share { part: v.arrived.saturating_sub(v.useful), of: v.arrived };
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

#[cfg(test)]
mod tests;
