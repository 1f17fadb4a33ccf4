//! Configuration of the connections of a host.

use skyhaul_tcp::Config;
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_wire::{Agreement, Capability, Plan, Profile};
use std::net::IpAddr;

/// Maximum send buffer, bytes. A simulated sender may have an unlimited buffer since it stores only lengths; a real
/// one stores bytes. This exceeds the BDP of 622 Mbit/s over GEO (43 MB).
const MOST_SEND_BUFFER: u64 = 64 << 20;

/// Configuration of the connections of a host.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Settings of the TCP endpoint; the host sets segment sizes and the negotiation of probes.
    pub tcp: Config,
    /// The congestion control.
    pub cc: skyhaul_cc::Config,
    /// How probes are marked.
    pub profile: Profile,
    /// DSCP of its packets, except those of low priority.
    pub dscp: u8,
    /// Longest packet, bytes, if shorter than the device's MTU; `None` for the device's MTU.
    pub longest: Option<u32>,
}

/// Payload that a peer without an MSS option accepts, bytes (RFC 9293 §3.7.1).
pub(super) fn unstated_mss(remote: IpAddr) -> u16 {
    if remote.is_ipv4() { 536 } else { 1220 }
}

impl Endpoint {
    /// An endpoint for an open network with this congestion control; probes are negotiated and marked with an
    /// option.
    #[must_use]
    pub fn host(cc: skyhaul_cc::Config) -> Self {
        Self { tcp: Config::host(), cc, profile: Profile::Option, dscp: 0, longest: None }
    }

    /// The settings of a connection to `remote` whose packets have `limit` bytes for options and payload.
    pub(super) fn config(&self, limit: u32, remote: IpAddr) -> Config {
        let mut c = self.tcp;
        c.unstated_mss = unstated_mss(remote);
        c.segment_limit = Some(limit);
        c.mss = limit;
        c.send_buffer = c.send_buffer.min(MOST_SEND_BUFFER);
        c.probes = match self.profile {
            Profile::Off => ProbeNegotiation::Off,
            Profile::Paper => ProbeNegotiation::Paper,
            Profile::Option | Profile::Compact => ProbeNegotiation::Negotiate,
        };
        // Bits cannot carry numbers; with `Compact` the handshake decides.
        c.probe_ids = matches!(self.profile, Profile::Option | Profile::Compact);
        c
    }
    /// Encoding of our own segments.
    pub(super) fn agreement(&self, plan: Plan, probe_exid: u32) -> Agreement {
        // Data in the class of probes would be taken for low priority.
        let dscp = if plan.is_low(self.dscp) { 0 } else { self.dscp };
        let mut a = Agreement { plan, probe_exid, dscp, ..Agreement::with(self.profile) };
        if !self.tcp.dsack {
            a.capability.flags &= !Capability::DSACK;
        }
        a
    }
}
