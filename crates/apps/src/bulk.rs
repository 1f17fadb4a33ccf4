//! Data without end.

use crate::workload::{Demand, Kind, Start, Stop, Transport, Workload};
use core::convert::Infallible;
use skyhaul_base::Instant;

/// Data without end.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// More than any run sends, and far from where sums overflow.
const WITHOUT_END: u64 = u64::MAX / 2;

/// Data without end, over one connection.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    next: Instant,
    stopped: bool,
}

impl Kind for Config {
    type Workload = Bulk;
    type Invalid = Infallible;

    fn resolve(&self, _: Transport) -> Result<Self, Infallible> {
        Ok(*self)
    }
    fn build(&self, start: &Start<'_>) -> Bulk {
        Bulk { next: start.now, stopped: false }
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
        Some(Demand::Open { transfer: 0, bytes: WITHOUT_END })
    }
    fn stop(&mut self) -> Stop {
        self.next = Instant::MAX;
        self.stopped = true;
        Stop::TakeBack
    }
    fn is_finite(&self) -> bool {
        self.stopped
    }
}
