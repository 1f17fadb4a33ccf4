//! How accurately an emulation followed its models, measured by the emulation itself.

use hdrhistogram::Histogram;
use skyhaul_base::{Duration, Instant, Rate};

/// A release later than this counts as late: it exceeds the resolution of transports on satellite paths.
pub const LATE: Duration = Duration::from_millis(1);
/// Maximum 99th percentile of lateness in a trustworthy run: transports that probe or pace react to differences of
/// about a millisecond.
pub const MAX_P99: Duration = Duration::from_millis(1);
/// Maximum fraction of releases that are late ([`LATE`]) in a trustworthy run.
pub const MAX_LATE_SHARE: f64 = 0.005;
/// Maximum relative error of the rate, measured over back-to-back packets, in a trustworthy run: the throughput of a
/// link is only as accurate as its rate.
pub const MAX_RATE_ERROR: f64 = 0.01;
/// Minimum number of back-to-back packets to measure the rate.
const LEAST_BACK_TO_BACK: u64 = 200;

/// Lateness of every packet release.
#[derive(Clone, Debug)]
pub(super) struct Accuracy {
    lateness: Histogram<u64>,
    late: u64,
    /// The last release: its due time and its actual time.
    last: Option<(Instant, Instant)>,
    /// Totals over packets released back to back: number, actual duration, nominal duration.
    back_to_back: u64,
    took: Duration,
    due: Duration,
}

impl Accuracy {
    pub(super) fn new() -> Self {
        // Three digits from 1 ns to 100 s.
        let lateness = Histogram::new_with_bounds(1, 100_000_000_000, 3);
        Self {
            lateness: lateness.unwrap_or_else(|_| Histogram::new(3).expect("three digits are few enough")),
            late: 0,
            last: None,
            back_to_back: 0,
            took: Duration::ZERO,
            due: Duration::ZERO,
        }
    }

    /// Records that a packet of `size` bytes, due at `due`, left at `at`; `rate` is that of the slowest link on its path.
    pub(super) fn released(&mut self, due: Instant, at: Instant, size: u32, rate: Option<Rate>) {
        let lateness = at - due;
        self.lateness.saturating_record(lateness.as_nanos().max(1));
        self.late += u64::from(lateness > LATE);
        if let (Some((last_due, last_at)), Some(rate)) = (self.last, rate) {
            // It followed the previous packet directly if it was due one transmission time later.
            let bits = 8 * u64::from(size) * 1_000_000_000;
            let transmission = Duration::from_nanos(bits / rate.bits_per_sec().max(1));
            let gap = due - last_due;
            if gap.abs_diff(transmission) <= Duration::from_nanos(2) {
                self.back_to_back += 1;
                self.took = self.took + (at - last_at);
                self.due = self.due + gap;
            }
        }
        self.last = Some((due, at));
    }

    /// Lateness of releases at this quantile.
    pub(super) fn quantile(&self, q: f64) -> Duration {
        Duration::from_nanos(self.lateness.value_at_quantile(q))
    }
    pub(super) fn max(&self) -> Duration {
        Duration::from_nanos(self.lateness.max())
    }
    pub(super) fn releases(&self) -> u64 {
        self.lateness.len()
    }
    pub(super) fn late(&self) -> u64 {
        self.late
    }
    /// Relative error of the rate; `None` with too few back-to-back packets.
    pub(super) fn rate_error(&self) -> Option<f64> {
        (self.back_to_back >= LEAST_BACK_TO_BACK).then(|| {
            // The same bytes took a different time.
            self.due.as_secs_f64() / self.took.as_secs_f64().max(f64::MIN_POSITIVE) - 1.0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_and_rate_are_measured() {
        let rate = Rate::from_bits_per_sec(8_000_000);
        let mut a = Accuracy::new();
        let t = |us: u64| Instant::from_nanos(us * 1000);
        // 1000 bytes take 1 ms. The first packet is 10 us late, and the rate is 1 % lower than it should be.
        for n in 0..1000 {
            a.released(t(n * 1000), t(n * 1010 + 10), 1000, Some(rate));
        }
        assert!((a.rate_error().unwrap() + 0.0099).abs() < 1e-4, "{:?}", a.rate_error());
        assert_eq!(a.releases(), 1000);
        // Lateness grows by 10 us per packet from 10 us: exactly 1 ms at the 100th.
        assert_eq!(a.late(), 900, "those that are more than a millisecond behind");
        assert!(a.quantile(0.5) > Duration::from_millis(4) && a.max() >= Duration::from_millis(10));
        // With pauses between packets nothing is known of the rate.
        let mut a = Accuracy::new();
        (0..1000).for_each(|n| a.released(t(n * 5000), t(n * 5000), 1000, Some(rate)));
        assert_eq!(a.rate_error(), None);
    }
}
