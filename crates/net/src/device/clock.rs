//! The one place that reads a clock.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use skyhaul_base::Instant;

/// The monotonic clock: nanoseconds since the machine started. All times of this crate are on it, so that threads agree
/// and timers can be set to them as they stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// Now.
    #[must_use]
    pub fn now() -> Instant {
        // It cannot fail with a clock that exists on every Linux.
        let t = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0));
        Instant::from_nanos(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
    }
    /// The time of day: nanoseconds since 1970, for files that are read by people.
    #[must_use]
    pub fn wall_nanos() -> u64 {
        let t = clock_gettime(ClockId::CLOCK_REALTIME).unwrap_or(TimeSpec::new(0, 0));
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    }
    /// Processor time that the calling thread has used.
    #[must_use]
    pub fn thread_cpu() -> skyhaul_base::Duration {
        let t = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or(TimeSpec::new(0, 0));
        skyhaul_base::Duration::from_nanos(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
    }
}
