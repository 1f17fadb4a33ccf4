//! ICMP (RFC 792, RFC 4443): messages that a transport must process (RFC 1191, RFC 8201, RFC 5927), and replies to
//! echo requests.

use crate::checksum::Sum;
use crate::ip::{Header, V4_HEADER, V6_HEADER, v4, v6};
use crate::{EncodeError, Refusal, tcp};
use core::net::{IpAddr, SocketAddr};
use skyhaul_tcp::Seq;

/// Number of the protocol over IPv4.
pub const PROTOCOL_V4: u8 = 1;
/// Number of the protocol over IPv6.
pub const PROTOCOL_V6: u8 = 58;
/// Smallest MTU accepted from an ICMPv6 message, bytes: the minimum of IPv6 (RFC 8200 §5).
pub const LEAST_MTU_V6: u32 = 1280;
/// Smallest MTU accepted from an ICMP message over IPv4, bytes: that of Linux.
pub const LEAST_MTU_V4: u32 = 552;

const HEADER: usize = 8;

/// The segment quoted in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Its source.
    pub src: SocketAddr,
    /// Its destination.
    pub dst: SocketAddr,
    /// Its sequence number.
    pub seq: Seq,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmp<'a> {
    /// A packet was too long for the next link and must not be fragmented.
    TooBig {
        /// MTU of the next link, bytes; 0 from routers that do not report it.
        mtu: u32,
        /// The packet.
        quoted: Quoted,
    },
    /// The destination cannot be reached.
    Unreachable {
        /// The condition is permanent: nothing listens there, or it is prohibited.
        hard: bool,
        /// The packet.
        quoted: Quoted,
    },
    /// An echo request: identifier, sequence number and data.
    EchoRequest(&'a [u8]),
    /// Anything else.
    Other,
}

impl<'a> Icmp<'a> {
    pub(crate) fn parse(ip: &Header, bytes: &'a [u8]) -> Result<Self, Refusal> {
        let (head, body) = bytes.split_first_chunk::<HEADER>().ok_or(Refusal::IcmpTruncated)?;
        let v4 = ip.protocol == PROTOCOL_V4;
        let sum = if v4 { Sum::default() } else { ip.pseudo(bytes.len()) };
        if sum.bytes(bytes).finish() != 0 {
            return Err(Refusal::IcmpChecksum);
        }
        let short = u32::from(u16::from_be_bytes([head[6], head[7]]));
        let long = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let about = if v4 { quoted_v4(body) } else { quoted_v6(body) };
        Ok(match (v4, head[0], head[1], about) {
            (true, 8, 0, _) | (false, 128, 0, _) => Self::EchoRequest(bytes.get(4..).unwrap_or_default()),
            (true, 3, 4, Some(quoted)) => Self::TooBig { mtu: short, quoted },
            // RFC 4443 §3.2: the receiver ignores the code.
            (false, 2, _, Some(quoted)) => Self::TooBig { mtu: long, quoted },
            // RFC 1122 §4.2.3.9: protocol and port unreachable are hard, and so is administrative prohibition.
            (true, 3, code, Some(quoted)) => {
                Self::Unreachable { hard: matches!(code, 2 | 3 | 9 | 10 | 13), quoted }
            }
            // RFC 4443 §3.1: 1 is administrative prohibition, of which 5 and 6 are kinds; 4 is the port.
            (false, 1, code, Some(quoted)) => Self::Unreachable { hard: matches!(code, 1 | 4..=6), quoted },
            _ => Self::Other,
        })
    }
}

/// Ports and sequence number of a quoted segment: RFC 792 guarantees only its first eight bytes.
fn quoted(src: IpAddr, dst: IpAddr, protocol: u8, rest: &[u8]) -> Option<Quoted> {
    let &[a, b, c, d, e, f, g, h] = rest.first_chunk()?;
    (protocol == tcp::PROTOCOL).then(|| Quoted {
        src: SocketAddr::new(src, u16::from_be_bytes([a, b])),
        dst: SocketAddr::new(dst, u16::from_be_bytes([c, d])),
        seq: Seq(u32::from_be_bytes([e, f, g, h])),
    })
}

fn quoted_v4(body: &[u8]) -> Option<Quoted> {
    let fixed: &[u8; V4_HEADER] = body.first_chunk()?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    // Only a first fragment, or a packet that is not fragmented, contains the ports.
    let first_fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff == 0;
    let is_valid = fixed[0] >> 4 == 4 && header >= V4_HEADER && first_fragment;
    quoted(v4::address(&fixed[12..]), v4::address(&fixed[16..]), fixed[9], body.get(header..)?)
        .filter(|_| is_valid)
}

fn quoted_v6(body: &[u8]) -> Option<Quoted> {
    let (fixed, rest) = body.split_first_chunk::<V6_HEADER>()?;
    quoted(v6::address(&fixed[8..]), v6::address(&fixed[24..]), fixed[6], rest).filter(|_| fixed[0] >> 4 == 6)
}

