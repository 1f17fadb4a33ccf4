//! Services of the operating system: devices and super-packets, namespaces, routes, clocks, waiting, and the kernel's own
//! connections. This module does not know our connections.

mod clock;
pub mod ipv6;
mod namespace;
pub(crate) mod netlink;
pub mod nftables;
pub mod offload;
pub(crate) mod ready;
pub mod routing;
pub mod sockets;
pub mod tun;
pub mod wait;

pub use clock::Clock;
pub use namespace::Namespace;
