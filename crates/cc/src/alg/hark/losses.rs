//! Segments lost and segments delivered in each round.

use super::delay::Delays;
use super::start::FIRST;
use crate::event::Path;

/// Weight of a round in the loss rate of the path with an empty queue.
const LEARN: f64 = 0.125;
/// Weight of a round in the recent loss rate.
const RECENT: f64 = 0.25;
/// A recent loss rate that reduces the window whatever the delay: above the fades of a satellite link that still
/// carries TCP.
const COLLAPSE: f64 = 0.25;
/// Reduction after losses with a full queue, in multiples of their share of the round. One multiple would leave the
/// queue full.
pub(super) const CUT: f64 = 1.5;
/// The maximum that the path carried is multiplied by this factor each round: it halves in seven hundred rounds.
const MOST_LEFT: f64 = 0.999;

/// Losses and deliveries of a connection.
///
/// *Invariants*: both loss rates are between 0 and 1; `most` is at least `carried`.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// Counters of the path at the end of the last round, bytes.
    delivered: u64,
    lost: u64,
    /// Recent loss rate.
    pub(super) recent: f64,
    /// Loss rate of rounds with an empty queue: losses that this sender did not cause.
    pub(super) innocent: f64,
    /// Segments that the path carried in the last round, without the queue.
    pub(super) carried: f64,
    /// Recent maximum of these.
    pub(super) most: f64,
}

impl Losses {
    pub(super) const NONE: Self =
        Self { delivered: 0, lost: 0, recent: 0.0, innocent: 0.0, carried: FIRST, most: FIRST };

    /// Evaluates the completed round: the share of its segments, of `smss` bytes, that were lost.
    pub(super) fn end_round(&mut self, path: &Path, smss: f64, delays: &Delays) -> f64 {
        let got = path.delivered.saturating_sub(self.delivered) as f64;
        let gone = path.lost.saturating_sub(self.lost) as f64;
        (self.delivered, self.lost) = (path.delivered, path.lost);
        let lost = gone / (got + gone).max(1.0);
        self.recent += RECENT * (lost - self.recent);
        self.carried = got / smss * delays.empty / delays.rtt;
        self.most = self.carried.max(MOST_LEFT * self.most);
        lost
    }

    /// The queue was empty while this share was lost.
    pub(super) fn learn(&mut self, lost: f64) {
        self.innocent += LEARN * (lost - self.innocent);
    }

    /// Share of the window by which a round with this share of losses reduces it, if it does.
    pub(super) fn cut(&self, lost: f64, full: bool) -> Option<f64> {
        let collapse = self.recent > COLLAPSE;
        let excess = if full { CUT * (lost - self.innocent).max(0.0) } else { 0.0 };
        (lost > 0.0 && (full || collapse)).then(|| if collapse { excess.max(lost) } else { excess })
    }
}
