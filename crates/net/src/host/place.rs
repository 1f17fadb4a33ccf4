//! The slots of connections: creation, lookup and removal, and free ends.

use super::conn::{Conn, MtuNews};
use super::ends::Ends;
use super::journal::Origin;
use super::paths::Paths;
use super::{ConnId, Endpoint, FIRST_PORT, Host, HostError, Slot};
use skyhaul_base::{Instant, Rng};
use skyhaul_wire::{Agreement, Capability, ip};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

impl Host {
    pub(super) fn origin(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        endpoint: &Endpoint,
    ) -> Origin {
        self.opened += 1;
        let secret = &self.config.secret;
        Origin {
            config: self.config_for(now, (remote.ip(), None), endpoint),
            cc: endpoint.cc.clone(),
            active: true,
            opened_at: now,
            iss: secret.isn(now, local, remote),
            timestamp_offset: secret.timestamp_offset(local, remote),
            rng: self.stream(self.opened),
        }
    }
    /// The encoding of segments of a connection with this endpoint.
    pub(super) fn agreement(&self, endpoint: &Endpoint) -> Agreement {
        let agreed = endpoint.agreement(self.config.plan, self.config.probe_exid);
        let mut agreed = Agreement { gateway: self.config.gateway, ..agreed };
        if self.may_be_early(endpoint) {
            agreed.capability.flags |= Capability::EARLY;
        }
        agreed
    }
    /// The settings of a connection to `remote`, which is behind `gateway`, if that is known.
    pub(super) fn config_for(
        &self,
        now: Instant,
        (remote, gateway): (IpAddr, Option<NonZeroU32>),
        endpoint: &Endpoint,
    ) -> skyhaul_tcp::Config {
        let limit = self.limit(now, (remote, gateway), endpoint.longest);
        let mut config = endpoint.config(limit, remote);
        if self.config.search_mtu {
            config.mtu_search |= self.paths.found(now, remote, gateway).is_none();
        }
        config
    }
    /// The random stream of a connection, by its number.
    pub(super) fn stream(&self, number: u64) -> Rng {
        Rng::stream(self.config.seed, &format!("connection.{number}"))
    }

