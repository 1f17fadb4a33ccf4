//! The opening of connections: those that hosts ask for, and those that come over the link.

use super::{FLOWS, Gateway, SWEEP};
use crate::cause::Cause;
use crate::config::Preserve;
use crate::descriptors;
use crate::flow::{Flow, Initiator, LinkLeg};
use crate::log::Level;
use crate::near::Near;
use crate::policy::{EndpointPolicy, PeerGateway};
use crate::proof;
use crate::record;
use crate::route;
use skyhaul_base::Instant;
use skyhaul_cc::InitialWindow;
use skyhaul_net::host::{ConnId, Cookie, Endpoint, Host, HostError, PendingConnection, Transparent};
use std::fs::File;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::num::{NonZeroU16, NonZeroU32};
use std::sync::atomic::Ordering;

/// Maximum number of connections accepted per turn and listener, so that existing connections are served in between.
const ACCEPTED: usize = 256;

/// A connection of a host, as the kernel has accepted it.
struct Accepted {
    stream: TcpStream,
    client: SocketAddr,
    /// The local end of the leg over the link: the client, or the address of the gateway's own host with port 0, for any port.
    local: SocketAddr,
    server: SocketAddr,
}

impl Gateway {
    /// Adds a flow under a free number, which it returns.
    fn insert(&mut self, mut flow: Flow) -> u32 {
        flow.number = self.threads.opened.fetch_add(1, Ordering::Relaxed) + 1;
        self.threads.flows.fetch_add(1, Ordering::Relaxed);
        flow.control = self.config.endpoint.cc.name();
        self.prefixes.begins(flow.behind());
        if let Some(evidence) = &self.evidence {
            evidence.split(flow.client, flow.server);
        }
        if self.log.as_ref().is_some_and(|l| l.wants_flows(Level::Error)) {
            self.kernel.observe(&mut flow);
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            (self.flows.len() - 1) as u32
        });
        if let Some(slot) = self.flows.get_mut(number as usize) {
            *slot = Some(Box::new(flow));
        }
        self.at_work = Some(number);
        number
    }
    /// Accepts connections of terrestrial hosts.
    pub(super) fn accept(&mut self, now: Instant, host: &mut Host) {
        self.accept_at = Instant::MAX;
        for n in 0..self.listeners.len() {
            let Some(to) = self.listeners.get(n).map(|l| l.to) else { break };
            for k in 0..=ACCEPTED {
                if k == ACCEPTED {
                    self.accept_at = now;
                    break;
                }
                // Connections to forwarded ports cannot be forwarded unsplit: they wait in the backlog.
                if to.is_some() && self.is_full() {
                    self.accept_at = now + SWEEP;
                    break;
                }
                let Some(listener) = self.listeners.get(n) else { break };
                match listener.socket.accept() {
                    Ok((stream, client)) if proof::answers(&stream, client.ip(), self.config.slot) => {}
                    Ok((stream, client)) => {
                        let asked = stream.local_addr();
                        if let Some(server) = to.or(asked.ok()) {
                            let local = to.map_or(client, |_| {
                                SocketAddr::new(self.config.slot.host_address().into(), 0)
                            });
                            let accepted = Accepted { stream, client, local, server };
                            self.contain(now, host, None, |gateway, host| {
                                gateway.hand_on(now, host, accepted)
                            });
                        }
                    }
                    Err(e) if matches!(e.kind(), ErrorKind::ConnectionAborted | ErrorKind::Interrupted) => {}
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    // No descriptor is left: the connection would wait in the backlog for ever.
                    Err(_) if self.turn_away(n) => {}
                    Err(_) => {
                        self.accept_at = now + SWEEP;
                        break;
                    }
                }
            }
        }
    }

    /// Refuses the next connection, for which no descriptor is left: it is accepted with the descriptor in reserve, and reset by closing
    /// it at once. False if that does not work either.
    fn turn_away(&mut self, listener: usize) -> bool {
        let Some(listener) = self.listeners.get(listener) else { return false };
        drop(self.reserve.take());
        let taken = listener.socket.accept();
        let done = taken.is_ok();
        drop(taken);
        self.reserve = File::open("/dev/null").ok();
        if done {
            self.counts.from_hosts += 1;
            self.counts.refused += 1;
            self.threads.turned_away.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    /// Opens the connection of a client, in the thread that owns connections with these addresses and ports.
    fn hand_on(&mut self, now: Instant, host: &mut Host, accepted: Accepted) {
        let owner = match accepted.local.port() {
            // With port 0 any thread may: it then chooses a port that makes it the owner.
            0 => usize::from(accepted.client.port()) % self.threads.size(),
            _ => host.config().owner(accepted.local, accepted.server),
        };
        if owner == self.number {
            self.open_to_link(now, host, accepted);
        } else {
            self.threads
                .post(owner, Box::new(move |now, gateway, host| gateway.open_to_link(now, host, accepted)));
        }
    }

    fn open_to_link(&mut self, now: Instant, host: &mut Host, accepted: Accepted) {
        let Accepted { stream, client, local, server } = accepted;
        self.counts.from_hosts += 1;
        // A connection to the listener's own address has no server.
        let to_listener = self.ports.are_of(server);
        let Some(mut near) = Near::accepted(stream, client).ok().filter(|_| !to_listener) else {
            // Dropping the socket resets the connection (SO_LINGER, see `near::prepare`).
            self.refuse(Initiator::Hosts, client, server);
            return;
        };
        let waits = {
            let peers = self.threads.peers();
            peers.before(server.ip()).and_then(|g| peers.cookie(now, g, local.ip())).is_some()
        };
        if waits {
            near.await_data();
        }
        let legs = (near, LinkLeg::Unopened(local));
        let flow = Flow::new(now, Initiator::Hosts, (client, server), legs, self.config.limits.buffer.0);
        let number = self.insert(flow);
        if waits {
            self.opening.push_back((now + self.config.satellite.early_data.0, number, now));
        } else {
            self.open(now, host, number);
        }
        self.watch(number);
    }

    /// Opens the leg of a flow over the link.
    pub(super) fn open(&mut self, now: Instant, host: &mut Host, number: u32) {
        let Some(flow) = self.flows.get_mut(number as usize).and_then(Option::as_mut) else { return };
        let LinkLeg::Unopened(local) = flow.link else { return };
        let (client, server, dscp) = (flow.client, flow.server, flow.near.dscp());
        let gateway = self.threads.peers().before(server.ip());
        let window = gateway.and_then(|g| self.window(now, g));
        let cookie = gateway.and_then(|g| Some((g, self.threads.peers().cookie(now, g, local.ip())?)));
        host.look_up_route(now, server.ip(), route::mtu);
        let peer = gateway.map_or(PeerGateway::Unknown, PeerGateway::Gateway);
        let chosen = self.policy.choose(now, client, server, peer);
        match self.connect(now, host, (local, server), (window, cookie), (dscp, chosen)) {
            Ok(far) => {
                self.counts.resumed += u64::from(window.is_some());
                self.counts.fallback += u64::from(EndpointPolicy::is_fallback(chosen));
                self.by_conn.insert(far, number);
                if let Some(flow) = self.flows.get_mut(number as usize).and_then(Option::as_deref_mut) {
                    flow.link = LinkLeg::Opening(far);
                    flow.control = self.policy.endpoint(chosen).cc.name();
                    let flow_number = flow.number;
                    self.trace(now, host, flow_number, far);
                }
            }
            Err(_) => {
                self.counts.refused += 1;
                self.end(now, host, number, Cause::NotOpened);
            }
        }
    }
    /// Opens the legs of flows whose clients have sent nothing for `satellite.early-data`.
    pub(super) fn open_late(&mut self, now: Instant, host: &mut Host) {
        while let Some(&(until, number, began)) = self.opening.front() {
            let flow = self.flows.get(number as usize).and_then(Option::as_deref);
            // The flow may be open by now, or over, with its number given to another flow.
            let waits = flow.is_some_and(|f| matches!(f.link, LinkLeg::Unopened(_)) && f.began == began);
            if waits && now < until {
                return;
            }
            self.opening.pop_front();
            if waits {
                self.contain(now, host, Some(number), |gateway, host| {
                    gateway.open(now, host, number);
                    gateway.schedule(number);
                });
            }
        }
    }

    /// Opens a leg over the link, from the address of a client or of the gateway's host, with this initial window (`None`: that of the
    /// endpoint) and, if there is a cookie, data in the SYN. `chosen` is the number of an endpoint of the policy.
    fn connect(
        &self,
        now: Instant,
        host: &mut Host,
        (client, server): (SocketAddr, SocketAddr),
        (window, cookie): (Option<NonZeroU16>, Option<(NonZeroU32, Cookie)>),
        (dscp, chosen): (u8, u8),
    ) -> Result<ConnId, HostError> {
        let mut changed;
        let mut endpoint = self.policy.endpoint(chosen);
        if window.is_some() || dscp != 0 {
            changed = Endpoint { dscp, ..endpoint.clone() };
            if let Some(window) = window {
                changed.tcp.rules.initial_window = InitialWindow::Segments(window.get().into());
            }
            endpoint = &changed;
        }
        match cookie {
            Some(cookie) => host.connect_early(now, client, server, endpoint, cookie),
            None => host.connect(now, client, server, endpoint),
        }
    }

    /// The initial window of a connection to a known gateway, segments; `None`: that of the endpoint.
    fn window(&self, now: Instant, gateway: NonZeroU32) -> Option<NonZeroU16> {
        let s = &self.config.satellite;
        if s.resume && s.rate.is_some() { self.threads.peers().window(now, gateway) } else { None }
    }

    /// A client behind the link connects to a terrestrial host.
    pub(super) fn open_to_host(&mut self, now: Instant, host: &mut Host, asked: PendingConnection) {
        let PendingConnection { id, local: server, remote: client, dscp, gateway } = asked;
        host.look_up_route(now, client.ip(), route::mtu);
        self.counts.from_link += 1;
        let Some((to, preserve)) = self.server_of(server) else {
            self.refuse(Initiator::Link, client, server);
            host.refuse(id);
            return;
        };
        let near = match Near::connect(client, to, preserve, dscp) {
            Ok(near) => near,
            Err(e) => {
                let without = u64::from(descriptors::are_used_up(&e));
                self.threads.turned_away.fetch_add(without, Ordering::Relaxed);
                self.refuse(Initiator::Link, client, server);
                host.refuse(id);
                return;
            }
        };
        let legs = (near, LinkLeg::Requested(id));
        let mut flow = Flow::new(now, Initiator::Link, (client, server), legs, self.config.limits.buffer.0);
        flow.gateway = gateway;
        let number = self.insert(flow);
        self.by_conn.insert(id, number);
        self.watch(number);
    }

    /// The server of a connection from the link has accepted the connection, or refused it.
    pub(super) fn answered(&mut self, now: Instant, host: &mut Host, number: u32) {
        let Some(flow) = self.flows.get(number as usize).and_then(Option::as_deref) else { return };
        let (client, server, gateway) = (flow.client, flow.server, flow.gateway);
        let LinkLeg::Requested(id) = flow.link else { return };
        // The flow is about to be processed, which ends and counts it.
        if flow.near.has_failed() {
            return;
        }
        let window = gateway.and_then(|g| self.window(now, g));
        self.counts.resumed += u64::from(window.is_some());
        let peer = gateway.map_or(PeerGateway::Nobody, PeerGateway::Gateway);
        let chosen = self.policy.choose(now, client, server, peer);
        self.counts.fallback += u64::from(EndpointPolicy::is_fallback(chosen));
        host.admit(id, window, chosen);
    }

    /// Counts and logs a connection that the gateway cannot take.
    fn refuse(&mut self, from: Initiator, client: SocketAddr, server: SocketAddr) {
        self.counts.refused += 1;
        if let Some(log) = &self.log {
            log.flow(Level::Warning, record::refused(from, client, server));
        }
    }

    /// The server of a connection from the link, and what the server sees of the client; `None`: there is no server.
    fn server_of(&self, asked: SocketAddr) -> Option<(SocketAddr, Preserve)> {
        if self.config.forwards_ports() && asked.ip() == IpAddr::V4(self.config.slot.host_address()) {
            let published = self.config.publish.iter().find(|p| p.port == asked.port())?;
            return Some((published.to, Preserve::None));
        }
        Some((asked, self.config.terrestrial.as_ref()?.preserve))
    }

    /// Registers the kernel socket of a new flow, and schedules the flow.
    fn watch(&mut self, number: u32) {
        let flow = self.flows.get_mut(number as usize).and_then(Option::as_deref_mut);
        if let Some(near) = flow.map(|f| &mut f.near) {
            // If the kernel refuses to watch the socket, no event would arrive, and the connection would stand still.
            if self.poll.watch(near.stream(), u64::from(number) + FLOWS).is_err() {
                near.give_up();
                self.threads.turned_away.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.schedule(number);
    }
}
