//! Time-based loss detection in the sender. RACK is informed of all events, and the losses it finds start
//! recoveries. One timer serves the reordering window and the tail loss probe (RFC 8985 §8: never both at once).
//! With SNACK, the receiver's report replaces RACK's judgement; the rest is the same.

use super::ack::{AckEffect, Arrival};
use super::state::{PendingActions, State};
use super::{Clock, CongestionSignal, Engine, OutgoingSegment};
use crate::loss::rack::RackReport;
use crate::store::Store;
use crate::timer::Timer;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Blocked, CongestionControl, RecoveryMode, Signal};

impl<S: Store> Engine<S> {
    /// RACK detects losses. The acknowledgement has been entered into the scoreboard, and RTT estimates are up to
    /// date.
    #[inline(never)]
    pub(super) fn detect_by_time(&mut self, now: Instant, a: &Arrival<'_>, t: &AckEffect) {
        let una = self.board.una();
        let exiting = match &self.state {
            State::Open => false,
            State::Recovery(recovery) => una >= recovery.point,
            State::Loss => una >= self.answered.until,
        };
        let report = RackReport {
            // A receiver without support for probes reports copies of old data as duplicates.
            dsack: t.dsack && a.answer.is_none() && !self.prober.expects_legacy(),
            echo: a.echo,
            probe: a.answer.is_some(),
            srtt: self.rtt.srtt(),
            recovering: !self.state.is_open() && !exiting,
            exiting,
        };
        let Self { by_time, board, timers, .. } = self;
        let Some(by_time) = by_time else { return };
        by_time.tlp.measured |= t.measured;
        let due = if by_time.by_snack {
            by_time.rack.report_missing(board.ensure_scoreboard(), now, &report, a.hole);
            None
        } else {
            by_time.rack.acknowledged(board.ensure_scoreboard(), now, &report)
        };
        let again = by_time.rack.take_lost_again();
        by_time.settle(due, timers);
        self.uncount(again);
        self.note_lost();
    }

    /// Ends the processing of an acknowledgement: losses start a recovery, and a timer is set.
    #[inline(never)]
    pub(super) fn react_by_time(&mut self, now: Instant, a: &Arrival<'_>, t: &AckEffect) {
        if self.state.is_open() && self.first_lost().is_some() {
            self.enter_recovery(now, Signal::Loss, t.delivered());
        } else if self.state.is_open() {
            self.tail_loss_probe_acknowledged(now, a, t);
        }
        self.set_loss_timer(now, t.acked.bytes > 0);
    }

    /// Whether [`Timer::Loss`] runs as the reordering timer.
    fn settling(&self) -> bool {
        self.by_time.as_ref().is_some_and(|t| !t.waits_for_probe)
            && self.timers.at(Timer::Loss) < Instant::MAX
    }

    /// §8: the reordering timer takes precedence over the probe timer, and either over the retransmission timer.
    fn set_loss_timer(&mut self, now: Instant, advanced: bool) {
        let waits = self.by_time.as_ref().is_some_and(|t| t.waits_for_probe);
        if self.settling() {
            let rto_at = self.timers.at(Timer::Retransmission).max(self.timers.at(Timer::Loss));
            self.timers.set(Timer::Retransmission, rto_at);
        } else if !waits || advanced || self.board.sacked() > 0 || !self.state.is_open() {
            self.timers.stop(Timer::Loss);
            self.arm_tail_loss_probe(now);
        }
    }

    /// [`Timer::Loss`] expired.
    #[cold]
    pub(super) fn on_loss_timer(&mut self, now: Instant) {
        self.timers.stop(Timer::Loss);
        if self.board.is_empty() {
            return;
        }
        self.run_loop(Clock::Timer);
        let recovering = !self.state.is_open();
        let Self { by_time, board, timers, .. } = self;
        let Some(by_time) = by_time else { return };
        if by_time.waits_for_probe {
            self.on_tail_loss_probe_timer(now);
            return;
        }
        let due = by_time.rack.detect(board.ensure_scoreboard(), now, recovering);
        let again = by_time.rack.take_lost_again();
        by_time.settle(due, timers);
        self.uncount(again);
        self.note_lost();
        self.tell_losses(now);
        self.restart_timer(now);
        self.set_loss_timer(now, false);
        if self.first_lost().is_some() {
            let (mode, smss) = (self.mode(), self.space.smss.into());
            match &mut self.state {
                State::Open => self.enter_recovery(now, Signal::Loss, 0),
                // PRR sends on acknowledgements. The timer replaces one that did not come: it allows one segment.
                State::Recovery(recovery) if mode == RecoveryMode::Prr => recovery.prr.allow(smss),
                State::Recovery(_) | State::Loss => {}
            }
        }
    }

