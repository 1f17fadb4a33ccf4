//! One connection of a host: the endpoint, its addresses, and the encoding of its segments.

use super::config::ALWAYS;
use super::count::Counts;
use super::failure::Failure;
use super::journal::Journal;
use super::journal::Op;
use super::tap::{End, Tap, Tracer};
use super::transparent::Cookie;
use crate::outlet::{Merge, Outlet};
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{PathState, ProbeSupport};
use skyhaul_tcp::{
    Bytes, Connection, Counters, Event, Flags, FoundMtu, Mark, Rejected, Segment, Seq, Snapshot, State,
};
use skyhaul_wire::tcp::{ProbeOption, Tcp};
use skyhaul_wire::{Agreement, Capability, Checksum, Envelope, MAX_HEADER, Profile};
use std::net::SocketAddr;
use std::num::NonZeroU32;

/// Probes without a marked answer after which the host assumes that the path clears the bits, if the peer is seen
/// to receive the probes.
const BITS_ZEROED_AFTER: u64 = 8;

/// How long empty buffers keep their memory.
const IDLE: Duration = Duration::from_secs(1);

/// One connection of a host.
#[derive(Debug)]
pub struct Conn {
    tcp: Connection<Bytes>,
    local: SocketAddr,
    remote: SocketAddr,
    /// Encoding of our segments.
    ours: Agreement,
    /// Encoding of the peer's segments.
    theirs: Agreement,
    /// The probe capability in the peer's SYN.
    peer_capability: Option<Capability>,
    connected: bool,
    closed: bool,
    failure: Option<Failure>,
    /// The state that the application last learnt of from `next_changed`: readable, writable and so on.
    visible: VisibleState,
    /// It is not in the host's queue of changed connections, so its next change puts it there.
    pub(super) notify_app: bool,
    /// It waits in the host's queue of connections that may have something to send.
    pub(super) ready: bool,
    /// The application has released it.
    pub(super) released: bool,
    /// The port of the listener that accepted it; `None` if we opened it.
    pub(super) listener: Option<u16>,
    /// The gateway that stands in for the peer.
    pub(super) gateway: Option<NonZeroU32>,
    /// The cookie in that gateway's SYN-ACK.
    pub(super) cookie: Option<Cookie>,
    /// Payload of a full segment at the last call of [`Self::mtu_news`], bytes.
    size: u32,
    /// What a search for the path MTU had found by that call.
    found: Option<FoundMtu>,
    /// The gateway for which our SYN carried data.
    early_for: Option<NonZeroU32>,
    /// The earliest deadline that the host has noted for it; [`Instant::MAX`] if none.
    pub(super) armed: Instant,
    /// When empty buffers release their memory.
    trim_at: Instant,
    /// Memory currently accounted to it, bytes.
    pub(super) booked: u64,
    /// Memory is short, so its buffers are limited.
    pub(super) pressed: bool,
    /// Start and length of the last probe that was marked by bits.
    last_probe: Option<(Seq, u32)>,
    /// The peer was seen to receive such a probe as an ordinary duplicate.
    received_unmarked: bool,
    bytes_read: u64,
    bytes_written: u64,
    /// Arriving data is discarded at once.
    sinks: bool,
    /// Its next work panics, for tests.
    pub(super) breaks: bool,
    pub(super) journal: Option<Box<Journal>>,
    /// Reports its events to a tap.
    tracer: Option<Box<Tracer>>,
}

/// What a connection has found out about the path MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MtuNews {
    /// The handshake is complete.
    Begun,
    /// Packets with this many bytes of options and payload pass, and longer ones do not, or are not needed.
    Found(u32),
    /// The same, but the search goes on: a longer packet was lost.
    Part(u32),
    /// Segments have become shorter.
    Doubted,
}

/// The state of a connection that an application can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct VisibleState {
    readable: bool,
    writable: bool,
    connected: bool,
    finished: bool,
    /// Our FIN is acknowledged, and the peer has sent none.
    half_closed: bool,
    over: bool,
}

