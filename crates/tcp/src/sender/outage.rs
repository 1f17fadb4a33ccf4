//! Announced outages, as SCPS-TP gets from the link layer (CCSDS 714.0-B-2): losses during an outage are not
//! evaluated. Timers stop, the window stays, and the peer is probed from time to time. Once it answers, older data
//! that is still missing is retransmitted.

use super::state::Outage;
use super::{Clock, Engine};
use crate::store::Store;
use crate::timer::Timer;
use skyhaul_base::Instant;

impl<S: Store> Engine<S> {
    /// A link is down: only probes are sent, the first of them at `probe_at`.
    #[cold]
    pub(super) fn freeze(&mut self, probe_at: Instant) {
        if self.hold.is_outage() {
            return;
        }
        self.hold.outage = Outage::Unprobed;
        self.wait_until(probe_at);
    }

    fn wait_until(&mut self, probe_at: Instant) {
        self.timers.stop(Timer::Retransmission);
        self.timers.stop(Timer::Loss);
        self.timers.set(Timer::Persist, probe_at);
    }

    fn next_outage_probe(&self, now: Instant) -> Instant {
        self.config.outage_probe.map_or(Instant::MAX, |wait| now + wait)
    }

    /// An outage probe is due.
    pub(super) fn probe_outage(&mut self, now: Instant) {
        self.hold.outage = Outage::Probed;
        self.ask();
        self.timers.set(Timer::Persist, self.next_outage_probe(now));
    }

    /// An acknowledgement has arrived. If it is from before the first probe, it had passed the link before the
    /// outage and proves nothing.
    #[cold]
    pub(super) fn thaw(&mut self, now: Instant) {
        if self.hold.outage == Outage::Unprobed {
            self.wait_until(self.next_outage_probe(now));
            return;
        }
        self.hold.outage = Outage::No;
        self.stop_persisting();
        if self.board.is_empty() {
            self.run_loop(Clock::Timer);
        } else {
            self.repair_from_start(now);
        }
    }
}
