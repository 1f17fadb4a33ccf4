//! User-space TCP and UDP: the connections and datagrams of one host, over whatever carries IP packets.
//!
//! ```text
//! packets ──▶ Host::arrive ──▶ Connection::handle ──▶ what changed, for the application
//! packets ◀── Outlet        ◀── Connection::poll_transmit ◀── write, read, shutdown, timeouts
//! ```
//! A host reads no clock and owns no device. The same code runs over TUN ([`driver`]) and, in tests, over paths
//! that lose, duplicate, reorder, corrupt and strip packets according to a script.

mod allowance;
mod answer;
mod app;
mod census;
mod config;
mod conn;
mod contain;
mod cookie;
mod count;
mod datagram;
mod deadline;
mod demux;
pub mod driver;
mod endpoint;
mod ends;
mod error;
mod failure;
mod glance;
mod half_open;
mod heard;
mod journal;
mod keys;
mod listeners;
mod memory;
mod paths;
mod place;
mod ready;
mod schedule;
mod secret;
mod shaper;
mod synacks;
mod table;
pub mod tap;
mod time_wait;
pub mod transparent;

pub use crate::outlet::{Merge, Outlet};
pub use app::{App, AppStatus};
pub use census::{Census, ConnectionCounts, MemoryUse, Traffic};
pub use config::{HostConfig, MEMORY, SYN_ACKS, Share};
pub use conn::Conn;
pub use count::Counts;
pub use datagram::Arrived;
pub use endpoint::Endpoint;
pub use error::HostError;
pub use failure::Failure;
pub use journal::{Difference, Journal, Op};
pub use keys::Keys;
pub use listeners::Admission;
pub use memory::Memory;
pub use paths::Paths;
pub use schedule::{Class, Membership, Schedule, Subscribers};
pub use secret::Secret;
pub use skyhaul_tcp::Early;
pub use transparent::{Cookie, Numbers, PendingConnection, Transparent, exchange};

use allowance::Allowance;
use census::ClosedTotals;
use datagram::Datagrams;
use deadline::Deadlines;
use demux::Demux;
use ends::Ends;
use half_open::HalfOpen;
use heard::Heard;
use listeners::Listeners;
use memory::Ledger;
use ready::Ready;
use skyhaul_base::Instant;
use skyhaul_cc::PathState;
use skyhaul_tcp::{Flags, Rejected, State};
use skyhaul_wire::tcp::Tcp;
use skyhaul_wire::{Packet, Transport, ip};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use synacks::SynAcks;
use table::Table;
use time_wait::TimeWait;
use transparent::{Admissions, Arrivals};

/// Identifier of a connection of a host; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    slot: u32,
    generation: u32,
}

impl ConnId {
    /// The largest identifier.
    pub(crate) const LAST: Self = Self { slot: u32::MAX, generation: u32::MAX };
}

/// First port for connections that we open (RFC 6335: dynamic ports).
const FIRST_PORT: u16 = 49_152;

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    conn: Option<Box<Conn>>,
    /// The half-open connection for which it is reserved.
    reserved: Option<u32>,
}

/// The connections of one host.
#[derive(Debug)]
pub struct Host {
    config: HostConfig,
    slots: Vec<Slot>,
    free: Vec<u32>,
    demux: Demux,
    half_open: Table<HalfOpen>,
    /// Data of the SYNs of half-open connections.
    early: Arrivals,
    time_wait: Table<TimeWait>,
    syn_acks: SynAcks,
    /// Until when an acknowledgement may return a cookie.
    cookies_until: Instant,
    listeners: Listeners,
    admissions: Admissions,
    datagrams: Datagrams,
    deadlines: Deadlines,
    /// Connections that may have something to send.
    ready: Ready,
    /// Connections that changed since the application last saw them.
    changed: VecDeque<u32>,
    /// The connection that is worked on: it is given up if the work panics.
    at_work: Option<u32>,
    /// Connections that were given up, whose peers are not reset yet.
    broken: Vec<contain::AbandonedConnection>,
    paths: Arc<Paths>,
    /// When something has arrived from other gateways.
    heard: Heard,
    /// MTUs of routes, and when they were looked up.
    routes: BTreeMap<IpAddr, (Option<u32>, Instant)>,
    answers: Allowance,
    opened: u64,
    ledger: Ledger,
    next_port: u16,
    past: ClosedTotals,
    counts: Counts,
}

