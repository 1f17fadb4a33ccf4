//! The states of a sender: what it does about losses, what it has to do next, and why it does no more.
//!
//! ```text
//!            a loss shows by acknowledgements
//!            or by time (RFC 6675 §5, RFC 8985 §6)
//!   ┌──────────────────────────────────────────────┐
//!   │                                              ▼
//! Open ◄── its `point` acknowledged, undone ─── Recovery ◄─┐ partial acknowledgement (RFC 6582 §3.2),
//!   │ ▲                                            │    └──┘ a loss that the control must know of
//!   │ │                                            │
//!   │ └─ `recover` acknowledged, undone ─┐         │ timeout
//!   │                                    │         ▼
//!   └─────────── timeout ─────────────► Loss ◄─────┘
//!                (RFC 6298 §5)           │ ▲ timeout
//!                                        └─┘
//! ```
//! The end of an outage, a shorter path MTU and the control's request to rewind lead to Loss from every state, too
//! (`Engine::repair_from_start`).

use crate::accecn::Tally;
use crate::recovery::prr::Prr;
use alloc::boxed::Box;
use skyhaul_base::Instant;
use skyhaul_cc::{Clock, Phase};

/// What the sender does about losses; see the module documentation.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// Nothing is known to be lost.
    Open,
    /// A fast recovery.
    Recovery(Box<Recovery>),
    /// The repair after a timeout, by slow start.
    Loss,
}

/// A fast recovery.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    /// The offset whose acknowledgement ends it: the end of everything outstanding at its start, or of the segment that
    /// triggered it.
    pub(super) point: u64,
    /// Partial acknowledgements so far (NewReno).
    pub(super) partial_acks: u32,
    /// The counter estimate of [`Pipe::Counter`](skyhaul_cc::Pipe), bytes; may be negative.
    pub(super) pipe: i64,
    pub(super) prr: Prr,
    pub(super) report: Report,
}

/// Whether a recovery was reported to the congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// The control was notified.
    Notified,
    /// The control was not notified; the module `classify` says why. Duplicate ACKs inflate the window by `inflation` bytes.
    Quiet { inflation: u64 },
}

impl State {
    /// Its name for observers.
    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self {
            Self::Open => Phase::Open,
            Self::Recovery(_) => Phase::Recovery,
            Self::Loss => Phase::Loss,
        }
    }
    /// The phase that was reported to the congestion control: an unreported recovery counts as open.
    #[inline]
    pub(super) fn reported_phase(&self) -> Phase {
        if self.is_quiet() { Phase::Open } else { self.phase() }
    }
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
    #[inline]
    pub(super) fn is_loss(&self) -> bool {
        matches!(self, Self::Loss)
    }
    /// Whether it is a recovery of which the control does not know.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.recovery().is_some_and(|r| r.report != Report::Notified)
    }
    /// The recovery in progress.
    #[inline]
    pub(super) fn recovery(&self) -> Option<&Recovery> {
        if let Self::Recovery(r) = self { Some(r) } else { None }
    }
    /// The same, to be changed.
    #[inline]
    pub(super) fn recovery_mut(&mut self) -> Option<&mut Recovery> {
        if let Self::Recovery(r) = self { Some(r) } else { None }
    }
}

/// The data whose loss has been answered: no fast retransmit below its end (RFC 6582 `recover`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AnsweredLoss {
    pub(super) until: u64,
    pub(super) repair: Repaired,
}

/// How answered data is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repaired {
    ByRecovery,
    ByGoBack,
}

/// What limited the sender when its loop ended last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// The congestion window.
    Window,
    /// The application had nothing more.
    App,
    /// The peer's window, or the pacer or burst limit of a sender that would not fill its window.
    Other,
}

/// Why data is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    /// The algorithm requested it.
    pub(super) algorithm: bool,
    pub(super) outage: Outage,
}

/// Whether a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outage {
    No,
    /// A link is down; no probe was sent since.
    Unprobed,
    /// A link is down, and a probe was sent.
    Probed,
}

impl Hold {
    /// No data is held back.
    pub(super) const NO: Self = Self { algorithm: false, outage: Outage::No };

    #[inline]
    pub(super) fn is_on(self) -> bool {
        self != Self::NO
    }
    #[inline]
    pub(super) fn is_outage(self) -> bool {
        self.outage != Outage::No
    }
}

/// Whether the application or the sender has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Termination {
    No,
    /// The application has closed both directions: the wait at a closed window is no longer than the wait for the peer's
    /// FIN.
    Abandoned,
    /// The peer was given up.
    GivenUp,
}

/// What is due besides the send loop: a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PendingActions(u8);

impl PendingActions {
    /// One segment, whatever the window: a tail loss probe that is due, otherwise the first segment to repair. Without
    /// RACK this is the one at `SND.UNA`.
    pub(super) const HEAD: Self = Self(1);
    /// The algorithm judged the segment at `SND.UNA` lost.
    pub(super) const SUSPICION: Self = Self(2);
    /// A window probe.
    pub(super) const WINDOW_PROBE: Self = Self(4);

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
    #[inline]
    pub(super) fn has(self, what: Self) -> bool {
        self.0 & what.0 != 0
    }
    pub(super) fn set(&mut self, what: Self) {
        self.0 |= what.0;
    }
    pub(super) fn clear(&mut self, what: Self) {
        self.0 &= !what.0;
    }
    /// Takes it out; whether it was there.
    #[inline]
    pub(super) fn take(&mut self, what: Self) -> bool {
        let had = self.has(what);
        self.clear(what);
        had
    }
}

/// The send loop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loop {
    /// The send loop must run; what triggered it.
    pub(super) pending: Option<Clock>,
    /// Segments that its current run has sent.
    pub(super) sent: u32,
}

/// What has arrived, and packet-timed rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    /// Rounds completed, and the end of the current one.
    pub(super) round: u64,
    pub(super) round_end: u64,
    /// End of the highest byte known to have arrived.
    pub(super) highest: u64,
    /// Bytes known to have arrived.
    pub(super) bytes: u64,
    /// Marks that accurate ECN reports; `None` without it.
    pub(super) marks: Option<Tally>,
}

/// How long the peer has let the sender wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    /// Expirations of the persist timer in a row.
    pub(super) persist_backoff: u32,
    /// Unanswered window probes.
    pub(super) unanswered: u32,
    /// `SND.UNA` when a timer last looked at it, and since when it has not advanced.
    pub(super) stuck: (u64, Instant),
}
