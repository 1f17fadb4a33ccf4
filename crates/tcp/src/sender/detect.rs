//! Loss detection by time in the sender: RACK is told what happens, its verdicts start recoveries, and one timer
//! serves both the reordering window and the tail loss probe (RFC 8985 §8: never both at once).

use super::{Arrival, Clock, Out, Phase, Sender, rack::RackReport};
use crate::store::Store;
use skyhaul_base::Instant;
use skyhaul_cc::{Blocked, RecoveryMode, Signal};

impl<S: Store> Sender<S> {
    /// The acknowledgement has been entered into the scoreboard, RTT estimates are up to date.
    #[inline(never)]
    pub(super) fn rack_ack(&mut self, now: Instant, a: &Arrival<'_>, dsack: bool, measured: bool) {
        let una = self.sb.una();
        let exiting = match self.phase {
            Phase::Open => false,
            Phase::Recovery => una >= self.recovery_point,
            Phase::Loss => una >= self.recover,
        };
        let report = RackReport {
            // A receiver that does not know probes reports copies of old data as duplicates.
            dsack: dsack && a.answer.is_none() && !self.prober.expects_legacy(),
            echo: a.echo,
            probe: a.answer.is_some(),
            srtt: self.rtt.srtt(),
            recovering: self.phase != Phase::Open && !exiting,
            exiting,
        };
        self.tlp.measured |= measured;
        if let Some(rack) = &mut self.rack {
            let due = rack.acknowledged(&mut self.sb, now, &report);
            self.pipe_counter -= rack.take_lost_again() as i64;
            self.settle(due);
        }
        self.note_lost();
    }

    /// The acknowledgement has been dealt with: losses start a recovery, and a timer is set. `acked` is what it
    /// acknowledged cumulatively, `delivered` besides that selectively, bytes.
    #[inline(never)]
    pub(super) fn rack_verdict(
        &mut self,
        now: Instant,
        a: &Arrival<'_>,
        dsack: bool,
        bare: bool,
        (acked, delivered): (u64, u64),
    ) {
        if let Some(rack) = &mut self.rack {
            rack.delivered = delivered;
        }
        if self.phase == Phase::Open && self.first_lost().is_some() {
            self.enter_recovery(now, Signal::Loss);
        } else if self.phase == Phase::Open {
            let dsack = dsack && a.answer.is_none();
            self.probe_acked(now, a, dsack, bare && a.answer.is_none(), acked);
        }
        if let Some(rack) = &mut self.rack {
            rack.delivered = 0;
        }
        self.set_rack_timer(now, acked > 0);
    }

    /// The reordering timer is set to `due`, or not at all.
    fn settle(&mut self, due: Option<Instant>) {
        if due.is_some() || !self.rack_probes {
            self.rack_at = due.unwrap_or(Instant::MAX);
            self.rack_probes = false;
        }
    }

    /// Reordering is given time to settle: the timer of this file is the reordering timer.
    pub(super) fn settling(&self) -> bool {
        !self.rack_probes && self.rack_at < Instant::MAX
    }

    /// §8: the reordering timer goes before the probe timer, and either before the retransmission timer.
    fn set_rack_timer(&mut self, now: Instant, advanced: bool) {
        if self.settling() {
            self.rto_at = self.rto_at.max(self.rack_at);
        } else if !self.rack_probes || advanced || self.sb.sacked() > 0 || self.phase != Phase::Open {
            self.rack_at = Instant::MAX;
            self.arm_probe(now);
        }
    }

    /// The timer of this file expired.
    #[cold]
    pub(super) fn on_rack_timer(&mut self, now: Instant) {
        self.rack_at = Instant::MAX;
        if self.sb.is_empty() {
            return;
        }
        self.pending = Some(self.pending.unwrap_or(Clock::Timer));
        if self.rack_probes {
            self.on_probe_timer(now);
            return;
        }
        let recovering = self.phase != Phase::Open;
        if let Some(rack) = &mut self.rack {
            let due = rack.detect(&mut self.sb, now, recovering);
            self.pipe_counter -= rack.take_lost_again() as i64;
            self.settle(due);
        }
        self.note_lost();
        self.tell_losses(now);
        self.rto_at = now + self.rtt.rto();
        self.set_rack_timer(now, false);
        if self.first_lost().is_some() {
            match self.phase {
                Phase::Open => self.enter_recovery(now, Signal::Loss),
                // The timer stands for the acknowledgement that did not come: one segment at least.
                Phase::Recovery if self.mode() == RecoveryMode::Prr => self.prr.allow(self.smss.into()),
                Phase::Recovery | Phase::Loss => {}
            }
        }
    }

    /// What is repaired first: the lowest lost segment by RACK, the head without.
    #[inline(never)]
    pub(super) fn first_lost(&mut self) -> Option<usize> {
        match &mut self.rack {
            Some(rack) => rack.next_lost(&self.sb),
            None => (!self.sb.is_empty()).then_some(0),
        }
    }

    /// The algorithm says that the head is lost.
    #[cold]
    pub(super) fn decree_head_lost(&mut self, now: Instant) {
        if let (Some(rack), Some(head)) = (&mut self.rack, self.sb.head()) {
            if !head.sacked && !self.sb.awaits_repair(self.sb.base()) {
                rack.lose(&mut self.sb, 0);
                self.pipe_counter -= rack.take_lost_again() as i64;
                self.note_lost();
                self.tell_losses(now);
            }
        }
    }

    /// What RACK declared lost goes into the records of lost segments.
    pub(super) fn note_lost(&mut self) {
        let Some(rack) = &mut self.rack else { return };
        if let Some(s) = &mut self.sampler {
            rack.losses.iter().for_each(|&(index, len, total)| s.marked_lost(index, len, total));
        }
        rack.losses.clear();
    }

    /// The next segment: what is lost, then new data, as the window allows. There is no going back and no guessing
    /// at holes: time tells.
    #[inline(never)]
    pub(super) fn choose_by_time(&mut self, now: Instant) -> Result<Out, Blocked> {
        if self.frto.is_active() {
            return self.choose_by_frto(now);
        }
        // By pipe, each segment found beyond a hole lets another one go while RACK waits: limited transmit without
        // its limit of two.
        let (outstanding, allowance) = if self.policy.gate_on_flight {
            (self.flight(), self.allowance())
        } else {
            (self.pipe(), self.cwnd_bytes())
        };
        let smss = u64::from(self.smss);
        let recovery = self.phase == Phase::Recovery;
        if recovery {
            let by_budget = self.mode() == RecoveryMode::Prr && !self.policy.gate_on_flight;
            let room = if by_budget { self.prr.budget >= smss } else { outstanding + smss <= allowance };
            if !room {
                return Err(Blocked::Cwnd);
            }
        }
        if let Some(item) = self.first_lost().and_then(|i| Some((i, self.sb.item(i)?))) {
            let (index, item) = item;
            if !recovery && outstanding + (item.end() - item.seq) > allowance {
                return Err(Blocked::Cwnd);
            }
            return Ok(self.resend(now, index));
        }
        if !recovery && outstanding >= allowance {
            return Err(Blocked::Cwnd);
        }
        let len = self.new_len()?;
        if !recovery && outstanding + u64::from(len) > allowance {
            return Err(Blocked::Cwnd);
        }
        Ok(self.send_new_by_time(now, len))
    }
}
