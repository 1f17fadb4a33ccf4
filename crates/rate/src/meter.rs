//! The receive rate (X_recv of RFC 5348 §6.2).

use skyhaul_base::{Duration, Instant};
use std::collections::VecDeque;

/// Counts arriving bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    arrivals: VecDeque<(Instant, u32)>,
    /// Bytes since the last report.
    since: u64,
    reported: Option<Instant>,
}

impl Meter {
    /// A packet of `size` bytes arrives. Entries older than `keep` are dropped.
    pub(crate) fn arrived(&mut self, now: Instant, size: u32, keep: Duration) {
        self.since += u64::from(size);
        self.arrivals.push_back((now, size));
        self.forget(now, keep);
    }
    /// Whether anything arrived since the last report.
    pub(crate) fn has_news(&self) -> bool {
        self.since > 0
    }

    /// Bytes per second since the last report if it is at least `window` ago; otherwise over the last `window`, which must
    /// not exceed the `keep` of the arrivals.
    pub(crate) fn rate(&self, now: Instant, window: Duration) -> f64 {
        let Some(reported) = self.reported else { return 0.0 };
        let elapsed = now - reported;
        if elapsed >= window {
            return if elapsed.is_zero() { 0.0 } else { self.since as f64 / elapsed.as_secs_f64() };
        }
        let within = self.arrivals.iter().filter(|(at, _)| now - *at < window);
        within.map(|(_, size)| f64::from(*size)).sum::<f64>() / window.as_secs_f64()
    }
    /// A report is sent.
    pub(crate) fn report(&mut self, now: Instant) {
        (self.since, self.reported) = (0, Some(now));
    }

    fn forget(&mut self, now: Instant, keep: Duration) {
        while self.arrivals.front().is_some_and(|(at, _)| now - *at >= keep) {
            self.arrivals.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_measured_since_the_last_report_or_over_a_window() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let window = Duration::from_millis(500);
        let mut m = Meter::default();
        m.arrived(at(0), 1000, window);
        assert_eq!(m.rate(at(0), window), 0.0, "nothing to measure from");
        m.report(at(0));
        (1..=10).for_each(|i| m.arrived(at(100 * i), 1000, window));
        assert_eq!(m.rate(at(1000), window), 10_000.0);
        m.report(at(1000));
        assert!(!m.has_news());
        m.arrived(at(1100), 1000, window);
        // Early: 700, …, 1000 and 1100 lie in the last 500 ms.
        assert_eq!(m.rate(at(1100), window), 10_000.0);
        // The rate over a shorter window leaves the entries of the longer one.
        assert_eq!(m.rate(at(1100), Duration::from_millis(100)), 10_000.0);
        assert_eq!(m.rate(at(1100), window), 10_000.0);
    }
}
