//! The start of a connection: probes open the window, or a short transfer is sent at once.

use super::train::{ENOUGH, MOST};
use skyhaul_base::{Duration, Instant};

/// Initial window, segments (RFC 6928).
pub(super) const FIRST: f64 = 10.0;
/// Probes sent with it: the 64 segments of the papers, since nothing else is known of the path.
pub(super) const FIRST_PROBES: f64 = 64.0;
/// Transfers up to this size, segments, are pages: twice the data carried in their first RTT.
pub(super) const PAGE: f64 = 128.0;
/// Pacing rate of a page in windows per RTT: a page waits for its last segments.
pub(super) const PAGE_PACE: f64 = 1.25;
/// Share of a page that must have arrived at its deadline; with less the path is busy.
const PAGE_ARRIVED: f64 = 0.75;

/// A start in progress. It ends for good: with the first queue, with losses from a full one, or when most probes of a
/// round vanish.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Start {
    /// Each answered probe opens the window by one.
    Probing {
        /// Congestion window at the beginning of this round, segments.
        begun: f64,
        /// Probes sent in the last round and in this one.
        sent: [f64; 2],
    },
    /// The first probes all vanished: this connection is a latecomer on a full path, and goes on by slow start.
    Latecomer {
        /// Congestion window at the beginning of this round, segments: late answers still count from it.
        begun: f64,
    },
}

/// What the answers of a round mean for the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    GoesOn,
    /// From now on it is a [`Start::Latecomer`].
    FoundFull,
    /// The path has no room for most of what it was asked for.
    Ends,
}

impl Start {
    pub(super) const NEW: Self = Self::Probing { begun: FIRST, sent: [0.0; 2] };

    /// The window that so many answers in this round make, segments.
    pub(super) fn opened(&self, answers: f64) -> f64 {
        let (Self::Probing { begun, .. } | Self::Latecomer { begun }) = self;
        begun + answers
    }

    /// Judges the answers of a round, which are those to the probes of the round before.
    pub(super) fn judge(&mut self, answers: f64, window: f64) -> Verdict {
        match *self {
            Self::Probing { begun, sent: [asked, _] } if asked >= ENOUGH && answers < MOST * asked => {
                if window > FIRST + 1.0 {
                    return Verdict::Ends;
                }
                *self = Self::Latecomer { begun };
                Verdict::FoundFull
            }
            _ => Verdict::GoesOn,
        }
    }

    /// The next round begins, with this congestion window, segments.
    pub(super) fn next_round(&mut self, cwnd: f64) {
        match self {
            Self::Probing { begun, sent } => (*begun, *sent) = (cwnd, [sent[1], 0.0]),
            Self::Latecomer { begun } => *begun = cwnd,
        }
    }

    /// So many probes are sent in this round.
    pub(super) fn asked(&mut self, count: u32) {
        if let Self::Probing { sent, .. } = self {
            sent[1] = f64::from(count);
        }
    }
}

/// A short transfer that is sent at once, with low priority beyond the initial window: over a free path it arrives in one
/// RTT, and a busy one loses nothing by it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// Its size, bytes.
    pub(super) size: u64,
    /// When it must have been acknowledged; `None` once it was.
    pub(super) deadline: Option<Instant>,
}

impl Page {
    /// A page sent now over a path with this RTT, s.
    pub(super) fn new(size: u64, now: Instant, rtt: f64) -> Self {
        // It was sent within one RTT, and the acknowledgement takes another; 50 ms for timers and for what delays acknowledgements.
        Self { size, deadline: Some(now + Duration::from_secs_f64(2.0 * rtt + 0.05)) }
    }

    /// Whether new data at this offset, bytes, is sent with low priority.
    pub(super) fn is_low(&self, offset: u64, smss: f64) -> bool {
        offset >= (FIRST * smss) as u64 && offset < self.size
    }

    /// At the deadline, with so many bytes delivered: whether the low-priority data is lost.
    pub(super) fn is_lost(&self, delivered: f64) -> bool {
        delivered < PAGE_ARRIVED * self.size as f64
    }
}
