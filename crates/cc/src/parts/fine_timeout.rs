//! The fine-grained timeout of TCP Vegas, by which one duplicate ACK suffices for a retransmission.

use skyhaul_base::{Duration, math};

/// The estimator: that of RFC 6298 on exact samples, with its own timeout.
#[derive(Clone, Copy, Debug, Default)]
pub struct FineTimeout {
    /// Smoothed RTT and deviation, seconds; `None` before the first sample.
    estimate: Option<(f64, f64)>,
    timeout: Duration,
}

impl FineTimeout {
    /// An RTT was measured.
    pub fn sample(&mut self, rtt: Duration) {
        let r = rtt.as_secs_f64();
        // ns-2 initialises the estimator with the first sample and a quarter of it, then processes that sample.
        let (srtt, dev) = self.estimate.unwrap_or((r, r / 4.0));
        let err = r - srtt;
        let (srtt, dev) = (srtt + err / 8.0, dev + (math::abs(err) - dev) / 4.0);
        self.estimate = Some((srtt, dev));
        self.timeout = Duration::from_secs_f64((srtt + 2.0 * dev) * (17.0 / 16.0));
    }

    /// Whether a segment of this age is overdue.
    #[must_use]
    pub fn expired(&self, age: Duration) -> bool {
        self.estimate.is_some() && age >= self.timeout
    }

    /// A segment is retransmitted: until the next sample, the timeout is longer by an eighth, or doubled if the segment
    /// was retransmitted before (`repeated`).
    pub fn back_off(&mut self, repeated: bool) {
        self.timeout = if repeated { self.timeout * 2 } else { self.timeout + self.timeout / 8 };
    }

    /// The current timeout; zero before the first sample.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}
