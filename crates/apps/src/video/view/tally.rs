//! What is counted of frames and packets, whatever carries them.

use super::decode::Decoder;
use super::gaps::Gaps;
use super::lateness::Lateness;
use super::playout::Playout;
use super::settings::Settings;
use super::smooth::Smooth;
use crate::datagram::Delays;
use crate::frame::FrameType as Type;
use crate::viewed::{FIXED, Viewed};
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

    /// The next packets in order arrived, each with its time and its delay, and none ever otherwise; `next` is the number
    /// after the last one. `wire` knows as much as is known here.
    pub(super) fn packets(
        &mut self,
        next: u64,
        packets: &[(Instant, Duration)],
        counts: bool,
        wire: &mut Gaps,
    ) {
        let late = self.delivery.in_order(packets.iter().map(|p| p.0), counts);
        wire.follow(&self.delivery, packets.len() as u64, late, counts);
        if counts {
            let longest = self.delays.packets(next, packets.iter().map(|p| p.1));
            // Usually none is late.
            if longest > FIXED[0] {
                packets.iter().for_each(|(_, delay)| self.late(*delay));
            }
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
            self.lateness.judged();
        }
    }
}
