//! The sending half: decides which bytes go and when a loss is a loss.
//!
//! ```text
//! Sender          what a driver calls; handles the ordinary acknowledgement by itself (predict)
//! └ Engine        everything else: ack (an acknowledgement, step by step), transmit (the send loop), expire (timers),
//!   │             repair (recoveries, timeouts, undo), by_time (RACK and its probe), answers (to low-priority probes)
//!   ├ Space       the send space: what was written, what the peer admits
//!   ├ Board       what is outstanding
//!   ├ ByTime      loss detection by time, where it is in use
//!   ├ Repair      state of repairs, once there was one
//!   ├ Estimator   RTT and RTO
//!   ├ Timers      deadlines
//!   ├ Prober      low-priority probes
//!   └ Control     the congestion control and its decision
//! ```
//! Parts hold their own state and answer questions; the engine asks in the order of the RFCs and acts.

mod ack;
mod answers;
mod by_time;
mod control;
mod copy;
mod counters;
mod expire;
mod judgement;
mod path_mtu;
mod predict;
mod repair;
mod space;
mod transmit;

use crate::config::{Config, LossDetection, ProbeNegotiation, RttSource};
use crate::connection::MIN_MSS;
use crate::delivery_rate::Sampler;
use crate::loss::Board;
use crate::loss::rack::Rack;
use crate::loss::scoreboard::Scoreboard;
use crate::pacer::Pacer;
use crate::probing::Prober;
use crate::recovery::Repair;
use crate::rtt::Estimator;
use crate::segment::Mark;
use crate::store::Store;
use crate::timer::{Timer, Timers};
use crate::wave::Marker;
pub use ack::Arrival;
use alloc::boxed::Box;
use alloc::sync::Arc;
use by_time::ByTime;
use control::Control;
use core::num::NonZeroU16;
pub use counters::Counters;
pub use judgement::{Judgement, Sign};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{
    Actions, Algorithm, Clock, CongestionControl, Cx, Head, Path, PathCache, PathState, Phase, Pipe,
    ProbeSupport, RecoveryMode, Start,
};
pub(crate) use space::FIRST;
use space::{FinState, Space};

/// A segment to be sent, in stream offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Out {
    /// Offset of the first byte; the first byte of data has offset 1.
    pub seq: u64,
    /// Payload, bytes.
    pub len: u32,
    /// The FIN follows the last byte.
    pub fin: bool,
    /// To be marked as low priority at the IP layer.
    pub low_priority: bool,
    /// Probe mark.
    pub mark: Mark,
    /// Number of the probe, where probes carry numbers.
    pub probe_id: Option<u16>,
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
    /// The next acknowledgement may be an ordinary one, and nothing is left to be sent before it; see `predict`. Only
    /// [`Self::general`] gives access to what would make this untrue.
    steady: bool,
    engine: Engine<S>,
}

/// All that a sender is, but for the shortcut.
#[derive(Debug)]
pub(crate) struct Engine<S: Store> {
    // What every acknowledgement and every new segment touch.
    board: Board,
    space: Space,
    rtt: Estimator,
    control: Control,
    phase: Phase,
    /// The send loop has to run, clocked by this.
    pending: Option<Clock>,
    window_limited: bool,
    app_limited: bool,
    sack: bool,
    /// The slow start that follows a retransmission timeout is in progress.
    after_timeout: bool,
    /// The segment at `SND.UNA` must be retransmitted whatever the window says.
    force_head: bool,
    /// The algorithm judged the segment at `SND.UNA` lost.
    suspected: bool,
    window_probe_due: bool,
    /// What `recover` guards is repaired by sending everything again, not by a fast recovery.
    went_back: bool,
    gave_up: bool,
    /// There is a judgement to be taken.
    judged: bool,
    dupacks: u32,
    loop_sent: u32,
    timers: Timers,
    /// Packet-timed rounds completed, and where the present one ends.
    round: u64,
    round_end: u64,
    /// End of the highest byte known to have arrived.
    highest_delivered: u64,
    /// Bytes known to have arrived.
    delivered: u64,
    last_sent_at: Instant,
    counters: Counters,
    config: Arc<Config>,
    pacer: Pacer,
    /// Only for algorithms that ask for rate samples.
    sampler: Option<Box<Sampler>>,
    prober: Prober,
    // What only matters when something is wrong, begins or ends.
    /// No fast retransmit below this (RFC 6582 `recover`).
    recover: u64,
    repair: Option<Box<Repair>>,
    /// Loss detection by time, where it is configured and possible.
    by_time: Option<Box<ByTime>>,
    judgement: Option<Judgement>,
    /// The algorithm learns of the connection when the first data is about to leave.
    beginning: Option<Beginning>,
    /// What an earlier connection on the path left.
    cached: Option<Box<PathState>>,
    persist_backoff: u32,
    waves: Option<Box<Marker>>,
    /// Bytes that dummies copy after they were acknowledged.
    copy: Option<Box<copy::Copy>>,
    store: S,
}

