//! Packets that the Linux kernel wrote to a TUN device, byte for byte.

use skyhaul_tcp::{Codepoint, Flags, Segment, Seq, SynOptions};
use skyhaul_wire::{
    Agreement, Envelope, Packet, Payload, Refusal, Refusals, Transport, encode, encode_udp, ip,
};
use std::net::SocketAddr;
use std::num::NonZeroU32;

const SYN_V4: &str = "4500003cbfa040004006f717c0000201c0000202a98000506958c33400000000a002faf0923c0000\
                      020405b40402080aa0c0bfad000000000103030a";
const UDP_V6: &str = "6003ee490011114020010db800000000000000000000000120010db8000000000000000000000002\
                      ea2500090011f785646174616772616d21";
const SYN_V6: &str = "6003c86f0028064020010db800000000000000000000000120010db8000000000000000000000002\
                      8724005084a08c8f00000000a002fd20e0bc0000020405a00402080ae4f09129000000000103030a";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().map(|c| (c as char).to_digit(16).expect("hexadecimal") as u8).collect();
    digits.chunks(2).map(|d| d[0] << 4 | d[1]).collect()
}

fn tcp(bytes: &[u8]) -> (ip::Header, skyhaul_wire::tcp::Tcp<'_>) {
    match Packet::parse(bytes).expect("the kernel's packet") {
        Packet { ip, transport: Transport::Tcp(t) } => (ip, t),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_syn_of_a_kernel_over_ipv4_is_read_and_written_byte_for_byte() {
    let original = bytes(SYN_V4);
    let (h, t) = tcp(&original);
    assert_eq!((h.src.to_string(), h.dst.to_string()), ("192.0.2.1".into(), "192.0.2.2".into()));
    assert_eq!((h.ttl, h.id, h.dscp, h.ecn), (64, 0xbfa0, 0, 0));
    let agreed = Agreement { window_shift: 10, ..Agreement::default() };
    let expected = Segment {
        seq: Seq(0x6958_c334),
        window: 0xfaf0, // never scaled on a SYN
        flags: Flags::SYN,
        syn: SynOptions {
            mss: Some(1460),
            window_scale: Some(10),
            sack_permitted: true,
            ..SynOptions::default()
        },
        ts: Some((0xa0c0_bfad, 0)),
        ..Segment::default()
    };
    assert_eq!(t.segment(&agreed), expected);
    let mut envelope = Envelope::new(SocketAddr::new(h.src, t.src_port), SocketAddr::new(h.dst, t.dst_port));
    envelope.id = h.id;
    let mut out = [0xee; 100];
    let e = encode(&mut out, &envelope, &agreed, &expected, Payload::Zeros).expect("it fits");
    assert_eq!(&out[..e.written], &original[..]);
}

#[test]
fn the_syn_of_a_kernel_over_ipv6_is_read_and_written_byte_for_byte() {
    let original = bytes(SYN_V6);
    let (h, t) = tcp(&original);
    let mut envelope = Envelope::new(SocketAddr::new(h.src, t.src_port), SocketAddr::new(h.dst, t.dst_port));
    envelope.flow_label = h.flow_label;
    assert_eq!(h.flow_label, 0x3c86f);
    let agreed = Agreement::default();
    let mut out = [0xee; 100];
    let e = encode(&mut out, &envelope, &agreed, &t.segment(&agreed), Payload::Zeros).expect("it fits");
    assert_eq!(&out[..e.written], &original[..]);
}

#[test]
fn a_datagram_of_a_kernel_is_read_and_written_byte_for_byte() {
    let original = bytes(UDP_V6);
    let p = Packet::parse(&original).expect("the kernel's packet");
    let Transport::Udp(u) = p.transport else { panic!("{p:?}") };
    assert_eq!((u.payload, u.dst_port), (&b"datagram!"[..], 9));
    let mut envelope =
        Envelope::new(SocketAddr::new(p.ip.src, u.src_port), SocketAddr::new(p.ip.dst, u.dst_port));
    envelope.flow_label = p.ip.flow_label;
    let mut out = [0xee; 100];
    let agreed = Agreement::default();
    let e = encode_udp(&mut out, &envelope, &agreed, false, 9, Payload::Bytes(u.payload)).expect("it fits");
    assert_eq!(&out[..e.written], &original[..]);
}

#[test]
fn every_wrong_byte_is_refused_for_its_reason() {
    use Refusal as R;
    let reason = |b: &[u8]| Packet::parse(b).expect_err("refused");
    let v4 = bytes(SYN_V4);
    let with = |at: usize, to: u8| {
        let mut b = v4.clone();
        b[at] = to;
        b
    };
    // A header with this byte changed whose checksum is right.
    let repaired = |at: usize, to: u8| {
        let mut b = with(at, to);
        b[10..12].fill(0);
        let head = usize::from(b[0] & 15) * 4;
        let sum = skyhaul_wire::checksum::Sum::default().bytes(&b[..head.min(b.len())]).finish();
        b[10..12].copy_from_slice(&sum.to_be_bytes());
        b
    };
    assert_eq!(reason(&[]), R::IpTruncated);
    assert_eq!(reason(&v4[..30]), R::IpTruncated);
    assert_eq!(reason(&with(0, 0x55)), R::IpVersion);
    assert_eq!(reason(&with(0, 0x44)), R::IpLength);
    assert_eq!(reason(&with(8, 63)), R::IpChecksum);
    assert_eq!(reason(&repaired(6, 0x20)), R::Fragment);
    assert_eq!(reason(&repaired(9, 2)), R::Protocol);
    assert_eq!(reason(&repaired(9, 1)), R::IcmpChecksum);
    assert_eq!(reason(&repaired(3, 30)), R::TcpTruncated);
    assert_eq!(reason(&with(32, 0x40)), R::DataOffset);
    assert_eq!(reason(&with(32, 0xf0)), R::DataOffset);
    assert_eq!(reason(&with(59, 11)), R::TcpChecksum);
    // Options: the sum stays right if what one byte gains another loses.
    let options = |changes: &[(usize, u8)]| {
        let mut b = v4.clone();
        changes.iter().for_each(|(at, to)| b[*at] = *to);
        b[36..38].fill(0);
        let mut pseudo = skyhaul_wire::checksum::Sum::default().bytes(&b[12..20]).long(6).long(40);
        pseudo = pseudo.bytes(&b[20..]);
        b[36..38].copy_from_slice(&pseudo.finish().to_be_bytes());
        b
    };
    assert_eq!(Packet::parse(&options(&[])), Packet::parse(&v4));
    // A SYN is taken without the options that are malformed; any other segment is refused.
    for (at, to, why, what) in [
        (41, 0, R::OptionCut, "a length below its own head"),
        (58, 9, R::OptionCut, "beyond the header"),
        (41, 3, R::OptionLength, "an MSS of one byte"),
        (44, 5, R::OptionLength, "SACK without blocks"),
    ] {
        let acknowledges = (33, Flags::ACK.bits());
        assert_eq!(reason(&options(&[(at, to), acknowledges])), why, "{what}");
        assert!(Packet::parse(&options(&[(at, to)])).is_ok(), "{what}, in a SYN");
    }
    // An option that is not known is skipped, and of two bytes as well: an experiment that has no identifier.
    assert!(Packet::parse(&options(&[(44, 253)])).is_ok(), "{:?}", v4.get(44..46));
    let v6 = bytes(UDP_V6);
    let v6_with = |changes: &[(usize, u8)]| {
        let mut b = v6.clone();
        changes.iter().for_each(|(at, to)| b[*at] = *to);
        b
    };
    assert_eq!(reason(&v6_with(&[(45, 18)])), R::UdpLength);
    assert_eq!(reason(&v6_with(&[(45, 7)])), R::UdpLength);
    assert_eq!(reason(&v6_with(&[(46, 0), (47, 0)])), R::UdpChecksum);
    assert_eq!(reason(&v6_with(&[(6, 60), (41, 9)])), R::ExtensionHeader);
    assert_eq!(reason(&v6_with(&[(6, 44)])), R::Fragment);

    let mut counts = Refusals::default();
    assert!(counts.count(Packet::parse(&v4)).is_some());
    assert!(counts.count(Packet::parse(&with(8, 63))).is_none());
    assert!(counts.count(Packet::parse(&with(8, 62))).is_none());
    assert_eq!((counts.of(R::IpChecksum), counts.total()), (2, 2));
    assert!(R::ALL.iter().enumerate().all(|(i, r)| *r as usize == i));
}

#[test]
fn extension_headers_are_passed_over_and_padding_ignored() {
    let v6 = bytes(SYN_V6);
    let (_, plain) = tcp(&v6);
    let mut longer = v6[..40].to_vec();
    longer[5] += 24;
    longer[6] = 0;
    longer.extend([60, 0, 1, 4, 0, 0, 0, 0]); // hop by hop
    longer.extend([44, 0, 1, 4, 0, 0, 0, 0]); // destination
    longer.extend([6, 0, 0, 0, 1, 2, 3, 4]); // an atomic fragment
    longer.extend(&v6[40..]);
    longer.extend([0; 6]);
    let (_, extended) = tcp(&longer);
    assert_eq!(extended, plain);
}

#[test]
fn remarked_packets_keep_right_checksums() {
    for (hex, low) in [(SYN_V4, true), (SYN_V6, true), (UDP_V6, false)] {
        let mut b = bytes(hex);
        for dscp in [1, 8, 63, 0] {
            ip::remark(&mut b, dscp);
            let p = Packet::parse(&b).expect("the checksum was repaired");
            assert_eq!((p.ip.dscp, p.ip.ecn), (dscp, 0));
            if let (Transport::Tcp(t), true) = (p.transport, low) {
                assert_eq!(t.segment(&Agreement::default()).low_priority, dscp == 1);
            }
        }
        assert_eq!(b, bytes(hex));
    }
    let mut junk = [0u8; 3];
    ip::remark(&mut junk, 1);
    assert_eq!(junk, [0; 3]);
}

#[test]
fn a_syn_may_say_which_gateway_sends_it() {
    use skyhaul_wire::{PROBE_EXID, Profile, tcp::ProbeOption};
    let syn = skyhaul_tcp::SynOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        probes: true,
        ack_cc: true,
        ..Default::default()
    };
    let seg = Segment { flags: Flags::SYN, syn, ts: Some((1, 0)), ..Segment::default() };
    let ends = Envelope::new("192.0.2.1:1".parse().unwrap(), "192.0.2.2:80".parse().unwrap());
    for number in [None, NonZeroU32::new(0x0102_0304)] {
        let agreed = Agreement { gateway: number, dscp: 46, ..Agreement::with(Profile::Option) };
        let mut room = [0; 100];
        let n = encode(&mut room, &ends, &agreed, &seg, Payload::Bytes(&[])).unwrap().written;
        assert!(n <= 20 + 60, "all options fit");
        let (ip, tcp) = tcp(&room[..n]);
        assert_eq!((ip.dscp, tcp.options.gateway(PROBE_EXID)), (46, number));
        assert!(
            matches!(tcp.options.probe(PROBE_EXID), Some(ProbeOption::Capability(c)) if c == agreed.capability)
        );
        assert_eq!(tcp.options.early(PROBE_EXID), None);
    }
    // Data in a SYN: the option fills the header.
    let seg = Segment { syn: skyhaul_tcp::SynOptions { ack_cc: false, ..syn }, len: 3, ..seg };
    let early = Some([1, 2, 3, 4, 5, 6, 7, 8]);
    let agreed = Agreement { gateway: NonZeroU32::new(9), early, ..Agreement::with(Profile::Option) };
    let mut room = [0; 100];
    let n = encode(&mut room, &ends, &agreed, &seg, Payload::Bytes(b"get")).unwrap().written;
    assert_eq!(n, 20 + 60 + 3);
    let (_, tcp) = tcp(&room[..n]);
    assert_eq!((tcp.options.gateway(PROBE_EXID), tcp.options.early(PROBE_EXID)), (agreed.gateway, early));
    assert!(matches!(tcp.options.probe(PROBE_EXID), Some(ProbeOption::Capability(_))));
    assert_eq!(tcp.payload, b"get");
    // With an option that was not foreseen it is an error, not a broken header.
    let both = Segment { syn, ..seg };
    assert!(encode(&mut room, &ends, &agreed, &both, Payload::Bytes(b"get")).is_err());
}

#[test]
fn a_codepoint_of_the_segment_replaces_that_of_the_envelope() {
    let end = |port| SocketAddr::from(([192, 0, 2, 1], port));
    for (ecn, stated) in [
        (Codepoint::NotCapable, None),
        (Codepoint::Scalable, Some(1)),
        (Codepoint::Capable, Some(2)),
        (Codepoint::Marked, Some(3)),
    ] {
        for usual in 0..4 {
            let envelope = Envelope { ecn: usual, ..Envelope::new(end(1), end(2)) };
            let segment = Segment { flags: Flags::ACK, ecn, ..Segment::default() };
            let mut out = [0; 100];
            let e = encode(&mut out, &envelope, &Agreement::default(), &segment, Payload::Zeros)
                .expect("it fits");
            assert_eq!(tcp(&out[..e.written]).0.ecn, stated.unwrap_or(usual), "{ecn:?} {usual}");
        }
    }
}
