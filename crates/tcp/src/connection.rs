//! A connection: handshake, data both ways, half-close, reset, TIME-WAIT. Owns one sender and one receiver.
//!
//! ```text
//!            connect                    listen
//!               |                         |
//!            SynSent ---- SYN ------> SynReceived
//!               | SYN,ACK                 | ACK
//!               +-------> Established <---+
//!        shutdown |                       | FIN arrives
//!            FinWait1                 CloseWait
//!     ACK |   FIN |  both |               | shutdown
//!    FinWait2  Closing  TimeWait       LastAck
//!         |       | ACK    ^              | ACK
//!         +--FIN--+--------+           Closed
//! ```

use crate::config::{Config, ProbeNegotiation};
use crate::error::Rejected;
use crate::receiver::{Data, ProbeAnswer, Receiver};
use crate::segment::{Flags, Mark, SackBlocks, Segment, Seq, SynOptions};
use crate::sender::{Arrival, Counters, Out, Peer, Sender, Snapshot};
use crate::store::Store;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Algorithm, CongestionControl};

/// State of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waiting for a SYN.
    Listen,
    /// Our SYN is out.
    SynSent,
    /// Their SYN came, ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// We closed, our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed at once.
    Closing,
    /// The peer closed, then we did.
    LastAck,
    /// Both directions are done; late segments are answered for 2 MSL.
    TimeWait,
    /// Nothing will happen any more.
    Closed,
}

/// News for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// The peer will send no more; what it sent can still be read.
    PeerFinished,
    /// Both directions are closed in order.
    Closed,
    /// The peer reset the connection, or refused it.
    Reset,
    /// The peer did not answer any more.
    TimedOut,
}

/// A handshake that is not modelled: what it would have agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Established<'a> {
    /// Our initial sequence number.
    pub iss: Seq,
    /// The peer's.
    pub peer_iss: Seq,
    /// The peer's configuration.
    pub peer: &'a Config,
    /// SACK is used on this connection.
    pub sack: bool,
    /// The RTT that the handshake would have measured; the congestion control may use it, the estimator does not.
    pub rtt: Option<Duration>,
    /// The peer understands probes.
    pub probes: bool,
}

/// A TCP connection.
#[derive(Debug)]
pub struct Connection<S: Store> {
    state: State,
    iss: Seq,
    irs: Seq,
    /// The last acknowledgement carried this timestamp of the peer (RFC 7323 `TS.Recent`).
    ts_recent: u32,
    /// `Last.ACK.sent`: with delayed acknowledgements the oldest segment not yet acknowledged is echoed.
    last_ack_sent: u64,
    timestamps: bool,
    ts_offset: u32,
    tick: Duration,
    wl1: u64,
    wl2: u64,
    peer_scale: u8,
    our_scale: u8,
    sack_ok: bool,
    peer_probes: bool,
    peer_mss: u32,
    sender: Sender<S>,
    receiver: Receiver<S>,
    /// SYN, FIN and reset business, off the fast path.
    handshake: Handshake,
    deadline: Instant,
    reset_due: Option<Segment>,
    events: [Option<Event>; 4],
    config: Config,
    rejected: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    syn_due: bool,
    tries: u32,
    sent_at: Instant,
    closed_by_user: bool,
}

impl<S: Store> Connection<S> {
    fn new(state: State, config: &Config, cc: Algorithm, iss: Seq, rng: Rng) -> Self {
        let sack = config.sack.unwrap_or_else(|| cc.policy().recovery.uses_pipe());
        Self {
            state,
            iss,
            irs: Seq(0),
            ts_recent: 0,
            last_ack_sent: 1,
            timestamps: false,
            ts_offset: 0,
            tick: if config.timestamp_tick.is_zero() {
                Duration::from_millis(1)
            } else {
                config.timestamp_tick
            },
            wl1: 0,
            wl2: 0,
            peer_scale: 0,
            our_scale: if config.window_scaling { scale_for(config.receive_buffer) } else { 0 },
            sack_ok: sack,
            peer_probes: false,
            peer_mss: 536,
            sender: Sender::new(config, cc, rng),
            receiver: Receiver::new(config),
            handshake: Handshake::default(),
            deadline: Instant::MAX,
            reset_due: None,
            events: [None; 4],
            config: *config,
            rejected: 0,
        }
    }

