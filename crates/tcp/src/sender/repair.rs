//! Recoveries: start and end, the handling of timeouts, and spurious reductions.

use super::ack::Arrival;
use super::state::{PendingActions, Recovery, Repaired, Report, State};
use super::{Clock, CongestionSignal, Engine, OutgoingSegment, Phase};
use crate::recovery::AckSummary;
use crate::recovery::frto::Verdict;
use crate::recovery::prr::Prr;
use crate::recovery::undo::ReducedData;
use crate::store::Store;
use crate::timer::Timer;
use alloc::boxed::Box;
use skyhaul_base::Instant;
use skyhaul_cc::{Blocked, CongestionControl, Pipe, RecoveryEnd, RecoveryMode, Signal};

impl<S: Store> Engine<S> {
    /// `SND.UNA` has advanced to `ack`; `ends`: this ends the recovery in progress.
    pub(super) fn after_advance(&mut self, now: Instant, ack: u64, ends: bool) {
        let mut restart = true;
        let mode = self.mode();
        match &mut self.state {
            State::Recovery(recovery) if ends => {
                let notified = recovery.report == Report::Notified;
                self.state = State::Open;
                self.due.clear(PendingActions::HEAD);
                if notified {
                    self.tell(now, |cc, cx| cc.on_recovered(cx));
                    self.renew_policy();
                }
            }
            State::Recovery(recovery) => {
                if mode == RecoveryMode::NewReno {
                    // RFC 6582 §3.2 step 3: a partial acknowledgement reveals the next loss.
                    self.due.set(PendingActions::HEAD);
                    let impatient = self.config.rto.restart_on_first_partial_only;
                    recovery.partial_acks = recovery.partial_acks.saturating_add(1);
                    restart = !(recovery.partial_acks > 1 && impatient);
                }
            }
            State::Loss if ack >= self.answered.until => self.state = State::Open,
            State::Loss | State::Open => {}
        }
        if self.board.is_empty() {
            self.timers.stop(Timer::Retransmission);
        } else if restart {
            self.restart_timer(now);
        }
    }

    /// A loss was found: the algorithm reduces, and the first retransmission is forced. `delivered`: bytes that the current
    /// acknowledgement delivers; 0 if a timer or the algorithm found the loss.
    pub(super) fn enter_recovery(&mut self, now: Instant, signal: Signal, delivered: u64) {
        self.counters.recoveries += 1;
        let quiet = self.begins_quietly(signal);
        let una = self.board.una();
        let flight = self.board.span();
        let mut path = self.path(now);
        // RFC 5681 §3.2 step 2: segments sent by limited transmit are excluded from the FlightSize that is halved.
        let mut limited = self.repair().limited_sent;
        let Self { by_time, timers, .. } = self;
        if let Some(by_time) = by_time {
            // Likewise segments sent for SACKed data beyond a hole, even across partial acknowledgements.
            let beyond = flight.saturating_sub(self.control.window());
            limited = limited.max(beyond.min(self.board.sacked()));
            by_time.begin_recovery(timers);
        }
        path.in_flight_bytes = path.in_flight_bytes.saturating_sub(limited);
        let report = if quiet {
            let inflation = u64::from(self.space.smss) * u64::from(self.dupacks);
            self.repair().undo.forget();
            Report::Quiet { inflation }
        } else {
            self.report_congestion(now, &path, CongestionSignal::Acks, |cc, cx| cc.on_congestion(cx, signal));
            self.prepare_undo(false, false);
            self.prober.begin_epoch();
            Report::Notified
        };
        let mode = self.mode_if(quiet);
        self.rtt.stop_timing();
        self.repair().frto.stop();
        if mode == RecoveryMode::Tahoe {
            self.answered.until = self.board.max();
            self.go_back(now, true);
            return;
        }
        let end = self.control.policy().recovery_end;
        let point = match (mode, end) {
            (RecoveryMode::Reno, _) => una + 1,
            (_, RecoveryEnd::TriggeringSegment) => {
                let first = self.first_lost().and_then(|i| self.board.item(i));
                first.map_or(una + 1, |s| s.seq + u64::from(s.len).max(1))
            }
            _ => self.board.max(),
        };
        let pipe = if let Pipe::Counter { from_window: true, .. } = self.control.policy().pipe {
            // [Peach+] Fig. 3: pipe = 2 * cwnd - ndupacks + 1; the one is added when the lost segment is sent again. A quiet
            // recovery has not halved the window.
            let before = self.control.window() << u32::from(!quiet);
            before as i64 - i64::from(self.config.dup_thresh) * i64::from(self.space.smss)
        } else {
            // SACKed data has left the network; later transmissions are added.
            flight as i64 - self.board.sacked() as i64
        };
        let recovery = Recovery { point, partial_acks: 0, pipe, prr: Prr::default(), report };
        self.state = State::Recovery(Box::new(recovery));
        self.answered.repair = Repaired::ByRecovery;
        if mode != RecoveryMode::Reno && end == RecoveryEnd::AllOutstanding {
            self.answered.until = self.board.max();
        }
        if self.by_time.is_none() {
            let board = self.board.ensure_scoreboard();
            board.begin_episode(end == RecoveryEnd::TriggeringSegment);
            // The head counts as lost even if the scoreboard has not found it lost.
            let newly_lost = board.mark_head_lost();
            let total = board.total_lost();
            if let Some(s) = self.sampler.as_mut().filter(|_| newly_lost > 0) {
                s.marked_lost(0, newly_lost as u32, total);
                self.tell_losses(now);
            }
        }
        self.due.set(PendingActions::HEAD);
        if mode == RecoveryMode::Prr {
            self.begin_prr(delivered);
        }
    }

