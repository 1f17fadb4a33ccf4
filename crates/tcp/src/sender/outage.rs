//! Announced outages, as SCPS-TP gets from the link layer (CCSDS 714.0-B-2): losses during an outage are not
//! evaluated. Timers stop, the window stays, and the peer is probed from time to time. Once it answers, older data
//! that is still missing is retransmitted.

use super::state::Hold;
use super::{Clock, Engine};
use crate::config::RttSource;
use crate::store::Store;
use crate::timer::Timer;
use skyhaul_base::Instant;

impl<S: Store> Engine<S> {
    /// A link is down: only probes are sent, the first of them at `ask_at`.
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

    /// An outage probe is due.
    pub(super) fn ask_through_outage(&mut self, now: Instant) {
        self.held = Hold::Asked;
        self.ask();
        self.timers.set(Timer::Persist, self.next_question(now));
    }

    /// An acknowledgement has arrived. If it is from before the first probe, it had passed the link before the
    /// outage and proves nothing.
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

    /// Whether data acknowledged together with data that waited behind a hole is excluded from RTT sampling, if
    /// losses must not affect the estimate. Timestamps are not excluded: they identify the copy that filled the
    /// hole.
    pub(super) fn spares_estimate(&mut self) -> bool {
        let spares = self.control.policy().losses_are_errors && self.config.rtt_source == RttSource::EveryAck;
        if spares {
            self.rtt.end_backoff(&self.config.rto);
        }
        spares
    }
}
