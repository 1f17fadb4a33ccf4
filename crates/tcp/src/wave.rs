//! The rate at which data arrives, measured by the receiver wave by wave (TCP-Real).
//!
//! A wave is the data sent within one window: from one segment until that segment is known to have arrived, or until a
//! pause. Segments carry the number of their wave (`Waves::number`). Every acknowledgement reports the rate of the last
//! complete wave (`Waves::rate`), so that a loss on the return path loses no report. Zhang, Tsaoussidis, "TCP-Real"
//! (NOSSDAV 2001); Papadimitriou, Tsaoussidis, "On TCP performance over asymmetric satellite links" (2007, §2.2).
//!
//! The rate is the data that arrived after the first segment, divided by the time since the first segment. If the first
//! segment were included, a wave of `n` segments that fills a link of rate `C` would be measured as `C·n/(n-1)`: the
//! rate would seem to fall as the window grows.

use core::num::{NonZeroU16, NonZeroU32};
use skyhaul_base::{Duration, Instant};

/// The sender's state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marker {
    number: NonZeroU16,
    /// The end of the first segment of the wave: once the peer has received it, the next wave begins.
    first_end: u64,
    last_sent: Instant,
}

impl Default for Marker {
    fn default() -> Self {
        Self { number: NonZeroU16::MAX, first_end: 0, last_sent: Instant::ZERO }
    }
}

impl Marker {
    /// The wave of a segment that is sent now and ends at `end`; `delivered` is the end of the highest data known to
    /// have arrived.
    ///
    /// A pause of a quarter of the RTT also ends a wave. Otherwise a wave that a retransmission started in the middle of a
    /// burst would include the pause after the burst, and its rate would be about one window per RTT.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        end: u64,
        delivered: u64,
        srtt: Option<Duration>,
    ) -> NonZeroU16 {
        let paused = srtt.is_some_and(|r| (now - self.last_sent) * 4 > r);
        if delivered >= self.first_end || paused {
            self.number = self.number.checked_add(1).unwrap_or(NonZeroU16::MIN);
            self.first_end = end;
        }
        self.last_sent = now;
        self.number
    }
}

/// The receiver's measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// Rate of the last complete wave, bytes of payload per second.
    rate: Option<NonZeroU32>,
    current: Option<Wave>,
}

/// The current wave.
#[derive(Clone, Copy, Debug)]
struct Wave {
    number: NonZeroU16,
    /// Arrival of its first segment.
    first: Instant,
    /// Arrival of its last segment so far.
    last: Instant,
    /// Bytes that arrived after the first segment.
    after: u64,
}

impl Meter {
    /// A data segment of wave `number` arrived.
    #[cold]
    pub(crate) fn arrived(&mut self, now: Instant, number: NonZeroU16, len: u32) {
        match &mut self.current {
            Some(w) if w.number == number => {
                w.last = now;
                w.after += u64::from(len);
                return;
            }
            // Serial comparison: a late segment of a wave that was measured without it.
            Some(w) if (number.get().wrapping_sub(w.number.get()) as i16) < 0 => return,
            Some(w) => self.rate = w.rate(),
            None => {}
        }
        self.current = Some(Wave { number, first: now, last: now, after: 0 });
    }

    /// The rate to report, bytes of payload per second; `None` before the first complete wave and after one of a
    /// single segment, or of segments that arrived all at once.
    #[inline]
    pub(crate) fn rate(&self) -> Option<NonZeroU32> {
        self.rate
    }
}

