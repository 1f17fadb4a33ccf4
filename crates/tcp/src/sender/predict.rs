//! Header prediction: the fast path of a sender for ordinary acknowledgements and the new data that they release.
//!
//! A sender is *steady* when it is at rest (the last poll returned nothing) and in its normal state: no recovery,
//! hole, duplicate or probe, and no timer except retransmission and pacing. An acknowledgement with nothing but the
//! cumulative number then advances `SND.UNA`, gives an RTT sample, grows the window and restarts the timer. What
//! the window releases, or the application writes, is new data in full segments, possibly with a short one at the
//! end. Everything else takes the slow path, which ends the steady state.
//!
//! | fast | slow | what cannot happen in a steady sender |
//! |---|---|---|
//! | `acknowledge_ordinary`: window, `SND.UNA` | `Engine::take`, `advance` (ack) | blocks, FIN, persist timer, copies for dummies |
//! | `acknowledge_ordinary`: RTT, round, rate | `measure`, `sample_rate` (ack) | answers to probes |
//! | `acknowledge_ordinary`: `AckFacts` | `tell_acknowledgement` (ack), `Engine::path` | recovery, repair after a timeout |
//! | `acknowledge_ordinary`: timer | `after_advance` (repair) | recovery |
//! | `next_ordinary`, `withheld`, `next_short` | `next_segment`, `choose_in_order` (transmit), `Space::new_len` | retransmissions, MTU probes |
//! | `send_ordinary` | `send_new`, `after_send` (transmit) | limited transmit, FIN |
//! | `ordinary_loop_ended` | `loop_ended` (transmit) | a closed window without data in flight |

use super::space::{FIRST, FinState, Space};
use super::state::{Hold, Limit, State};
use super::{Engine, OutgoingSegment, Phase, Sender};
use crate::loss::Board;
use crate::rtt::Estimator;
use crate::segment::Mark;
use crate::store::Store;
use crate::timer::Timer;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Ack, AckKind, Actions, Blocked, Clock, Facts, Path, ProbeSupport, RateSample, Transmit};

/// Result of the fast path for an acknowledgement.
enum Ordinary {
    /// Not ordinary; nothing has changed.
    No,
    /// Handled.
    Done,
    /// Handled, but the algorithm requested something that the send loop of the fast path does not support.
    Disturbed,
}

/// Facts about an ordinary acknowledgement for the algorithm.
struct AckFacts<'a> {
    board: &'a Board,
    space: &'a Space,
    rtt: &'a Estimator,
    round: u64,
    delivered: u64,
    app_limited: bool,
    probes: ProbeSupport,
    sack: bool,
    /// Bytes newly acknowledged.
    bytes: u64,
    sample: Option<Duration>,
    rate: Option<RateSample>,
    cwnd_limited: bool,
}

impl Facts for AckFacts<'_> {
    /// Like [`Engine::path`], in the normal state.
    #[inline(always)]
    fn path(&self) -> Path {
        let in_flight = self.board.span();
        Path {
            smss: self.space.smss,
            rwnd: self.space.rwnd,
            in_flight_bytes: in_flight,
            pipe_bytes: if self.sack { self.board.pipe() } else { in_flight },
            queued_bytes: self.space.end.saturating_sub(self.board.max()),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            round: self.round,
            delivered: self.delivered,
            lost: self.board.total_lost(),
            head: None,
            phase: Phase::Open,
            after_timeout: false,
            app_limited: self.app_limited,
            probes: self.probes,
            sack: self.sack,
            // Feedback of accurate ECN does not come this way.
            marked: None,
        }
    }
    #[inline(always)]
    fn ack(&self) -> Ack {
        Ack {
            kind: AckKind::New,
            acked: self.bytes as f64 / self.space.smss_f(),
            sacked: 0.0,
            lost: 0.0,
            rtt: self.sample,
            rate: self.rate,
            receiver_rate: None,
            ece: false,
            cwnd_limited: self.cwnd_limited,
        }
    }
}

