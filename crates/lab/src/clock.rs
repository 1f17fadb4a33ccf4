//! The wall clock: for provenance and progress only, never for results.

pub use skyhaul_trace::calendar::rfc3339;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A stopwatch.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "no result depends on how long a run took")]
    #[must_use]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// The elapsed time.
    #[must_use]
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// The present time as in RFC 3339, in UTC.
#[must_use]
pub fn now() -> String {
    #[expect(clippy::disallowed_methods, reason = "provenance")]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    rfc3339(since.as_secs())
}
