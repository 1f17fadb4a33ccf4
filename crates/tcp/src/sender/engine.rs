//! The engine of a sender: its parts, its start, its inputs, and its communication with the congestion control.

use crate::accecn::Tally;
use crate::config::{Config, LossDetection, MIN_MSS, ProbeNegotiation, RttSource};
use crate::delivery_rate::Sampler;
use crate::loss::Board;
use crate::loss::by_time::ByTime;
use crate::loss::classifier::Classifier;
use crate::pacer::Pacer;
use crate::probing::Prober;
use crate::recovery::Repair;
use crate::rtt::Estimator;
use crate::store::Store;
use crate::timer::{Timer, Timers};
use crate::wave::Marker;

use super::control::Control;
use super::rare::RareState;
use alloc::boxed::Box;
use alloc::sync::Arc;

use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{
    Actions, Algorithm, Clock, CongestionControl, Cx, Head, Path, PathCache, PathState, Phase, Pipe,
    ProbeSupport, RecoveryMode, Start,
};

use super::space::{FIRST, FinState, Space};
use super::state::{
    AnsweredLoss, Arrived, Hold, Limit, Loop, PendingActions, Repaired, Silence, State, Termination,
};
use super::{CongestionReport, CongestionSignal, Counters, Peer, Snapshot, copy};

/// Send buffer of a connection with a smaller window, bytes.
const FIRST_SEND_BUFFER: u64 = 65_536;

/// All of a sender except the fast path.
#[derive(Debug)]
pub(crate) struct Engine<S: Store> {
    // What every acknowledgement and every new segment touch.
    pub(super) board: Board,
    pub(super) space: Space,
    pub(super) rtt: Estimator,
    pub(super) control: Control,
    pub(super) state: State,
    pub(super) run: Loop,
    /// What limited the sender when its loop ended last.
    pub(super) limit: Limit,
    pub(super) sack: bool,
    /// The slow start after a retransmission timeout is in progress.
    pub(super) after_timeout: bool,
    pub(super) due: PendingActions,
    /// Whether data is held back.
    pub(super) hold: Hold,
    pub(super) end: Termination,
    /// The window was reduced, and the peer does not know yet (ECN).
    pub(super) reduced: bool,
    pub(super) dupacks: u32,
    pub(super) timers: Timers,
    pub(super) arrived: Arrived,
    pub(super) last_sent_at: Instant,
    pub(super) counters: Counters,
    pub(super) config: Arc<Config>,
    pub(super) pacer: Pacer,
    /// Only for algorithms that ask for rate samples.
    pub(super) sampler: Option<Box<Sampler>>,
    pub(super) prober: Prober,
    // Losses, path errors, start and end.
    pub(super) answered: AnsweredLoss,
    pub(super) repair: Option<Box<Repair>>,
    /// Time-based loss detection, if configured and possible.
    pub(super) by_time: Option<Box<ByTime>>,
    pub(super) congestion_report: Option<CongestionReport>,
    /// Why the algorithm is to be started when the next data is about to leave; `None` once it has been.
    pub(super) start_reason: Option<StartReason>,
    pub(super) rare: Option<Box<RareState>>,
    pub(super) silence: Silence,
    pub(super) waves: Option<Box<Marker>>,
    /// Acknowledged bytes that dummies still copy.
    pub(super) copy: Option<Box<copy::Copy>>,
    pub(super) store: S,
}

/// Why the algorithm is about to be started.
#[derive(Clone, Copy, Debug)]
pub(super) enum StartReason {
    Established { rtt: Option<Duration>, syn_lost: bool },
    Idle,
}

impl<S: Store> Engine<S> {
    pub(super) fn new(config: &Arc<Config>, cc: Algorithm, rng: Rng) -> Self {
        let control = Control::new(cc, rng, config.byte_window);
        let space = Space::new(config.mss);
        let mut new = Self {
            board: Board::new(FIRST, config, config.mss),
            sampler: control.policy().rate_samples.then(Box::default),
            rtt: Estimator::new(&config.rto),
            prober: Prober::new(config.probe_ids),
            config: Arc::clone(config),
            control,
            space,
            state: State::Open,
            run: Loop::default(),
            limit: Limit::Other,
            sack: false,
            after_timeout: false,
            due: PendingActions::default(),
            hold: Hold::NO,
            end: Termination::No,
            reduced: false,
            dupacks: 0,
            timers: Timers::NONE,
            arrived: Arrived { round: 0, round_end: FIRST, highest: FIRST, bytes: 0, marks: None },
            last_sent_at: Instant::ZERO,
            counters: Counters::default(),
            pacer: Pacer::default(),
            answered: AnsweredLoss { until: FIRST, repair: Repaired::ByRecovery },
            repair: None,
            by_time: None,
            congestion_report: None,
            start_reason: None,
            rare: RareState::at_start(config.loss_classifier),
            silence: Silence { persist_backoff: 0, unanswered: 0, stuck: (0, Instant::ZERO) },
            waves: None,
            copy: None,
            store: S::default(),
        };
        new.control.refresh(&new.space);
        new
    }