    /// Starts PRR in the recovery in progress; `delivered` as in [`Self::enter_recovery`]. `RecoverFS` excludes data SACKed
    /// earlier and includes what the current acknowledgement delivers, SACKed or cumulatively (RFC 9937 §6.1).
    pub(super) fn begin_prr(&mut self, delivered: u64) {
        let recover_fs = (self.board.span() + delivered).saturating_sub(self.board.sacked());
        if let Some(recovery) = self.state.recovery_mut() {
            recovery.prr = Prr::begin(recover_fs);
        }
        self.prr_ack(delivered, false);
    }
    /// Bytes that PRR lets leave.
    pub(super) fn prr_budget(&self) -> u64 {
        self.state.recovery().map_or(0, |r| r.prr.budget)
    }

    pub(super) fn prr_ack(&mut self, delivered: u64, safe: bool) {
        let smss = u64::from(self.space.smss);
        let ssthresh = (self.control.cc.window().ssthresh * self.space.smss_f()) as u64;
        let pipe = self.board.pipe();
        if let Some(recovery) = self.state.recovery_mut() {
            recovery.prr.on_ack(delivered, pipe, ssthresh, smss, safe);
        }
    }

    /// `SND.NXT := SND.UNA`: everything not SACKed will be retransmitted as the window allows. With RACK, `SND.NXT` stays,
    /// and only overdue segments are retransmitted unless `all` is set.
    pub(super) fn go_back(&mut self, now: Instant, all: bool) {
        let keep = self.config.keep_sack_after_rto && self.sack;
        let Self { by_time, board, timers, sampler, .. } = self;
        if let Some(by_time) = by_time {
            by_time.time_out(board, timers, now, keep, all);
            self.note_lost();
        } else {
            // The first segment was SACKed but never acknowledged cumulatively: the receiver reneged (RFC 2018 §8),
            // so its SACK information is discarded.
            let reneged = board.head().is_some_and(|h| h.sacked);
            board.ensure_scoreboard().mark_all_lost(keep && !reneged, |i, len, total| {
                if let Some(s) = sampler {
                    s.marked_lost(i, len, total);
                }
            });
            self.space.nxt = self.board.una();
        }
        self.answered.repair = Repaired::ByGoBack;
        self.prober.rewind();
        self.due.clear(PendingActions::HEAD);
        self.rtt.stop_timing();
        self.tell_losses(now);
    }

    /// Repairs all outstanding data as after a timeout, but the timer restarts without backoff, and this cannot be
    /// undone. Duplicate ACKs caused by these retransmissions are no sign of another loss.
    pub(super) fn repair_from_start(&mut self, now: Instant) {
        self.state = State::Loss;
        self.answered.until = self.board.max();
        self.dupacks = 0;
        self.due.clear(PendingActions::SUSPICION);
        if let Some(repair) = &mut self.repair {
            repair.forget();
        }
        self.go_back(now, true);
        self.restart_timer(now);
        self.run_loop(Clock::Timer);
    }

    // ----- Spurious reductions -------------------------------------------------------------------------------

    /// Whether the tests for spurious reductions are valid. Probes may carry missing data (NIL segments of
    /// TCP-Peach+); then neither a DSACK nor an old timestamp proves that nothing was lost.
    pub(super) fn evidence_counts(&self) -> bool {
        !self.control.policy().probes
    }

