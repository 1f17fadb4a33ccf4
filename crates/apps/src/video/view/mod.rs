//! Results of a video viewer: every measure, from frames produced and data arrived.
//!
//! ```text
//! Frame (produced) ──▶ Viewer ──▶ Viewed
//! Arrival (bytes in order, segments, datagrams) ──▶
//! ```
//! A recorded run contains the same two kinds of events, so all results can be derived from it. On a byte stream, a
//! packet is the unit divided by the application, and arrives when its last byte is available in order.

mod decode;
mod gaps;
mod lateness;
mod playout;
mod smooth;

use super::packet::{Cut, Cutter};
use crate::datagram::{Datagram, Delays, Measured};
use crate::frame::{Fate, Frame, FrameType as Type};
use crate::viewed::{FIXED, Share, Viewed};
use crate::workload::Arrival;
use decode::Decoder;
use gaps::Gaps;
use lateness::Lateness;
use playout::Playout;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_base::amount::{Time, plain};
use skyhaul_base::{Duration, Instant};
use smooth::Smooth;
use std::collections::VecDeque;

/// How long after its deadline a frame sent by datagrams is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// A viewer: deadlines and playout buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// A packet counts as delayed if it arrives later than this after the previous one: "100 ms" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub threshold: Duration,
    /// Deadline of a frame after its production: "1 s" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub deadline: Duration,
    /// Playout buffer required to start: "1 s" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub start: Duration,
    /// Playout buffer required to resume after a stall: "0.5 s" by default.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub resume: Duration,
    /// Frames produced before this time of the run, and their packets, are not counted: "0 s" by default. Playout
    /// covers the whole film.
    #[serde(with = "plain::time")]
    #[schemars(with = "Time")]
    pub warm: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            threshold: Duration::from_millis(100),
            deadline: Duration::from_secs(1),
            start: Duration::from_secs(1),
            resume: Duration::from_millis(500),
            warm: Duration::ZERO,
        }
    }
}

/// An invalid time of a viewer; the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidViewer {
    /// Zero.
    #[error("zero: write a time above zero, such as \"100 ms\"")]
    Zero(&'static str),
    /// Excessive.
    #[error("longer than a day: write a time such as \"1 s\"")]
    Long(&'static str),
}

impl InvalidViewer {
    /// The key within the viewer.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Zero(key) | Self::Long(key) => key,
        }
    }
}

impl Settings {
    /// Refuses zero and excessive times.
    ///
    /// # Errors
    /// The key, and a sentence.
    pub fn validate(&self) -> Result<(), InvalidViewer> {
        let Self { threshold, deadline, start, resume, warm } = *self;
        let times = [("threshold", threshold), ("deadline", deadline), ("start", start), ("resume", resume)];
        if let Some((key, _)) = times.iter().find(|(_, t)| t.is_zero()) {
            return Err(InvalidViewer::Zero(key));
        }
        let all = times.into_iter().chain([("warm", warm)]);
        let long = all.into_iter().find(|(_, t)| *t > Duration::from_secs(86_400));
        long.map_or(Ok(()), |(key, _)| Err(InvalidViewer::Long(key)))
    }
}

/// A remembered frame.
#[derive(Clone, Debug)]
struct Seen {
    number: u64,
    kind: Type,
    at: Instant,
    bytes: u64,
    /// From the packet with its first byte to the one after its last byte; empty, after the previous frame, for a
    /// frame that was not sent.
    packets: (u64, u64),
    /// On a byte stream: end of its data.
    end: u64,
    /// With datagrams: packets that have not arrived.
    missing: u64,
    sent: bool,
    complete: Option<Instant>,
}

/// A packet that has not arrived, or is still remembered.
#[derive(Clone, Copy, Debug)]
struct Packet {
    at: Instant,
    /// On a byte stream: end of its data.
    end: u64,
    len: u32,
    arrived: bool,
    /// Its last byte arrived, in order or not.
    on_the_wire: bool,
}

