//! Bytes from the network.

use skyhaul_wire::{
    Agreement, EncodeError, Envelope, MAX_HEADER, Packet, Payload, Plan, Profile, Transport, encode,
    sack_room,
};
use std::net::SocketAddr;

/// The first byte chooses what was agreed, the rest is a packet. It is refused, or read; what was read and can be
/// written means the same when it is read again.
///
/// # Panics
/// If not.
pub fn wire_packet(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let profile = [Profile::Off, Profile::Paper, Profile::Option, Profile::Compact][usize::from(choice & 3)];
    let plan = [Plan::LowerEffort, Plan::Scavenger, Plan::Precedence][usize::from(choice >> 2 & 3) % 3];
    let agreed = Agreement { plan, window_shift: choice >> 4, ..Agreement::with(profile) };
    let Ok(packet) = Packet::parse(bytes) else { return };
    let Transport::Tcp(tcp) = packet.transport else { return };
    let mut segment = tcp.segment(&agreed);
    let ends = (SocketAddr::new(packet.ip.src, tcp.src_port), SocketAddr::new(packet.ip.dst, tcp.dst_port));
    let mut out = vec![0; MAX_HEADER + tcp.payload.len()];
    let envelope = Envelope::new(ends.0, ends.1);
    let written = match encode(&mut out, &envelope, &agreed, &segment, Payload::Bytes(tcp.payload)) {
        Ok(e) => &out[..e.written],
        // A header with options of IP or many small options of TCP need not fit when it is written in our way.
        Err(EncodeError::Options | EncodeError::TooLong) => return,
        Err(e) => panic!("{e}: {segment:?}"),
    };
    let again = Packet::parse(written).expect("what we write is well-formed");
    let Transport::Tcp(again) = again.transport else { panic!("TCP becomes TCP") };
    let mut sack = skyhaul_tcp::SackBlocks::EMPTY;
    for (from, to) in segment.sack.as_slice().iter().take(sack_room(&agreed, &segment)) {
        sack.push(*from, *to);
    }
    segment.sack = sack;
    assert_eq!(again.segment(&agreed), segment);
    assert_eq!(again.payload, tcp.payload);
}