    /// The algorithm was informed of a loss: prepares to undo its reduction. For `again` and `nested` see
    /// [`Undo::begin`](crate::recovery::undo::Undo::begin).
    pub(super) fn prepare_undo(&mut self, again: bool, nested: bool) {
        let c = &self.config;
        let (wanted, eifel) = (c.dsack_undo || c.eifel || c.f_rto, c.eifel);
        if wanted && self.evidence_counts() {
            let cut = self.congestion_report.is_some_and(|j| j.cut);
            let smss = u64::from(self.space.smss);
            let data = ReducedData {
                from: self.board.una(),
                to: self.board.max(),
                // A timeout during a repair is spurious, too, if the acknowledgement is of the copy that the repair sent before.
                head_repeated: !(again || nested) && self.board.head().is_some_and(|h| h.rtx_count > 0),
                repeated: self.board.repeated().div_ceil(smss) as u32,
            };
            let undo = &mut self.repair().undo;
            undo.begin(data, cut, again, nested);
            undo.ask_timestamps(eifel);
        }
    }

    /// Processes an acknowledgement that may prove the last reduction spurious.
    #[cold]
    #[inline(never)]
    pub(super) fn reconsider(&mut self, now: Instant, a: &Arrival<'_>, dsack: bool, summary: AckSummary) {
        // Answers to probes report intended duplicates.
        if a.answer.is_some() {
            if summary.advanced {
                self.repair().undo.no_answer();
                self.end_frto();
            }
            return;
        }
        let legacy = self.prober.expects_legacy();
        let (una, smss) = (self.board.una(), self.space.smss);
        self.repair();
        let Self { repair, config, space, board, sack, state, .. } = self;
        let Some(repair) = repair else { return };
        let mut spurious = false;
        if config.dsack_undo && dsack && !legacy {
            if let Some(&block) = a.blocks.first() {
                // After a timeout only the head is retransmitted. A report of its copy shows that the original head had arrived and
                // its acknowledgement was lost. If other data of the timeout is still missing then, an outage has lost that data, too
                // (RFC 8985 §6.2: it was sent before a segment that has arrived). Undoing the timeout would count the lost data as in
                // flight until another timeout. F-RTO still decides by new data (RFC 5682 §3.1).
                let whole = !state.is_loss() || una >= repair.undo.until();
                spurious = repair.undo.reported(block, smss) && whole;
            }
        }
        if summary.advanced && config.eifel {
            spurious |= repair.undo.older(now, summary.age, config.tick());
        }
        match repair.frto.step(&summary, una, *sack, || space.new_len(board, config).is_ok()) {
            Verdict::Open => {}
            Verdict::Spurious => spurious = true,
            Verdict::Genuine => {
                self.end_frto();
                if self.sack && !summary.advanced && a.blocks.is_empty() {
                    // Without SACK blocks the new segments still count as in flight and fill the window, so no later
                    // acknowledgement would let the repair begin. RFC 5682 §3.1 step 3a admits a third segment.
                    self.repeat_head();
                }
            }
        }
        let repair = self.repair();
        repair.undo.watch = repair.undo.asks() || repair.frto.is_active();
        if spurious {
            self.take_back(now);
        }
    }

    /// Undoes the last reduction: no data counts as lost, the recovery ends, and the algorithm restores its state.
    fn take_back(&mut self, now: Instant) {
        let repair = self.repair();
        let cut = repair.undo.cut();
        repair.forget();
        self.counters.undone += u64::from(cut);
        let recovering = self.state.reported_phase() == Phase::Recovery;
        self.state = State::Open;
        self.after_timeout = false;
        self.due.clear(PendingActions::HEAD);
        self.due.clear(PendingActions::SUSPICION);
        self.dupacks = 0;
        self.space.nxt = self.board.max();
        if self.sack {
            // Without SACK, `recover` stays (RFC 6582 §4): retransmissions cause duplicates.
            self.answered.until = self.answered.until.min(self.board.una());
        }
        match &mut self.by_time {
            Some(by_time) => by_time.rack.withdraw(self.board.ensure_scoreboard()),
            None => self.board.ensure_scoreboard().withdraw_lost(|_| {}),
        }
        if recovering {
            self.tell(now, |cc, cx| cc.on_recovered(cx));
            self.renew_policy();
        }
        self.tell(now, |cc, cx| cc.on_undo(cx));
    }

    // ----- F-RTO (RFC 5682) ---------------------------------------------------------------------------------------

    /// Whether F-RTO controls transmission.
    #[inline]
    pub(super) fn frto_active(&self) -> bool {
        self.repair.as_ref().is_some_and(|r| r.frto.is_active())
    }
    /// Whether F-RTO waits for the deciding acknowledgement.
    pub(super) fn frto_decides(&self) -> bool {
        self.repair.as_ref().is_some_and(|r| r.undo.watch && r.frto.decides())
    }

