//! The sending half: decides which bytes to send, and when a segment counts as lost.
//!
//! ```text
//! Sender          what a driver calls; handles the ordinary acknowledgement by itself (predict)
//! └ Engine        everything else: ack (an acknowledgement, step by step), transmit (the send loop), expire (timers),
//!   │             repair (recoveries, timeouts, undo), by_time (RACK and its probe), answers (to low-priority probes)
//!   ├ State       the reaction to losses: none, a fast recovery, the repair after a timeout (state)
//!   ├ PendingActions  what leaves even if the window is full; Hold: why data is held back
//!   ├ Space       the send space: written data, and the peer's window
//!   ├ Board       outstanding segments
//!   ├ ByTime      loss detection by time, if in use
//!   ├ Repair      state of repairs and evidence that a reduction was spurious, from the first repair on
//!   ├ Classifier  distinguishes channel errors from congestion, if configured (classify)
//!   ├ Estimator   RTT and RTO
//!   ├ Timers      deadlines
//!   ├ Prober      low-priority probes
//!   └ Control     the congestion control and its decision
//! ```
//! Each part has its own state and answers questions; the engine asks in the order of the RFCs and acts.

mod ack;
mod answers;
mod black_hole;
mod bursts;
mod by_time;
mod classify;
mod congestion_report;
mod control;
mod copy;
mod counters;
mod counting;
mod engine;
mod expire;
mod mtu_search;
mod outage;
mod path_mtu;
mod predict;
mod rare;
mod repair;
mod space;
mod state;
mod transmit;

use crate::accecn::Tally;
use crate::ack_ratio::AckSample;
use crate::config::Config;
use crate::delivery_rate::Sampler;
use crate::error::Rejected;
use crate::loss::rack::Rack;
use crate::loss::scoreboard::Scoreboard;
use crate::segment::Mark;
use crate::store::Store;
use crate::timer::Timer;
pub use ack::Arrival;
use alloc::sync::Arc;
pub use bursts::Bursts;
pub use congestion_report::{CongestionReport, CongestionSignal};
use core::num::NonZeroU16;
pub use counters::Counters;
use engine::Engine;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Algorithm, Clock, CongestionControl, PathCache, PathState, Phase, ProbeSupport};
pub(crate) use space::FIRST;
use state::Termination;

/// A segment to be sent, in stream offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingSegment {
    /// Offset of the first byte; the first byte of data has offset 1.
    pub seq: u64,
    /// Payload, bytes.
    pub len: u32,
    /// The FIN follows the last byte.
    pub fin: bool,
    /// It is sent for the first time.
    pub first: bool,
    /// Marked as low priority at the IP layer.
    pub low_priority: bool,
    /// Probe mark.
    pub mark: Mark,
    /// Number of the probe, if probes carry numbers.
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
    /// Current retransmission timeout.
    pub rto: Duration,
    /// State of loss recovery.
    pub phase: Phase,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender<S: Store> {
    /// The next acknowledgement may take the fast path, and nothing is left to send before it; see `predict`. Only
    /// [`Self::general`] gives access to state that could invalidate this.
    steady: bool,
    engine: Engine<S>,
}

/// Results of the handshake about the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Largest payload that it accepts, bytes.
    pub mss: u32,
    /// Option bytes of each segment, which reduce `mss`.
    pub options: u32,
    /// Its window, bytes.
    pub window: u64,
    /// SACK is used.
    pub sack: bool,
    /// It sends SNACKs.
    pub snack: bool,
    /// It answers probes.
    pub probes: bool,
    /// RTT of the handshake.
    pub rtt: Option<Duration>,
    /// The handshake's RTT is a measured sample and feeds the estimator.
    pub rtt_is_sample: bool,
    /// The SYN was retransmitted.
    pub syn_repeated: bool,
    /// The SYN was retransmitted so often that the initial window is reduced.
    pub syn_lost: bool,
    /// Bytes that our SYN carried and the peer has acknowledged.
    pub early: u64,
}

impl<S: Store> Sender<S> {
    /// A sender that has not started; it sends nothing before `start`.
    #[must_use]
    pub fn new(config: &Arc<Config>, cc: Algorithm, rng: Rng) -> Self {
        Self { steady: false, engine: Engine::new(config, cc, rng) }
    }

    /// The engine, to change state on which the fast path relies: ends the steady state.
    #[inline]
    fn general(&mut self) -> &mut Engine<S> {
        self.steady = false;
        &mut self.engine
    }