    pub(super) fn start(&mut self, now: Instant, peer: &Peer) {
        // A peer must not make us send tiny segments (CVE-2019-11479).
        let smss = self.config.mss.min(peer.mss.max(MIN_MSS).saturating_sub(peer.options)).max(1);
        let smss = self.begin_mtu_search(smss);
        self.space.smss = smss;
        self.limit_probes();
        self.begin_after_early_data(peer.early, smss);
        self.sack = peer.sack;
        // With SNACK the receiver names the lost data.
        let by_snack = self.config.loss_detection == LossDetection::Snack && peer.snack;
        let by_time = self.config.loss_detection == LossDetection::Rack || self.control.policy().rack;
        self.by_time = ((by_time || by_snack) && peer.sack && self.mode().uses_pipe())
            .then(|| Box::new(ByTime::new(&self.config, by_snack)));
        self.board.keep_times(self.times_matter(), self.by_time.is_some());
        self.space.update_window(self.board.una(), peer.window, self.config.send_buffer);
        self.prober.support = match self.config.probes {
            ProbeNegotiation::Negotiate if peer.probes => ProbeSupport::Yes,
            ProbeNegotiation::Paper => ProbeSupport::Unknown,
            _ => ProbeSupport::No,
        };
        if let (Some(rtt), true) = (peer.rtt, peer.rtt_is_sample) {
            self.measured_by_handshake(now, rtt);
        }
        if peer.syn_repeated {
            self.rtt.restart_without_sample(&self.config.rto);
        }
        self.last_sent_at = now;
        self.start_reason = Some(StartReason::Established { rtt: peer.rtt, syn_lost: peer.syn_lost });
        self.run.pending = Some(Clock::App);
        self.control.refresh(&self.space);
    }

    /// Nothing is outstanding; the SYN has carried the first `early` bytes, and they are acknowledged.
    fn begin_after_early_data(&mut self, early: u64, smss: u32) {
        let first = FIRST + early;
        self.board = Board::new(first, &self.config, smss);
        if early > 0 {
            self.store.release(early);
            self.arrived.bytes += early;
            (self.space.nxt, self.space.edge) = (first, first);
            (self.arrived.round_end, self.arrived.highest) = (first, first);
            self.answered.until = first;
        }
    }

    /// The handshake has measured the RTT.
    pub(super) fn measured_by_handshake(&mut self, now: Instant, rtt: Duration) {
        self.rtt.sample(rtt, 1, &self.config.rto);
        if let Some(by_time) = &mut self.by_time {
            by_time.rack.measured(now, rtt);
        }
    }

    /// Whether the send time of each segment is needed.
    pub(super) fn times_matter(&self) -> bool {
        let p = self.control.policy();
        self.by_time.is_some()
            || self.config.rtt_source != RttSource::Timed
            || self.config.f_rto
            || self.classifier().is_some_and(|c| c.needs_times())
            || p.rtt_samples
            || p.rate_samples
            || p.watch_head
    }

    /// Starts the algorithm, at the first data or after an idle period.
    #[cold]
    pub(super) fn begin(&mut self, now: Instant, start_reason: StartReason) {
        let start = match start_reason {
            StartReason::Established { rtt, syn_lost } => {
                Start::Established { rtt, syn_lost, cached: self.rare.as_mut().and_then(|a| a.cached.take()) }
            }
            StartReason::Idle => Start::Idle,
        };
        // The window reduction of an idle period is not undone.
        if let Some(repair) = &mut self.repair {
            repair.undo.forget();
        }
        self.tell(now, |cc, cx| cc.on_start(cx, &start));
        self.renew_policy();
    }

    /// Reads the policy of the algorithm again, and whether it needs send times.
    pub(super) fn renew_policy(&mut self) {
        self.control.renew_policy();
        self.board.keep_times(self.times_matter(), self.by_time.is_some());
    }

