//! The sending half: decides which bytes go and when a loss is a loss.
//!
//! `ack` holds the order of processing of an acknowledgement, `transmit` the send loop, `timers` what expires.

mod ack;
mod copy;
mod counters;
mod detect;
mod frto;
mod judged;
mod path_mtu;
mod prr;
mod rack;
mod timers;
mod tlp;
mod transmit;
mod undo;

use crate::config::{Config, LossDetection, ProbeNegotiation};
use crate::connection::MIN_MSS;
use crate::pacer::Pacer;
use crate::probe::Prober;
use crate::rate::Sampler;
use crate::rtt::Estimator;
use crate::scoreboard::Scoreboard;
use crate::segment::Mark;
use crate::store::Store;
use crate::wave::Marker;
pub(crate) use ack::Arrival;
use alloc::boxed::Box;
use core::num::NonZeroU16;
pub use counters::Counters;
pub use judged::{Judged, Sign};
pub use rack::{Rack, RackReport};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{
    Actions, Algorithm, Clock, CongestionControl, Cx, Head, Path, PathCache, PathState, Phase, Pipe, Policy,
    ProbeSupport, RecoveryMode, Start,
};

/// A segment to be sent, in stream offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) seq: u64,
    pub(crate) len: u32,
    pub(crate) fin: bool,
    pub(crate) low_priority: bool,
    pub(crate) mark: Mark,
    pub(crate) probe_id: Option<u16>,
}

/// The state of a sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// `SND.UNA` as a stream offset; the first byte of data has offset 1.
    pub una: u64,
    /// `SND.NXT` as a stream offset.
    pub nxt: u64,
    /// Congestion window, segments.
    pub cwnd: f64,
    /// Slow start threshold, segments.
    pub ssthresh: f64,
    /// `SND.NXT - SND.UNA`, bytes.
    pub in_flight: u64,
    /// RFC 6675 pipe, bytes.
    pub pipe: u64,
    /// Smoothed RTT.
    pub srtt: Option<Duration>,
    /// Retransmission timeout in force.
    pub rto: Duration,
    /// State of loss recovery.
    pub phase: Phase,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender<S: Store> {
    sb: Scoreboard,
    /// `SND.NXT`: where the next transmission starts; below `SND.MAX` while going back.
    nxt: u64,
    /// End of what the application wrote.
    end: u64,
    /// Right edge of the peer's window.
    edge: u64,
    window: u64,
    max_window: u64,
    phase: Phase,
    dupacks: u32,
    /// No fast retransmit below this (RFC 6582 `recover`).
    recover: u64,
    recovery_point: u64,
    /// The segment at `SND.UNA` must be retransmitted whatever the window says.
    force_head: bool,
    /// What `recover` guards is repaired by sending everything again, not by a fast recovery.
    went_back: bool,
    /// The algorithm judged the segment at `SND.UNA` lost.
    suspected: bool,
    /// Bytes that limited transmit sent beyond the window since `SND.UNA` last moved.
    limited_sent: u64,
    /// Partial acknowledgements within this recovery (NewReno).
    partial_acks: u32,
    /// The algorithm learns of the connection when the first data is about to leave.
    starting: Option<Start>,
    /// What an earlier connection on the path left.
    cached: Option<Box<PathState>>,
    /// The send loop has to run, clocked by this.
    pending: Option<Clock>,
    loop_sent: u32,
    window_limited: bool,
    app_limited: bool,
    sack: bool,
    smss: u32,
    policy: Policy,
    cc: Algorithm,
    path: Path,
    rtt: Estimator,
    rto_at: Instant,
    /// Expiry of the reordering window, or of the wait for a tail loss probe if `rack_probes`.
    rack_at: Instant,
    rack_probes: bool,
    persist_at: Instant,
    persist_backoff: u32,
    wake_at: Instant,
    pace_at: Instant,
    window_probe: bool,
    force_small: bool,
    round_end: u64,
    highest_delivered: u64,
    waves: Marker,
    last_sent_at: Instant,
    fin: FinState,
    gave_up: bool,
    prober: Prober,
    counters: Counters,
    judged: Option<Judged>,
    config: Config,
    pacer: Pacer,
    /// Only for algorithms that ask for rate samples.
    sampler: Option<Box<Sampler>>,
    prr: prr::Prr,
    /// Loss detection by time, where it is configured and possible.
    rack: Option<Box<Rack>>,
    tlp: tlp::Tlp,
    /// What may prove spurious.
    undo: undo::Undo,
    frto: frto::Frto,
    /// The counting estimate of [`Pipe::Counter`](skyhaul_cc::Pipe), bytes; it may fall below zero.
    pipe_counter: i64,
    rng: Rng,
    store: S,
    /// Bytes that dummies copy after they were acknowledged.
    copy: copy::Copy,
}

