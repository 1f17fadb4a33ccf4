//! A connection: handshake, data in both directions, half-close, reset, TIME-WAIT. It owns one sender and one
//! receiver.
//!
//! ```text
//!            connect                    listen
//!               |                         |
//!            SynSent ---- SYN ------> SynReceived
//!               | SYN,ACK                 | ACK
//!               +-------> Established <---+
//!        shutdown |                       | FIN arrives
//!            FinWait1                 CloseWait
//!     ACK |   FIN |  both |               | shutdown
//!    FinWait2  Closing  TimeWait       LastAck
//!         |       | ACK    ^              | ACK
//!         +--FIN--+--------+           Closed
//! ```

mod abandon;
mod arrive;
mod depart;
mod door;
mod early;
mod ecn;
mod keepalive;
mod memory;
mod open;
mod path;
mod predict;
mod time_wait;

pub use early::Early;
pub use memory::HeldBytes;
pub use path::FoundMtu;
pub use time_wait::TimeWaitState;

use crate::ack_ratio::{AckRatio, LONGEST_HELD};
use crate::config::{AckCc, Config, LossDetection, MIN_MSS};
use crate::ration::Ration;
use crate::receiver::Receiver;
use crate::segment::{Flags, Segment, Seq};
use crate::sender::{CongestionReport, Counters, Peer, Sender, Snapshot};
use crate::store::{Counted, Store};
use crate::timestamps::Timestamps;
use alloc::boxed::Box;
use alloc::sync::Arc;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{Algorithm, CongestionControl, PathState};

/// State of a connection (RFC 9293 §3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waiting for a SYN.
    Listen,
    /// Our SYN is out.
    SynSent,
    /// Their SYN came, ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// We closed, our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed at once.
    Closing,
    /// The peer closed, then we did.
    LastAck,
    /// Both directions are done; late segments are answered for 2 MSL.
    TimeWait,
    /// Nothing more will happen.
    Closed,
}

/// News for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// The peer will send no more data; data already received can still be read.
    PeerFinished,
    /// Both directions are closed in order, or the application had closed both and data arrived that it will not read.
    Closed,
    /// The peer reset the connection, or refused it.
    Reset,
    /// The peer stopped answering, or did not close its direction in time ([`Config::fin_timeout`]).
    TimedOut,
}

/// The result of a handshake that is not modelled.
#[derive(Clone, Copy, Debug)]
pub struct Established<'a> {
    /// Our initial sequence number.
    pub iss: Seq,
    /// The peer's initial sequence number.
    pub peer_iss: Seq,
    /// The peer's configuration.
    pub peer: &'a Config,
    /// SACK is used on this connection.
    pub sack: bool,
    /// The RTT that the handshake would have measured. The congestion control may use it, the estimator does not.
    pub rtt: Option<Duration>,
    /// The peer understands probes.
    pub probes: bool,
}

/// A TCP connection.
#[derive(Debug)]
pub struct Connection<S: Store> {
    state: State,
    iss: Seq,
    irs: Seq,
    stamps: Timestamps,
    /// `Last.ACK.sent` (RFC 7323 §4.3): with delayed acknowledgements the timestamp of the oldest unacknowledged segment is
    /// echoed.
    last_ack_sent: u64,
    /// Timestamps were negotiated.
    timestamps: bool,
    /// When `TS.Recent` was last updated.
    stamped_at: Instant,
    /// `SND.WL1`, as an offset in the peer's stream.
    wl1: u64,
    /// `SND.WL2`, as an offset in our stream.
    wl2: u64,
    peer_scale: u8,
    our_scale: u8,
    /// SACK is offered or, after the handshake, used.
    sack_ok: bool,
    /// The peer answers probes.
    peer_probes: bool,
    /// The peer measures waves.
    peer_waves: bool,
    /// The peer sends SNACKs.
    peer_snack: bool,
    /// Data carries wave numbers.
    marks_waves: bool,
    peer_mss: u32,
    sender: Sender<S>,
    receiver: Receiver<S>,
    handshake: Handshake,
    /// Present if a SYN may carry data.
    opening: Option<Box<early::Opening>>,
    /// Of the handshake, of FIN-WAIT-2 and of TIME-WAIT; [`Instant::MAX`] if there is none.
    deadline: Instant,
    reset_due: Option<Segment>,
    ecn: ecn::Notification,
    /// ACK ratio of the peer, if both ends support it.
    ack_ratio: Option<Box<AckRatio>>,
    silence: keepalive::Silence,
    /// There are at most three: connected, the peer finished, and one of the ways in which a connection ends.
    events: [Option<Event>; 4],
    /// The application has closed both directions.
    abandoned: bool,
    config: Arc<Config>,
    rejected: u64,
    /// Rate limits of challenge ACKs, of answers to unacceptable segments, and of answers to copies of data.
    challenges: Ration,
    strays: Ration,
    copies: Ration,
}

