//! One arriving acknowledgement, in the documented order: validate, scoreboard and `SND.UNA`, RTT, rate sample,
//! `on_ack`, `on_probe`, loss detection and the state of recovery. The send loop follows.

use super::undo::News;
use super::{Clock, FinState, Phase, Sender, Sign, prr};
use crate::config::RttSource;
use crate::error::Rejected;
use crate::store::Store;
use core::num::NonZeroU32;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_cc::{
    Ack, AckKind, CongestionControl, Pipe, ProbeEvent, ProbeSupport, RecoveryEnd, RecoveryMode, Signal,
};

/// The acknowledgement part of an arriving segment, in stream offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) ack: u64,
    pub(crate) window: u64,
    /// The segment may update the window (RFC 9293 §3.10.7.4, `SND.WL1`, `SND.WL2`).
    pub(crate) fresh: bool,
    pub(crate) blocks: &'a [(u64, u64)],
    /// Neither payload nor SYN nor FIN: may be a duplicate acknowledgement.
    pub(crate) pure: bool,
    /// It answers a probe, with this number if it has one.
    pub(crate) answer: Option<Option<u16>>,
    /// RTT by its timestamp echo.
    pub(crate) echo: Option<Duration>,
    pub(crate) ece: bool,
    /// Rate that the peer measured, bytes per second.
    pub(crate) receiver_rate: Option<NonZeroU32>,
}

impl<S: Store> Sender<S> {
    /// Processes an acknowledgement. The caller then polls for what it released.
    #[inline]
    pub(crate) fn handle_ack(&mut self, now: Instant, a: &Arrival<'_>) -> Result<(), Rejected> {
        if self.rack.is_some() {
            self.acknowledged_by_time(now, a)
        } else {
            self.acknowledged::<false>(now, a)
        }
    }

    /// Out of line: two copies in one function would slow the common one down.
    #[inline(never)]
    fn acknowledged_by_time(&mut self, now: Instant, a: &Arrival<'_>) -> Result<(), Rejected> {
        self.acknowledged::<true>(now, a)
    }

