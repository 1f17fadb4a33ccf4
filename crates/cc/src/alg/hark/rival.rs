//! Whether there is a competitor, and the firm window to hold beside it.

use super::delay::{Round, target};
use super::start::FIRST;

/// A queue of this multiple of Hark's own target is due to a competitor: two Harks cannot cause it.
const CROWDED: f64 = 2.5;
/// Rounds that it has to last: a NewReno that halves its window drains it in two or three (five is Copa's choice).
const PATIENCE: u32 = 5;
/// A round does not count if the queue has shrunk to this share of the round before.
const SHRUNK: f64 = 0.9;
/// Rounds counted already when the firm window is reduced and Hark yields again: two more that show the queue, and
/// the competitor is still there.
const RESUME: u32 = 3;
/// Factor of the firm window after a loss: that of CUBIC (RFC 9438 §4.6). With NewReno's factor, a half, Hark gets less than a
/// tenth of a link that it shares with CUBIC. The firm window grows as NewReno's does: CUBIC's growth would harm a NewReno more.
const KEPT: f64 = 0.7;
/// Minimum of the firm window, segments: as of a slow start threshold (RFC 5681 §3.1).
const LEAST_FIRM: f64 = 2.0;

/// Whether a competitor keeps the queue standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Absent {
        /// Rounds with more queue than our own, in which it did not shrink.
        crowded: u32,
    },
    Present,
}

/// The competitor, and the window of a sender that the losses alone govern.
///
/// *Invariants*: `firm` is at least two segments; it counts only while the competitor is present, and while it is absent
/// and the queue is ours, `firm` is no larger than what the path carried, so that it must not grow into the queue.
#[derive(Clone, Debug)]
pub(super) struct Rival {
    /// The option `compete`: without it no competitor is ever present.
    compete: bool,
    /// The firm window, segments.
    pub(super) firm: f64,
    pub(super) presence: Presence,
    /// Queueing delay of the last round, s.
    last_queue: f64,
}

impl Rival {
    pub(super) fn new(compete: bool) -> Self {
        Self { compete, firm: FIRST, presence: Presence::Absent { crowded: 0 }, last_queue: 0.0 }
    }

    pub(super) fn is_present(&self) -> bool {
        self.presence == Presence::Present
    }

    /// The window to hold against it, segments: none while there is no competitor.
    pub(super) fn window(&self) -> f64 {
        if self.is_present() { self.firm } else { 0.0 }
    }

    /// So many segments were acknowledged outside of a recovery: the firm window grows as NewReno's does, but not beyond the
    /// quiet one while it does not count.
    pub(super) fn acknowledged(&mut self, segments: f64, quiet: f64) {
        if self.is_present() || self.firm < quiet {
            self.firm += segments.min(2.0) / self.firm;
        }
    }

    /// Losses, or a mark.
    pub(super) fn reduce(&mut self) {
        self.firm = (KEPT * self.firm).max(LEAST_FIRM);
    }

    /// The firm window has been reduced, and the competitor may have lost as well and drains the queue: it counts as absent
    /// until the queue stands again. Returns whether it was present.
    pub(super) fn doubt(&mut self) -> bool {
        let was_present = self.is_present();
        if was_present {
            self.presence = Presence::Absent { crowded: RESUME };
        }
        was_present
    }

    /// There was no queue, or none that a competitor kept standing.
    pub(super) fn refute(&mut self) {
        self.presence = Presence::Absent { crowded: 0 };
    }

    /// The start is over, with this quiet window, segments; its own queue is no sign of a competitor. Slow start would have
    /// ended with what the path carries.
    pub(super) fn end_start(&mut self, quiet: f64, carried: f64) {
        if !self.is_present() {
            self.refute();
        }
        self.firm = self.firm.max(quiet).min(carried).max(FIRST);
    }

    /// Past the start: without a competitor it must not grow into the queue beyond what the path carried, segments.
    pub(super) fn limit(&mut self, carried: f64) {
        if self.presence == (Presence::Absent { crowded: 0 }) {
            self.firm = self.firm.min(carried).max(LEAST_FIRM);
        }
    }

    /// Judges the completed round, which had this congestion window, segments: a queue that stays although Hark yields is
    /// due to a competitor. Returns whether one has gone.
    pub(super) fn end_round(&mut self, round: &Round, cwnd: f64) -> bool {
        let window = cwnd.max(self.firm);
        let (ours, target) = (window * round.queue / round.rtt, target(window));
        let shrinks = round.queue < SHRUNK * self.last_queue;
        self.last_queue = round.queue;
        match self.presence {
            Presence::Present => {
                let gone = ours < target;
                if gone {
                    self.refute();
                }
                gone
            }
            Presence::Absent { crowded } => {
                let crowded = if ours > CROWDED * target { crowded + u32::from(!shrinks) } else { 0 };
                self.presence = if crowded >= PATIENCE && self.compete {
                    Presence::Present
                } else {
                    Presence::Absent { crowded }
                };
                false
            }
        }
    }
}