/// State of the handshake.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    /// A SYN or SYN-ACK must leave.
    syn_due: bool,
    /// How often it has left.
    tries: u32,
    /// When it first left.
    sent_at: Instant,
    /// The handshake gives no RTT sample.
    untimed: bool,
    /// The application has finished writing: a FIN follows the handshake.
    closed_by_user: bool,
}

/// Option bytes in each segment, padded to whole words: timestamps (RFC 7323), waves (TCP-Real), and the ACK ratio
/// (RFC 5690).
const OPTION_TIMESTAMPS: u32 = 12;
const OPTION_RATE: u32 = 12;
const OPTION_ACK_RATIO: u32 = 8;

/// Largest window without a scale, as in a SYN (RFC 7323 §2.2), bytes.
const UNSCALED: u64 = 65_535;

impl<S: Store> Connection<S> {
    fn new(state: State, config: &Arc<Config>, cc: Algorithm, iss: Seq, rng: Rng) -> Self {
        let sack = config.sack.unwrap_or_else(|| cc.policy().recovery.uses_pipe());
        let mut receiver = Receiver::new(config);
        receiver.begin_at_most(UNSCALED);
        Self {
            state,
            iss,
            irs: Seq(0),
            stamps: Timestamps::new(config),
            last_ack_sent: 1,
            timestamps: false,
            stamped_at: Instant::ZERO,
            wl1: 0,
            wl2: 0,
            peer_scale: 0,
            our_scale: if config.window_scaling { scale_for(config.receive_buffer) } else { 0 },
            sack_ok: sack,
            peer_probes: false,
            peer_waves: false,
            peer_snack: false,
            marks_waves: false,
            peer_mss: config.unstated_mss.into(),
            sender: Sender::new(config, cc, rng),
            receiver,
            handshake: Handshake::default(),
            opening: None,
            deadline: Instant::MAX,
            reset_due: None,
            ecn: ecn::Notification::default(),
            ack_ratio: None,
            silence: keepalive::Silence::default(),
            events: [None; 4],
            abandoned: false,
            config: Arc::clone(config),
            rejected: 0,
            challenges: Ration::default(),
            strays: Ration::default(),
            copies: Ration::default(),
        }
    }

    /// Opens a connection actively: a SYN is due.
    #[must_use]
    pub fn connect(now: Instant, config: impl Into<Arc<Config>>, cc: Algorithm, iss: Seq, rng: Rng) -> Self {
        let mut c = Self::new(State::SynSent, &config.into(), cc, iss, rng);
        c.handshake.syn_due = true;
        c.handshake.sent_at = now;
        c
    }

    /// Opens a connection passively: waits for a SYN.
    #[must_use]
    pub fn listen(config: impl Into<Arc<Config>>, cc: Algorithm, iss: Seq, rng: Rng) -> Self {
        Self::new(State::Listen, &config.into(), cc, iss, rng)
    }