    pub(super) fn recall(&mut self, state: PathState) {
        let sound = state.cwnd.is_finite() && state.cwnd >= 1.0 && state.ssthresh >= 1.0;
        let wanted = self.control.policy().path_cache;
        if !sound || wanted == PathCache::Unused {
            return;
        }
        if let (PathCache::WindowAndRtt, Some(srtt)) = (wanted, state.srtt) {
            self.rtt.seed(srtt, state.rttvar, &self.config.rto);
        }
        self.rare().cached = Some(state);
    }

    pub(super) fn path_state(&self) -> PathState {
        let w = self.control.cc.window();
        PathState { cwnd: w.cwnd, ssthresh: w.ssthresh, srtt: self.rtt.srtt(), rttvar: self.rtt.rttvar() }
    }

    /// Limit on unacknowledged data that the application may write, bytes.
    pub(super) fn buffer(&self) -> u64 {
        let most = self.config.send_buffer;
        if !self.config.send_autotuning {
            return most;
        }
        // Twice the data in flight, so that the application may pause for an RTT without loss of throughput (Linux:
        // `tcp_sndbuf_expand`).
        let window = self.control.cc.window().cwnd * self.space.smss_f();
        most.min((2.0 * window) as u64).max(most.min(FIRST_SEND_BUFFER))
    }

    pub(super) fn write(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        if self.space.fin != FinState::Open {
            return 0;
        }
        let buffer = self.buffer();
        let room = buffer.saturating_sub(self.space.end - self.board.una());
        let n = if buffer == u64::MAX { n.min(u64::MAX / 4) } else { n.min(room) };
        self.append(now, data, n)
    }

    #[inline(always)]
    pub(super) fn offer(&mut self, now: Instant, n: u64) {
        if self.space.fin == FinState::Open {
            self.append(now, &[], n.min(u64::MAX / 4));
        }
    }

    #[inline(always)]
    pub(super) fn append(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        let idle =
            self.board.is_empty() && self.space.end > FIRST && now - self.last_sent_at > self.rtt.rto();
        self.store.append(data.get(..n as usize).unwrap_or(data), n);
        self.space.end = self.space.end.saturating_add(n).min(u64::MAX / 2);
        if n > 0 {
            if idle {
                self.start_reason = Some(StartReason::Idle);
            }
            self.run_loop(Clock::App);
        }
        n
    }

    /// Schedules the send loop; if it was already scheduled, the earlier clock remains.
    pub(super) fn run_loop(&mut self, clock: Clock) {
        self.run.pending = Some(self.run.pending.unwrap_or(clock));
    }

    pub(super) fn truncate(&mut self) -> u64 {
        let unsent = self.space.end.saturating_sub(self.board.max());
        if unsent > 0 {
            self.space.end -= unsent;
            self.store.truncate(self.space.end - self.board.una());
            // A FIN may leave now.
            self.run_loop(Clock::App);
        }
        unsent
    }

    pub(super) fn finish(&mut self) {
        if self.space.fin == FinState::Open {
            self.space.fin = FinState::Wanted;
            self.run_loop(Clock::App);
        }
    }

    pub(super) fn fin_acked(&self) -> bool {
        self.space.fin == FinState::Sent && self.board.is_empty()
    }
    #[inline]
    pub(super) fn unacked(&self) -> u64 {
        self.space.end.saturating_sub(self.board.una())
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let w = self.control.cc.window();
        Snapshot {
            una: self.board.una(),
            nxt: self.space.nxt,
            cwnd: w.cwnd,
            ssthresh: w.ssthresh,
            in_flight: self.flight(),
            pipe: self.board.pipe(),
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
            phase: self.state.phase(),
        }
    }

    pub(super) fn payload(&self, seq: u64, out: &mut [u8]) {
        self.stored_payload(self.board.una(), seq, out);
    }

    /// As [`Self::payload`], while the store still begins at the offset `first`: an acknowledgement moves `SND.UNA` before
    /// it releases bytes.
    pub(super) fn stored_payload(&self, first: u64, seq: u64, out: &mut [u8]) {
        let skip = (first.saturating_sub(seq) as usize).min(out.len());
        let (gone, kept) = out.split_at_mut(skip);
        match &self.copy {
            Some(copy) => copy.read(seq, gone),
            None => gone.fill(0),
        }
        self.store.read_at(seq.saturating_sub(first), kept);
    }

    pub(super) fn stop(&mut self) {
        self.timers = Timers::NONE;
        self.prober.stop();
        if let Some(t) = &mut self.by_time {
            t.tlp.due = false;
        }
        self.run.pending = None;
        self.due = PendingActions::default();
    }

