//! Processes one acknowledgement: [`Engine::acknowledge`] is the sequence of steps, and each step a function below
//! it.

use super::space::FinState;
use super::state::{AnsweredLoss, Limit, Repaired};
use super::{Clock, CongestionSignal, Engine, Sender};
use crate::accecn::Feedback;
use crate::config::RttSource;
use crate::error::Rejected;
use crate::loss::scoreboard::Acked;
use crate::recovery::AckSummary;
use crate::store::Store;
use crate::timer::Timer;
use core::num::NonZeroU32;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_cc::{Ack, AckKind, CongestionControl, Pipe, RateSample, RecoveryMode, Signal, TimerRestart};

/// The acknowledgement part of an arriving segment, in stream offsets.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Acknowledgement number.
    pub ack: u64,
    /// Window, bytes.
    pub window: u64,
    /// The segment may update the window (RFC 9293 §3.10.7.4, `SND.WL1`, `SND.WL2`).
    pub fresh: bool,
    /// SACK blocks, the most recent first.
    pub blocks: &'a [(u64, u64)],
    /// A hole that the receiver names (SNACK).
    pub hole: Option<(u64, u64)>,
    /// It has neither payload nor SYN nor FIN, so it may be a duplicate acknowledgement.
    pub pure: bool,
    /// It answers a probe, with this number if it has one.
    pub answer: Option<Option<u16>>,
    /// RTT from its timestamp echo.
    pub echo: Option<Duration>,
    /// ECN echo.
    pub ece: bool,
    /// The feedback of accurate ECN, if that is used.
    pub feedback: Option<Feedback>,
    /// Rate that the peer measured, bytes per second.
    pub receiver_rate: Option<NonZeroU32>,
}

impl Arrival<'_> {
    /// An acknowledgement with nothing but the cumulative number.
    #[inline]
    #[must_use]
    pub const fn plain(ack: u64, window: u64, echo: Option<Duration>) -> Self {
        Self {
            ack,
            window,
            fresh: true,
            blocks: &[],
            hole: None,
            pure: true,
            answer: None,
            echo,
            ece: false,
            feedback: None,
            receiver_rate: None,
        }
    }

    /// Whether it carries nothing else.
    #[inline]
    fn is_plain(&self) -> bool {
        self.pure
            && self.fresh
            && self.blocks.is_empty()
            && self.hole.is_none()
            && self.answer.is_none()
            && !self.ece
            && self.feedback.is_none()
            && self.receiver_rate.is_none()
    }
}

/// The effect of an acknowledgement on the send space and the scoreboard.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckEffect {
    /// `SND.UNA` moved.
    pub(super) advanced: bool,
    /// The cumulative acknowledgement, not less than the old `SND.UNA`.
    pub(super) ack: u64,
    pub(super) acked: Acked,
    /// Bytes newly SACKed.
    pub(super) sacked: u64,
    /// It reports a duplicate (RFC 2883).
    pub(super) dsack: bool,
    /// It announces the same window as before.
    pub(super) same_window: bool,
    /// Data was outstanding before.
    pub(super) outstanding: bool,
    /// A duplicate acknowledgement (RFC 5681 §2, RFC 6675 §2).
    pub(super) duplicate: bool,
    /// An RTT sample was taken.
    pub(super) measured: bool,
    /// It has an ECN echo, or accurate ECN reports more marks.
    pub(super) ece: bool,
    /// It covers data that was sent before the timeout and not since, which decides F-RTO.
    pub(super) original: bool,
    /// RTT of the newest segment that was never retransmitted.
    pub(super) rtt: Option<Duration>,
    /// Bytes marked lost before it came.
    pub(super) lost_before: u64,
    /// It arrived during a fast recovery.
    pub(super) recovering: bool,
    /// It ends that recovery.
    pub(super) ends: bool,
}

impl AckEffect {
    /// Bytes newly known to have arrived.
    pub(super) fn delivered(&self) -> u64 {
        self.acked.delivered + self.sacked
    }
}

impl<S: Store> Sender<S> {
    /// Processes an acknowledgement. The caller then polls for what it released.
    ///
    /// # Errors
    /// The reason why it was refused; nothing has changed then.
    #[inline]
    pub fn acknowledge(&mut self, now: Instant, a: &Arrival<'_>) -> Result<(), Rejected> {
        if a.is_plain() && self.acknowledge_plain(now, a.ack, a.window, a.echo) {
            return Ok(());
        }
        self.engine.admits(a.ack)?;
        self.general().acknowledge(now, a);
        Ok(())
    }
}

