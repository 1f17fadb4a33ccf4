//! Results of a video viewer: every measure, from frames produced and data arrived.
//!
//! ```text
//! Frame (produced) ──▶ Viewer ──▶ Viewed
//! Arrival (bytes in order, segments, datagrams) ──▶
//! ```
//! A recorded run contains the same two kinds of events, so all results can be derived from it. On a byte stream, a
//! packet is the unit divided by the application, and arrives when its last byte is available in order.
//!
//! [`stream`] and [`datagrams`] know which frames and packets are expected; [`tally`] has the measures.

mod ahead;
mod batch;
mod datagrams;
mod decode;
mod frames;
mod gaps;
mod lateness;
mod notes;
mod playout;
mod settings;
mod smooth;
mod stream;
mod tally;
mod upcoming;
mod waiting;
mod wire;

use super::clock::Clock;
use super::coded::Coded;
use super::packet::{Cut, Cutter, Pieces, Reach};
use crate::datagram::Measured;
use crate::frame::{Fate, Frame};
use crate::viewed::{FIXED, Share, Viewed};
use crate::workload::Arrival;
use datagrams::Datagrams;
use gaps::Gaps;
pub(super) use settings::InvalidViewer;
pub use settings::Settings;
use skyhaul_base::Instant;
use stream::{Overview, Stream};
use tally::Tally;

/// What carries the film.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "it stays where it is, in the box of its video")]
enum Carrier {
    Stream(Stream),
    Datagrams(Datagrams),
}

/// Observes a video. Times must not decrease among frames, nor among arrivals, and a frame is reported before it
/// arrives; all frames may be reported before the first arrival.
#[derive(Clone, Debug)]
pub struct Viewer {
    /// Frames produced before this time do not count.
    warm: Instant,
    cutter: Cutter,
    carrier: Carrier,
    tally: Tally,
    /// With datagrams: number of the last frame.
    last: Option<u64>,
    target: Option<f64>,
    switched: f64,
}

impl Viewer {
    /// Before the first frame of a video with this frame rate and division into packets, over a byte stream or as
    /// datagrams.
    #[must_use]
    pub fn new(settings: Settings, frames: f64, cut: Cut, stream: bool) -> Self {
        let carrier = if stream {
            Carrier::Stream(Stream::new(cut, settings.threshold, Instant::ZERO + settings.warm))
        } else {
            Carrier::Datagrams(Datagrams::new(cut.payload))
        };
        Self {
            warm: Instant::ZERO + settings.warm,
            cutter: Cutter::new(cut),
            carrier,
            tally: Tally::new(&settings, 1.0 / frames, !stream),
            last: None,
            target: None,
            switched: 0.0,
        }
    }

    /// A frame was produced.
    pub fn produced(&mut self, frame: &Frame) {
        let pieces = (frame.fate == Fate::Sent).then(|| self.cutter.frame(frame.bytes));
        self.cut(frame, pieces.as_ref(), self.cutter.reach());
    }

    /// A frame was produced, and divided into these pieces if it was sent; the film reaches so far now.
    pub(super) fn cut(&mut self, frame: &Frame, pieces: Option<&Pieces>, reach: Reach) {
        let before = self.target.replace(frame.target);
        let viewed = &mut self.tally.viewed;
        if let Some(before) = before.filter(|b| *b != frame.target) {
            viewed.switches += 1;
            self.switched += (frame.target - before).abs();
        }
        let counts = frame.at >= self.warm;
        if counts {
            viewed.skipped += u64::from(frame.fate == Fate::Skipped);
            viewed.gaps += u64::from(frame.fate == Fate::Gap);
        }
        self.tally.playout.produced(frame.at, frame.number);
        match &mut self.carrier {
            Carrier::Stream(s) => s.produced(frame, counts, reach),
            Carrier::Datagrams(d) => {
                self.last = Some(frame.number);
                if counts {
                    viewed.frames[frame.kind as usize] += 1;
                    viewed.packets += pieces.map_or(0, |p| p.ready);
                }
                d.produced(frame, counts, pieces, &self.tally);
            }
        }
    }

    /// Over a byte stream: all frames will be known in advance, which takes fewer instructions, will be sent, and are produced
    /// at these times.
    pub(super) fn in_advance(&mut self, clock: Clock) {
        if let Carrier::Stream(s) = &mut self.carrier {
            s.in_advance(clock);
        }
    }
    /// The next frames, known in advance. They count as produced from [`Self::advance`] on.
    pub(super) fn expect(&mut self, frames: &Coded) {
        if let Carrier::Stream(s) = &mut self.carrier {
            s.expect(frames);
        }
    }
    /// So many of the frames known in advance are produced, the first of the film at this time.
    pub(super) fn advance(&mut self, first: Instant, frames: u64) {
        let Carrier::Stream(s) = &mut self.carrier else { return };
        if s.frames() == 0 && frames > 0 {
            self.tally.playout.produced(first, 0);
        }
        s.advance(frames);
    }
    /// Over a byte stream: how many frames were produced.
    pub(super) fn frames(&self) -> u64 {
        if let Carrier::Stream(s) = &self.carrier { s.frames() } else { 0 }
    }

    /// The video has ended: nothing more is produced.
    pub fn over(&mut self, now: Instant) {
        self.settle();
        let last = if let Carrier::Stream(s) = &self.carrier { s.last() } else { self.last };
        if let Some(last) = last {
            self.tally.playout.over(now, last);
        }
    }
    /// The transport gave up.
    pub fn died(&mut self, now: Instant) {
        self.tally.viewed.died.get_or_insert(now);
    }

