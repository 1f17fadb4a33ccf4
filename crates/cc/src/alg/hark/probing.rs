//! When Hark sends probes, and what it makes of their answers.

use super::delay::{Delay, Delays, Round, target};
use super::train::{FEWEST_PROBES, Purpose, Train};
use super::window::{Quiet, Spare};
use crate::action::{self, ProbeSource};
use crate::event::{Cx, Path, ProbeSupport};
use skyhaul_base::{Duration, Instant};

/// The delay has grown if it is longer by this multiple of the distance between the minimum and the lower quartile of
/// the RTTs of a round without a train: jitter alone hardly ever makes as much of it.
const NOISE: f64 = 4.0;
/// Below this share of answers a train starved.
const STARVED: f64 = 0.5;
/// Probes of a test: enough for a share, too few to make a queue.
const TEST: f64 = 10.0;
/// Rounds that a queue stands before the first test: one that drains by itself needs none.
pub(super) const DOUBT: u32 = 2;
/// Maximum of these rounds, which double while tests fail.
pub(super) const DOUBT_MOST: u32 = 16;
/// Size of a train relative to the quiet window: at first, and its limits. It doubles after a train for all of which the path
/// had room, and halves after another.
const REACH: f64 = 0.25;
const REACH_LEAST: f64 = 0.1;
const REACH_MOST: f64 = 1.0;
/// Maximum size of a train in receive windows: the receive window may double in this RTT and again in the next.
const RWNDS: f64 = 4.0;
/// After this many trains that displaced data a router is taken to have no priorities: one may have met a queue of others.
const DISPLACED: u32 = 2;

/// What is known of the router at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Router {
    Unknown {
        /// Trains that displaced data, by [`Probing::displaced`].
        displaced: u32,
    },
    /// It serves probes last: they starved and data did not.
    HasPriorities,
    /// Probes displace data: no more are sent.
    HasNone,
}

/// The probes of a connection.
///
/// *Invariants*: one train at a time; none once probes are useless; `until_test <= doubt <= DOUBT_MOST`.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    /// The user allows probes, and the peer answers them as far as is known.
    pub(super) possible: bool,
    pub(super) router: Router,
    pub(super) train: Option<Train>,
    /// Size of the next train relative to the quiet window.
    reach: f64,
    /// Rounds with a queue until the next test, and from one to the next.
    pub(super) until_test: u32,
    pub(super) doubt: u32,
    /// Answers not yet added to the window.
    pub(super) answers: f64,
    /// Most probes of the last train were lost.
    pub(super) starved: bool,
    /// Window (segments) and RTT (s) at the last train that returned.
    passed: Option<(f64, f64)>,
}

/// What a train has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing, or the train is not over.
    Nothing,
    /// The path was free.
    Free,
    /// The path was free, although the delay looked like a queue before and still does: there is none.
    NoQueue,
}

impl Probing {
    pub(super) fn new(allowed: bool) -> Self {
        Self {
            possible: allowed,
            router: Router::Unknown { displaced: 0 },
            train: None,
            reach: REACH,
            until_test: DOUBT,
            doubt: DOUBT,
            answers: 0.0,
            starved: false,
            passed: None,
        }
    }

    /// Whether there are no probes, or they tell nothing.
    pub(super) fn is_useless(&self, path: &Path) -> bool {
        !self.possible || path.probes == ProbeSupport::No || self.router == Router::HasNone
    }

    pub(super) fn spare(&self, path: &Path) -> Spare {
        match (self.is_useless(path), self.starved) {
            (true, _) => Spare::Unknown,
            (false, true) => Spare::None,
            (false, false) => Spare::Some,
        }
    }

    /// The peer answers none.
    pub(super) fn give_up(&mut self) {
        (self.possible, self.train) = (false, None);
    }

    /// The start is over. Answers still to come are to probes of the start, and do not count any more.
    pub(super) fn forget(&mut self) {
        (self.answers, self.train) = (0.0, None);
    }

    /// Whether no probes disturb the delay: those of a test make no queue.
    pub(super) fn leaves_delay_undisturbed(&self) -> bool {
        self.train.is_none_or(|t| t.is_test())
    }

    /// A round has passed with these delays and this share of losses.
    pub(super) fn end_round(&mut self, delays: &Delays, queue: f64, lost: f64) {
        if delays.unprecedented {
            // Failed tests were about other queues.
            (self.doubt, self.until_test) = (DOUBT, self.until_test.min(DOUBT));
        }
        if let Some(train) = &mut self.train {
            train.end_round(queue, delays.sampled, lost);
        }
    }