impl Wave {
    fn rate(&self) -> Option<NonZeroU32> {
        let took = (self.last - self.first).as_nanos();
        if took == 0 || self.after == 0 {
            return None;
        }
        let rate = (u128::from(self.after) * 1_000_000_000 + u128::from(took) / 2) / u128::from(took);
        NonZeroU32::new(u32::try_from(rate).unwrap_or(u32::MAX).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }
    fn n(number: u16) -> NonZeroU16 {
        NonZeroU16::new(number).expect("a number")
    }
    /// The rate reported after these segments of 1000 bytes, each with its arrival, microseconds, and its wave.
    fn reported(segments: &[(u64, u16)]) -> Option<u32> {
        let mut w = Meter::default();
        for &(us, wave) in segments {
            w.arrived(at(us), n(wave), 1000);
        }
        w.rate().map(NonZeroU32::get)
    }

    #[test]
    fn a_wave_ends_when_its_first_segment_has_arrived() {
        let mut m = Marker::default();
        // Slow start in segments of 10: one, two, four.
        let mut send = |end, delivered| m.next(at(0), end, delivered, None).get();
        assert_eq!(send(11, 1), 1);
        assert_eq!([send(21, 11), send(31, 11)], [2, 2]);
        assert_eq!([send(41, 21), send(51, 21), send(61, 31), send(71, 31)], [3; 4]);
        assert_eq!(send(81, 41), 4);
        // A retransmission ends below the delivered data, so the next segment begins another wave.
        assert_eq!([send(61, 81), send(91, 81), send(101, 81)], [5, 6, 6]);
    }

    #[test]
    fn a_pause_ends_a_wave() {
        let mut m = Marker::default();
        let srtt = Some(Duration::from_micros(400));
        let waves = [0, 100, 200, 301, 302].map(|t| m.next(at(t), 1000 + t, 1, srtt).get());
        assert_eq!(waves, [1, 1, 1, 2, 2]);
    }

    #[test]
    fn a_wave_is_measured_when_the_next_one_begins() {
        // Four segments, 2 ms apart: 3000 bytes in 6 ms.
        let wave = [(0, 1), (2000, 1), (4000, 1), (6000, 1)];
        assert_eq!(reported(&wave), None);
        let mut next = wave.to_vec();
        next.push((500_000, 2));
        assert_eq!(reported(&next), Some(500_000), "the pause between waves does not count");
        // The report stands until the next wave is complete: 1000 bytes in 4 ms.
        next.push((504_000, 2));
        assert_eq!(reported(&next), Some(500_000));
        next.push((900_000, 3));
        assert_eq!(reported(&next), Some(250_000));
    }

    #[test]
    fn the_rate_of_a_full_link_does_not_depend_on_the_size_of_the_wave() {
        for n in 2..40u64 {
            let mut wave: alloc::vec::Vec<_> = (0..n).map(|k| (k * 800, 7)).collect();
            wave.push((1_000_000, 8));
            assert_eq!(reported(&wave), Some(1_250_000), "{n} segments");
        }
    }

    #[test]
    fn a_single_segment_gives_no_rate() {
        assert_eq!(reported(&[(0, 1), (500_000, 2)]), None);
        // Nor does the older report stand for it.
        assert_eq!(reported(&[(0, 1), (2000, 1), (500_000, 2), (900_000, 3)]), None);
        assert_eq!(reported(&[(5, 1), (5, 1), (500_000, 2)]), None, "arrived at once");
    }

    #[test]
    fn a_loss_within_a_wave_lowers_its_rate_by_what_is_missing() {
        // Of 17 segments, 1 ms apart, the ninth is missing: 15 after the first instead of 16, in 16 ms.
        let mut wave: alloc::vec::Vec<_> = (0..17).filter(|k| *k != 8).map(|k| (k * 1000, 3)).collect();
        wave.push((500_000, 4));
        assert_eq!(reported(&wave), Some(937_500));
        // At its end nothing can be missed: 15 segments in 15 ms.
        let mut wave: alloc::vec::Vec<_> = (0..16).map(|k| (k * 1000, 3)).collect();
        wave.push((500_000, 4));
        assert_eq!(reported(&wave), Some(1_000_000));
    }

    #[test]
    fn reordering_within_a_wave_changes_nothing_and_stragglers_are_left_out() {
        // The order of the bytes is not looked at: only arrivals count.
        let (full, half) = (1000, 500);
        let mut w = Meter::default();
        for (us, len) in [(0, full), (1000, half), (2000, full), (3000, half)] {
            w.arrived(at(us), n(1), len);
        }
        w.arrived(at(9000), n(2), full);
        assert_eq!(w.rate().map(NonZeroU32::get), Some(666_667), "2000 bytes in 3 ms");
        // One of wave 1 comes after the first of wave 2: it counts for neither.
        w.arrived(at(9500), n(1), full);
        w.arrived(at(10_000), n(2), full);
        assert_eq!(w.rate().map(NonZeroU32::get), Some(666_667));
        w.arrived(at(20_000), n(3), full);
        assert_eq!(w.rate().map(NonZeroU32::get), Some(1_000_000));
    }

    #[test]
    fn numbers_wrap() {
        let wave = [(0, u16::MAX), (1000, u16::MAX), (5000, 1), (7000, 1), (9000, 2)];
        assert_eq!(reported(&wave), Some(500_000));
    }

    #[test]
    fn rates_are_reported_within_what_32_bits_hold() {
        let mut w = Meter::default();
        w.arrived(Instant::from_nanos(0), n(1), 1);
        w.arrived(Instant::from_nanos(1), n(1), u32::MAX);
        w.arrived(Instant::from_nanos(2), n(2), 1);
        assert_eq!(w.rate().map(NonZeroU32::get), Some(u32::MAX));
        w.arrived(Instant::from_nanos(u64::MAX / 2), n(2), 1);
        w.arrived(Instant::from_nanos(u64::MAX / 2 + 1), n(3), 1);
        assert_eq!(w.rate().map(NonZeroU32::get), Some(1), "slow, but not nothing");
    }
}
