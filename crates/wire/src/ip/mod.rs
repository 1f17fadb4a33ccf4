//! IPv4 and IPv6 headers.

pub(crate) mod v4;
pub(crate) mod v6;

pub use v4::{mark_congestion, remark};

use crate::checksum::Sum;
use crate::{EncodeError, Refusal};
use core::net::{IpAddr, Ipv4Addr};

/// Length of an IPv4 header without options, bytes.
pub const V4_HEADER: usize = 20;
/// Length of an IPv6 header without extensions, bytes.
pub const V6_HEADER: usize = 40;

/// Protocol number of TCP.
pub(crate) const TCP: u8 = 6;

/// Fields of a header other than lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Protocol of the payload: 6 TCP, 17 UDP.
    pub protocol: u8,
    /// Differentiated services, six bits.
    pub dscp: u8,
    /// Explicit congestion notification, two bits.
    pub ecn: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Identification (IPv4 only).
    pub id: u16,
    /// Flow label, 20 bits (IPv6 only).
    pub flow_label: u32,
}

impl Default for Header {
    fn default() -> Self {
        Self {
            src: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            dst: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            protocol: TCP,
            dscp: 0,
            ecn: 0,
            ttl: 64,
            id: 0,
            flow_label: 0,
        }
    }
}

impl Header {
    /// Writes the header of a packet with `payload` bytes after it; returns its length.
    pub(crate) fn write(&self, out: &mut [u8], payload: usize) -> Result<usize, EncodeError> {
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => v4::write(self, src, dst, out, payload),
            (IpAddr::V6(src), IpAddr::V6(dst)) => v6::write(self, src, dst, out, payload),
            _ => Err(EncodeError::Families),
        }
    }

    /// The sum over the pseudo header of a payload of `len` bytes (RFC 9293 §3.1, RFC 8200 §8.1).
    pub(crate) fn pseudo(&self, len: usize) -> Sum {
        let sum = match (self.src, self.dst) {
            (IpAddr::V4(a), IpAddr::V4(b)) => Sum::default().bytes(&a.octets()).bytes(&b.octets()),
            (IpAddr::V6(a), IpAddr::V6(b)) => Sum::default().bytes(&a.octets()).bytes(&b.octets()),
            _ => Sum::default(),
        };
        sum.long(self.protocol.into()).long(len as u32)
    }
}

/// Parses an IPv4 or IPv6 header and returns it with the payload. Bytes beyond the length field are padding.
///
/// # Errors
/// The reason of the refusal.
pub fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), Refusal> {
    match bytes.first().ok_or(Refusal::IpTruncated)? >> 4 {
        4 => v4::parse(bytes),
        6 => v6::parse(bytes),
        _ => Err(Refusal::IpVersion),
    }
}
