//! Whether the sender was limited by the application and not by the rate (RFC 5348 §8.2.1).

use skyhaul_base::{Duration, Instant};

/// Two times at which the sender had used its whole allowance while more data waited: one for the interval that the
/// next report covers, one for after it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limited {
    first: Instant,
    second: Instant,
    /// End of the interval covered by the last report, and the time of that report.
    covered: Instant,
    reported: Instant,
}

impl Limited {
    /// The sender has used its whole allowance, and more data waits.
    pub(crate) fn by_rate(&mut self, now: Instant) {
        // Time 0 means "never": the first nanosecond of a run is moved by one.
        let now = now.max(Instant::from_nanos(1));
        if self.first <= self.covered {
            self.first = now;
        } else if self.second <= self.reported {
            self.second = now;
        }
    }
    /// Processes a report on the data received up to the packet sent at `echo`: returns whether the whole RTT
    /// interval that ended then was limited by the application.
    pub(crate) fn covers(&mut self, now: Instant, echo: Instant, rtt: Duration) -> bool {
        (self.covered, self.reported) = (echo, now);
        let within = |t: Instant| echo - rtt < t && t <= echo;
        let limited = !(within(self.first) || within(self.second));
        if self.first <= echo && self.second > echo {
            self.first = self.second;
        }
        limited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_moment_at_the_allowed_rate_makes_an_interval_not_limited() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let rtt = Duration::from_millis(100);
        let mut l = Limited::default();
        assert!(l.covers(at(200), at(150), rtt), "never at the allowed rate");
        l.by_rate(at(210));
        assert!(l.covers(at(250), at(200), rtt), "not in (100, 200]");
        l.by_rate(at(260));
        assert!(!l.covers(at(350), at(300), rtt), "at 210 and at 260");
        assert!(!l.covers(at(390), at(340), rtt), "at 260, in (240, 340]");
        assert!(l.covers(at(450), at(400), rtt));
    }
}
