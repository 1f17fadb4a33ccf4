//! What is written is read back, by us and by an independent parser; no bytes make the parser panic.

use core::num::{NonZeroU8, NonZeroU16, NonZeroU32};
use proptest::prelude::*;
use skyhaul_tcp::{Codepoint, EcnBytes, Flags, Mark, SackBlocks, Segment, Seq, SynOptions};
use skyhaul_wire::{
    Agreement, Checksum, EncodeError, Envelope, MAX_HEADER, Packet, Payload, Plan, Profile, Transport,
    encode, encode_udp, encode_with, sack_room,
};
use std::net::SocketAddr;

fn agreement() -> impl Strategy<Value = Agreement> {
    let profile = prop::sample::select(vec![Profile::Off, Profile::Paper, Profile::Option, Profile::Compact]);
    let plan = prop::sample::select(vec![Plan::LowerEffort, Plan::Scavenger, Plan::Precedence]);
    (profile, plan, 0u8..=14).prop_map(|(profile, plan, window_shift)| Agreement {
        plan,
        window_shift,
        ..Agreement::with(profile)
    })
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let ports = (any::<u16>(), any::<u16>());
    let v4 = (any::<[u8; 4]>(), any::<[u8; 4]>(), any::<u16>());
    let v6 = (any::<[u8; 16]>(), any::<[u8; 16]>(), 0u32..1 << 20);
    let v4 = (v4, ports).prop_map(|((a, b, id), (p, q))| Envelope {
        id,
        ..Envelope::new(SocketAddr::from((a, p)), SocketAddr::from((b, q)))
    });
    let v6 = (v6, ports).prop_map(|((a, b, flow_label), (p, q))| Envelope {
        flow_label,
        ..Envelope::new(SocketAddr::from((a, p)), SocketAddr::from((b, q)))
    });
    (prop_oneof![v4, v6], 1u8..=255, 0u8..4).prop_map(|(e, ttl, ecn)| Envelope { ttl, ecn, ..e })
}

/// Any segment that the agreement can express.
fn segment(agreed: Agreement) -> impl Strategy<Value = Segment> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u8>(), any::<bool>());
    let ts = proptest::option::of(any::<(u32, u32)>());
    let sack = prop::collection::vec(any::<(u32, u32)>(), 0..=4);
    let syn =
        (proptest::option::of(any::<u16>()), proptest::option::of(any::<u8>()), any::<bool>(), any::<bool>());
    let rate = (any::<u16>(), any::<u32>(), any::<bool>());
    (numbers, 0u32..200, ts, sack, syn, (any::<u16>(), 0u8..5), rate).prop_map(
        move |((seq, ack, window, flags, low), len, ts, blocks, syn, (id, mark), (wave, rate, real))| {
            let flags = Flags::from_bits(flags);
            let is_syn = flags.has(Flags::SYN);
            let mut sack = SackBlocks::EMPTY;
            for (a, b) in blocks {
                sack.push(Seq(a), Seq(b));
            }
            let mut s = Segment {
                seq: Seq(seq),
                ack: Seq(ack),
                len,
                window: u32::from(window) << if is_syn { 0 } else { agreed.window_shift },
                ts,
                sack,
                flags,
                low_priority: low,
                ..Segment::default()
            };
            if is_syn {
                let probes = syn.3 && agreed.profile.negotiates();
                s.syn = SynOptions {
                    mss: syn.0,
                    window_scale: syn.1,
                    sack_permitted: syn.2,
                    probes,
                    ack_cc: false,
                    snack: false,
                };
                // With everything else there is no room for it.
                s.syn.ack_cc = !real && wave % 2 == 0;
            }
            if real {
                s.waves.number = NonZeroU16::new(wave);
                s.waves.rate = NonZeroU32::new(rate);
            } else if !is_syn {
                s.ack_ratio = NonZeroU8::new(rate as u8);
            }
            let control = Flags::SYN.with(Flags::FIN).with(Flags::RST).bits();
            if agreed.profile != Profile::Off && flags.has(Flags::ACK) && flags.bits() & control == 0 {
                s.mark = match (mark, len > 0) {
                    (1, true) => Mark::Dummy,
                    (2, true) => Mark::Nil,
                    (1, false) => Mark::DummyAck,
                    (2, false) => Mark::NilAck,
                    _ => Mark::None,
                };
                let numbered =
                    agreed.profile == Profile::Option || agreed.profile == Profile::Compact && id % 2 == 0;
                s.probe_id = (s.mark != Mark::None && numbered).then_some(id);
            }
            s
        },
    )
}

