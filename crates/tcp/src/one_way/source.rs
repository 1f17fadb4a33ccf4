//! The end of a one-way flow that sends the data.

use super::Exception;
use crate::accecn::{Echo, Feedback};
use crate::error::Rejected;
use crate::segment::{Codepoint, Extras, Flags, Head, Mark, Seq, Waves};
use crate::sender::{Arrival, FIRST, OutgoingSegment, Sender};
use crate::store::Store;
use crate::timestamps::Timestamps;
use alloc::boxed::Box;
use skyhaul_base::Instant;

/// The sending end.
#[derive(Debug)]
pub struct Source<S: Store> {
    pub(super) sender: Sender<S>,
    pub(super) stamps: Option<Box<Timestamps>>,
    pub(super) exception: Option<Box<Exception>>,
    /// The window that the source announces, bytes; it is constant, since the source receives no data.
    pub(super) window: u32,
    /// Data segments carry wave numbers, ECN, or the ACK ratio.
    pub(super) extended: bool,
    /// Data carries wave numbers.
    pub(super) waves: bool,
    /// `None`: no ECN. `Some(false)`: routers may mark new data only; `Some(true)`: retransmissions too
    /// ([`Config::ecn_plus`](crate::Config::ecn_plus)).
    pub(super) ecn: Option<bool>,
    /// The sink feeds back accurate ECN.
    pub(super) accurate: bool,
}

impl<S: Store> Source<S> {
    /// The sender, for inspection.
    #[must_use]
    pub fn sender(&self) -> &Sender<S> {
        &self.sender
    }
    /// The sender, for passing data to it and for taking its reports.
    pub fn sender_mut(&mut self) -> &mut Sender<S> {
        &mut self.sender
    }

