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

    /// An acknowledgement has moved `SND.UNA` from `una` to `ack`, and the store is about to release the bytes between
    /// them: keeps the segment that the next dummy copies.
    pub(super) fn keep_copied(&mut self, una: u64, ack: u64) {
        let Some((seq, len)) = self.prober.copied() else { return };
        let end = seq + u64::from(len);
        // The segment is copied when its first bytes are about to be released, while the store still has all of it. If the
        // peer acknowledges only a part of a segment, `copy` has the whole segment.
        if ack <= seq || una >= end {
            return;
        }
        let mut bytes = alloc::vec![0; len as usize];
        self.stored_payload(una, seq, &mut bytes);
        self.copy = Some(Box::new(Copy { from: seq, bytes }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::OutgoingSegment;
    use super::super::engine::tests::started;
    use super::*;
    use crate::config::Config;
    use crate::segment::Mark;
    use crate::store::Bytes;
    use alloc::vec::Vec;
    use skyhaul_base::Duration;
    use skyhaul_cc::ProbeSource;

    /// The dummy that copies the segment `[1, 1001)`, after acknowledgements of everything before each of `acks`.
    fn dummy_after(acks: &[u64], data: &[u8]) -> (OutgoingSegment, Vec<u8>) {
        let mut s = started::<Bytes>(Config { mss: 1000, ..Config::rfc() }, "newreno");
        assert_eq!(s.write(Instant::ZERO, data, data.len() as u64), data.len() as u64);
        assert_eq!(s.poll(Instant::ZERO).map(|out| (out.seq, out.len)), Some((1, 1000)));
        assert_eq!(s.poll(Instant::ZERO), None);
        s.general().prober.ask(ProbeSource::LastSegment, 2);
        assert!(s.poll(Instant::ZERO).is_some_and(|out| out.mark == Mark::Dummy));
        let now = Instant::ZERO + Duration::from_millis(100);
        for &ack in acks {
            s.acknowledge(now, &Arrival::plain(ack, 1_000_000, None)).expect("of data that was sent");
        }
        let dummy =
            core::iter::from_fn(|| s.poll(now)).find(|out| out.mark == Mark::Dummy).expect("one is due");
        let mut payload = alloc::vec![0; dummy.len as usize];
        s.payload(dummy.seq, &mut payload);
        (dummy, payload)
    }

    #[test]
    fn a_dummy_repeats_the_bytes_of_a_segment_acknowledged_at_once_or_in_parts() {
        let data: Vec<u8> = (0..1000_u32).map(|i| (i % 251) as u8 + 1).collect();
        for acks in [&[][..], &[501], &[1001], &[501, 1001], &[2, 501, 1000, 1001]] {
            let (dummy, payload) = dummy_after(acks, &data);
            assert_eq!((dummy.seq, dummy.len), (1, 1000), "{acks:?}");
            assert!(payload == data, "{acks:?}");
        }
    }
}
