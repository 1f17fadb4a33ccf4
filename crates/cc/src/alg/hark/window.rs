//! The quiet window, which the delay and the probes govern, and how it grows once the start is over.

use super::delay::{Round, target};
use super::start::FIRST;

/// Minimum window, segments: a crowd of flows with less than a segment each can only yield through the retransmission timer.
pub(super) const LEAST: f64 = 1.0;
/// Share of the distance to the target that a round adds to the window: the effect shows two rounds later. An
/// overshoot is removed within one round.
const OPENING: f64 = 0.25;
/// Maximum of that share unless most probes return: it doubles with every round below the target.
pub(super) const OPENING_MOST: f64 = 0.5;
/// Share of the answers added to the window: the probes of one RTT find the same spare capacity twice, before and
/// after their first answers have been used for data.
const GAIN: f64 = 0.5;
/// A latecomer adds this multiple of the distance to the target while probes starve.
pub(super) const LATE: f64 = 6.0;
/// At first it adds at most this share of its window in a round: the pace of slow start with delayed acknowledgements.
pub(super) const LATE_MOST: f64 = 0.5;
/// What a round above the target leaves of that share: the others yield two round trips later. Below [`BLIND_MOST`] the
/// connection is no latecomer any more.
pub(super) const LATE_LEFT: f64 = 0.85;
/// Without probes, the step of the window doubles every round while the queue is empty, up to this share of the
/// window: even a short queue holds the 3 % that one RTT can add before the delay shows it.
pub(super) const BLIND_MOST: f64 = 0.03;
/// That share before the first queue, and below the window at which a queue began last time; others may have taken a part
/// of that window since.
pub(super) const FAR_MOST: f64 = 0.1;
/// A round with a queue leaves at least this share of the window at which a queue began last time: after an overflow the
/// delay is still that of the larger window before, and the window computed from it too small.
const KNEE_LEFT: f64 = 0.9;

/// What probes say of the path's spare capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spare {
    /// Nothing: there are no probes, or they displace data.
    Unknown,
    /// None: most of them starved.
    None,
    /// Some: most of them returned.
    Some,
}

/// The window from delay and probes.
///
/// *Invariants*: `window` is at least [`LEAST`] segments and follows the target in the queue, from below by a share of the
/// distance, from above at once; `step` is 0 in a round with a queue.
#[derive(Clone, Debug)]
pub(super) struct Quiet {
    /// Segments.
    pub(super) window: f64,
    /// The same a round ago, segments.
    pub(super) last: f64,
    /// Window at which a queue began last time, segments; 0 before the first one.
    pub(super) knee: f64,
    /// Growth in the last round without probes, segments.
    step: f64,
    /// Share of the distance to the target added in the last round below it.
    opening: f64,
    /// Share of the window that a latecomer may add in a round; 0 if this is none, or no longer.
    pub(super) late: f64,
    /// The receive window limited the sender in this round: capacity left unused for that reason cannot be filled by a larger
    /// window.
    pub(super) stalled: bool,
}

impl Quiet {
    pub(super) const NEW: Self = Self {
        window: FIRST,
        last: FIRST,
        knee: 0.0,
        step: 0.0,
        opening: OPENING / 2.0,
        late: 0.0,
        stalled: false,
    };

    pub(super) fn raise_to(&mut self, window: f64) {
        self.window = self.window.max(window);
    }

    pub(super) fn halve(&mut self) {
        self.window = (self.window / 2.0).max(LEAST);
    }

    /// Segments to add after a round below the target by `distance`. `answers` are those not yet added to the window.
    pub(super) fn grow(&mut self, round: &Round, distance: f64, spare: Spare, answers: &mut f64) -> f64 {
        self.opening = if spare == Spare::Some { OPENING } else { (2.0 * self.opening).min(OPENING_MOST) };
        let mut add = match spare {
            Spare::None if self.late > 0.0 => (LATE * distance).min(self.late * self.window),
            Spare::Unknown => (self.opening * distance).max(self.grow_blindly(round.room)),
            _ => self.opening * distance,
        };
        // While the queue is not empty, answers are kept for a later round: until the train of probes has been evaluated
        // (`Probing::judge`), they do not show spare capacity.
        if round.room {
            let answers = core::mem::take(answers);
            if !self.stalled {
                add = add.max(GAIN * answers);
            }
        }
        add
    }

    /// Growth without probes, segments. Nothing shows how much room the path has but the window at which there was a
    /// queue last time: the step doubles until it gets there, and from there begins anew.
    fn grow_blindly(&mut self, room: bool) -> f64 {
        self.step = if room {
            let (least, gap) = (OPENING * target(self.window), self.knee - self.window);
            let most = if gap > 0.0 || self.knee == 0.0 { FAR_MOST } else { BLIND_MOST };
            let step = least.max((2.0 * self.step).min(most * self.window));
            if 0.0 < gap && gap <= step {
                self.step = 0.0;
                return gap;
            }
            step
        } else {
            0.0
        };
        self.step
    }

    /// A round was above the target: growth begins anew.
    pub(super) fn met_queue(&mut self, round: &Round) {
        (self.step, self.opening) = (0.0, OPENING / 2.0);
        self.knee = (self.last * (1.0 - round.queue / round.rtt)).max(KNEE_LEFT * self.knee);
    }

    /// A round above the target takes a part of what a latecomer may add.
    pub(super) fn settle(&mut self) {
        let late = LATE_LEFT * self.late;
        self.late = if late > BLIND_MOST { late } else { 0.0 };
    }

    /// Losses from a full queue reduced the window: growth begins anew.
    pub(super) fn met_loss(&mut self) {
        self.step = 0.0;
    }

    /// The round ends with this change, segments, and a window of at most `limit`.
    pub(super) fn end_round(&mut self, add: f64, limit: f64) {
        self.last = self.window;
        self.window = (self.window + add).min(limit).max(LEAST);
    }
}