    #[inline]
    pub(super) fn flight(&self) -> u64 {
        self.space.flight(&self.board)
    }

    /// Data in the network, bytes, by the estimate that the policy selects.
    pub(super) fn pipe(&self) -> u64 {
        match (self.control.policy().pipe, self.state.recovery()) {
            (Pipe::Counter { .. }, Some(recovery)) => recovery.pipe.max(0) as u64,
            _ => self.board.pipe(),
        }
    }

    /// Facts for the algorithm at this time.
    #[inline(always)]
    pub(super) fn path(&self, now: Instant) -> Path {
        let flight = self.flight();
        let head =
            |h: crate::loss::scoreboard::Item| Head { age: now - h.last_sent, retransmissions: h.rtx_count };
        Path {
            smss: self.space.smss,
            rwnd: self.space.rwnd,
            in_flight_bytes: flight,
            pipe_bytes: if self.sack { self.pipe() } else { flight },
            queued_bytes: self.space.end.saturating_sub(self.board.max()),
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            round: self.arrived.round,
            delivered: self.arrived.bytes,
            lost: self.board.total_lost(),
            head: if self.control.policy().watch_head { self.board.head().map(head) } else { None },
            phase: self.state.reported_phase(),
            after_timeout: self.after_timeout,
            app_limited: self.limit == Limit::App,
            probes: self.prober.support,
            sack: self.sack,
            marked: self.arrived.marks.as_ref().map(Tally::total),
        }
    }