/// What became of our FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FinState {
    /// The application may still write.
    Open,
    /// To be sent after the last byte.
    Wanted,
    /// In the scoreboard.
    Sent,
}

/// Offset of the first byte of data: the SYN has offset 0.
pub(crate) const FIRST: u64 = 1;

impl<S: Store> Sender<S> {
    /// A sender that has not started; nothing leaves before `start`.
    #[must_use]
    pub fn new(config: &Config, cc: Algorithm, rng: Rng) -> Self {
        let policy = cc.policy();
        Self {
            sb: Scoreboard::new(FIRST, config.dup_thresh, config.mss),
            nxt: FIRST,
            end: FIRST,
            edge: FIRST,
            window: 0,
            max_window: 0,
            phase: Phase::Open,
            dupacks: 0,
            recover: FIRST,
            recovery_point: FIRST,
            force_head: false,
            went_back: false,
            suspected: false,
            limited_sent: 0,
            partial_acks: 0,
            starting: None,
            cached: None,
            pending: None,
            loop_sent: 0,
            window_limited: false,
            app_limited: false,
            sack: false,
            smss: config.mss,
            policy,
            path: Path {
                smss: config.mss,
                rwnd: 0.0,
                in_flight: 0.0,
                pipe: 0.0,
                queued: 0.0,
                srtt: None,
                rttvar: Duration::ZERO,
                min_rtt: None,
                round: 0,
                delivered: 0,
                lost: 0,
                head: None,
                phase: Phase::Open,
                after_timeout: false,
                app_limited: false,
                probes: ProbeSupport::Unknown,
                sack: false,
            },
            rtt: Estimator::new(config.rto),
            rto_at: Instant::MAX,
            rack_at: Instant::MAX,
            rack_probes: false,
            persist_at: Instant::MAX,
            persist_backoff: 0,
            wake_at: Instant::MAX,
            pace_at: Instant::MAX,
            window_probe: false,
            force_small: false,
            round_end: FIRST,
            highest_delivered: FIRST,
            waves: Marker::default(),
            last_sent_at: Instant::ZERO,
            fin: FinState::Open,
            gave_up: false,
            prober: Prober::new(config.probe_ids),
            counters: Counters::default(),
            judged: None,
            config: *config,
            pacer: Pacer::default(),
            sampler: policy.rate_samples.then(Box::default),
            prr: prr::Prr::default(),
            rack: None,
            tlp: tlp::Tlp::NEW,
            undo: undo::Undo::default(),
            frto: frto::Frto::NEW,
            pipe_counter: 0,
            rng,
            store: S::default(),
            copy: copy::Copy::default(),
            cc,
        }
    }

    /// The connection is established: what the handshake found out. The algorithm's first event follows with
    /// the first data, so that it sees how much there is.
    pub(crate) fn start(&mut self, now: Instant, peer: &Peer) {
        // A peer may not make us send in crumbs (CVE-2019-11479).
        self.smss = self.config.mss.min(peer.mss.max(MIN_MSS).saturating_sub(peer.options)).max(1);
        self.path.smss = self.smss;
        self.limit_probes();
        self.sb = Scoreboard::new(FIRST, self.config.dup_thresh, self.smss);
        self.sack = peer.sack;
        let by_time = self.config.loss_detection == LossDetection::Rack;
        self.rack =
            (by_time && peer.sack && self.mode().uses_pipe()).then(|| Box::new(Rack::new(&self.config)));
        self.update_window(FIRST, peer.window);
        self.prober.support = match self.config.probes {
            ProbeNegotiation::Negotiate if peer.probes => ProbeSupport::Yes,
            ProbeNegotiation::Paper => ProbeSupport::Unknown,
            _ => ProbeSupport::No,
        };
        if let (Some(rtt), true) = (peer.rtt, peer.rtt_is_sample) {
            self.rtt.sample(rtt);
        }
        self.last_sent_at = now;
        self.starting = Some(Start::Established { rtt: peer.rtt, syn_lost: peer.syn_lost, cached: None });
        self.pending = Some(Clock::App);
    }