/// One turn of the send loop of the fast path.
enum SendDecision {
    /// This segment is sent.
    Sent(OutgoingSegment),
    /// The loop ends for this reason.
    Blocked(Blocked),
    /// The slow path must decide.
    Unclear,
}

impl<S: Store> Sender<S> {
    /// Processes an acknowledgement with nothing but the cumulative number, if it is an ordinary one for a steady
    /// sender; otherwise nothing has changed. The caller then polls for segments to send.
    #[inline(always)]
    pub fn acknowledge_plain(&mut self, now: Instant, ack: u64, window: u64, echo: Option<Duration>) -> bool {
        if !self.steady {
            return false;
        }
        match self.engine.acknowledge_ordinary(now, ack, window, echo) {
            Ordinary::Done => true,
            Ordinary::Disturbed => {
                self.general();
                true
            }
            Ordinary::No => false,
        }
    }

    /// The next segment of the fast path.
    #[inline(always)]
    fn poll_plain(&mut self, now: Instant) -> Option<OutgoingSegment> {
        if !self.steady {
            return None;
        }
        let clock = self.engine.run.pending?;
        match self.engine.next_ordinary(now) {
            SendDecision::Sent(out) => {
                // Usually one acknowledgement releases one segment: saves the attempt at one more.
                if let Some(blocked) = self.engine.surely_at_end(now) {
                    self.end_ordinary(now, clock, blocked);
                }
                Some(out)
            }
            SendDecision::Blocked(blocked) => {
                self.end_ordinary(now, clock, blocked);
                None
            }
            SendDecision::Unclear => {
                self.general();
                None
            }
        }
    }

    /// The send loop ends for this reason.
    #[inline(always)]
    fn end_ordinary(&mut self, now: Instant, clock: Clock, blocked: Blocked) {
        // An algorithm that is called may request something.
        if self.engine.ordinary_loop_ended(now, clock, blocked) && self.engine.active() {
            self.general();
        }
    }

    /// The next segment to transmit, or nothing until the next event. Must be polled until it returns nothing
    /// before the next acknowledgement is handled; otherwise probes clocked out by acknowledgements are merged.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<OutgoingSegment> {
        if let Some(out) = self.poll_plain(now) {
            return Some(out);
        }
        if self.steady && self.engine.run.pending.is_none() {
            return None;
        }
        let engine = self.general();
        let out = engine.poll(now);
        if out.is_none() {
            engine.board.tidy();
            let steady = engine.is_steady();
            self.steady = steady;
        }
        out
    }

    /// [`Self::handle_timeout`] if a timer has expired.
    #[inline]
    pub(super) fn expire(&mut self, now: Instant) {
        let timers = &mut self.engine.timers;
        let paced = timers.at(Timer::Pacing);
        // A paced sender gets a call for each segment.
        if self.steady && paced <= now && timers.at(Timer::Retransmission) > now {
            timers.set(Timer::Pacing, Instant::MAX);
            if timers.next() > now {
                self.engine.run_loop(Clock::Timer);
                return;
            }
            timers.set(Timer::Pacing, paced);
        }
        self.general().expire(now);
    }
}

impl<S: Store> Engine<S> {
    /// Whether the sender is in its normal state; see the module documentation.
    fn is_steady(&self) -> bool {
        match (&self.state, self.hold, self.space.fin) {
            (State::Open, Hold::NO, FinState::Open) => self.config.header_prediction && self.is_calm(),
            _ => false,
        }
    }
    /// Whether nothing is left of a disturbance, and nothing that the fast path leaves out is in use.
    fn is_calm(&self) -> bool {
        let p = self.control.policy();
        self.space.nxt == self.board.max()
            && self.board.is_clean()
            && self.by_time.is_none()
            // A sender without data has not started its algorithm yet; `Sender::offer` ends its steady state.
            && (self.start_reason.is_none() || self.space.end <= self.board.max())
            && !self.space.force_small
            && !self.after_timeout
            && !self.suspects_path()
            && self.mtu_search().is_none()
            && self.dupacks == 0
            && self.silence.persist_backoff == 0
            && self.timers.at(Timer::Persist) == Instant::MAX
            && !self.active()
            && !self.prober.expects_legacy()
            && !(S::KEEPS && self.prober.in_use())
            && self.repair.as_ref().is_none_or(|r| !r.undo.watch && r.limited_sent == 0)
            && self.classifier().is_none_or(|c| !c.listens())
            && !(p.watch_head || p.sent_events)
    }

