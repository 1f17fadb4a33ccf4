//! When Hark sends probes, and what it makes of their answers.

use super::train::{self, Asked};
use super::{FIRST, Hark, Heard, LATE_MOST};
use crate::action::{ProbeSource, Train};
use crate::event::{Cx, Phase};
use skyhaul_base::Duration;

/// The delay has grown if it is longer by this multiple of the distance between the minimum and the lower quartile of
/// the RTTs of a round without a train: jitter alone hardly ever makes as much of it.
const NOISE: f64 = 4.0;
/// Probes of a test; the rounds that a queue stands before one, and the maximum while tests fail.
const TEST: f64 = 10.0;
pub(super) const DOUBT: u32 = 2;
pub(super) const DOUBT_MOST: u32 = 16;
/// Below this many probes the share of answers is random: fewer are not sent.
const ENOUGH: f64 = 8.0;

impl Hark {
    /// Sends probes over one RTT, at most four receive windows of them: that window doubles in an RTT, and in the next.
    pub(super) fn ask(&mut self, cx: &mut Cx<'_>, count: f64, test: bool) {
        let (count, rtt) = (count.min(4.0 * cx.path.rwnd) as u32, self.rtt());
        if count == 0 {
            return;
        }
        let spacing = Duration::from_secs_f64(rtt / f64::from(count + 1));
        cx.act.train = Some(Train { source: ProbeSource::LastSegment, count, first: spacing, spacing });
        self.train = Some(Asked::new(cx.now, count, rtt, self.queue, test));
        self.sent[1] = f64::from(count);
    }

    /// Ends the probing of the start once the path has no room for most of it. The answers of a round are those to
    /// the probes of the round before.
    pub(super) fn judge_start(&mut self) {
        if self.unheard || self.sent[0] < ENOUGH || self.answers >= train::MOST * self.sent[0] {
            return;
        }
        if self.quiet <= FIRST + 1.0 {
            (self.unheard, self.starved, self.late) = (true, true, LATE_MOST);
        } else {
            self.leave_start();
        }
    }

    /// Evaluates a train, once all answers must have arrived. Whether it found the path free.
    pub(super) fn judge_train(&mut self, cx: &Cx<'_>, heard: &Heard) -> bool {
        let Some(train) = self.train.filter(|t| t.is_over(cx.now)) else { return false };
        self.train = None;
        let target = Self::target(self.quiet);
        let through = train.came_through();
        self.starved = train.share() < 0.5;
        // Data waited behind probes that a router with priorities would have served last.
        let grew = train.queue_grew() * self.quiet / heard.rtt > target
            && train.queue_grew() > NOISE * self.noise
            && !train.test;
        let mut found_free = false;
        if through && self.config.delay {
            // In a router without priorities the delay grows with the window.
            let displaced = grew
                || self.passed.is_some_and(|(window, rtt)| {
                    let (rise, grown) = (train.least - rtt, (self.quiet / window - 1.0) * heard.rtt);
                    rise * self.quiet / heard.rtt > target / 2.0
                        && rise > 0.5 * grown
                        && rise > NOISE * self.noise
                });
            self.passed = Some((self.quiet, train.least));
            if displaced && !self.priorities {
                self.displaced += 1;
            } else if train.least.is_finite() {
                found_free = true;
                self.shift = self.shift.max(train.free_rtt() - self.base);
                // From a queue that has drained meanwhile all probes return.
                if train.test && self.queue > 0.5 * train.before {
                    (self.above, self.rival, self.longest) = (0, false, 0.0);
                    self.quiet = self.quiet.max(self.firm);
                }
            }
        } else if !self.priorities && !self.starved && grew {
            self.displaced += 1;
        } else if self.starved && train.spared_data() {
            (self.priorities, self.displaced) = (true, 0);
        }
        if self.displaced >= 2 {
            // What probes said of the delay is void, too.
            self.shift = 0.0;
        }
        if train.test {
            self.doubt = if through { DOUBT } else { (2 * self.doubt).min(DOUBT_MOST) };
            self.until_test = self.doubt;
        } else {
            // If the path had room for all, the next train is larger.
            self.reach = if through { (2.0 * self.reach).min(1.0) } else { (self.reach / 2.0).max(0.1) };
        }
        found_free
    }

    /// Probes for the next round.
    pub(super) fn ask_again(&mut self, cx: &mut Cx<'_>, heard: &Heard) {
        self.begun = self.cwnd;
        self.sent = [self.sent[1], 0.0];
        if self.deaf(cx.path) || cx.path.phase == Phase::Loss {
            return;
        }
        if self.starting {
            if !self.unheard {
                self.ask(cx, (2.0 * self.quiet).max(ENOUGH), false);
            }
        } else if heard.free {
            self.until_test = self.doubt;
            let count = (self.reach * self.quiet).max(ENOUGH);
            if self.quiet >= ENOUGH && self.train.is_none() && !self.stalled {
                self.ask(cx, count, false);
            }
        } else if self.train.is_none() && self.cwnd >= TEST {
            self.until_test = self.until_test.saturating_sub(1);
            if self.until_test == 0 {
                self.until_test = self.doubt;
                self.ask(cx, TEST, true);
            }
        } else if !self.train.is_some_and(|t| t.test) {
            cx.act.stop_probes = true;
        }
    }
}
