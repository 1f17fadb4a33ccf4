//! IPv6 (RFC 8200).

use super::{Header, V6_HEADER};
use crate::{EncodeError, Refusal};
use core::net::{IpAddr, Ipv6Addr};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// Maximum number of extension headers.
const MOST_EXTENSIONS: usize = 8;

pub(super) fn write(
    h: &Header,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    out: &mut [u8],
    payload: usize,
) -> Result<usize, EncodeError> {
    let length = u16::try_from(payload).map_err(|_| EncodeError::TooLong)?;
    let out: &mut [u8; V6_HEADER] = out.first_chunk_mut().ok_or(EncodeError::Buffer)?;
    let class = u32::from(h.dscp << 2 | h.ecn & 3);
    let first = 6 << 28 | class << 20 | h.flow_label & 0xf_ffff;
    out[..4].copy_from_slice(&first.to_be_bytes());
    out[4..6].copy_from_slice(&length.to_be_bytes());
    out[6] = h.protocol;
    out[7] = h.ttl;
    out[8..24].copy_from_slice(&src.octets());
    out[24..40].copy_from_slice(&dst.octets());
    Ok(V6_HEADER)
}

/// Options of a header (RFC 8200 §4.2): an unknown option says itself whether the packet may be processed.
fn options(mut list: &[u8]) -> Result<(), Refusal> {
    const PAD: u8 = 0;
    const DISCARD: u8 = 0xc0;
    loop {
        match *list {
            [] => return Ok(()),
            [PAD, ref rest @ ..] => list = rest,
            [kind, ..] if kind & DISCARD != 0 => return Err(Refusal::IpOption),
            [_, len, ref rest @ ..] => list = rest.get(usize::from(len)..).ok_or(Refusal::ExtensionHeader)?,
            _ => return Err(Refusal::ExtensionHeader),
        }
    }
}

/// The address that these bytes begin with.
pub(crate) fn address(bytes: &[u8]) -> IpAddr {
    IpAddr::from(bytes.first_chunk::<16>().copied().unwrap_or_default())
}

pub(super) fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), Refusal> {
    let (fixed, rest) = bytes.split_first_chunk::<V6_HEADER>().ok_or(Refusal::IpTruncated)?;
    let length = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let mut payload = rest.get(..length).ok_or(Refusal::IpTruncated)?;
    let mut next = fixed[6];
    let mut extensions = 0;
    loop {
        match next {
            // RFC 8200 §4, §4.1: only directly after the IPv6 header.
            HOP_BY_HOP if extensions > 0 => return Err(Refusal::ExtensionHeader),
            HOP_BY_HOP | ROUTING | DESTINATION => {
                let [after, eighths, ..] = *payload else { return Err(Refusal::ExtensionHeader) };
                let length = usize::from(eighths) * 8 + 8;
                let (header, rest) = payload.split_at_checked(length).ok_or(Refusal::ExtensionHeader)?;
                match next {
                    // Segments left: this is not the final destination (RFC 8200 §4.4).
                    ROUTING if header.get(3).is_some_and(|left| *left > 0) => {
                        return Err(Refusal::SourceRoute);
                    }
                    ROUTING => {}
                    _ => options(header.get(2..).unwrap_or_default())?,
                }
                payload = rest;
                next = after;
            }
            FRAGMENT => {
                let Some((head, rest)) = payload.split_first_chunk::<8>() else {
                    return Err(Refusal::ExtensionHeader);
                };
                // An atomic fragment (RFC 6946) is whole.
                if u16::from_be_bytes([head[2], head[3]]) & 0xfff9 != 0 {
                    return Err(Refusal::Fragment);
                }
                next = head[0];
                payload = rest;
            }
            _ => break,
        }
        extensions += 1;
        if extensions > MOST_EXTENSIONS {
            return Err(Refusal::ExtensionHeader);
        }
    }
    let first = u32::from_be_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
    let h = Header {
        src: address(&fixed[8..]),
        dst: address(&fixed[24..]),
        protocol: next,
        dscp: (first >> 22 & 0x3f) as u8,
        ecn: (first >> 20 & 3) as u8,
        ttl: fixed[7],
        id: 0,
        flow_label: first & 0xf_ffff,
    };
    Ok((h, payload))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    /// A packet without payload behind one extension header.
    fn with(kind: u8, header: &[u8]) -> Result<(), Refusal> {
        let mut bytes = vec![0x60, 0, 0, 0, 0, header.len() as u8, kind, 64];
        bytes.extend([0xfd; 32]);
        bytes.extend(header);
        parse(&bytes).map(|_| ())
    }

    #[test]
    fn options_say_whether_they_may_be_skipped_and_routes_must_have_ended() {
        assert_eq!(with(DESTINATION, &[6, 0, 1, 4, 0, 0, 0, 0]), Ok(()), "padding");
        assert_eq!(with(HOP_BY_HOP, &[6, 0, 5, 2, 0, 0, 0, 0]), Ok(()), "router alert");
        for kind in [0x40, 0x80, 0xc2] {
            assert_eq!(with(DESTINATION, &[6, 0, kind, 4, 0, 0, 0, 0]), Err(Refusal::IpOption), "{kind}");
        }
        assert_eq!(with(DESTINATION, &[6, 0, 1, 9, 0, 0, 0, 0]), Err(Refusal::ExtensionHeader), "cut");
        let behind =
            |kind, first: u8| with(kind, &[[first, 0, 1, 4, 0, 0, 0, 0], [6, 0, 1, 4, 0, 0, 0, 0]].concat());
        assert_eq!(behind(HOP_BY_HOP, DESTINATION), Ok(()));
        for kind in [HOP_BY_HOP, DESTINATION] {
            assert_eq!(
                behind(kind, HOP_BY_HOP),
                Err(Refusal::ExtensionHeader),
                "not the first one, after {kind}"
            );
        }
        assert_eq!(with(ROUTING, &[6, 0, 0, 0, 0, 0, 0, 0]), Ok(()));
        assert_eq!(with(ROUTING, &[6, 0, 4, 1, 0, 0, 0, 0]), Err(Refusal::SourceRoute));
    }
}