    /// Processes an acknowledgement if it is ordinary.
    #[inline(always)]
    fn acknowledge_ordinary(
        &mut self,
        now: Instant,
        ack: u64,
        window: u64,
        echo: Option<Duration>,
    ) -> Ordinary {
        let (una, max) = (self.board.una(), self.board.max());
        if ack <= una || ack > max {
            return Ordinary::No;
        }
        if window == self.space.window {
            self.space.edge = self.space.edge.max(ack + window);
        } else {
            // Short segments change the announced window: the peer need not move its right edge by a few bytes (RFC 9293
            // §3.8.6.2.2).
            self.space.update_window(ack, window, self.config.send_buffer);
        }
        let acked = self.board.ack(ack);
        let bytes = acked.bytes;
        self.store.release(bytes);
        self.counters.acks += 1;
        self.counters.bytes_acked += bytes;
        self.arrived.bytes += bytes;
        self.arrived.highest = self.arrived.highest.max(ack);

        let rtt = acked.sent_at.map(|sent| now - sent);
        self.estimate(now, ack, echo, rtt, &acked);
        if self.arrived.highest > self.arrived.round_end {
            self.arrived.round += 1;
            self.arrived.round_end = max;
        }
        let mut rate = None;
        if let Some(s) = &mut self.sampler {
            (0..acked.popped).for_each(|i| s.delivered(i, now));
            s.popped(acked.popped);
            rate = s.take(self.arrived.bytes, self.board.total_lost(), self.rtt.min());
        }
        let mut act = Actions::default();
        let facts = AckFacts {
            board: &self.board,
            space: &self.space,
            rtt: &self.rtt,
            round: self.arrived.round,
            delivered: self.arrived.bytes,
            app_limited: self.limit == Limit::App,
            probes: self.prober.support,
            sack: self.sack,
            bytes,
            sample: rtt,
            rate,
            cwnd_limited: !self.config.window_validation || self.limit == Limit::Window,
        };
        self.control.acknowledged(now, &self.space, &mut act, &facts);
        let disturbed = !act.is_empty();
        if disturbed {
            self.carry_out(now, &act);
        }
        if self.board.is_empty() {
            self.timers.set(Timer::Retransmission, Instant::MAX);
        } else {
            self.restart_timer(now);
        }
        self.run.pending = Some(Clock::Ack);
        if disturbed { Ordinary::Disturbed } else { Ordinary::Done }
    }

    /// The next new segment of the fast path.
    #[inline(always)]
    fn next_ordinary(&mut self, now: Instant) -> SendDecision {
        if self.control.is_metered() {
            if let Some(blocked) = self.withheld(now) {
                return SendDecision::Blocked(blocked);
            }
        }
        let (una, max, smss) = (self.board.una(), self.board.max(), u64::from(self.space.smss));
        let (flight, window) = (max - una, self.control.window());
        if flight >= window {
            return SendDecision::Blocked(Blocked::Cwnd);
        }
        if !self.room_for(smss) {
            if self.space.end <= max {
                return SendDecision::Blocked(Blocked::App);
            }
            return self.next_short(now, flight, window);
        }
        if flight + smss > window {
            return SendDecision::Blocked(Blocked::Cwnd);
        }
        let full = self.space.smss;
        SendDecision::Sent(self.send_ordinary(now, max, full, full))
    }

    /// Why the next segment must not leave yet although the window may admit it.
    #[inline(never)]
    fn withheld(&mut self, now: Instant) -> Option<Blocked> {
        let max_burst = self.control.policy().max_burst;
        if max_burst > 0 && self.run.sent >= u32::from(max_burst) {
            return Some(Blocked::Burst);
        }
        let next = self.control.pacing().map(|rate| self.pacer.next(rate)).filter(|next| now < *next);
        if let Some(next) = next {
            self.timers.set(Timer::Pacing, next);
            return Some(Blocked::Pacing);
        }
        None
    }

