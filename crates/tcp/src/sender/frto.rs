//! Spurious timeouts without any option: F-RTO (RFC 5682 §3, the version for SACK, which needs no SACK).
//!
//! After a timeout only the first segment is sent again. If its acknowledgement leaves something open, two *new*
//! segments go instead of old ones, and the next acknowledgement tells: if it delivers something that was sent before
//! the timeout and not again, it was on its way all the time; if it does not, things are as the timer said and the
//! repair goes on, one round trip later.

use super::undo::News;
use super::{Arrival, Out, Phase, Sender};
use crate::store::Store;
use skyhaul_base::Instant;
use skyhaul_cc::Blocked;

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
pub(super) struct Frto {
    step: Step,
    /// `RecoveryPoint`: `SND.MAX` at the timeout.
    point: u64,
    /// When the timer expired.
    since: Instant,
}

impl Frto {
    pub(super) const NEW: Self = Self { step: Step::Off, point: 0, since: Instant::ZERO };

    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.step != Step::Off
    }
    /// The next acknowledgement decides.
    #[inline]
    pub(super) fn decides(&self) -> bool {
        matches!(self.step, Step::Second(_))
    }
    pub(super) fn stop(&mut self) {
        self.step = Step::Off;
    }
}

impl<S: Store> Sender<S> {
    /// Step 1: the timer expired; `before` is the phase it found. Not in a recovery, whose retransmissions would blur
    /// the picture (as in Linux), nor in the repair after an earlier timeout, nor with a receiver that goes back on
    /// its word.
    pub(super) fn begin_frto(&mut self, now: Instant, before: Phase, reneged: bool) {
        let fresh = before == Phase::Open || self.frto.is_active();
        if !(self.config.f_rto && fresh && self.evidence_counts()) || reneged {
            self.frto.stop();
            return;
        }
        self.frto = Frto { step: Step::First, point: self.sb.max(), since: now };
        self.undo.watch = true;
        self.force_head = true;
        if let (None, Some(head)) = (&self.rack, self.sb.head()) {
            self.nxt = head.end();
        }
    }

    /// The acknowledgement, not yet entered into the scoreboard, delivers data below `RecoveryPoint` that was not
    /// sent again after the timeout. Where the timeout cleared the scoreboard, selective acknowledgements repeat
    /// what they said before it.
    #[cold]
    #[inline(never)]
    pub(super) fn delivers_original(&self, a: &Arrival<'_>) -> bool {
        let keep = self.sack && self.config.keep_sack_after_rto;
        let blocks = if keep { a.blocks } else { &[] };
        let all = core::iter::once((self.sb.una(), a.ack)).chain(blocks.iter().copied());
        let (point, since) = (self.frto.point, self.frto.since);
        all.into_iter().any(|(from, to)| {
            from < to && self.sb.undelivered(from, to.min(point)).any(|s| s.last_sent < since)
        })
    }

    /// Steps 2 and 3: an acknowledgement arrived. True if the timeout was spurious.
    pub(super) fn frto_step(&mut self, news: &News) -> bool {
        match self.frto.step {
            Step::First if news.advanced => {
                // What reaches RecoveryPoint leaves nothing to be told by (2a); without new data nothing tells.
                if self.sb.una() < self.frto.point && self.new_len().is_ok() {
                    self.frto.step = Step::Second(NEW_SEGMENTS);
                } else {
                    self.end_frto();
                }
            }
            Step::Second(_) if news.original => return true,
            // RFC 5682 wants a window of at most three segments here: after a timeout and one acknowledgement the
            // algorithm has no more by itself.
            Step::Second(_) if news.advanced || news.duplicate => self.end_frto(),
            _ => {}
        }
        false
    }

    /// The loss was real, or nothing tells: what is lost is sent again as ever.
    pub(super) fn end_frto(&mut self) {
        let active = self.frto.is_active();
        self.frto.stop();
        if active && self.rack.is_none() && self.phase == Phase::Loss {
            self.nxt = self.sb.una();
        }
    }

    /// The send loop while F-RTO is at work: nothing but the new segments of step 2b.
    #[cold]
    #[inline(never)]
    pub(super) fn choose_by_frto(&mut self, now: Instant) -> Result<Out, Blocked> {
        let Step::Second(left @ 1..) = self.frto.step else { return Err(Blocked::Cwnd) };
        let len = self.new_len()?;
        self.frto.step = Step::Second(left - 1);
        Ok(self.send_new_by_time(now, len))
    }
}
