//! The header of a captured packet. Its checksums cannot be verified: only the first bytes of the packet are captured, and the
//! checksum of a packet that is about to be sent may not have been filled in yet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes captured of each packet: room for an IPv4 header with all options (60 bytes) and the fixed part of a TCP header (20).
pub(crate) const CAPTURED: usize = 96;

/// TCP flags.
pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// What is read of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) seq: u32,
    pub(crate) flags: u8,
    /// Length of its payload, bytes.
    pub(crate) payload: u32,
}

impl Head {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?)))
}

/// Reads the header of a packet of `length` bytes of which `bytes` were captured. `None` if the packet is not TCP, is a fragment,
/// has IPv6 extension headers, or its lengths contradict each other.
pub(crate) fn parse(bytes: &[u8], length: usize) -> Option<Head> {
    let first = bytes.first()?;
    let (addresses, tcp, end): ([IpAddr; 2], usize, usize) = match first >> 4 {
        4 => {
            let header = usize::from(first & 15) * 4;
            let fragment = short(bytes, 6)? & 0x3fff;
            if header < 20 || *bytes.get(9)? != 6 || fragment != 0 {
                return None;
            }
            let address = |at: usize| Some(Ipv4Addr::from(*bytes.get(at..at + 4)?.first_chunk::<4>()?));
            ([address(12)?.into(), address(16)?.into()], header, short(bytes, 2)?)
        }
        6 => {
            if *bytes.get(6)? != 6 {
                return None;
            }
            let address = |at: usize| Some(Ipv6Addr::from(*bytes.get(at..at + 16)?.first_chunk::<16>()?));
            // A length of 0 is that of a packet beyond 64 KiB, which offloading has joined.
            let end = Some(short(bytes, 4)?).filter(|n| *n > 0).map_or(length, |n| 40 + n);
            ([address(8)?.into(), address(24)?.into()], 40, end)
        }
        _ => return None,
    };
    let end = if end == 0 { length } else { end };
    let offset = usize::from(*bytes.get(tcp + 12)? >> 4) * 4;
    let seq = bytes.get(tcp + 4..tcp + 8)?.first_chunk::<4>().copied().map(u32::from_be_bytes)?;
    let flags = *bytes.get(tcp + 13)?;
    if offset < 20 || end < tcp + offset || end > length {
        return None;
    }
    let [from, to] = addresses;
    Some(Head {
        from: SocketAddr::new(from, short(bytes, tcp)? as u16),
        to: SocketAddr::new(to, short(bytes, tcp + 2)? as u16),
        seq,
        flags,
        payload: (end - tcp - offset) as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_tcp::{Flags, Segment, Seq};
    use skyhaul_wire::{Agreement, Envelope, Payload};

    #[test]
    fn what_was_written_is_read() {
        for (from, to) in [("10.0.0.1:1000", "192.0.2.1:80"), ("[fd00::1]:1000", "[2001:db8::1]:80")] {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            let segment = Segment {
                seq: Seq(0x8000_0001),
                len: 700,
                flags: Flags::ACK,
                ts: Some((1, 2)),
                ..Segment::default()
            };
            let mut room = [0; 1500];
            let payload = [7; 700];
            let n = skyhaul_wire::encode(
                &mut room,
                &Envelope::new(from, to),
                &Agreement::default(),
                &segment,
                Payload::Bytes(&payload),
            );
            let n = n.expect("fits").total;
            let head = parse(&room[..CAPTURED], n).expect("is one");
            assert_eq!(head, Head { from, to, seq: 0x8000_0001, flags: ACK, payload: 700 });
            assert_eq!(parse(&room[..CAPTURED], n - 1), None, "the IP length exceeds the packet's");
            for short in 0..33 {
                assert_eq!(parse(&room[..short], n), None);
            }
        }
    }
}