/// The segment without the SACK blocks that do not fit.
fn fitted(agreed: &Agreement, s: &Segment) -> Segment {
    let mut sack = SackBlocks::EMPTY;
    for (from, to) in s.sack.as_slice().iter().take(sack_room(agreed, s)) {
        sack.push(*from, *to);
    }
    Segment { sack, ..*s }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_segment_is_read_back_as_it_was_written(
        (agreed, s) in agreement().prop_flat_map(|a| (Just(a), segment(a))),
        envelope in envelope(),
        fill in any::<u8>(),
    ) {
        let payload: Vec<u8> = (0..s.len).map(|i| fill.wrapping_mul(i as u8)).collect();
        let mut out = vec![0xa5; MAX_HEADER + payload.len() + 3];
        let e = encode(&mut out, &envelope, &agreed, &s, Payload::Bytes(&payload)).expect("expressible");
        prop_assert_eq!(e.written, e.total);
        // A payload written in place gives the same packet.
        let mut placed = vec![0x5a; e.total];
        let filled = encode_with(&mut placed, &envelope, &agreed, &s, Checksum::Written, |room| room.copy_from_slice(&payload));
        prop_assert_eq!(filled, Ok(e.total));
        prop_assert_eq!(&placed[..], &out[..e.total]);
        // Bytes behind the packet are padding.
        let p = Packet::parse(&out).expect("well-formed");
        let Transport::Tcp(t) = p.transport else { panic!("TCP") };
        let marks = match envelope.ecn {
            _ if s.low_priority => Codepoint::NotCapable,
            0 => Codepoint::NotCapable,
            1 => Codepoint::Scalable,
            3 => Codepoint::Marked,
            _ => Codepoint::Capable,
        };
        prop_assert_eq!(t.segment(&agreed), Segment { ecn: marks, ..fitted(&agreed, &s) });
        prop_assert_eq!(t.payload, &payload[..]);
        let ecn = if s.low_priority { 0 } else { envelope.ecn };
        prop_assert_eq!((p.ip.src, t.src_port), (envelope.src.ip(), envelope.src.port()));
        prop_assert_eq!((p.ip.ttl, p.ip.ecn, p.ip.id), (envelope.ttl, ecn, envelope.id));
        prop_assert_eq!(p.ip.flow_label, envelope.flow_label);

        // An independent parser sees the same header and the same checksums.
        let copy = out.clone();
        let theirs = etherparse::SlicedPacket::from_ip(&copy[..e.written]).expect("well-formed");
        let Some(etherparse::TransportSlice::Tcp(tcp)) = theirs.transport else { panic!("TCP") };
        let sum = match theirs.net.expect("IP") {
            etherparse::NetSlice::Ipv4(ip) => {
                let head = ip.header();
                prop_assert_eq!(head.to_header().calc_header_checksum(), head.header_checksum());
                tcp.calc_checksum_ipv4(head.source(), head.destination())
            }
            etherparse::NetSlice::Ipv6(ip) => {
                tcp.calc_checksum_ipv6(ip.header().source(), ip.header().destination())
            }
            _ => panic!("IP"),
        };
        prop_assert_eq!(sum.expect("short enough"), tcp.checksum());
        prop_assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (s.seq.0, s.ack.0));

        // Zeros that are not written have the checksum of zeros that are.
        let mut head = [0; MAX_HEADER];
        let short = encode(&mut head, &envelope, &agreed, &s, Payload::Zeros).expect("expressible");
        let zeros = vec![0; payload.len()];
        encode(&mut out, &envelope, &agreed, &s, Payload::Bytes(&zeros)).expect("expressible");
        prop_assert_eq!(&head[..short.written], &out[..short.written]);
        prop_assert_eq!(short.total, e.total);

        // Too small a buffer is refused, whatever its length.
        for room in 0..e.written {
            let refused = encode(&mut out[..room], &envelope, &agreed, &s, Payload::Bytes(&payload));
            prop_assert_eq!(refused, Err(EncodeError::Buffer));
            let refused = encode_with(&mut out[..room], &envelope, &agreed, &s, Checksum::Written, |_| panic!("no room to fill"));
            prop_assert_eq!(refused, Err(EncodeError::Buffer));
        }
    }

    #[test]
    fn a_datagram_is_read_back(envelope in envelope(), payload in prop::collection::vec(any::<u8>(), 0..100), low in any::<bool>()) {
        let mut out = [0; 200];
        let agreed = Agreement::default();
        let e = encode_udp(&mut out, &envelope, &agreed, low, payload.len(), Payload::Bytes(&payload)).expect("fits");
        let p = Packet::parse(&out[..e.written]).expect("well-formed");
        let Transport::Udp(u) = p.transport else { panic!("UDP") };
        prop_assert_eq!((u.payload, u.src_port, u.dst_port), (&payload[..], envelope.src.port(), envelope.dst.port()));
        prop_assert_eq!(agreed.plan.is_low(p.ip.dscp), low);
    }

    /// Any bytes, and well-formed packets with some bytes changed.
    #[test]
    fn no_bytes_make_the_parser_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..160),
        (agreed, s) in agreement().prop_flat_map(|a| (Just(a), segment(a))),
        envelope in envelope(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let read = |bytes: &[u8]| {
            if let Ok(Packet { transport: Transport::Tcp(t), .. }) = Packet::parse(bytes) {
                let _ = t.segment(&agreed);
            }
        };
        read(&bytes);
        if let Some(first) = bytes.first_mut() {
            *first = if *first % 2 == 0 { 0x45 } else { 0x60 };
        }
        read(&bytes);
        let payload = vec![7; s.len as usize];
        let mut out = vec![0; MAX_HEADER + payload.len()];
        let e = encode(&mut out, &envelope, &agreed, &s, Payload::Bytes(&payload)).expect("expressible");
        for (at, to) in changes {
            out[at.index(e.written)] = to;
            read(&out[..e.written]);
        }
    }
}

