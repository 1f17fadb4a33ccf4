//! State of a recovery in a sender: how much may leave ([`prr`]), whether the reduction was spurious ([`undo`],
//! [`frto`]), and how long segments may be ([`black_hole`], [`mtu_search`]). Each part answers questions; the sender acts.

pub(crate) mod black_hole;
pub(crate) mod frto;
pub(crate) mod mtu_search;
pub(crate) mod prr;
pub(crate) mod undo;

use skyhaul_base::{Duration, Instant};

/// State of recoveries. It is created by the first one: most flows of a large run never need it.
#[derive(Clone, Debug)]
pub(crate) struct Repair {
    /// Bytes that limited transmit sent beyond the window since `SND.UNA` last moved.
    pub(crate) limited_sent: u64,
    /// Retransmissions during the repair after timeouts.
    pub(crate) after_timeouts: u64,
    /// End of the data outstanding when an ECN echo was answered: the window was reduced for all of it. 0 before
    /// the first.
    pub(crate) marked_until: u64,
    /// ECN echoes answered, at most one per window.
    pub(crate) marks_answered: u64,
    /// Evidence that a reduction was spurious.
    pub(crate) undo: undo::Undo,
    pub(crate) frto: frto::Frto,
    /// A suspected path MTU black hole.
    pub(crate) hole: Option<black_hole::Hole>,
}

impl Repair {
    pub(crate) fn new() -> Self {
        Self {
            limited_sent: 0,
            after_timeouts: 0,
            marked_until: 0,
            marks_answered: 0,
            undo: undo::Undo::default(),
            frto: frto::Frto::NEW,
            hole: None,
        }
    }

    /// The last reduction can no longer be undone; stops the detection of spurious timeouts.
    pub(crate) fn forget(&mut self) {
        self.undo.forget();
        self.frto.stop();
    }

    /// A segment that starts at `seq` is retransmitted.
    pub(crate) fn resent(&mut self, now: Instant, seq: u64) {
        self.undo.resent(now, seq);
    }
}

/// Facts about an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSummary {
    /// `SND.UNA` moved.
    pub(crate) advanced: bool,
    /// It is a duplicate acknowledgement.
    pub(crate) duplicate: bool,
    /// It covers data that was not retransmitted after the timeout.
    pub(crate) original: bool,
    /// Age of the timestamp that it echoes, if data that it acknowledges was sent then.
    pub(crate) age: Option<Duration>,
}
