//! A train of probes in progress, and the meaning of its answers.

use skyhaul_base::{Duration, Instant};

/// Share of a train's probes that must be answered. Random losses take some (5 % on the worst channels that still
/// carry TCP: 64 probes lose 3 ± 2), a queue that serves them last takes nearly all.
pub(super) const MOST: f64 = 0.8;
/// Loss rate of data, up to which it counts as spared.
const SPARED: f64 = 0.1;

/// A train of probes in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Its start.
    since: Instant,
    /// Time until all answers must have arrived: the train takes one RTT, and its last answer another.
    patience: Duration,
    /// Number of its probes.
    count: u32,
    /// Answers to it.
    pub(super) answered: u32,
    /// Queueing delay at its start, s, and the maximum since.
    before: f64,
    longest: f64,
    /// Minimum RTT since, s.
    pub(super) least: f64,
    /// Maximum loss rate of data in a round since.
    lost: f64,
    /// It tests whether the delay is that of a queue.
    pub(super) test: bool,
}

impl Asked {
    pub(super) fn new(now: Instant, count: u32, rtt: f64, queue: f64, test: bool) -> Self {
        // 20 ms for delayed acknowledgements and the timers of both ends.
        let patience = Duration::from_secs_f64(2.0 * rtt + 0.02);
        let (longest, least, lost) = (0.0, f64::INFINITY, 0.0);
        Self { since: now, patience, count, answered: 0, before: queue, longest, least, lost, test }
    }

    /// A round has passed with this queueing delay, s, this minimum RTT if there was any, and this loss rate.
    pub(super) fn saw(&mut self, queue: f64, least: Option<f64>, lost: f64) {
        if let Some(least) = least {
            self.longest = self.longest.max(queue);
            self.least = self.least.min(least);
        }
        self.lost = self.lost.max(lost);
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        now.since(self.since) > self.patience
    }

    /// Share of its probes that were answered.
    pub(super) fn share(&self) -> f64 {
        f64::from(self.answered) / f64::from(self.count)
    }

    /// Whether the path had room for it.
    pub(super) fn came_through(&self) -> bool {
        self.share() >= MOST
    }

    /// Growth of the queueing delay during the train, s.
    pub(super) fn queue_grew(&self) -> f64 {
        self.longest - self.before
    }

    /// Whether data arrived meanwhile.
    pub(super) fn spared_data(&self) -> bool {
        self.lost < SPARED
    }
}
