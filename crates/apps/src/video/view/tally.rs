//! What is counted of frames and packets, whatever carries them.

use super::batch::Batch;
use super::decode::Decoder;
use super::gaps::Gaps;
use super::lateness::Lateness;
use super::playout::Playout;
use super::settings::Settings;
use super::smooth::Smooth;
use super::waiting::Waiting;
use crate::datagram::Delays;
use crate::frame::FrameType as Type;
use crate::unrolled::unrolled;
use crate::video::packet::Reach;
use crate::viewed::{FIXED, Share, Viewed};
use skyhaul_base::{Duration, Instant};

/// The measures so far.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    deadline: Duration,
    pub(super) delivery: Gaps,
    pub(super) delays: Delays,
    pub(super) lateness: Lateness,
    pub(super) smooth: Smooth,
    decoder: Decoder,
    pub(super) playout: Playout,
    /// Bytes of frames that could be decoded in time.
    pub(super) useful: u64,
    pub(super) viewed: Viewed,
}

impl Tally {
    /// `interval` is the time between frames, s; with `conceals` missing data is lost at its deadline.
    pub(super) fn new(settings: &Settings, interval: f64, conceals: bool) -> Self {
        Self {
            deadline: settings.deadline,
            delivery: Gaps::new(settings.threshold),
            delays: Delays::default(),
            lateness: Lateness::default(),
            smooth: Smooth::default(),
            decoder: Decoder::default(),
            playout: Playout::new(interval, settings.start, settings.resume, conceals),
            useful: 0,
            viewed: Viewed::default(),
        }
    }

    /// Whether a frame is in time that is complete so long after its production.
    #[inline]
    pub(super) fn is_in_time(&self, delay: Duration) -> bool {
        delay <= self.deadline
    }
    /// Until when a frame is in time.
    #[inline]
    pub(super) fn due(&self, at: Instant) -> Instant {
        at + self.deadline
    }

    /// Packet `number` arrived, `delay` after its production.
    #[inline]
    pub(super) fn packet(&mut self, now: Instant, number: u64, delay: Duration, counts: bool) {
        self.delivery.arrived(now, number, counts);
        if counts {
            self.delays.packet(number, delay);
            self.late(delay);
        }
    }

    /// These frames of a byte stream are complete, which count, and before which the film reaches so far.
    pub(super) fn whole(&mut self, batch: &Batch, frames: &[Waiting], mut before: Reach) {
        let (packets, delays) = (batch.packets(), batch.delays());
        self.delivery.in_order(packets, batch.late, batch.last);
        let (shortest, longest) = self.delays.packets(batch.reach.packets, delays);
        // Usually none is late, or all are.
        if shortest > FIXED[FIXED.len() - 1] {
            self.viewed.late.iter_mut().for_each(|late| late.part += packets);
        } else if longest > FIXED[0] {
            delays.iter().for_each(|delay| self.late(*delay));
        }
        self.lateness.complete_all(frames.iter().map(|frame| batch.delay(frame)));
        // Usually they share the fate of all frames that they are coded from.
        let (all, none) = (self.is_in_time(longest), !self.is_in_time(shortest));
        if all && self.decoder.is_uniform(true) || none && self.decoder.is_uniform(false) {
            let mut kinds = [0; Type::COUNT];
            unrolled(frames, |frame| kinds[frame.kind as usize] += 1);
            return self.verdicts(kinds, batch.reach.packed - before.packed);
        }
        for frame in frames {
            let bytes = frame.reach().packed - before.packed;
            self.verdict(frame.kind, bytes, self.is_in_time(batch.delay(frame)), true);
            before = frame.reach();
        }
    }

    #[inline]
    fn late(&mut self, delay: Duration) {
        // They are ascending: usually none is exceeded.
        if delay > FIXED[0] {
            self.viewed.count_late(delay);
        }
    }

    /// A frame of so many bytes was complete in time or not; frames come in coding order.
    #[inline(always)]
    pub(super) fn verdict(&mut self, kind: Type, bytes: u64, in_time: bool, counts: bool) {
        let decodable = self.decoder.next(kind, in_time);
        self.useful += if decodable { bytes } else { 0 };
        if counts {
            self.viewed.complete[kind as usize].count(in_time);
            self.viewed.decodable.count(decodable);
            self.lateness.judged(1);
        }
    }
    /// So many more frames of each type, of so many bytes together, count, and share the fate of all before.
    fn verdicts(&mut self, frames: [u64; Type::COUNT], bytes: u64) {
        let decodable = self.decoder.is_uniform(true);
        self.useful += if decodable { bytes } else { 0 };
        let counted = |share: &mut Share, frames: u64| {
            share.part += if decodable { frames } else { 0 };
            share.of += frames;
        };
        for (share, frames) in self.viewed.complete.iter_mut().zip(frames) {
            counted(share, frames);
            counted(&mut self.viewed.decodable, frames);
            self.lateness.judged(frames);
        }
    }
}
