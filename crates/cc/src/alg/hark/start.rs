//! The start of a connection: probes open the window, or a short transfer is sent at once.

use super::train::{ANSWERED_SHARE, FEWEST_PROBES};
use skyhaul_base::{Duration, Instant};

/// Initial window, segments (RFC 6928).
pub(super) const FIRST: f64 = 10.0;
/// Probes sent with the initial window: 64 segments, as in the papers on TCP-Peach, since nothing else is known of the
/// path.
pub(super) const FIRST_PROBES: f64 = 64.0;
/// Transfers up to this size, segments, are pages: twice [`FIRST_PROBES`].
pub(super) const PAGE: f64 = 128.0;
/// Pacing rate of a page in windows per RTT: a page waits for its last segments.
pub(super) const PAGE_PACE: f64 = 1.25;
/// Share of a page's first window that must have arrived at the deadline; with less the path is busy.
const PAGE_ARRIVED: f64 = 0.75;

/// A start in progress. It ends for good with the first queue, with losses from a full queue, or when more than a fifth of
/// a round's probes are not answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Start {
    /// Each answered probe opens the window by one.
    Probing {
        /// Congestion window at the beginning of this round, segments.
        round_cwnd: f64,
        /// Probes sent in the last round and in this one.
        sent: [f64; 2],
    },
    /// At most one of the first probes was answered, so the path is full of other traffic, or the SYN was lost: this connection
    /// goes on by slow start.
    Latecomer {
        /// Congestion window at the beginning of this round, segments: late answers still count from it.
        round_cwnd: f64,
    },
}

/// What the answers of a round mean for the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The start goes on as before.
    GoesOn,
    /// From now on the start is a [`Start::Latecomer`].
    FoundFull,
    /// The start ends: more than a fifth of the probes of a round were not answered.
    Ends,
}

impl Start {
    pub(super) const NEW: Self = Self::Probing { round_cwnd: FIRST, sent: [0.0; 2] };

    /// The window that this number of answered probes opens in this round, segments.
    pub(super) fn window_with(&self, answers: f64) -> f64 {
        let (Self::Probing { round_cwnd, .. } | Self::Latecomer { round_cwnd }) = self;
        round_cwnd + answers
    }

    /// Judges the answers of a round, which are those to the probes of the round before. `window`: the congestion window,
    /// segments.
    pub(super) fn judge(&mut self, answers: f64, window: f64) -> Verdict {
        match *self {
            Self::Probing { round_cwnd, sent: [sent_before, _] }
                if sent_before >= FEWEST_PROBES && answers < ANSWERED_SHARE * sent_before =>
            {
                // One answer may be luck; more have opened the window, so the path had room for some.
                if window > FIRST + 1.0 {
                    return Verdict::Ends;
                }
                *self = Self::Latecomer { round_cwnd };
                Verdict::FoundFull
            }
            _ => Verdict::GoesOn,
        }
    }

    /// The next round begins, with this congestion window, segments.
    pub(super) fn next_round(&mut self, cwnd: f64) {
        match self {
            Self::Probing { round_cwnd, sent } => (*round_cwnd, *sent) = (cwnd, [sent[1], 0.0]),
            Self::Latecomer { round_cwnd } => *round_cwnd = cwnd,
        }
    }

    /// Records how many probes are sent in this round.
    pub(super) fn set_sent(&mut self, count: u32) {
        if let Self::Probing { sent, .. } = self {
            sent[1] = f64::from(count);
        }
    }
}

/// A short transfer. Its first window is the initial window and up to [`FIRST_PROBES`] segments of low priority: over a free
/// path that window arrives in one RTT, and a busy path loses nothing by it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// The data sent in the first RTT, bytes: all of the page, or 74 segments.
    pub(super) first_window: u64,
    /// When three quarters of the first window must have arrived; `None` afterwards.
    pub(super) deadline: Option<Instant>,
}

impl Page {
    /// A page whose first window, bytes, is sent from now on over a path with this RTT, s.
    pub(super) fn new(first_window: u64, now: Instant, rtt: f64) -> Self {
        // The first window is sent within one RTT, and its acknowledgement takes another; 50 ms for timers and for what delays
        // acknowledgements.
        Self { first_window, deadline: Some(now + Duration::from_secs_f64(2.0 * rtt + 0.05)) }
    }

    /// Whether new data at this offset, bytes, is sent with low priority.
    pub(super) fn is_low(&self, offset: u64, smss: f64) -> bool {
        offset >= (FIRST * smss) as u64 && offset < self.first_window
    }

    /// At the deadline, with so many bytes delivered: whether the low-priority data is lost.
    pub(super) fn is_lost(&self, delivered: f64) -> bool {
        delivered < PAGE_ARRIVED * self.first_window as f64
    }
}