#[test]
fn marks_stand_where_the_profiles_put_them() {
    let ends = Envelope::new(SocketAddr::from(([10, 0, 0, 1], 1)), SocketAddr::from(([10, 0, 0, 2], 2)));
    let ack = Segment { flags: Flags::ACK, ..Segment::default() };
    let dummy = Segment { len: 4, mark: Mark::Dummy, low_priority: true, ..ack };
    let bytes = |profile, s: &Segment| {
        let mut out = [0; 200];
        let e =
            encode(&mut out, &ends, &Agreement::with(profile), s, Payload::Bytes(&[0; 4][..s.len as usize]));
        e.map(|e| out[..e.written].to_vec())
    };
    // Bits of byte 12 of the TCP header; DSCP LE, not ECN-capable: the byte 0x04.
    for (s, bits) in [
        (dummy, 0x08),
        (Segment { mark: Mark::Nil, ..dummy }, 0x0a),
        (Segment { mark: Mark::DummyAck, ..ack }, 0x04),
        (Segment { mark: Mark::NilAck, ..ack }, 0x06),
    ] {
        for profile in [Profile::Paper, Profile::Compact] {
            let b = bytes(profile, &s).expect("expressible");
            assert_eq!((b[32], b[1]), (0x50 | bits, if s.low_priority { 4 } else { 0 }), "{s:?}");
        }
        // Without a number there is no option mark, and without agreement no mark at all.
        assert_eq!(bytes(Profile::Option, &s), Err(EncodeError::Mark));
        assert_eq!(bytes(Profile::Off, &s), Err(EncodeError::Mark));
    }
    let numbered = Segment { probe_id: Some(0xabcd), ..dummy };
    let b = bytes(Profile::Option, &numbered).expect("expressible");
    assert_eq!(&b[40..52], &[1, 1, 253, 10, 0x50, 0x45, 0x41, 0x43, 0x01, 0, 0xab, 0xcd]);
    assert_eq!(b[32], 0x80, "no reserved bits");
    let answer = Segment { mark: Mark::DummyAck, probe_id: Some(1), ..ack };
    assert_eq!(bytes(Profile::Option, &answer).expect("expressible")[48], 0x81);
    // Neither an answer with payload nor a probe without one.
    for wrong in [Segment { len: 4, ..answer }, Segment { len: 0, ..numbered }] {
        assert_eq!(bytes(Profile::Option, &wrong), Err(EncodeError::Mark));
    }
    // What says both is no mark: all bits at once.
    let mut b = bytes(Profile::Paper, &dummy).expect("expressible");
    b[32] |= 0x04;
    b[36..38].fill(0);
    let sum = skyhaul_wire::checksum::Sum::default().bytes(&b[12..20]).long(6).long(24).bytes(&b[20..]);
    b[36..38].copy_from_slice(&sum.finish().to_be_bytes());
    let Transport::Tcp(t) = Packet::parse(&b).expect("well-formed").transport else { panic!("TCP") };
    assert_eq!(t.segment(&Agreement::with(Profile::Paper)).mark, Mark::None);
    // A receiver that agreed on nothing sees an ordinary segment.
    let b = bytes(Profile::Option, &numbered).expect("expressible");
    let Transport::Tcp(t) = Packet::parse(&b).expect("well-formed").transport else { panic!("TCP") };
    assert_eq!(t.segment(&Agreement::default()).mark, Mark::None);
}

