//! Unlimited data.

use crate::workload::{Demand, Kind, Outcome, Start, Stop, Transport, Workload};
use core::convert::Infallible;
use skyhaul_base::Instant;

/// Unlimited data.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// More than any run sends, and far below an overflow of sums.
const WITHOUT_END: u64 = u64::MAX / 2;

/// Endless data, or a number of bytes, over one connection.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    next: Instant,
    bytes: u64,
    stopped: bool,
}

impl Bulk {
    /// This many bytes, from `start` on. Hosts on a real network use it, scenarios do not.
    #[must_use]
    pub fn sized(start: Instant, bytes: u64) -> Self {
        Self { next: start, bytes: bytes.min(WITHOUT_END), stopped: false }
    }
    /// Endless data, from `start` on.
    #[must_use]
    pub fn endless(start: Instant) -> Self {
        Self::sized(start, WITHOUT_END)
    }
}

impl Kind for Config {
    type Workload = Bulk;
    type Invalid = Infallible;

    fn resolve(&self, _: Transport) -> Result<Self, Infallible> {
        Ok(*self)
    }
    fn build(&self, start: &Start<'_>) -> Bulk {
        Bulk::endless(start.now)
    }
    fn offered(&self) -> Option<f64> {
        None
    }
    fn words(&self, _: &dyn Fn(f64) -> String) -> String {
        "always with data to send".into()
    }
}

impl Workload for Bulk {
    fn next(&self) -> Instant {
        self.next
    }
    fn poll(&mut self, now: Instant) -> Option<Demand> {
        if self.next > now {
            return None;
        }
        self.next = Instant::MAX;
        Some(Demand::Open { transfer: 0, bytes: self.bytes })
    }
    fn acknowledged(&mut self, _now: Instant) -> Outcome {
        // A stopped transfer was aborted, and does not count as complete.
        if self.stopped { Outcome::Over } else { Outcome::Last }
    }
    fn stop(&mut self) -> Stop {
        self.next = Instant::MAX;
        self.stopped = true;
        Stop::TakeBack
    }
    fn is_finite(&self) -> bool {
        self.stopped || self.bytes < WITHOUT_END
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_bytes_ends_and_endless_data_does_not() {
        let at = Instant::from_nanos(7);
        let mut b = Bulk::sized(at, 1000);
        assert_eq!((b.next(), b.poll(Instant::ZERO)), (at, None));
        assert_eq!(b.poll(at), Some(Demand::Open { transfer: 0, bytes: 1000 }));
        assert_eq!((b.poll(at), b.is_finite(), b.acknowledged(at)), (None, true, Outcome::Last));
        let mut b = Bulk::endless(at);
        assert!(b.poll(at).is_some() && !b.is_finite());
        assert_eq!((b.stop(), b.is_finite(), b.acknowledged(at)), (Stop::TakeBack, true, Outcome::Over));
    }
}
