//! Repair of datagrams between this gateway and the one at the other end of the link: what is not split is marked by the nftables table, routed
//! into an interface of the gateway, and carried by the state machine of [`skyhaul_repair`].
//!
//! ```text
//! settings  [repair] of the file
//! key       the pre-shared key, the keys that follow from it, and the AEAD
//! hello     the message that begins a session
//! datagram  what is read of a datagram: flow, traffic class, ECN
//! session   one session with the other gateway: its keys, its frames, its signs of life
//! path      everything without I/O: sessions, and whether datagrams are repaired or forwarded
//! passage   whether firewalls let datagrams pass
//! share     how the repaired datagrams and the split connections share a rate
//! moves     the moves of a peer whose address the file leaves open
//! status    its state and counters
//! service   the thread, its interface and its socket
//! pair      two paths that face each other in virtual time, for tests
//! fuzzed    the body of a fuzz target
//! ```

mod datagram;
mod fuzzed;
#[cfg(test)]
mod headers;
mod hello;
mod key;
mod moves;
mod pair;
mod passage;
mod path;
mod service;
mod session;
pub(crate) mod settings;
mod share;
mod status;

pub(crate) use fuzzed::packets;
pub(crate) use service::{DUMMY, Service, View, key_of};
pub use settings::Settings;
pub(crate) use share::Share;
pub use status::{RepairStatus, Totals};
