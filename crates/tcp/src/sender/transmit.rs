//! The send loop, one segment per poll: retransmissions, new data, probes.

use super::space::FIRST;
use super::state::{Limit, PendingActions, State};
use super::{Engine, OutgoingSegment};
use crate::loss::scoreboard::{Item, NextSeg};
use crate::probing::Pick;
use crate::segment::Mark;
use crate::store::Store;
use crate::timer::Timer;
use skyhaul_base::Instant;
use skyhaul_cc::{Blocked, Clock, CongestionControl, RecoveryMode, Sent, Signal, Transmit};

impl<S: Store> Engine<S> {
    /// Whether [`Self::poll`] may return a segment.
    #[inline]
    pub(super) fn active(&self) -> bool {
        self.run.pending.is_some() || !self.due.is_empty() || self.prober.has_due()
    }

    /// See [`Sender::poll`].
    pub(super) fn poll(&mut self, now: Instant) -> Option<OutgoingSegment> {
        if !self.active() {
            return None;
        }
        if self.due.take(PendingActions::SUSPICION) && !self.board.is_empty() {
            self.decree_head_lost(now);
            match self.state {
                State::Open => self.enter_recovery(now, Signal::Loss, 0),
                State::Recovery(_) => self.due.set(PendingActions::HEAD),
                // Go-back-N sends it again as the window allows.
                State::Loss => {}
            }
        }
        if self.hold.is_on() {
            return self.low_priority_probe(now).or_else(|| self.window_probe());
        }
        if self.due.take(PendingActions::HEAD) {
            if let Some(out) = self.forced(now) {
                return Some(out);
            }
        }
        if self.start_reason.is_some() && self.space.end > self.board.max() {
            if let Some(start_reason) = self.start_reason.take() {
                self.begin(now, start_reason);
            }
        }
        if let Some(clock) = self.run.pending {
            match self.next_segment(now) {
                Ok(out) => {
                    self.run.sent += 1;
                    // Usually one acknowledgement releases one segment: saves the attempt at a second.
                    if let Some(blocked) = self.surely_blocked() {
                        self.loop_ended(now, clock, blocked);
                    }
                    return Some(out);
                }
                Err(blocked) => {
                    self.loop_ended(now, clock, blocked);
                    // The algorithm may have requested a retransmission.
                    if self.due.has(PendingActions::HEAD)
                        || self.due.has(PendingActions::SUSPICION)
                        || self.run.pending.is_some()
                    {
                        return self.poll(now);
                    }
                }
            }
        }
        self.low_priority_probe(now).or_else(|| self.window_probe())
    }

    /// Segments sent regardless of the window.
    fn forced(&mut self, now: Instant) -> Option<OutgoingSegment> {
        let out = if self.tail_loss_probe_due() {
            self.send_tail_loss_probe(now)
        } else {
            self.first_lost().map(|index| self.resend(now, index))
        };
        if out.is_some() {
            self.note_forced(now);
        }
        out
    }

    /// A probe that is due.
    fn low_priority_probe(&mut self, now: Instant) -> Option<OutgoingSegment> {
        if !self.prober.has_due() {
            return None;
        }
        let board = &self.board;
        let unacked = |pick| {
            let item: Option<Item> = match pick {
                Pick::From(offset) => board.resend_at(offset),
                Pick::Modulo(number) => board.unsacked_modulo(number),
            };
            item.filter(|i| i.len > 0).map(|i| (i.seq, i.len))
        };
        let p = self.prober.poll(now, self.space.window > 0, unacked)?;
        Some(OutgoingSegment {
            seq: p.seq,
            len: p.len,
            fin: false,
            first: false,
            low_priority: p.low_priority,
            mark: p.mark,
            probe_id: p.id,
        })
    }

    /// A window probe, if one is due.
    fn window_probe(&mut self) -> Option<OutgoingSegment> {
        if !self.due.take(PendingActions::WINDOW_PROBE) {
            return None;
        }
        self.counters.window_probes += 1;
        // Any receiver answers an old sequence number without payload with its window.
        let seq = self.board.una() - 1;
        Some(OutgoingSegment {
            seq,
            len: 0,
            fin: false,
            first: false,
            low_priority: false,
            mark: Mark::None,
            probe_id: None,
        })
    }