    /// Processes an arrival.
    #[inline(always)]
    pub fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        match (&mut self.carrier, *arrival) {
            // Usually it leaves a note.
            (Carrier::Stream(s), Arrival::Next { from, to }) => {
                if !s.note(now, from, to) {
                    self.arrived_next(now, from, to);
                }
            }
            (Carrier::Stream(s), Arrival::Segment { from, to }) => s.segment(now, from, to, &mut self.tally),
            // Not for datagrams; said here, so that the usual case need not pass it on in memory.
            (Carrier::Datagrams(_), Arrival::Next { .. }) => {}
            _ => self.arrived_any(now, *arrival),
        }
    }

    /// [`Self::arrived`], for data of a byte stream that is next in order and leaves no note.
    #[inline(never)]
    fn arrived_next(&mut self, now: Instant, from: u64, to: u64) {
        let Carrier::Stream(s) = &mut self.carrier else { return };
        // Data in order has been seen on the wire as well; only data beyond it needs a separate check.
        if from > s.arrived() {
            s.segment(now, from, to, &mut self.tally);
        }
        s.in_order(now, to, &mut self.tally);
    }
    /// [`Self::arrived`], for any other arrival.
    #[inline(never)]
    fn arrived_any(&mut self, now: Instant, arrival: Arrival) {
        let tally = &mut self.tally;
        match (&mut self.carrier, arrival) {
            (Carrier::Stream(s), Arrival::InOrder { bytes }) => s.in_order(now, bytes, tally),
            (Carrier::Datagrams(d), Arrival::Datagram(datagram)) => d.came(now, &datagram, tally),
            (Carrier::Stream(_), Arrival::Next { .. } | Arrival::Segment { .. }) => {
                debug_assert!(false, "these have ways of their own");
            }
            (Carrier::Stream(_), Arrival::Datagram(_)) | (Carrier::Datagrams(_), _) => {}
        }
    }

    /// Works out what has been postponed.
    fn settle(&mut self) {
        if let Carrier::Stream(s) = &mut self.carrier {
            s.settle(&mut self.tally);
        }
    }

    /// Video received and not yet displayed, s; `None` before the first frame.
    #[must_use]
    pub fn buffered(&mut self, now: Instant) -> Option<f64> {
        self.settle();
        self.tally.playout.buffered(now)
    }

    /// Total stall time so far, s; `None` before the first frame. It never decreases.
    #[must_use]
    pub fn stood(&mut self, now: Instant) -> Option<f64> {
        self.settle();
        self.tally.playout.stood_by(now)
    }

    /// The results until `end`.
    #[must_use]
    pub fn result(&mut self, end: Instant) -> Viewed {
        self.settle();
        match &self.carrier {
            Carrier::Stream(s) => {
                let mut viewed = self.tally.viewed.clone();
                let Overview { frames, packets, missed, lacking } = s.overview(end, &self.tally);
                (viewed.frames, viewed.packets) = (frames, packets);
                viewed.miss(missed);
                let rest = Rest {
                    bytes: s.arrived(),
                    missed: missed.iter().sum(),
                    late: lacking,
                    wire: Some(s.wire.gaps()),
                };
                self.results(end, &self.tally, viewed, &rest)
            }
            Carrier::Datagrams(d) => {
                // What is missing by then may arrive later.
                let (mut d, mut tally) = (d.clone(), self.tally.clone());
                d.judge(end, &mut tally);
                // Packets that are still missing so long after their production.
                let late = FIXED.map(|most| d.missing(|at: Instant| at + most < end) + d.forgotten());
                let rest = Rest { bytes: d.arrived(), missed: 0, late, wire: None };
                self.results(end, &tally, tally.viewed.clone(), &rest)
            }
        }
    }

    /// The results until `end`, from counts that include what is missing by then.
    fn results(&self, end: Instant, tally: &Tally, mut r: Viewed, rest: &Rest<'_>) -> Viewed {
        for (late, missing) in r.late.iter_mut().zip(rest.late) {
            late.part += missing;
            late.of = r.packets;
        }
        r.played = tally.playout.clone().result(end);
        r.still = tally.playout.began().map(|began| match r.played.startup {
            None => 1.0,
            Some(_) => {
                let whole = r.played.stalled + r.played.played;
                if whole > 0.0 { r.played.stalled / whole } else { f64::from(u8::from(end > began)) }
            }
        });
        r.useless = Share { part: rest.bytes.saturating_sub(tally.useful), of: rest.bytes };
        r.switched_by = (r.switches > 0).then(|| self.switched / r.switches as f64);
        (r.variation, r.silence) = tally.smooth.result(end);
        r.measured = tally.delays.measured();
        r.frame_delays = tally.lateness.quantiles(rest.missed);
        let share = |part, of| Some(Share { part, of });
        r.delayed = share(tally.delivery.by_number, tally.delivery.received);
        r.delayed_arrival = share(tally.delivery.by_arrival, tally.delivery.received);
        r.delayed_wire = rest.wire.and_then(|wire| share(wire.by_number, wire.received));
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

/// What the tally does not know at the end.
struct Rest<'a> {
    /// Bytes that arrived.
    bytes: u64,
    /// Frames that are missing, beyond those of the tally.
    missed: u64,
    /// Packets that are missing so long after their production, for each of [`FIXED`].
    late: [u64; FIXED.len()],
    /// Packets as seen on the wire.
    wire: Option<&'a Gaps>,
}

#[cfg(test)]
mod tests;