    /// The first segment to repair: the lowest lost one with RACK, otherwise the head.
    #[inline(never)]
    pub(super) fn first_lost(&mut self) -> Option<usize> {
        match &mut self.by_time {
            Some(by_time) => by_time.rack.next_lost(self.board.ensure_scoreboard()),
            None => (!self.board.is_empty()).then_some(0),
        }
    }

    /// The algorithm declares the head lost.
    #[cold]
    pub(super) fn decree_head_lost(&mut self, now: Instant) {
        let Self { by_time, board, .. } = self;
        let (Some(by_time), Some(head)) = (by_time, board.head()) else { return };
        let board = board.ensure_scoreboard();
        if head.sacked || board.awaits_repair(board.base()) {
            return;
        }
        by_time.rack.lose(board, 0);
        let again = by_time.rack.take_lost_again();
        self.uncount(again);
        self.note_lost();
        self.tell_losses(now);
    }

    /// Retransmissions of this many bytes were lost and leave the pipe.
    fn uncount(&mut self, bytes: u64) {
        if let Some(recovery) = self.state.recovery_mut() {
            recovery.pipe -= bytes as i64;
        }
    }

    /// Enters RACK's losses into the records of lost segments.
    pub(super) fn note_lost(&mut self) {
        let Some(by_time) = &mut self.by_time else { return };
        if let Some(s) = &mut self.sampler {
            by_time.rack.losses.iter().for_each(|&(index, len, total)| s.marked_lost(index, len, total));
        }
        by_time.rack.losses.clear();
    }

    /// The next segment: lost data, then new data, as the window allows. There is neither go-back-N nor guessing at
    /// holes.
    #[inline(never)]
    pub(super) fn choose_by_time(&mut self, now: Instant) -> Result<OutgoingSegment, Blocked> {
        if self.frto_active() {
            return self.choose_by_frto(now);
        }
        // With pipe, each segment SACKed beyond a hole releases another one while RACK waits: limited transmit
        // without its limit of two.
        let gate_on_flight = self.control.policy().gate_on_flight && !self.state.is_quiet();
        let (outstanding, allowance) = if gate_on_flight {
            (self.flight(), self.allowance())
        } else {
            (self.pipe(), self.control.window())
        };
        let smss = u64::from(self.space.smss);
        let recovery = self.fast_recovery();
        if recovery {
            let by_budget = self.mode() == RecoveryMode::Prr && !gate_on_flight;
            let room = if by_budget { self.prr_budget() >= smss } else { outstanding + smss <= allowance };
            if !room {
                return Err(Blocked::Cwnd);
            }
        }
        if let Some(item) = self.first_lost().and_then(|i| Some((i, self.board.item(i)?))) {
            let (index, item) = item;
            if !recovery && outstanding + (item.end() - item.seq) > allowance {
                return Err(Blocked::Cwnd);
            }
            return Ok(self.resend(now, index));
        }
        if !recovery && outstanding >= allowance {
            return Err(Blocked::Cwnd);
        }
        if let Some(probe) = self.poll_mtu_probe(now, outstanding, allowance)? {
            return Ok(probe);
        }
        let len = self.new_len()?;
        if !recovery && outstanding + u64::from(len) > allowance {
            return Err(Blocked::Cwnd);
        }
        Ok(self.send_new_by_time(now, len))
    }

    /// Sends new data and registers it with RACK, if in use.
    #[inline(never)]
    pub(super) fn send_new_by_time(&mut self, now: Instant, len: u32) -> OutgoingSegment {
        let out = self.send_new(now, len);
        if let Some(by_time) = &mut self.by_time {
            let board = self.board.ensure_scoreboard();
            by_time.rack.sent(board, board.len() - 1);
        }
        self.arm_tail_loss_probe(now);
        out
    }

    // ----- Tail loss probe, RFC 8985 §7 ---------------------------------------------------------------------

