//! Pacing, for algorithms that set a rate.

use skyhaul_base::{Duration, Instant, Rate};

/// Delays each packet until the previous one has had its time at the pacing rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    next: Instant,
}

impl Pacer {
    /// When the next packet may leave.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }
    /// A packet of `bytes` leaves at `now`.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u32, rate: Rate) {
        let bits = u64::from(bytes) * 8 * 1_000_000_000;
        let time = Duration::from_nanos(bits / rate.bits_per_sec().max(1));
        // An idle sender collects no credit: it does not catch up in a burst.
        self.next = self.next.max(now) + time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_are_spaced_and_silence_gives_no_credit() {
        let mut p = Pacer::default();
        let rate = Rate::from_bits_per_sec(8_000_000);
        p.sent(Instant::ZERO, 1000, rate);
        p.sent(p.next(), 1000, rate);
        assert_eq!(p.next(), Instant::ZERO + Duration::from_millis(2));
        p.sent(Instant::from_secs_f64(5.0), 1000, rate);
        assert_eq!(p.next(), Instant::from_secs_f64(5.001));
    }
}
