//! Repair of datagrams between two gateways, without I/O.
//!
//! Two gateways at the ends of a lossy segment carry datagrams that they do not read: QUIC, IPsec, WireGuard. One
//! numbers them, adds repair symbols of an erasure code (RFC 6363, RFC 5052) and repeats what the code does not cover
//! (selective repeat with limited persistence, RFC 3366 §2). The other one puts them back in order, but holds none
//! longer than a stated time. RFC 8975 describes the field.
//!
//! An [`End`] is one gateway's side of a segment, for both directions. Its driver gives it datagrams ([`End::offer`]),
//! frames of the other end ([`End::receive`]) and the time, and takes frames ([`End::poll_frame`]) and datagrams
//! ([`End::poll_delivery`]).
//!
//! **Congestion is not repaired.** A datagram gets its number when it leaves the gateway's own queue, not when it
//! enters. What the queue drops or marks as congested is thus never repaired, and the inner control learns of it. The
//! queue is that of the bottleneck as long as the configured rate is not above that of the segment.
//!
//! The state machine is the same whether the code computes symbols from bytes ([`code::ReedSolomon`]) or only counts
//! them ([`code::Counted`]), as in the simulator, where packets have no payload. The code is maximum distance separable:
//! any k symbols of a block suffice, so that a count of symbols tells exactly what can be recovered.

pub mod code;
#[cfg(feature = "computed")]
pub mod compress;
mod config;
mod count;
mod end;
mod frame;
#[cfg(feature = "computed")]
pub mod ip;
pub mod loss;
mod receiver;
mod sender;
pub mod wire;

pub use code::Code;
pub use config::{Config, Invalid};
pub use count::Counters;
pub use end::End;
pub use frame::{Delivery, Frame, Installed, Kind, Output, Ranges, Report, TooBig, Treatment};