    /// Whether a tail loss probe may be sent, now or later (§7.2, §7.3).
    fn may_probe_tail(&self) -> bool {
        self.config.tail_loss_probe
            && self.by_time.as_ref().is_some_and(|t| t.tlp.may_probe())
            && self.state.is_open()
            && self.board.sacked() == 0
            && !self.board.is_empty()
    }

    /// §7.2: new data was sent or acknowledged, so the tail loss probe timer restarts.
    #[inline(never)]
    pub(super) fn arm_tail_loss_probe(&mut self, now: Instant) {
        if self.settling() || !self.may_probe_tail() {
            return;
        }
        let wait = match self.rtt.srtt() {
            Some(srtt) if self.board.len() == 1 => srtt * 2 + self.max_ack_delay(),
            Some(srtt) => srtt * 2,
            None => Duration::from_secs(1),
        };
        let at = (now + wait).min(self.timers.at(Timer::Retransmission));
        self.timers.set(Timer::Loss, at);
        if let Some(by_time) = &mut self.by_time {
            by_time.waits_for_probe = true;
        }
    }

    /// `TLP.max_ack_delay`: how long the peer may delay the acknowledgement of a lone segment. It is unknown; both
    /// ends of a flow have the same configuration.
    fn max_ack_delay(&self) -> Duration {
        let delayed = &self.config.delayed_ack;
        if delayed.every > 1 { delayed.delay } else { Duration::ZERO }
    }

    /// The tail loss probe timer expired (§7.3). Whether or not a probe is sent, the retransmission timer restarts.
    fn on_tail_loss_probe_timer(&mut self, now: Instant) {
        if !self.board.is_empty() {
            self.restart_timer(now);
        }
        let due = self.may_probe_tail();
        if let Some(by_time) = &mut self.by_time {
            by_time.tlp.due = due;
        }
        if due {
            self.due.set(PendingActions::HEAD);
        }
    }

    /// Whether a tail loss probe must be sent before other forced segments.
    pub(super) fn tail_loss_probe_due(&self) -> bool {
        self.by_time.as_ref().is_some_and(|t| t.tlp.due)
    }

    /// New data if there is any and the peer's window allows it, whatever the congestion window; otherwise the last
    /// segment again.
    #[cold]
    pub(super) fn send_tail_loss_probe(&mut self, now: Instant) -> Option<OutgoingSegment> {
        if let Some(by_time) = &mut self.by_time {
            by_time.tlp.due = false;
        }
        if !self.may_probe_tail() {
            return None;
        }
        // At most one per measurement: this transmission arms no new one.
        self.by_time.as_mut()?.tlp.measured = false;
        self.counters.loss_probes += 1;
        let new = self.new_len();
        let out = match new {
            Ok(len) => self.send_new_by_time(now, len),
            Err(_) => self.resend(now, self.board.len() - 1),
        };
        let max = self.board.max();
        self.by_time.as_mut()?.tlp.sent(new.is_err(), max);
        Some(out)
    }

    /// §7.4: evaluates an acknowledgement for the tail loss probe.
    fn tail_loss_probe_acknowledged(&mut self, now: Instant, a: &Arrival<'_>, t: &AckEffect) {
        let ordinary = a.answer.is_none();
        let bare = !t.advanced && a.pure && t.same_window && a.blocks.is_empty() && ordinary;
        let duplicate = if t.dsack && ordinary { a.blocks.first().copied() } else { None };
        let Some(by_time) = &mut self.by_time else { return };
        // The probe retransmitted the segment that ends here; its earlier copy was lost.
        let repaired = (by_time.tlp.end_seq().saturating_sub(1), 1);
        if !by_time.tlp.repaired(a.ack, duplicate, bare) {
            return;
        }
        // The loss left no other trace. The response is that of a fast recovery which ends at once.
        self.counters.recoveries += 1;
        if self.takes_for_error(repaired) {
            return;
        }
        let mut path = self.path(now);
        // FlightSize at the arrival of the acknowledgement.
        path.in_flight_bytes += t.acked.bytes;
        self.report_congestion_at(now, &path, CongestionSignal::Acks, repaired, |cc, cx| {
            cc.on_congestion(cx, Signal::Loss)
        });
        if let Some(repair) = &mut self.repair {
            repair.undo.forget();
        }
        self.prober.begin_epoch();
        self.tell(now, |cc, cx| cc.on_recovered(cx));
    }
}
