//! What is read of a datagram: its flow, its traffic class, its ECN field. Nothing behind the ports is read here.

use skyhaul_base::hash::Fnv;
use skyhaul_repair::code::Datagram;
use skyhaul_repair::ip;

/// The bits of a traffic class that are the ECN field (RFC 3168).
const ECN: u8 = 3;
/// DSCP LE (RFC 8622).
pub(super) const LOW: u8 = 1;

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
    let class = ip::class(packet);
    let hash = flow.finish();
    Some(Datagram {
        bytes: packet.to_vec(),
        flow: (hash ^ hash >> 32) as u32,
        capable: class & ECN != 0,
        marked: false,
        class,
        low_priority: class >> 2 == LOW,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4() -> Vec<u8> {
        vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 2, 0, 2, 1, 2, 3, 4, 0, 8, 0, 0]
    }

    #[test]
    fn flows_are_told_apart_and_noise_is_left_out() {
        let flow = |p: &[u8]| read(p).expect("a datagram").flow;
        let (one, mut other) = (v4(), v4());
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
            assert_eq!(read(&v4()[..n]), None);
        }
        assert_eq!(read(&[0x50; 60]), None);
    }
}
