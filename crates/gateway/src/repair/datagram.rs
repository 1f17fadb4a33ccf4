//! What is read of a datagram: its flow, its traffic class, its ECN field. Nothing behind the ports is read.

use skyhaul_base::hash::Fnv;
use skyhaul_repair::code::Datagram;

/// The ECN field of a packet whose transport is not capable of it, and that of one that is marked (RFC 3168).
const NOT_ECT: u8 = 0;
const CE: u8 = 3;
/// DSCP LE (RFC 8622).
pub(super) const LOW: u8 = 1;

/// The traffic class of a packet: DSCP and ECN field; 0 if it is none.
pub(super) fn class(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 4 => *second,
        [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
        _ => 0,
    }
}

/// Marks a packet as congested. False if its transport is not capable of ECN: it has to be dropped (RFC 6040 §4.2).
pub(super) fn mark(packet: &mut [u8]) -> bool {
    let ecn = class(packet) & CE;
    if ecn == NOT_ECT {
        return false;
    }
    match packet {
        [first, second, _, _, _, _, _, _, _, _, high, low, ..] if *first >> 4 == 4 => {
            // The checksum follows from the old and the new word (RFC 1624): it falls by what the word gains.
            let gained = u16::from(CE - ecn);
            let sum = u16::from_be_bytes([*high, *low]);
            let (sum, borrowed) = sum.overflowing_sub(gained);
            [*high, *low] = (sum - u16::from(borrowed)).to_be_bytes();
            *second |= CE;
        }
        [first, second, ..] if *first >> 4 == 6 => *second |= CE << 4,
        _ => return false,
    }
    true
}

/// A packet that the kernel has routed into the interface, as a datagram; `None` if it is no packet for another host, such as the router
/// solicitations of the interface itself.
pub(super) fn read(packet: &[u8]) -> Option<Datagram> {
    let mut flow = Fnv::default();
    let (protocol, ports) = match packet.first()? >> 4 {
        4 => {
            let header: &[u8; 20] = packet.first_chunk()?;
            let to = header[16];
            if to >= 224 || to == 127 || to == 0 {
                return None;
            }
            flow.write(&header[12..20]);
            let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            let start = usize::from(header[0] & 15) * 4;
            (header[9], packet.get(start..start + 4).filter(|_| !fragment))
        }
        6 => {
            let header: &[u8; 40] = packet.first_chunk()?;
            let local = header[8] == 0xfe && header[9] & 0xc0 == 0x80;
            if header[24] == 0xff || local || header[8..24] == [0; 16] {
                return None;
            }
            flow.write(&header[8..40]);
            (header[6], packet.get(40..44))
        }
        _ => return None,
    };
    flow.write(&[protocol]);
    // TCP, UDP, DCCP, SCTP and UDP-Lite begin with their ports.
    if let (6 | 17 | 33 | 132 | 136, Some(ports)) = (protocol, ports) {
        flow.write(ports);
    }
    let class = class(packet);
    let hash = flow.finish();
    Some(Datagram {
        bytes: packet.to_vec(),
        flow: (hash ^ hash >> 32) as u32,
        capable: class & CE != NOT_ECT,
        marked: false,
        low_priority: class >> 2 == LOW,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of all words of an IPv4 header with a valid checksum is 0xffff (RFC 1071).
    fn is_valid(packet: &[u8]) -> bool {
        let sum: u32 = packet[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    fn v4(class: u8, sum: u16) -> Vec<u8> {
        let mut p = vec![
            0x45, class, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 2, 0, 2, 1, 2, 3, 4, 0, 8, 0, 0,
        ];
        // Any identification, so that the checksum takes all values.
        p[4..6].copy_from_slice(&sum.to_be_bytes());
        let sum: u32 = p[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        p[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        p
    }

    #[test]
    fn a_mark_keeps_the_checksum() {
        for ecn in [1, 2, 3] {
            for id in 0..=u16::MAX {
                let mut p = v4(46 << 2 | ecn, id);
                assert!(mark(&mut p));
                assert_eq!(class(&p), 46 << 2 | CE);
                assert!(is_valid(&p), "{ecn} {id}");
            }
        }
        let mut p = v4(46 << 2, 7);
        assert!(!mark(&mut p));
        let mut six = vec![0x62, 0xe1, 0, 0];
        assert_eq!(class(&six), 0x2e);
        assert!(mark(&mut six));
        assert_eq!((class(&six), six[0], six[1] & 15), (0x2f, 0x62, 1));
    }

    #[test]
    fn flows_are_told_apart_and_noise_is_left_out() {
        let flow = |p: &[u8]| read(p).expect("a datagram").flow;
        let (one, mut other) = (v4(0, 0), v4(0, 0));
        other[20] = 9;
        assert_ne!(flow(&one), flow(&other));
        // Later fragments have no ports, so that no fragment counts by them.
        let fragments = [one, other].map(|mut p| {
            p[6] = 0x20;
            flow(&p)
        });
        assert_eq!(fragments[0], fragments[1]);
        let mut solicitation = vec![0; 48];
        (solicitation[0], solicitation[8], solicitation[9], solicitation[24]) = (0x60, 0xfe, 0x80, 0xff);
        assert_eq!(read(&solicitation), None);
        for n in 0..20 {
            assert_eq!(read(&v4(0, 0)[..n]), None);
        }
        assert_eq!(read(&[0x50; 60]), None);
    }
}