    /// The result of the next turn of the send loop, if it is obvious.
    #[inline]
    fn surely_blocked(&self) -> Option<Blocked> {
        let max = self.board.max();
        if !self.state.is_open()
            || self.space.nxt != max
            || self.control.policy().max_burst > 0
            || self.control.pacing().is_some()
            || self.by_time.is_some()
        {
            return None;
        }
        if self.flight() >= self.allowance() {
            Some(Blocked::Cwnd)
        } else if self.space.edge <= max && self.space.end > max {
            Some(Blocked::Rwnd)
        } else {
            None
        }
    }

    /// The send loop ends for this reason. In the steady state: `ordinary_loop_ended` (predict).
    pub(super) fn loop_ended(&mut self, now: Instant, clock: Clock, blocked: Blocked) {
        self.run.pending = None;
        let sent = core::mem::take(&mut self.run.sent);
        self.note_burst(now, sent);
        self.limit = self.limit_by(blocked);
        if self.limit == Limit::App {
            self.note_app_limit();
        }
        // The window is closed, data is waiting and nothing is in flight: only a window probe can discover that it
        // has opened (RFC 9293 §3.8.6.1).
        if blocked == Blocked::Rwnd && self.board.is_empty() {
            if self.timers.at(Timer::Persist) == Instant::MAX {
                self.timers.set(Timer::Persist, now + self.rtt.rto());
            }
        } else {
            self.stop_persisting();
        }
        if self.control.listens_to_transmit() {
            self.tell_of_transmission(now, &Transmit { sent, clock, blocked });
        }
    }

    /// What limits a sender whose send loop ended for this reason. A sender that its pacer or the limit of a burst holds
    /// back counts as limited by the window if it would fill the window otherwise (RFC 9002 §7.8, RFC 7661 §4.2): if the
    /// data that the application has written and the peer accepts suffices.
    #[inline]
    pub(super) fn limit_by(&self, blocked: Blocked) -> Limit {
        match blocked {
            Blocked::Cwnd => Limit::Window,
            Blocked::App => Limit::App,
            Blocked::Pacing | Blocked::Burst => {
                let offered = self.space.end.min(self.space.edge).saturating_sub(self.board.una());
                let fills = offered.min(self.config.send_buffer) >= self.control.window();
                if fills { Limit::Window } else { Limit::Other }
            }
            _ => Limit::Other,
        }
    }

    /// The application has nothing more to send for now: rate samples of the data in flight do not reflect the
    /// path.
    #[inline]
    pub(super) fn note_app_limit(&mut self) {
        // What has been SACKed has been delivered, and is not in flight.
        let (in_flight, delivered) = (self.board.pipe(), self.arrived.bytes);
        if let Some(s) = &mut self.sampler {
            s.app_limited(delivered, in_flight);
        }
    }

    /// Informs the algorithm that the send loop has run.
    #[inline(never)]
    pub(super) fn tell_of_transmission(&mut self, now: Instant, transmit: &Transmit) {
        self.tell(now, |cc, cx| cc.on_transmit(cx, transmit));
    }

    /// Outstanding bytes as compared with the window: pipe or FlightSize.
    #[inline]
    fn outstanding(&self) -> u64 {
        let by_pipe = self.sack
            && match self.state {
                State::Open => false,
                State::Recovery(_) => self.mode().uses_pipe(),
                State::Loss => self.config.keep_sack_after_rto,
            }
            && (self.state.is_quiet() || !self.control.policy().gate_on_flight);
        if by_pipe { self.pipe() } else { self.flight() }
    }

    /// Limit on outstanding bytes.
    #[inline]
    pub(super) fn allowance(&self) -> u64 {
        let base = self.control.window();
        if self.dupacks > 0 && self.state.is_open() && self.config.limited_transmit {
            // RFC 3042: one new segment on each of the first two duplicates; cwnd is not changed.
            base + u64::from(self.space.smss) * u64::from(self.dupacks.min(2))
        } else if self.state.is_quiet() {
            base + self.quiet_inflation()
        } else {
            base
        }
    }

