//! What the RTTs of a round say of the queue.

use super::samples::{Rtts, Samples};
use skyhaul_base::{Duration, math};

/// Target for own segments in the queue: this multiple of the square root of the window, so that of two flows in one
/// queue the larger one is above its target first, and yields. Twenty flows of 36 segments hold 29 of a buffer of 50.
const OWN_ROOT: f64 = 0.24;
/// Minimum of the target, segments: to a window of twenty segments over GEO a delayed acknowledgement looks like a queue of
/// that length.
pub(super) const OWN: f64 = 1.4;
/// Minimum of the target as a share of the window: more than the jitter of acknowledgements. A queueing delay below this
/// share of the base cannot be told from jitter either.
pub(super) const OWN_SHARE: f64 = 0.01;
/// A queue of at least this share of the longest one seen is full.
const FULL: f64 = 0.8;
/// The longest queueing delay seen is multiplied by this factor each round, since buffers change.
const FORGET: f64 = 0.995;
/// RTT assumed if not even the handshake gave one, s: that of a geostationary satellite.
const NOMINAL_RTT: f64 = 0.55;

/// Target for own segments in the queue at this window, segments.
pub(super) fn target(window: f64) -> f64 {
    (OWN_ROOT * math::sqrt(window)).max(OWN).max(OWN_SHARE * window)
}

/// The RTTs of a connection, and the queueing delay that they show.
///
/// *Invariants*: an empty queue has the RTT `base + shift`; `base` never grows, `shift` and `queue` are never negative.
#[derive(Clone, Debug)]
pub(super) struct Delay {
    /// The option `delay`: without it every queue counts as empty.
    followed: bool,
    samples: Samples,
    /// RTTs of the last round that had samples.
    rtts: Option<Rtts>,
    /// RTT of the handshake, s: used until there is one of data.
    pub(super) handshake: f64,
    /// Minimum RTT of data, s; infinite before the first one.
    pub(super) base: f64,
    /// Delay of the path beyond the base, as probes found it, s: a longer path, or jitter.
    pub(super) shift: f64,
    /// Distance between the minimum and the lower quartile of the RTTs of the last round without a train, s.
    pub(super) noise: f64,
    /// Queueing delay of the last round, s.
    pub(super) queue: f64,
    /// Longest queueing delay seen, s.
    pub(super) longest: f64,
}

/// The RTTs of a completed round.
#[derive(Clone, Copy)]
pub(super) struct Delays {
    /// Its RTT, s: the lower quartile, or that of the last round that had samples.
    pub(super) rtt: f64,
    /// RTT with an empty queue, s.
    pub(super) empty: f64,
    /// Longest queueing delay of its segments, s.
    pub(super) worst: f64,
    /// The queue is unlike any before.
    pub(super) unprecedented: bool,
    /// Quantiles of its samples, if it had any.
    pub(super) sampled: Option<Rtts>,
}

/// A completed round.
#[derive(Clone, Copy)]
pub(super) struct Round {
    /// RTT of its segments, s.
    pub(super) rtt: f64,
    /// Queueing delay, s: the usual one, and the longest of a segment.
    pub(super) queue: f64,
    pub(super) worst: f64,
    /// Own segments in the queue.
    pub(super) own: f64,
    /// The path has room: own segments in the queue are less than half of the target.
    pub(super) room: bool,
    /// Share of its segments that were lost.
    pub(super) lost: f64,
}

impl Delay {
    pub(super) fn new(followed: bool) -> Self {
        Self {
            followed,
            samples: Samples::NONE,
            rtts: None,
            handshake: NOMINAL_RTT,
            base: f64::INFINITY,
            shift: 0.0,
            noise: 0.0,
            queue: 0.0,
            longest: 0.0,
        }
    }

    /// Adds an RTT.
    pub(super) fn add(&mut self, rtt: Duration) {
        self.base = self.base.min(rtt.as_secs_f64());
        self.samples.add(rtt);
    }

    /// Adds the interval of a rate sample, s: an upper bound of an RTT, the only one that a recovery has.
    pub(super) fn bound(&mut self, interval: f64) {
        if self.base <= 1.001 * interval {
            self.samples.bound(interval);
        }
    }

    /// Evaluates the completed round; `None` before the first RTT. Only a round that was `undisturbed` by probes shows the
    /// noise of the path.
    pub(super) fn end_round(&mut self, undisturbed: bool) -> Option<Delays> {
        let sampled = self.samples.take();
        self.rtts = sampled.or(self.rtts);
        let rtts = self.rtts.filter(|_| self.base.is_finite())?;
        let rtt = rtts.lower;
        if let Some(many) = sampled.filter(|r| r.many) {
            self.shift = self.shift.min((rtt - self.base).max(0.0));
            if undisturbed {
                self.noise = many.lower - many.least;
            }
        }
        let empty = if self.followed { self.base + self.shift } else { rtt };
        self.queue = (rtt - empty).max(0.0);
        // In a recovery the only RTTs are upper bounds: they do not show how long the queue can be.
        let measured = self.followed && sampled.is_some_and(|r| r.measured);
        let worst = if measured { rtts.peak - empty } else { self.queue };
        let unprecedented = self.queue > 2.0 * self.longest;
        self.longest = (FORGET * self.longest).max(if measured { worst } else { 0.0 });
        Some(Delays { rtt, empty, worst, unprecedented, sampled })
    }

    /// Whether a queueing delay, s, is that of a full queue: at least 80 % of the longest one seen, and longer than jitter.
    pub(super) fn is_full(&self, worst: f64) -> bool {
        worst > FULL * self.longest && worst > OWN_SHARE * self.base
    }

    /// Whether the option `delay` is on.
    pub(super) fn is_followed(&self) -> bool {
        self.followed
    }

    /// With an empty queue the RTT was this one, s: what is beyond the base is no queue.
    pub(super) fn lengthen(&mut self, rtt: f64) {
        self.shift = self.shift.max(rtt - self.base);
    }

    /// Usual RTT, s.
    pub(super) fn rtt(&self) -> f64 {
        self.rtts.map_or(self.handshake, |r| r.median)
    }

    /// RTT that hardly any segment exceeds, s.
    pub(super) fn peak(&self) -> f64 {
        self.rtts.map_or(self.handshake, |r| r.peak)
    }

    /// Minimum RTT, s, or the usual one before there is any of data.
    pub(super) fn minimum(&self) -> f64 {
        if self.base.is_finite() { self.base } else { self.rtt() }
    }
}
