//! What carries the data of flows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_apps::Transport as Over;

/// Headers of IPv4 and UDP (RFC 791, RFC 768), in bytes.
pub const UDP_HEADER: u32 = 28;

/// What carries the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "TransportSpec")]
pub enum Transport {
    /// A connection with congestion control.
    #[default]
    Tcp,
    /// Datagrams: nothing is repeated, and nothing reacts to losses.
    Udp,
}

impl Transport {
    /// The same for a workload, whose full segments have `mss` bytes of payload.
    #[must_use]
    pub fn for_apps(self, mss: u32) -> Over {
        match self {
            Self::Tcp => Over::Stream { segment: mss },
            Self::Udp => Over::Datagrams { header: UDP_HEADER },
        }
    }
}
