//! A train of probes in progress, and the meaning of its answers.

use super::samples::Quantiles;
use skyhaul_base::{Duration, Instant};

/// Share of a train's probes that must be answered. Random losses take some (5 % on the worst channels that still
/// carry TCP: 64 probes lose 3 ± 2), a queue that serves them last takes nearly all.
const MOST: f64 = 0.8;
/// The same for a test of the delay, which may overrule the delay measurement.
const NEARLY_ALL: f64 = 0.9;
/// Below this many probes the share of answers is random.
const ENOUGH: u32 = 8;

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
    /// It tests whether the delay is that of a queue.
    pub(super) test: bool,
    /// The round since then with the minimum delay.
    least: Option<Quantiles>,
}

impl Asked {
    pub(super) fn new(now: Instant, count: u32, rtt: f64, queue: f64, test: bool) -> Self {
        // 20 ms for delayed acknowledgements and the timers of both ends.
        let patience = Duration::from_secs_f64(2.0 * rtt + 0.02);
        Self { since: now, patience, count, answered: 0, before: queue, longest: 0.0, test, least: None }
    }

    /// A round has passed with this queueing delay, s, and these RTTs if there were enough.
    pub(super) fn saw(&mut self, queue: f64, round: Option<Quantiles>) {
        self.longest = self.longest.max(queue);
        if let Some(r) = round
            && self.least.is_none_or(|l| r.median < l.median)
        {
            self.least = Some(r);
        }
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

    /// Whether it was too short for its answers to mean much.
    pub(super) fn too_short(&self) -> bool {
        self.count < ENOUGH
    }

    /// Growth of the queueing delay during the train, s.
    pub(super) fn queue_grew(&self) -> f64 {
        self.longest - self.before
    }

    /// Result of a test: the delay of the path itself, if the probes, which a queue serves last, came through.
    pub(super) fn path_itself(&self) -> Option<Quantiles> {
        self.least.filter(|_| self.share() >= NEARLY_ALL)
    }
}
