//! The fine-grained timeout of TCP Vegas, by which one duplicate acknowledgement is enough for a retransmission.

use skyhaul_base::{Duration, math};

/// The estimator: as RFC 6298, on exact samples, with its own timeout.
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
        // ns-2 presets the estimator with the first sample and a quarter of it, then takes that sample in.
        let (srtt, dev) = self.estimate.unwrap_or((r, r / 4.0));
        let err = r - srtt;
        let (srtt, dev) = (srtt + err / 8.0, dev + (math::abs(err) - dev) / 4.0);
        self.estimate = Some((srtt, dev));
        self.timeout = Duration::from_secs_f64((srtt + 2.0 * dev) * (17.0 / 16.0));
    }

    /// A segment that left so long ago is overdue.
    #[must_use]
    pub fn expired(&self, age: Duration) -> bool {
        self.estimate.is_some() && age >= self.timeout
    }

    /// A segment is sent again: until the next sample the timeout is longer.
    pub fn back_off(&mut self, repeated: bool) {
        self.timeout = if repeated { self.timeout * 2 } else { self.timeout + self.timeout / 8 };
    }

    /// The timeout now; zero before the first sample.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }
}
