//! Super-packets: reading and writing devices whose packets carry a virtio-net header.
//!
//! Consecutive segments of a connection go to the kernel as one packet, which it splits only where it must, or
//! never. In the other direction, the library splits what the kernel sends.
//!
//! Only packets of one connection and one priority are merged, in order, and no packet overtakes another. A probe,
//! like any packet that must stay separate, is written on its own, between the packets before and after it.

mod arrivals;
mod departures;
mod exit;
mod headers;
#[cfg(test)]
mod tests;

pub use arrivals::Arrivals;
pub use departures::Departures;
pub use exit::{Device, Exit};

use tun_rs::VIRTIO_NET_HDR_LEN;

/// Room for the longest super-packet and its header.
const ROOM: usize = (1 << 16) + 2 * VIRTIO_NET_HDR_LEN;
/// Longest super-packet, bytes: the length field has 16 bits.
const LONGEST: usize = 65_535;
/// The device must fill in the TCP checksum (virtio 1.2 §5.1.6, `VIRTIO_NET_HDR_F_NEEDS_CSUM`).
const NEEDS_CHECKSUM: u8 = 1;