impl<S: Store> Engine<S> {
    /// RFC 9293 §3.10.7.4 with RFC 5681, 6298, 6675 and 8985: the order of events that [`skyhaul_cc`] promises.
    #[inline(never)]
    pub(super) fn acknowledge(&mut self, now: Instant, a: &Arrival<'_>) {
        let mut t = self.take(now, a);
        self.measure(now, a, &mut t);
        self.detect_losses(now, a, &t);
        let rate = self.sample_rate();
        self.classify(now, a, &mut t);
        if self.classifier().is_some() {
            self.show_arrival(now, a, &t);
        }
        self.inflate_quietly(&t);
        self.tell_losses(now);
        self.tell_acknowledgement(now, a, &t, rate);
        if let Some(id) = a.answer {
            self.tell_answer(now, id, &t);
        }
        if t.advanced {
            self.after_advance(now, t.ack, t.ends);
        } else if t.recovering {
            self.postpone_timeout(now, a, &t);
        }
        if self.state.is_quiet() {
            self.classify_further_losses(now, t.advanced);
        }
        self.doubt(now, a, &t);
        self.react(now, a, &t);
        if t.advanced && self.suspects_path() {
            self.reconsider_path(now);
        }
        if t.advanced && self.mtu_search().is_some() {
            self.mtu_probe_acknowledged(now);
        }
        if self.hold.is_outage() {
            self.thaw(now);
        }
        self.run.pending = Some(if a.answer.is_some() { Clock::Probe } else { Clock::Ack });
    }

    /// Whether an acknowledgement number can be genuine.
    #[inline]
    pub(super) fn admits(&self, ack: u64) -> Result<(), Rejected> {
        if ack > self.board.max() {
            return Err(Rejected::AckOfUnsent);
        }
        // RFC 5961 §5.2: a number further below `SND.UNA` than the largest window ever seen cannot be genuine.
        if ack + self.space.max_window < self.board.una() {
            return Err(Rejected::AckTooOld);
        }
        Ok(())
    }

    /// Updates window, scoreboard and `SND.UNA`. In the steady state: `acknowledge_ordinary` (predict).
    fn take(&mut self, now: Instant, a: &Arrival<'_>) -> AckEffect {
        let una = self.board.una();
        self.counters.acks += 1;
        self.silence.unanswered = 0;
        let ack = a.ack.max(una);
        let mut t = AckEffect {
            advanced: ack > una,
            ack,
            acked: Acked::default(),
            sacked: 0,
            dsack: false,
            same_window: a.window == self.space.window,
            outstanding: self.board.max() > una,
            duplicate: false,
            measured: false,
            ece: a.ece,
            original: self.frto_decides() && self.delivers_original(a),
            rtt: None,
            lost_before: self.board.total_lost(),
            recovering: false,
            ends: false,
        };
        if a.fresh && a.ack >= una {
            self.space.update_window(ack, a.window, self.config.send_buffer);
        }
        if let Some(by_time) = &mut self.by_time {
            by_time.rack.cumulative(self.board.ensure_scoreboard(), ack);
        }
        t.acked = self.board.ack(ack);
        if t.advanced {
            self.advance(now, una, &t);
        }
        if self.sack && !a.blocks.is_empty() {
            (t.sacked, t.dsack) = self.take_blocks(now, a.ack, a.blocks);
            if t.sacked > 0 {
                let high = self.board.ensure_scoreboard().high_sacked();
                self.arrived.highest = self.arrived.highest.max(high);
            }
        }
        self.arrived.bytes += t.delivered();
        if let Some(feedback) = a.feedback {
            t.ece = self.take_feedback(feedback, una, a.ack, t.delivered());
        }
        t
    }

    /// Takes the feedback of accurate ECN, unless a later acknowledgement has superseded it (RFC 9768, Appendix A.1). True if it
    /// reports more marks.
    fn take_feedback(&mut self, feedback: Feedback, una: u64, ack: u64, delivered: u64) -> bool {
        let smss = self.space.smss;
        match &mut self.arrived.marks {
            Some(tally) if ack >= una => tally.take(feedback, delivered, smss) > 0,
            _ => false,
        }
    }