    /// A connection whose handshake is not modelled, as in the simulations of the papers.
    #[must_use]
    pub fn established(
        now: Instant,
        config: impl Into<Arc<Config>>,
        cc: Algorithm,
        rng: Rng,
        e: &Established<'_>,
    ) -> Self {
        let config = config.into();
        let mut c = Self::new(State::Established, &config, cc, e.iss, rng);
        c.irs = e.peer_iss;
        c.sack_ok = e.sack;
        c.timestamps = config.timestamps && e.peer.timestamps;
        c.peer_waves = e.peer.receiver_rate;
        c.ecn.agreed = config.agrees_on_ecn(e.peer);
        if config.agrees_on_accurate_ecn(e.peer) {
            c.begin_accurate(false);
        }
        c.agree_on_acks(e.peer.ack_cc != AckCc::None);
        let window = if config.window_scaling && e.peer.window_scaling {
            c.peer_scale = scale_for(e.peer.receive_buffer);
            e.peer.first_receive_buffer()
        } else {
            c.our_scale = 0;
            e.peer.first_receive_buffer().min(UNSCALED)
        };
        c.receiver.begin_at_most(UNSCALED << c.our_scale);
        c.begin(
            now,
            &Peer {
                mss: e.peer.mss,
                options: 0,
                window,
                sack: c.sack_ok,
                snack: c.sack_ok
                    && [&*config, e.peer].iter().all(|c| c.loss_detection == LossDetection::Snack),
                probes: e.probes,
                rtt: e.rtt,
                rtt_is_sample: false,
                syn_repeated: false,
                syn_lost: false,
                early: 0,
            },
        );
        c
    }

    fn begin(&mut self, now: Instant, peer: &Peer) {
        self.receiver.start(self.sack_ok, self.config.probes.answers(peer.probes), self.timestamps);
        self.marks_waves = self.wants_waves();
        self.sender.start(now, peer);
        self.wl1 = self.receiver.next_expected();
        self.wl2 = self.sender.una();
        self.listen_for_silence(now);
    }

    /// Notes that a link of the path has gone down; ignored without [`Config::outage_probe`].
    pub fn outage(&mut self, now: Instant) {
        self.sender.outage(now);
    }

    /// The path state learnt by this connection, for [`Self::recall`] of the next one to the same peer; `None` if
    /// its congestion control does not use any. Best taken when everything is acknowledged: during a recovery the
    /// window does not reflect the capacity of the path. The driver keeps it per peer and decides how long it stays
    /// valid.
    #[must_use]
    pub fn path_state(&self) -> Option<PathState> {
        self.sender.learnt()
    }
    /// Passes the path state of an earlier connection to a new one. To be called right after the connection is
    /// made, before the handshake and the first data. It has no effect if the congestion control did not ask for it
    /// ([`Policy::path_cache`](skyhaul_cc::Policy::path_cache)), or if the window is not a number of at least one.
    pub fn recall(&mut self, state: PathState) {
        self.sender.recall(state);
    }

    /// Sets the initial timestamp, otherwise 1 (RFC 7323 §5.4: a random offset reveals nothing about the host). To
    /// be called before the handshake.
    pub fn set_timestamp_offset(&mut self, offset: u32) {
        self.stamps.set_offset(offset);
    }
    /// Forgets when our SYN left, as with SYN cookies (RFC 4987 §3.6): the handshake then gives no RTT sample.
    pub fn forget_when_it_began(&mut self) {
        self.handshake.untimed = true;
    }
    /// Sets whether probes carry numbers, whatever the configuration says.
    pub fn number_probes(&mut self, ids: bool) {
        self.sender.number_probes(ids);
    }
    /// The path carries at most `limit` bytes of options and payload per packet: segments become shorter, and
    /// unacknowledged data is retransmitted. No effect if the limit is not lower than before.
    pub fn narrow(&mut self, now: Instant, limit: u32) {
        if self.synchronised() {
            let options = self.options_of_each();
            // MIN_MSS includes the room for timestamps.
            self.sender.narrow(now, limit.saturating_sub(options).max(MIN_MSS - OPTION_TIMESTAMPS));
        }
    }
    /// Sets whether the peer supports ACK congestion control.
    fn agree_on_acks(&mut self, peer: bool) {
        if let Some(ratio) = AckRatio::new(self.config.ack_cc).filter(|_| peer) {
            self.receiver.acknowledge_every(ratio.ratio(), LONGEST_HELD);
            self.ack_ratio = Some(Box::new(ratio));
        }
    }
    /// Option bytes in each segment.
    fn options_of_each(&self) -> u32 {
        let timestamps = if self.timestamps { OPTION_TIMESTAMPS } else { 0 };
        let wave = if self.wants_waves() { OPTION_RATE } else { 0 };
        let ratio = if self.ack_ratio.is_some() { OPTION_ACK_RATIO } else { 0 };
        timestamps + wave + ratio
    }
    /// Whether data will carry wave numbers.
    fn wants_waves(&self) -> bool {
        self.peer_waves && self.config.receiver_rate && self.sender.control().policy().receiver_rate
    }
    /// Negotiated window scales: (ours, the peer's).
    #[must_use]
    pub fn scales(&self) -> (u8, u8) {
        (self.our_scale, self.peer_scale)
    }
    /// The sequence number of our SYN.
    #[must_use]
    pub fn first(&self) -> Seq {
        self.iss
    }
    /// The lowest sequence number that the peer has not acknowledged (`SND.UNA`): the start of its window.
    #[must_use]
    pub fn acknowledged(&self) -> Seq {
        self.iss.add(self.sender.una() as u32)
    }
    /// The next sequence number expected from the peer.
    #[must_use]
    pub fn expected(&self) -> Seq {
        self.irs.add(self.receiver.next_expected() as u32)
    }
    /// Whether `seq` lies within the outstanding data: an ICMP message that quotes another number is forged or late
    /// (RFC 5927 §4).
    #[must_use]
    pub fn is_outstanding(&self, seq: Seq) -> bool {
        // In SYN-SENT only the SYN is outstanding.
        if self.state == State::SynSent {
            return seq == self.iss;
        }
        let una = self.acknowledged();
        seq.diff(una) >= 0 && seq.diff(self.iss.add(self.sender.max() as u32)) < 0
    }

