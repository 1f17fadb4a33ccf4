//! Loss detection by time in the sender: RACK is told what happens, its verdicts start recoveries, and one timer
//! serves both the reordering window and the tail loss probe (RFC 8985 §8: never both at once). Where the receiver names
//! what is missing its word takes the place of RACK's judgement; the rest is the same.

use super::ack::{Arrival, Taken};
use super::{Clock, Engine, Out, Phase, Sign};
use crate::config::Config;
use crate::loss::Board;
use crate::loss::rack::{Rack, RackReport};
use crate::loss::tlp::Tlp;
use crate::store::Store;
use crate::timer::{Timer, Timers};
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{Blocked, CongestionControl, RecoveryMode, Signal};

/// RACK and its tail loss probe.
#[derive(Clone, Debug)]
pub(super) struct ByTime {
    pub(super) rack: Rack,
    pub(super) tlp: Tlp,
    /// The receiver's word counts, and time does not (SCPS-TP's SNACK).
    by_name: bool,
    /// [`Timer::Loss`] is the wait for a tail loss probe, not the reordering window.
    waits_for_probe: bool,
}

impl ByTime {
    pub(super) fn new(config: &Config, by_name: bool) -> Self {
        Self { rack: Rack::new(config), tlp: Tlp::NEW, by_name, waits_for_probe: false }
    }

    /// The reordering timer is set to `due`, or not at all.
    fn settle(&mut self, due: Option<Instant>, timers: &mut Timers) {
        if due.is_some() || !self.waits_for_probe {
            timers.set(Timer::Loss, due.unwrap_or(Instant::MAX));
            self.waits_for_probe = false;
        }
    }

    /// A recovery begins: what became of the tail loss probe is its business (§7.1).
    pub(super) fn begin_recovery(&mut self, timers: &mut Timers) {
        self.tlp.reset();
        if self.waits_for_probe {
            timers.stop(Timer::Loss);
        }
    }

    /// The retransmission timer expired.
    pub(super) fn time_out(
        &mut self,
        board: &mut Board,
        timers: &mut Timers,
        now: Instant,
        keep: bool,
        all: bool,
    ) {
        self.rack.timeout(board.full(), now, keep, all);
        self.rack.take_lost_again();
        timers.stop(Timer::Loss);
        self.tlp.reset();
    }

    /// Everything is cut anew, and watched from now on.
    pub(super) fn restart(&mut self, board: &Board, config: &Config) {
        self.rack = Rack::new(config);
        if let Some(s) = board.scoreboard() {
            self.rack.watch(s);
        }
    }
}

impl<S: Store> Engine<S> {
    /// The acknowledgement has been entered into the scoreboard, RTT estimates are up to date: RACK judges.
    #[inline(never)]
    pub(super) fn detect_by_time(&mut self, now: Instant, a: &Arrival<'_>, t: &Taken) {
        let una = self.board.una();
        let exiting = match self.phase {
            Phase::Open => false,
            Phase::Recovery => una >= self.repair().recovery_point,
            Phase::Loss => una >= self.recover,
        };
        let report = RackReport {
            // A receiver that does not know probes reports copies of old data as duplicates.
            dsack: t.dsack && a.answer.is_none() && !self.prober.expects_legacy(),
            echo: a.echo,
            probe: a.answer.is_some(),
            srtt: self.rtt.srtt(),
            recovering: self.phase != Phase::Open && !exiting,
            exiting,
        };
        let Self { by_time, board, timers, .. } = self;
        let Some(by_time) = by_time else { return };
        by_time.tlp.measured |= t.measured;
        let due = if by_time.by_name {
            by_time.rack.named(board.full(), now, &report, a.hole);
            None
        } else {
            by_time.rack.acknowledged(board.full(), now, &report)
        };
        let again = by_time.rack.take_lost_again();
        by_time.settle(due, timers);
        self.uncount(again);
        self.note_lost();
    }

