//! The send loop, one segment per poll: retransmissions, new data, probes.

use super::{FIRST, FinState, Out, Phase, Sender};
use crate::scoreboard::NextSeg;
use crate::segment::Mark;
use crate::store::Store;
use skyhaul_base::Instant;
use skyhaul_cc::{Blocked, Clock, CongestionControl, Priority, RecoveryMode, Sent, Signal, Transmit};

impl<S: Store> Sender<S> {
    /// Whether [`Self::poll`] may have something.
    #[inline]
    pub(crate) fn active(&self) -> bool {
        self.pending.is_some()
            || self.force_head
            || self.suspected
            || self.prober.has_due()
            || self.window_probe
    }

    /// The next segment to transmit, or nothing until the next event. Must be polled until it returns nothing
    /// before the next acknowledgement is handled, or probes that acknowledgements clock out are merged.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Out> {
        if core::mem::take(&mut self.suspected) && !self.sb.is_empty() {
            self.decree_head_lost(now);
            match self.phase {
                Phase::Open => self.enter_recovery(now, Signal::Loss),
                Phase::Recovery => self.force_head = true,
                Phase::Loss => {} // the timeout resends it as the window allows
            }
        }
        if self.force_head {
            self.force_head = false;
            if self.tlp.due {
                if let Some(out) = self.send_probe(now) {
                    return Some(out);
                }
            } else if let Some(index) = self.first_lost() {
                return Some(self.resend(now, index));
            }
        }
        if self.starting.is_some() && self.end > self.sb.max() {
            if let Some(start) = self.starting.take() {
                self.begin(now, start);
            }
        }
        if let Some(clock) = self.pending {
            match self.next_segment(now) {
                Ok(out) => {
                    self.loop_sent += 1;
                    // Mostly one acknowledgement releases one segment: saves the attempt at a second.
                    if let Some(blocked) = self.surely_blocked() {
                        self.loop_ended(now, clock, blocked);
                    }
                    return Some(out);
                }
                Err(blocked) => {
                    self.loop_ended(now, clock, blocked);
                    // The algorithm may have asked for the head.
                    if self.force_head || self.suspected || self.pending.is_some() {
                        return self.poll(now);
                    }
                }
            }
        }
        if self.prober.has_due() {
            let sb = &self.sb;
            let unacked = |from| {
                sb.resend_at(from).and_then(|i| sb.item(i)).filter(|i| i.len > 0).map(|i| (i.seq, i.len))
            };
            if let Some(p) = self.prober.poll(self.window > 0, unacked) {
                return Some(Out {
                    seq: p.seq,
                    len: p.len,
                    fin: false,
                    low_priority: true,
                    mark: p.mark,
                    probe_id: p.id,
                });
            }
        }
        if self.window_probe {
            self.window_probe = false;
            self.counters.window_probes += 1;
            // An old sequence number without payload makes any receiver answer with its window.
            let seq = self.sb.una() - 1;
            return Some(Out {
                seq,
                len: 0,
                fin: false,
                low_priority: false,
                mark: Mark::None,
                probe_id: None,
            });
        }
        None
    }

    /// What the next turn of the send loop would say, where a glance tells.
    #[inline]
    fn surely_blocked(&self) -> Option<Blocked> {
        let max = self.sb.max();
        if self.phase != Phase::Open
            || self.nxt != max
            || self.policy.max_burst > 0
            || self.cc.pacing().is_some()
            || self.rack.is_some()
        {
            return None;
        }
        if self.flight() >= self.allowance() {
            Some(Blocked::Cwnd)
        } else if self.edge <= max && self.end > max {
            Some(Blocked::Rwnd)
        } else {
            None
        }
    }

    fn loop_ended(&mut self, now: Instant, clock: Clock, blocked: Blocked) {
        self.pending = None;
        let sent = core::mem::take(&mut self.loop_sent);
        self.window_limited = blocked == Blocked::Cwnd;
        self.app_limited = blocked == Blocked::App;
        if self.app_limited && self.sampler.is_some() {
            let flight = self.flight();
            let delivered = self.path.delivered;
            if let Some(s) = &mut self.sampler {
                s.app_limited(delivered, flight);
            }
        }
        // A closed window with data waiting and nothing in flight: only a probe of ours can learn that it
        // opened again (RFC 9293 §3.8.6.1).
        if blocked == Blocked::Rwnd && self.sb.is_empty() {
            if self.persist_at == Instant::MAX {
                self.persist_at = now + self.rtt.rto();
            }
        } else {
            self.persist_at = Instant::MAX;
            self.persist_backoff = 0;
        }
        if self.policy.transmit_events && self.cc.wants_transmit() {
            self.call(now, |cc, cx| cc.on_transmit(cx, &Transmit { sent, clock, blocked }));
        }
    }

    /// Bytes that the window allows to be outstanding, and whether pipe or FlightSize is compared with it.
    #[inline]
    fn outstanding(&self) -> u64 {
        let by_pipe = self.sack
            && !self.policy.gate_on_flight
            && match self.phase {
                Phase::Recovery => self.mode().uses_pipe(),
                Phase::Loss => self.config.keep_sack_after_rto,
                Phase::Open => false,
            };
        if by_pipe { self.pipe() } else { self.nxt - self.sb.una() }
    }

    #[inline]
    pub(super) fn cwnd_bytes(&self) -> u64 {
        let cwnd = self.cc.window().cwnd;
        if self.config.byte_window {
            (cwnd * self.smss_f()) as u64
        } else {
            (cwnd as u64).saturating_mul(u64::from(self.smss))
        }
    }

    #[inline]
    pub(super) fn allowance(&self) -> u64 {
        let base = self.cwnd_bytes();
        let smss = u64::from(self.smss);
        if self.dupacks > 0 && self.phase == Phase::Open && self.config.limited_transmit {
            // RFC 3042: one new segment on each of the first two duplicates; cwnd is not changed.
            base + smss * u64::from(self.dupacks.min(2))
        } else {
            base
        }
    }

    #[inline]
    fn next_segment(&mut self, now: Instant) -> Result<Out, Blocked> {
        if self.policy.max_burst > 0 && self.loop_sent >= self.policy.max_burst {
            return Err(Blocked::Burst);
        }
        if let Some(rate) = self.cc.pacing() {
            if now < self.pacer.next() {
                self.pace_at = self.pacer.next();
                return Err(Blocked::Pacing);
            }
            let out = self.choose(now)?;
            // Payload, since that is what delivery-rate samples count.
            self.pacer.sent(now, out.len, rate);
            return Ok(out);
        }
        self.choose(now)
    }

    #[inline]
    fn choose(&mut self, now: Instant) -> Result<Out, Blocked> {
        if self.rack.is_some() {
            return self.choose_by_time(now);
        }
        let allowance = self.allowance();
        let outstanding = self.outstanding();
        let smss = u64::from(self.smss);
        match self.phase {
            Phase::Loss if self.frto.is_active() => self.choose_by_frto(now),
            Phase::Recovery if self.mode().uses_pipe() && self.sack => {
                let room = if self.mode() == RecoveryMode::Prr && !self.policy.gate_on_flight {
                    self.prr.budget >= smss
                } else {
                    outstanding + smss <= allowance
                };
                if !room {
                    return Err(Blocked::Cwnd);
                }
                let new = self.new_len();
                let rescues = self.config.rescue_retransmission;
                let next = self.sb.next_seg(new.is_ok());
                match next.or_else(|| if rescues { self.sb.rescue() } else { None }) {
                    Some(NextSeg::Lost(i) | NextSeg::Hole(i)) => Ok(self.resend(now, i)),
                    Some(NextSeg::New) => Ok(self.send_new(now, new.unwrap_or(0))),
                    Some(NextSeg::Rescue(i)) => {
                        self.sb.rescue_sent(i, now);
                        Ok(self.sent_again(now, i))
                    }
                    None => Err(new.err().unwrap_or(Blocked::App)),
                }
            }
            _ => {
                if self.nxt < self.sb.max() {
                    // Going back: what was sent before is sent again, except what is selectively acknowledged.
                    // Not what F-RTO sent since: that is on its way.
                    let below = |&i: &usize| {
                        !self.config.f_rto || self.sb.item(i).is_some_and(|s| s.seq < self.recover)
                    };
                    match self.sb.resend_at(self.nxt).filter(below) {
                        Some(i) => {
                            let item = self.sb.item(i).ok_or(Blocked::App)?;
                            if outstanding + u64::from(item.len) > allowance {
                                return Err(Blocked::Cwnd);
                            }
                            self.nxt = item.seq + u64::from(item.len) + u64::from(item.fin);
                            return Ok(self.resend(now, i));
                        }
                        None => self.nxt = self.sb.max(),
                    }
                }
                if outstanding >= allowance {
                    return Err(Blocked::Cwnd);
                }
                let len = self.new_len()?;
                if outstanding + u64::from(len) > allowance {
                    return Err(Blocked::Cwnd);
                }
                Ok(self.send_new(now, len))
            }
        }
    }

    /// Length of the next new segment, 0 for a lone FIN, or why there is none.
    #[inline]
    pub(super) fn new_len(&mut self) -> Result<u32, Blocked> {
        let max = self.sb.max();
        let waiting = self.end.saturating_sub(max);
        if waiting == 0 {
            // A FIN takes a byte of the window.
            return match self.fin {
                FinState::Wanted if self.edge > max => Ok(0),
                FinState::Wanted => Err(Blocked::Rwnd),
                _ => Err(Blocked::App),
            };
        }
        let smss = u64::from(self.smss);
        let room =
            self.edge.saturating_sub(max).min(self.config.send_buffer.saturating_sub(max - self.sb.una()));
        let len = waiting.min(smss).min(room);
        if len == 0 {
            return Err(Blocked::Rwnd);
        }
        if len < smss && !core::mem::take(&mut self.force_small) {
            // Silly-window avoidance (RFC 9293 §3.8.6.2.1): a small segment goes only if it empties the queue
            // and Nagle permits, or covers half of the largest window the peer ever offered.
            let empties =
                len == waiting && (!self.config.nagle || self.sb.is_empty() || self.fin == FinState::Wanted);
            if !(empties || 2 * len >= self.max_window) {
                return Err(if len < waiting { Blocked::Rwnd } else { Blocked::App });
            }
        }
        Ok(len as u32)
    }

    /// New data for RACK to watch, where it is in use.
    #[inline(never)]
    pub(super) fn send_new_by_time(&mut self, now: Instant, len: u32) -> Out {
        let out = self.send_new(now, len);
        if let Some(rack) = &mut self.rack {
            rack.sent(&self.sb, self.sb.len() - 1);
        }
        self.arm_probe(now);
        out
    }

    #[inline]
    fn send_new(&mut self, now: Instant, len: u32) -> Out {
        let seq = self.sb.max();
        let fin = self.fin == FinState::Wanted && seq + u64::from(len) == self.end && self.end < self.edge;
        if fin {
            self.fin = FinState::Sent;
        }
        let empty = self.sb.is_empty();
        if let Some(s) = &mut self.sampler {
            let (delivered, lost) = (self.path.delivered, self.sb.total_lost());
            s.sent(self.sb.len(), now, delivered, lost, self.sb.pipe() + u64::from(len), empty);
        }
        self.sb.push(len + u32::from(fin), fin, now);
        self.nxt = self.sb.max();
        if self.dupacks > 0 && self.phase == Phase::Open {
            self.limited_sent = self.flight().saturating_sub(self.cwnd_bytes());
        }
        self.rtt.time(self.nxt, now);
        self.after_send(now, seq, len, false);
        Out {
            seq,
            len,
            fin,
            low_priority: self.cc.priority(seq - FIRST, false) == Priority::Low,
            mark: Mark::None,
            probe_id: None,
        }
    }

    pub(super) fn resend(&mut self, now: Instant, index: usize) -> Out {
        self.sb.retransmit(index, now);
        self.sent_again(now, index)
    }

    fn sent_again(&mut self, now: Instant, index: usize) -> Out {
        let item = self.sb.item(index).expect("index was just taken from the scoreboard");
        self.counters.retransmissions += 1;
        self.undo.resent(now, item.seq);
        if let Some(rack) = &mut self.rack {
            rack.sent(&self.sb, index);
        }
        // Karn: nothing is timed across a retransmission.
        self.rtt.stop_timing();
        if let Some(s) = &mut self.sampler {
            let (delivered, lost) = (self.path.delivered, self.sb.total_lost());
            s.sent(index, now, delivered, lost, self.sb.pipe(), false);
        }
        // In the impatient variant of RFC 6582 §4 only the first partial acknowledgement restarts the timer, and so
        // only the retransmission that it asks for.
        let impatient = self.partial_acks > 1
            && self.mode() == RecoveryMode::NewReno
            && self.config.rto.restart_on_first_partial_only;
        if self.fast_recovery() && index == 0 && !impatient {
            // RFC 6298 §5 with RFC 6675 §5 step 4.3: the timer guards the retransmission.
            self.rto_at = now + self.rtt.rto();
        }
        self.after_send(now, item.seq, item.len, true);
        Out {
            seq: item.seq,
            len: item.len,
            fin: item.fin,
            low_priority: self.cc.priority(item.seq - FIRST, true) == Priority::Low,
            mark: Mark::None,
            probe_id: None,
        }
    }

    #[inline]
    fn after_send(&mut self, now: Instant, seq: u64, len: u32, retransmission: bool) {
        self.counters.segments_sent += 1;
        self.last_sent_at = now;
        self.prober.transmitted(seq, len, self.smss);
        self.pipe_counter += i64::from(len);
        if self.rto_at == Instant::MAX {
            self.rto_at = now + self.rtt.rto();
        }
        if self.fast_recovery() && self.mode() == RecoveryMode::Prr {
            self.prr.sent(u64::from(len));
        }
        if self.policy.sent_events {
            self.call(now, |cc, cx| cc.on_sent(cx, &Sent { len, retransmission }));
        }
    }
}
