//! Handles arriving segments in all states but LISTEN and SYN-SENT (RFC 9293 §3.10.7, RFC 5961, RFC 7323).

use super::{Connection, Event, State};
use crate::ack_ratio::LONGEST_HELD;
use crate::error::Rejected;
use crate::receiver::Data;
use crate::segment::{Codepoint, Flags, Mark, Segment, Seq};
use crate::sender::Arrival;
use crate::store::Store;
use skyhaul_base::{Duration, Instant};

/// Half the wrap-around time of a timestamp clock with ticks of one millisecond: an older `TS.Recent` is invalid (RFC 7323
/// §5.5).
const STAMPS_AGE: Duration = Duration::from_secs(24 * 86_400);

impl<S: Store> Connection<S> {
    /// Handles an arriving segment. Poll for transmissions until there are none before handling the next.
    ///
    /// # Errors
    /// The reason why the segment was dropped. Acknowledgements that the RFCs require are sent nevertheless.
    #[inline]
    pub fn handle(&mut self, now: Instant, seg: &Segment, payload: &[u8]) -> Result<(), Rejected> {
        let has_negotiable_options = seg.mark != Mark::None || !seg.waves.is_none();
        let agreed = if has_negotiable_options { self.as_agreed(seg) } else { None };
        let seg = agreed.as_ref().unwrap_or(seg);
        let result = match self.state {
            _ if seg.mark.is_probe() && self.synchronised() => self.probe_segment(now, seg, payload),
            State::Established if seg.flags.only_acknowledges() => {
                self.established_segment(now, seg, payload)
            }
            State::Closed => self.on_closed(seg),
            State::Listen => self.on_listen(now, seg, payload),
            State::SynSent => self.on_syn_sent(now, seg),
            _ => self.synchronised_segment(now, seg, payload),
        };
        match result {
            Ok(()) => self.silence.heard = now,
            Err(_) => self.rejected += 1,
        }
        result
    }

    /// Whether `seg`, which several segments were merged into, can be handled as one segment: its data is the next in order,
    /// and each of the segments would have been handled in the same way.
    #[must_use]
    pub fn takes_merged(&self, seg: &Segment) -> bool {
        matches!(self.state, State::Established | State::FinWait1 | State::FinWait2)
            && seg.flags.only_acknowledges()
            && seg.mark == Mark::None
            && seg.waves.is_none()
            && seg.len > 0
            && !self.ecn.is_accurate()
            && seg.seq == self.expected()
            && !self.receiver.has_gap()
            && u64::from(seg.len) <= self.receiver.announced()
    }
    /// Handles merged segments that [`Self::takes_merged`] admits, and acknowledges them once, as kernels do (RFC 5681 §4.2 calls
    /// this a stretch acknowledgement; the peer's window then must grow by bytes).
    ///
    /// # Errors
    /// As for [`Self::handle`].
    pub fn handle_merged(&mut self, now: Instant, seg: &Segment, payload: &[u8]) -> Result<(), Rejected> {
        self.handle(now, seg, payload)?;
        self.receiver.acknowledge_soon();
        Ok(())
    }

    /// Offset of `seq` in the peer's stream, near `RCV.NXT`; `None` if it would be negative.
    pub(super) fn rcv_offset(&self, seq: Seq) -> Option<u64> {
        let nxt = self.receiver.next_expected();
        seq.unwrap(nxt, self.irs.add(nxt as u32))
    }
    /// Offset of `seq` in our stream, near `SND.UNA`; `None` if it would be negative.
    pub(super) fn snd_offset(&self, seq: Seq) -> Option<u64> {
        let una = self.sender.una();
        seq.unwrap(una, self.iss.add(una as u32))
    }