    /// `BY_TIME`: RACK detects the losses.
    #[inline]
    fn acknowledged<const BY_TIME: bool>(&mut self, now: Instant, a: &Arrival<'_>) -> Result<(), Rejected> {
        let una = self.sb.una();
        if a.ack > self.sb.max() {
            return Err(Rejected::AckOfUnsent);
        }
        // RFC 5961 §5.2: older than the largest window ever seen cannot be genuine.
        if a.ack + self.max_window < una {
            return Err(Rejected::AckTooOld);
        }
        self.counters.acks += 1;
        let outstanding = self.sb.max() > una;
        let same_window = a.window == self.window;
        let ack = a.ack.max(una);
        let advanced = ack > una;
        if a.fresh && a.ack >= una {
            self.update_window(ack, a.window);
        }

        // Scoreboard and SND.UNA.
        let watch = self.undo.watch;
        let original = watch && self.frto.decides() && self.delivers_original(a);
        let lost_before = self.sb.total_lost();
        if BY_TIME {
            if let Some(rack) = &mut self.rack {
                rack.cumulative(&self.sb, ack);
            }
        }
        let acked = self.sb.ack(ack);
        if advanced {
            self.persist_at = Instant::MAX;
            self.persist_backoff = 0;
            self.nxt = self.nxt.max(ack);
            self.dupacks = 0;
            self.limited_sent = 0;
            let fin = u64::from(self.fin == FinState::Sent && self.sb.is_empty());
            if S::KEEPS && self.prober.in_use() {
                self.keep_copied(una, ack);
            }
            self.store.release(acked.bytes - fin);
            self.counters.bytes_acked += acked.bytes - fin;
            self.highest_delivered = self.highest_delivered.max(ack);
            if let Some(s) = &mut self.sampler {
                (0..acked.popped).for_each(|i| s.delivered(i, now));
                s.popped(acked.popped);
            }
        }
        let mut sacked = 0;
        let mut dsack = false;
        if self.sack && !a.blocks.is_empty() {
            (sacked, dsack) = self.take_blocks::<BY_TIME>(now, a.ack, a.blocks);
            if sacked > 0 {
                self.highest_delivered = self.highest_delivered.max(self.sb.high_sacked());
            }
        }
        if self.sb.sacked() > 0 && !BY_TIME {
            let sampler = &mut self.sampler;
            self.sb.detect(|i, len, total| {
                if let Some(s) = sampler {
                    s.marked_lost(i, len, total);
                }
            });
        }
        self.path.delivered += acked.delivered + sacked;

        // RTT: never from the answer to a probe. The algorithm sees every sample, the estimator those of the
        // configured source.
        let (mut rtt, mut measured) = (None, false);
        if advanced && a.answer.is_none() {
            rtt = acked.sent_at.map(|t| now - t);
            let sample = match self.config.rtt_source {
                RttSource::Timestamps if a.echo.is_some() => a.echo,
                RttSource::Timed => self.rtt.timed_sample(ack, now),
                _ => rtt,
            };
            if let Some(r) = sample {
                self.rtt.sample(r);
                measured = true;
            }
        }
        if BY_TIME {
            self.rack_ack(now, a, dsack, measured);
        }

        // Rounds and rate sample.
        // A round is over when something arrives that was sent after it began.
        if self.highest_delivered > self.round_end && outstanding && (advanced || sacked > 0) {
            self.path.round += 1;
            self.round_end = self.sb.max();
        }
        let (delivered, lost) = (self.path.delivered, self.sb.total_lost());
        let min_rtt = self.rtt.min();
        let rate = self.sampler.as_mut().and_then(|s| s.take(delivered, lost, min_rtt));

        // Duplicate acknowledgement? RFC 5681 §2; with SACK, RFC 6675 §2: new selective information.
        let is_dup = !advanced
            && a.ack == una
            && outstanding
            && a.answer.is_none()
            && if self.sack { sacked > 0 } else { a.pure && same_window };
        let mut legacy = false;
        if !advanced && a.pure && a.answer.is_none() && self.prober.expects_legacy() {
            legacy = self.legacy_answer(now, a, sacked, dsack, same_window);
        }
        let is_dup = is_dup && !legacy;
        if dsack {
            self.counters.dsacks += 1;
        }
        if is_dup {
            self.dupacks += 1;
            self.counters.duplicate_acks += 1;
        }

        let recovering = self.fast_recovery();
        if recovering {
            self.count_pipe(acked.delivered + sacked, advanced && a.answer.is_none());
        }
        let ends = recovering && advanced && ack >= self.recovery_point;
        self.tell_losses(now);
        if advanced || is_dup {
            let kind = match (advanced, recovering) {
                (true, true) if ends => AckKind::Full,
                (true, true) => AckKind::Partial,
                (true, false) => AckKind::New,
                (false, _) => AckKind::Duplicate { count: self.dupacks, new_sack: sacked > 0, dsack },
            };
            let size = self.smss_f();
            let event = Ack {
                kind,
                acked: acked.bytes as f64 / size,
                sacked: sacked as f64 / size,
                lost: (self.sb.total_lost() - lost_before) as f64 / size,
                rtt,
                rate,
                receiver_rate: a.receiver_rate.map(|r| Rate::from_bits_per_sec(8 * u64::from(r.get()))),
                ece: a.ece,
                cwnd_limited: !self.config.window_validation || self.window_limited,
            };
            self.call(now, |cc, cx| cc.on_ack(cx, &event));
            if self.path.after_timeout {
                let w = self.cc.window();
                self.path.after_timeout = w.cwnd < w.ssthresh;
            }
            if recovering && self.mode() == RecoveryMode::Prr {
                self.prr_ack(acked.delivered + sacked, advanced && event.lost == 0.0);
            }
        }
        if let Some(id) = a.answer {
            match self.prober.answer(id) {
                Some(stale) => {
                    let newly_acked = acked.delivered.min(u64::from(u32::MAX)) as u32;
                    self.call(now, |cc, cx| {
                        cc.on_probe(cx, ProbeEvent::Acked { count: 1, stale, newly_acked })
                    });
                }
                None => self.counters.probe_answers_refused += 1,
            }
        }

        if advanced {
            self.after_advance(now, ack, ends);
        }
        if watch || dsack {
            self.reconsider(now, a, dsack, News { advanced, duplicate: is_dup, original });
        }
        if BY_TIME {
            let bare = !advanced && a.pure && same_window && a.blocks.is_empty();
            self.rack_verdict(now, a, dsack, bare, (acked.bytes, acked.delivered + sacked));
        }
        // After going back, duplicates at `recover` itself echo what was sent again and had arrived before: RFC 6582
        // §3.2 step 2 wants more than `recover` acknowledged. SACK tells them apart.
        let echoes = self.went_back && !self.sack && self.recover == self.sb.una();
        let judged = self.phase == Phase::Open && self.recover <= self.sb.una() && !echoes;
        let by_count = is_dup && !BY_TIME;
        if judged
            && by_count
            && (self.dupacks >= self.config.dup_thresh || (self.sack && self.sb.head_lost()))
        {
            self.enter_recovery(now, Signal::Loss);
        } else if a.ece && self.phase == Phase::Open && self.recover <= self.sb.una() {
            // One reduction per window (RFC 3168 §6.1.2); nothing to retransmit.
            self.recover = self.sb.max();
            self.refresh(now);
            self.judge(now, Sign::Ecn, |cc, cx| cc.on_congestion(cx, Signal::Ecn));
            self.undo.forget();
        }
        self.pending = Some(if a.answer.is_some() { Clock::Probe } else { Clock::Ack });
        Ok(())
    }