    /// Probes were answered. Whether the answers count: those of a test do not, nor those that arrive within `soonest`, s, of
    /// the start of the train.
    pub(super) fn answered(&mut self, now: Instant, count: u32, soonest: f64) -> bool {
        let Some(train) = &mut self.train else { return false };
        let counts = train.answer(now, count, soonest) && !train.is_test();
        if counts {
            self.answers += f64::from(count);
        }
        counts
    }

    /// Sends probes over one RTT. Their number.
    pub(super) fn send(&mut self, cx: &mut Cx<'_>, count: f64, purpose: Purpose, delay: &Delay) -> u32 {
        let (count, rtt) = (count.min(RWNDS * cx.path.rwnd) as u32, delay.rtt());
        if count > 0 {
            let spacing = Duration::from_secs_f64(rtt / f64::from(count + 1));
            let source = ProbeSource::LastSegment;
            cx.act.train = Some(action::Train { source, count, first: spacing, spacing });
            self.train = Some(Train::new(cx.now, count, rtt, delay.queue, purpose));
        }
        count
    }

    /// Evaluates a train, once all answers must have arrived. `quiet` is the quiet window, segments.
    pub(super) fn judge(&mut self, now: Instant, round: &Round, quiet: f64, delay: &mut Delay) -> Verdict {
        let Some(train) = self.train.take_if(|t| t.is_over(now)) else { return Verdict::Nothing };
        let through = train.came_through();
        self.starved = train.share() < STARVED;
        let displaced = self.displaced(&train, round, quiet, delay);
        let mut verdict = Verdict::Nothing;
        match &mut self.router {
            Router::Unknown { displaced: before } if displaced => {
                *before += 1;
                if *before >= DISPLACED {
                    // The delay that probes seemed to prove is void, too.
                    (self.router, delay.shift) = (Router::HasNone, 0.0);
                }
            }
            _ if through && delay.is_followed() => {
                if train.least.is_finite() {
                    delay.lengthen(train.free_rtt());
                    // From a queue that has drained meanwhile all probes return.
                    let stands = train.is_test() && delay.queue > 0.5 * train.before;
                    verdict = if stands { Verdict::NoQueue } else { Verdict::Free };
                }
            }
            router => {
                if self.starved && train.spared_data() {
                    *router = Router::HasPriorities;
                }
            }
        }
        if train.is_test() {
            self.doubt = if through { DOUBT } else { (2 * self.doubt).min(DOUBT_MOST) };
            self.until_test = self.doubt;
        } else {
            self.reach = if through {
                (2.0 * self.reach).min(REACH_MOST)
            } else {
                (self.reach / 2.0).max(REACH_LEAST)
            };
        }
        verdict
    }

    /// Whether data waited behind the probes of a train, which a router with priorities would have served last.
    fn displaced(&mut self, train: &Train, round: &Round, quiet: f64, delay: &Delay) -> bool {
        let in_queue = |delay: f64| delay * quiet / round.rtt;
        let (target, noise, growth) = (target(quiet), NOISE * delay.noise, train.queue_grew());
        let grew = in_queue(growth) > target && growth > noise && !train.is_test();
        if !(train.came_through() && delay.is_followed()) {
            return grew && !self.starved;
        }
        // In a router without priorities the delay grows with the window.
        let before = self.passed.replace((quiet, train.least));
        grew || before.is_some_and(|(window, rtt)| {
            let (rise, grown) = (train.least - rtt, (quiet / window - 1.0) * round.rtt);
            in_queue(rise) > target / 2.0 && rise > 0.5 * grown && rise > noise
        })
    }

    /// Probes for the next round. `cwnd` is the congestion window of the last one, segments.
    pub(super) fn next_round(
        &mut self,
        cx: &mut Cx<'_>,
        round: &Round,
        quiet: &Quiet,
        cwnd: f64,
        delay: &Delay,
    ) {
        if round.room {
            self.until_test = self.doubt;
            if quiet.window >= FEWEST_PROBES && self.train.is_none() && !quiet.stalled {
                self.send(cx, (self.reach * quiet.window).max(FEWEST_PROBES), Purpose::Room, delay);
            }
        } else if self.train.is_none() && cwnd >= TEST {
            self.until_test = self.until_test.saturating_sub(1);
            if self.until_test == 0 {
                self.until_test = self.doubt;
                self.send(cx, TEST, Purpose::Test, delay);
            }
        } else if !self.train.is_some_and(|t| t.is_test()) {
            // Without room in the path the rest of a train is not sent, except that of a test.
            cx.act.stop_probes = true;
        }
    }
}
