//! Detection of spurious timeouts: F-RTO (RFC 5682), the SACK-enhanced version of §3.1 where SACK was agreed on, and the
//! basic one of §2.1 where it was not.
//!
//! After a timeout only the first segment is retransmitted. If its acknowledgement leaves data outstanding, two
//! *new* segments are sent instead of old ones, and the next acknowledgement decides. If it covers data sent before
//! the timeout and not retransmitted, that data was merely delayed. Otherwise the timeout was genuine, and the
//! repair continues one RTT later.
//!
//! The versions differ in step 2: a duplicate acknowledgement ends the basic one, while the SACK-enhanced one waits for the
//! acknowledgement of the head.
//!
//! One deviation: an acknowledgement of such data counts in step 3 even if it also covers more than RecoveryPoint, for which §3.1
//! step 3a takes the timeout for genuine. Linux does the same.

use super::AckSummary;
use skyhaul_base::Instant;

/// New segments between the two acknowledgements (step 2b).
const NEW_SEGMENTS: u8 = 2;

/// The step of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Off,
    /// Step 2: the first segment was retransmitted, and its acknowledgement is awaited.
    First,
    /// Step 3: this many new segments may be sent, and the next acknowledgement decides.
    Second(u8),
}

/// State of F-RTO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frto {
    step: Step,
    /// `RecoveryPoint`: `SND.MAX` at the timeout.
    point: u64,
    /// Time of the timeout.
    since: Instant,
}

impl Frto {
    pub(crate) const NEW: Self = Self { step: Step::Off, point: 0, since: Instant::ZERO };

    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.step != Step::Off
    }
    /// Step 2: whether the acknowledgement of the retransmitted head is still awaited.
    pub(crate) fn waits(&self) -> bool {
        self.step == Step::First
    }
    /// Step 3: whether the next acknowledgement decides.
    #[inline]
    pub(crate) fn decides(&self) -> bool {
        matches!(self.step, Step::Second(_))
    }
    pub(crate) fn stop(&mut self) {
        self.step = Step::Off;
    }
    /// Step 1: the timer expired at `now` with everything up to `point` sent.
    pub(crate) fn begin(&mut self, point: u64, now: Instant) {
        *self = Self { step: Step::First, point, since: now };
    }
    /// `RecoveryPoint`, and the time of the timeout.
    pub(crate) fn origin(&self) -> (u64, Instant) {
        (self.point, self.since)
    }

    /// Steps 2 and 3: processes an acknowledgement; `SND.UNA` is now `una`. `sack`: the version of §3.1. `new_data`: new
    /// data may be sent.
    pub(crate) fn step(
        &mut self,
        summary: &AckSummary,
        una: u64,
        sack: bool,
        new_data: impl FnOnce() -> bool,
    ) -> Verdict {
        match self.step {
            // §2.1 step 2a; in §3.1 step 2 duplicates leave the sender where it is.
            Step::First if summary.duplicate && !sack => Verdict::Genuine,
            // An acknowledgement of RecoveryPoint decides nothing (2a), nor does one without new data to send.
            Step::First if summary.advanced && una < self.point && new_data() => {
                self.step = Step::Second(NEW_SEGMENTS);
                Verdict::Open
            }
            Step::First if summary.advanced => Verdict::Genuine,
            Step::Second(_) if summary.original => Verdict::Spurious,
            // RFC 5682 requires a window of at most three segments here; after a timeout and one acknowledgement an
            // algorithm has no more anyway.
            Step::Second(_) if summary.advanced || summary.duplicate => Verdict::Genuine,
            _ => Verdict::Open,
        }
    }

    /// Whether one more new segment may go (step 2b).
    pub(crate) fn may_send(&self) -> bool {
        matches!(self.step, Step::Second(1..))
    }
    /// A new segment was sent.
    pub(crate) fn sent(&mut self) {
        if let Step::Second(left) = &mut self.step {
            *left = left.saturating_sub(1);
        }
    }
}

/// Result of the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Undecided.
    Open,
    /// The timeout was spurious.
    Spurious,
    /// The loss was real, or nothing can be decided: lost data is retransmitted as usual.
    Genuine,
}