    /// RFC 9293 §3.10.7.4 for a segment without flags other than ACK and PSH; PSH is irrelevant to a receiver that
    /// does not hold data back.
    #[inline]
    pub(super) fn established_segment(
        &mut self,
        now: Instant,
        seg: &Segment,
        payload: &[u8],
    ) -> Result<(), Rejected> {
        let Some(seq) = self.rcv_offset(seg.seq) else { return self.stray(now, Rejected::OutOfWindow) };
        if !self.receiver.acceptable(seq, seg.span()) {
            return self.unacceptable(now, seq, seg);
        }
        let echo = if self.timestamps { self.check_timestamps(now, seg)? } else { None };
        if seg.len > 0 && self.receiver.contradicts_end(seq + u64::from(seg.len), false) {
            return self.stray(now, Rejected::BeyondFin);
        }
        // A data segment that repeats the last acknowledgement and window changes nothing for the sending half. In a one-way
        // transfer all data segments are of this kind.
        let repeats_ack =
            seg.len > 0 && seg.ack_ratio.is_none() && self.sender.nothing_new(self.iss, seg.ack, seg.window);
        // The counter of accurate ECN may be news, even if it is zero.
        let repeats_ack = repeats_ack && !self.ecn.is_accurate();
        if !repeats_ack {
            self.acknowledgement(now, seg, seq, echo)?;
        }
        self.take_timestamp(now, seg, seq);
        self.take_notification(seg);
        if seg.len > 0 {
            let data =
                Data { seq, len: seg.len, fin: false, payload, mark: Mark::None, probe_id: seg.probe_id };
            if let Some(wave) = seg.waves.number {
                self.receiver.measure(now, wave, seg.len);
            }
            self.receiver.handle(now, &data)?;
            if self.receiver.finished() {
                self.move_on(now, true); // the data filled the gap before a FIN that had arrived early
            }
        }
        Ok(())
    }

    /// Checks the timestamp (PAWS, RFC 7323 §5). Returns the RTT that its echo shows, if any.
    pub(super) fn check_timestamps(
        &mut self,
        now: Instant,
        seg: &Segment,
    ) -> Result<Option<Duration>, Rejected> {
        let reset = seg.flags.has(Flags::RST);
        if seg.ts.is_none() && !reset {
            // A segment without the agreed timestamp is dropped silently (RFC 7323 §3.2).
            return Err(Rejected::Unstamped);
        }
        // After so long a pause a smaller timestamp may be newer (RFC 7323 §5.5).
        let idle = now - self.stamped_at > STAMPS_AGE;
        match self.stamps.check(now, seg.ts, reset || idle || seg.mark.is_answer()) {
            Err(why) => self.stray(now, why),
            ok => ok,
        }
    }

    /// Updates `TS.Recent` (RFC 7323 §4.3) only after the acknowledgement proved acceptable. Otherwise a blind
    /// segment could set it, and the peer's own timestamps would look old (RFC 5961 §5).
    #[inline]
    fn take_timestamp(&mut self, now: Instant, seg: &Segment, seq: u64) {
        if let Some((val, _)) = seg.ts.filter(|_| self.timestamps) {
            if seq <= self.last_ack_sent && !self.stamps.is_overtaken(val, seg.mark) {
                self.stamps.recent = val;
                self.stamped_at = now;
            }
        }
    }

    /// Writes the SACK blocks of `seg` to `blocks`, as offsets in our stream, and returns their number. Blocks that begin
    /// before the stream are left out.
    pub(super) fn sack_offsets(&self, seg: &Segment, blocks: &mut [(u64, u64); 4]) -> usize {
        let mut n = 0;
        for &(from, to) in seg.sack.as_slice() {
            if let (Some(from), Some(to)) = (self.snd_offset(from), self.snd_offset(to)) {
                blocks[n] = (from, to);
                n += 1;
            }
        }
        n
    }