    /// State of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }
    /// State of the sending half.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.sender.snapshot()
    }
    /// Counters of the sending half.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.sender.counters()
    }
    /// The sending half's last congestion report, returned once: see [`Sender::take_congestion_report`].
    #[inline]
    pub fn take_congestion_report(&mut self) -> Option<CongestionReport> {
        self.sender.take_congestion_report()
    }
    /// Reports the true cause of a lost packet; see [`Sender::tell_loss`].
    pub fn tell_loss(&mut self, seq: Seq, len: u32, error: bool) {
        self.sender.tell_loss(seq, len, error);
    }
    /// Verdicts on the losses found since the last call; see [`Sender::take_verdicts`].
    pub fn take_verdicts(&mut self) -> alloc::vec::Vec<crate::Verdict> {
        self.sender.take_verdicts()
    }
    /// The sending half.
    #[must_use]
    pub fn sender(&self) -> &Sender<S> {
        &self.sender
    }
    /// The receiving half.
    #[must_use]
    pub fn receiver(&self) -> &Receiver<S> {
        &self.receiver
    }
    /// Segments refused so far.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }
    /// Bytes written and not yet acknowledged by the peer.
    #[must_use]
    pub fn unacked(&self) -> u64 {
        self.sender.unacked()
    }
    /// Bytes that can be written now.
    #[must_use]
    pub fn writable(&self) -> u64 {
        self.sender.room()
    }
    /// Bytes that can be read now.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }
    /// Whether the peer's FIN and everything before it have arrived.
    #[must_use]
    pub fn peer_finished(&self) -> bool {
        self.receiver.finished()
    }
    /// The application reads all data at once and discards it (a sink).
    pub fn discard_reads(&mut self) {
        self.receiver.discard();
    }
    /// News for the application, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        let first = self.events[0].take();
        self.events.rotate_left(1);
        first
    }
    fn emit(&mut self, event: Event) {
        if let Some(slot) = self.events.iter_mut().find(|e| e.is_none()) {
            *slot = Some(event);
        }
    }

    /// Writes `n` bytes; `data` contains them, or is empty if only lengths are kept. Returns how many were
    /// accepted.
    pub fn write(&mut self, now: Instant, data: &[u8], n: u64) -> u64 {
        if self.may_write() { self.sender.write(now, data, n) } else { 0 }
    }
    fn may_write(&self) -> bool {
        let over = matches!(
            self.state,
            State::Closed
                | State::TimeWait
                | State::LastAck
                | State::Closing
                | State::FinWait1
                | State::FinWait2
        );
        !over && !self.handshake.closed_by_user
    }
    /// Takes back everything written but never sent. Returns how many bytes.
    pub fn truncate(&mut self) -> u64 {
        self.sender.truncate()
    }
    /// Reads into `out`; if only lengths are kept, counts `n` bytes as read. Returns how many.
    pub fn read(&mut self, out: &mut [u8], n: u64) -> u64 {
        let n = self.receiver.read(out, n);
        if n > 0 && self.synchronised() {
            self.receiver.tell_window();
        }
        n
    }
    /// Copies the payload of a segment just returned by [`Self::poll_transmit`].
    pub fn payload(&self, segment: &Segment, out: &mut [u8]) {
        // The SYN precedes the first byte.
        let first = segment.seq.add(u32::from(segment.flags.has(Flags::SYN)));
        if let Some(seq) = first.unwrap(self.sender.una(), self.iss.add(self.sender.una() as u32)) {
            self.sender.payload(seq, out);
        }
    }

    /// No more data from this side: a FIN follows what was written.
    pub fn shutdown(&mut self, _now: Instant) {
        match self.state {
            State::Established => {
                self.state = State::FinWait1;
                self.sender.finish();
            }
            State::CloseWait => {
                self.state = State::LastAck;
                self.sender.finish();
            }
            State::SynSent | State::SynReceived => {
                self.handshake.closed_by_user = true;
                if self.is_early() {
                    self.sender.finish();
                }
            }
            State::Listen => self.close(),
            _ => {}
        }
    }
    /// Aborts the connection at once with a RST.
    pub fn abort(&mut self, now: Instant) {
        if matches!(self.state, State::SynReceived) || self.synchronised() {
            let mut rst = self.blank(Flags::RST.with(Flags::ACK));
            rst.ts = self.timestamps.then(|| self.stamps.stamp(now));
            rst.ack = self.irs.add(self.receiver.next_expected() as u32);
            self.reset_due = Some(rst);
        }
        self.close();
    }
    fn close(&mut self) {
        self.state = State::Closed;
        self.deadline = Instant::MAX;
        self.silence = keepalive::Silence::default();
        self.handshake.syn_due = false;
        self.sender.stop();
    }
    fn synchronised(&self) -> bool {
        !matches!(self.state, State::Listen | State::SynSent | State::SynReceived | State::Closed)
    }

    /// When [`Self::handle_timeout`] must be called; [`Instant::MAX`] means never.
    #[inline]
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        let half = self.sender.next_timeout().min(self.receiver.next_timeout());
        self.deadline.min(half).min(self.silence.ask_at)
    }

    /// Handles all expired deadlines.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.deadline <= now {
            self.deadline = Instant::MAX;
            match self.state {
                State::SynSent | State::SynReceived => {
                    let most = self.config.max_retransmissions;
                    let patience = self.config.user_timeout;
                    let late = !patience.is_zero() && now >= self.handshake.sent_at + patience;
                    if late || most > 0 && self.handshake.tries > most {
                        self.emit(Event::TimedOut);
                        self.close();
                    } else {
                        self.handshake.syn_due = true;
                    }
                }
                State::TimeWait => self.close(),
                State::FinWait2 => self.give_up_on_fin(now),
                _ => {}
            }
        }
        if self.silence.ask_at <= now {
            self.keep_alive(now);
        }
        self.sender.handle_timeout(now);
        if self.sender.gave_up() && self.state != State::Closed {
            self.emit(Event::TimedOut);
            self.abort(now);
        }
        self.receiver.handle_timeout(now);
    }
}

impl Handshake {
    /// RTT of the handshake, unless the SYN was retransmitted (Karn).
    fn rtt(&self, now: Instant) -> Option<Duration> {
        (self.tries == 1 && !self.untimed).then(|| now - self.sent_at)
    }
}

/// The window scale that lets 16 bits express a buffer of this many bytes, at most 14 (RFC 7323 §2.3).
#[must_use]
pub fn scale_for(buffer: u64) -> u8 {
    (0..14).find(|s| buffer >> s <= UNSCALED).unwrap_or(14)
}

/// The largest window up to `window` that a 16-bit field can express at this scale.
#[inline]
pub(crate) fn expressible(window: u64, scale: u8) -> u32 {
    (window.min(UNSCALED << scale) >> scale << scale) as u32
}

impl Connection<Counted> {
    /// Accepts `n` bytes of an application that keeps the send buffer full until they are sent. At most one buffer
    /// is outstanding at a time; the rest is only a length and uses no memory.
    pub fn offer(&mut self, now: Instant, n: u64) {
        if self.may_write() {
            self.sender.offer(now, n);
        }
    }
}