    #[cold]
    fn begin(&mut self, now: Instant, mut start: Start) {
        if let Start::Established { cached, .. } = &mut start {
            *cached = self.cached.take().map(|s| *s);
        }
        // What an idle period does to the window is not undone.
        self.undo.forget();
        self.call(now, |cc, cx| cc.on_start(cx, &start));
        self.policy = self.cc.policy();
    }

    /// What an earlier connection on the path left; of no interest to most algorithms. Before the first data.
    pub(crate) fn recall(&mut self, state: PathState) {
        let sound = state.cwnd.is_finite() && state.cwnd >= 1.0 && state.ssthresh >= 1.0;
        if !sound || self.policy.path_cache == PathCache::Unused {
            return;
        }
        if let (PathCache::WindowAndRtt, Some(srtt)) = (self.policy.path_cache, state.srtt) {
            self.rtt.seed(srtt, state.rttvar);
        }
        self.cached = Some(Box::new(state));
    }

    /// What it has learnt of the path.
    pub(crate) fn path_state(&self) -> PathState {
        let w = self.cc.window();
        PathState { cwnd: w.cwnd, ssthresh: w.ssthresh, srtt: self.rtt.srtt(), rttvar: self.rtt.rttvar() }
    }

    /// Appends `n` bytes (`data` holds them where bytes are kept). Returns how many were taken.
    pub(crate) fn write(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        if self.fin != FinState::Open {
            return 0;
        }
        let room = self.config.send_buffer.saturating_sub(self.end - self.sb.una());
        let n = if self.config.send_buffer == u64::MAX { n.min(u64::MAX / 4) } else { n.min(room) };
        self.append(now, data, n)
    }

    /// As [`Self::write`], for an application that keeps the send buffer full from `n` bytes of its own: all of them are
    /// taken, of which no more than the buffer holds are outstanding at a time.
    pub(crate) fn offer(&mut self, now: Instant, n: u64) {
        if self.fin == FinState::Open {
            self.append(now, &[], n.min(u64::MAX / 4));
        }
    }

    fn append(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        let idle = self.sb.is_empty() && self.end > FIRST && now - self.last_sent_at > self.rtt.rto();
        self.store.append(data.get(..n as usize).unwrap_or(data), n);
        self.end = self.end.saturating_add(n).min(u64::MAX / 2);
        if n > 0 {
            if idle {
                self.starting = Some(Start::Idle);
            }
            self.pending = Some(self.pending.unwrap_or(Clock::App));
        }
        n
    }

    /// Forgets what was written and never sent. Returns how many bytes.
    pub(crate) fn truncate(&mut self) -> u64 {
        let unsent = self.end.saturating_sub(self.sb.max());
        if unsent > 0 {
            self.end -= unsent;
            self.store.truncate(self.end - self.sb.una());
            // A FIN may go now.
            self.pending = Some(self.pending.unwrap_or(Clock::App));
        }
        unsent
    }

    /// No more data will be written: a FIN follows the last byte.
    pub(crate) fn finish(&mut self) {
        if self.fin == FinState::Open {
            self.fin = FinState::Wanted;
            self.pending = Some(self.pending.unwrap_or(Clock::App));
        }
    }

