//! Smoothness of arrivals.

use skyhaul_base::{Duration, Instant, math};

/// Interval for measuring throughput.
const BIN: Duration = Duration::from_millis(500);

/// Throughput in bins of half a second from the first arrival on, and the longest silence.
#[derive(Clone, Debug, Default)]
pub(super) struct Smooth {
    /// When the current bin began.
    bin: Option<Instant>,
    bytes: u64,
    /// Complete bins.
    bins: u64,
    sum: f64,
    squares: f64,
    /// The last arrival, and the longest time without one.
    last: Instant,
    silence: Duration,
}

impl Smooth {
    /// Bytes arrived.
    pub(super) fn arrived(&mut self, now: Instant, bytes: u64) {
        if self.bin.is_none() {
            (self.bin, self.last) = (Some(now), now);
        }
        self.advance(now);
        self.bytes += bytes;
        self.silence = self.silence.max(now - self.last);
        self.last = now;
    }

    /// Closes completed bins.
    fn advance(&mut self, now: Instant) {
        let Some(begin) = &mut self.bin else { return };
        let over = (now - *begin).as_nanos() / BIN.as_nanos();
        if over == 0 {
            return;
        }
        // The bins after the current one are empty.
        let bytes = core::mem::take(&mut self.bytes) as f64;
        self.bins += over;
        self.sum += bytes;
        self.squares += bytes * bytes;
        *begin += Duration::from_nanos(BIN.as_nanos() * over);
    }

    /// Coefficient of variation of the throughput of the completed bins, and the longest time without an arrival in
    /// seconds, including the time until the end. Both are `None` if nothing arrived. The coefficient is `None`, too, with fewer
    /// than two completed bins, or if all are empty.
    pub(super) fn result(mut self, end: Instant) -> (Option<f64>, Option<f64>) {
        if self.bin.is_none() {
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
        for (ms, bytes) in [(1000, 100), (1400, 200), (1500, 100), (2600, 200)] {
            s.arrived(at(ms), bytes);
        }
        let (variation, silence) = s.clone().result(at(3000));
        let mean = 150.0_f64;
        let variance = (150.0_f64.powi(2) + 50.0_f64.powi(2) + 150.0_f64.powi(2) + 50.0_f64.powi(2)) / 4.0;
        assert!((variation.unwrap() - variance.sqrt() / mean).abs() < 1e-12);
        assert_eq!(silence, Some(1.1));
        // A long silence is not smooth.
        let (worse, silence) = s.result(at(100_000));
        assert!(worse.unwrap() > 5.0 && silence == Some(97.4));
        assert_eq!(Smooth::default().result(at(9)), (None, None));
    }
}