impl Conn {
    pub(super) fn new(
        tcp: Connection<Bytes>,
        local: SocketAddr,
        remote: SocketAddr,
        agreed: Agreement,
        listener: Option<u16>,
    ) -> Self {
        Self {
            tcp,
            local,
            remote,
            ours: agreed,
            theirs: agreed,
            peer_capability: None,
            connected: false,
            closed: false,
            failure: None,
            visible: VisibleState::default(),
            notify_app: true,
            ready: false,
            released: false,
            listener,
            gateway: None,
            cookie: None,
            size: 0,
            found: None,
            early_for: None,
            armed: Instant::MAX,
            trim_at: Instant::MAX,
            booked: 0,
            pressed: false,
            last_probe: None,
            received_unmarked: false,
            bytes_read: 0,
            bytes_written: 0,
            sinks: false,
            breaks: false,
            journal: None,
            tracer: None,
        }
    }

    /// The number of the gateway that stands in for the peer, if one does and says so.
    #[must_use]
    pub fn peer_gateway(&self) -> Option<NonZeroU32> {
        self.gateway
    }
    /// The cookie in the SYN-ACK of a gateway: its presence says that later SYNs may carry data.
    #[must_use]
    pub fn peer_cookie(&self) -> Option<Cookie> {
        self.cookie
    }
    /// What is known of the data in our SYN, or in the peer's.
    #[must_use]
    pub fn early(&self) -> skyhaul_tcp::Early {
        self.tcp.early()
    }
    /// Local address and port.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }
    /// Remote address and port.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }
    /// The end that opened the connection, and the other one.
    pub(super) fn ends(&self) -> (SocketAddr, SocketAddr) {
        if self.listener.is_some() { (self.remote, self.local) } else { (self.local, self.remote) }
    }
    /// The encoding of our segments.
    pub(super) fn agreement(&self) -> Agreement {
        self.ours
    }
    /// Records why it has ended.
    pub(super) fn fail(&mut self, why: Failure) {
        self.failure = Some(why);
    }
    /// The endpoint.
    #[must_use]
    pub fn tcp(&self) -> &Connection<Bytes> {
        &self.tcp
    }
    /// The port of the listener that accepted it; `None` if we opened it.
    #[must_use]
    pub fn accepted_at(&self) -> Option<u16> {
        self.listener
    }
    /// Whether the handshake was completed; stays true after the end.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connected
    }
    /// Whether both directions are closed, in order or not.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.closed || self.failure.is_some() || self.tcp.state() == State::Closed
    }
    /// Whether it closed in order: everything written and our FIN were acknowledged, and the peer's FIN arrived.
    #[must_use]
    pub fn ended_in_order(&self) -> bool {
        self.closed && self.failure.is_none()
    }
    /// Why it failed; `None` if it has not, or if this end aborted it.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        self.failure
    }
    /// Whether the peer's FIN arrived and all its data was read.
    #[must_use]
    pub fn at_end(&self) -> bool {
        self.tcp.peer_finished() && self.tcp.readable() == 0
    }
    /// Whether written data or the FIN is still unacknowledged.
    pub(super) fn owes(&self) -> bool {
        let fin = matches!(self.tcp.state(), State::FinWait1 | State::Closing | State::LastAck);
        !self.is_over() && (fin || self.tcp.unacked() > 0)
    }
    /// Payload of a full segment, bytes.
    #[must_use]
    pub fn segment_size(&self) -> u32 {
        self.tcp.sender().segment_size()
    }
    /// Bytes that the application has read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        if self.sinks { self.tcp.receiver().payload_received() } else { self.bytes_read }
    }
    /// Bytes that the application has written.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }
    /// Current state of the sending half.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.tcp.snapshot()
    }
    /// Counters of the sending half.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.tcp.counters()
    }
    /// Whether the peer answers probes.
    #[must_use]
    pub fn probe_support(&self) -> ProbeSupport {
        self.tcp.sender().probe_support()
    }
    /// The probe capability in the peer's SYN.
    #[must_use]
    pub fn peer_capability(&self) -> Option<Capability> {
        self.peer_capability
    }
    /// Whether our probes are marked by an option now, and not by bits, which an option may replace; false before the first
    /// probe.
    #[must_use]
    pub fn marks_by_option(&self) -> bool {
        self.last_probe.is_none() && self.ours.profile.negotiates() && self.counters().probes_sent > 0
    }
    /// Its recording, if there is one.
    #[must_use]
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_deref()
    }

    // ----- the application ----------------------------------------------------------------------------------

    pub(super) fn write(&mut self, now: Instant, data: &[u8]) -> usize {
        self.break_if_told();
        let n = (data.len() as u64).min(self.room());
        let taken = self.tcp.write(now, data.get(..n as usize).unwrap_or(data), n);
        self.note(now, Op::Write(taken));
        self.bytes_written += taken;
        self.visible.writable = false;
        taken as usize
    }
    pub(super) fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let n = self.tcp.read(out, out.len() as u64);
        self.note(now, Op::Read(n));
        self.bytes_read += n;
        self.visible.readable = false;
        n as usize
    }
    pub(super) fn discard(&mut self, now: Instant) -> u64 {
        let n = self.tcp.read(&mut [], u64::MAX);
        self.note(now, Op::Read(n));
        self.bytes_read += n;
        self.visible.readable = false;
        n
    }
    pub(super) fn sink(&mut self, now: Instant) {
        if !self.sinks {
            self.discard(now);
            self.tcp.discard_reads();
            self.sinks = true;
            self.note(now, Op::Sink);
        }
    }
    pub(super) fn recall(&mut self, now: Instant, state: PathState) {
        self.tcp.recall(state);
        self.note(now, Op::Recall(state));
    }
    pub(super) fn take_back(&mut self, now: Instant) -> u64 {
        let n = self.tcp.truncate();
        self.note(now, Op::TakeBack);
        self.bytes_written -= n;
        n
    }
    pub(super) fn shutdown(&mut self, now: Instant) {
        self.tcp.shutdown(now);
        self.note(now, Op::Shutdown);
    }
    pub(super) fn abort(&mut self, now: Instant) {
        self.tcp.abort(now);
        self.note(now, Op::Abort);
    }
    pub(super) fn release(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.released, true) {
            self.tcp.abandon(now);
            self.note(now, Op::Abandon);
        }
    }

    /// Ends TIME-WAIT: a new connection takes its addresses and ports.
    pub(super) fn supersede(&mut self, now: Instant) {
        self.tcp.end_time_wait();
        self.note(now, Op::Supersede);
    }

    // ----- arrivals -----------------------------------------------------------------------------------------

    pub(super) fn handle(&mut self, now: Instant, tcp: &Tcp<'_>) -> Result<(), Rejected> {
        let (_, shift) = self.tcp.scales();
        self.theirs.window_shift = shift;
        let capability = match tcp.options.probe(self.ours.probe_exid) {
            Some(ProbeOption::Capability(c)) => Some(c),
            _ => None,
        };
        let syn = tcp.flags.has(Flags::SYN) && self.tcp.state() == State::SynSent;
        let outcome = self.take(now, tcp.segment(&self.theirs), capability, tcp.payload);
        if syn && self.tcp.state() != State::SynSent {
            self.gateway = tcp.options.gateway(self.ours.probe_exid);
            self.cookie = tcp.options.early(self.ours.probe_exid);
            self.suspect_early(now);
        }
        outcome
    }

    /// Handles segments that were merged into one, if it makes no difference to the connection that they were; `None`: they must
    /// be split.
    pub(super) fn handle_merged(&mut self, now: Instant, tcp: &Tcp<'_>) -> Option<Result<(), Rejected>> {
        // Observers, and the watch for cleared bits, need each segment.
        if self.journal.is_some() || self.tracer.is_some() || self.last_probe.is_some() {
            return None;
        }
        let (_, shift) = self.tcp.scales();
        self.theirs.window_shift = shift;
        let seg = tcp.segment(&self.theirs);
        self.tcp.takes_merged(&seg).then(|| self.tcp.handle_merged(now, &seg, tcp.payload))
    }

    /// Aborts if the data of our SYN could be delivered twice: the SYN was repeated, and another gateway or host has answered than the
    /// gateway for which the data was. That gateway may have delivered the data before it ended.
    fn suspect_early(&mut self, now: Instant) {
        let early = self.tcp.early();
        if early.repeated
            && early.taken == 0
            && self.gateway != self.early_for
            && self.tcp.state() != State::Closed
        {
            self.failure = Some(Failure::Reset);
            self.abort(now);
        }
    }

    /// Handles a parsed segment; `capability` is its probe capability, if it is a SYN.
    pub(super) fn take(
        &mut self,
        now: Instant,
        mut seg: Segment,
        capability: Option<Capability>,
        payload: &[u8],
    ) -> Result<(), Rejected> {
        self.break_if_told();
        if seg.flags.has(Flags::SYN) {
            self.negotiate(now, capability, &mut seg);
        } else if !seg.mark.is_answer() {
            self.watch_bits(now, &seg);
        }
        let refused_syn = self.tcp.state() == State::SynSent && seg.flags.has(Flags::RST);
        let outcome = self.tcp.handle(now, &seg, payload);
        self.traced(|t, tcp| {
            t.received(now, &seg);
            t.look(now, tcp);
        });
        if self.journal.is_some() {
            self.note(now, Op::Handle(Box::new(seg)));
        }
        if refused_syn && self.tcp.state() == State::Closed {
            self.failure = Some(Failure::Refused);
        }
        outcome
    }

    /// Combines the probe capability in the peer's SYN with our own.
    fn negotiate(&mut self, now: Instant, capability: Option<Capability>, seg: &mut Segment) {
        let Some(c) = capability else { return };
        if !self.ours.profile.negotiates() {
            return;
        }
        self.peer_capability = Some(c);
        // A peer that does not accept NIL payload gets no probes at all: the algorithm's kind of probe is not known
        // here.
        seg.syn.probes = c.has(Capability::ANSWERS | Capability::NIL);
        let bits = self.ours.profile == Profile::Compact && c.has(Capability::BITS);
        self.number_probes(now, !bits);
    }

    /// The path may clear the negotiated bits. The peer then takes probes for duplicates and answers without a
    /// mark: after [`BITS_ZEROED_AFTER`] probes without a marked answer, options mark them.
    fn watch_bits(&mut self, now: Instant, seg: &Segment) {
        let Some((from, len)) = self.last_probe else { return };
        if self.ours.profile != Profile::Compact {
            return;
        }
        if seg.sack.as_slice().first() == Some(&(from, from.add(len))) {
            self.received_unmarked = true;
        }
        let c = self.tcp.counters();
        if self.received_unmarked && c.probes_sent >= BITS_ZEROED_AFTER && c.probes_answered == 0 {
            self.last_probe = None;
            self.number_probes(now, true);
        }
    }

    /// From now on probes carry numbers if `ids`: then an option marks them, otherwise bits.
    fn number_probes(&mut self, now: Instant, ids: bool) {
        self.tcp.number_probes(ids);
        self.note(now, Op::Number(ids));
    }

    /// The SYN may carry `most` bytes of data for this gateway, with this serial number and this token.
    pub(super) fn offer_early(
        &mut self,
        now: Instant,
        most: u32,
        gateway: NonZeroU32,
        (serial, token): (u32, [u8; 4]),
    ) {
        self.early_for = Some(gateway);
        let mut stated = [0; 8];
        stated[..4].copy_from_slice(&serial.to_be_bytes());
        stated[4..].copy_from_slice(&token);
        self.ours.early = Some(stated);
        self.ours.capability.flags |= Capability::SCALED;
        self.tcp.offer_early(most);
        self.note(now, Op::OfferEarly(most));
    }
    /// Takes the data of the SYN that comes next.
    pub(super) fn take_early(&mut self, now: Instant, scaled: bool) {
        self.tcp.take_early(scaled);
        self.note(now, Op::TakeEarly(scaled));
    }
    pub(super) fn forget_when_it_began(&mut self, now: Instant) {
        self.tcp.forget_when_it_began();
        self.note(now, Op::Untimed);
    }
    pub(super) fn narrow(&mut self, now: Instant, limit: u32) {
        self.tcp.narrow(now, limit);
        self.note(now, Op::Narrow(limit));
    }
    /// The path works again, as another connection has shown. True if something is retransmitted.
    pub(super) fn retry(&mut self, now: Instant) -> bool {
        let waits = self.tcp.retry(now);
        if waits {
            self.note(now, Op::Retry);
        }
        waits
    }
    /// What has become known of the path MTU since the last call.
    pub(super) fn mtu_news(&mut self) -> Option<MtuNews> {
        let (size, found) = (self.segment_size(), self.tcp.found_mtu());
        let before = core::mem::replace(&mut self.size, size);
        if core::mem::replace(&mut self.found, found) == found && before == size {
            None
        } else if before == 0 {
            Some(MtuNews::Begun)
        } else if size < before {
            Some(MtuNews::Doubted)
        } else {
            found
                .filter(|f| f.complete || f.failed)
                .map(|f| if f.complete { MtuNews::Found(f.limit) } else { MtuNews::Part(f.limit) })
        }
    }
    /// The path to the peer is reported as unreachable: ends an attempt to open a connection.
    pub(super) fn unreachable(&mut self, now: Instant) {
        self.failure = Some(Failure::Unreachable);
        self.abort(now);
    }

    // ----- departures ---------------------------------------------------------------------------------------

    /// Sends what is due, at most as many packets as `out` allows in a turn. Returns whether nothing is left to send, and the bytes
    /// sent.
    pub(super) fn depart(&mut self, now: Instant, counts: &mut Counts, out: &mut impl Outlet) -> (bool, u64) {
        let mut sent = Vec::new();
        let mut bytes = 0;
        let mut most = out.allowance();
        let mut done = true;
        loop {
            if most == 0 {
                done = false;
                break;
            }
            let before = self.tracer.is_some().then(|| self.tcp.counters());
            let Some(seg) = self.tcp.poll_transmit(now) else { break };
            if let Some(before) = before {
                self.traced(|t, tcp| t.sent(now, &seg, &before, &tcp.counters()));
            }
            most -= 1;
            if self.journal.is_some() {
                sent.push(seg);
            }
            if seg.mark.is_probe() && seg.probe_id.is_none() {
                self.last_probe = Some((seg.seq, seg.len));
            }
            bytes += self.send(&seg, counts, out);
        }
        if self.journal.is_some() {
            self.note(now, Op::Sent(sent));
        }
        self.traced(|t, tcp| t.look(now, tcp));
        (done, bytes)
    }

    /// The next segment that is due, to be sent by the caller.
    pub(super) fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        let seg = self.tcp.poll_transmit(now);
        self.note(now, Op::Sent(seg.into_iter().collect()));
        seg
    }

    /// Sends a segment; returns the length of its packet, bytes.
    pub(super) fn send(&mut self, seg: &Segment, counts: &mut Counts, out: &mut impl Outlet) -> u64 {
        self.ours.window_shift = self.tcp.scales().0;
        let envelope = Envelope::new(self.local, self.remote);
        let merge = match seg.mark {
            _ if seg.low_priority => Merge::Low,
            Mark::None => Merge::Allowed,
            _ => Merge::Alone,
        };
        // From the send buffer to the packet's final place: the only copy on the way to the kernel.
        let checksum = if merge == Merge::Allowed { out.checksum() } else { Checksum::Written };
        let mut length = 0;
        let write = |room: &mut [u8]| {
            let fill = |room: &mut [u8]| self.tcp.payload(seg, room);
            skyhaul_wire::encode_with(room, &envelope, &self.ours, seg, checksum, fill)
                .inspect(|n| length = *n)
        };
        match out.send(MAX_HEADER + seg.len as usize, merge, write) {
            Ok(()) => counts.packets_out += 1,
            Err(e) => {
                debug_assert!(false, "{e}: {seg:?}");
                counts.unwritable += 1;
            }
        }
        length as u64
    }

    pub(super) fn next_timeout(&self) -> Instant {
        self.tcp.next_timeout().min(self.trim_at)
    }
    /// Handles expired timers. Returns true if memory was released.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        self.break_if_told();
        let idle = self.trim_at <= now && self.is_idle();
        if self.trim_at <= now {
            self.trim_at = Instant::MAX;
        }
        if idle {
            self.trim();
        }
        if self.tcp.next_timeout() <= now {
            self.tcp.handle_timeout(now);
            self.note(now, Op::Timeout);
            self.traced(|t, tcp| t.look(now, tcp));
        }
        idle
    }

    // ----- memory -------------------------------------------------------------------------------------------

    /// Its memory use, bytes.
    pub(super) fn memory_use(&self) -> u64 {
        (size_of::<Self>() + self.tcp.held().all) as u64
    }
    /// Bytes that may be written now.
    fn room(&self) -> u64 {
        let room = self.tcp.writable();
        if self.pressed { room.min(ALWAYS.saturating_sub(self.tcp.unacked())) } else { room }
    }
    /// Whether it holds memory for empty buffers.
    pub(super) fn is_idle(&self) -> bool {
        self.tcp.holds_nothing() && self.tcp.held().all > 0
    }
    /// Starts the time after which empty buffers release their memory.
    pub(super) fn notice_idleness(&mut self, now: Instant) {
        if self.trim_at == Instant::MAX && self.is_idle() {
            self.trim_at = now + IDLE;
        }
    }
    pub(super) fn trim(&mut self) {
        self.tcp.trim();
    }
    /// Notes that memory has become short, or is sufficient again.
    pub(super) fn set_pressed(&mut self, now: Instant, pressed: bool) {
        if self.pressed == pressed {
            return;
        }
        self.pressed = pressed;
        let most = pressed.then_some(ALWAYS);
        self.tcp.offer_at_most(most);
        self.note(now, Op::Offer(most));
    }
    /// Discards data beyond a gap.
    pub(super) fn renege(&mut self, now: Instant) {
        self.tcp.renege();
        self.note(now, Op::Renege);
    }

    // ----- news ---------------------------------------------------------------------------------------------

    pub(super) fn collect_events(&mut self, now: Instant) {
        while let Some(event) = self.tcp.poll_event() {
            match event {
                Event::Connected => self.connected = true,
                Event::PeerFinished => {}
                Event::Closed => self.closed = true,
                Event::Reset => {
                    let refused = !self.connected;
                    self.failure.get_or_insert(if refused { Failure::Refused } else { Failure::Reset });
                }
                Event::TimedOut => {
                    self.failure.get_or_insert(Failure::TimedOut);
                }
            }
        }
        if self.tracer.is_some() {
            let over = self.is_over().then_some(match self.failure {
                Some(failure) => End::Failed(failure),
                None if self.closed => End::InOrder,
                None => End::Aborted,
            });
            let connected = self.connected;
            self.traced(|t, _| t.notice(now, connected, over));
        }
    }
    /// From now on reports the events of this connection to a tap, under this number.
    pub(super) fn trace(&mut self, now: Instant, tap: Tap, flow: u64) {
        self.tracer = Some(Box::new(Tracer::new(now, tap, flow, &self.tcp, self.connected)));
    }
    /// Calls `what` with the tracer, if there is one; drops the tracer once its reader has gone.
    fn traced(&mut self, what: impl FnOnce(&mut Tracer, &Connection<Bytes>)) {
        if let Some(tracer) = &mut self.tracer {
            what(tracer, &self.tcp);
            if !tracer.read {
                self.tracer = None;
            }
        }
    }
    /// Whether the state that the application sees has changed.
    pub(super) fn has_news(&mut self) -> bool {
        if self.released {
            return false;
        }
        let now = VisibleState {
            readable: self.tcp.readable() > 0,
            writable: self.connected && self.room() > 0,
            connected: self.connected,
            finished: self.tcp.peer_finished(),
            half_closed: self.tcp.state() == State::FinWait2,
            over: self.is_over(),
        };
        let old = self.visible;
        self.visible = now;
        (now.readable && !old.readable)
            || (now.writable && !old.writable)
            || now.connected != old.connected
            || now.finished != old.finished
            || now.half_closed && !old.half_closed
            || now.over != old.over
    }
    /// Whether it can be removed: nothing more will happen, and no application holds it.
    pub(super) fn is_gone(&self) -> bool {
        let dead = self.tcp.state() == State::Closed || self.failure == Some(Failure::Unreachable);
        dead && self.released
    }

    /// Panics if a test has set the flag for it.
    fn break_if_told(&self) {
        assert!(!self.breaks, "a test has told this connection to break");
    }
    fn note(&mut self, now: Instant, op: Op) {
        if let Some(j) = &mut self.journal {
            j.op(now, op);
        }
    }
}
