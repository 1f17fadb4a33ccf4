//! The number of own segments in queues, derived from the RTT once per round trip, as in TCP Vegas.

use crate::event::Path;
use skyhaul_base::{Duration, Instant, math};

/// Measurements of the current round, and the base RTT.
#[derive(Clone, Debug)]
pub struct Backlog {
    /// Base RTT, that of the path without queues: the minimum of the samples since the last round of a single segment, whose
    /// RTT replaces it.
    pub base: Option<Duration>,
    /// Start of the round.
    began: Instant,
    /// FlightSize at the start of the round, segments.
    pub(crate) flight: f64,
    /// Segments acknowledged in the round.
    acked: f64,
    /// Sum, minimum and number of the RTT samples of the round.
    pub(crate) rtt_sum: Duration,
    pub(crate) rtt_min: Duration,
    pub(crate) rtt_count: u64,
}

impl Default for Backlog {
    fn default() -> Self {
        Self {
            base: None,
            began: Instant::ZERO,
            flight: 0.0,
            acked: 0.0,
            rtt_sum: Duration::ZERO,
            rtt_min: Duration::MAX,
            rtt_count: 0,
        }
    }
}

/// Nanoseconds as a real number, so that quotients of round figures are exact.
#[must_use]
pub fn nanos(d: Duration) -> f64 {
    d.as_nanos() as f64
}

impl Backlog {
    /// A round begins with this many segments outstanding.
    pub fn begin(&mut self, now: Instant, flight: f64) {
        self.began = now;
        self.flight = flight;
        self.acked = 0.0;
        self.rtt_sum = Duration::ZERO;
        self.rtt_min = Duration::MAX;
        self.rtt_count = 0;
    }

    /// This many segments were acknowledged.
    pub fn acked(&mut self, segments: f64) {
        self.acked += segments;
    }

    /// An RTT was measured.
    pub fn sample(&mut self, rtt: Duration) {
        self.rtt_sum = self.rtt_sum + rtt;
        self.rtt_min = self.rtt_min.min(rtt);
        self.rtt_count += 1;
        self.base = Some(self.base.map_or(rtt, |b| b.min(rtt)));
    }

    /// The RTT of the path without queues, s; NaN before the first sample.
    #[must_use]
    pub fn base_rtt(&self) -> f64 {
        self.base.map_or(f64::NAN, Duration::as_secs_f64)
    }

    /// Whether the first segment sent in the round is acknowledged. If the round ended already with the last segment sent
    /// before its start, the segments sent in it would be one less than the window, and that one would look queued on an
    /// empty path.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.acked > self.flight
    }

    /// Number of samples in the round, and their minimum.
    #[must_use]
    pub fn least(&self) -> (u64, Duration) {
        (self.rtt_count, self.rtt_min)
    }

    /// Segments in the queue at the end of a round, rounded to whole ones, as ns-2 counts them.
    ///
    /// A round without samples (all of its segments were sent twice) lasts from its first to its last acknowledgement. If
    /// that is shorter than the base RTT, it was no round trip: the repair of a loss acknowledged data at once that had
    /// arrived long before. The result is then `None`. ns-2 takes such a time for the base RTT and stays at a window of two
    /// until the connection ends; here the base RTT comes from samples only.
    pub fn queued(&mut self, now: Instant, path: &Path) -> Option<f64> {
        let sampled = self.rtt_count > 0;
        let rtt = if sampled { self.rtt_sum / self.rtt_count } else { now - self.began };
        let sent = (path.in_flight() + self.acked - self.flight).max(0.0);
        if sampled && sent <= 1.0 {
            // A single segment cannot have waited behind another one of ours.
            self.base = Some(rtt);
        }
        let base = self.base.unwrap_or(rtt);
        if rtt.is_zero() || rtt < base {
            return None;
        }
        // ns-2 counts from the last acknowledged segment: the segment that this acknowledgement will release is included.
        let window = path.in_flight() + 1.0;
        Some(math::floor(window - sent * nanos(base) / nanos(rtt) + 0.5))
    }
}
