//! UDP (RFC 768).

use crate::ip::Header;
use crate::{EncodeError, Refusal};

/// Protocol number.
pub const PROTOCOL: u8 = 17;
/// Length of the header, bytes.
pub const HEADER: usize = 8;

/// A datagram, parsed in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp<'a> {
    /// Source.
    pub src_port: u16,
    /// Destination.
    pub dst_port: u16,
    /// Payload.
    pub payload: &'a [u8],
}

impl<'a> Udp<'a> {
    pub(crate) fn parse(ip: &Header, bytes: &'a [u8]) -> Result<Self, Refusal> {
        let (head, _) = bytes.split_first_chunk::<HEADER>().ok_or(Refusal::UdpLength)?;
        let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
        if length < HEADER {
            return Err(Refusal::UdpLength);
        }
        let datagram = bytes.get(..length).ok_or(Refusal::UdpLength)?;
        let none = head[6..8] == [0, 0];
        if none && ip.src.is_ipv6() {
            return Err(Refusal::UdpChecksum); // RFC 8200 §8.1
        }
        if !none && ip.pseudo(length).bytes(datagram).finish() != 0 {
            return Err(Refusal::UdpChecksum);
        }
        Ok(Self {
            src_port: u16::from_be_bytes([head[0], head[1]]),
            dst_port: u16::from_be_bytes([head[2], head[3]]),
            payload: datagram.get(HEADER..).unwrap_or_default(),
        })
    }
}

/// Writes the header of a datagram with `len` bytes of payload; `payload` is its content, or empty if it is zeros.
pub(crate) fn write(
    ip: &Header,
    (src, dst): (u16, u16),
    out: &mut [u8],
    len: usize,
    payload: &[u8],
) -> Result<(), EncodeError> {
    let out: &mut [u8; HEADER] = out.first_chunk_mut().ok_or(EncodeError::Buffer)?;
    let length = u16::try_from(HEADER + len).map_err(|_| EncodeError::TooLong)?;
    out[..2].copy_from_slice(&src.to_be_bytes());
    out[2..4].copy_from_slice(&dst.to_be_bytes());
    out[4..6].copy_from_slice(&length.to_be_bytes());
    out[6..8].copy_from_slice(&[0, 0]);
    // 0 would mean that there is no checksum.
    let sum = match ip.pseudo(length.into()).bytes(out).bytes(payload).finish() {
        0 => 0xffff,
        sum => sum,
    };
    out[6..8].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}
