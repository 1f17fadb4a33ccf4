//! The transport and the link models in real time, on Linux.
//!
//! ```text
//! host      user-space TCP: connections over one device that carries IP packets
//! app       what runs on a host: senders, sinks, servers
//! driver    a host on a TUN device, driven by the real clock
//! emulator  a scenario's links between two such devices, driven by the real clock
//! world     one scenario by our transport, and by the kernel's, over the emulator
//! ```
//! Everything below (`tcp`, `path`, `wire`) reads no clock and owns no socket; this crate has both. Names of the
//! operating system appear nowhere else.
#![cfg(target_os = "linux")]

pub mod app;
mod clock;
pub mod doctor;
pub mod driver;
pub mod emulator;
pub mod enclosure;
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod host;
mod namespace;
mod netlink;
mod offload;
pub mod tun;
pub mod wait;
pub mod world;

pub use clock::Clock;
pub use error::NetError;
pub use namespace::Namespace;
