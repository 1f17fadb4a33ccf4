//! Why a host does not do what it is asked to.

use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// Why a host does not do what it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// Somebody listens there already.
    #[error("port {0} is in use by another listener of this stack: choose another one")]
    PortInUse(u16),
    /// The pair of ends is taken.
    #[error("{local} is already connected to {remote}: choose another local port, or none")]
    InUse {
        /// Our end.
        local: SocketAddr,
        /// The other end.
        remote: SocketAddr,
    },
    /// The local address is none of the host's.
    #[error("{0} is not an address of this stack")]
    NotOurs(IpAddr),
    /// One is of IPv4, the other of IPv6.
    #[error("{local} cannot reach {remote}: one is an IPv4 address, the other an IPv6 address")]
    Families {
        /// Our address.
        local: IpAddr,
        /// The other.
        remote: IpAddr,
    },
    /// There are as many connections as there may be.
    #[error("the limit of {0} connections is reached")]
    TooMany(usize),
    /// All ports for datagrams are taken.
    #[error("no port is left for datagrams")]
    NoDatagramPort,
    /// The device takes no packet as long as that.
    #[error(
        "a datagram of {bytes} bytes of payload does not fit into a packet of this device: write at most {most}"
    )]
    TooLong {
        /// Bytes of payload.
        bytes: usize,
        /// Bytes that there is room for.
        most: usize,
    },
    /// All ports for connections to this end are taken.
    #[error("no port is left for another connection to {0}")]
    NoPort(SocketAddr),
}
