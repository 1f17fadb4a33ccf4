//! Bytes from the network.

use skyhaul_wire::checksum::Sum;
use skyhaul_wire::{
    Agreement, EncodeError, Envelope, MAX_HEADER, Packet, Payload, Plan, Profile, Transport, encode,
    sack_room,
};
use std::net::SocketAddr;

/// The first byte chooses what was agreed, the rest is a packet. It is refused, or read; what was read and can be
/// written means the same when it is read again. Then the same with lengths and checksums repaired: of random bytes, hardly
/// any pass these checks.
///
/// # Panics
/// If a packet that was written again reads differently.
pub fn wire_packet(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let profile = [Profile::Off, Profile::Paper, Profile::Option, Profile::Compact][usize::from(choice & 3)];
    let plan = [Plan::LowerEffort, Plan::Scavenger, Plan::Precedence][usize::from(choice >> 2 & 3) % 3];
    let agreed = Agreement { plan, window_shift: choice >> 4, ..Agreement::with(profile) };
    one(bytes, &agreed);
    let mut bytes = bytes.to_vec();
    repair(&mut bytes);
    one(&bytes, &agreed);
}

/// Corrects the lengths and checksums of bytes that resemble a packet.
pub fn repair(p: &mut [u8]) {
    let sum = |parts: &[&[u8]], more: u32| {
        let s = parts.iter().fold(Sum::default(), |s, part| s.bytes(part)).long(more);
        s.finish().to_be_bytes()
    };
    let len = p.len();
    let (header, protocol) = match p.first().map(|b| b >> 4) {
        Some(4) if len >= 20 => {
            let header = usize::from(p[0] & 15) * 4;
            if header < 20 || header > len || len > 65_535 {
                return;
            }
            p[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            p[6..8].copy_from_slice(&[0x40, 0]);
            p[10..12].fill(0);
            let s = sum(&[&p[..header]], 0);
            p[10..12].copy_from_slice(&s);
            (header, p[9])
        }
        Some(6) if (40..=65_535).contains(&len) => {
            p[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
            (40, p[6])
        }
        _ => return,
    };
    let addresses: Vec<u8> =
        if header == 40 && p[0] >> 4 == 6 { p[8..40].to_vec() } else { p[12..20].to_vec() };
    let at = match protocol {
        6 => 16,
        17 => 6,
        1 | 58 => 2,
        _ => return,
    };
    if len < header + at + 2 {
        return;
    }
    if protocol == 17 {
        p[header + 4..header + 6].copy_from_slice(&((len - header) as u16).to_be_bytes());
    }
    p[header + at..header + at + 2].fill(0);
    let pseudo: &[u8] = if protocol == 1 { &[] } else { &addresses };
    let more = if protocol == 1 { 0 } else { u32::from(protocol) + (len - header) as u32 };
    let s = sum(&[pseudo, &p[header..]], more);
    p[header + at..header + at + 2].copy_from_slice(&s);
}

fn one(bytes: &[u8], agreed: &Agreement) {
    let Ok(packet) = Packet::parse(bytes) else { return };
    let Transport::Tcp(tcp) = packet.transport else { return };
    let mut segment = tcp.segment(agreed);
    let ends = (SocketAddr::new(packet.ip.src, tcp.src_port), SocketAddr::new(packet.ip.dst, tcp.dst_port));
    let mut out = vec![0; MAX_HEADER + tcp.payload.len()];
    let envelope = Envelope::new(ends.0, ends.1);
    let written = match encode(&mut out, &envelope, agreed, &segment, Payload::Bytes(tcp.payload)) {
        Ok(e) => &out[..e.written],
        // A header with options of IP or many small options of TCP need not fit when it is written in our way.
        Err(EncodeError::Options | EncodeError::TooLong) => return,
        Err(e) => panic!("{e}: {segment:?}"),
    };
    let again = Packet::parse(written).expect("what we write is well-formed");
    let Transport::Tcp(again) = again.transport else { panic!("TCP becomes TCP") };
    let mut sack = skyhaul_tcp::SackBlocks::EMPTY;
    for (from, to) in segment.sack.as_slice().iter().take(sack_room(agreed, &segment)) {
        sack.push(*from, *to);
    }
    segment.sack = sack;
    assert_eq!(again.segment(agreed), segment);
    assert_eq!(again.payload, tcp.payload);
}
