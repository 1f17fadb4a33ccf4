//! Pacing.
//!
//! A packet of s bytes at rate X takes s / X; then the next may be sent (RFC 5348 §4.6). The time is recomputed on
//! every query, so a new rate applies at once.

use skyhaul_base::{Duration, Instant};

/// Send times of packets.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// Due time of the last packet, and its size; `None` before the first, which is due at once.
    last: Option<(Instant, u32)>,
    /// Packets of unused time that may be sent at once.
    burst: u64,
    /// A packet has been waiting for the next slot since the last transmission.
    waited: bool,
}

impl Pacer {
    pub(crate) fn new(burst: u64) -> Self {
        Self { last: None, burst: burst.max(1), waited: false }
    }

    /// When the next packet may leave, at `rate` bytes per second.
    pub(crate) fn next(&self, rate: f64) -> Instant {
        self.last.map_or(Instant::ZERO, |(due, size)| due + gap(size, rate))
    }

    /// The rate has changed. If the new rate moves the next slot into the past, the slot is now: there is no delay to make
    /// up for.
    pub(crate) fn changed(&mut self, now: Instant, rate: f64) {
        if let Some((due, size)) = &mut self.last {
            *due = (*due).max(now - gap(*size, rate));
        }
    }

    /// A packet is waiting for the next slot.
    pub(crate) fn wait(&mut self) {
        self.waited = true;
    }

    /// A packet of `size` bytes is sent now.
    ///
    /// If the caller is late while a packet is waiting, the delay is made up for, up to the time of `burst` packets. Of the
    /// time without waiting packets, that of `burst - 1` packets is kept.
    pub(crate) fn sent(&mut self, now: Instant, size: u32, rate: f64) {
        let gap = gap(size, rate);
        let credit = gap * if self.waited { self.burst } else { self.burst - 1 };
        let due = self.next(rate).max(now - credit);
        self.last = Some((due.min(now), size));
        self.waited = false;
    }
}

fn gap(size: u32, rate: f64) -> Duration {
    Duration::from_secs_f64(f64::from(size) / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn packets_are_evenly_spaced_and_a_new_rate_holds_at_once() {
        let mut p = Pacer::new(1);
        assert_eq!(p.next(1000.0), Instant::ZERO);
        p.sent(at(100), 1000, 10_000.0);
        assert_eq!(p.next(10_000.0), at(200));
        assert_eq!(p.next(20_000.0), at(150), "in the middle of a gap");
        p.wait();
        p.changed(at(180), 20_000.0);
        assert_eq!(p.next(20_000.0), at(180));
        p.sent(at(180), 1000, 20_000.0);
        assert_eq!(p.next(20_000.0), at(230), "no burst");
    }

    #[test]
    fn whoever_waits_catches_up_and_idle_time_is_lost() {
        let mut p = Pacer::new(1);
        p.sent(at(100), 1000, 10_000.0);
        p.wait();
        p.sent(at(203), 1000, 10_000.0);
        assert_eq!(p.next(10_000.0), at(300), "3 ms late, made up for");
        p.wait();
        p.sent(at(950), 1000, 10_000.0);
        assert_eq!(p.next(10_000.0), at(950), "late by many packets: one is made up for");
        p.sent(at(2000), 1000, 10_000.0);
        assert_eq!(p.next(10_000.0), at(2100), "nothing had waited");
        let mut p = Pacer::new(3);
        p.sent(at(1000), 1000, 10_000.0);
        p.sent(at(2000), 1000, 10_000.0);
        assert_eq!(p.next(10_000.0), at(1900), "a burst of three");
    }
}
