//! How connections of a host behave.

use skyhaul_tcp::Config;
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_wire::{Agreement, Capability, Plan, Profile};
use std::net::IpAddr;

/// A simulated sender may have a buffer without limit, since it keeps lengths only; on a wire it keeps bytes. This is
/// more than 622 Mbit/s over GEO have on the way (43 MB).
const MOST_SEND_BUFFER: u64 = 64 << 20;

/// How connections of a host behave.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The endpoint's settings; what packets have room for and how probes are negotiated is set by the host.
    pub tcp: Config,
    /// The congestion control.
    pub cc: skyhaul_cc::Config,
    /// How probes are marked.
    pub profile: Profile,
    /// DSCP of its packets, but for those of low priority.
    pub dscp: u8,
    /// Longest packet, bytes, where that is less than the device takes; `None` for as long as the device takes them.
    pub longest: Option<u32>,
}

/// What a peer takes that does not say how much, bytes of payload (RFC 9293 §3.7.1).
pub(super) fn unstated_mss(remote: IpAddr) -> u16 {
    if remote.is_ipv4() { 536 } else { 1220 }
}

impl Endpoint {
    /// The endpoint of a host on an open network with this congestion control; probes are negotiated and marked with an option.
    #[must_use]
    pub fn host(cc: skyhaul_cc::Config) -> Self {
        Self { tcp: Config::host(), cc, profile: Profile::Option, dscp: 0, longest: None }
    }

    /// The settings of a connection to `remote` whose packets have room for `limit` bytes of options and payload.
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
        // Bits have no room for numbers; with `Compact` the handshake decides.
        c.probe_ids = matches!(self.profile, Profile::Option | Profile::Compact);
        c
    }
    /// What our own segments are written with.
    pub(super) fn agreement(&self, plan: Plan, probe_exid: u32) -> Agreement {
        let mut a = Agreement { plan, probe_exid, dscp: self.dscp, ..Agreement::with(self.profile) };
        if !self.tcp.dsack {
            a.capability.flags &= !Capability::DSACK;
        }
        a
    }
}