    /// `SND.UNA` has advanced from `una`.
    fn advance(&mut self, now: Instant, una: u64, t: &AckEffect) {
        self.stop_persisting();
        self.space.nxt = self.space.nxt.max(t.ack);
        self.dupacks = 0;
        if let Some(repair) = &mut self.repair {
            repair.limited_sent = 0;
        }
        let fin = u64::from(self.space.fin == FinState::Sent && self.board.is_empty());
        if S::KEEPS && self.prober.in_use() {
            self.keep_copied(una, t.ack);
        }
        let payload = t.acked.bytes - fin;
        self.store.release(payload);
        self.counters.bytes_acked += payload;
        self.arrived.highest = self.arrived.highest.max(t.ack);
        if let Some(s) = &mut self.sampler {
            (0..t.acked.popped).for_each(|i| s.delivered(i, now));
            s.popped(t.acked.popped);
        }
    }

    /// Processes SACK blocks; returns the newly SACKed bytes and whether the first block reports a duplicate (RFC
    /// 2883 §4: below the cumulative acknowledgement, or inside the second block).
    fn take_blocks(&mut self, now: Instant, ack: u64, blocks: &[(u64, u64)]) -> (u64, bool) {
        // Compared with this segment's acknowledgement number: a reordered old one reports no duplicates.
        let dsack = match *blocks {
            [(from, to), ..] if to <= ack && from < to => true,
            [(from, to), (from2, to2), ..] => from >= from2 && to <= to2,
            _ => false,
        };
        let Self { board, sampler, by_time, .. } = self;
        let mut new = 0;
        for &(from, to) in &blocks[usize::from(dsack)..] {
            if from >= to || to > board.max() || from < board.una() {
                continue;
            }
            new += board.ensure_scoreboard().sack(from, to, |i| {
                if let Some(t) = by_time {
                    t.rack.selective(i);
                }
                if let Some(s) = sampler {
                    s.delivered(i, now);
                }
            });
        }
        (new, dsack)
    }

    /// Takes RTT samples and updates rounds, never from the answer to a probe. The algorithm gets every sample, the
    /// estimator those of the configured source. In the steady state: `acknowledge_ordinary` (predict).
    fn measure(&mut self, now: Instant, a: &Arrival<'_>, t: &mut AckEffect) {
        if t.advanced && a.answer.is_none() {
            t.rtt = t.acked.sent_at.map(|sent| now - sent);
            t.measured = self.estimate(now, t.ack, a.echo, t.rtt, &t.acked);
            let held_back = t.acked.retransmitted && self.config.rtt_source == RttSource::EveryAck;
            if held_back && self.control.policy().losses_are_errors {
                // The path works, and its losses do not mean congestion.
                self.rtt.end_backoff(&self.config.rto);
            }
        }
        // A round ends when data arrives that was sent after it began.
        if self.arrived.highest > self.arrived.round_end && t.outstanding && (t.advanced || t.sacked > 0) {
            self.arrived.round += 1;
            self.arrived.round_end = self.board.max();
        }
    }

    /// Feeds the RTT estimator from the configured source. The acknowledgement covers everything before `ack` and
    /// echoes a timestamp of age `echo`; `acked` is what it covers, and the newest of it left `rtt` ago. True if there was a sample.
    #[inline(always)]
    pub(super) fn estimate(
        &mut self,
        now: Instant,
        ack: u64,
        echo: Option<Duration>,
        rtt: Option<Duration>,
        acked: &Acked,
    ) -> bool {
        let sample = match self.config.rtt_source {
            RttSource::Timed => self.rtt.timed_sample(ack, now),
            RttSource::Timestamps => {
                let (oldest, tick) = (acked.first_sent.map(|f| now - f), self.config.tick());
                echo.and_then(|e| self.rtt.plausible_echo(e, oldest, rtt, tick)).or(rtt)
            }
            // After a retransmission only new data gives a sample (RFC 6298 §5): what lay beyond the hole has waited for it,
            // and what had arrived before a timeout has waited for the timer.
            RttSource::EveryAck => rtt.filter(|_| !acked.retransmitted),
        };
        if let Some(rtt) = sample {
            let rto = &self.config.rto;
            let samples = if rto.per_round { self.samples_per_round() } else { 1 };
            self.rtt.sample(rtt, samples, rto);
        }
        sample.is_some()
    }

