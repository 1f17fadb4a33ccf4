//! The transport and the link models in real time, on Linux.
//!
//! ```text
//! device    what the operating system provides: TUN devices, namespaces, a clock, waiting
//! host      user-space TCP and UDP over one device that carries IP packets; its driver runs it by the real clock
//! emulator  a scenario's links between two such devices, driven by the real clock
//! app       what runs on a host: the workloads of `skyhaul_apps`, sinks, servers
//! world     one scenario by our transport, and by the kernel's, over the emulator
//! ```
//! The crates below (`tcp`, `path`, `wire`) read no clock and own no socket; this crate does both.
#![cfg(target_os = "linux")]
#![warn(clippy::indexing_slicing)]

pub mod app;
mod device;
pub mod doctor;
pub mod emulator;
pub mod enclosure;
mod error;
#[doc(hidden)]
pub mod fuzz;
pub mod host;
mod outlet;
pub mod world;

#[doc(hidden)]
pub use device::offload;
pub use device::{Clock, Namespace, ipv6, nftables, routing, sockets, tun, wait};
pub use error::NetError;
pub use host::{driver, tap};
