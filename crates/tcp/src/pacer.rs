//! Pacing, for algorithms that set a rate.

use skyhaul_base::{Duration, Instant, Rate};

/// Delays each packet by the transmission time of the previous one at the pacing rate. The current rate counts, not the
/// rate at the departure of the previous packet: undoing a timeout raises the rate, and the long wait that belonged to the
/// low rate ends at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pacer {
    /// Departure and length of the previous packet.
    left: Instant,
    bits: u64,
}

impl Pacer {
    /// When the next packet may leave.
    pub(crate) fn next(&self, rate: Rate) -> Instant {
        self.left + Duration::from_nanos(self.bits * 1_000_000_000 / rate.bits_per_sec().max(1))
    }
    /// A packet of `bytes` leaves at `now`. An idle sender collects no credit: it does not catch up in a burst.
    pub(crate) fn sent(&mut self, now: Instant, bytes: u32) {
        (self.left, self.bits) = (now, u64::from(bytes) * 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn departures_are_spaced_and_silence_gives_no_credit() {
        let mut p = Pacer::default();
        let rate = Rate::from_bits_per_sec(8_000_000);
        p.sent(Instant::ZERO, 1000);
        p.sent(p.next(rate), 1000);
        assert_eq!(p.next(rate), Instant::ZERO + Duration::from_millis(2));
        p.sent(Instant::from_secs_f64(5.0), 1000);
        assert_eq!(p.next(rate), Instant::from_secs_f64(5.001));
    }

    #[test]
    fn a_rate_that_rises_ends_the_wait_of_a_lower_one() {
        let mut p = Pacer::default();
        p.sent(Instant::ZERO, 1000);
        assert_eq!(p.next(Rate::from_bits_per_sec(8_000)), Instant::from_secs_f64(1.0));
        assert_eq!(p.next(Rate::from_bits_per_sec(8_000_000)), Instant::from_secs_f64(0.001));
    }
}