/// Why the algorithm is about to be told that it starts.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    Established { rtt: Option<Duration>, syn_lost: bool },
    Idle,
}

/// What the handshake found out about the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Largest payload that it accepts, bytes.
    pub mss: u32,
    /// Bytes of `mss` that the options of each segment take.
    pub options: u32,
    /// Its window, bytes.
    pub window: u64,
    /// SACK is used.
    pub sack: bool,
    /// It answers probes.
    pub probes: bool,
    /// RTT of the handshake.
    pub rtt: Option<Duration>,
    /// The handshake's RTT is a measured sample and feeds the estimator.
    pub rtt_is_sample: bool,
    /// The SYN was sent more than once.
    pub syn_lost: bool,
}

impl<S: Store> Sender<S> {
    /// A sender that has not started; nothing leaves before `start`.
    #[must_use]
    pub fn new(config: &Arc<Config>, cc: Algorithm, rng: Rng) -> Self {
        Self { steady: false, engine: Engine::new(config, cc, rng) }
    }

    /// The only way to change anything but by the ordinary acknowledgement.
    #[inline]
    fn general(&mut self) -> &mut Engine<S> {
        self.steady = false;
        &mut self.engine
    }

    /// The connection is established: what the handshake found out. The algorithm's first event follows with
    /// the first data, so that it sees how much there is.
    pub fn start(&mut self, now: Instant, peer: &Peer) {
        self.general().start(now, peer);
    }
    /// What an earlier connection on the path left; of no interest to most algorithms. Before the first data.
    pub fn recall(&mut self, state: PathState) {
        self.general().recall(state);
    }
    /// What it has learnt of the path.
    pub(crate) fn path_state(&self) -> PathState {
        self.engine.path_state()
    }
    /// What it has learnt of its path, if its congestion control asks such things.
    #[must_use]
    pub fn learnt(&self) -> Option<PathState> {
        let asks = self.control().policy().path_cache != PathCache::Unused;
        asks.then(|| self.path_state())
    }
    /// Appends `n` bytes (`data` holds them where bytes are kept). Returns how many were taken.
    pub(crate) fn write(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        self.general().write(now, data, n)
    }
    /// Takes `n` bytes of an application that keeps the send buffer full until they are sent: all of them are taken, of
    /// which no more than the buffer holds are outstanding at a time.
    pub fn offer(&mut self, now: Instant, n: u64) {
        self.general().offer(now, n);
    }
    /// Forgets what was written and never sent. Returns how many bytes.
    pub fn truncate(&mut self) -> u64 {
        self.general().truncate()
    }
    /// No more data will be written: a FIN follows the last byte.
    pub(crate) fn finish(&mut self) {
        self.general().finish();
    }
    /// Probes carry numbers from now on, or none.
    pub(crate) fn number_probes(&mut self, ids: bool) {
        self.general().number_probes(ids);
    }
    /// Full segments have `smss` bytes of payload from now on; see [`Engine::narrow`].
    pub(crate) fn narrow(&mut self, now: Instant, smss: u32) {
        self.general().narrow(now, smss);
    }
    /// Stops everything: nothing will be sent any more.
    pub(crate) fn stop(&mut self) {
        self.general().stop();
    }