    pub(super) fn acknowledgement(
        &mut self,
        now: Instant,
        seg: &Segment,
        seq: u64,
        echo: Option<Duration>,
    ) -> Result<(), Rejected> {
        let ack = self.admitted_ack(now, seg)?;
        let (una, repairing) = (self.sender.una(), self.sender.is_repairing());
        let mut blocks = [(0, 0); 4];
        let n = self.sack_offsets(seg, &mut blocks);
        // A probe may have queued for long, so its window may be outdated.
        let fresh = !seg.mark.is_probe() && (self.wl1 < seq || (self.wl1 == seq && self.wl2 <= ack));
        let arrival = Arrival {
            ack,
            window: u64::from(seg.window),
            fresh,
            blocks: &blocks[..n],
            hole: seg.snack.and_then(|(from, to)| Some((self.snd_offset(from)?, self.snd_offset(to)?))),
            pure: seg.len == 0 && !seg.flags.has(Flags::FIN),
            answer: seg.mark.is_answer().then_some(seg.probe_id),
            echo,
            ece: self.is_echo(seg),
            feedback: self.feedback(seg),
            receiver_rate: seg.waves.rate,
        };
        self.sender.acknowledge(now, &arrival)?;
        if let Some(ratio) = &mut self.ack_ratio {
            // ACK congestion control (RFC 5690) reacts to the marks of pure ACKs only; an acknowledgement in a data segment
            // acknowledges data all the same.
            let marked = arrival.pure && self.ecn.agreed && seg.ecn == Codepoint::Marked;
            ratio.acknowledged(&self.sender.ack_sample(una, repairing, marked));
        }
        if let (Some(n), true) = (seg.ack_ratio, self.ack_ratio.is_some()) {
            self.receiver.acknowledge_every(n.get().into(), LONGEST_HELD);
        }
        if fresh {
            // SND.WL1 and SND.WL2.
            self.wl1 = seq;
            self.wl2 = ack;
        }
        Ok(())
    }

    /// Handles what is left: a segment in SYN-RECEIVED or a later state that is neither a probe nor for
    /// [`Self::established_segment`].
    pub(super) fn synchronised_segment(
        &mut self,
        now: Instant,
        seg: &Segment,
        payload: &[u8],
    ) -> Result<(), Rejected> {
        let Some(seq) = self.rcv_offset(seg.seq) else {
            let answered = !seg.flags.has(Flags::RST);
            return if answered {
                self.stray(now, Rejected::OutOfWindow)
            } else {
                Err(Rejected::OutOfWindow)
            };
        };
        if seg.flags.has(Flags::RST) {
            // RFC 5961 §3.2: only the exact next sequence number resets; others in the window get a challenge ACK.
            if self.state == State::TimeWait {
                return Err(Rejected::ResetInTimeWait); // RFC 1337 §3: a RST must not end TIME-WAIT.
            }
            if seq == self.receiver.next_expected() {
                self.emit(Event::Reset);
                self.close();
                return Ok(());
            }
            if self.receiver.acceptable(seq, 0) {
                self.challenge(now);
                return Err(Rejected::Challenged);
            }
            return Err(Rejected::OutOfWindow);
        }
        if seg.flags.has(Flags::SYN) {
            if self.state == State::SynReceived && seg.seq == self.irs {
                if !self.is_early() && seg.flags.has(Flags::ACK) && self.snd_offset(seg.ack) == Some(1) {
                    // Simultaneous open: both sides answered with SYN-ACK (RFC 9293 §3.5, figure 8).
                    self.establish(now, u64::from(seg.window), self.handshake.rtt(now));
                    self.receiver.ack_or_data();
                } else {
                    self.repeat_ecn(seg);
                    // Our SYN-ACK was lost, or the peer repeats its SYN needlessly.
                    self.handshake.syn_due |= self.strays.may_send(now);
                }
                return Ok(());
            }
            // RFC 5961 §4.2.
            self.challenge(now);
            return Err(Rejected::Challenged);
        }
        if !seg.flags.has(Flags::ACK) {
            return Err(Rejected::Flags);
        }
        let (span, fin) = (seg.span(), seg.flags.has(Flags::FIN));
        if !self.receiver.acceptable(seq, span) {
            if self.state == State::TimeWait && fin && seq + u64::from(span) == self.receiver.next_expected()
            {
                // The last acknowledgement was lost; TIME-WAIT restarts (RFC 9293 §3.10.7.4).
                if self.timestamps {
                    self.check_timestamps(now, seg)?;
                }
                self.deadline = now + self.config.time_wait;
                if self.strays.may_send(now) {
                    self.receiver.ack_now();
                }
                return Ok(());
            }
            return self.unacceptable(now, seq, seg);
        }
        let echo = if self.timestamps { self.check_timestamps(now, seg)? } else { None };
        if span > 0 && self.receiver.contradicts_end(seq + u64::from(seg.len), fin) {
            return self.stray(now, Rejected::BeyondFin);
        }
        if self.is_early() {
            if !self.confirm_early(now, self.snd_offset(seg.ack)) {
                self.reset_stray(now, seg);
                return Err(Rejected::AckOfUnsent);
            }
        } else if self.state == State::SynReceived {
            if self.snd_offset(seg.ack) != Some(1) {
                self.reset_stray(now, seg);
                return Err(Rejected::AckOfUnsent);
            }
            self.establish(now, u64::from(seg.window), self.handshake.rtt(now));
        }
        self.acknowledgement(now, seg, seq, echo)?;
        self.take_timestamp(now, seg, seq);
        self.take_notification(seg);
        if self.abandoned && self.refuses_text(seg, seq) {
            return Ok(());
        }
        let had_finished = self.receiver.finished();
        let mut outcome = Ok(());
        if span > 0 {
            let data = Data { seq, len: seg.len, fin, payload, mark: Mark::None, probe_id: seg.probe_id };
            if let (Some(wave), true) = (seg.waves.number, seg.len > 0) {
                self.receiver.measure(now, wave, seg.len);
            }
            outcome = self.receiver.handle(now, &data);
        }
        self.move_on(now, !had_finished && self.receiver.finished());
        outcome
    }