/// Observes a video. Times must not decrease among frames, nor among arrivals, and a frame is reported before it
/// arrives; all frames may be reported before the first arrival.
#[derive(Clone, Debug)]
pub struct Viewer {
    settings: Settings,
    stream: bool,
    cutter: Cutter,
    frames: VecDeque<Seen>,
    /// Number of `frames`, from the front, that have been judged; and on a byte stream, that are complete or not
    /// sent.
    judged: usize,
    done: usize,
    packets: VecDeque<Packet>,
    first_packet: u64,
    /// The packet after the last byte of the last frame.
    behind: u64,
    /// Bytes produced, and on a byte stream, bytes in packets.
    produced: u64,
    packed: u64,
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
            judged: 0,
            done: 0,
            packets: VecDeque::new(),
            first_packet: 0,
            behind: 0,
            produced: 0,
            packed: 0,
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

    /// Whether frames produced at this time count.
    fn counts(&self, at: Instant) -> bool {
        at >= Instant::ZERO + self.settings.warm
    }

    /// A frame was produced.
    pub fn produced(&mut self, frame: &Frame) {
        let before = self.target.replace(frame.target);
        if let Some(before) = before.filter(|b| *b != frame.target) {
            self.viewed.switches += 1;
            self.switched += (frame.target - before).abs();
        }
        let counts = self.counts(frame.at);
        if counts {
            self.viewed.frames[frame.kind as usize] += 1;
            self.viewed.skipped += u64::from(frame.fate == Fate::Skipped);
            self.viewed.gaps += u64::from(frame.fate == Fate::Gap);
        }
        self.playout.produced(frame.at, frame.number);
        let mut seen = Seen {
            number: frame.number,
            kind: frame.kind,
            at: frame.at,
            bytes: 0,
            packets: (self.behind, self.behind),
            end: self.produced,
            missing: 0,
            sent: frame.fate == Fate::Sent,
            complete: None,
        };
        if seen.sent {
            let pieces = self.cutter.frame(frame.bytes);
            let payload = self.cutter.cut().payload;
            for i in 0..pieces.ready {
                let len = if i + 1 == pieces.ready { pieces.last } else { payload };
                self.packed += len;
                self.packets.push_back(Packet {
                    at: frame.at,
                    end: self.packed,
                    len: len as u32,
                    arrived: false,
                    on_the_wire: false,
                });
                if counts {
                    self.viewed.packets += 1;
                }
            }
            self.produced += pieces.bytes;
            seen.bytes = pieces.bytes;
            self.behind = pieces.last_packet + 1;
            seen.packets = (pieces.first_packet, self.behind);
            seen.missing = pieces.last_packet + 1 - pieces.first_packet;
            seen.end = self.produced;
        }
        self.frames.push_back(seen);
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
    pub fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        match *arrival {
            Arrival::InOrder { bytes } => self.in_order(now, bytes),
            Arrival::Segment { from, to } => self.segment(now, from, to),
            Arrival::Next { from, to } => {
                // Data in order has been seen on the wire as well; only data beyond it needs a separate check.
                if self.packets.front().is_some_and(|p| p.end <= from) {
                    self.segment(now, from, to);
                }
                self.in_order(now, to);
            }
            Arrival::Datagram(d) => self.datagram(now, &d),
        }
        self.judge(now);
    }

    /// A byte stream is complete up to this many bytes.
    fn in_order(&mut self, now: Instant, bytes: u64) {
        if bytes <= self.arrived {
            return;
        }
        self.smooth.arrived(now, bytes - self.arrived);
        self.arrived = bytes;
        while let Some(packet) = self.packets.front().copied().filter(|p| p.end <= bytes) {
            let number = self.first_packet;
            let counts = self.counts(packet.at);
            if !packet.on_the_wire {
                self.wire.arrived(now, number, counts);
            }
            self.take(now, number, packet, counts);
            self.packets.pop_front();
            self.first_packet += 1;
        }
        while let Some(frame) = self.frames.get_mut(self.done) {
            if frame.sent {
                if frame.end > bytes {
                    break;
                }
                frame.complete = Some(now);
                self.playout.complete(now, frame.number);
                if self.done < self.judged {
                    self.late(self.done, now);
                }
            }
            self.done += 1;
        }
    }