    /// Reports an event with current facts to the algorithm and carries out its requests. True if there were any.
    #[inline]
    pub(super) fn tell(&mut self, now: Instant, event: impl FnOnce(&mut Algorithm, &mut Cx<'_>)) -> bool {
        let path = self.path(now);
        self.tell_with(now, &path, event)
    }

    /// As [`Self::tell`], with given facts.
    #[inline]
    pub(super) fn tell_with(
        &mut self,
        now: Instant,
        path: &Path,
        event: impl FnOnce(&mut Algorithm, &mut Cx<'_>),
    ) -> bool {
        let mut act = Actions::default();
        self.control.tell(now, path, &self.space, &mut act, event);
        let asked = !act.is_empty();
        if asked {
            self.carry_out(now, &act);
        }
        asked
    }

    /// Reports a congestion signal to the algorithm, with these path facts.
    pub(super) fn report_congestion(
        &mut self,
        now: Instant,
        path: &Path,
        signal: CongestionSignal,
        event: impl FnOnce(&mut Algorithm, &mut Cx<'_>),
    ) {
        let transmissions = self.board.head().map_or(1, |h| h.rtx_count + 1);
        self.report_congestion_at(now, path, signal, (self.board.una(), transmissions), event);
    }

    /// As [`Self::report_congestion`], for the segment at this offset, which had been sent this many times.
    pub(super) fn report_congestion_at(
        &mut self,
        now: Instant,
        path: &Path,
        signal: CongestionSignal,
        (offset, transmissions): (u64, u32),
        event: impl FnOnce(&mut Algorithm, &mut Cx<'_>),
    ) {
        let before = self.control.cc.window();
        // Window inflation by duplicate ACKs does not count.
        let inflated = self.state.reported_phase() == Phase::Recovery;
        let level = if inflated { before.cwnd.min(before.ssthresh) } else { before.cwnd };
        self.tell_with(now, path, event);
        let after = self.control.cc.window();
        let cut = after.cwnd < level || after.ssthresh < before.ssthresh;
        self.reduced |= cut;
        self.congestion_report = Some(CongestionReport { signal, offset, transmissions, cut });
    }

    #[cold]
    #[inline(never)]
    pub(super) fn carry_out(&mut self, now: Instant, act: &Actions) {
        if act.stop_probes {
            self.prober.stop();
        }
        if let Some(train) = act.train {
            self.prober.begin_epoch();
            self.prober.start(now, train);
        }
        if act.stop_probes || act.train.is_some() {
            self.timers.set(Timer::Train, self.prober.next_departure());
        }
        if let Some((source, count)) = act.probe_now {
            self.prober.ask(source, count);
        }
        if let Some(at) = act.wake_at {
            self.timers.set(Timer::Wake, at);
        }
        if act.retransmit_head && !self.board.is_empty() {
            self.due.set(PendingActions::SUSPICION);
        }
        if let Some(hold) = act.hold.filter(|hold| *hold != self.hold.algorithm) {
            self.hold.algorithm = hold;
            if !self.hold.is_on() {
                if !self.board.is_empty() {
                    self.restart_timer(now);
                }
                self.run_loop(Clock::Timer);
            }
        }
        if act.rewind && !self.board.is_empty() {
            // As after a timeout, but the timer restarts without backoff.
            self.repair_from_start(now);
        }
    }

    pub(super) fn trim(&mut self) {
        self.store.trim();
        let Self { by_time, board, sampler, .. } = self;
        if let (Some(by_time), Some(board)) = (by_time, board.scoreboard()) {
            by_time.rack.trim(board);
        }
        board.trim();
        if let Some(sampler) = sampler {
            sampler.trim();
        }
    }

    pub(super) fn fast_recovery(&self) -> bool {
        self.state.recovery().is_some()
    }
    /// The recovery mode: that of the policy, with two exceptions. A peer without SACK gets NewReno instead of a SACK recovery,
    /// and a recovery not reported to the algorithm does not reduce the window.
    pub(super) fn mode(&self) -> RecoveryMode {
        self.mode_if(self.state.is_quiet())
    }
    /// The mode of a recovery that is, or is not, `quiet`.
    pub(super) fn mode_if(&self, quiet: bool) -> RecoveryMode {
        match self.control.policy().recovery {
            // Only partial acknowledgements show further losses then (RFC 6582 §1).
            RecoveryMode::Sack | RecoveryMode::Prr if !self.sack => RecoveryMode::NewReno,
            RecoveryMode::Prr if quiet => RecoveryMode::Sack,
            // A lost path MTU probe is retransmitted as several segments: a partial acknowledgement asks for the
            // next.
            RecoveryMode::Tahoe | RecoveryMode::Reno if quiet && self.mtu_search().is_some() => {
                RecoveryMode::NewReno
            }
            RecoveryMode::Tahoe if quiet => RecoveryMode::Reno,
            mode => mode,
        }
    }
    /// The loss classifier, if there is one.
    #[inline]
    pub(super) fn classifier(&self) -> Option<&Classifier> {
        self.rare.as_ref()?.classifier.as_ref()
    }
    /// The same, for reporting to it.
    pub(super) fn classifier_mut(&mut self) -> Option<&mut Classifier> {
        self.rare.as_mut()?.classifier.as_mut()
    }
    /// Rarely used state, created if necessary.
    pub(super) fn rare(&mut self) -> &mut RareState {
        self.rare.get_or_insert_default()
    }
    /// State of recoveries, created if necessary.
    pub(super) fn repair(&mut self) -> &mut Repair {
        self.repair.get_or_insert_with(|| Box::new(Repair::new()))
    }
    /// The head leaves again: restarts the retransmission timer with a whole RTO, within the limit for data that waits
    /// ([`Self::patience`]).
    pub(super) fn guard_head(&mut self, now: Instant) {
        self.restart_timer(now);
        self.hasten(Timer::Retransmission, self.patience());
    }
    /// Restarts the retransmission timer.
    pub(super) fn restart_timer(&mut self, now: Instant) {
        self.timers.set(Timer::Retransmission, now + self.rtt.rto());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Sender;
    use super::*;
    use crate::store::Counted;

    /// A started sender; the peer supports SACK and probes and has a window of 1 MB.
    pub(crate) fn started<S: Store>(config: Config, control: &str) -> Sender<S> {
        let cc = skyhaul_cc::Config::by_name(control).expect("known").build(&config.rules);
        let mss = config.mss;
        let mut sender = Sender::new(&Arc::new(config), cc, Rng::stream(1, "sender"));
        let peer = Peer {
            mss,
            options: 0,
            window: 1_000_000,
            sack: true,
            snack: false,
            probes: true,
            rtt: None,
            rtt_is_sample: false,
            syn_repeated: false,
            syn_lost: false,
            early: 0,
        };
        sender.start(Instant::ZERO, &peer);
        sender
    }

    #[test]
    fn a_stopped_sender_sends_nothing_that_was_due() {
        for due in [PendingActions::HEAD, PendingActions::SUSPICION, PendingActions::WINDOW_PROBE] {
            for stopped in [false, true] {
                let mut s = started::<Counted>(Config { mss: 1000, ..Config::rfc() }, "newreno");
                s.offer(Instant::ZERO, 1000);
                assert!(s.poll(Instant::ZERO).is_some() && s.poll(Instant::ZERO).is_none());
                s.general().due.set(due);
                if stopped {
                    s.stop();
                }
                assert_eq!(s.poll(Instant::ZERO).is_none(), stopped, "{due:?}");
            }
        }
    }
}
