//! Summary of a connection, kept after the connection is gone.

use crate::host::{Conn, Failure};
use skyhaul_cc::ProbeSupport;
use skyhaul_tcp::{Counters, State};
use std::net::SocketAddr;

/// Summary of a connection, kept after the connection is gone.
#[derive(Clone, Debug)]
pub struct Account {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Payload of a full segment, bytes.
    pub segment_size: u32,
    /// Bytes that the application has read.
    pub bytes_read: u64,
    /// Counters of the sending half.
    pub counters: Counters,
    /// Whether the peer answers probes.
    pub probes: ProbeSupport,
    /// The handshake was completed.
    pub connected: bool,
    /// The connection closed in order: everything was acknowledged, our FIN included.
    pub in_order: bool,
    /// Why it failed; `None` if it has not, or if this end aborted it.
    pub failure: Option<Failure>,
}

impl Account {
    /// Summary of this connection at the present moment.
    #[must_use]
    pub fn of(c: &Conn) -> Self {
        let closed = matches!(c.tcp().state(), State::FinWait2 | State::TimeWait) || c.ended_in_order();
        Self {
            local: c.local(),
            remote: c.remote(),
            segment_size: c.segment_size(),
            bytes_read: c.bytes_read(),
            counters: c.counters(),
            probes: c.probe_support(),
            connected: c.is_connected(),
            in_order: c.failure().is_none() && closed,
            failure: c.failure(),
        }
    }
}
