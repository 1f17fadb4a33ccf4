//! Configuration of a host.

use super::paths::Paths;
use super::schedule::Schedule;
use super::secret::Secret;
use super::transparent::Numbers;
use skyhaul_wire::Plan;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Default memory limit of connections, bytes.
pub const MEMORY: u64 = 1 << 30;

/// What each connection may always use in each direction, bytes.
pub(super) const ALWAYS: u64 = 16 << 10;

/// Default limit of SYN-ACKs per second.
pub const SYN_ACKS: u32 = 100_000;

/// The part of all connections that a host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of this host, from 0.
    pub number: usize,
    /// The number of hosts.
    pub of: usize,
}

impl Default for Share {
    fn default() -> Self {
        Self { number: 0, of: 1 }
    }
}

/// Configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Transparent mode: the host accepts packets to any address, and opens connections from any. The source of its
    /// packets must filter them.
    pub transparent: bool,
    /// Number by which other gateways know this gateway; announced in each SYN.
    pub gateway: Option<NonZeroU32>,
    /// Connections to and from other gateways may carry data in their SYNs ([`super::Transparent::connect_early`]). All
    /// hosts with the same [`Self::gateway`] share the numbers of these SYNs. `None`: never.
    pub early: Option<Arc<Numbers>>,
    /// When the outlet is busy, clients take turns instead of connections.
    pub by_client: bool,
    /// How clients that take turns share the outlet.
    pub schedule: Schedule,
    /// Longest packet of its device (MTU), bytes.
    pub mtu: u32,
    /// Connections search for the MTU of paths on which it is not known (RFC 8899).
    pub search_mtu: bool,
    /// Encoding of low priority.
    pub plan: Plan,
    /// Key for its sequence numbers and timestamps.
    pub secret: Secret,
    /// Seed of the random numbers of congestion controls.
    pub seed: u64,
    /// Identifier of the option for probes ([`skyhaul_wire::PROBE_EXID`]).
    pub probe_exid: u32,
    /// Maximum connections; half-open ones and those in TIME-WAIT have tables of their own.
    pub most: usize,
    /// Maximum half-open connections; beyond them the host answers with SYN cookies (RFC 4987 §3.6).
    pub backlog: usize,
    /// Maximum SYN-ACKs per second, including cookies and retransmissions. It limits what the host sends to forged
    /// addresses.
    pub syn_acks: u32,
    /// Maximum connections in TIME-WAIT that no application holds; beyond them the oldest is dropped.
    pub most_waiting: usize,
    /// Memory limit of connections, bytes ([`crate::host::Memory`]). Beyond it the host discards arriving data, but
    /// every connection may always use 16 KiB in each direction.
    pub memory: u64,
    /// Account of several hosts with one memory limit, bytes held; `None`: the host has a limit of its own.
    pub account: Option<Arc<AtomicU64>>,
    /// Path MTUs that several hosts know together; `None`: the host knows those that it has learnt.
    pub paths: Option<Arc<Paths>>,
    /// Which connections are those of this host, if there are several on one device.
    pub share: Share,
    /// Records every connection so that it can be replayed ([`crate::host::Journal::replay`]). Memory grows with
    /// each segment.
    pub record: bool,
}

impl HostConfig {
    /// A host with these addresses, packets of 1500 bytes, and defaults for everything else.
    #[must_use]
    pub fn new(addresses: Vec<IpAddr>, secret: Secret) -> Self {
        Self {
            addresses,
            transparent: false,
            gateway: None,
            early: None,
            by_client: false,
            schedule: Schedule::default(),
            mtu: 1500,
            search_mtu: false,
            plan: Plan::LowerEffort,
            secret,
            seed: 1,
            probe_exid: skyhaul_wire::PROBE_EXID,
            most: 65_536,
            backlog: 4096,
            syn_acks: SYN_ACKS,
            most_waiting: 65_536,
            memory: MEMORY,
            account: None,
            paths: None,
            share: Share::default(),
            record: false,
        }
    }
}