#[test]
fn beside_timestamps_and_a_mark_there_is_room_for_one_sack_block() {
    let agreed = Agreement::with(Profile::Option);
    let plain = Segment { flags: Flags::ACK, ..Segment::default() };
    let ts = Segment { ts: Some((1, 2)), ..plain };
    let marked = Segment { mark: Mark::DummyAck, probe_id: Some(1), ..ts };
    assert_eq!([plain, ts, marked].map(|s| sack_room(&agreed, &s)), [4, 3, 1]);
}

#[test]
fn the_option_of_accurate_ecn_is_written_as_the_rfc_draws_it() {
    // RFC 9768 §3.2.3: the options of an acknowledgement with these counters, and what is read back.
    let bytes = |ect0, ce, ect1| EcnBytes { ect0, ce, ect1 };
    let cases: [(EcnBytes, &[u8]); 4] = [
        (bytes(1, 0x010203, 0x040506), &[174, 8, 4, 5, 6, 1, 2, 3]),
        (bytes(0x040506, 0x010203, 1), &[172, 8, 4, 5, 6, 1, 2, 3]),
        (bytes(7, 8, 9), &[1, 172, 11, 0, 0, 7, 0, 0, 8, 0, 0, 9]),
        (EcnBytes::INITIAL, &[174, 8, 0, 0, 1, 0, 0, 0]),
    ];
    let envelope = Envelope::new("10.0.0.1:5".parse().unwrap(), "10.0.0.2:6".parse().unwrap());
    let agreed = Agreement::default();
    for (counters, option) in cases {
        for ts in [None, Some((1, 2))] {
            let s = Segment { flags: Flags::ACK, ts, ecn_bytes: Some(counters), ..Segment::default() };
            let mut out = vec![0; MAX_HEADER];
            let n =
                encode(&mut out, &envelope, &agreed, &s, Payload::Bytes(&[])).expect("expressible").written;
            assert!(out[..n].ends_with(option), "{counters:?}: {:?}", &out[40..n]);
            let Transport::Tcp(t) = Packet::parse(&out[..n]).expect("well-formed").transport else {
                panic!("TCP")
            };
            assert_eq!(t.segment(&agreed), s);
        }
    }
    // Beside timestamps and three SACK blocks there is no room, and it is left out.
    let mut sack = SackBlocks::EMPTY;
    (0..3).for_each(|i| sack.push(Seq(i), Seq(i + 1)));
    let s = Segment { flags: Flags::ACK, ts: Some((1, 2)), sack, ..Segment::default() };
    let full = Segment { ecn_bytes: Some(EcnBytes::INITIAL), ..s };
    let mut out = vec![0; MAX_HEADER];
    let n = encode(&mut out, &envelope, &agreed, &full, Payload::Bytes(&[])).expect("expressible").written;
    let Transport::Tcp(t) = Packet::parse(&out[..n]).expect("well-formed").transport else { panic!("TCP") };
    assert_eq!(t.segment(&agreed), s);
}

#[test]
fn the_flag_ae_is_the_last_bit_before_the_flags() {
    let envelope = Envelope::new("10.0.0.1:5".parse().unwrap(), "10.0.0.2:6".parse().unwrap());
    for ace in 0..8 {
        let flags = Flags::ACK.with(Flags::of_ace(ace));
        let s = Segment { flags, ..Segment::default() };
        let mut out = vec![0; MAX_HEADER];
        let n = encode(&mut out, &envelope, &Agreement::default(), &s, Payload::Bytes(&[])).unwrap().written;
        assert_eq!((out[32] & 1, out[33]), (ace >> 2, 0x10 | (ace & 3) << 6));
        let Transport::Tcp(t) = Packet::parse(&out[..n]).expect("well-formed").transport else {
            panic!("TCP")
        };
        assert_eq!(t.flags, flags);
    }
}