    #[inline]
    fn next_segment(&mut self, now: Instant) -> Result<OutgoingSegment, Blocked> {
        let max_burst = self.control.policy().max_burst;
        if max_burst > 0 && self.run.sent >= u32::from(max_burst) {
            return Err(Blocked::Burst);
        }
        if let Some(rate) = self.control.pacing() {
            let next = self.pacer.next(rate);
            if now < next {
                self.timers.set(Timer::Pacing, next);
                return Err(Blocked::Pacing);
            }
            let out = self.choose(now)?;
            // Payload only, as in delivery-rate samples.
            self.pacer.sent(now, out.len);
            return Ok(out);
        }
        self.choose(now)
    }

    #[inline]
    fn choose(&mut self, now: Instant) -> Result<OutgoingSegment, Blocked> {
        if self.by_time.is_some() {
            return self.choose_by_time(now);
        }
        match self.state {
            State::Loss if self.frto_active() => self.choose_by_frto(now),
            State::Recovery(_) if self.mode().uses_pipe() && self.sack => self.choose_by_scoreboard(now),
            _ => self.choose_in_order(now),
        }
    }

    /// RFC 6675 §5 step C, or the amount that PRR allows.
    fn choose_by_scoreboard(&mut self, now: Instant) -> Result<OutgoingSegment, Blocked> {
        let smss = u64::from(self.space.smss);
        let room = if self.mode() == RecoveryMode::Prr && !self.control.policy().gate_on_flight {
            self.prr_budget() >= smss
        } else {
            self.outstanding() + smss <= self.allowance()
        };
        if !room {
            return Err(Blocked::Cwnd);
        }
        let new = self.new_len();
        let rescues = self.config.rescue_retransmission;
        let board = self.board.ensure_scoreboard();
        let next = board.next_seg(new.is_ok());
        match next.or_else(|| if rescues { board.rescue() } else { None }) {
            Some(NextSeg::Lost(i) | NextSeg::Hole(i)) => Ok(self.resend(now, i)),
            Some(NextSeg::New) => Ok(self.send_new(now, new.unwrap_or(0))),
            Some(NextSeg::Rescue(i)) => {
                board.rescue_sent(i, now);
                Ok(self.sent_again(now, i))
            }
            None => Err(new.err().unwrap_or(Blocked::App)),
        }
    }

    /// Data from `SND.NXT` on that was sent before (go-back-N), then new data. In the steady state: `next_ordinary`
    /// (predict).
    #[inline]
    fn choose_in_order(&mut self, now: Instant) -> Result<OutgoingSegment, Blocked> {
        let (allowance, outstanding) = (self.allowance(), self.outstanding());
        if self.space.nxt < self.board.max() {
            // Go-back-N: everything is retransmitted except SACKed segments, and except the new data that F-RTO has
            // sent since the timeout, which is still in flight.
            let (f_rto, recover) = (self.config.f_rto, self.answered.until);
            let board = self.board.ensure_scoreboard();
            let below = |&i: &usize| !f_rto || board.item(i).is_some_and(|s| s.seq < recover);
            match board.resend_at(self.space.nxt).filter(below) {
                Some(i) => {
                    let item = board.item(i).ok_or(Blocked::App)?;
                    if outstanding + u64::from(item.len) > allowance {
                        return Err(Blocked::Cwnd);
                    }
                    self.space.nxt = item.end();
                    return Ok(self.resend(now, i));
                }
                None => self.space.nxt = self.board.max(),
            }
        }
        if outstanding >= allowance {
            return Err(Blocked::Cwnd);
        }
        if let Some(probe) = self.poll_mtu_probe(now, outstanding, allowance)? {
            return Ok(probe);
        }
        let len = self.new_len()?;
        if outstanding + u64::from(len) > allowance {
            return Err(Blocked::Cwnd);
        }
        Ok(self.send_new(now, len))
    }

    /// Length of the next new segment, 0 for a lone FIN, or the reason why there is none.
    #[inline]
    pub(super) fn new_len(&mut self) -> Result<u32, Blocked> {
        self.space.new_len(&self.board, &self.config)
    }

