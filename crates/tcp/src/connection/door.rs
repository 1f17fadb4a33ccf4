//! The single entry point of segments: why a segment is refused, and the response to a refusal.
//!
//! Nothing changes before a segment has passed all checks: negotiated options, sequence number, timestamp,
//! acknowledgement number. A refused segment leaves the connection unchanged, except for counters and rate limits,
//! and causes at most one response. Probes have their own rule, since they copy data sent before.

use super::{Connection, State};
use crate::config::ProbeNegotiation;
use crate::error::Rejected;
use crate::receiver::Data;
use crate::segment::{Flags, Mark, Segment};
use crate::store::Store;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::ProbeSupport;

/// RTT assumed while none is known. Answers to copies are limited per RTT, and a short RTT permits more of them.
const UNKNOWN_ROUND: Duration = Duration::from_millis(10);
/// Longest period of this limit: on a path with a longer RTT, the limit applies per second.
const LONGEST_ROUND: Duration = Duration::from_secs(1);

impl<S: Store> Connection<S> {
    /// The segment without its options that were not negotiated; `None` if it has no such option. Before the negotiation all
    /// options are offers.
    #[cold]
    pub(super) fn as_agreed(&self, seg: &Segment) -> Option<Segment> {
        if !self.synchronised() && self.state != State::SynReceived {
            return None;
        }
        let mut agreed = *seg;
        let understood = match seg.mark {
            Mark::None => true,
            _ if seg.flags.has(Flags::SYN) => false,
            Mark::Dummy | Mark::Nil => self.receiver.answers_probes(),
            // Without negotiation, a sender of probes understands every answer, even one that arrives after it has concluded
            // that the peer does not answer.
            Mark::DummyAck | Mark::NilAck => {
                self.config.probes == ProbeNegotiation::Paper
                    || self.sender.probe_support() != ProbeSupport::No
            }
        };
        if !understood {
            (agreed.mark, agreed.probe_id) = (Mark::None, None);
        }
        if !(self.peer_waves && self.config.receiver_rate) {
            agreed.waves.number = None;
        }
        if !self.marks_waves {
            agreed.waves.rate = None;
        }
        (agreed != *seg).then_some(agreed)
    }

    /// A segment outside the window requires an acknowledgement and has no other effect (RFC 9293 §3.10.7.4). Data
    /// received before, at most two windows back, may be retransmitted because an acknowledgement was lost;
    /// everything else is stray.
    #[cold]
    pub(super) fn unacceptable(&mut self, now: Instant, seq: u64, seg: &Segment) -> Result<(), Rejected> {
        if seg.flags.has(Flags::RST) {
            return Err(Rejected::OutOfWindow);
        }
        let end = seq + u64::from(seg.len);
        if seg.len == 0 || end > self.receiver.next_expected() {
            return self.stray(now, Rejected::OutOfWindow);
        }
        if !self.receiver.is_recent(seq) {
            return self.stray(now, Rejected::Duplicate);
        }
        if self.may_answer_copy(now, seg.len) {
            self.receiver.note_duplicate(seq, end);
            self.receiver.ack_now();
        }
        Err(Rejected::Duplicate)
    }

    /// Refuses a segment and acknowledges it, subject to a rate limit: otherwise two desynchronised ends would
    /// acknowledge each other's acknowledgements for ever.
    #[cold]
    pub(super) fn stray<T>(&mut self, now: Instant, why: Rejected) -> Result<T, Rejected> {
        if self.strays.may_send(now) {
            self.receiver.ack_now();
        }
        Err(why)
    }

    /// Sends a challenge ACK, subject to a rate limit (RFC 5961 §7).
    #[cold]
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.challenges.may_send(now) {
            self.receiver.ack_now();
        }
    }

    /// Resets a peer that acknowledges something never sent in the handshake, subject to a rate limit.
    #[cold]
    pub(super) fn reset_stray(&mut self, now: Instant, seg: &Segment) {
        if self.challenges.may_send(now) {
            let mut rst = self.blank(Flags::RST);
            rst.seq = seg.ack;
            self.reset_due = Some(rst);
        }
    }

    /// The acknowledgement number of an acceptable segment, if it can be genuine; otherwise a challenge ACK is due
    /// (RFC 5961 §5.2).
    #[inline]
    pub(super) fn admitted_ack(&mut self, now: Instant, seg: &Segment) -> Result<u64, Rejected> {
        let admitted = match self.snd_offset(seg.ack) {
            Some(ack) => self.sender.admits(ack).map(|()| ack),
            None => Err(Rejected::AckTooOld),
        };
        if admitted.is_err() {
            self.challenge(now);
        }
        admitted
    }

    /// Whether a copy of `len` bytes of data may be answered: at most two receive windows of copies are per RTT. A short copy
    /// counts as a full segment.
    #[cold]
    fn may_answer_copy(&mut self, now: Instant, len: u32) -> bool {
        let round = self.sender.srtt().unwrap_or(UNKNOWN_ROUND).min(LONGEST_ROUND);
        let cost = u64::from(len.max(self.sender.segment_size()));
        self.copies.may_spend(now, cost, self.receiver.ration().max(cost), round)
    }

    /// Handles a probe of a peer that negotiated probes, in a synchronised state. The acceptance test is as strict
    /// as for data: the probe lies between two windows behind and one window ahead of the received data, its
    /// timestamp is no older than the maximum segment lifetime, and it acknowledges sent data. Its window is
    /// ignored.
    #[cold]
    pub(super) fn probe_segment(
        &mut self,
        now: Instant,
        seg: &Segment,
        payload: &[u8],
    ) -> Result<(), Rejected> {
        if !seg.flags.only_acknowledges() {
            return Err(Rejected::Flags);
        }
        let Some(seq) = self.rcv_offset(seg.seq) else { return self.stray(now, Rejected::OutOfWindow) };
        if let Err(why) = self.receiver.admits_probe(seq, seg.len) {
            return self.stray(now, why);
        }
        let (mut old, mut echo) = (false, None);
        if self.timestamps {
            match seg.ts {
                Some((val, ecr)) if !self.stamps.is_older_than(val, self.receiver.lifetime()) => {
                    (old, echo) = (self.stamps.is_old(val), self.stamps.rtt(now, ecr));
                }
                _ => return self.stray(now, Rejected::Paws),
            }
        }
        self.admitted_ack(now, seg)?;
        if !self.may_answer_copy(now, seg.len) {
            return Err(Rejected::Rationed);
        }
        self.acknowledgement(now, seg, seq, echo)?;
        // Only the payload of a NIL segment is kept.
        if self.abandoned && seg.mark == Mark::Nil && !old && self.refuses_text(seg, seq) {
            return Ok(());
        }
        let had_finished = self.receiver.finished();
        let probe = Data { seq, len: seg.len, fin: false, payload, mark: seg.mark, probe_id: seg.probe_id };
        self.receiver.probe(&probe, old);
        self.move_on(now, !had_finished && self.receiver.finished());
        Ok(())
    }
}