    /// An active open: a SYN is due.
    #[must_use]
    pub fn connect(now: Instant, config: &Config, cc: Algorithm, iss: Seq, rng: Rng) -> Self {
        let mut c = Self::new(State::SynSent, config, cc, iss, rng);
        c.handshake.syn_due = true;
        c.handshake.sent_at = now;
        c
    }

    /// A passive open: waits for a SYN.
    #[must_use]
    pub fn listen(config: &Config, cc: Algorithm, iss: Seq, rng: Rng) -> Self {
        Self::new(State::Listen, config, cc, iss, rng)
    }

    /// A connection whose handshake is not modelled, as in the simulations of the papers.
    #[must_use]
    pub fn established(now: Instant, config: &Config, cc: Algorithm, rng: Rng, e: &Established<'_>) -> Self {
        let mut c = Self::new(State::Established, config, cc, e.iss, rng);
        c.irs = e.peer_iss;
        c.sack_ok = e.sack;
        c.timestamps = config.timestamps && e.peer.timestamps;
        let window = if config.window_scaling && e.peer.window_scaling {
            c.peer_scale = scale_for(e.peer.receive_buffer);
            e.peer.receive_buffer
        } else {
            c.our_scale = 0;
            e.peer.receive_buffer.min(65_535)
        };
        c.begin(
            now,
            &Peer {
                mss: e.peer.mss,
                window,
                sack: c.sack_ok,
                probes: e.probes,
                rtt: e.rtt,
                rtt_is_sample: false,
                syn_lost: false,
            },
        );
        c
    }