    /// Sends new data. In the steady state: `send_ordinary` (predict).
    #[inline]
    pub(super) fn send_new(&mut self, now: Instant, len: u32) -> OutgoingSegment {
        let seq = self.board.max();
        let fin = self.space.take_fin(seq, len);
        if let Some(s) = &mut self.sampler {
            let (delivered, lost) = (self.arrived.bytes, self.board.total_lost());
            let in_flight = self.board.pipe() + u64::from(len);
            s.sent(self.board.len(), now, delivered, lost, in_flight, self.board.is_empty());
        }
        self.board.push(len + u32::from(fin), fin, now);
        self.space.nxt = self.board.max();
        if self.dupacks > 0 && self.state.is_open() {
            let beyond = self.flight().saturating_sub(self.control.window());
            self.repair().limited_sent = beyond;
        }
        self.rtt.time(self.space.nxt, now);
        self.after_send(now, seq, len, false);
        let low_priority = self.control.low_priority(seq - FIRST, false);
        OutgoingSegment { seq, len, fin, first: true, low_priority, mark: Mark::None, probe_id: None }
    }

    /// Retransmits the segment at `index`.
    pub(super) fn resend(&mut self, now: Instant, index: usize) -> OutgoingSegment {
        self.board.ensure_scoreboard().retransmit(index, now);
        self.sent_again(now, index)
    }

    fn sent_again(&mut self, now: Instant, index: usize) -> OutgoingSegment {
        let item = self.board.item(index).expect("index was just taken from the scoreboard");
        self.counters.retransmissions += 1;
        if self.state.is_loss() {
            self.repair().after_timeouts += 1;
        }
        self.note_mtu_probe_lost(now, item.seq);
        if let Some(repair) = &mut self.repair {
            repair.resent(now, item.seq);
        }
        if let Some(by_time) = &mut self.by_time {
            by_time.rack.sent(self.board.ensure_scoreboard(), index);
        }
        // Karn: no segment is timed across a retransmission.
        self.rtt.stop_timing();
        if let Some(s) = &mut self.sampler {
            let (delivered, lost) = (self.arrived.bytes, self.board.total_lost());
            s.sent(index, now, delivered, lost, self.board.pipe(), false);
        }
        // In the impatient variant of RFC 6582 §4 only the first partial acknowledgement, and so only its
        // retransmission, restarts the timer.
        let impatient = self.config.rto.restart_on_first_partial_only
            && self.state.recovery().is_some_and(|r| r.partial_acks > 1)
            && self.mode() == RecoveryMode::NewReno;
        if index == 0 && !impatient {
            // RFC 6675 §6 lets the timer restart here: the timer guards the copy of the head, which gets a whole RTO in every
            // phase. After F-RTO found a timeout genuine, the copy leaves most of an RTT after the acknowledgement that
            // started the timer.
            self.guard_head(now);
        }
        self.after_send(now, item.seq, item.len, true);
        OutgoingSegment {
            seq: item.seq,
            len: item.len,
            fin: item.fin,
            first: false,
            low_priority: self.control.low_priority(item.seq - FIRST, true),
            mark: Mark::None,
            probe_id: None,
        }
    }

    #[inline]
    fn after_send(&mut self, now: Instant, seq: u64, len: u32, retransmission: bool) {
        self.counters.segments_sent += 1;
        self.last_sent_at = now;
        self.prober.transmitted(seq, len, self.space.smss, self.space.max_window);
        if let Some(hole) = self.repair.as_mut().and_then(|r| r.hole.as_mut()) {
            hole.sent(seq, len);
        }
        if self.timers.at(Timer::Retransmission) == Instant::MAX {
            self.restart_timer(now);
        }
        let by_prr = self.fast_recovery() && self.mode() == RecoveryMode::Prr;
        if let Some(recovery) = self.state.recovery_mut() {
            recovery.pipe += i64::from(len);
            if by_prr {
                recovery.prr.sent(u64::from(len));
            }
        }
        if self.control.policy().sent_events {
            self.tell(now, |cc, cx| cc.on_sent(cx, &Sent { len, retransmission }));
        }
    }
}
