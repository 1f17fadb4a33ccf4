//! The timestamp option of one end (RFC 7323): its clock, `TS.Recent`, and RTTs from echoes.

use crate::config::Config;
use crate::error::Rejected;
use crate::segment::Mark;
use skyhaul_base::{Duration, Instant, Ticks};

/// State of the option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamps {
    /// The peer's timestamp to echo (`TS.Recent`, RFC 7323 §4.3).
    pub(crate) recent: u32,
    /// Initial timestamp minus 1.
    offset: u32,
    tick: Ticks,
}

impl Timestamps {
    pub(crate) fn new(config: &Config) -> Self {
        Self { recent: 0, offset: 0, tick: Ticks::every(config.tick()) }
    }

    /// Sets the initial timestamp to `offset` + 1; otherwise it is 1.
    pub(crate) fn set_offset(&mut self, offset: u32) {
        self.offset = offset;
    }

    /// TSval and TSecr of a segment that is sent now.
    #[inline]
    pub(crate) fn stamp(&self, now: Instant) -> (u32, u32) {
        (self.value(now), self.recent)
    }
    fn value(&self, now: Instant) -> u32 {
        (self.tick.at(now) as u32).wrapping_add(self.offset).wrapping_add(1)
    }

    /// PAWS (RFC 7323 §5): whether the segment is older than one already seen.
    #[inline]
    pub(crate) fn is_old(&self, val: u32) -> bool {
        (val.wrapping_sub(self.recent) as i32) < 0
    }
    /// As [`Self::is_old`], for a probe. Probes queue behind all other packets, so they may be older than packets
    /// that have overtaken them, by up to the maximum segment lifetime `lifetime`.
    pub(crate) fn is_older_than(&self, val: u32, lifetime: Duration) -> bool {
        let ticks = self.tick.at(Instant::ZERO + lifetime).min(1 << 30) as u32;
        self.is_old(val.wrapping_add(ticks))
    }
    /// The RTT from an echo; `None` if the echo cannot be genuine.
    #[inline]
    pub(crate) fn rtt(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ticks = self.value(now).wrapping_sub(echo);
        // 0 means that the peer has not seen a timestamp yet. A difference of 2^31 ticks or more is an echo from the future.
        (echo != 0 && ticks < 1 << 31).then(|| self.tick.span() * u64::from(ticks))
    }
    /// Whether a segment with this timestamp is an answer to a probe that later acknowledgements have overtaken: answers may
    /// have low priority. Its timestamp does not become `TS.Recent`.
    pub(crate) fn is_overtaken(&self, val: u32, mark: Mark) -> bool {
        mark.is_answer() && self.is_old(val)
    }
    /// PAWS, then the RTT. `exempt` segments skip PAWS: resets, answers to probes, and segments after a pause in which the clock may
    /// have wrapped (RFC 7323 §5.5).
    pub(crate) fn check(
        &self,
        now: Instant,
        ts: Option<(u32, u32)>,
        exempt: bool,
    ) -> Result<Option<Duration>, Rejected> {
        let Some((val, echo)) = ts else { return Ok(None) };
        if self.is_old(val) && !exempt {
            return Err(Rejected::Paws);
        }
        Ok(self.rtt(now, echo))
    }
}