    fn begin(&mut self, now: Instant, peer: &Peer) {
        let answer = match self.config.probes {
            ProbeNegotiation::Negotiate => peer.probes,
            ProbeNegotiation::Paper => true,
            ProbeNegotiation::Off => false,
        };
        self.receiver.start(self.sack_ok, answer);
        self.sender.start(now, peer);
        self.wl1 = self.receiver.next_expected();
        self.wl2 = self.sender.una();
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }
    /// The state of the sending half.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.sender.snapshot()
    }
    /// What the sending half has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.sender.counters()
    }
    /// The sending half.
    #[must_use]
    pub fn sender(&self) -> &Sender<S> {
        &self.sender
    }
    /// The receiving half.
    #[must_use]
    pub fn receiver(&self) -> &Receiver<S> {
        &self.receiver
    }
    /// Segments refused so far.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }
    /// Bytes written and not yet acknowledged by the peer.
    #[must_use]
    pub fn unacked(&self) -> u64 {
        self.sender.unacked()
    }
    /// Bytes that can be written now.
    #[must_use]
    pub fn writable(&self) -> u64 {
        self.sender.room()
    }
    /// Bytes that can be read now.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }
    /// The peer's FIN has arrived and everything before it.
    #[must_use]
    pub fn peer_finished(&self) -> bool {
        self.receiver.finished()
    }
    /// The application of this side reads everything at once and looks at nothing (a sink).
    pub fn discard_reads(&mut self) {
        self.receiver.discard();
    }
    /// News for the application, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        let first = self.events[0].take();
        self.events.rotate_left(1);
        first
    }
    fn emit(&mut self, event: Event) {
        if let Some(slot) = self.events.iter_mut().find(|e| e.is_none()) {
            *slot = Some(event);
        }
    }

    /// Writes `n` bytes; `data` holds them, or is empty where only lengths are kept. Returns how many were taken.
    pub fn write(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        match self.state {
            State::Closed
            | State::TimeWait
            | State::LastAck
            | State::Closing
            | State::FinWait1
            | State::FinWait2 => 0,
            _ if self.handshake.closed_by_user => 0,
            _ => self.sender.write(now, data, n),
        }
    }
    /// Takes back everything that was written and not yet sent once. Returns how many bytes.
    pub fn truncate(&mut self) -> u64 {
        self.sender.truncate()
    }
    /// Reads into `out`; where only lengths are kept, counts `n` bytes as read. Returns how many.
    pub fn read(&mut self, out: &mut [u8], n: u64) -> u64 {
        let n = self.receiver.read(out, n);
        if n > 0 && self.synchronised() {
            self.receiver.tell_window();
        }
        n
    }
    /// Copies the payload of a segment just returned by [`Self::poll_transmit`].
    pub fn payload(&self, segment: &Segment, out: &mut [u8]) {
        if let Some(seq) = segment.seq.unwrap(self.sender.una(), self.iss.add(self.sender.una() as u32)) {
            self.sender.payload(seq, out);
        }
    }

    /// No more data from this side: a FIN follows what was written.
    pub fn shutdown(&mut self, _now: Instant) {
        match self.state {
            State::Established => {
                self.state = State::FinWait1;
                self.sender.finish();
            }
            State::CloseWait => {
                self.state = State::LastAck;
                self.sender.finish();
            }
            State::SynSent | State::SynReceived => self.handshake.closed_by_user = true,
            State::Listen => self.close(),
            _ => {}
        }
    }
    /// Gives the connection up at once; the peer is told with a RST.
    pub fn abort(&mut self, _now: Instant) {
        if matches!(self.state, State::SynReceived) || self.synchronised() {
            let mut rst = self.blank(Flags::RST.with(Flags::ACK));
            rst.ack = self.irs.add(self.receiver.next_expected() as u32);
            self.reset_due = Some(rst);
        }
        self.close();
    }
    fn close(&mut self) {
        self.state = State::Closed;
        self.deadline = Instant::MAX;
        self.handshake.syn_due = false;
        self.sender.stop();
    }
    fn synchronised(&self) -> bool {
        !matches!(self.state, State::Listen | State::SynSent | State::SynReceived | State::Closed)
    }

    // ----- arrivals -------------------------------------------------------------------------------------

    /// Handles an arriving segment. Poll for transmissions until there are none before handling the next.
    ///
    /// # Errors
    /// Says why the segment was dropped; what the RFCs owe the peer (an acknowledgement) is sent all the same.
    #[inline]
    pub fn handle(&mut self, now: Instant, seg: &Segment, payload: &[u8]) -> Result<(), Rejected> {
        let result = match self.state {
            State::Established if seg.flags == Flags::ACK => self.established_segment(now, seg, payload),
            State::Closed => self.on_closed(seg),
            State::Listen => self.on_listen(now, seg),
            State::SynSent => self.on_syn_sent(now, seg),
            _ => self.synchronised_segment(now, seg, payload),
        };
        if result.is_err() {
            self.rejected += 1;
        }
        result
    }

    fn rcv_offset(&self, seq: Seq) -> Option<u64> {
        let nxt = self.receiver.next_expected();
        seq.unwrap(nxt, self.irs.add(nxt as u32))
    }
    fn snd_offset(&self, seq: Seq) -> Option<u64> {
        let una = self.sender.una();
        seq.unwrap(una, self.iss.add(una as u32))
    }

    /// RFC 9293 §3.10.7.4 for a segment whose only flag is ACK.
    #[inline]
    fn established_segment(&mut self, now: Instant, seg: &Segment, payload: &[u8]) -> Result<(), Rejected> {
        let Some(seq) = self.rcv_offset(seg.seq) else { return Err(Rejected::OutOfWindow) };
        // A probe may copy data long acknowledged, so the window does not apply to it.
        if !seg.mark.is_probe() && !self.receiver.acceptable(seq, seg.span()) {
            return self.unacceptable(seq, seg);
        }
        let echo = if self.timestamps { self.check_timestamps(now, seg, seq)? } else { None };
        // Half of all segments of a one-way transfer say nothing to the sending half that receives them.
        let says_nothing = seg.len > 0 && self.sender.nothing_new(self.iss, seg.ack, seg.window);
        if !says_nothing {
            self.acknowledgement(now, seg, seq, echo)?;
        }
        if seg.len > 0 {
            let data =
                Data { seq, len: seg.len, fin: false, payload, mark: seg.mark, probe_id: seg.probe_id };
            self.receiver.handle(now, &data)?;
            if self.receiver.finished() {
                self.move_on(now, true); // it filled the gap before a FIN that had come early
            }
        }
        Ok(())
    }

    /// Outside of the window: an acknowledgement is owed, nothing else happens.
    #[cold]
    fn unacceptable(&mut self, seq: u64, seg: &Segment) -> Result<(), Rejected> {
        if seg.flags.has(Flags::RST) {
            return Err(Rejected::OutOfWindow);
        }
        self.receiver.ack_now();
        let end = seq + u64::from(seg.len);
        if seg.len > 0 && end <= self.receiver.next_expected() {
            self.receiver.note_duplicate(seq, end);
            return Err(Rejected::Duplicate);
        }
        Err(Rejected::OutOfWindow)
    }

    /// PAWS and `TS.Recent` (RFC 7323 §5); the RTT by the echo.
    fn check_timestamps(
        &mut self,
        now: Instant,
        seg: &Segment,
        seq: u64,
    ) -> Result<Option<Duration>, Rejected> {
        let Some((val, echo)) = seg.ts else { return Ok(None) };
        if (val.wrapping_sub(self.ts_recent) as i32) < 0 && !seg.mark.is_probe() && !seg.flags.has(Flags::RST)
        {
            self.receiver.ack_now();
            return Err(Rejected::Paws);
        }
        // Not from a probe: its sequence number is old on purpose.
        if seq <= self.last_ack_sent && !seg.mark.is_probe() {
            self.ts_recent = val;
        }
        let ticks = self.timestamp(now).wrapping_sub(echo);
        // An echo from the future or of an age beyond reason is noise.
        Ok((echo != 0 && ticks < 1 << 31).then(|| self.tick * u64::from(ticks)))
    }

    fn timestamp(&self, now: Instant) -> u32 {
        ((now.as_nanos() / self.tick.as_nanos()) as u32).wrapping_add(self.ts_offset).wrapping_add(1)
    }

    #[inline(never)]
    fn sack_offsets(&self, seg: &Segment, blocks: &mut [(u64, u64); 4]) -> usize {
        let mut n = 0;
        for &(from, to) in seg.sack.as_slice() {
            if let (Some(from), Some(to)) = (self.snd_offset(from), self.snd_offset(to)) {
                blocks[n] = (from, to);
                n += 1;
            }
        }
        n
    }

    fn acknowledgement(
        &mut self,
        now: Instant,
        seg: &Segment,
        seq: u64,
        echo: Option<Duration>,
    ) -> Result<(), Rejected> {
        let Some(ack) = self.snd_offset(seg.ack) else {
            return Err(Rejected::AckTooOld);
        };
        let mut blocks = [(0, 0); 4];
        let n = if seg.sack.is_empty() { 0 } else { self.sack_offsets(seg, &mut blocks) };
        let fresh = self.wl1 < seq || (self.wl1 == seq && self.wl2 <= ack);
        let arrival = Arrival {
            ack,
            window: u64::from(seg.window),
            fresh,
            blocks: &blocks[..n],
            pure: seg.len == 0 && !seg.flags.has(Flags::FIN),
            answer: seg.mark.is_answer().then_some(seg.probe_id),
            echo,
            ece: seg.flags.has(Flags::ECE),
        };
        match self.sender.handle_ack(now, &arrival) {
            Ok(()) => {
                if fresh {
                    self.wl1 = seq;
                    self.wl2 = ack;
                }
                Ok(())
            }
            Err(e) => {
                // RFC 5961 §5.2: a challenge acknowledgement.
                self.receiver.ack_now();
                Err(e)
            }
        }
    }

    /// Everything beyond plain data and acknowledgements, in any synchronised state.
    fn synchronised_segment(&mut self, now: Instant, seg: &Segment, payload: &[u8]) -> Result<(), Rejected> {
        let Some(seq) = self.rcv_offset(seg.seq) else { return Err(Rejected::OutOfWindow) };
        if seg.flags.has(Flags::RST) {
            // RFC 5961 §3.2: only the exact next sequence number resets; others in the window are challenged.
            if self.state == State::TimeWait {
                return Err(Rejected::OutOfWindow); // RFC 1337: no assassination.
            }
            if seq == self.receiver.next_expected() {
                self.emit(Event::Reset);
                self.close();
                return Ok(());
            }
            if self.receiver.acceptable(seq, 0) {
                self.receiver.ack_now();
                return Err(Rejected::Challenged);
            }
            return Err(Rejected::OutOfWindow);
        }
        if seg.flags.has(Flags::SYN) {
            if self.state == State::SynReceived && seg.seq == self.irs {
                if seg.flags.has(Flags::ACK) && self.snd_offset(seg.ack) == Some(1) {
                    // Simultaneous open: both sides answered with SYN-ACK (RFC 9293 §3.5, figure 8).
                    self.establish(now, u64::from(seg.window), self.handshake.rtt(now));
                    self.receiver.ack_or_data();
                } else {
                    // Our SYN-ACK was lost.
                    self.handshake.syn_due = true;
                }
                return Ok(());
            }
            // RFC 5961 §4.2.
            self.receiver.ack_now();
            return Err(Rejected::Challenged);
        }
        if !seg.flags.has(Flags::ACK) {
            return Err(Rejected::Flags);
        }
        let span = seg.span();
        if !seg.mark.is_probe() && !self.receiver.acceptable(seq, span) {
            if self.state == State::TimeWait && span > 0 {
                // The last acknowledgement was lost; TIME-WAIT starts anew (RFC 9293 §3.10.7.4).
                self.deadline = now + self.config.time_wait;
            }
            return self.unacceptable(seq, seg);
        }
        let echo = if self.timestamps { self.check_timestamps(now, seg, seq)? } else { None };
        if self.state == State::SynReceived {
            if self.snd_offset(seg.ack) != Some(1) {
                let mut rst = self.blank(Flags::RST);
                rst.seq = seg.ack;
                self.reset_due = Some(rst);
                return Err(Rejected::AckOfUnsent);
            }
            self.establish(now, u64::from(seg.window), self.handshake.rtt(now));
        }
        self.acknowledgement(now, seg, seq, echo)?;
        let had_finished = self.receiver.finished();
        let mut outcome = Ok(());
        if span > 0 {
            let data = Data {
                seq,
                len: seg.len,
                fin: seg.flags.has(Flags::FIN),
                payload,
                mark: seg.mark,
                probe_id: seg.probe_id,
            };
            outcome = self.receiver.handle(now, &data);
        }
        self.move_on(now, !had_finished && self.receiver.finished());
        outcome
    }

    /// State changes after a FIN of ours was acknowledged or one of theirs arrived.
    fn move_on(&mut self, now: Instant, finished: bool) {
        if finished {
            self.emit(Event::PeerFinished);
        }
        let acked = self.sender.fin_acked();
        let peer_done = self.receiver.finished();
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
            _ => {}
        }
    }

    /// Nobody is here any more (RFC 9293 §3.10.7.1).
    #[cold]
    fn on_closed(&mut self, seg: &Segment) -> Result<(), Rejected> {
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

    fn on_listen(&mut self, now: Instant, seg: &Segment) -> Result<(), Rejected> {
        if seg.flags.has(Flags::RST) {
            return Err(Rejected::Flags);
        }
        if seg.flags.has(Flags::ACK) {
            let mut rst = self.blank(Flags::RST);
            rst.seq = seg.ack;
            self.reset_due = Some(rst);
            return Err(Rejected::Flags);
        }
        if !seg.flags.has(Flags::SYN) {
            return Err(Rejected::Flags);
        }
        self.irs = seg.seq;
        self.agree(seg);
        self.state = State::SynReceived;
        self.handshake.syn_due = true;
        self.handshake.sent_at = now;
        Ok(())
    }

    fn on_syn_sent(&mut self, now: Instant, seg: &Segment) -> Result<(), Rejected> {
        let acks_syn = seg.flags.has(Flags::ACK) && seg.ack == self.iss.add(1);
        if seg.flags.has(Flags::ACK) && !acks_syn {
            if !seg.flags.has(Flags::RST) {
                let mut rst = self.blank(Flags::RST);
                rst.seq = seg.ack;
                self.reset_due = Some(rst);
            }
            return Err(Rejected::AckOfUnsent);
        }
        if seg.flags.has(Flags::RST) {
            if acks_syn {
                self.emit(Event::Reset);
                self.close();
                return Ok(());
            }
            return Err(Rejected::Flags);
        }
        if !seg.flags.has(Flags::SYN) {
            return Err(Rejected::Flags);
        }
        self.irs = seg.seq;
        self.agree(seg);
        if acks_syn {
            if let (true, Some((val, _))) = (self.timestamps, seg.ts) {
                self.ts_recent = val;
            }
            let rtt = self.handshake.rtt(now);
            self.establish(now, u64::from(seg.window), rtt);
            self.receiver.ack_or_data();
        } else {
            // Simultaneous open. The SYN-ACK is no retransmission of our SYN.
            self.state = State::SynReceived;
            self.handshake.syn_due = true;
            self.handshake.tries = 0;
        }
        Ok(())
    }

    /// Options of the peer's SYN against ours.
    fn agree(&mut self, seg: &Segment) {
        let peer = &seg.syn;
        self.sack_ok = self.sack_ok && peer.sack_permitted;
        match peer.window_scale {
            // RFC 7323 §2.3: more than 14 is used as 14.
            Some(s) if self.config.window_scaling => self.peer_scale = s.min(14),
            _ => {
                self.our_scale = 0;
                self.peer_scale = 0;
            }
        }
        self.timestamps = self.config.timestamps && seg.ts.is_some();
        if let (true, Some((val, _))) = (self.timestamps, seg.ts) {
            self.ts_recent = val;
        }
        self.peer_mss = peer.mss.map_or(536, u32::from);
        self.peer_probes = peer.probes;
    }

    fn establish(&mut self, now: Instant, window: u64, rtt: Option<Duration>) {
        self.state = State::Established;
        self.deadline = Instant::MAX;
        self.handshake.syn_due = false;
        let peer = Peer {
            mss: self.peer_mss,
            window,
            sack: self.sack_ok,
            probes: self.peer_probes,
            rtt,
            rtt_is_sample: true,
            syn_lost: self.handshake.tries > 1,
        };
        self.begin(now, &peer);
        self.emit(Event::Connected);
        if self.handshake.closed_by_user {
            self.shutdown(now);
        }
    }

    // ----- departures -----------------------------------------------------------------------------------

    /// The next segment to transmit, or nothing until the next event.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if self.reset_due.is_some() {
            return self.reset_due.take();
        }
        if self.handshake.syn_due {
            return Some(self.syn(now));
        }
        if !self.synchronised() {
            return None;
        }
        if self.sender.active() {
            if let Some(out) = self.sender.poll(now) {
                return Some(self.data_segment(now, out));
            }
        }
        if self.receiver.poll_ack() {
            let mut seg = self.segment(now, Flags::ACK);
            self.fill_sack(&mut seg, None);
            return Some(seg);
        }
        if let Some(answer) = self.receiver.poll_probe_answer() {
            return Some(self.probe_answer(now, answer));
        }
        None
    }

    fn blank(&self, flags: Flags) -> Segment {
        Segment { seq: self.iss.add(self.sender.max() as u32), flags, ..Segment::default() }
    }

    /// A segment with current acknowledgement, window and timestamps.
    #[inline]
    fn segment(&mut self, now: Instant, flags: Flags) -> Segment {
        // What the 16-bit field can say at our scale.
        let window = self.receiver.window().min(65_535 << self.our_scale) >> self.our_scale << self.our_scale;
        self.last_ack_sent = self.receiver.next_expected();
        Segment {
            seq: self.iss.add(self.sender.max() as u32),
            ack: self.irs.add(self.last_ack_sent as u32),
            window: window as u32,
            ts: self.timestamps.then(|| (self.timestamp(now), self.ts_recent)),
            flags,
            ..Segment::default()
        }
    }

    #[inline]
    fn data_segment(&mut self, now: Instant, out: Out) -> Segment {
        let mut flags = Flags::ACK;
        if out.fin {
            flags = flags.with(Flags::FIN);
        }
        let mut seg = self.segment(now, flags);
        seg.seq = self.iss.add(out.seq as u32);
        seg.len = out.len;
        seg.mark = out.mark;
        seg.probe_id = out.probe_id;
        seg.low_priority = out.low_priority;
        if out.mark == Mark::None {
            self.receiver.carried();
        }
        seg
    }

    fn probe_answer(&mut self, now: Instant, answer: ProbeAnswer) -> Segment {
        let mut seg = self.segment(now, Flags::ACK);
        seg.mark = answer.mark;
        seg.probe_id = answer.id;
        seg.low_priority = true;
        self.fill_sack(&mut seg, Some(answer.range));
        seg
    }

    #[inline]
    fn fill_sack(&mut self, seg: &mut Segment, probe: Option<(u64, u64)>) {
        if !self.sack_ok {
            return;
        }
        let b = self.receiver.blocks(probe);
        if b.len > 0 {
            let mut blocks = SackBlocks::EMPTY;
            for &(from, to) in &b.blocks[..b.len] {
                blocks.push(self.irs.add(from as u32), self.irs.add(to as u32));
            }
            seg.sack = blocks;
        }
    }

    fn syn(&mut self, now: Instant) -> Segment {
        let h = &mut self.handshake;
        h.syn_due = false;
        h.tries += 1;
        if h.tries == 1 {
            h.sent_at = now;
        }
        let wait = self.config.rto.initial * (1 << (h.tries - 1).min(16));
        self.deadline = now + wait.min(self.config.rto.max);
        let answering = self.state == State::SynReceived;
        let offer_probes =
            self.config.probes == ProbeNegotiation::Negotiate && (!answering || self.peer_probes);
        let scale = self.config.window_scaling && (!answering || self.our_scale > 0 || self.peer_scale > 0);
        let mut seg = Segment {
            seq: self.iss,
            window: self.receiver.window().min(65_535) as u32,
            flags: Flags::SYN,
            syn: SynOptions {
                mss: Some(self.config.mss.min(65_535) as u16),
                window_scale: scale.then_some(scale_for(self.config.receive_buffer)),
                sack_permitted: self.sack_ok,
                // RFC 6994 §3 spirit: after two losses the path may be eating unknown options.
                probes: offer_probes && self.handshake.tries <= 2,
            },
            ts: (self.config.timestamps && (!answering || self.timestamps))
                .then(|| (self.timestamp(now), self.ts_recent)),
            ..Segment::default()
        };
        if answering {
            seg.flags = Flags::SYN.with(Flags::ACK);
            seg.ack = self.irs.add(1);
        }
        seg
    }

    // ----- time -----------------------------------------------------------------------------------------

    /// When [`Self::handle_timeout`] must be called; [`Instant::MAX`] for never.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.deadline.min(self.sender.next_timeout()).min(self.receiver.next_timeout())
    }

    /// Handles every deadline that has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline <= now {
            self.deadline = Instant::MAX;
            match self.state {
                State::SynSent | State::SynReceived => {
                    let most = self.config.max_retransmissions;
                    if most > 0 && self.handshake.tries > most {
                        self.emit(Event::TimedOut);
                        self.close();
                    } else {
                        self.handshake.syn_due = true;
                    }
                }
                State::TimeWait => self.close(),
                _ => {}
            }
        }
        self.sender.handle_timeout(now);
        if self.sender.gave_up() && self.state != State::Closed {
            self.emit(Event::TimedOut);
            self.abort(now);
        }
        self.receiver.handle_timeout(now);
    }
}

impl Handshake {
    /// RTT of the handshake, unless the SYN was retransmitted (Karn).
    fn rtt(&self, now: Instant) -> Option<Duration> {
        (self.tries == 1).then(|| now - self.sent_at)
    }
}

/// Smallest shift that lets 16 bits announce `buffer` (RFC 7323 §2.3).
fn scale_for(buffer: u64) -> u8 {
    (0..14).find(|s| buffer >> s <= 65_535).unwrap_or(14)
}
