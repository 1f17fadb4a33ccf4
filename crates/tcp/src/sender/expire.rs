//! Timer expirations: retransmission, persist, probe train, pacing, and the algorithm's wake-up.

use super::space::FinState;
use super::state::{PendingActions, State, Termination};
use super::{Clock, CongestionSignal, Engine, Sender};
use crate::store::Store;
use crate::timer::Timer;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::CongestionControl;

impl<S: Store> Sender<S> {
    /// Handles all expired deadlines. The caller then polls for segments to send.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.engine.timers.next() > now {
            return;
        }
        self.expire(now);
    }
    /// The path works again, as another connection has shown: a retransmission timer that has backed off expires now, and starts
    /// anew. False if there is none, or if the retransmissions are used up: the timer then gives the peer up, and the last answer
    /// may be on its way.
    pub(crate) fn retry(&mut self, now: Instant) -> bool {
        let (most, backoff) = (self.engine.config.max_retransmissions, self.engine.rtt.backoff());
        let may_repeat = backoff > 0 && (most == 0 || backoff < most);
        let waits = may_repeat && !self.engine.board.is_empty() && !self.engine.hold.is_on();
        if waits {
            self.general().hurry(now);
        }
        waits
    }
}

impl<S: Store> Engine<S> {
    pub(super) fn expire(&mut self, now: Instant) {
        // First, since this timer postpones the retransmission timer (RFC 8985 §8).
        if self.timers.expired(Timer::Loss, now) {
            self.on_loss_timer(now);
        }
        if self.timers.expired(Timer::Retransmission, now) {
            self.on_retransmission_timer(now);
        }
        if self.timers.expired(Timer::Persist, now) {
            self.on_persist_timer(now);
        }
        if self.timers.expired(Timer::Pacing, now) {
            self.timers.stop(Timer::Pacing);
            self.run_loop(Clock::Timer);
        }
        if self.timers.expired(Timer::Train, now) {
            self.prober.advance(now);
            self.timers.set(Timer::Train, self.prober.next_departure());
        }
        if self.timers.expired(Timer::Wake, now) {
            self.timers.stop(Timer::Wake);
            self.tell(now, |cc, cx| cc.on_wake(cx));
            self.run_loop(Clock::Timer);
        }
    }

    /// The retransmission timer expires now, and its backoff ends.
    #[cold]
    fn hurry(&mut self, now: Instant) {
        // The backoff ends only afterwards: to the control and to `Undo` this timeout is one of several in a row, not the
        // first of a new episode.
        self.on_retransmission_timer(now);
        self.rtt.end_backoff(&self.config.rto);
    }

    fn on_retransmission_timer(&mut self, now: Instant) {
        // While data is held back, the timer waits as well.
        if self.board.is_empty() || self.hold.is_on() {
            self.timers.stop(Timer::Retransmission);
            return;
        }
        let head = self.board.head();
        let tries = if self.space.window == 0 {
            // The peer has taken its window back, so this repetition is a window probe. A peer that answers those is never
            // given up (RFC 9293 §3.8.6.1, SHLD-17), but one that has vanished is.
            self.silence.unanswered
        } else {
            // Retransmissions for reasons other than a timeout do not show whether the peer is alive.
            head.map_or(0, |h| h.rtx_count).min(self.rtt.backoff())
        };
        if self.is_hopeless(now, tries) {
            return;
        }
        self.silence.unanswered += 1;
        self.counters.timeouts += 1;
        let spared = self.control.policy().losses_are_errors;
        self.rtt.back_off(&self.config.rto, spared);
        let backoff = self.rtt.backoff();
        // The algorithm halves FlightSize at the time of the loss, so it is informed first.
        let path = self.path(now);
        self.report_congestion(now, &path, CongestionSignal::Timeout, |cc, cx| cc.on_timeout(cx, backoff));
        let fresh = self.state.is_open();
        self.prepare_undo(backoff > 1, !fresh);
        let reneged = self.board.head().is_some_and(|h| h.sacked);
        self.state = State::Loss;
        self.after_timeout = true;
        self.due.clear(PendingActions::SUSPICION);
        self.prober.begin_epoch();
        self.answered.until = self.board.max();
        self.dupacks = 0;
        let shorter = self.shorten(now, backoff);
        self.go_back(now, shorter);
        // Segments that RACK leaves in flight may fill the window; the head is sent anyway.
        if self.by_time.is_some() {
            self.due.set(PendingActions::HEAD);
        }
        self.begin_frto(now, fresh, reneged || shorter);
        // Restarted when the head is retransmitted; a closed window must not leave it stopped.
        self.guard_head(now);
        self.run.pending = Some(Clock::Timer);
    }

    /// Whether to give the peer up: after too many retransmissions, or when data has waited too long; if so, stops the
    /// sender. The wait without progress began when the timer that has just expired was started, unless an earlier one
    /// has already expired without progress.
    fn is_hopeless(&mut self, now: Instant, tries: u32) -> bool {
        let limit = self.patience();
        let una = self.board.una();
        if self.silence.stuck.0 != una {
            self.silence.stuck = (una, now - self.rtt.rto());
        }
        let most = self.config.max_retransmissions;
        let hopeless =
            (most > 0 && tries >= most) || (!limit.is_zero() && now - self.silence.stuck.1 >= limit);
        if hopeless {
            self.end = Termination::GivenUp;
            self.stop();
        }
        hopeless
    }

    /// How long data may wait without progress; zero means without end. If the application has closed both directions, it
    /// waits at a closed window no longer than for the peer's FIN.
    pub(super) fn patience(&self) -> Duration {
        let closed = self.end == Termination::Abandoned && self.space.window == 0;
        let limits =
            [self.config.user_timeout, if closed { self.config.fin_timeout } else { Duration::ZERO }];
        limits.into_iter().filter(|l| !l.is_zero()).min().unwrap_or(Duration::ZERO)
    }

    /// Limits a timer to this maximum time without progress, if it is known since when there has been none.
    pub(super) fn hasten(&mut self, timer: Timer, limit: Duration) {
        if !limit.is_zero() && self.silence.stuck.0 == self.board.una() {
            self.timers.set(timer, self.timers.at(timer).min(self.silence.stuck.1 + limit));
        }
    }

    /// Sends an old sequence number, which any peer answers.
    pub(super) fn ask(&mut self) {
        self.due.set(PendingActions::WINDOW_PROBE);
    }

    fn on_persist_timer(&mut self, now: Instant) {
        if self.hold.is_outage() {
            self.probe_outage(now);
            return;
        }
        self.silence.persist_backoff = (self.silence.persist_backoff + 1).min(16);
        let waiting = self.space.end > self.board.max() || self.space.fin == FinState::Wanted;
        if !waiting || !self.board.is_empty() {
            self.timers.stop(Timer::Persist);
            return;
        }
        if self.space.edge > self.board.max() {
            // The window is open but small: after a timeout a small segment may be sent (RFC 9293 §3.8.6.2.1).
            self.space.force_small = true;
            self.run_loop(Clock::Timer);
            self.timers.stop(Timer::Persist);
        } else if !self.is_hopeless(now, self.silence.unanswered) {
            // A peer that answers is never given up for its closed window (RFC 9293 §3.8.6.1), but one that has
            // vanished is.
            self.silence.unanswered += 1;
            self.ask();
            let wait = self.rtt.rto() * (1 << self.silence.persist_backoff);
            self.timers.set(Timer::Persist, now + wait.min(self.config.rto.max));
            self.hasten(Timer::Persist, self.patience());
        }
    }
}