    /// The result of the next turn of the send loop, if it is obvious.
    #[inline]
    fn surely_at_end(&mut self, now: Instant) -> Option<Blocked> {
        if self.control.is_metered() {
            return self.withheld(now);
        }
        let (full, empty) = (self.board.span() >= self.control.window(), self.board.max() >= self.space.end);
        if !(full | empty) {
            return None;
        }
        Some(if full { Blocked::Cwnd } else { Blocked::App })
    }

    /// Whether the application has a full segment, and the peer's window and the send buffer have room for it.
    #[inline]
    fn room_for(&self, smss: u64) -> bool {
        let max = self.board.max();
        self.space.end >= max + smss
            && self.space.edge >= max + smss
            && self.config.send_buffer >= max - self.board.una() + smss
    }

    /// There is no room for a full segment, or the application has only a part of one: a short one is sent if allowed
    /// (see [`Space::new_len`]).
    #[inline(always)]
    fn next_short(&mut self, now: Instant, flight: u64, window: u64) -> SendDecision {
        let (max, full) = (self.board.max(), self.space.smss);
        let (len, edge) = (self.space.end - max, self.space.edge);
        if edge <= max && flight > 0 {
            return SendDecision::Blocked(Blocked::Rwnd);
        }
        let short = len < u64::from(full) && (!self.config.nagle || flight == 0);
        let fits = edge >= max + len && self.config.send_buffer >= flight + len;
        if !(short && fits) {
            return SendDecision::Unclear;
        }
        if flight + len > window {
            return SendDecision::Blocked(Blocked::Cwnd);
        }
        SendDecision::Sent(self.send_ordinary(now, max, len as u32, full))
    }

    /// Sends a new segment, which is `full` or the end of the written data.
    #[inline(always)]
    fn send_ordinary(&mut self, now: Instant, seq: u64, len: u32, full: u32) -> OutgoingSegment {
        if let Some(s) = &mut self.sampler {
            let in_flight = self.board.pipe() + u64::from(len);
            let (len, empty) = (self.board.len(), self.board.is_empty());
            s.sent(len, now, self.arrived.bytes, self.board.total_lost(), in_flight, empty);
        }
        if len < full {
            self.board.push_short(len, now);
        } else {
            self.board.push(len, false, now);
        }
        self.space.nxt = seq + u64::from(len);
        self.rtt.time(self.space.nxt, now);
        self.counters.segments_sent += 1;
        self.last_sent_at = now;
        self.prober.transmitted(seq, len, full, self.space.max_window);
        if self.timers.at(Timer::Retransmission) == Instant::MAX {
            self.restart_timer(now);
        }
        self.run.sent += 1;
        if self.control.pacing().is_some() {
            // Payload only, as in delivery-rate samples.
            self.pacer.sent(now, len);
        }
        let low_priority = self.control.low_priority(seq - FIRST, false);
        OutgoingSegment { seq, len, fin: false, first: true, low_priority, mark: Mark::None, probe_id: None }
    }

    /// [`Self::loop_ended`] without the persist timer: data is in flight whenever the peer's window is closed. Returns
    /// whether the algorithm was called.
    #[inline(always)]
    fn ordinary_loop_ended(&mut self, now: Instant, clock: Clock, blocked: Blocked) -> bool {
        self.run.pending = None;
        let sent = core::mem::take(&mut self.run.sent);
        self.note_burst(now, sent);
        self.limit = self.limit_by(blocked);
        if self.limit == Limit::App && (self.sampler.is_some() | self.board.has_scoreboard()) {
            self.nothing_left();
        }
        let listens = self.control.listens_to_transmit();
        if listens {
            self.tell_of_transmission(now, &Transmit { sent, clock, blocked });
        }
        listens
    }

    /// The application has nothing more to send for now.
    #[inline(never)]
    fn nothing_left(&mut self) {
        self.note_app_limit();
        self.board.tidy();
    }
}
