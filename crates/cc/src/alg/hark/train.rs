//! A train of probes in progress, and the meaning of its answers.

use super::samples::Rtts;
use skyhaul_base::{Duration, Instant};

/// Share of a train's probes that must be answered. Random losses take some (5 % on the worst channels that still
/// carry TCP: 64 probes lose 3 ± 2), a queue that serves them last takes nearly all.
pub(super) const ANSWERED_SHARE: f64 = 0.8;
/// Below this many probes the share of answers is random: fewer are not sent.
pub(super) const FEWEST_PROBES: f64 = 8.0;
/// Loss rate of data, up to which it counts as spared: more than most channels lose.
const SPARED: f64 = 0.1;
/// Time for delayed acknowledgements and the timers of both ends, s.
const TIMERS: f64 = 0.02;

/// What a train asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// How much room does the path have?
    Room,
    /// Is the delay that of a queue?
    Test,
}

/// A train of probes in progress.
///
/// *Invariant*: answers that arrive within an RTT of its start are to an earlier train, and do not count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    purpose: Purpose,
    /// Its start.
    since: Instant,
    /// Time until all answers must have arrived: the train takes one RTT, and its last answer another.
    patience: Duration,
    /// Number of its probes.
    count: u32,
    /// Answers to it.
    answered: u32,
    /// Queueing delay at its start, s.
    pub(super) before: f64,
    /// Maximum queueing delay since, s.
    longest: f64,
    /// Minimum RTT since, s.
    pub(super) least: f64,
    /// Longest and second longest lower quartile of the RTTs of a round since, s.
    lower: [f64; 2],
    /// Maximum loss rate of data in a round since.
    lost: f64,
}

impl Train {
    pub(super) fn new(now: Instant, count: u32, rtt: f64, queue: f64, purpose: Purpose) -> Self {
        Self {
            purpose,
            since: now,
            patience: Duration::from_secs_f64(2.0 * rtt + TIMERS),
            count,
            answered: 0,
            before: queue,
            longest: 0.0,
            least: f64::INFINITY,
            lower: [0.0; 2],
            lost: 0.0,
        }
    }

    pub(super) fn is_test(&self) -> bool {
        self.purpose == Purpose::Test
    }

    /// A round has passed with this queueing delay, s, these RTTs if there were any, and this loss rate.
    pub(super) fn end_round(&mut self, queue: f64, rtts: Option<Rtts>, lost: f64) {
        if let Some(Rtts { least, lower, .. }) = rtts {
            self.longest = self.longest.max(queue);
            self.least = self.least.min(least);
            let [first, second] = self.lower;
            self.lower = if lower > first { [lower, first] } else { [first, second.max(lower)] };
        }
        self.lost = self.lost.max(lost);
    }

    /// Counts answers that arrive now. False if they are to earlier probes: the minimum RTT, `base`, s, has not passed since
    /// the train began.
    pub(super) fn answer(&mut self, now: Instant, count: u32, base: f64) -> bool {
        let to_this = now.since(self.since).as_secs_f64() >= base;
        if to_this {
            self.answered += count;
        }
        to_this
    }

    /// RTT of the path while the train found it free, s: with the jitter that most of its rounds had, but without a queue
    /// that only one of them met.
    pub(super) fn free_rtt(&self) -> f64 {
        self.lower[1]
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
        self.share() >= ANSWERED_SHARE
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rtts(least: f64, lower: f64) -> Option<Rtts> {
        Some(Rtts { least, lower, median: lower, peak: lower, measured: true, many: true })
    }

    #[test]
    fn one_round_with_a_queue_does_not_make_the_path_longer() {
        let mut train = Train::new(Instant::ZERO, 10, 0.5, 0.0, Purpose::Test);
        for (least, lower) in [(0.5, 0.51), (0.5, 0.6), (0.5, 0.52)] {
            train.end_round(lower - 0.5, rtts(least, lower), 0.0);
        }
        train.end_round(0.0, None, 0.0);
        assert_eq!((train.free_rtt(), train.least), (0.52, 0.5));
    }

    #[test]
    fn an_answer_takes_an_rtt() {
        let mut train = Train::new(Instant::from_secs_f64(1.0), 10, 0.5, 0.0, Purpose::Test);
        assert!(!train.answer(Instant::from_secs_f64(1.4), 5, 0.5));
        assert!(train.answer(Instant::from_secs_f64(1.5), 8, 0.5));
        assert!((train.share() - 0.8).abs() < 1e-9 && train.came_through());
    }
}