    /// RFC 7323, appendix G: an acknowledgement for every second segment in flight.
    fn samples_per_round(&self) -> u64 {
        self.board.span().div_ceil(2 * u64::from(self.space.smss)).max(1)
    }

    /// Detects losses: by time, or by acknowledgements beyond a segment.
    fn detect_losses(&mut self, now: Instant, a: &Arrival<'_>, t: &AckEffect) {
        if self.by_time.is_some() {
            self.detect_by_time(now, a, t);
        } else if self.board.sacked() > 0 {
            let Self { board, sampler, .. } = self;
            board.ensure_scoreboard().detect(|i, len, total| {
                if let Some(s) = sampler {
                    s.marked_lost(i, len, total);
                }
            });
        }
    }

    fn sample_rate(&mut self) -> Option<RateSample> {
        let (delivered, lost, min_rtt) = (self.arrived.bytes, self.board.total_lost(), self.rtt.min());
        self.sampler.as_mut().and_then(|s| s.take(delivered, lost, min_rtt))
    }

    /// Determines whether the acknowledgement is a duplicate (RFC 5681 §2; with SACK, RFC 6675 §2: new SACK
    /// information), and whether it ends the recovery.
    fn classify(&mut self, now: Instant, a: &Arrival<'_>, t: &mut AckEffect) {
        let una = self.board.una();
        t.duplicate = !t.advanced
            && a.ack == una
            && t.outstanding
            && a.answer.is_none()
            && if self.sack { t.sacked > 0 } else { a.pure && t.same_window };
        if !t.advanced && a.pure && a.answer.is_none() && self.prober.expects_legacy() {
            t.duplicate &= !self.is_legacy_answer(now, a, t);
        }
        if t.dsack {
            self.counters.dsacks += 1;
        }
        if t.duplicate {
            self.dupacks += 1;
            self.counters.duplicate_acks += 1;
        }
        t.recovering = self.fast_recovery();
        if t.recovering {
            self.count_pipe(t.delivered(), t.advanced && a.answer.is_none());
            t.ends = t.advanced && self.state.recovery().is_some_and(|r| t.ack >= r.point);
        }
    }

    /// Calls `on_ack`, for acknowledgements that advance and for duplicates. In the steady state: `acknowledge_ordinary`
    /// (predict).
    fn tell_acknowledgement(
        &mut self,
        now: Instant,
        a: &Arrival<'_>,
        t: &AckEffect,
        rate: Option<RateSample>,
    ) {
        if !t.advanced && !t.duplicate {
            return;
        }
        let kind = match (t.advanced, t.recovering && !self.state.is_quiet()) {
            (true, true) if t.ends => AckKind::Full,
            (true, true) => AckKind::Partial,
            (true, false) => AckKind::New,
            (false, _) => AckKind::Duplicate { count: self.dupacks, new_sack: t.sacked > 0, dsack: t.dsack },
        };
        let size = self.space.smss_f();
        let event = Ack {
            kind,
            acked: t.acked.bytes as f64 / size,
            sacked: t.sacked as f64 / size,
            lost: (self.board.total_lost() - t.lost_before) as f64 / size,
            rtt: t.rtt,
            rate,
            receiver_rate: a.receiver_rate.map(|r| Rate::from_bits_per_sec(8 * u64::from(r.get()))),
            ece: t.ece,
            cwnd_limited: !self.config.window_validation || self.limit == Limit::Window,
        };
        self.tell(now, |cc, cx| cc.on_ack(cx, &event));
        if self.after_timeout {
            let w = self.control.cc.window();
            self.after_timeout = w.cwnd < w.ssthresh;
        }
        if t.recovering && self.mode() == RecoveryMode::Prr {
            self.prr_ack(t.delivered(), t.advanced && event.lost == 0.0);
        }
    }

    /// During a recovery a SACK may restart the retransmission timer [Peach+ §I-C].
    fn postpone_timeout(&mut self, now: Instant, a: &Arrival<'_>, t: &AckEffect) {
        let restarts = match self.control.policy().timer_restart {
            TimerRestart::Advance => false,
            TimerRestart::NewSack => t.sacked > 0,
            TimerRestart::EverySack => !a.blocks.is_empty(),
        };
        if restarts && self.timers.at(Timer::Retransmission) != Instant::MAX {
            self.restart_timer(now);
        }
    }

