//! Why a host refuses a request.

use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// Why a host refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// The port already has a listener.
    #[error("port {0} is in use by another listener of this stack: choose another one")]
    PortInUse(u16),
    /// A connection with these ends exists.
    #[error("{local} is already connected to {remote}: choose another local port, or none")]
    InUse {
        /// Local end.
        local: SocketAddr,
        /// Remote end.
        remote: SocketAddr,
    },
    /// The local address is not one of the host's.
    #[error("{0} is not an address of this stack")]
    NotOurs(IpAddr),
    /// The addresses are of different families.
    #[error("{local} cannot reach {remote}: one is an IPv4 address, the other an IPv6 address")]
    Families {
        /// Local address.
        local: IpAddr,
        /// Remote address.
        remote: IpAddr,
    },
    /// The maximum number of connections is reached.
    #[error("the limit of {0} connections is reached")]
    TooMany(usize),
    /// No port for datagrams is free.
    #[error("no port is left for datagrams")]
    NoDatagramPort,
    /// The datagram exceeds the MTU of the device.
    #[error(
        "a datagram of {bytes} bytes of payload does not fit into a packet of this device: write at most {most}"
    )]
    TooLong {
        /// Bytes of payload.
        bytes: usize,
        /// Available bytes.
        most: usize,
    },
    /// No port for connections to this end is free.
    #[error("no port is left for another connection to {0}")]
    NoPort(SocketAddr),
}