impl Host {
    /// A host without connections.
    #[must_use]
    pub fn new(config: HostConfig) -> Self {
        let ledger = Ledger::new(config.memory, config.account.clone());
        Self {
            next_port: FIRST_PORT + (config.secret.of(b"port", &[]) % 16_000) as u16,
            demux: Demux::new(&config.secret),
            half_open: Table::new(&config.secret),
            early: Arrivals::default(),
            time_wait: Table::new(&config.secret),
            syn_acks: SynAcks::default(),
            cookies_until: Instant::ZERO,
            ready: Ready::new(config.by_client, &config.schedule),
            paths: config.paths.clone().unwrap_or_default(),
            heard: Heard::default(),
            config,
            slots: Vec::new(),
            free: Vec::new(),
            listeners: Listeners::default(),
            admissions: Admissions::default(),
            datagrams: Datagrams::default(),
            deadlines: Deadlines::default(),
            changed: VecDeque::new(),
            at_work: None,
            broken: Vec::new(),
            routes: BTreeMap::new(),
            answers: Allowance::new(),
            opened: 0,
            ledger,
            past: ClosedTotals::default(),
            counts: Counts::default(),
        }
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &HostConfig {
        &self.config
    }
    /// Its counters.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
    /// Number of connections, including half-open ones and those in TIME-WAIT.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.demux.len() + self.half_open.len() + self.time_wait.len()
    }
    /// Number of half-open connections.
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }
    /// Number of connections in TIME-WAIT that no application holds.
    #[must_use]
    pub fn time_waits(&self) -> usize {
        self.time_wait.len()
    }

    /// Memory use of all half-open connections, and of all in TIME-WAIT that no application holds, bytes.
    #[must_use]
    pub fn table_bytes(&self) -> [usize; 2] {
        [self.half_open.bytes(), self.time_wait.bytes()]
    }

    // ----- the application ----------------------------------------------------------------------------------

    /// Accepts connections to `port` at every address.
    ///
    /// # Errors
    /// If the port already has a listener.
    pub fn listen(&mut self, port: u16, endpoint: Endpoint) -> Result<(), HostError> {
        if self.listeners.has(port) {
            return Err(HostError::PortInUse(port));
        }
        self.listeners.insert(port, endpoint);
        Ok(())
    }
    /// Stops accepting connections to `port`; existing ones stay.
    pub fn unlisten(&mut self, port: u16) {
        self.listeners.remove(port);
    }
    /// Opens a connection; a local port of 0 chooses a free one. The SYN leaves with the next [`Self::flush`].
    ///
    /// # Errors
    /// If the local address is not ours, the addresses are of different families, the pair of ends is in use, no local port is
    /// free, or there are too many connections.
    pub fn connect(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        endpoint: &Endpoint,
    ) -> Result<ConnId, HostError> {
        self.check_ends(local.ip(), remote.ip())?;
        if self.demux.len() >= self.config.most {
            return Err(HostError::TooMany(self.config.most));
        }
        let mut local = local;
        let mut replaced = None;
        if self.config.transparent {
            // The client whose place the gateway takes has chosen these ends, so an earlier connection between them is over.
            replaced = self.displace(local, remote);
        }
        if local.port() == 0 {
            local.set_port(self.free_port(local.ip(), remote).ok_or(HostError::NoPort(remote))?);
        } else if self.is_taken(local, remote) {
            return Err(HostError::InUse { local, remote });
        }
        let mut origin = self.origin(now, local, remote, endpoint);
        origin.iss = half_open::above_replaced(origin.iss, replaced);
        let agreed = self.agreement(endpoint);
        let mut conn = Conn::new(origin.open(), local, remote, agreed, None);
        if self.config.record {
            conn.journal = Some(Box::new(Journal::new(origin)));
        }
        conn.set_pressed(now, self.ledger.presses());
        let slot = self.install(conn, Ends::new(local, remote), None);
        self.mark_ready(slot);
        Ok(self.id(slot))
    }

    /// Passes the path state of an earlier connection to the same peer ([`skyhaul_tcp::Connection::path_state`]) to
    /// a new one. To be called directly after [`Self::connect`], before anything leaves.
    pub fn recall(&mut self, now: Instant, id: ConnId, state: PathState) {
        self.act(now, id, |c| c.recall(now, state));
    }

    /// The next connection that changed since it was last returned here: accepted, readable, writable, closed or
    /// failed. Each is returned once per change.
    pub fn next_changed(&mut self) -> Option<ConnId> {
        while let Some(slot) = self.changed.pop_front() {
            if let Some(conn) = self.at_mut(slot) {
                conn.notify_app = true;
                if !conn.released {
                    return Some(self.id(slot));
                }
            }
        }
        None
    }
    /// Bytes that each class of the schedule has sent, and, behind them, connections of none ([`HostConfig::schedule`]).
    #[must_use]
    pub fn sent_by_class(&self) -> Vec<u64> {
        self.ready.sent()
    }
    /// The class and the subscriber of a connection, as the schedule has them; `None` if there is no such connection.
    #[must_use]
    pub fn membership(&self, id: ConnId) -> Option<Membership> {
        let conn = self.conn(id)?;
        let (client, server) = conn.ends();
        Some(self.config.schedule.membership(client, server, conn.agreement().dscp))
    }
    /// Number of subscribers that have something to send, and are held by their rate.
    #[must_use]
    pub fn held_subscribers(&self) -> usize {
        self.ready.held()
    }
    /// Number of connections that may have something to send, and are not held by the rate of their subscriber.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready.len() + self.admissions.decided() + self.broken.len()
    }
    /// Whether [`Self::next_changed`] has something to return.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.changed.is_empty()
    }
    /// The connection; `None` if it no longer exists.
    #[must_use]
    pub fn conn(&self, id: ConnId) -> Option<&Conn> {
        let slot = self.slots.get(id.slot as usize)?;
        (slot.generation == id.generation).then_some(slot.conn.as_deref()?)
    }
    /// Writes as much as there is room for; returns how many bytes.
    pub fn write(&mut self, now: Instant, id: ConnId, data: &[u8]) -> usize {
        self.contain(now, |host| host.write_to(now, id, data)).unwrap_or(0)
    }
    fn write_to(&mut self, now: Instant, id: ConnId, data: &[u8]) -> usize {
        self.at_work = Some(id.slot);
        let Self { slots, ledger, .. } = self;
        let slot = slots.get_mut(id.slot as usize).filter(|s| s.generation == id.generation);
        let Some(conn) = slot.and_then(|s| s.conn.as_deref_mut()) else { return 0 };
        // Accounted at once, and informed beforehand that memory is short: many applications may write much before
        // anything leaves.
        ledger.book(now, conn);
        let written = conn.write(now, data);
        ledger.book(now, conn);
        self.mark_ready(id.slot);
        written
    }
    /// Reads into `out`; returns how many bytes.
    pub fn read(&mut self, now: Instant, id: ConnId, out: &mut [u8]) -> usize {
        self.act(now, id, |c| c.read(now, out)).unwrap_or(0)
    }
    /// Reads and discards everything available; returns how many bytes.
    pub fn discard(&mut self, now: Instant, id: ConnId) -> u64 {
        self.act(now, id, |c| c.discard(now)).unwrap_or(0)
    }
    /// From now on all data is read and discarded on arrival, so that the window never shrinks, as for the sinks of
    /// the simulator.
    pub fn sink(&mut self, now: Instant, id: ConnId) {
        self.act(now, id, |c| c.sink(now));
    }
    /// No more data from our side: a FIN follows what was written.
    pub fn shutdown(&mut self, now: Instant, id: ConnId) {
        self.act(now, id, |c| c.shutdown(now));
    }
    /// Takes back data that was written but never sent; returns how many bytes.
    pub fn take_back(&mut self, now: Instant, id: ConnId) -> u64 {
        self.act(now, id, |c| c.take_back(now)).unwrap_or(0)
    }
    /// Aborts the connection with a RST.
    pub fn abort(&mut self, now: Instant, id: ConnId) {
        self.act(now, id, |c| c.abort(now));
    }
    /// Releases the connection: it is closed in order if it was not, and removed as soon as possible. The
    /// endpoint's `fin_timeout` limits the wait for the peer.
    pub fn release(&mut self, now: Instant, id: ConnId) {
        // Removed by the next flush, after it has sent what is due, such as a RST.
        self.act(now, id, |c| c.release(now));
    }

    /// Aborts all connections with a RST.
    pub fn abort_all(&mut self, now: Instant) {
        for slot in 0..self.slots.len() as u32 {
            self.abort(now, self.id(slot));
        }
    }
    /// From now on reports the events of a connection to a tap, under this number; false if it no longer exists.
    pub fn trace(&mut self, now: Instant, id: ConnId, tap: tap::Tap, flow: u64) -> bool {
        self.get_mut(id).map(|c| c.trace(now, tap, flow)).is_some()
    }
    /// Whether some connection has unacknowledged data or an unacknowledged FIN.
    #[must_use]
    pub fn owes(&self) -> bool {
        self.slots.iter().filter_map(|s| s.conn.as_deref()).any(Conn::owes)
    }

    // ----- the driver ---------------------------------------------------------------------------------------

    /// Handles an arriving packet. Responses go to `out`.
    pub fn arrive(&mut self, now: Instant, packet: &[u8], out: &mut impl Outlet) {
        self.counts.packets_in += 1;
        self.contain(now, |host| host.packet(now, packet, out));
    }
    fn packet(&mut self, now: Instant, packet: &[u8], out: &mut impl Outlet) {
        let bytes = packet;
        let Some(packet) = self.counts.refusals.count(Packet::parse(packet)) else { return };
        if !self.config.transparent && !self.config.addresses.contains(&packet.ip.dst) {
            self.counts.not_ours += 1;
            return;
        }
        if self.is_martian(packet.ip.src) {
            self.counts.martians += 1;
            return;
        }
        match packet.transport {
            Transport::Tcp(tcp) => self.segment(now, &packet.ip, &tcp, out),
            Transport::Icmp(message) => {
                let theirs = self.config.transparent && !self.config.addresses.contains(&packet.ip.dst);
                if !self.message(now, &packet.ip, &message, out) && theirs {
                    self.pass_on(bytes, out);
                }
            }
            Transport::Udp(udp) => self.datagram(now, &packet.ip, &udp),
        }
    }

    /// Handles packets of a connection that were merged into this one, and whose checksum was verified, as if it were one. False,
    /// and nothing has happened, if they must be split.
    pub fn arrive_merged(
        &mut self,
        now: Instant,
        packet: &[u8],
        packets: u64,
        out: &mut impl Outlet,
    ) -> bool {
        // A packet at which the host panicked is not handled a second time.
        self.contain(now, |host| host.merged(now, packet, packets, out)).unwrap_or(true)
    }
    fn merged(&mut self, now: Instant, packet: &[u8], packets: u64, out: &mut impl Outlet) -> bool {
        let Ok(packet) = Packet::parse_verified(packet) else { return false };
        let Transport::Tcp(tcp) = packet.transport else { return false };
        // Its addresses are valid, since a connection has them.
        let ends = Ends::new(
            SocketAddr::new(packet.ip.dst, tcp.dst_port),
            SocketAddr::new(packet.ip.src, tcp.src_port),
        );
        let Some(slot) = self.demux.get(&ends).filter(|_| !self.ledger.is_full()) else { return false };
        let Some(outcome) = self.at_mut(slot).and_then(|c| c.handle_merged(now, &tcp)) else { return false };
        self.hear(now, self.at(slot).and_then(Conn::peer_gateway));
        self.counts.packets_in += packets;
        self.counts.segments_in += packets;
        if let Err(why) = outcome {
            self.counts.rejected(why);
        }
        self.pump(now, slot, out);
        true
    }

    /// Sends what applications have written since the last call.
    pub fn flush(&mut self, now: Instant, out: &mut impl Outlet) {
        self.send_decisions(now, out);
        self.ready.release(now);
        // If the outlet is limited, connections with more to send are ready again, at the end of the queue.
        while out.allowance() > 0 {
            let Some(slot) = self.ready.pop(now) else { break };
            let sent = self.contain(now, |host| {
                let c = host.at_mut(slot)?;
                c.ready = false;
                Some(host.transmit(now, slot, out))
            });
            self.ready.spend(now, sent.flatten().unwrap_or(0));
        }
        self.flush_datagrams(out);
    }

    /// When [`Self::handle_timeout`] and [`Self::flush`] are due; [`Instant::MAX`] means never.
    #[must_use]
    pub fn next_timeout(&mut self) -> Instant {
        self.deadlines
            .next()
            .min(self.ready.next_release())
            .min(self.half_open.next())
            .min(self.time_wait.next())
    }
    /// Handles all expired deadlines, and sends the resulting segments.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut impl Outlet) {
        while let Some((slot, generation)) = self.deadlines.due(now) {
            self.contain(now, |host| {
                let Some(conn) = host.get_mut(ConnId { slot, generation }) else { return };
                conn.armed = Instant::MAX;
                let trimmed = conn.handle_timeout(now);
                host.ledger.memory.trimmed += u64::from(trimmed);
                host.pump(now, slot, out);
            });
        }
        self.contain(now, |host| {
            host.serve_half_open(now, out);
            host.remove_expired_time_waits(now);
        });
    }

    // ----- arrivals -----------------------------------------------------------------------------------------

    fn segment(&mut self, now: Instant, ip: &ip::Header, tcp: &Tcp<'_>, out: &mut impl Outlet) {
        let local = SocketAddr::new(ip.dst, tcp.dst_port);
        let remote = SocketAddr::new(ip.src, tcp.src_port);
        self.counts.segments_in += 1;
        let ends = Ends::new(local, remote);
        let slot = self.demux.get(&ends);
        self.hear(now, self.sender_of(slot, tcp));
        if let Some(slot) = slot {
            let old = self.at(slot).map(Conn::tcp);
            let old = old.filter(|c| c.state() == State::TimeWait).map(skyhaul_tcp::Connection::remains);
            match old.filter(|r| self.begins_anew(r, &ends, tcp)) {
                Some(remains) => {
                    // An application that has not released it may still have to read.
                    if let Some(conn) = self.at_mut(slot).filter(|c| !c.released) {
                        conn.supersede(now);
                        self.settle(now, slot, true);
                    } else {
                        self.remove(slot);
                    }
                    // The old connection has no part in what follows.
                    self.at_work = None;
                    self.begin(now, ends, tcp, Some(remains.next), out);
                }
                None => self.give(now, slot, tcp, out),
            }
        } else if let Some(at) = self.time_wait.find(&ends) {
            if let Some(beyond) = self.time_wait_segment(now, at, tcp, out) {
                self.begin(now, ends, tcp, Some(beyond), out);
            }
        } else if let Some(at) = self.half_open.find(&ends) {
            self.half_open_segment(now, at, tcp, out);
        } else {
            let syn = tcp.flags.has(Flags::SYN) && !tcp.flags.has(Flags::ACK) && !tcp.flags.has(Flags::RST);
            let listens = self.listeners.at(local.port()).is_some();
            if syn && listens {
                self.begin(now, ends, tcp, None, out);
            } else if listens && !tcp.flags.has(Flags::ACK) {
                // Not answered (RFC 9293 §3.10.7.2, fourth).
                self.counts.strangers += 1;
            } else if !self.redeem(now, &ends, tcp, out) {
                self.stranger(now, local, remote, tcp, out);
            }
        }
    }

    fn give(&mut self, now: Instant, slot: u32, tcp: &Tcp<'_>, out: &mut impl Outlet) {
        let tcp = self.admitted(slot, tcp);
        let Some(conn) = self.at_mut(slot) else { return };
        if let Err(why) = conn.handle(now, &tcp) {
            self.counts.rejected(why);
        }
        self.pump(now, slot, out);
    }

    // ----- departures ---------------------------------------------------------------------------------------

    /// Something has happened to a connection, which may now have something to send. If the outlet is limited, it waits for its turn:
    /// otherwise the connection with most acknowledgements would send most.
    fn pump(&mut self, now: Instant, slot: u32, out: &mut impl Outlet) {
        if out.allowance() == usize::MAX {
            self.transmit(now, slot, out);
        } else {
            self.settle(now, slot, false);
            self.mark_ready(slot);
        }
    }

    /// Sends everything that a connection has to send and may, then updates its state; returns how many bytes it has sent.
    fn transmit(&mut self, now: Instant, slot: u32, out: &mut impl Outlet) -> u64 {
        self.at_work = Some(slot);
        let Self { slots, counts, .. } = self;
        let Some(conn) = slots.get_mut(slot as usize).and_then(|s| s.conn.as_deref_mut()) else { return 0 };
        let (done, sent) = conn.depart(now, counts, out);
        self.settle(now, slot, done);
        if !done {
            self.mark_ready(slot);
        }
        sent
    }

    /// Updates the deadline of a connection, informs the application, and removes the connection if it is gone. `done`: it has nothing
    /// more to send now; otherwise its timers wait until it has sent.
    fn settle(&mut self, now: Instant, slot: u32, done: bool) {
        self.at_work = Some(slot);
        let Some(s) = self.slots.get_mut(slot as usize) else { return };
        let Some(conn) = s.conn.as_deref_mut() else { return };
        self.ledger.book(now, conn);
        conn.notice_idleness(now);
        if self.config.search_mtu
            && conn.is_connected()
            && let Some(news) = conn.mtu_news()
        {
            place::learn_mtu(&self.paths, now, conn, news);
        }
        let deadline = conn.next_timeout();
        if done && deadline < conn.armed {
            conn.armed = deadline;
            self.deadlines.arm(deadline, slot, s.generation);
        }
        conn.collect_events(now);
        if conn.notify_app && conn.has_news() {
            conn.notify_app = false;
            self.changed.push_back(slot);
        }
        // What it has to send comes first, such as a RST.
        if done && conn.is_gone() {
            self.remove(slot);
        } else if conn.tcp().state() == State::Closed {
            // Only the application still knows it: its ends are free (RFC 9293 §3.10.7.4: the TCB is deleted).
            self.demux.remove(&Ends::new(conn.local(), conn.remote()), slot);
        } else if time_wait::may_be_reduced(conn) {
            self.reduce(slot);
        }
        self.relieve(now);
    }
}

impl Counts {
    fn rejected(&mut self, why: Rejected) {
        *self.rejected.entry(count::name(why)).or_default() += 1;
    }
}