    /// These bytes of a byte stream arrived, in order or not.
    fn segment(&mut self, now: Instant, from: u64, to: u64) {
        // Usually it is the first one expected.
        let ahead = self.packets.front().is_some_and(|p| p.end <= from);
        let first = if ahead { self.packets.partition_point(|p| p.end <= from) } else { 0 };
        for place in first..self.packets.len() {
            let packet = &mut self.packets[place];
            if packet.end > to {
                return;
            }
            if !core::mem::replace(&mut packet.on_the_wire, true) {
                let at = packet.at;
                let counts = self.counts(at);
                self.wire.arrived(now, self.first_packet + place as u64, counts);
            }
        }
    }

    /// A datagram arrived. Its number is that of the packet; possibly only its lower half was transmitted.
    fn datagram(&mut self, now: Instant, d: &Datagram) {
        // The number nearest to those expected.
        let ahead = (d.number as u32).wrapping_sub(self.first_packet as u32) as i32;
        let Some(number) = self.first_packet.checked_add_signed(ahead.into()) else { return };
        let place = number.wrapping_sub(self.first_packet) as usize;
        self.smooth.arrived(now, d.len.into());
        let Some(packet) = self.packets.get_mut(place) else {
            // Long forgotten, or never produced.
            self.arrived += u64::from(d.len);
            return;
        };
        if core::mem::replace(&mut packet.arrived, true) {
            return;
        }
        let packet = *packet;
        self.arrived += u64::from(packet.len);
        self.take(now, number, packet, self.counts(packet.at));
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
                frame.complete = Some(now);
                self.playout.complete(now, frame.number);
                if place < self.judged {
                    self.late(place, now);
                }
            }
        }
    }

    /// A frame is complete after it was judged.
    fn late(&mut self, place: usize, now: Instant) {
        let at = self.frames[place].at;
        if self.counts(at) {
            self.lateness.complete(now - at);
        }
    }

    /// A packet arrived; `counts` says whether it counts.
    fn take(&mut self, now: Instant, number: u64, packet: Packet, counts: bool) {
        self.delivery.arrived(now, number, counts);
        if counts {
            self.delays.arrived(now, &Datagram { number, sent_at: packet.at, len: packet.len });
            let delay = now - packet.at;
            // They are ascending: usually none is exceeded.
            if delay > FIXED[0] {
                for (late, most) in self.viewed.late.iter_mut().zip(FIXED) {
                    late.part += u64::from(delay > most);
                }
            }
        }
    }

    /// Judges frames that are complete or past their deadline, and forgets those that can no longer change.
    fn judge(&mut self, now: Instant) {
        while let Some(frame) = self.frames.get(self.judged) {
            let due = frame.at + self.settings.deadline;
            let in_time = frame.complete.is_some_and(|t| t <= due);
            if frame.sent && frame.complete.is_none() && now <= due {
                break;
            }
            let decodable = self.decoder.next(frame.kind, in_time);
            self.useful += if decodable { frame.bytes } else { 0 };
            if self.counts(frame.at) {
                self.viewed.complete[frame.kind as usize].count(in_time);
                self.viewed.decodable.count(decodable);
                self.lateness.judged();
                if let Some(complete) = frame.complete {
                    self.lateness.complete(complete - frame.at);
                }
            }
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
            self.judged -= 1;
            self.done = self.done.saturating_sub(1);
        }
    }

    /// Forgets datagrams before this one.
    fn forget_packets(&mut self, behind: u64) {
        while let Some(packet) = self.packets.front().filter(|_| self.first_packet < behind) {
            if !packet.arrived && self.counts(packet.at) {
                self.forgotten += 1;
            }
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
    pub fn stood(&self, now: Instant) -> Option<f64> {
        self.playout.stood_by(now)
    }

    /// The results until `end`.
    #[must_use]
    pub fn result(&self, end: Instant) -> Viewed {
        let mut v = self.clone();
        v.judge(end);
        let began = v.playout.began();
        let mut r = v.viewed;
        for (late, most) in r.late.iter_mut().zip(FIXED) {
            let waits =
                |p: &&Packet| !p.arrived && p.at + most < end && p.at >= Instant::ZERO + v.settings.warm;
            late.part += v.packets.iter().filter(waits).count() as u64 + v.forgotten;
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

#[cfg(test)]
mod tests;
