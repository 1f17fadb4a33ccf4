//! What a sender keeps of a repair that is under way: how much may leave ([`prr`]), whether the reduction was right
//! ([`undo`], [`frto`]), how long its segments may be ([`black_hole`]). Each part answers; the sender acts.

pub(crate) mod black_hole;
pub(crate) mod frto;
pub(crate) mod mtu_search;
pub(crate) mod prr;
pub(crate) mod undo;

use skyhaul_base::{Duration, Instant};

/// State of repairs. It appears with the first one: most flows of a large run are without.
#[derive(Clone, Debug)]
pub(crate) struct Repair {
    /// Everything outstanding at its start, or the segment that started it: the recovery ends there.
    pub(crate) recovery_point: u64,
    /// Partial acknowledgements within this recovery (NewReno).
    pub(crate) partial_acks: u32,
    /// Bytes that limited transmit sent beyond the window since `SND.UNA` last moved.
    pub(crate) limited_sent: u64,
    /// The counting estimate of [`Pipe::Counter`](skyhaul_cc::Pipe), bytes; it may fall below zero.
    pub(crate) pipe_counter: i64,
    /// Bytes that duplicates inflate the window by, in a recovery that the algorithm knows nothing of.
    pub(crate) inflation: u64,
    /// Retransmissions while what a timeout found was repaired.
    pub(crate) after_timeouts: u64,
    /// What was outstanding when an ECN echo was answered: the window was reduced for all of it. 0 before the first.
    pub(crate) marked_until: u64,
    pub(crate) marks_answered: u64,
    pub(crate) prr: prr::Prr,
    /// What may prove spurious.
    pub(crate) undo: undo::Undo,
    pub(crate) frto: frto::Frto,
    /// The path swallows long packets, or seems to.
    pub(crate) hole: Option<black_hole::Hole>,
}

impl Repair {
    pub(crate) fn new() -> Self {
        Self {
            recovery_point: 0,
            partial_acks: 0,
            limited_sent: 0,
            pipe_counter: 0,
            after_timeouts: 0,
            inflation: 0,
            marked_until: 0,
            marks_answered: 0,
            prr: prr::Prr::default(),
            undo: undo::Undo::default(),
            frto: frto::Frto::NEW,
            hole: None,
        }
    }

    /// Nothing of the last reduction can be undone any more, and nothing is tried to find out.
    pub(crate) fn forget(&mut self) {
        self.undo.forget();
        self.frto.stop();
    }

    /// A segment that starts at `seq` leaves again.
    pub(crate) fn resent(&mut self, now: Instant, seq: u64) {
        self.undo.resent(now, seq);
    }
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct News {
    /// `SND.UNA` moved.
    pub(crate) advanced: bool,
    /// It is a duplicate acknowledgement.
    pub(crate) duplicate: bool,
    /// It delivers data that was not sent again after the timeout.
    pub(crate) original: bool,
    /// The age of the timestamp that it echoes, if something that it acknowledges was sent then.
    pub(crate) age: Option<Duration>,
}
