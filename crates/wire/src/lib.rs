//! Converts bytes to segments and back.
//!
//! ```text
//! bytes ── Packet::parse ──▶ Packet ── Tcp::segment ──▶ skyhaul_tcp::Segment + payload
//!          (validates)       (views)   (what was agreed)
//! bytes ◀─────────────────── encode ◀────────────────── Segment + payload
//! ```
//! IPv4 (RFC 791), IPv6 (RFC 8200), TCP with options (RFC 9293, 2018, 2883, 7323), UDP (RFC 768), ICMP (RFC 792,
//! 4443), checksums (RFC 1071, 1624), and probe marks in three profiles ([`Profile`]). Refusals are counted by
//! reason ([`Refusal`], [`Refusals`]); no input causes a panic.
//!
//! Packets are read in place and written into a buffer of the caller, without allocation. With the feature
//! `pcapng`, which needs the standard library, packets can be written to a capture file.
#![cfg_attr(not(feature = "pcapng"), no_std)]
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing)]

mod agreement;
pub mod checksum;
mod encode;
pub mod icmp;
pub mod ip;
mod packet;
#[cfg(feature = "pcapng")]
pub mod pcapng;
mod refusal;
mod seq;
pub mod tcp;
pub mod udp;
mod unwritable;

pub use agreement::{ACK_RATIO_EXID, Agreement, Capability, PROBE_EXID, Plan, Profile, RATE_EXID};
pub use encode::{Checksum, Encoded, Envelope, Payload, encode, encode_udp, encode_with, sack_room};
pub use packet::{Packet, Transport};
pub use refusal::{Refusal, Refusals};
pub use seq::Unwrapper;
pub use unwritable::EncodeError;

/// Maximum length of our headers, bytes: IPv6 without extensions, TCP with all its options.
pub const MAX_HEADER: usize = ip::V6_HEADER + tcp::MAX_HEADER;
