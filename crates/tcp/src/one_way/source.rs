//! The end of a one-way flow that sends the data.

use super::Exception;
use crate::error::Rejected;
use crate::segment::{Codepoint, Extras, Flags, Head, Mark, Seq, Waves};
use crate::sender::{Arrival, FIRST, Out, Sender};
use crate::store::Store;
use crate::timestamps::Timestamps;
use alloc::boxed::Box;
use skyhaul_base::Instant;

/// The end that sends the data.
#[derive(Debug)]
pub struct Source<S: Store> {
    pub(super) sender: Sender<S>,
    pub(super) stamps: Option<Box<Timestamps>>,
    pub(super) exception: Option<Box<Exception>>,
    /// What it announces: it receives nothing.
    pub(super) window: u32,
    /// Data says something besides itself: one of the two below, or how many acknowledgements are wanted.
    pub(super) dresses: bool,
    /// Data is marked with the wave it belongs to.
    pub(super) waves: bool,
    /// Routers may mark data that leaves for the first time; if true, all of it.
    pub(super) ecn: Option<bool>,
}

impl<S: Store> Source<S> {
    /// The sender, to look at.
    #[must_use]
    pub fn sender(&self) -> &Sender<S> {
        &self.sender
    }
    /// The sender, to hand data to or to ask for a judgement.
    pub fn sender_mut(&mut self) -> &mut Sender<S> {
        &mut self.sender
    }

    /// When [`Self::handle_timeout`] must be called; [`Instant::MAX`] for never.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.sender.next_timeout()
    }
    /// Handles every deadline that has passed.
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
    /// Takes `n` bytes of the application; see [`Sender::offer`].
    pub fn offer(&mut self, now: Instant, n: u64) {
        if !self.is_closed() {
            self.sender.offer(now, n);
        }
    }

    /// Handles an arriving acknowledgement. Poll for transmissions until there are none before handling the next.
    ///
    /// # Errors
    /// Says why it was dropped; what the RFCs owe the peer is sent all the same.
    #[inline]
    pub fn handle(&mut self, now: Instant, head: &Head, extras: Option<&Extras>) -> Result<(), Rejected> {
        if extras.is_none() && head.is_plain_ack() && self.take_plain(now, head.ack, head.window, head.ts()) {
            return Ok(());
        }
        self.handle_any(now, head, extras)
    }

    /// Handles an acknowledgement for which [`Head::is_plain_ack`] holds and which has nothing besides, if it is the
    /// ordinary one that a source expects which has come to rest. Otherwise nothing has changed: [`Self::handle`] it.
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

    /// The next segment that an acknowledgement has released which [`Self::take_plain`] has taken, as long as it is an
    /// ordinary one: [`Self::poll`] unless the source [is at rest](Self::is_at_rest) then.
    #[inline(always)]
    pub fn poll_plain(&mut self, now: Instant) -> Option<Head> {
        if self.dresses {
            return None;
        }
        let out = self.sender.poll_plain(now)?;
        Some(self.segment(now, &out, &mut None))
    }

    /// Nothing is left to be sent before the next event, as far as a glance tells.
    #[inline(always)]
    pub fn is_at_rest(&self) -> bool {
        self.sender.is_at_rest()
    }

    fn handle_any(&mut self, now: Instant, head: &Head, extras: Option<&Extras>) -> Result<(), Rejected> {
        if let Some(e) = self.exception.as_mut().filter(|e| e.closed) {
            return e.refuse(head);
        }
        if head.flags.has(Flags::RST) {
            // Nobody resets a source but in answer to a reset of its own.
            return Err(Rejected::OutOfWindow);
        }
        let mut echo = None;
        if let Some(stamps) = &self.stamps {
            match stamps.check(now, head.ts(), false) {
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
            // The peer's sequence number never changes, so only what is older than the last one is not fresh.
            fresh: ack >= una,
            blocks: &blocks[..n],
            hole: extras.and_then(|e| e.snack).and_then(|(from, to)| Some((offset(from)?, offset(to)?))),
            pure: head.len == 0,
            answer: head.mark().is_answer().then_some(head.probe_id()),
            ece: self.ecn.is_some() && head.flags.has(Flags::ECE),
            receiver_rate: extras.and_then(|e| e.waves.rate),
            ..Arrival::plain(ack, head.window.into(), echo)
        };
        let repairing = self.sender.is_repairing();
        self.acknowledge(now, &arrival)?;
        if let Some(ratio) = self.exception.as_mut().and_then(|e| e.ack_ratio.as_mut()) {
            let marked = self.ecn.is_some() && head.ecn() == Codepoint::Marked;
            ratio.acknowledged(&self.sender.seen(una, repairing, marked));
        }
        if let (Some(stamps), Some((val, _))) = (&mut self.stamps, head.ts()) {
            stamps.recent = val;
        }
        Ok(())
    }

    #[inline]
    fn acknowledge(&mut self, now: Instant, arrival: &Arrival<'_>) -> Result<(), Rejected> {
        let result = self.sender.acknowledge(now, arrival);
        if result.is_err() {
            // RFC 5961 §5.2.
            let exception = self.exception();
            let due = exception.challenges.may_send(now);
            exception.acks_due += u32::from(due);
        }
        result
    }

    /// The next segment to transmit, or nothing until the next event. What it has besides its head is put into `beside`,
    /// which is left alone otherwise.
    #[inline(always)]
    pub fn poll(&mut self, now: Instant, beside: &mut Option<Extras>) -> Option<Head> {
        if self.exception.is_some() {
            return self.poll_exception(now, beside);
        }
        self.sender.poll(now).map(|out| self.segment(now, &out, beside))
    }

    #[cold]
    fn poll_exception(&mut self, now: Instant, beside: &mut Option<Extras>) -> Option<Head> {
        let exception = self.exception();
        if let Some(reset) = exception.reset_due.take() {
            return Some(reset);
        }
        if exception.closed {
            return None;
        }
        if let Some(out) = self.sender.poll(now) {
            return Some(self.segment(now, &out, beside));
        }
        let exception = self.exception();
        if exception.acks_due == 0 {
            return None;
        }
        exception.acks_due -= 1;
        let seq = Seq(self.sender.max() as u32);
        let mut head = Head { seq, ack: Seq(FIRST as u32), window: self.window, ..Head::ACK };
        if let Some(stamps) = &self.stamps {
            head.set_ts(stamps.stamp(now));
        }
        Some(head)
    }

    #[inline(always)]
    fn segment(&mut self, now: Instant, out: &Out, beside: &mut Option<Extras>) -> Head {
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
        if self.dresses && out.mark == Mark::None && out.len > 0 {
            self.dress(now, out, &mut head, beside);
        }
        head
    }

    /// What data says besides itself.
    fn dress(&mut self, now: Instant, out: &Out, head: &mut Head, beside: &mut Option<Extras>) {
        if let Some(all) = self.ecn {
            if out.first || all {
                head.set_ecn(Codepoint::Capable);
            }
            if out.first && self.sender.take_reduction() {
                head.flags = head.flags.with(Flags::CWR);
            }
        }
        let end = out.seq + u64::from(out.len);
        let ack_ratio = self.exception.as_mut().and_then(|e| e.ack_ratio.as_mut()?.tell(end));
        let number = self.waves.then(|| self.sender.wave(now, end));
        if number.is_some() || ack_ratio.is_some() {
            *beside = Some(Extras { waves: Waves { number, rate: None }, ack_ratio, ..Extras::NONE });
        }
    }
}
