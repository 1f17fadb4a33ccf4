//! The one door: what a segment is refused for, and what is owed for a refusal.
//!
//! Nothing changes before a segment has passed all of it: what was agreed on, its sequence number, its timestamp, the
//! number it acknowledges. A refused segment leaves the connection as it was, but for counters and rations; at most one
//! answer leaves for it. Probes have a rule of their own, since they copy what was sent before.

use super::{Connection, State};
use crate::config::ProbeNegotiation;
use crate::error::Rejected;
use crate::receiver::Data;
use crate::segment::{Flags, Mark, Segment};
use crate::store::Store;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::ProbeSupport;

/// Answers to copies are rationed per round trip; where it is not known it is taken to be short, so that a slow path is
/// never short of answers.
const UNKNOWN_ROUND: Duration = Duration::from_millis(10);
/// The longest round trip that answers are rationed for.
const LONGEST_ROUND: Duration = Duration::from_secs(1);

impl<S: Store> Connection<S> {
    /// The segment without what was not agreed on; `None` if it has nothing of the kind. Before there is an agreement
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
            // Without negotiation whoever sends probes understands the answers, also late ones.
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

    /// Outside of the window: an acknowledgement is owed, nothing else happens (RFC 9293 §3.10.7.4). What was received
    /// before and lies no more than two windows back may be sent again because an acknowledgement was lost; all else is stray.
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

    /// Refused, and owed an acknowledgement, unless there were too many lately: two ends that have lost each other would
    /// answer answers for ever.
    #[cold]
    pub(super) fn stray<T>(&mut self, now: Instant, why: Rejected) -> Result<T, Rejected> {
        if self.strays.may_send(now) {
            self.receiver.ack_now();
        }
        Err(why)
    }

    /// A challenge acknowledgement, unless there were too many lately (RFC 5961 §7).
    #[cold]
    pub(super) fn challenge(&mut self, now: Instant) {
        if self.challenges.may_send(now) {
            self.receiver.ack_now();
        }
    }

    /// A reset for a segment that acknowledges what the handshake never sent, unless there were too many lately.
    #[cold]
    pub(super) fn reset_stray(&mut self, now: Instant, seg: &Segment) {
        if self.challenges.may_send(now) {
            let mut rst = self.blank(Flags::RST);
            rst.seq = seg.ack;
            self.reset_due = Some(rst);
        }
    }

    /// The number that an acceptable segment acknowledges, if it can be genuine; otherwise a challenge is owed
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

    /// Whether a copy of data that has `len` bytes may be answered: no more than the peer may send in a round trip. One
    /// that is short costs as much as a full one.
    #[cold]
    fn may_answer_copy(&mut self, now: Instant, len: u32) -> bool {
        let round = self.sender.srtt().unwrap_or(UNKNOWN_ROUND).min(LONGEST_ROUND);
        let cost = u64::from(len.max(self.sender.segment_size()));
        self.copies.may_spend(now, cost, self.receiver.ration().max(cost), round)
    }

    /// A probe of a peer with which probes were agreed on, in a synchronised state. The acceptance test is as strict as
    /// that of data: it lies within two windows behind and the window ahead of what was received, its timestamp is no older
    /// than a segment can be, and it acknowledges what was sent. It tells nothing of the window.
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
        let had_finished = self.receiver.finished();
        let probe = Data { seq, len: seg.len, fin: false, payload, mark: seg.mark, probe_id: seg.probe_id };
        self.receiver.probe(&probe, old);
        self.move_on(now, !had_finished && self.receiver.finished());
        Ok(())
    }
}