    /// Step 1: the timer expired; `fresh`: nothing was being repaired. F-RTO is not used during a fast recovery or the
    /// repair after an earlier timeout (`recover` or `RecoveryPoint` is not below `SND.UNA`), nor with a receiver that
    /// reneges. If the timer expires again before any acknowledgement of new data, §3.1 returns to step 1: only the head has
    /// been retransmitted, so the further timeouts are spurious if the first one is.
    pub(super) fn begin_frto(&mut self, now: Instant, fresh: bool, reneged: bool) {
        let fresh = fresh || self.repair.as_ref().is_some_and(|r| r.frto.waits());
        let wanted = self.config.f_rto && fresh && self.evidence_counts() && !reneged;
        if !wanted {
            if let Some(repair) = &mut self.repair {
                repair.frto.stop();
            }
            return;
        }
        let max = self.board.max();
        let repair = self.repair();
        repair.frto.begin(max, now);
        repair.undo.watch = true;
        self.repeat_head();
    }

    /// The head is retransmitted whatever the window, and go-back-N continues behind it.
    fn repeat_head(&mut self) {
        self.due.set(PendingActions::HEAD);
        if let (None, Some(head)) = (&self.by_time, self.board.head()) {
            self.space.nxt = head.end();
        }
    }

    /// Whether the acknowledgement, not yet entered into the scoreboard, covers data below `RecoveryPoint` that was
    /// not retransmitted after the timeout. If the timeout cleared the scoreboard, SACK blocks repeat earlier
    /// reports.
    #[cold]
    #[inline(never)]
    pub(super) fn delivers_original(&self, a: &Arrival<'_>) -> bool {
        let (Some(repair), Some(board)) = (&self.repair, self.board.scoreboard()) else { return false };
        let keep = self.sack && self.config.keep_sack_after_rto;
        let blocks = if keep { a.blocks } else { &[] };
        let all = core::iter::once((self.board.una(), a.ack)).chain(blocks.iter().copied());
        let (point, since) = repair.frto.origin();
        all.into_iter().any(|(from, to)| {
            from < to && board.undelivered(from, to.min(point)).any(|s| s.last_sent < since)
        })
    }

    /// The loss was real, or nothing can be decided: lost data is retransmitted as usual.
    fn end_frto(&mut self) {
        // In step 2 the retransmission of the head is in flight, and `SND.NXT` is behind it.
        let decides = self.repair.as_ref().is_some_and(|r| r.frto.decides());
        if let Some(repair) = &mut self.repair {
            repair.frto.stop();
        }
        if decides && self.by_time.is_none() && self.state.is_loss() {
            self.space.nxt = self.board.una();
        }
    }

    /// The send loop during F-RTO: only the new segments of step 2b.
    #[cold]
    #[inline(never)]
    pub(super) fn choose_by_frto(&mut self, now: Instant) -> Result<OutgoingSegment, Blocked> {
        if !self.repair().frto.may_send() {
            return Err(Blocked::Cwnd);
        }
        let len = self.new_len()?;
        self.repair().frto.sent();
        Ok(self.send_new_by_time(now, len))
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::tests::started;
    use super::*;
    use crate::config::{Config, LossDetection};
    use crate::store::Counted;
    use skyhaul_base::Duration;
    use skyhaul_cc::{InitialWindow, Rules};

    /// How many segments PRR sends at once when, of 20 in flight, an acknowledgement up to `ack` with the block `sacked`
    /// begins the recovery.
    fn sent_at_entry(loss_detection: LossDetection, ack: u64, sacked: (u64, u64)) -> usize {
        let rules = Rules { initial_window: InitialWindow::Segments(20.0), ..Rules::RFC };
        let config = Config { mss: 1000, rules, loss_detection, window_validation: false, ..Config::rfc() };
        let mut s = started::<Counted>(config, "prr");
        s.offer(Instant::ZERO, 100_000);
        assert_eq!(core::iter::from_fn(|| s.poll(Instant::ZERO)).count(), 20);
        let (now, blocks) = (Instant::ZERO + Duration::from_millis(100), [sacked]);
        let a = Arrival { blocks: &blocks, ..Arrival::plain(ack, 1_000_000, None) };
        s.acknowledge(now, &a).expect("of data that was sent");
        assert_eq!(s.snapshot().phase, Phase::Recovery);
        core::iter::from_fn(|| s.poll(now)).count()
    }

    #[test]
    fn prr_counts_what_the_first_acknowledgement_of_a_recovery_delivers() {
        // RFC 9937 §6: 4 of 20 segments are delivered, and ssthresh is 10: ceil(4 * 10 / 20).
        assert_eq!(sent_at_entry(LossDetection::DupAcks, 1, (1001, 5001)), 2);
        assert_eq!(sent_at_entry(LossDetection::Rack, 1, (1001, 5001)), 2);
        // 4 segments are acknowledged and 3 SACKed; of the 16 left, ssthresh is half: 7000 * 8000 / 20,000 is 2800 bytes. Without RACK an
        // acknowledgement that advances begins no recovery.
        assert_eq!(sent_at_entry(LossDetection::Rack, 4001, (5001, 8001)), 2);
    }
}
