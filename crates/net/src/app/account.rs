//! What is known of a connection, kept beyond its end.

use crate::host::{Conn, Failure};
use skyhaul_cc::ProbeSupport;
use skyhaul_tcp::{Counters, State};
use std::net::SocketAddr;

/// What is known of a connection, kept beyond its end.
#[derive(Clone, Debug)]
pub struct Account {
    /// Our end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Payload of a full segment, bytes.
    pub segment_size: u32,
    /// Bytes that the application has read.
    pub bytes_read: u64,
    /// What the sending half has done.
    pub counters: Counters,
    /// Whether the peer answers probes.
    pub probes: ProbeSupport,
    /// The handshake was completed.
    pub connected: bool,
    /// Everything was acknowledged, our FIN included.
    pub in_order: bool,
    /// Why it is over, if not in order.
    pub failure: Option<Failure>,
}

impl Account {
    /// Of this connection, as it is now.
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