    /// The earliest deadline; [`Instant::MAX`] if there is none.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.engine.timers.next()
    }
    /// The last judgement, once: an observer that knows what became of each packet can tell what it truly answered.
    #[inline]
    pub fn take_judgement(&mut self) -> Option<Judgement> {
        if !core::mem::take(&mut self.engine.judged) {
            return None;
        }
        self.engine.judgement.take()
    }

    /// Our FIN was acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.engine.fin_acked()
    }
    /// The peer was given up on (too many retransmissions).
    pub(crate) fn gave_up(&self) -> bool {
        self.engine.gave_up
    }
    /// Bytes written and not yet acknowledged.
    #[inline]
    #[must_use]
    pub fn unacked(&self) -> u64 {
        self.engine.unacked()
    }
    /// Room in the send buffer, bytes.
    #[must_use]
    pub(crate) fn room(&self) -> u64 {
        self.engine.config.send_buffer.saturating_sub(self.unacked())
    }
    /// What it has done so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (probes_sent, probes_answered) = self.engine.prober.counts();
        Counters { probes_sent, probes_answered, ..self.engine.counters.clone() }
    }
    /// Its state now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.engine.snapshot()
    }
    /// Payload of a full segment, bytes.
    #[must_use]
    pub fn segment_size(&self) -> u32 {
        self.engine.space.smss
    }
    /// The congestion control.
    #[must_use]
    pub fn control(&self) -> &Algorithm {
        &self.engine.control.cc
    }
    /// The scoreboard, while there is one: a sender without anything missing needs none.
    #[must_use]
    pub fn scoreboard(&self) -> Option<&Scoreboard> {
        self.engine.board.scoreboard()
    }
    /// Loss detection by time, where it is in use.
    #[must_use]
    pub fn rack(&self) -> Option<&Rack> {
        self.engine.by_time.as_ref().map(|t| &t.rack)
    }
    /// Whether the peer answers probes.
    #[must_use]
    pub fn probe_support(&self) -> ProbeSupport {
        self.engine.prober.support
    }
    /// The wave of a data segment that leaves now and ends at `end`.
    #[cold]
    pub fn wave(&mut self, now: Instant, end: u64) -> NonZeroU16 {
        let Engine { waves, highest_delivered, rtt, .. } = &mut self.engine;
        waves.get_or_insert_default().next(now, end, *highest_delivered, rtt.srtt())
    }
    /// `SND.UNA` as a stream offset.
    #[inline]
    #[must_use]
    pub fn una(&self) -> u64 {
        self.engine.board.una()
    }
    /// `SND.MAX` as a stream offset.
    #[inline]
    #[must_use]
    pub fn max(&self) -> u64 {
        self.engine.board.max()
    }
    /// Copies payload of `[seq, seq + out.len())`. Of what was acknowledged meanwhile only that is left which the next
    /// dummy copies; the rest, which nothing sends, reads as zeros.
    pub(crate) fn payload(&self, seq: u64, out: &mut [u8]) {
        self.engine.payload(seq, out);
    }
    /// The acknowledgement and window of a data segment tell nothing: all is acknowledged, the window is known,
    /// and nothing waits for it.
    #[inline]
    pub(crate) fn nothing_new(&self, iss: crate::Seq, ack: crate::Seq, window: u32) -> bool {
        let e = &self.engine;
        e.board.is_empty()
            && ack == iss.add(e.board.una() as u32)
            && u64::from(window) == e.space.window
            && e.space.end == e.board.una()
    }
}

