//! Which connection an IP packet is about, without parsing all of it. Checksums are not looked at: a capture shows corrupt packets, too.

use std::net::{IpAddr, SocketAddr};

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
const ICMPV6: u8 = 58;
/// Bytes before the quoted packet in an ICMP message (RFC 792, RFC 4443).
const QUOTED: usize = 8;

/// Source and destination of the TCP packet that a packet is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcpEnds {
    /// It is one itself.
    Itself(SocketAddr, SocketAddr),
    /// It is an ICMP message, which quotes it.
    Quoted(SocketAddr, SocketAddr),
}

/// Which connection a packet is about.
pub(super) fn about(packet: &[u8]) -> Option<TcpEnds> {
    let (protocol, src, dst, payload) = network(packet)?;
    let quoted = match protocol {
        TCP => return addressed(src, dst, payload).map(|(src, dst)| TcpEnds::Itself(src, dst)),
        ICMP | ICMPV6 => payload.get(QUOTED..)?,
        _ => return None,
    };
    let (protocol, src, dst, payload) = network(quoted)?;
    if protocol != TCP {
        return None;
    }
    addressed(src, dst, payload).map(|(src, dst)| TcpEnds::Quoted(src, dst))
}

fn addressed(src: IpAddr, dst: IpAddr, tcp: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let port = |at: usize| Some(u16::from_be_bytes([*tcp.get(at)?, *tcp.get(at + 1)?]));
    Some((SocketAddr::new(src, port(0)?), SocketAddr::new(dst, port(2)?)))
}

/// Protocol, addresses and payload of an IP packet without extension headers.
pub(super) fn network(packet: &[u8]) -> Option<(u8, IpAddr, IpAddr, &[u8])> {
    let first = packet.first()?;
    match first >> 4 {
        4 => {
            let length = usize::from(first & 15) * 4;
            let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
            Some((*packet.get(9)?, address(12)?, address(16)?, packet.get(length.max(20)..)?))
        }
        6 => {
            let address =
                |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
            Some((*packet.get(6)?, address(8)?, address(24)?, packet.get(40..)?))
        }
        _ => None,
    }
}

/// An IPv4 packet with no more than [`network`] reads.
#[cfg(test)]
pub(super) fn v4(protocol: u8, src: [u8; 4], dst: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut p = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    p.extend(src);
    p.extend(dst);
    p.extend(payload);
    p
}
