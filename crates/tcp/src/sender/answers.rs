//! Probes in the sender: their answers, peers without support for them, and the data that they copy.

use super::ack::{AckEffect, Arrival};
use super::copy::Copy;
use super::{Engine, Timer};
use crate::store::Store;
use alloc::boxed::Box;
use skyhaul_base::Instant;
use skyhaul_cc::{CongestionControl, ProbeEvent, ProbeSupport};

impl<S: Store> Engine<S> {
    /// An unmodified receiver answers a probe with a duplicate acknowledgement. It is no sign of loss, but proves
    /// that the receiver does not understand probes [Peach §III-B]. True if this is one.
    #[cold]
    pub(super) fn is_legacy_answer(&mut self, now: Instant, a: &Arrival<'_>, t: &AckEffect) -> bool {
        let plausible =
            a.ack == self.board.una() && t.same_window && (t.dsack || !self.sack || t.sacked == 0);
        if !plausible || !self.prober.consume_legacy_credit(now, self.rtt.min()) {
            return false;
        }
        if self.prober.support == ProbeSupport::Unknown {
            self.prober.unsupported();
            self.timers.stop(Timer::Train);
            self.tell(now, |cc, cx| cc.on_probe(cx, ProbeEvent::Unsupported));
            self.renew_policy();
        }
        true
    }

    /// Reports the answer to the probe with this number, if it has one.
    #[cold]
    pub(super) fn tell_answer(&mut self, now: Instant, id: Option<u16>, t: &AckEffect) {
        let Some(stale) = self.prober.answer(id) else {
            self.counters.probe_answers_refused += 1;
            return;
        };
        let newly_acked = t.acked.delivered.min(u64::from(u32::MAX)) as u32;
        self.tell(now, |cc, cx| cc.on_probe(cx, ProbeEvent::Acked { count: 1, stale, newly_acked }));
    }

    /// An acknowledgement moves `SND.UNA` from `una` to `ack` and is about to release the bytes between them: keeps the
    /// segment that the next dummy copies.
    pub(super) fn keep_copied(&mut self, una: u64, ack: u64) {
        let Some((seq, len)) = self.prober.copied() else { return };
        let end = seq + u64::from(len);
        // Kept when its first bytes are released, while the store has all of it. A peer may acknowledge a part of a
        // segment; the rest is then still in the store, and the part in `copy`.
        if ack <= seq || una >= end {
            return;
        }
        let mut bytes = alloc::vec![0; len as usize];
        self.payload(seq, &mut bytes);
        self.copy = Some(Box::new(Copy { from: seq, bytes }));
    }
}
