//! What a host is.

use super::secret::Secret;
use skyhaul_wire::Plan;
use std::net::IpAddr;
use std::num::NonZeroU32;

/// Limit of the memory held by connections by default, bytes.
pub const MEMORY: u64 = 1 << 30;

/// Most SYN-ACKs per second by default.
pub const SYN_ACKS: u32 = 100_000;

/// What a host is.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// It stands in for others: it takes packets to any address, and opens connections from any. Who gives it packets has
    /// chosen them.
    pub transparent: bool,
    /// What it is known by to other gateways that stand in for hosts; stated in each SYN.
    pub gateway: Option<NonZeroU32>,
    /// Where an outlet takes only so many packets, clients take turns instead of connections.
    pub by_client: bool,
    /// Longest packet that its device takes, bytes.
    pub mtu: u32,
    /// How low priority is written.
    pub plan: Plan,
    /// Keys of its sequence numbers and timestamps.
    pub secret: Secret,
    /// Seed of what congestion controls draw.
    pub seed: u64,
    /// Identifier of the option for probes ([`skyhaul_wire::PROBE_EXID`]).
    pub probe_exid: u32,
    /// Most connections; half-open ones and those in TIME-WAIT have tables of their own.
    pub most: usize,
    /// Most half-open connections; beyond them cookies answer (RFC 4987 §3.6).
    pub backlog: usize,
    /// Most SYN-ACKs per second, cookies and repetitions included: what forged addresses can make the host send to others.
    pub syn_acks: u32,
    /// Most connections in TIME-WAIT that no application holds; beyond them the oldest goes.
    pub most_waiting: usize,
    /// Limit of the memory held by connections, bytes ([`crate::host::Memory`]). Beyond it data is not taken; 16 KiB in each
    /// direction are allowed to every connection all the same.
    pub memory: u64,
    /// Keep what each connection does, so that it can be done again ([`crate::host::Journal::replay`]). Memory grows with each segment.
    pub record: bool,
}

impl HostConfig {
    /// A host with these addresses; 1500-byte packets, the rest by default.
    #[must_use]
    pub fn new(addresses: Vec<IpAddr>, secret: Secret) -> Self {
        Self {
            addresses,
            transparent: false,
            gateway: None,
            by_client: false,
            mtu: 1500,
            plan: Plan::LowerEffort,
            secret,
            seed: 1,
            probe_exid: skyhaul_wire::PROBE_EXID,
            most: 65_536,
            backlog: 4096,
            syn_acks: SYN_ACKS,
            most_waiting: 65_536,
            memory: MEMORY,
            record: false,
        }
    }
}
