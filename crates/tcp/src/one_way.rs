//! A flow of data in one direction whose handshake is not modelled, as in the simulations of the papers: one [`Sender`]
//! and one [`Receiver`] with as much of a connection around them as such a flow can need. Two whole connections
//! established with the same configuration would exchange the same segments.
//!
//! Segments are [`Head`]s, small enough to be carried by an event; what few segments have besides is [`Extras`].

use crate::config::{Config, ProbeNegotiation};
use crate::connection::scale_for;
use crate::error::Rejected;
use crate::ration::Ration;
use crate::receiver::{Data, Receiver};
use crate::segment::{Extras, Flags, Head, Mark, Seq, Waves};
use crate::sender::{Arrival, FIRST, Out, Peer, Sender};
use crate::store::Store;
use crate::timestamps::Timestamps;
use alloc::boxed::Box;
use alloc::sync::Arc;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Algorithm, CongestionControl};

/// What the handshake would have found out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// Its RTT; the congestion control may use it, the estimator does not.
    pub rtt: Option<Duration>,
}

/// What both ends of such a flow agree on.
#[derive(Clone, Copy, Debug)]
struct Agreed {
    sack: bool,
    probes: bool,
    timestamps: bool,
    waves: bool,
    scale: u8,
}

impl Agreed {
    /// Both ends are configured alike.
    fn new(config: &Config, cc: &Algorithm) -> Self {
        let policy = cc.policy();
        Self {
            sack: config.sack.unwrap_or_else(|| policy.recovery.uses_pipe()),
            probes: config.probes == ProbeNegotiation::Negotiate && policy.probes,
            timestamps: config.timestamps,
            waves: config.receiver_rate && policy.receiver_rate,
            scale: if config.window_scaling { scale_for(config.receive_buffer) } else { 0 },
        }
    }

    /// What a 16-bit field can say of a window.
    #[inline]
    fn announced(scale: u8, window: u64) -> u32 {
        (window.min(65_535 << scale) >> scale << scale) as u32
    }
}

/// Both ends of a flow, not connected by anything: whoever drives them carries segments from one to the other.
///
/// # Panics
/// Never; what a peer could not have sent is refused.
#[must_use]
pub fn one_way<S: Store>(
    now: Instant,
    config: &Arc<Config>,
    cc: Algorithm,
    rng: Rng,
    known: Known,
) -> (Source<S>, Sink<S>) {
    let agreed = Agreed::new(config, &cc);
    let stamps = || agreed.timestamps.then(|| Box::new(Timestamps::new(config)));
    let buffer = config.first_receive_buffer();
    let mut sender = Sender::new(config, cc, rng);
    sender.start(
        now,
        &Peer {
            mss: config.mss,
            options: 0,
            window: if config.window_scaling { buffer } else { buffer.min(65_535) },
            sack: agreed.sack,
            probes: agreed.probes,
            rtt: known.rtt,
            rtt_is_sample: false,
            syn_lost: false,
        },
    );
    let mut receiver = Receiver::new(config);
    let answers = match config.probes {
        ProbeNegotiation::Negotiate => agreed.probes,
        ProbeNegotiation::Paper => true,
        ProbeNegotiation::Off => false,
    };
    receiver.start(agreed.sack, answers);
    receiver.discard();
    let source = Source {
        sender,
        stamps: stamps(),
        exception: None,
        window: Agreed::announced(agreed.scale, buffer),
        waves: agreed.waves,
    };
    let sink =
        Sink { receiver, stamps: stamps(), exception: None, last_ack_sent: FIRST, scale: agreed.scale };
    (source, sink)
}

/// What an end needs once something out of the ordinary has happened.
#[derive(Clone, Copy, Debug, Default)]
struct Exception {
    challenges: Ration,
    /// Acknowledgements that the data end owes.
    acks_due: u32,
    reset_due: Option<Head>,
    closed: bool,
}

impl Exception {
    /// Nobody is here any more (RFC 9293 §3.10.7.1): everything but a reset is answered with one.
    fn refuse(&mut self, head: &Head) -> Result<(), Rejected> {
        if !head.flags.has(Flags::RST) {
            self.reset_due = Some(Head { seq: head.ack, flags: Flags::RST, ..Head::default() });
        }
        Err(Rejected::Closed)
    }
}

