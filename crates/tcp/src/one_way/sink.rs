//! The end of a one-way flow that receives the data.

use super::Exception;
use crate::ack_ratio::LONGEST_HELD;
use crate::connection::expressible;
use crate::error::Rejected;
use crate::receiver::{Data, Receiver};
use crate::segment::{Codepoint, Extras, Flags, Head, Mark, Seq};
use crate::sender::FIRST;
use crate::store::Store;
use crate::timestamps::Timestamps;
use alloc::boxed::Box;
use skyhaul_base::Instant;

/// The receiving end; its application reads everything at once.
#[derive(Debug)]
pub struct Sink<S: Store> {
    pub(super) receiver: Receiver<S>,
    pub(super) stamps: Option<Box<Timestamps>>,
    pub(super) exception: Option<Box<Exception>>,
    /// `Last.ACK.sent` (RFC 7323 §4.3): with delayed acknowledgements the timestamp of the oldest unacknowledged
    /// segment is echoed.
    pub(super) last_ack_sent: u64,
    pub(super) scale: u8,
    /// ECN marks are echoed.
    pub(super) ecn: bool,
    /// The source controls the ACK ratio, and routers may mark acknowledgements.
    pub(super) ack_cc: bool,
}

impl<S: Store> Sink<S> {
    /// The receiver, for inspection.
    #[must_use]
    pub fn receiver(&self) -> &Receiver<S> {
        &self.receiver
    }
    /// When [`Self::handle_timeout`] must be called; [`Instant::MAX`] means never.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.receiver.next_timeout()
    }
    /// Handles all expired deadlines.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.receiver.handle_timeout(now);
    }

    /// Handles an arriving segment. Poll for transmissions until there are none before handling the next.
    ///
    /// # Errors
    /// The reason why the segment was dropped. Acknowledgements that the RFCs require are sent nevertheless.
    #[inline]
    pub fn handle(&mut self, now: Instant, head: &Head, extras: Option<&Extras>) -> Result<(), Rejected> {
        if extras.is_none() && head.is_plain_data() && self.take_plain(now, head.seq, head.len, head.ts()) {
            return Ok(());
        }
        self.handle_any(now, head, extras)
    }

    /// Header prediction: accepts a segment with [`Head::is_plain_data`] and without extras, if it is the next data
    /// in order. Otherwise declines without side effects: call [`Self::handle`].
    #[inline(always)]
    pub fn take_plain(&mut self, now: Instant, seq: Seq, len: u32, ts: Option<(u32, u32)>) -> bool {
        let nxt = self.receiver.next_expected();
        if seq != Seq(nxt as u32) || self.exception.is_some() || !self.receiver.admits_in_order(len) {
            return false;
        }
        if let (Some(stamps), Some((val, _))) = (&mut self.stamps, ts) {
            if stamps.is_old(val) {
                return false;
            }
            if nxt <= self.last_ack_sent {
                stamps.recent = val;
            }
        }
        self.receiver.take_in_order(now, len);
        true
    }

    fn handle_any(&mut self, now: Instant, head: &Head, extras: Option<&Extras>) -> Result<(), Rejected> {
        let nxt = self.receiver.next_expected();
        let Some(seq) = head.seq.unwrap(nxt, Seq(nxt as u32)) else { return Err(Rejected::OutOfWindow) };
        if self.exception.is_some() || head.flags.has(Flags::RST) {
            if let Some(result) = self.exceptional(now, head, seq) {
                return result;
            }
        }
        let probe = head.mark().is_probe();
        if !probe && !self.receiver.acceptable(seq, head.len) {
            return self.unacceptable(seq, head);
        }
        if let (Some(stamps), Some((val, _))) = (&mut self.stamps, head.ts()) {
            if stamps.is_old(val) && !probe {
                self.receiver.ack_now();
                return Err(Rejected::Paws);
            }
            // Not for a probe: its sequence number is old on purpose.
            if seq <= self.last_ack_sent && !probe {
                stamps.recent = val;
            }
        }
        if head.len == 0 {
            return Ok(());
        }
        if self.ecn && !probe {
            self.take_notification(head);
        }
        if let (Some(ratio), true) = (extras.and_then(|e| e.ack_ratio), self.ack_cc) {
            self.receiver.acknowledge_every(ratio.get().into(), LONGEST_HELD);
        }
        if let Some(wave) = extras.and_then(|e| e.waves.number) {
            self.receiver.measure(now, wave, head.len);
        }
        let data = Data {
            seq,
            len: head.len,
            fin: false,
            payload: &[],
            mark: head.mark(),
            probe_id: head.probe_id(),
        };
        // A one-way flow has no attackers: probes are accepted at any position, and all are answered.
        if probe && self.receiver.answers_probes() {
            self.receiver.probe(&data, false);
            return Ok(());
        }
        self.receiver.handle(now, &data)
    }

    /// Accurate ECN counts every packet. Otherwise a mark is echoed until the source signals CWR; a segment with both starts another echo (RFC 3168 §6.1.3).
    /// During the echo there is no fast path.
    fn take_notification(&mut self, head: &Head) {
        if let Some(echo) = self.exception.as_mut().and_then(|e| e.accurate.as_mut()) {
            if echo.arrived(head.ecn(), head.len) {
                self.receiver.ack_now();
            }
            return;
        }
        let marked = head.ecn() == Codepoint::Marked;
        if marked {
            self.exception.get_or_insert_default().echo = true;
        } else if head.flags.has(Flags::CWR) && self.exception.as_ref().is_some_and(|e| e.echo) {
            // The fast path is open again, except with ACK congestion control, under which it is never used.
            self.exception = self.ack_cc.then(Box::default);
        }
    }

    /// A segment outside the window requires an acknowledgement and has no other effect.
    #[cold]
    fn unacceptable(&mut self, seq: u64, head: &Head) -> Result<(), Rejected> {
        self.receiver.ack_now();
        let end = seq + u64::from(head.len);
        if head.len > 0 && end <= self.receiver.next_expected() {
            self.receiver.note_duplicate(seq, end);
            return Err(Rejected::Duplicate);
        }
        Err(Rejected::OutOfWindow)
    }

    /// Handles a reset, or a segment to an end that was reset.
    #[cold]
    fn exceptional(&mut self, now: Instant, head: &Head, seq: u64) -> Option<Result<(), Rejected>> {
        let exception = self.exception.get_or_insert_default();
        if exception.closed {
            return Some(exception.refuse(head));
        }
        if !head.flags.has(Flags::RST) {
            return None;
        }
        // RFC 5961 §3.2: only the exact next sequence number resets; others in the window get a challenge ACK.
        if seq == self.receiver.next_expected() {
            exception.closed = true;
            return Some(Ok(()));
        }
        if !self.receiver.acceptable(seq, 0) {
            return Some(Err(Rejected::OutOfWindow));
        }
        if exception.challenges.may_send(now) {
            self.receiver.ack_now();
        }
        Some(Err(Rejected::Challenged))
    }

    /// The next segment to transmit, with its extras, or nothing until the next event.
    #[inline(always)]
    pub fn poll(&mut self, now: Instant) -> Option<(Head, Option<Box<Extras>>)> {
        if let Some(e) = self.exception.as_mut().filter(|e| e.closed) {
            return Some((e.reset_due.take()?, None));
        }
        let (mut head, mut extras) = if self.receiver.poll_ack() {
            self.segment(now, None)
        } else {
            let answer = self.receiver.poll_probe_answer()?;
            let (mut head, extras) = self.segment(now, Some(answer.range));
            head.set_mark(answer.mark, answer.id, true);
            (head, extras)
        };
        if let Some(exception) = &mut self.exception {
            if exception.echo {
                head.flags = head.flags.with(Flags::ECE);
            }
            if let Some(echo) = &mut exception.accurate {
                head.flags = head.flags.with(echo.feed_back());
                // As at a connection, answers to probes have no option.
                let option = if head.mark() == Mark::None { echo.option() } else { None };
                if option.is_some() {
                    extras.get_or_insert_with(|| Box::new(Extras::NONE)).ecn_bytes = option;
                }
            }
        }
        if self.ecn && self.ack_cc && head.mark() == Mark::None {
            head.set_ecn(Codepoint::Capable);
        }
        Some((head, extras))
    }

    #[inline(always)]
    fn segment(&mut self, now: Instant, probe: Option<(u64, u64)>) -> (Head, Option<Box<Extras>>) {
        let window = expressible(self.receiver.window(), self.scale);
        self.last_ack_sent = self.receiver.next_expected();
        let ack = Seq(self.last_ack_sent as u32);
        let mut head = Head { seq: Seq(FIRST as u32), ack, window, ..Head::ACK };
        if let Some(stamps) = &self.stamps {
            head.set_ts(stamps.stamp(now));
        }
        let more = self.receiver.has_more_to_say() || probe.is_some();
        (head, if more { self.more_to_say(probe) } else { None })
    }

    /// SACK blocks, a SNACK, and the rate of the last wave.
    #[inline(never)]
    fn more_to_say(&mut self, probe: Option<(u64, u64)>) -> Option<Box<Extras>> {
        let mut extras = Extras::NONE;
        if let (None, Some((from, to))) = (probe, self.receiver.named_hole()) {
            extras.snack = Some((Seq(from as u32), Seq(to as u32)));
        }
        for &(from, to) in self.receiver.blocks(probe).as_slice() {
            extras.sack.push(Seq(from as u32), Seq(to as u32));
        }
        extras.waves.rate = self.receiver.rate();
        (!extras.is_none()).then(|| Box::new(extras))
    }
}
