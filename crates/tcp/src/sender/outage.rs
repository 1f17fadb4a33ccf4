//! Outages that somebody tells of, as SCPS-TP hears of them from the link (CCSDS 714.0-B-2): nothing is learnt from what gets
//! lost meanwhile. Timers stop, the window stays, and the peer is asked from time to time. Once it has answered, what had been
//! on its way before and is still missing is sent again.

use super::{Clock, Engine};
use crate::config::RttSource;
use crate::store::Store;
use crate::timer::Timer;
use skyhaul_base::Instant;

/// Why no data is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// It may.
    No,
    /// The algorithm says so.
    Algorithm,
    /// A link is down; nothing has been asked since.
    Outage,
    /// It is, and something has.
    Asked,
}

impl Hold {
    #[inline]
    pub(super) fn is_on(self) -> bool {
        self != Self::No
    }
    #[inline]
    pub(super) fn is_outage(self) -> bool {
        matches!(self, Self::Outage | Self::Asked)
    }
}

impl<S: Store> Engine<S> {
    /// A link is down: nothing is sent but questions, the first of them at `ask_at`.
    #[cold]
    pub(super) fn freeze(&mut self, ask_at: Instant) {
        if self.held.is_outage() {
            return;
        }
        self.held = Hold::Outage;
        self.wait_until(ask_at);
    }

    fn wait_until(&mut self, ask_at: Instant) {
        self.timers.stop(Timer::Retransmission);
        self.timers.stop(Timer::Loss);
        self.timers.set(Timer::Persist, ask_at);
    }

    fn next_question(&self, now: Instant) -> Instant {
        self.config.outage_probe.map_or(Instant::MAX, |wait| now + wait)
    }

    /// It is time for a question.
    pub(super) fn ask_through_outage(&mut self, now: Instant) {
        self.held = Hold::Asked;
        self.ask();
        self.timers.set(Timer::Persist, self.next_question(now));
    }

    /// An acknowledgement has come. One from before the first question had passed the link when it went down, and says nothing
    /// of it.
    #[cold]
    pub(super) fn thaw(&mut self, now: Instant) {
        if self.held == Hold::Outage {
            self.wait_until(self.next_question(now));
            return;
        }
        self.held = Hold::No;
        self.stop_persisting();
        if self.board.is_empty() {
            self.run_loop(Clock::Timer);
        } else {
            self.repair_from_start(now);
        }
    }

    /// What is acknowledged together with what waited behind a hole is not timed, where a loss is to leave the estimate
    /// alone; timestamps tell of the copy that filled the hole, and do.
    pub(super) fn spares_estimate(&mut self) -> bool {
        let spares = self.control.policy().losses_are_errors && self.config.rtt_source == RttSource::EveryAck;
        if spares {
            self.rtt.end_backoff(&self.config.rto);
        }
        spares
    }
}
