//! A SYN, as a packet.

use skyhaul_tcp::{Flags, Segment, Seq, SynOptions};
use skyhaul_wire::{Agreement, Capability, Envelope, Payload};
use std::net::SocketAddr;

/// From somebody who offers options, or none but the MSS.
pub fn syn(from: SocketAddr, to: SocketAddr, seq: u32, options: bool) -> Vec<u8> {
    let all =
        SynOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true, ..SynOptions::default() };
    let seg = Segment {
        seq: Seq(seq),
        window: 65_535,
        flags: Flags::SYN,
        syn: if options { all } else { SynOptions { mss: Some(1460), ..SynOptions::default() } },
        ts: options.then_some((1000, 0)),
        ..Segment::default()
    };
    let mut room = vec![0; 200];
    let agreed = Agreement { capability: Capability { flags: 0, log2_most: 0 }, ..Agreement::default() };
    let n = skyhaul_wire::encode(&mut room, &Envelope::new(from, to), &agreed, &seg, Payload::Bytes(&[]));
    room.truncate(n.map_or(0, |n| n.written));
    room
}