    /// The acknowledgement has been dealt with: losses start a recovery, and a timer is set.
    #[inline(never)]
    pub(super) fn react_by_time(&mut self, now: Instant, a: &Arrival<'_>, t: &Taken) {
        let delivered = t.delivered();
        if let Some(by_time) = &mut self.by_time {
            by_time.rack.delivered = delivered;
        }
        if self.phase == Phase::Open && self.first_lost().is_some() {
            self.enter_recovery(now, Signal::Loss);
        } else if self.phase == Phase::Open {
            self.tail_loss_probe_acknowledged(now, a, t);
        }
        if let Some(by_time) = &mut self.by_time {
            by_time.rack.delivered = 0;
        }
        self.set_loss_timer(now, t.acked.bytes > 0);
    }

    /// Reordering is given time to settle: the timer of this file is the reordering timer.
    fn settling(&self) -> bool {
        self.by_time.as_ref().is_some_and(|t| !t.waits_for_probe)
            && self.timers.at(Timer::Loss) < Instant::MAX
    }

    /// §8: the reordering timer goes before the probe timer, and either before the retransmission timer.
    fn set_loss_timer(&mut self, now: Instant, advanced: bool) {
        let waits = self.by_time.as_ref().is_some_and(|t| t.waits_for_probe);
        if self.settling() {
            let rto_at = self.timers.at(Timer::Retransmission).max(self.timers.at(Timer::Loss));
            self.timers.set(Timer::Retransmission, rto_at);
        } else if !waits || advanced || self.board.sacked() > 0 || self.phase != Phase::Open {
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
        let recovering = self.phase != Phase::Open;
        let Self { by_time, board, timers, .. } = self;
        let Some(by_time) = by_time else { return };
        if by_time.waits_for_probe {
            self.on_tail_loss_probe_timer(now);
            return;
        }
        let due = by_time.rack.detect(board.full(), now, recovering);
        let again = by_time.rack.take_lost_again();
        by_time.settle(due, timers);
        self.uncount(again);
        self.note_lost();
        self.tell_losses(now);
        self.restart_timer(now);
        self.set_loss_timer(now, false);
        if self.first_lost().is_some() {
            match self.phase {
                Phase::Open => self.enter_recovery(now, Signal::Loss),
                // The timer stands for the acknowledgement that did not come: one segment at least.
                Phase::Recovery if self.mode() == RecoveryMode::Prr => {
                    let smss = self.space.smss.into();
                    self.repair().prr.allow(smss);
                }
                Phase::Recovery | Phase::Loss => {}
            }
        }
    }

    /// What is repaired first: the lowest lost segment by RACK, the head without.
    #[inline(never)]
    pub(super) fn first_lost(&mut self) -> Option<usize> {
        match &mut self.by_time {
            Some(by_time) => by_time.rack.next_lost(self.board.full()),
            None => (!self.board.is_empty()).then_some(0),
        }
    }

    /// The algorithm says that the head is lost.
    #[cold]
    pub(super) fn decree_head_lost(&mut self, now: Instant) {
        let Self { by_time, board, .. } = self;
        let (Some(by_time), Some(head)) = (by_time, board.head()) else { return };
        let board = board.full();
        if head.sacked || board.awaits_repair(board.base()) {
            return;
        }
        by_time.rack.lose(board, 0);
        let again = by_time.rack.take_lost_again();
        self.uncount(again);
        self.note_lost();
        self.tell_losses(now);
    }

    /// Retransmissions of so many bytes are lost: they are in no pipe any more.
    fn uncount(&mut self, bytes: u64) {
        if let Some(repair) = &mut self.repair {
            repair.pipe_counter -= bytes as i64;
        }
    }

    /// What RACK declared lost goes into the records of lost segments.
    pub(super) fn note_lost(&mut self) {
        let Some(by_time) = &mut self.by_time else { return };
        if let Some(s) = &mut self.sampler {
            by_time.rack.losses.iter().for_each(|&(index, len, total)| s.marked_lost(index, len, total));
        }
        by_time.rack.losses.clear();
    }

    /// The next segment: what is lost, then new data, as the window allows. There is no going back and no guessing
    /// at holes: time tells.
    #[inline(never)]
    pub(super) fn choose_by_time(&mut self, now: Instant) -> Result<Out, Blocked> {
        if self.frto_active() {
            return self.choose_by_frto(now);
        }
        // By pipe, each segment found beyond a hole lets another one go while RACK waits: limited transmit without
        // its limit of two.
        let gate_on_flight = self.control.policy().gate_on_flight && !self.quiet;
        let (outstanding, allowance) = if gate_on_flight {
            (self.flight(), self.allowance())
        } else {
            (self.pipe(), self.control.window())
        };
        let smss = u64::from(self.space.smss);
        let recovery = self.phase == Phase::Recovery;
        if recovery {
            let by_budget = self.mode() == RecoveryMode::Prr && !gate_on_flight;
            let room =
                if by_budget { self.repair().prr.budget >= smss } else { outstanding + smss <= allowance };
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

    /// New data for RACK to watch, where it is in use.
    #[inline(never)]
    pub(super) fn send_new_by_time(&mut self, now: Instant, len: u32) -> Out {
        let out = self.send_new(now, len);
        if let Some(by_time) = &mut self.by_time {
            let board = self.board.full();
            by_time.rack.sent(board, board.len() - 1);
        }
        self.arm_tail_loss_probe(now);
        out
    }

    // ----- Tail loss probe, RFC 8985 §7 ---------------------------------------------------------------------

    /// A tail loss probe may be sent, now or later (§7.2, §7.3).
    fn may_probe_tail(&self) -> bool {
        self.config.tail_loss_probe
            && self.by_time.as_ref().is_some_and(|t| t.tlp.may_probe())
            && self.phase == Phase::Open
            && self.board.sacked() == 0
            && !self.board.is_empty()
    }

    /// §7.2: new data left or was acknowledged, so the timer of the tail loss probe starts anew.
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

    /// `TLP.max_ack_delay`: how long the peer may hold back the acknowledgement of a lone segment. Nothing tells; both
    /// ends of a flow are configured alike.
    fn max_ack_delay(&self) -> Duration {
        let delayed = &self.config.delayed_ack;
        if delayed.every > 1 { delayed.delay } else { Duration::ZERO }
    }

    /// Its timer expired (§7.3). Whether or not a tail loss probe leaves, the retransmission timer starts anew.
    fn on_tail_loss_probe_timer(&mut self, now: Instant) {
        if !self.board.is_empty() {
            self.restart_timer(now);
        }
        let due = self.may_probe_tail();
        if let Some(by_time) = &mut self.by_time {
            by_time.tlp.due = due;
        }
        self.force_head |= due;
    }

    /// A tail loss probe is to leave before anything else is forced.
    pub(super) fn tail_loss_probe_due(&self) -> bool {
        self.by_time.as_ref().is_some_and(|t| t.tlp.due)
    }

    /// New data if there is some and the peer has room, whatever the congestion window says; otherwise the last
    /// segment again.
    #[cold]
    pub(super) fn send_tail_loss_probe(&mut self, now: Instant) -> Option<Out> {
        if let Some(by_time) = &mut self.by_time {
            by_time.tlp.due = false;
        }
        if !self.may_probe_tail() {
            return None;
        }
        // At most one per measurement: none is armed by what leaves now.
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

    /// §7.4: what the acknowledgement says about the tail loss probe.
    fn tail_loss_probe_acknowledged(&mut self, now: Instant, a: &Arrival<'_>, t: &Taken) {
        let ordinary = a.answer.is_none();
        let bare = !t.advanced && a.pure && t.same_window && a.blocks.is_empty() && ordinary;
        let duplicate = if t.dsack && ordinary { a.blocks.first().copied() } else { None };
        let Some(by_time) = &mut self.by_time else { return };
        // The probe repeated the segment that ends here, and the copy sent before it was lost.
        let repaired = (by_time.tlp.end_seq().saturating_sub(1), 1);
        if !by_time.tlp.repaired(a.ack, duplicate, bare) {
            return;
        }
        // The loss left no trace but this, and the answer is that of a fast recovery which is over at once.
        self.counters.recoveries += 1;
        if self.takes_for_error(repaired) {
            return;
        }
        let mut path = self.path(now);
        // FlightSize as the acknowledgement found it.
        path.in_flight_bytes += t.acked.bytes;
        self.judge_segment(now, &path, Sign::Acks, repaired, |cc, cx| cc.on_congestion(cx, Signal::Loss));
        if let Some(repair) = &mut self.repair {
            repair.undo.forget();
        }
        self.prober.begin_epoch();
        self.tell(now, |cc, cx| cc.on_recovered(cx));
    }
}