    /// Checks for proof that the last reduction was spurious.
    fn doubt(&mut self, now: Instant, a: &Arrival<'_>, t: &AckEffect) {
        let watched = self.repair.as_ref().is_some_and(|r| r.undo.watch);
        if watched || t.dsack {
            // An echo from before the first transmission of the acknowledged data proves nothing.
            let (first, tick) = (t.acked.first_sent, self.config.tick());
            let age = a.echo.filter(|age| first.is_some_and(|f| *age <= now - f + tick));
            // A peer that negotiated SACK and reports no blocks answers new data with bare duplicates. Like blocks, they
            // show that nothing older has arrived (RFC 5682 §3.1 step 3a).
            let bare = a.pure && t.outstanding && t.same_window && a.ack == self.board.una();
            let duplicate = t.duplicate || !t.advanced && bare && a.answer.is_none();
            let summary = AckSummary { advanced: t.advanced, duplicate, original: t.original, age };
            self.reconsider(now, a, t.dsack, summary);
        }
    }

    /// Starts a recovery, or reduces the window for an ECN echo.
    fn react(&mut self, now: Instant, a: &Arrival<'_>, t: &AckEffect) {
        let by_time = self.by_time.is_some();
        if by_time {
            self.react_by_time(now, a, t);
        }
        if !self.state.is_open() || self.answered.until > self.board.una() {
            return;
        }
        // After go-back-N, duplicates at `recover` itself are caused by retransmissions of data that had arrived:
        // RFC 6582 §3.2 step 2 requires more than `recover` to be acknowledged. SACK distinguishes them.
        let went_back = AnsweredLoss { until: self.board.una(), repair: Repaired::ByGoBack };
        let echoes = !self.sack && self.answered == went_back;
        let enough = || self.dupacks >= self.config.dup_thresh || (self.sack && self.board.head_lost());
        if t.duplicate && !by_time && !echoes && enough() {
            self.enter_recovery(now, Signal::Loss, t.delivered());
        } else if t.ece && t.outstanding && self.board.una() > self.answered_until() {
            self.answer_mark(now);
        }
    }

    /// Congestion up to this offset has been answered: one reduction per window (RFC 3168 §6.1.2). Data beyond it
    /// must have been acknowledged, since only new data carries CWR, which reports the reduction to the peer.
    fn answered_until(&self) -> u64 {
        self.answered.until.max(self.marked_until())
    }

    /// Answers an ECN mark: like a loss, but without a retransmission. A loss in the same window is repaired
    /// without another reduction.
    #[cold]
    fn answer_mark(&mut self, now: Instant) {
        let max = self.board.max();
        let repair = self.repair();
        repair.marked_until = max;
        repair.marks_answered += 1;
        let path = self.path(now);
        self.report_congestion(now, &path, CongestionSignal::Ecn, |cc, cx| cc.on_congestion(cx, Signal::Ecn));
        // CWR is sent even if the control does not reduce; otherwise the peer would echo for ever.
        self.reduced = true;
        self.repair().undo.forget();
    }

    /// Reports every newly lost segment to the algorithm, if it asked for that.
    pub(super) fn tell_losses(&mut self, now: Instant) {
        let Some(sampler) = &self.sampler else { return };
        if sampler.lost(0).is_none() {
            return;
        }
        let mut i = 0;
        while let Some(lost) = self.sampler.as_ref().and_then(|s| s.lost(i)) {
            if self.control.policy().loss_events {
                self.tell(now, |cc, cx| cc.on_lost(cx, &lost));
            }
            i += 1;
        }
        if let Some(s) = &mut self.sampler {
            s.forget_lost();
        }
    }

    /// What an acknowledgement within a recovery subtracts from the pipe counter. A partial one also removes the
    /// original of the hole it closes, which was still counted besides its retransmission; an answer to a probe
    /// does not.
    fn count_pipe(&mut self, delivered: u64, partial: bool) {
        if let Pipe::Counter { partial_extra, .. } = self.control.policy().pipe {
            let smss = i64::from(self.space.smss);
            let Some(recovery) = self.state.recovery_mut() else { return };
            recovery.pipe -= delivered as i64;
            if partial && partial_extra {
                recovery.pipe -= smss;
            }
        }
    }

    /// Ends the persist state: the window has opened.
    #[inline]
    pub(super) fn stop_persisting(&mut self) {
        self.timers.stop(Timer::Persist);
        self.silence.persist_backoff = 0;
    }
}