/// The end that sends the data.
#[derive(Debug)]
pub struct Source<S: Store> {
    sender: Sender<S>,
    stamps: Option<Box<Timestamps>>,
    exception: Option<Box<Exception>>,
    /// What it announces: it receives nothing.
    window: u32,
    /// Data is marked with the wave it belongs to.
    waves: bool,
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
        if self.waves {
            return None;
        }
        let out = self.sender.poll_plain(now)?;
        let mut head = Head {
            seq: Seq(out.seq as u32),
            ack: Seq(FIRST as u32),
            len: out.len,
            window: self.window,
            ..Head::ACK
        };
        if out.low_priority {
            head.set_mark(Mark::None, None, true);
        }
        if let Some(stamps) = &self.stamps {
            head.set_ts(stamps.stamp(now));
        }
        Some(head)
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
            pure: head.len == 0,
            answer: head.mark().is_answer().then_some(head.probe_id()),
            ece: head.flags.has(Flags::ECE),
            receiver_rate: extras.and_then(|e| e.waves.rate),
            ..Arrival::plain(ack, head.window.into(), echo)
        };
        self.acknowledge(now, &arrival)?;
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
        if self.waves && out.mark == Mark::None && out.len > 0 {
            let wave = self.sender.wave(now, out.seq + u64::from(out.len));
            *beside = Some(Extras { waves: Waves { number: Some(wave), rate: None }, ..Extras::NONE });
        }
        head
    }
}

/// The end that receives the data; its application reads everything at once.
#[derive(Debug)]
pub struct Sink<S: Store> {
    receiver: Receiver<S>,
    stamps: Option<Box<Timestamps>>,
    exception: Option<Box<Exception>>,
    /// `Last.ACK.sent` (RFC 7323 §4.3): with delayed acknowledgements the oldest segment not yet acknowledged is echoed.
    last_ack_sent: u64,
    scale: u8,
}

