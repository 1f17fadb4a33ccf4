//! What is counted of frames and packets, whatever carries them.

use super::decode::Decoder;
use super::gaps::Gaps;
use super::lateness::Lateness;
use super::playout::Playout;
use super::settings::Settings;
use super::smooth::Smooth;
use crate::datagram::Delays;
use crate::frame::FrameType as Type;
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
    /// The longest time from the production of a frame to its completion that is in time.
    #[inline(always)]
    pub(super) fn longest_in_time(&self) -> Duration {
        self.deadline
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

    /// The next packets of a byte stream arrived, which count: the number after the last one, their delays, the shortest
    /// and the longest of them, how many were late after the one before, and when the last one arrived.
    pub(super) fn in_order(
        &mut self,
        next: u64,
        delays: &[Duration],
        bounds: (Duration, Duration),
        late: u64,
        last: Instant,
    ) {
        let packets = delays.len() as u64;
        self.delivery.in_order(packets, late, last);
        self.delays.packets(next, delays, bounds);
        // Usually none is late, or all are.
        if bounds.0 > FIXED[FIXED.len() - 1] {
            self.viewed.late.iter_mut().for_each(|late| late.part += packets);
        } else if bounds.1 > FIXED[0] {
            delays.iter().for_each(|delay| self.late(*delay));
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
    /// If it is so: whether frames of any type that are complete in time, or those that are not, share the fate of all
    /// frames that they may be coded from.
    #[inline(always)]
    pub(super) fn alike(&self) -> Option<bool> {
        [true, false].into_iter().find(|there| self.decoder.is_uniform(*there))
    }
    /// So many more frames of each type, of so many bytes together, count, all of them [alike](Self::alike).
    pub(super) fn verdicts(&mut self, frames: [u64; Type::COUNT], bytes: u64) {
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