    /// Marks SACK blocks; returns the bytes newly acknowledged and whether the first block reports a duplicate
    /// (RFC 2883 §4: below the cumulative acknowledgement, or inside the second block).
    #[inline]
    fn take_blocks<const BY_TIME: bool>(
        &mut self,
        now: Instant,
        ack: u64,
        blocks: &[(u64, u64)],
    ) -> (u64, bool) {
        // Against the acknowledgement of this segment: an old one that was overtaken reports no duplicates.
        let dsack = match *blocks {
            [(from, to), ..] if to <= ack && from < to => true,
            [(from, to), (from2, to2), ..] => from >= from2 && to <= to2,
            _ => false,
        };
        let mut new = 0;
        for &(from, to) in &blocks[usize::from(dsack)..] {
            if from >= to || to > self.sb.max() || from < self.sb.una() {
                continue;
            }
            let (sampler, rack) = (&mut self.sampler, &mut self.rack);
            new += self.sb.sack(from, to, |i| {
                if BY_TIME {
                    if let Some(rack) = rack {
                        rack.selective(i);
                    }
                }
                if let Some(s) = sampler {
                    s.delivered(i, now);
                }
            });
        }
        (new, dsack)
    }

    /// The answer of an unmodified receiver to a probe is a duplicate acknowledgement: no sign of loss, but the
    /// proof that it does not understand probes [Peach §III-B].
    #[cold]
    fn legacy_answer(
        &mut self,
        now: Instant,
        a: &Arrival<'_>,
        sacked: u64,
        dsack: bool,
        same_window: bool,
    ) -> bool {
        let plausible = a.ack == self.sb.una() && same_window && (dsack || !self.sack || sacked == 0);
        if !plausible || !self.prober.consume_legacy_credit() {
            return false;
        }
        if self.prober.support == ProbeSupport::Unknown {
            self.prober.unsupported();
            self.call(now, |cc, cx| cc.on_probe(cx, ProbeEvent::Unsupported));
            self.policy = self.cc.policy();
        }
        true
    }

    #[inline]
    fn after_advance(&mut self, now: Instant, ack: u64, ends: bool) {
        let mut restart = true;
        match self.phase {
            Phase::Recovery if ends => {
                self.phase = Phase::Open;
                self.force_head = false;
                self.call(now, |cc, cx| cc.on_recovered(cx));
            }
            Phase::Recovery => {
                if self.mode() == RecoveryMode::NewReno {
                    // RFC 6582 §3.2 step 3: a partial acknowledgement reveals the next loss.
                    self.force_head = true;
                    self.partial_acks = self.partial_acks.saturating_add(1);
                    restart = !(self.partial_acks > 1 && self.config.rto.restart_on_first_partial_only);
                }
            }
            Phase::Loss if ack >= self.recover => self.phase = Phase::Open,
            Phase::Loss | Phase::Open => {}
        }
        if self.sb.is_empty() {
            self.rto_at = Instant::MAX;
        } else if restart {
            self.rto_at = now + self.rtt.rto();
        }
    }