    /// Our FIN was acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.fin == FinState::Sent && self.sb.is_empty()
    }
    /// The peer was given up on (too many retransmissions).
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up
    }
    /// Bytes written and not yet acknowledged.
    #[must_use]
    pub fn unacked(&self) -> u64 {
        self.end.saturating_sub(self.sb.una())
    }
    /// Room in the send buffer.
    #[must_use]
    pub(crate) fn room(&self) -> u64 {
        self.config.send_buffer.saturating_sub(self.unacked())
    }
    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            probes_sent: self.prober.sent,
            probes_answered: self.prober.answered,
            ..self.counters.clone()
        }
    }
    /// Its state now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let w = self.cc.window();
        Snapshot {
            una: self.sb.una(),
            nxt: self.nxt,
            cwnd: w.cwnd,
            ssthresh: w.ssthresh,
            in_flight: self.flight(),
            pipe: self.sb.pipe(),
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(),
            phase: self.phase,
        }
    }
    /// Payload of a full segment, bytes.
    #[must_use]
    pub fn segment_size(&self) -> u32 {
        self.smss
    }
    /// The congestion control.
    #[must_use]
    pub fn control(&self) -> &Algorithm {
        &self.cc
    }
    /// The scoreboard.
    #[must_use]
    pub fn scoreboard(&self) -> &Scoreboard {
        &self.sb
    }
    /// Loss detection by time, where it is in use.
    #[must_use]
    pub fn rack(&self) -> Option<&Rack> {
        self.rack.as_deref()
    }
    /// Whether the peer answers probes.
    #[must_use]
    pub fn probe_support(&self) -> ProbeSupport {
        self.prober.support
    }
    /// The wave of a data segment that leaves now and ends at `end`.
    #[cold]
    pub(crate) fn wave(&mut self, now: Instant, end: u64) -> NonZeroU16 {
        self.waves.next(now, end, self.highest_delivered, self.rtt.srtt())
    }
    pub(crate) fn una(&self) -> u64 {
        self.sb.una()
    }
    pub(crate) fn max(&self) -> u64 {
        self.sb.max()
    }
    /// Copies payload of `[seq, seq + out.len())`. Of what was acknowledged meanwhile only that is left which the next
    /// dummy copies; the rest, which nothing sends, reads as zeros.
    pub(crate) fn payload(&self, seq: u64, out: &mut [u8]) {
        let una = self.sb.una();
        let skip = (una.saturating_sub(seq) as usize).min(out.len());
        let (gone, kept) = out.split_at_mut(skip);
        self.copy.read(seq, gone);
        self.store.read_at(seq.saturating_sub(una), kept);
    }
    /// Stops everything: nothing will be sent any more.
    pub(crate) fn stop(&mut self) {
        self.rto_at = Instant::MAX;
        self.rack_at = Instant::MAX;
        self.tlp.due = false;
        self.persist_at = Instant::MAX;
        self.wake_at = Instant::MAX;
        self.pace_at = Instant::MAX;
        self.prober.stop();
        self.pending = None;
        self.force_head = false;
        self.window_probe = false;
    }

    /// The acknowledgement and window of a data segment tell nothing: all is acknowledged, the window is known,
    /// and nothing waits for it.
    #[inline]
    pub(crate) fn nothing_new(&self, iss: crate::Seq, ack: crate::Seq, window: u32) -> bool {
        self.sb.is_empty()
            && ack == iss.add(self.sb.una() as u32)
            && u64::from(window) == self.window
            && self.end == self.sb.una()
    }

    /// `SND.NXT - SND.UNA`.
    pub(crate) fn flight(&self) -> u64 {
        self.nxt - self.sb.una()
    }

    fn update_window(&mut self, ack: u64, window: u64) {
        if window != self.window || self.edge < ack + window {
            if window != self.window {
                self.window = window;
                self.max_window = self.max_window.max(window);
                let limit = window.min(self.config.send_buffer);
                self.path.rwnd = (limit / u64::from(self.smss)) as f64;
            }
            self.edge = ack + window;
        }
    }

    fn smss_f(&self) -> f64 {
        f64::from(self.smss)
    }

    /// What is in the network, bytes, by the estimate that the policy asks for.
    pub(crate) fn pipe(&self) -> u64 {
        match self.policy.pipe {
            Pipe::Counter { .. } if self.phase == Phase::Recovery => self.pipe_counter.max(0) as u64,
            _ => self.sb.pipe(),
        }
    }

    /// Brings the facts of [`Path`] up to date.
    fn refresh(&mut self, now: Instant) {
        let inv = self.smss_f();
        let flight = self.flight() as f64 / inv;
        self.path.in_flight = flight;
        self.path.pipe = if self.sack { self.pipe() as f64 / inv } else { flight };
        self.path.queued = (self.end.saturating_sub(self.sb.max())) as f64 / inv;
        self.path.srtt = self.rtt.srtt();
        self.path.rttvar = self.rtt.rttvar();
        self.path.min_rtt = self.rtt.min();
        self.path.lost = self.sb.total_lost();
        self.path.phase = self.phase;
        self.path.app_limited = self.app_limited;
        self.path.probes = self.prober.support;
        self.path.sack = self.sack;
        if self.policy.watch_head {
            self.path.head =
                self.sb.head().map(|h| Head { age: now - h.last_sent, retransmissions: h.rtx_count });
        }
    }

    /// Calls the algorithm with fresh facts and carries its requests out.
    fn call(&mut self, now: Instant, event: impl FnOnce(&mut Algorithm, &mut Cx<'_>)) {
        self.refresh(now);
        self.call_as_is(now, event);
    }

    /// As [`Self::call`], where the facts are known to be fresh.
    fn call_as_is(&mut self, now: Instant, event: impl FnOnce(&mut Algorithm, &mut Cx<'_>)) {
        let mut act = Actions::default();
        event(&mut self.cc, &mut Cx { now, path: &self.path, rng: &mut self.rng, act: &mut act });
        if act != Actions::default() {
            self.carry_out(now, act);
        }
    }

    #[cold]
    #[inline(never)]
    fn carry_out(&mut self, now: Instant, act: Actions) {
        if act.stop_probes {
            self.prober.stop();
        }
        if let Some(train) = act.train {
            self.prober.begin_epoch();
            self.prober.start(now, train);
        }
        if let Some((source, count)) = act.probe_now {
            self.prober.ask(source, count);
        }
        if let Some(at) = act.wake_at {
            self.wake_at = at;
        }
        if act.retransmit_head && !self.sb.is_empty() {
            self.suspected = true;
        }
        if act.rewind && !self.sb.is_empty() {
            // As after a timeout, but the timer starts over without backing off. Duplicates of what is sent again are no sign of
            // another loss.
            self.phase = Phase::Loss;
            self.recover = self.sb.max();
            self.dupacks = 0;
            self.suspected = false;
            self.undo.forget();
            self.frto.stop();
            self.go_back(now, true);
            self.rto_at = now + self.rtt.rto();
            self.pending = Some(self.pending.unwrap_or(Clock::Timer));
        }
    }

    /// `SND.NXT := SND.UNA`: everything not selectively acknowledged will be sent again as the window allows. With
    /// RACK only what is overdue, unless `all`, and `SND.NXT` stays.
    fn go_back(&mut self, now: Instant, all: bool) {
        let keep = self.config.keep_sack_after_rto && self.sack;
        match &mut self.rack {
            Some(rack) => {
                rack.timeout(&mut self.sb, now, keep, all);
                rack.take_lost_again();
                self.rack_at = Instant::MAX;
                self.tlp.reset();
                self.note_lost();
            }
            None => {
                // The first segment acknowledged selectively and never cumulatively: the receiver took back what it
                // said (RFC 2018 §8), and what it said is forgotten.
                let reneged = self.sb.head().is_some_and(|h| h.sacked);
                let sampler = &mut self.sampler;
                self.sb.time_out(keep && !reneged, |i, len, total| {
                    if let Some(s) = sampler {
                        s.marked_lost(i, len, total);
                    }
                });
                self.nxt = self.sb.una();
            }
        }
        self.went_back = true;
        self.prober.rewind();
        self.force_head = false;
        self.rtt.stop_timing();
        self.tell_losses(now);
    }

    fn fast_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }
    fn mode(&self) -> RecoveryMode {
        self.policy.recovery
    }
}

/// What the handshake found out about the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) mss: u32,
    /// Bytes of `mss` that the options of each segment take.
    pub(crate) options: u32,
    pub(crate) window: u64,
    pub(crate) sack: bool,
    pub(crate) probes: bool,
    pub(crate) rtt: Option<Duration>,
    /// The handshake's RTT is a measured sample and feeds the estimator.
    pub(crate) rtt_is_sample: bool,
    pub(crate) syn_lost: bool,
}
