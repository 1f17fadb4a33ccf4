//! Smoothness of arrivals.

use skyhaul_base::{Duration, Instant, math};

/// Interval for measuring throughput.
const BIN: Duration = Duration::from_millis(500);

/// Throughput in bins of half a second from the first arrival on, and the longest silence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Smooth {
    /// End of the current bin; [`Instant::ZERO`] before the first arrival.
    until: Instant,
    /// Bytes until now, and until its beginning.
    bytes: u64,
    before: u64,
    bins: u64,
    sum: f64,
    squares: f64,
    /// The last arrival, and the longest time without one.
    last: Instant,
    silence: Duration,
}

impl Smooth {
    /// Bytes arrived: so many since the beginning. Twice is as once.
    #[inline(always)]
    pub(super) fn arrived(&mut self, (now, bytes): (Instant, u64)) {
        if now >= self.until {
            self.advance(now);
        }
        self.bytes = bytes;
        self.silence = self.silence.max(now - self.last);
        self.last = now;
    }

    /// [`Self::arrived`], for arrivals at these times, none of them longer than `gap` after the one before.
    #[inline]
    pub(super) fn all(&mut self, (times, bytes): (&[Instant], &[u64]), gap: Duration) {
        let all = || times.iter().copied().zip(bytes.iter().copied());
        if gap > self.silence || self.until == Instant::ZERO {
            return all().for_each(|arrival| self.arrived(arrival));
        }
        // Only the last one of each interval matters.
        let Some(last) = all().next_back() else { return };
        let mut place = 0;
        while last.0 >= self.until {
            place += times[place..].partition_point(|now| *now < self.until);
            self.bytes = place.checked_sub(1).map_or(self.bytes, |before| bytes[before]);
            self.advance(times[place]);
        }
        (self.last, self.bytes) = last;
    }
    /// So many more bytes arrived.
    #[inline]
    pub(super) fn more(&mut self, now: Instant, bytes: u64) {
        self.arrived((now, self.bytes + bytes));
    }

    /// Closes completed bins, or opens the first one.
    #[inline(never)]
    fn advance(&mut self, now: Instant) {
        if self.until == Instant::ZERO {
            (self.until, self.last) = (now + BIN, now);
            return;
        }
        if now < self.until {
            return;
        }
        // The bins after the current one are empty.
        let over = (now - self.until).as_nanos() / BIN.as_nanos() + 1;
        let bytes = (self.bytes - core::mem::replace(&mut self.before, self.bytes)) as f64;
        self.bins += over;
        self.sum += bytes;
        self.squares += bytes * bytes;
        self.until += Duration::from_nanos(BIN.as_nanos() * over);
    }

    /// Coefficient of variation of the throughput of the completed bins, and the longest time without an arrival in
    /// seconds, including the time until the end. `None` if nothing arrived.
    pub(super) fn result(mut self, end: Instant) -> (Option<f64>, Option<f64>) {
        if self.until == Instant::ZERO {
            return (None, None);
        }
        self.advance(end);
        let silence = self.silence.max(end - self.last).as_secs_f64();
        if self.bins < 2 || self.sum <= 0.0 {
            return (None, Some(silence));
        }
        let n = self.bins as f64;
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0);
        (Some(math::sqrt(variance) / mean), Some(silence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn by_hand() {
        let mut s = Smooth::default();
        // Bins from 1000 ms on: 300, 100, 0, 200 bytes.
        for (ms, bytes) in [(1000, 100), (1400, 300), (1500, 400), (2600, 600)] {
            s.arrived((at(ms), bytes));
        }
        let (variation, silence) = s.result(at(3000));
        let mean = 150.0_f64;
        let variance = (150.0_f64.powi(2) + 50.0_f64.powi(2) + 150.0_f64.powi(2) + 50.0_f64.powi(2)) / 4.0;
        assert!((variation.unwrap() - variance.sqrt() / mean).abs() < 1e-12);
        assert_eq!(silence, Some(1.1));
        // Who falls silent is not smooth.
        let (worse, silence) = s.result(at(100_000));
        assert!(worse.unwrap() > 5.0 && silence == Some(97.4));
        assert_eq!(Smooth::default().result(at(9)), (None, None));
    }
}