    /// Changes the state if our FIN was acknowledged or the peer's FIN arrived; `finished`: the peer's stream is complete with
    /// the current segment.
    pub(super) fn move_on(&mut self, now: Instant, finished: bool) {
        if finished {
            self.emit(Event::PeerFinished);
        }
        let acked = self.sender.fin_acked();
        let peer_done = self.receiver.finished();
        if self.state == State::FinWait2 && peer_done {
            self.deadline = Instant::MAX; // the awaited FIN has arrived
        }
        self.state = match self.state {
            State::Established if peer_done => State::CloseWait,
            State::FinWait1 if acked && peer_done => State::TimeWait,
            State::FinWait1 if acked => State::FinWait2,
            State::FinWait1 if peer_done => State::Closing,
            State::FinWait2 if peer_done => State::TimeWait,
            State::Closing if acked => State::TimeWait,
            State::LastAck if acked => State::Closed,
            s => s,
        };
        match self.state {
            State::TimeWait if self.deadline == Instant::MAX => {
                self.sender.stop();
                self.deadline = now + self.config.time_wait;
                self.emit(Event::Closed);
            }
            State::Closed => {
                self.emit(Event::Closed);
                self.close();
            }
            State::FinWait2 => self.await_fin(now),
            _ => {}
        }
    }

    /// Handles a segment in state CLOSED (RFC 9293 §3.10.7.1).
    #[cold]
    pub(super) fn on_closed(&mut self, seg: &Segment) -> Result<(), Rejected> {
        if !seg.flags.has(Flags::RST) {
            let mut rst = Segment { seq: seg.ack, flags: Flags::RST, ..Segment::default() };
            if !seg.flags.has(Flags::ACK) {
                rst.seq = Seq(0);
                rst.ack = seg.seq.add(seg.span());
                rst.flags = Flags::RST.with(Flags::ACK);
            }
            self.reset_due = Some(rst);
        }
        Err(Rejected::Closed)
    }
}
