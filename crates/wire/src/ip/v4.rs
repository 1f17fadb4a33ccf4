//! IPv4 (RFC 791).

use super::{Header, V4_HEADER};
use crate::checksum::{self, Sum};
use crate::{EncodeError, Refusal};
use core::net::{IpAddr, Ipv4Addr};

pub(super) fn write(
    h: &Header,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    out: &mut [u8],
    payload: usize,
) -> Result<usize, EncodeError> {
    let total = u16::try_from(V4_HEADER + payload).map_err(|_| EncodeError::TooLong)?;
    let out: &mut [u8; V4_HEADER] = out.first_chunk_mut().ok_or(EncodeError::Buffer)?;
    out[0] = 0x45;
    out[1] = h.dscp << 2 | h.ecn & 3;
    out[2..4].copy_from_slice(&total.to_be_bytes());
    out[4..6].copy_from_slice(&h.id.to_be_bytes());
    // Don't fragment: segments fit, or the path reports its MTU.
    out[6..8].copy_from_slice(&[0x40, 0]);
    out[8] = h.ttl;
    out[9] = h.protocol;
    out[10..12].copy_from_slice(&[0, 0]);
    out[12..16].copy_from_slice(&src.octets());
    out[16..20].copy_from_slice(&dst.octets());
    let sum = Sum::default().bytes(out).finish();
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    Ok(V4_HEADER)
}

pub(super) fn parse(bytes: &[u8]) -> Result<(Header, &[u8]), Refusal> {
    let fixed: &[u8; V4_HEADER] = bytes.first_chunk().ok_or(Refusal::IpTruncated)?;
    let header = usize::from(fixed[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if header < V4_HEADER || total < header {
        return Err(Refusal::IpLength);
    }
    let packet = bytes.get(..total).ok_or(Refusal::IpTruncated)?;
    let (head, payload) = packet.split_at_checked(header).ok_or(Refusal::IpLength)?;
    if Sum::default().bytes(head).finish() != 0 {
        return Err(Refusal::IpChecksum);
    }
    if source_routed(head.get(V4_HEADER..).unwrap_or_default()) {
        return Err(Refusal::SourceRoute);
    }
    // More fragments, or an offset.
    if u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0 {
        return Err(Refusal::Fragment);
    }
    let h = Header {
        src: address(&fixed[12..]),
        dst: address(&fixed[16..]),
        protocol: fixed[9],
        dscp: fixed[1] >> 2,
        ecn: fixed[1] & 3,
        ttl: fixed[8],
        id: u16::from_be_bytes([fixed[4], fixed[5]]),
        flow_label: 0,
    };
    Ok((h, payload))
}

/// The address that these bytes begin with.
pub(crate) fn address(bytes: &[u8]) -> IpAddr {
    IpAddr::from(bytes.first_chunk::<4>().copied().unwrap_or_default())
}

/// True if there is a source route option (RFC 791 §3.1), loose or strict.
fn source_routed(mut options: &[u8]) -> bool {
    const END: u8 = 0;
    const NOTHING: u8 = 1;
    const LOOSE: u8 = 131;
    const STRICT: u8 = 137;
    loop {
        match *options {
            [] | [END, ..] => return false,
            [LOOSE | STRICT, ..] => return true,
            [NOTHING, ref rest @ ..] => options = rest,
            // A malformed option ends the list: no one else can parse it either.
            [_, len, ..] if len >= 2 => options = options.get(usize::from(len)..).unwrap_or_default(),
            _ => return false,
        }
    }
}

/// Changes the DSCP of a packet in place and updates its checksum. Anything that is not an IP packet is unchanged.
pub fn remark(packet: &mut [u8], dscp: u8) {
    reclass(packet, |class| dscp << 2 | class & 3);
}

/// Congestion experienced: sets both ECN bits (RFC 3168 §5). A packet that is not ECN-capable, or not IP, is
/// unchanged.
pub fn mark_congestion(packet: &mut [u8]) {
    reclass(packet, |class| if class & 3 == 0 { class } else { class | 3 });
}

/// Changes the DSCP and ECN byte and updates its checksum.
fn reclass(packet: &mut [u8], change: impl Fn(u8) -> u8) {
    if let Some(head) = packet.first_chunk_mut::<V4_HEADER>().filter(|head| head[0] >> 4 == 4) {
        let from = u16::from_be_bytes([head[0], head[1]]);
        head[1] = change(head[1]);
        let to = u16::from_be_bytes([head[0], head[1]]);
        let sum = u16::from_be_bytes([head[10], head[11]]);
        head[10..12].copy_from_slice(&checksum::repaired(sum, from, to).to_be_bytes());
        return;
    }
    match packet {
        [v, next, ..] if *v >> 4 == 6 => {
            let class = change(*v << 4 | *next >> 4);
            *v = 0x60 | class >> 4;
            *next = class << 4 | *next & 0xf;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_of_congestion_changes_two_bits_and_the_checksum_over_them() {
        for (class, marked) in [(0xb8, 0xb8), (0xb9, 0xbb), (0xba, 0xbb), (0xbb, 0xbb), (1, 3), (0, 0)] {
            let mut four = [0x45, class, 0, 20, 0xab, 0xcd, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let sum = checksum::Sum::default().bytes(&four).finish();
            four[10..12].copy_from_slice(&sum.to_be_bytes());
            let mut expected = four;
            expected[1] = marked;
            expected[10..12].fill(0);
            let sum = checksum::Sum::default().bytes(&expected).finish();
            expected[10..12].copy_from_slice(&sum.to_be_bytes());
            mark_congestion(&mut four);
            assert_eq!(four, expected, "{class:02x}");
            // The version before it and the flow label behind it stay.
            let mut six = [0u8; 40];
            (six[0], six[1], six[2]) = (0x60 | class >> 4, class << 4 | 0x9, 0xcd);
            mark_congestion(&mut six);
            assert_eq!(six[..3], [0x60 | marked >> 4, marked << 4 | 0x9, 0xcd], "{class:02x}");
        }
        let mut short = [0x45, 2, 0];
        mark_congestion(&mut short);
        assert_eq!(short, [0x45, 2, 0]);
    }

    #[test]
    fn source_routes_are_found_behind_other_options() {
        for (options, found) in [
            (&[][..], false),
            (&[1, 1, 1, 0], false),
            (&[131, 7, 4, 10, 0, 0, 1, 0], true),
            (&[1, 137, 7, 4, 10, 0, 0, 1], true),
            (&[148, 4, 0, 0, 131, 3, 4, 0], true),
            (&[148, 4, 0, 0, 0, 131, 3, 4], false),
            (&[148, 0, 131, 3], false),
            (&[148, 9, 131, 3], false),
        ] {
            assert_eq!(source_routed(options), found, "{options:?}");
        }
    }
}