    /// When [`Self::handle_timeout`] must be called; [`Instant::MAX`] means never.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.sender.next_timeout()
    }
    /// Handles all expired deadlines.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sender.handle_timeout(now);
        if self.sender.gave_up() && !self.is_closed() {
            self.give_up();
        }
    }

    #[cold]
    fn give_up(&mut self) {
        let reset = Head {
            seq: Seq(self.sender.max() as u32),
            ack: Seq(FIRST as u32),
            flags: Flags::RST.with(Flags::ACK),
            ..Head::default()
        };
        self.sender.stop();
        let exception = self.exception();
        (exception.reset_due, exception.closed) = (Some(reset), true);
    }
    fn exception(&mut self) -> &mut Exception {
        self.exception.get_or_insert_default()
    }
    fn is_closed(&self) -> bool {
        self.exception.as_ref().is_some_and(|e| e.closed)
    }
    /// Accepts `n` bytes of the application; see [`Sender::offer`].
    #[inline(always)]
    pub fn offer(&mut self, now: Instant, n: u64) {
        if !self.is_closed() {
            self.sender.offer(now, n);
        }
    }

    /// Handles an arriving acknowledgement. Poll for transmissions until there are none before handling the next.
    ///
    /// # Errors
    /// The reason why the segment was dropped. Responses that the RFCs require are sent nevertheless.
    #[inline]
    pub fn handle(&mut self, now: Instant, head: &Head, extras: Option<&Extras>) -> Result<(), Rejected> {
        if extras.is_none() && head.is_plain_ack() && self.take_plain(now, head.ack, head.window, head.ts()) {
            return Ok(());
        }
        self.handle_any(now, head, extras)
    }

    /// Header prediction: handles an acknowledgement with [`Head::is_plain_ack`] and without extras, if the sender is in
    /// its steady state. Otherwise declines without side effects: call [`Self::handle`].
    #[inline(always)]
    pub fn take_plain(&mut self, now: Instant, ack: Seq, window: u32, ts: Option<(u32, u32)>) -> bool {
        if self.exception.is_some() {
            return false;
        }
        let una = self.sender.una();
        let Some(ack) = ack.unwrap(una, Seq(una as u32)) else { return false };
        let (Some(stamps), Some((val, echo))) = (&mut self.stamps, ts) else {
            return self.sender.acknowledge_plain(now, ack, window.into(), None);
        };
        if stamps.is_old(val) {
            return false;
        }
        let rtt = stamps.rtt(now, echo);
        let taken = self.sender.acknowledge_plain(now, ack, window.into(), rtt);
        if taken {
            stamps.recent = val;
        }
        taken
    }

    fn handle_any(&mut self, now: Instant, head: &Head, extras: Option<&Extras>) -> Result<(), Rejected> {
        if let Some(e) = self.exception.as_mut().filter(|e| e.closed) {
            return e.refuse(head);
        }
        if head.flags.has(Flags::RST) {
            // A sink sends a RST only in answer to a RST of the source, which is closed since then.
            return Err(Rejected::OutOfWindow);
        }
        let mut echo = None;
        if let Some(stamps) = &self.stamps {
            match stamps.check(now, head.ts(), head.mark().is_answer()) {
                Ok(rtt) => echo = rtt,
                Err(old) => {
                    self.exception().acks_due += 1;
                    return Err(old);
                }
            }
        }
        let una = self.sender.una();
        let offset = |seq: Seq| seq.unwrap(una, Seq(una as u32));
        let Some(ack) = offset(head.ack) else { return Err(Rejected::AckTooOld) };
        let mut blocks = [(0, 0); 4];
        let mut n = 0;
        for &(from, to) in extras.map_or(&[][..], |e| e.sack.as_slice()) {
            if let (Some(from), Some(to)) = (offset(from), offset(to)) {
                blocks[n] = (from, to);
                n += 1;
            }
        }
        let arrival = Arrival {
            // The window of a segment is taken unless the segment is older than the last one (RFC 9293 §3.10.7.4, SND.WL1 and
            // SND.WL2). The sequence number of a sink never changes.
            fresh: ack >= una,
            blocks: &blocks[..n],
            hole: extras.and_then(|e| e.snack).and_then(|(from, to)| Some((offset(from)?, offset(to)?))),
            pure: head.len == 0,
            answer: head.mark().is_answer().then_some(head.probe_id()),
            ece: self.ecn.is_some() && !self.accurate && head.flags.has(Flags::ECE),
            feedback: self.accurate.then(|| Feedback {
                ace: head.flags.ace(),
                ce_bytes: extras.and_then(|e| e.ecn_bytes).map(|b| b.ce),
            }),
            receiver_rate: extras.and_then(|e| e.waves.rate),
            ..Arrival::plain(ack, head.window.into(), echo)
        };
        let repairing = self.sender.is_repairing();
        self.acknowledge(now, &arrival)?;
        if let Some(ratio) = self.exception.as_mut().and_then(|e| e.ack_ratio.as_mut()) {
            let marked = self.ecn.is_some() && head.ecn() == Codepoint::Marked;
            ratio.acknowledged(&self.sender.ack_sample(una, repairing, marked));
        }
        if let Some(exception) = &mut self.exception {
            if exception.accurate.as_mut().is_some_and(|echo| echo.arrived(head.ecn(), head.len)) {
                exception.acks_due += 1;
            }
        }
        if let (Some(stamps), Some((val, _))) = (&mut self.stamps, head.ts()) {
            if !stamps.is_overtaken(val, head.mark()) {
                stamps.recent = val;
            }
        }
        Ok(())
    }

    #[inline]
    fn acknowledge(&mut self, now: Instant, arrival: &Arrival<'_>) -> Result<(), Rejected> {
        let result = self.sender.acknowledge(now, arrival);
        if result.is_err() {
            // A challenge ACK (RFC 5961 §5.2).
            let exception = self.exception();
            let due = exception.challenges.may_send(now);
            exception.acks_due += u32::from(due);
        }
        result
    }

    /// The next segment to transmit, with its extras, or nothing until the next event.
    #[inline(always)]
    pub fn poll(&mut self, now: Instant) -> Option<(Head, Option<Box<Extras>>)> {
        if self.exception.is_some() {
            return self.poll_exception(now);
        }
        self.sender.poll(now).as_ref().map(|out| self.segment(now, out))
    }

    #[cold]
    fn poll_exception(&mut self, now: Instant) -> Option<(Head, Option<Box<Extras>>)> {
        let exception = self.exception();
        if let Some(reset) = exception.reset_due.take() {
            return Some((reset, None));
        }
        if exception.closed {
            return None;
        }
        if let Some(out) = self.sender.poll(now) {
            return Some(self.segment(now, &out));
        }
        let exception = self.exception();
        if exception.acks_due == 0 {
            return None;
        }
        exception.acks_due -= 1;
        let seq = Seq(self.sender.max() as u32);
        let mut head = Head { seq, ack: Seq(FIRST as u32), window: self.window, ..Head::ACK };
        let accurate = self.exception.as_mut().and_then(|e| e.accurate.as_mut());
        let feeds_back = accurate.map(Echo::feed_back);
        head.flags = head.flags.with(feeds_back.unwrap_or_default());
        if let Some(stamps) = &self.stamps {
            head.set_ts(stamps.stamp(now));
        }
        Some((head, None))
    }

    #[inline(always)]
    fn segment(&mut self, now: Instant, out: &OutgoingSegment) -> (Head, Option<Box<Extras>>) {
        let mut head = Head {
            seq: Seq(out.seq as u32),
            ack: Seq(FIRST as u32),
            len: out.len,
            window: self.window,
            ..Head::ACK
        };
        if out.low_priority || out.mark != Mark::None {
            head.set_mark(out.mark, out.probe_id, out.low_priority);
        }
        if let Some(stamps) = &self.stamps {
            head.set_ts(stamps.stamp(now));
        }
        if !self.extended || out.mark != Mark::None || out.len == 0 {
            return (head, None);
        }
        let Extension { ecn, flags, extras } = self.extend(now, out);
        head.set_ecn(ecn);
        head.flags = head.flags.with(flags);
        (head, extras)
    }

    /// What a data segment carries besides: ECN field and flags, wave number and ACK ratio.
    fn extend(&mut self, now: Instant, out: &OutgoingSegment) -> Extension {
        let (mut ecn, mut flags) = (Codepoint::NotCapable, Flags::NONE);
        if let Some(all) = self.ecn {
            if out.first || all {
                let scalable = self.accurate && self.sender.is_scalable();
                ecn = if scalable { Codepoint::Scalable } else { Codepoint::Capable };
            }
            if out.first && !self.accurate && self.sender.take_reduction() {
                flags = Flags::CWR;
            }
        }
        if let Some(echo) = self.exception.as_mut().and_then(|e| e.accurate.as_mut()) {
            flags = flags.with(echo.feed_back());
        }
        let end = out.seq + u64::from(out.len);
        let ack_ratio = self.exception.as_mut().and_then(|e| e.ack_ratio.as_mut()?.tell(end));
        let number = self.waves.then(|| self.sender.wave(now, end));
        let extras = Extras { waves: Waves { number, rate: None }, ack_ratio, ..Extras::NONE };
        let extras = (number.is_some() || ack_ratio.is_some()).then(|| Box::new(extras));
        Extension { ecn, flags, extras }
    }
}

/// What a data segment carries besides data, acknowledgement, window and timestamps.
struct Extension {
    ecn: Codepoint,
    flags: Flags,
    extras: Option<Box<Extras>>,
}