impl<S: Store> Sink<S> {
    /// The receiver, to look at.
    #[must_use]
    pub fn receiver(&self) -> &Receiver<S> {
        &self.receiver
    }
    /// When [`Self::handle_timeout`] must be called; [`Instant::MAX`] for never.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.receiver.next_timeout()
    }
    /// Handles every deadline that has passed.
    #[inline]
    pub fn handle_timeout(&mut self, now: Instant) {
        self.receiver.handle_timeout(now);
    }

    /// Handles an arriving segment. Poll for transmissions until there are none before handling the next.
    ///
    /// # Errors
    /// Says why it was dropped; what the RFCs owe the peer (an acknowledgement) is sent all the same.
    #[inline]
    pub fn handle(&mut self, now: Instant, head: &Head, extras: Option<&Extras>) -> Result<(), Rejected> {
        if extras.is_none() && head.is_plain_data() && self.take_plain(now, head.seq, head.len, head.ts()) {
            return Ok(());
        }
        self.handle_any(now, head, extras)
    }

    /// Header prediction: handles payload for which [`Head::is_plain_data`] holds and which has nothing besides, if it is
    /// the next bytes in order. Otherwise nothing has changed: [`Self::handle`] it.
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

    /// The acknowledgement that is owed for data which [`Self::take_plain`] has taken, as long as it has nothing to report
    /// besides; [`Self::poll`] knows the others.
    #[inline(always)]
    pub fn poll_plain(&mut self, now: Instant) -> Option<Head> {
        if self.receiver.has_more_to_say() || !self.receiver.poll_ack() {
            return None;
        }
        Some(self.segment(now, None, &mut None))
    }
    /// Nothing is left to be sent before the next event.
    #[inline(always)]
    pub fn is_at_rest(&self) -> bool {
        self.exception.is_none() && self.receiver.is_at_rest()
    }

    fn handle_any(&mut self, now: Instant, head: &Head, extras: Option<&Extras>) -> Result<(), Rejected> {
        let nxt = self.receiver.next_expected();
        let Some(seq) = head.seq.unwrap(nxt, Seq(nxt as u32)) else { return Err(Rejected::OutOfWindow) };
        if self.exception.is_some() || head.flags.has(Flags::RST) {
            if let Some(result) = self.exceptional(now, head, seq) {
                return result;
            }
        }
        let probe = head.mark().is_probe() && self.receiver.answers_probes();
        if probe {
            return self.handle_probe(seq, head);
        }
        if !self.receiver.acceptable(seq, head.len) {
            return self.unacceptable(seq, head);
        }
        if let (Some(stamps), Some((val, _))) = (&mut self.stamps, head.ts()) {
            if stamps.is_old(val) {
                self.receiver.ack_now();
                return Err(Rejected::Paws);
            }
            if seq <= self.last_ack_sent {
                stamps.recent = val;
            }
        }
        if head.len == 0 {
            return Ok(());
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
        self.receiver.handle(now, &data)
    }

    /// A probe, by the rule of its own; answers are not rationed where a flow has no strangers.
    fn handle_probe(&mut self, seq: u64, head: &Head) -> Result<(), Rejected> {
        self.receiver.admits_probe(seq, head.len)?;
        let mut old = false;
        if let (Some(stamps), Some((val, _))) = (&self.stamps, head.ts()) {
            if stamps.is_older_than(val, self.receiver.lifetime()) {
                self.receiver.ack_now();
                return Err(Rejected::Paws);
            }
            old = stamps.is_old(val);
        }
        self.receiver.probe(
            &Data {
                seq,
                len: head.len,
                fin: false,
                payload: &[],
                mark: head.mark(),
                probe_id: head.probe_id(),
            },
            old,
        );
        Ok(())
    }

    /// Outside of the window: an acknowledgement is owed, nothing else happens.
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

    /// A reset, or a segment for an end that was reset.
    #[cold]
    fn exceptional(&mut self, now: Instant, head: &Head, seq: u64) -> Option<Result<(), Rejected>> {
        let exception = self.exception.get_or_insert_default();
        if exception.closed {
            return Some(exception.refuse(head));
        }
        if !head.flags.has(Flags::RST) {
            return None;
        }
        // RFC 5961 §3.2: only the exact next sequence number resets; others in the window are challenged.
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

    /// The next segment to transmit, or nothing until the next event. What it has besides its head is put into `beside`,
    /// which is left alone otherwise.
    #[inline(always)]
    pub fn poll(&mut self, now: Instant, beside: &mut Option<Extras>) -> Option<Head> {
        if let Some(e) = self.exception.as_mut().filter(|e| e.closed) {
            return e.reset_due.take();
        }
        if self.receiver.poll_ack() {
            return Some(self.segment(now, None, beside));
        }
        let answer = self.receiver.poll_probe_answer()?;
        let mut head = self.segment(now, Some(answer.range), beside);
        head.set_mark(answer.mark, answer.id, true);
        Some(head)
    }

    #[inline(always)]
    fn segment(&mut self, now: Instant, probe: Option<(u64, u64)>, beside: &mut Option<Extras>) -> Head {
        let window = Agreed::announced(self.scale, self.receiver.window());
        self.last_ack_sent = self.receiver.next_expected();
        let ack = Seq(self.last_ack_sent as u32);
        let mut head = Head { seq: Seq(FIRST as u32), ack, window, ..Head::ACK };
        if let Some(stamps) = &self.stamps {
            head.set_ts(stamps.stamp(now));
        }
        if self.receiver.has_more_to_say() || probe.is_some() {
            *beside = self.more_to_say(probe);
        }
        head
    }

    /// SACK blocks and the rate of the last wave.
    #[inline(never)]
    fn more_to_say(&mut self, probe: Option<(u64, u64)>) -> Option<Extras> {
        let mut extras = Extras::NONE;
        for &(from, to) in self.receiver.blocks(probe).as_slice() {
            extras.sack.push(Seq(from as u32), Seq(to as u32));
        }
        extras.waves.rate = self.receiver.rate();
        Some(extras).filter(|e| !e.is_none())
    }
}