    fn vacant(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        })
    }
    /// Reserves a slot for a connection that is not made yet. It is installed there, or the slot is given back ([`Self::vacate`]).
    pub(super) fn reserve(&mut self) -> ConnId {
        let slot = self.vacant();
        self.id(slot)
    }
    /// Notes for which half-open connection a slot is reserved.
    pub(super) fn reserve_for(&mut self, id: ConnId, half_open: u32) {
        if let Some(s) = self.slots.get_mut(id.slot as usize) {
            s.reserved = Some(half_open);
        }
    }
    /// The half-open connection for which a slot is reserved.
    pub(super) fn reserved(&self, id: ConnId) -> Option<u32> {
        self.slots.get(id.slot as usize).filter(|s| s.generation == id.generation)?.reserved
    }
    /// Gives back a slot that was reserved.
    pub(super) fn vacate(&mut self, id: ConnId) {
        let slot = self.slots.get_mut(id.slot as usize);
        if let Some(s) = slot.filter(|s| s.generation == id.generation && s.conn.is_none()) {
            (s.reserved, s.generation) = (None, s.generation.wrapping_add(1));
            self.free.push(id.slot);
        }
    }
    /// Gives back all slots that are reserved, and returns the identifiers for which they were reserved.
    pub(super) fn vacate_all(&mut self) -> Vec<ConnId> {
        let all = (0..self.slots.len() as u32).map(|slot| self.id(slot));
        let all: Vec<ConnId> = all.filter(|id| self.reserved(*id).is_some()).collect();
        all.iter().for_each(|id| self.vacate(*id));
        all
    }

    /// Puts a connection in the slot that is reserved for it, or in any.
    pub(super) fn install(&mut self, conn: Conn, ends: Ends, reserved: Option<ConnId>) -> u32 {
        let lives = &mut self.past.lives;
        *if conn.accepted_at().is_some() { &mut lives.accepted } else { &mut lives.opened } += 1;
        let slot = reserved.map_or_else(|| self.vacant(), |id| id.slot);
        if let Some(s) = self.slots.get_mut(slot as usize) {
            (s.reserved, s.conn) = (None, Some(Box::new(conn)));
        }
        self.demux.insert(ends, slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let Some(s) = self.slots.get_mut(slot as usize) else { return };
        if let Some(conn) = s.conn.take() {
            s.generation = s.generation.wrapping_add(1);
            self.ledger.strike(&conn);
            self.past.add(&conn);
            self.demux.remove(&Ends::new(conn.local(), conn.remote()), slot);
            self.free.push(slot);
        }
    }

    pub(super) fn id(&self, slot: u32) -> ConnId {
        ConnId { slot, generation: self.slots.get(slot as usize).map_or(0, |s| s.generation) }
    }
    pub(super) fn at(&self, slot: u32) -> Option<&Conn> {
        self.slots.get(slot as usize)?.conn.as_deref()
    }
    pub(super) fn at_mut(&mut self, slot: u32) -> Option<&mut Conn> {
        self.at_work = Some(slot);
        self.slots.get_mut(slot as usize)?.conn.as_deref_mut()
    }
    pub(super) fn get_mut(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.at_work = Some(id.slot);
        let slot = self.slots.get_mut(id.slot as usize).filter(|s| s.generation == id.generation)?;
        slot.conn.as_deref_mut()
    }
    /// The application uses a connection, which may then have something to send.
    pub(super) fn act<T>(
        &mut self,
        now: Instant,
        id: ConnId,
        what: impl FnOnce(&mut Conn) -> T,
    ) -> Option<T> {
        let done = self.contain(now, |host| host.get_mut(id).map(what)).flatten()?;
        self.mark_ready(id.slot);
        Some(done)
    }
    pub(super) fn mark_ready(&mut self, slot: u32) {
        if let Some(c) = self.at_mut(slot).filter(|c| !c.ready) {
            c.ready = true;
            let ((client, server), dscp) = (c.ends(), c.agreement().dscp);
            self.ready.push(|schedule| schedule.place(client, server, dscp), slot);
        }
    }
    pub(super) fn free_port(&mut self, local: IpAddr, remote: SocketAddr) -> Option<u16> {
        for _ in FIRST_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = if port == u16::MAX { FIRST_PORT } else { port + 1 };
            let end = SocketAddr::new(local, port);
            if self.config.is_ours(end, remote) && !self.is_taken(end, remote) {
                return Some(port);
            }
        }
        None
    }
    pub(super) fn is_taken(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let ends = Ends::new(local, remote);
        self.demux.has(&ends) || self.time_wait.find(&ends).is_some() || self.half_open.find(&ends).is_some()
    }
    pub(super) fn check_ends(&self, local: IpAddr, remote: IpAddr) -> Result<(), HostError> {
        if !self.config.transparent && !self.config.addresses.contains(&local) {
            return Err(HostError::NotOurs(local));
        }
        if local.is_ipv4() == remote.is_ipv4() { Ok(()) } else { Err(HostError::Families { local, remote }) }
    }
    /// TCP options and payload that fit into a packet to `remote`, bytes.
    pub(super) fn limit(
        &self,
        now: Instant,
        (remote, gateway): (IpAddr, Option<NonZeroU32>),
        longest: Option<u32>,
    ) -> u32 {
        let known = [self.paths.mtu(now, remote), self.paths.found(now, remote, gateway)];
        let route = self.routes.get(&remote).and_then(|(mtu, _)| *mtu);
        let mtu = known.into_iter().chain([route]).flatten().fold(self.config.mtu, u32::min);
        segment_limit(longest.map_or(mtu, |longest| mtu.min(longest)), remote)
    }
}

/// TCP options and payload that a packet of `mtu` bytes has room for.
pub(super) fn segment_limit(mtu: u32, to: IpAddr) -> u32 {
    mtu.saturating_sub(headers(to))
}

/// Remembers what a connection says of the MTU of its path.
pub(super) fn learn_mtu(paths: &Paths, now: Instant, conn: &Conn, news: MtuNews) {
    let (to, gateway) = (conn.remote().ip(), conn.peer_gateway());
    match news {
        MtuNews::Begun => {
            // A peer that has opened the connection is a client: no new connection goes to its address.
            if let Some(gateway) = gateway.filter(|_| conn.accepted_at().is_none()) {
                paths.stands_before(to, gateway);
            }
        }
        MtuNews::Found(limit) => paths.find(now, (to, gateway), limit + headers(to), true),
        MtuNews::Part(limit) => paths.find(now, (to, gateway), limit + headers(to), false),
        MtuNews::Doubted => paths.doubt(to, gateway),
    }
}

/// Bytes of headers without options.
pub(super) fn headers(to: IpAddr) -> u32 {
    let ip = if to.is_ipv4() { ip::V4_HEADER } else { ip::V6_HEADER };
    (ip + skyhaul_wire::tcp::HEADER) as u32
}
