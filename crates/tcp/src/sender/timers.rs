//! What expires: retransmission, persist, probe train, pacing, the algorithm's own wake-up.

use super::{Clock, FinState, Phase, Sender, Sign};
use crate::store::Store;
use skyhaul_base::Instant;
use skyhaul_cc::CongestionControl;

impl<S: Store> Sender<S> {
    /// The earliest deadline; [`Instant::MAX`] if there is none.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Instant {
        self.rto_at
            .min(self.rack_at)
            .min(self.persist_at)
            .min(self.wake_at)
            .min(self.pace_at)
            .min(self.prober.next_timeout())
    }

    /// Handles every deadline that has passed.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        // First: it puts the retransmission timer off (RFC 8985 §8).
        if self.rack_at <= now {
            self.on_rack_timer(now);
        }
        if self.rto_at <= now {
            self.on_rto(now);
        }
        if self.persist_at <= now {
            self.on_persist(now);
        }
        if self.pace_at <= now {
            self.pace_at = Instant::MAX;
            self.pending = Some(self.pending.unwrap_or(Clock::Timer));
        }
        if self.prober.next_timeout() <= now {
            self.prober.advance(now);
        }
        if self.wake_at <= now {
            self.wake_at = Instant::MAX;
            self.call(now, |cc, cx| cc.on_wake(cx));
            self.pending = Some(self.pending.unwrap_or(Clock::Timer));
        }
    }

    fn on_rto(&mut self, now: Instant) {
        if self.sb.is_empty() {
            self.rto_at = Instant::MAX;
            return;
        }
        let tries = self.sb.head().map_or(0, |h| h.rtx_count);
        if self.config.max_retransmissions > 0 && tries >= self.config.max_retransmissions {
            self.gave_up = true;
            self.stop();
            return;
        }
        self.counters.timeouts += 1;
        self.rtt.back_off();
        let backoff = self.rtt.backoff();
        // FlightSize as of the loss is what the algorithm halves, so it is told first.
        self.refresh(now);
        self.judge(now, Sign::Timeout, |cc, cx| cc.on_timeout(cx, backoff));
        self.may_undo(backoff > 1, self.phase != Phase::Open);
        let before = self.phase;
        let reneged = self.sb.head().is_some_and(|h| h.sacked);
        self.phase = Phase::Loss;
        self.path.after_timeout = true;
        self.suspected = false;
        self.prober.begin_epoch();
        self.recover = self.sb.max();
        self.dupacks = 0;
        self.go_back(now, false);
        // What RACK leaves in flight may fill the window; the head goes all the same.
        self.force_head = self.rack.is_some();
        self.begin_frto(now, before, reneged);
        // Re-armed when the head is retransmitted; a closed window must not leave it stopped.
        self.rto_at = now + self.rtt.rto();
        self.pending = Some(Clock::Timer);
    }

    fn on_persist(&mut self, now: Instant) {
        self.persist_backoff = (self.persist_backoff + 1).min(16);
        let waiting = self.end > self.sb.max() || self.fin == FinState::Wanted;
        if !waiting || !self.sb.is_empty() {
            self.persist_at = Instant::MAX;
            return;
        }
        if self.edge > self.sb.max() {
            // The window is open but small: after a timeout a small segment may go (RFC 9293 §3.8.6.2.1).
            self.force_small = true;
            self.pending = Some(self.pending.unwrap_or(Clock::Timer));
            self.persist_at = Instant::MAX;
        } else {
            self.window_probe = true;
            let wait = self.rtt.rto() * (1 << self.persist_backoff);
            self.persist_at = now + wait.min(self.config.rto.max);
        }
    }
}