    pub(super) fn enter_recovery(&mut self, now: Instant, signal: Signal) {
        self.counters.recoveries += 1;
        let mode = self.mode();
        let una = self.sb.una();
        let flight = self.sb.max() - una;
        self.refresh(now);
        // RFC 5681 §3.2 step 2: what limited transmit sent is no part of the FlightSize that is halved.
        let mut limited = self.limited_sent;
        if self.rack.is_some() {
            // The same of what went in place of segments beyond a hole, across partial acknowledgements too.
            limited = limited.max(flight.saturating_sub(self.cwnd_bytes()).min(self.sb.sacked()));
            self.tlp.reset();
            if self.rack_probes {
                self.rack_at = Instant::MAX;
            }
        }
        self.path.in_flight -= limited as f64 / self.smss_f();
        self.judge(now, Sign::Acks, |cc, cx| cc.on_congestion(cx, signal));
        self.may_undo(false, false);
        self.frto.stop();
        self.prober.begin_epoch();
        self.rtt.stop_timing();
        self.partial_acks = 0;
        if mode == RecoveryMode::Tahoe {
            self.recover = self.sb.max();
            self.go_back(now, true);
            return;
        }
        self.phase = Phase::Recovery;
        self.went_back = false;
        // What the duplicates report has left; what is sent from here on is added.
        self.pipe_counter = flight as i64 - self.sb.sacked() as i64;
        self.recovery_point = match (mode, self.policy.recovery_end) {
            (RecoveryMode::Reno, _) => una + 1,
            (_, RecoveryEnd::TriggeringSegment) => {
                let first = self.first_lost().and_then(|i| self.sb.item(i));
                first.map_or(una + 1, |s| s.seq + u64::from(s.len).max(1))
            }
            _ => self.sb.max(),
        };
        if mode != RecoveryMode::Reno && self.policy.recovery_end == RecoveryEnd::AllOutstanding {
            self.recover = self.sb.max();
        }
        if self.rack.is_none() {
            self.sb.begin_episode(self.policy.recovery_end == RecoveryEnd::TriggeringSegment);
            let by_decree = self.sb.mark_head_lost();
            if let Some(s) = self.sampler.as_mut().filter(|_| by_decree > 0) {
                s.marked_lost(0, by_decree as u32, self.sb.total_lost());
                self.tell_losses(now);
            }
        }
        self.force_head = true;
        if mode == RecoveryMode::Prr {
            if let Some(rack) = &self.rack {
                // RFC 9937 §6.2: what had been reported before is no part of RecoverFS.
                let delivered = rack.delivered;
                let before = self.sb.sacked().saturating_sub(delivered);
                self.prr = prr::Prr::begin(flight.saturating_sub(before));
                self.prr_ack(delivered, false);
            } else {
                self.prr = prr::Prr::begin(flight);
                self.prr_ack(u64::from(self.smss) * u64::from(self.dupacks.min(3)), false);
            }
        }
    }

    /// Tells the algorithm, if it wants to know, of every segment marked lost since the last time.
    pub(super) fn tell_losses(&mut self, now: Instant) {
        let Some(sampler) = &self.sampler else { return };
        if sampler.lost(0).is_none() {
            return;
        }
        let mut i = 0;
        while let Some(lost) = self.sampler.as_ref().and_then(|s| s.lost(i)) {
            if self.policy.loss_events {
                self.call(now, |cc, cx| cc.on_lost(cx, &lost));
            }
            i += 1;
        }
        if let Some(s) = &mut self.sampler {
            s.forget_lost();
        }
    }

    /// What an acknowledgement within a recovery takes out of the counting pipe. Of a partial one, the original of
    /// the hole it closes was still counted besides its retransmission; an answer to a probe reveals no such thing.
    fn count_pipe(&mut self, delivered: u64, partial: bool) {
        if let Pipe::Counter { partial_extra } = self.policy.pipe {
            self.pipe_counter -= delivered as i64;
            if partial && partial_extra {
                self.pipe_counter -= i64::from(self.smss);
            }
        }
    }

    fn prr_ack(&mut self, delivered: u64, safe: bool) {
        let smss = u64::from(self.smss);
        let ssthresh = (self.cc.window().ssthresh * self.smss_f()) as u64;
        self.prr.on_ack(delivered, self.sb.pipe(), ssthresh, smss, safe);
    }
}
