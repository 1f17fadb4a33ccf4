//! The ICMP errors of a router about packets that are too long for its next link (RFC 792, RFC 1191, RFC 4443 §3.2).

/// The router's addresses.
const V4: [u8; 4] = [10, 9, 0, 7];
const V6: [u8; 16] = [0xfd, 0x09, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];

/// The Internet checksum (RFC 1071).
fn sum(parts: &[&[u8]]) -> [u8; 2] {
    let words = parts
        .iter()
        .flat_map(|p| p.chunks(2))
        .map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |b| u32::from(*b)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!sum as u16).to_be_bytes()
}

/// The ICMP error about a packet that is longer than the next link carries; `None` if the packet fits. `mtu`: for IPv4, and for IPv6.
pub(super) fn too_long(packet: &[u8], mtu: [u16; 2]) -> Option<Vec<u8>> {
    let v4 = packet[0] >> 4 == 4;
    let mtu = mtu[usize::from(!v4)];
    if packet.len() <= mtu.into() {
        return None;
    }
    let quote = &packet[..packet.len().min(548)];
    let mut message = if v4 { vec![3, 4, 0, 0, 0, 0] } else { vec![2, 0, 0, 0, 0, 0] };
    message.extend(mtu.to_be_bytes());
    message.extend(quote);
    let length = message.len() as u16;
    let mut report = Vec::new();
    if v4 {
        report.extend([0x45, 0]);
        report.extend((20 + length).to_be_bytes());
        report.extend([0, 0, 0x40, 0, 64, 1, 0, 0]);
        report.extend(V4);
        report.extend(&packet[12..16]);
        let header = sum(&[&report]);
        report[10..12].copy_from_slice(&header);
        let body = sum(&[&message]);
        message[2..4].copy_from_slice(&body);
    } else {
        report.extend([0x60, 0, 0, 0]);
        report.extend(length.to_be_bytes());
        report.extend([58, 64]);
        report.extend(V6);
        report.extend(&packet[8..24]);
        let pseudo = [&report[8..40], &[0, 0][..], &length.to_be_bytes(), &[0, 0, 0, 58]].concat();
        let body = sum(&[&pseudo, &message]);
        message[2..4].copy_from_slice(&body);
    }
    report.extend(message);
    Some(report)
}
