//! What the operating system provides: devices and their super-packets, namespaces, a clock, waiting, and what the kernel
//! tells of its own connections. Nothing here knows a connection of ours.

mod clock;
mod namespace;
pub(crate) mod netlink;
pub(crate) mod offload;
pub(crate) mod ready;
pub mod routing;
pub mod tun;
pub mod wait;

pub use clock::Clock;
pub use namespace::Namespace;