impl<S: Store> Engine<S> {
    fn new(config: &Arc<Config>, cc: Algorithm, rng: Rng) -> Self {
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
            phase: Phase::Open,
            pending: None,
            window_limited: false,
            app_limited: false,
            sack: false,
            after_timeout: false,
            force_head: false,
            suspected: false,
            window_probe_due: false,
            went_back: false,
            gave_up: false,
            judged: false,
            dupacks: 0,
            loop_sent: 0,
            timers: Timers::NONE,
            round: 0,
            round_end: FIRST,
            highest_delivered: FIRST,
            delivered: 0,
            last_sent_at: Instant::ZERO,
            counters: Counters::default(),
            pacer: Pacer::default(),
            recover: FIRST,
            repair: None,
            by_time: None,
            judgement: None,
            beginning: None,
            cached: None,
            persist_backoff: 0,
            waves: None,
            copy: None,
            store: S::default(),
        };
        new.control.refresh(&new.space);
        new
    }

    fn start(&mut self, now: Instant, peer: &Peer) {
        // A peer may not make us send in crumbs (CVE-2019-11479).
        let smss = self.config.mss.min(peer.mss.max(MIN_MSS).saturating_sub(peer.options)).max(1);
        self.space.smss = smss;
        self.limit_probes();
        self.board = Board::new(FIRST, &self.config, smss);
        self.sack = peer.sack;
        let by_time = self.config.loss_detection == LossDetection::Rack;
        self.by_time =
            (by_time && peer.sack && self.mode().uses_pipe()).then(|| Box::new(ByTime::new(&self.config)));
        self.board.keep_times(self.times_matter());
        self.space.update_window(FIRST, peer.window, self.config.send_buffer);
        self.prober.support = match self.config.probes {
            ProbeNegotiation::Negotiate if peer.probes => ProbeSupport::Yes,
            ProbeNegotiation::Paper => ProbeSupport::Unknown,
            _ => ProbeSupport::No,
        };
        if let (Some(rtt), true) = (peer.rtt, peer.rtt_is_sample) {
            self.rtt.sample(rtt, &self.config.rto);
        }
        self.last_sent_at = now;
        self.beginning = Some(Beginning::Established { rtt: peer.rtt, syn_lost: peer.syn_lost });
        self.pending = Some(Clock::App);
        self.control.refresh(&self.space);
    }

    /// Somebody wants to know when segments left.
    fn times_matter(&self) -> bool {
        let p = self.control.policy();
        self.by_time.is_some()
            || self.config.rtt_source != RttSource::Timed
            || self.config.f_rto
            || p.rtt_samples
            || p.rate_samples
            || p.watch_head
    }

    #[cold]
    fn begin(&mut self, now: Instant, beginning: Beginning) {
        let start = match beginning {
            Beginning::Established { rtt, syn_lost } => {
                Start::Established { rtt, syn_lost, cached: self.cached.take().map(|s| *s) }
            }
            Beginning::Idle => Start::Idle,
        };
        // What an idle period does to the window is not undone.
        if let Some(repair) = &mut self.repair {
            repair.undo.forget();
        }
        self.tell(now, |cc, cx| cc.on_start(cx, &start));
        self.renew_policy();
    }

    fn renew_policy(&mut self) {
        self.control.renew_policy();
        self.board.keep_times(self.times_matter());
    }

    fn recall(&mut self, state: PathState) {
        let sound = state.cwnd.is_finite() && state.cwnd >= 1.0 && state.ssthresh >= 1.0;
        let wanted = self.control.policy().path_cache;
        if !sound || wanted == PathCache::Unused {
            return;
        }
        if let (PathCache::WindowAndRtt, Some(srtt)) = (wanted, state.srtt) {
            self.rtt.seed(srtt, state.rttvar, &self.config.rto);
        }
        self.cached = Some(Box::new(state));
    }

    fn path_state(&self) -> PathState {
        let w = self.control.cc.window();
        PathState { cwnd: w.cwnd, ssthresh: w.ssthresh, srtt: self.rtt.srtt(), rttvar: self.rtt.rttvar() }
    }

    fn write(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        if self.space.fin != FinState::Open {
            return 0;
        }
        let buffer = self.config.send_buffer;
        let room = buffer.saturating_sub(self.space.end - self.board.una());
        let n = if buffer == u64::MAX { n.min(u64::MAX / 4) } else { n.min(room) };
        self.append(now, data, n)
    }

    fn offer(&mut self, now: Instant, n: u64) {
        if self.space.fin == FinState::Open {
            self.append(now, &[], n.min(u64::MAX / 4));
        }
    }

    fn append(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        let idle =
            self.board.is_empty() && self.space.end > FIRST && now - self.last_sent_at > self.rtt.rto();
        self.store.append(data.get(..n as usize).unwrap_or(data), n);
        self.space.end = self.space.end.saturating_add(n).min(u64::MAX / 2);
        if n > 0 {
            if idle {
                self.beginning = Some(Beginning::Idle);
            }
            self.run_loop(Clock::App);
        }
        n
    }

    /// The send loop has to run; if it had to before, what clocked it then counts.
    fn run_loop(&mut self, clock: Clock) {
        self.pending = Some(self.pending.unwrap_or(clock));
    }

    fn truncate(&mut self) -> u64 {
        let unsent = self.space.end.saturating_sub(self.board.max());
        if unsent > 0 {
            self.space.end -= unsent;
            self.store.truncate(self.space.end - self.board.una());
            // A FIN may go now.
            self.run_loop(Clock::App);
        }
        unsent
    }

    fn finish(&mut self) {
        if self.space.fin == FinState::Open {
            self.space.fin = FinState::Wanted;
            self.run_loop(Clock::App);
        }
    }

    fn fin_acked(&self) -> bool {
        self.space.fin == FinState::Sent && self.board.is_empty()
    }
    #[inline]
    fn unacked(&self) -> u64 {
        self.space.end.saturating_sub(self.board.una())
    }

    fn snapshot(&self) -> Snapshot {
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
            phase: self.phase,
        }
    }

    fn payload(&self, seq: u64, out: &mut [u8]) {
        let una = self.board.una();
        let skip = (una.saturating_sub(seq) as usize).min(out.len());
        let (gone, kept) = out.split_at_mut(skip);
        match &self.copy {
            Some(copy) => copy.read(seq, gone),
            None => gone.fill(0),
        }
        self.store.read_at(seq.saturating_sub(una), kept);
    }

    fn stop(&mut self) {
        self.timers = Timers::NONE;
        self.prober.stop();
        if let Some(t) = &mut self.by_time {
            t.tlp.due = false;
        }
        self.pending = None;
        self.force_head = false;
        self.window_probe_due = false;
    }

    #[inline]
    fn flight(&self) -> u64 {
        self.space.flight(&self.board)
    }

    /// What is in the network, bytes, by the estimate that the policy asks for.
    fn pipe(&self) -> u64 {
        match (self.control.policy().pipe, &self.repair) {
            (Pipe::Counter { .. }, Some(repair)) if self.phase == Phase::Recovery => {
                repair.pipe_counter.max(0) as u64
            }
            _ => self.board.pipe(),
        }
    }

    /// What the algorithm may know at this moment.
    #[inline(always)]
    fn path(&self, now: Instant) -> Path {
        let smss = self.space.smss_f();
        let flight = self.flight() as f64 / smss;
        let head =
            |h: crate::loss::scoreboard::Item| Head { age: now - h.last_sent, retransmissions: h.rtx_count };
        Path {
            smss: self.space.smss,
            rwnd: self.space.rwnd,
            in_flight: flight,
            pipe: if self.sack { self.pipe() as f64 / smss } else { flight },
            queued: self.space.end.saturating_sub(self.board.max()) as f64 / smss,
            srtt: self.rtt.srtt(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            round: self.round,
            delivered: self.delivered,
            lost: self.board.total_lost(),
            head: if self.control.policy().watch_head { self.board.head().map(head) } else { None },
            phase: self.phase,
            after_timeout: self.after_timeout,
            app_limited: self.app_limited,
            probes: self.prober.support,
            sack: self.sack,
        }
    }

    /// Tells the algorithm of an event with fresh facts and carries its requests out. True if there were any.
    #[inline]
    fn tell(&mut self, now: Instant, event: impl FnOnce(&mut Algorithm, &mut Cx<'_>)) -> bool {
        let path = self.path(now);
        self.tell_with(now, &path, event)
    }

    /// As [`Self::tell`], with these facts.
    #[inline]
    fn tell_with(
        &mut self,
        now: Instant,
        path: &Path,
        event: impl FnOnce(&mut Algorithm, &mut Cx<'_>),
    ) -> bool {
        let act = self.control.tell(now, path, &self.space, event);
        let asked = !act.is_empty();
        if asked {
            self.carry_out(now, &act);
        }
        asked
    }

    #[cold]
    #[inline(never)]
    fn carry_out(&mut self, now: Instant, act: &Actions) {
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
            self.suspected = true;
        }
        if act.rewind && !self.board.is_empty() {
            // As after a timeout, but the timer starts over without backing off.
            self.repair_from_start(now);
        }
    }

    fn fast_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }
    fn mode(&self) -> RecoveryMode {
        self.control.policy().recovery
    }
    /// State of repairs, made if there is none.
    fn repair(&mut self) -> &mut Repair {
        self.repair.get_or_insert_with(|| Box::new(Repair::new()))
    }
    /// The retransmission timer starts anew.
    fn restart_timer(&mut self, now: Instant) {
        self.timers.set(Timer::Retransmission, now + self.rtt.rto());
    }
}
