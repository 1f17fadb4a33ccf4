//! Spurious timeouts without any option: F-RTO (RFC 5682 §3, the version for SACK, which needs no SACK).
//!
//! After a timeout only the first segment is sent again. If its acknowledgement leaves something open, two *new*
//! segments go instead of old ones, and the next acknowledgement tells: if it delivers something that was sent before
//! the timeout and not again, it was on its way all the time; if it does not, things are as the timer said and the
//! repair goes on, one round trip later.

use super::News;
use skyhaul_base::Instant;

/// New segments between the two acknowledgements (step 2b).
const NEW_SEGMENTS: u8 = 2;

/// The step of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Off,
    /// Step 2: the first segment was sent again, its acknowledgement is awaited.
    First,
    /// Step 3: so many new segments may go, the next acknowledgement decides.
    Second(u8),
}

/// State of F-RTO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frto {
    step: Step,
    /// `RecoveryPoint`: `SND.MAX` at the timeout.
    point: u64,
    /// When the timer expired.
    since: Instant,
}

impl Frto {
    pub(crate) const NEW: Self = Self { step: Step::Off, point: 0, since: Instant::ZERO };

    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.step != Step::Off
    }
    /// The next acknowledgement decides.
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
    /// `RecoveryPoint`, and when the timer expired.
    pub(crate) fn origin(&self) -> (u64, Instant) {
        (self.point, self.since)
    }

    /// Steps 2 and 3: an acknowledgement arrived, and `SND.UNA` is now `una`. `new_data`: some may be sent.
    pub(crate) fn step(&mut self, news: &News, una: u64, new_data: impl FnOnce() -> bool) -> Verdict {
        match self.step {
            // What reaches RecoveryPoint leaves nothing to be told by (2a); without new data nothing tells.
            Step::First if news.advanced && una < self.point && new_data() => {
                self.step = Step::Second(NEW_SEGMENTS);
                Verdict::Open
            }
            Step::First if news.advanced => Verdict::Genuine,
            Step::Second(_) if news.original => Verdict::Spurious,
            // RFC 5682 wants a window of at most three segments here: after a timeout and one acknowledgement the
            // algorithm has no more by itself.
            Step::Second(_) if news.advanced || news.duplicate => Verdict::Genuine,
            _ => Verdict::Open,
        }
    }

    /// Whether one more new segment may go (step 2b).
    pub(crate) fn may_send(&self) -> bool {
        matches!(self.step, Step::Second(1..))
    }
    /// One did.
    pub(crate) fn sent(&mut self) {
        if let Step::Second(left) = &mut self.step {
            *left = left.saturating_sub(1);
        }
    }
}

/// What the steps have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing yet.
    Open,
    /// The timeout was spurious.
    Spurious,
    /// The loss was real, or nothing tells: what is lost is sent again as ever.
    Genuine,
}