    /// Starts with the results of the handshake. The algorithm is started by the first data, so that it sees how
    /// much there is.
    pub fn start(&mut self, now: Instant, peer: &Peer) {
        self.general().start(now, peer);
    }
    /// The RTT of a handshake that ended after the start; of no effect if a sample was taken before.
    pub(crate) fn measured_by_handshake(&mut self, now: Instant, rtt: Duration) {
        if self.srtt().is_none() {
            self.general().measured_by_handshake(now, rtt);
        }
    }
    /// Passes the path state that an earlier connection has learnt, to be called before the first data; most algorithms
    /// ignore it.
    pub fn recall(&mut self, state: PathState) {
        self.general().recall(state);
    }
    /// The path state it has learnt.
    pub(crate) fn path_state(&self) -> PathState {
        self.engine.path_state()
    }
    /// The path state it has learnt, if its congestion control uses it.
    #[must_use]
    pub fn learnt(&self) -> Option<PathState> {
        let asks = self.control().policy().path_cache != PathCache::Unused;
        asks.then(|| self.path_state())
    }
    /// Appends `n` bytes (`data` contains them if bytes are stored). Returns how many were accepted.
    pub(crate) fn write(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        self.general().write(now, data, n)
    }
    /// Accepts `n` bytes of an application that keeps the send buffer full until they are sent. All are accepted,
    /// but at most one buffer is outstanding at a time.
    #[inline(always)]
    pub fn offer(&mut self, now: Instant, n: u64) {
        // More data disturbs nothing, but after a pause the window must be checked first.
        self.engine.offer(now, n);
        self.steady &= self.engine.start_reason.is_none();
    }
    /// Notes that a link of the path is down; see [`Config::outage_probe`].
    pub fn outage(&mut self, now: Instant) {
        if let Some(wait) = self.engine.config.outage_probe {
            self.general().freeze(now + wait);
        }
    }
    /// Takes back everything written but never sent. Returns how many bytes.
    pub fn truncate(&mut self) -> u64 {
        self.general().truncate()
    }
    /// Memory used by payload, and by records of outstanding segments, bytes.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        let e = &self.engine;
        let by_time = e.by_time.as_ref().map_or(0, |t| t.rack.held());
        let records = e.board.held() + by_time + e.sampler.as_ref().map_or(0, |s| s.held());
        (e.store.held(), records)
    }
    /// Releases unused memory.
    pub(crate) fn trim(&mut self) {
        self.general().trim();
    }
    /// No more data will be written: a FIN follows the last byte.
    pub(crate) fn finish(&mut self) {
        self.general().finish();
    }
    /// Sets whether probes carry numbers from now on.
    pub(crate) fn number_probes(&mut self, numbered: bool) {
        self.general().number_probes(numbered);
    }
    /// Full segments have `smss` bytes of payload from now on; see [`Engine::narrow`].
    pub(crate) fn narrow(&mut self, now: Instant, smss: u32) {
        self.general().narrow(now, smss);
    }
    /// Sends a keepalive probe: an old sequence number without data, which any peer answers.
    pub(crate) fn ask(&mut self) {
        self.general().ask();
    }
    /// Whether the data written so far ends at the stream offset `end`.
    #[inline]
    pub(crate) fn ends_write(&self, end: u64) -> bool {
        self.engine.space.end == end
    }
    /// The application has closed both directions.
    pub(crate) fn abandon(&mut self) {
        let end = &mut self.general().end;
        if *end == Termination::No {
            *end = Termination::Abandoned;
        }
    }
    /// Stops everything: nothing more will be sent.
    pub(crate) fn stop(&mut self) {
        self.general().stop();
    }

    /// The earliest deadline; [`Instant::MAX`] means none.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.engine.timers.next()
    }
    /// The last congestion report, returned once: an observer that knows why each packet was lost can find its true cause.
    #[inline]
    pub fn take_congestion_report(&mut self) -> Option<CongestionReport> {
        self.engine.congestion_report.take()
    }

    /// Whether a congestion report has not been taken yet.
    #[inline]
    #[must_use]
    pub fn has_congestion_report(&self) -> bool {
        self.engine.congestion_report.is_some()
    }

    /// Whether our FIN was acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.engine.fin_acked()
    }
    /// Whether the peer was given up (too many retransmissions).
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.engine.end == Termination::GivenUp
    }
    /// Bytes written and not yet acknowledged.
    #[inline]
    #[must_use]
    pub fn unacked(&self) -> u64 {
        self.engine.unacked()
    }
    /// The rate that cwnd currently allows, bit/s: one cwnd per smoothed RTT; `None` before the first RTT sample.
    #[must_use]
    pub fn allowed(&self) -> Option<f64> {
        let state = self.snapshot();
        let rtt = state.srtt.filter(|rtt| !rtt.is_zero())?;
        Some(state.cwnd * f64::from(self.segment_size()) * 8.0 / rtt.as_secs_f64())
    }
    /// Room in the send buffer, bytes.
    #[must_use]
    pub(crate) fn room(&self) -> u64 {
        self.engine.buffer().saturating_sub(self.unacked())
    }
    /// Whether the algorithm has reduced its window since the last call.
    pub(crate) fn take_reduction(&mut self) -> bool {
        core::mem::take(&mut self.engine.reduced)
    }
    /// The peer feeds back accurate ECN; `marked`: our SYN-ACK arrived with CE.
    pub(crate) fn count_marks(&mut self, marked: bool) {
        self.engine.arrived.marks = Some(Tally::new(marked));
    }
    /// Whether the algorithm is scalable: see [`Policy::scalable`](skyhaul_cc::Policy::scalable).
    #[inline]
    pub(crate) fn is_scalable(&self) -> bool {
        self.engine.control.policy().scalable
    }
    /// Packets that the peer has reported as ECN-marked (RFC 9768); `None` without accurate ECN.
    #[must_use]
    pub fn marks_reported(&self) -> Option<u64> {
        self.engine.arrived.marks.as_ref().map(Tally::total)
    }
    /// Whether a recovery is in progress.
    pub(crate) fn is_repairing(&self) -> bool {
        !self.engine.state.is_open()
    }
    /// The facts that ACK congestion control needs about an acknowledgement; `una_before` and `repairing` are `SND.UNA`
    /// and [`Self::is_repairing`] before it.
    pub(crate) fn ack_sample(&self, una_before: u64, repairing: bool, marked: bool) -> AckSample {
        let e = &self.engine;
        AckSample {
            una_before,
            una: e.board.una(),
            max: e.board.max(),
            smss: e.space.smss,
            cwnd: e.control.cc.window().cwnd,
            repairing: repairing || self.is_repairing(),
            marked,
        }
    }
    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (probes_sent, probes_answered) = self.engine.prober.counts();
        Counters { probes_sent, probes_answered, ..self.engine.counters.clone() }
    }
    /// Retransmissions during the repair after timeouts.
    #[must_use]
    pub fn timeout_retransmissions(&self) -> u64 {
        self.engine.repair.as_ref().map_or(0, |r| r.after_timeouts)
    }
    /// ECN echoes answered, at most one per window.
    #[must_use]
    pub fn marks_answered(&self) -> u64 {
        self.engine.repair.as_ref().map_or(0, |r| r.marks_answered)
    }
    /// Burst sizes so far.
    #[must_use]
    pub fn bursts(&self) -> Bursts {
        self.engine.bursts()
    }
    /// Its current state.
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
    /// The scoreboard, while there is one: a sender without losses needs none.
    #[must_use]
    pub fn scoreboard(&self) -> Option<&Scoreboard> {
        self.engine.board.scoreboard()
    }
    /// Time-based loss detection, if in use.
    #[must_use]
    pub fn rack(&self) -> Option<&Rack> {
        self.engine.by_time.as_ref().map(|t| &t.rack)
    }
    /// Whether the peer answers probes.
    #[must_use]
    pub fn probe_support(&self) -> ProbeSupport {
        self.engine.prober.support
    }
    /// The wave of a data segment that is sent now and ends at `end`.
    #[cold]
    pub fn wave(&mut self, now: Instant, end: u64) -> NonZeroU16 {
        let Engine { waves, arrived, rtt, .. } = &mut self.engine;
        waves.get_or_insert_default().next(now, end, arrived.highest, rtt.srtt())
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
    /// Whether an acknowledgement number can be genuine.
    ///
    /// # Errors
    /// The reason why it cannot (RFC 5961 §5.2).
    #[inline]
    pub fn admits(&self, ack: u64) -> Result<(), Rejected> {
        self.engine.admits(ack)
    }
    /// The smoothed RTT; `None` before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Option<Duration> {
        self.engine.rtt.srtt()
    }
    /// Copies the payload of `[seq, seq + out.len())`. Of acknowledged data, only the part that the next dummy
    /// copies is left; the rest, which is never sent, reads as zeros.
    pub(crate) fn payload(&self, seq: u64, out: &mut [u8]) {
        self.engine.payload(seq, out);
    }
    /// Whether the acknowledgement and window of a data segment carry no news: everything is acknowledged, the
    /// window is known, and nothing waits for it.
    #[inline]
    pub(crate) fn nothing_new(&self, iss: crate::Seq, ack: crate::Seq, window: u32) -> bool {
        let e = &self.engine;
        e.board.is_empty()
            && ack == iss.add(e.board.una() as u32)
            && u64::from(window) == e.space.window
            && e.space.end == e.board.una()
    }
}
