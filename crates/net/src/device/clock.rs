//! The clocks of the machine; no other module of this crate reads one.

use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use skyhaul_base::Instant;

/// The monotonic clock (CLOCK_MONOTONIC of clock_gettime(2)), in nanoseconds. Every [`Instant`] of this crate is a time of
/// this clock, so threads agree and timers can be set to these times directly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// The current time.
    #[must_use]
    pub fn now() -> Instant {
        // This cannot fail: the clock exists on every Linux.
        let t = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0));
        Instant::from_nanos(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
    }
    /// Time of day in nanoseconds since 1970, for files that people read.
    #[must_use]
    pub fn wall_nanos() -> u64 {
        let t = clock_gettime(ClockId::CLOCK_REALTIME).unwrap_or(TimeSpec::new(0, 0));
        t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64
    }
    /// CPU time used by the calling thread.
    #[must_use]
    pub fn thread_cpu() -> skyhaul_base::Duration {
        let t = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or(TimeSpec::new(0, 0));
        skyhaul_base::Duration::from_nanos(t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
    }
}
