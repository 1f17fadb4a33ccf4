//! A train of probes under way, and what its answers say.

use super::samples::Quantiles;
use skyhaul_base::{Duration, Instant};

/// Probes of a train that have to be answered, as a share: random losses take some (5 % on the worst of channels that
/// still carry TCP, of which 64 probes lose 3 ± 2), a queue that serves them last takes nearly all.
const MOST: f64 = 0.8;
/// The same for a test of the delay, which may overturn what the delay says.
const NEARLY_ALL: f64 = 0.9;
/// Below this many probes the share of answers is left to chance.
const ENOUGH: u32 = 8;

/// A train of probes under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// When it began.
    since: Instant,
    /// How long until all answers must have come: it leaves over one round trip, and its last answer takes another.
    patience: Duration,
    /// Probes of it.
    count: u32,
    /// Answers to it.
    pub(super) answered: u32,
    /// The queue when it began, s, and the longest since.
    before: f64,
    longest: f64,
    /// It asks whether the delay is that of a queue at all.
    pub(super) test: bool,
    /// The round since then with the least delay.
    least: Option<Quantiles>,
}

impl Asked {
    pub(super) fn new(now: Instant, count: u32, rtt: f64, queue: f64, test: bool) -> Self {
        // 20 ms for delayed acknowledgements and the timers of either end.
        let patience = Duration::from_secs_f64(2.0 * rtt + 0.02);
        Self { since: now, patience, count, answered: 0, before: queue, longest: 0.0, test, least: None }
    }

    /// A round passed meanwhile with this queue, s, and these round trips where there were enough of them.
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

    fn share(&self) -> f64 {
        f64::from(self.answered) / f64::from(self.count)
    }

    /// The path had room for it.
    pub(super) fn came_through(&self) -> bool {
        self.share() >= MOST
    }

    /// It was too short for its answers to mean much.
    pub(super) fn too_short(&self) -> bool {
        self.count < ENOUGH
    }

    /// By how much the queue grew while it was under way, s.
    pub(super) fn queue_grew(&self) -> f64 {
        self.longest - self.before
    }

    /// Of a test: the delay is not that of a queue, since probes, which a queue serves last, came through. This is then what
    /// the path itself takes.
    pub(super) fn path_itself(&self) -> Option<Quantiles> {
        self.least.filter(|_| self.share() >= NEARLY_ALL)
    }
}