/// Writes the reply to an echo request that came with the header `asked`; returns its length.
///
/// # Errors
/// If the buffer is too small.
pub fn encode_echo_reply(out: &mut [u8], asked: &Header, echo: &[u8]) -> Result<usize, EncodeError> {
    let v4 = asked.src.is_ipv4();
    let protocol = if v4 { PROTOCOL_V4 } else { PROTOCOL_V6 };
    let ip = Header { src: asked.dst, dst: asked.src, protocol, ttl: 64, ecn: 0, ..*asked };
    let length = 4 + echo.len();
    let at = ip.write(out, length)?;
    let body = out.get_mut(at..at + length).ok_or(EncodeError::Buffer)?;
    let (head, data) = body.split_first_chunk_mut().ok_or(EncodeError::Buffer)?;
    *head = [if v4 { 0 } else { 129 }, 0, 0, 0];
    data.copy_from_slice(echo);
    let sum = if v4 { Sum::default() } else { ip.pseudo(length) };
    let [high, low] = sum.bytes(head).bytes(data).finish().to_be_bytes();
    *head = [head[0], head[1], high, low];
    Ok(at + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Packet, Transport};

    fn message(v4: bool, kind: u8, code: u8, word: u32, quote: &[u8]) -> ([u8; 256], usize) {
        let (src, dst): (IpAddr, IpAddr) = if v4 {
            ([192, 0, 2, 1].into(), [192, 0, 2, 2].into())
        } else {
            ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap())
        };
        let ip = Header { src, dst, protocol: if v4 { 1 } else { 58 }, ..Header::default() };
        let mut out = [0; 256];
        let len = 8 + quote.len();
        let at = ip.write(&mut out, len).unwrap();
        out[at] = kind;
        out[at + 1] = code;
        out[at + 4..at + 8].copy_from_slice(&word.to_be_bytes());
        out[at + 8..at + len].copy_from_slice(quote);
        let sum = if v4 { Sum::default() } else { ip.pseudo(len) };
        let sum = sum.bytes(&out[at..at + len]).finish();
        out[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
        (out, at + len)
    }

    fn read(bytes: &[u8]) -> Result<Icmp<'_>, Refusal> {
        match Packet::parse(bytes)?.transport {
            Transport::Icmp(m) => Ok(m),
            other => panic!("{other:?}"),
        }
    }

    fn quote(v4: bool) -> ([u8; 48], usize) {
        let (src, dst): (IpAddr, IpAddr) = if v4 {
            ([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
        } else {
            ("2001:db8:1::1".parse().unwrap(), "2001:db8:1::2".parse().unwrap())
        };
        let ip = Header { src, dst, ..Header::default() };
        let mut out = [0; 48];
        let at = ip.write(&mut out, 1400).unwrap();
        out[at..at + 8].copy_from_slice(&[0x13, 0x88, 0, 80, 0, 0, 1, 2]);
        (out, at + 8)
    }

    #[test]
    fn messages_about_a_path_name_the_segment_and_the_mtu() {
        for v4 in [true, false] {
            let (q, n) = quote(v4);
            let (kind, code) = if v4 { (3, 4) } else { (2, 0) };
            let (m, len) = message(v4, kind, code, 1280, &q[..n]);
            let Ok(Icmp::TooBig { mtu: 1280, quoted }) = read(&m[..len]) else { panic!("{v4}") };
            assert_eq!((quoted.src.port(), quoted.dst.port(), quoted.seq), (5000, 80, Seq(258)));
            // Truncated within the quoted header: the segment cannot be identified.
            let (m, len) = message(v4, kind, code, 1280, &q[..n - 1]);
            assert_eq!(read(&m[..len]), Ok(Icmp::Other));
        }
        // Over IPv6 the receiver ignores the code. Over IPv4 the code tells what is unreachable.
        let (q, n) = quote(false);
        let (m, len) = message(false, 2, 1, 1280, &q[..n]);
        assert!(matches!(read(&m[..len]), Ok(Icmp::TooBig { mtu: 1280, .. })));
    }

    #[test]
    fn the_code_tells_whether_a_destination_is_unreachable_for_good() {
        for (v4, kind, permanent) in [(true, 3, &[2, 3, 9, 10, 13][..]), (false, 1, &[1, 4, 5, 6][..])] {
            let (q, n) = quote(v4);
            for code in (0..16).filter(|code| !v4 || *code != 4) {
                let (m, len) = message(v4, kind, code, 0, &q[..n]);
                let Ok(Icmp::Unreachable { hard, .. }) = read(&m[..len]) else { panic!("{v4} {code}") };
                assert_eq!(hard, permanent.contains(&code), "{v4} {code}");
            }
        }
    }

    #[test]
    fn an_echo_is_answered_with_what_it_brought() {
        for v4 in [true, false] {
            let (m, len) = message(v4, if v4 { 8 } else { 128 }, 0, 0x0001_0002, b"twelve bytes");
            let packet = Packet::parse(&m[..len]).unwrap();
            let Transport::Icmp(Icmp::EchoRequest(echo)) = packet.transport else { panic!("{v4}") };
            let mut out = [0; 128];
            let n = encode_echo_reply(&mut out, &packet.ip, echo).unwrap();
            assert_eq!(n, len);
            let back = Packet::parse(&out[..n]).unwrap();
            assert_eq!((back.ip.src, back.ip.dst), (packet.ip.dst, packet.ip.src));
            assert_eq!(back.transport, Transport::Icmp(Icmp::Other));
            assert_eq!(&out[n - 12..n], b"twelve bytes");
        }
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        let (mut m, len) = message(true, 8, 0, 1, b"x");
        m[len - 1] ^= 1;
        assert_eq!(read(&m[..len]), Err(Refusal::IcmpChecksum));
        assert_eq!(read(&message(true, 8, 0, 1, b"").0[..20]), Err(Refusal::IpTruncated));
    }
}
