use super::*;
use crate::outlet::Merge;
use skyhaul_base::Rng;
use skyhaul_tcp::{Flags, Mark, Segment, Seq};
use skyhaul_wire::checksum::Sum;
use skyhaul_wire::{
    Agreement, Checksum, Envelope, MAX_HEADER, Packet, Plan, Profile, Transport, encode_with, ip,
};
use tun_rs::{VIRTIO_NET_HDR_GSO_TCPV6, VirtioNetHdr};

/// A device that records what is written to it, and the packets as they were before merging.
struct Device {
    departures: Departures,
    agreed: Agreement,
    envelope: Envelope,
    written: Vec<Vec<u8>>,
    seen: Vec<Vec<u8>>,
}

impl Device {
    fn new(plan: Plan, profile: Profile, v4: bool) -> Self {
        let ends = if v4 { ["10.0.0.1:1000", "10.0.0.2:2000"] } else { ["[fd00::1]:1000", "[fd00::2]:2000"] };
        let [src, dst] = ends.map(|e| e.parse().unwrap());
        Self {
            departures: Departures::default(),
            agreed: Agreement { plan, ..Agreement::with(profile) },
            envelope: Envelope::new(src, dst),
            written: Vec::new(),
            seen: Vec::new(),
        }
    }
    fn push(&mut self, s: &Segment, merge: Merge) {
        let Self { departures, agreed, envelope, written, seen } = self;
        let fill = |room: &mut [u8]| {
            for (i, b) in room.iter_mut().enumerate() {
                *b = (s.seq.0 as usize + i) as u8;
            }
        };
        let sum = if merge == Merge::Allowed { departures.checksum() } else { Checksum::Written };
        let write = |room: &mut [u8]| encode_with(room, envelope, agreed, s, sum, fill);
        let most = MAX_HEADER + s.len as usize;
        let show = |p: &[u8]| seen.push(p.to_vec());
        departures.push(most, merge, write, |p| written.push(p.to_vec()), show).unwrap();
    }
    fn flush(&mut self) {
        let Self { departures, written, .. } = self;
        departures.flush(|p| written.push(p.to_vec()));
    }
    /// The packets of each super-packet written, as the kernel would split it.
    fn taken_apart(&self) -> Vec<Vec<Vec<u8>>> {
        self.written.iter().map(|w| apart(w)).collect()
    }
}

/// The packets of a super-packet, by the library's reading of its header.
fn apart(w: &[u8]) -> Vec<Vec<u8>> {
    let header = VirtioNetHdr::decode(&w[..VIRTIO_NET_HDR_LEN]).unwrap();
    let mut packet = w[VIRTIO_NET_HDR_LEN..].to_vec();
    if header.gso_type == 0 {
        if header.flags == NEEDS_CHECKSUM {
            let (from, at) = (usize::from(header.csum_start), usize::from(header.csum_offset));
            let sum = Sum::default().bytes(&packet[from..]).finish();
            packet[from + at..from + at + 2].copy_from_slice(&sum.to_be_bytes());
        } else {
            assert_eq!(header.flags, 0);
        }
        return vec![packet];
    }
    let v6 = header.gso_type == VIRTIO_NET_HDR_GSO_TCPV6;
    const MOST: usize = 800;
    let (mut out, mut sizes) = (vec![vec![0; 2048]; MOST], vec![0; MOST]);
    let n = tun_rs::gso_split(&mut packet, header, &mut out, &mut sizes, 0, v6).unwrap();
    out.iter().zip(sizes).take(n).map(|(p, len)| p[..len].to_vec()).collect()
}

fn data(n: u32, len: u32) -> Segment {
    let seq = Seq(u32::MAX - 5000).add(n * 1000);
    let ts = Some((7, 9));
    Segment { seq, ack: Seq(5), len, window: 1000, ts, flags: Flags::ACK, ..Segment::default() }
}
fn probe(n: u32) -> Segment {
    Segment { mark: Mark::Dummy, low_priority: true, ts: None, ..data(n, 1000) }
}

#[test]
fn what_follows_is_joined_and_comes_apart_as_it_was() {
    for v4 in [true, false] {
        let mut d = Device::new(Plan::LowerEffort, Profile::Paper, v4);
        for n in 0..10 {
            d.push(&data(n, 1000), Merge::Allowed);
        }
        d.push(&data(10, 400), Merge::Allowed);
        // Nothing can follow a shorter one.
        d.push(&Segment { seq: data(10, 0).seq.add(400), ..data(0, 1000) }, Merge::Allowed);
        d.flush();
        let apart = d.taken_apart();
        assert_eq!(apart.iter().map(Vec::len).collect::<Vec<_>>(), [11, 1]);
        for (i, (p, seen)) in apart.concat().iter().zip(&d.seen).enumerate() {
            let read = |p: &[u8]| match Packet::parse(p).unwrap().transport {
                Transport::Tcp(t) => (t.segment(&d.agreed), t.payload.to_vec()),
                other => panic!("{other:?}"),
            };
            assert_eq!(read(p), read(seen), "packet {i}");
        }
    }
}

fn arrived(w: &[u8]) -> Arrivals {
    let mut a = Arrivals::default();
    assert!(a.hold(w));
    a
}

#[test]
fn what_is_written_arrives_whole_or_apart() {
    for (v4, len, number) in [(true, 1000, 10), (false, 1000, 10), (true, 88, 700), (true, 1000, 1)] {
        let mut d = Device::new(Plan::LowerEffort, Profile::Paper, v4);
        d.departures.set_checksum(Checksum::Left);
        for n in 0..number {
            let seq = data(0, 0).seq.add(n * len);
            d.push(&Segment { seq, ..data(0, len) }, Merge::Allowed);
        }
        d.flush();
        assert_eq!(d.written.len(), 1);
        let mut a = arrived(&d.written[0]);
        let (whole, packets) = a.whole().expect("no checksum to verify");
        assert_eq!((whole, packets), (&d.written[0][VIRTIO_NET_HDR_LEN..], u64::from(number)));
        match Packet::parse_verified(whole).unwrap().transport {
            Transport::Tcp(t) => assert_eq!(t.payload.len(), (len * number) as usize),
            other => panic!("{other:?}"),
        }
        let packets: Vec<Vec<u8>> = a.packets().map(<[u8]>::to_vec).collect();
        assert_eq!(packets, apart(&d.written[0]));
        assert!(packets.iter().all(|p| Packet::parse(p).is_ok()));
    }
}

/// The kernel does not write such headers. Reading them, and what follows from them, must not panic.
#[test]
fn headers_that_make_no_sense_are_survived() {
    let mut d = Device::new(Plan::LowerEffort, Profile::Paper, true);
    (0..5).for_each(|n| d.push(&data(n, 1000), Merge::Allowed));
    d.flush();
    let good = d.written[0].clone();
    for n in 0..good.len().min(200) {
        let mut a = arrived(&good[..n]);
        let _ = a.whole();
        for p in a.packets() {
            let _ = Packet::parse(p);
        }
    }
    for at in 0..VIRTIO_NET_HDR_LEN + 40 {
        for value in [0, 1, 2, 3, 5, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] = value;
            let mut a = arrived(&bad);
            if let Some((whole, _)) = a.whole() {
                let _ = Packet::parse_verified(whole);
            }
            for p in a.packets() {
                let _ = Packet::parse(p);
            }
        }
    }
}

#[test]
fn the_end_of_a_write_ends_a_super_packet() {
    let mut d = Device::new(Plan::LowerEffort, Profile::Off, false);
    let end = |n| Segment { flags: Flags::ACK.with(Flags::PSH), ..data(n, 1000) };
    for s in [data(0, 1000), data(1, 1000), end(2), data(3, 1000), end(4), end(5), data(6, 1000)] {
        d.push(&s, Merge::Allowed);
    }
    d.flush();
    let apart = d.taken_apart();
    assert_eq!(apart.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2, 1, 1]);
    assert_eq!(apart.concat(), d.seen);
}

#[test]
fn a_checksum_that_is_left_to_the_device_is_the_same_one() {
    for v4 in [true, false] {
        let [mut written, mut left] = [Checksum::Written, Checksum::Left].map(|by| {
            let mut d = Device::new(Plan::LowerEffort, Profile::Paper, v4);
            d.departures.set_checksum(by);
            let bare = Segment { ack: Seq(9), ..data(4, 0) };
            let fin = Segment { flags: Flags::ACK.with(Flags::FIN), ..data(5, 0) };
            for s in [data(0, 1000), data(1, 1000), probe(2), data(3, 333), bare, fin] {
                d.push(&s, if s.mark == Mark::None { Merge::Allowed } else { Merge::Alone });
            }
            d
        });
        // A capture may begin here. From now on every packet is written with its checksum, and is not merged with a waiting packet
        // whose checksum is left to the device.
        left.departures.set_checksum(Checksum::Written);
        for d in [&mut written, &mut left] {
            d.push(&data(6, 1000), Merge::Allowed);
            d.push(&data(7, 1000), Merge::Allowed);
            d.flush();
        }
        assert_eq!(left.taken_apart(), written.taken_apart());
        assert_eq!(left.taken_apart().iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1, 1, 1, 2]);
        // IPv4 packets of a super-packet have new identifications, so only those of IPv6 are the same.
        assert!(v4 || written.taken_apart().concat() == written.seen);
        assert_ne!(left.seen[0], written.seen[0], "no checksum was left to the device");
        let read = |p: &[u8]| Packet::parse(p).map(|p| p.ip).map_err(|e| e.to_string());
        for p in left.taken_apart().concat() {
            read(&p).unwrap();
        }
    }
}

#[test]
fn other_numbers_options_acknowledgements_and_flags_are_not_joined() {
    let all: [fn(&mut Segment); 5] = [
        |s| s.seq = s.seq.add(1),
        |s| s.ts = Some((8, 9)),
        |s| s.ack = Seq(6),
        |s| s.flags = Flags::ACK.with(Flags::FIN),
        |s| s.window = 2000,
    ];
    for change in all {
        let mut d = Device::new(Plan::LowerEffort, Profile::Off, true);
        let mut other = data(1, 1000);
        change(&mut other);
        d.push(&data(0, 1000), Merge::Allowed);
        d.push(&other, Merge::Allowed);
        d.flush();
        let apart = d.taken_apart();
        assert_eq!(apart.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1], "{other:?}");
        assert_eq!(apart.concat(), d.seen);
    }
}

#[test]
fn probes_stay_packets_of_their_own_in_their_place_under_every_plan() {
    for plan in [Plan::LowerEffort, Plan::Scavenger, Plan::Precedence] {
        let mut d = Device::new(plan, Profile::Paper, true);
        let order = [data(0, 1000), data(1, 1000), probe(0), probe(1), data(2, 1000), data(3, 1000)];
        for s in &order {
            let merge = if s.mark == Mark::None { Merge::Allowed } else { Merge::Alone };
            d.push(s, merge);
        }
        d.flush();
        let apart = d.taken_apart();
        assert_eq!(apart.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1, 2], "{plan:?}");
        // Every packet that comes out has the priority and the mark of the one that went in.
        for (p, s) in apart.concat().iter().zip(&order) {
            let packet = Packet::parse(p).unwrap();
            let Transport::Tcp(t) = packet.transport else { panic!("TCP") };
            assert_eq!(packet.ip.dscp, plan.dscp(s.low_priority));
            assert_eq!(t.segment(&d.agreed), *s);
        }
    }
}

#[test]
fn data_of_another_priority_is_never_joined() {
    for plan in [Plan::LowerEffort, Plan::Scavenger, Plan::Precedence] {
        let mut d = Device::new(plan, Profile::Off, false);
        d.push(&data(0, 1000), Merge::Allowed);
        d.push(&Segment { low_priority: true, ..data(1, 1000) }, Merge::Allowed);
        d.push(&data(2, 1000), Merge::Allowed);
        d.flush();
        assert_eq!(d.taken_apart().iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1], "{plan:?}");
    }
}

#[test]
fn a_super_packet_is_never_longer_than_ip_allows() {
    let mut d = Device::new(Plan::LowerEffort, Profile::Off, true);
    for n in 0..200 {
        d.push(&data(n, 1000), Merge::Allowed);
    }
    d.flush();
    assert!(d.written.iter().all(|w| w.len() <= VIRTIO_NET_HDR_LEN + LONGEST));
    assert_eq!(d.taken_apart().concat().len(), 200);
    assert!(d.written.len() <= 4, "{}", d.written.len());
}

#[test]
fn a_packet_that_cannot_be_written_leaves_the_others_as_they_are() {
    let mut d = Device::new(Plan::LowerEffort, Profile::Off, true);
    d.push(&data(0, 1000), Merge::Allowed);
    let failed = d.departures.push(
        1200,
        Merge::Allowed,
        |room| {
            room.fill(0xaa);
            Err::<usize, _>("no")
        },
        |_| panic!("nothing is written yet"),
        |_| panic!("there is no packet"),
    );
    assert_eq!(failed, Err("no"));
    d.push(&data(1, 1000), Merge::Allowed);
    d.flush();
    let apart = d.taken_apart();
    assert_eq!(apart.len(), 1);
    let payload = |p: &[u8]| p[p.len() - 1000..].to_vec();
    assert_eq!(payload(&apart[0][0]), payload(&d.seen[0]));
    assert_eq!(payload(&apart[0][1]), payload(&d.seen[1]));
}

/// What a device makes of what is written to it, by virtio 1.2 §5.1.6 and RFC 9293 alone: every packet gets the headers of the whole,
/// with its own lengths, number, flags and checksums.
fn naive(w: &[u8]) -> Vec<Vec<u8>> {
    let (header, whole) = w.split_at(VIRTIO_NET_HDR_LEN);
    let short = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let (flags, kind, headers, each, start, place) =
        (header[0], header[1], short(2), short(4), short(6), short(8));
    let checked = |mut p: Vec<u8>| {
        let v4 = p[0] >> 4 == 4;
        assert_eq!((start, place), (if v4 { 20 } else { 40 }, 16));
        let addresses = if v4 { &p[12..20] } else { &p[8..40] };
        let pseudo = Sum::default().bytes(addresses).long(6).long((p.len() - start) as u32);
        p[start + place..start + place + 2].fill(0);
        let sum = pseudo.bytes(&p[start..]).finish();
        p[start + place..start + place + 2].copy_from_slice(&sum.to_be_bytes());
        p
    };
    if kind == 0 {
        return vec![if flags == NEEDS_CHECKSUM { checked(whole.to_vec()) } else { whole.to_vec() }];
    }
    assert_eq!(flags, NEEDS_CHECKSUM);
    let (head, payload) = whole.split_at(headers);
    let first = u32::from_be_bytes(head[start + 4..start + 8].try_into().unwrap());
    let number = payload.len().div_ceil(each);
    let packet = |(i, part): (usize, &[u8])| {
        let mut p = [head, part].concat();
        let length = p.len() as u16;
        if p[0] >> 4 == 4 {
            let id = u16::from_be_bytes([p[4], p[5]]).wrapping_add(i as u16);
            p[2..4].copy_from_slice(&length.to_be_bytes());
            p[4..6].copy_from_slice(&id.to_be_bytes());
            p[10..12].fill(0);
            let sum = Sum::default().bytes(&p[..20]).finish();
            p[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            p[4..6].copy_from_slice(&(length - 40).to_be_bytes());
        }
        let seq = first.wrapping_add((i * each) as u32);
        p[start + 4..start + 8].copy_from_slice(&seq.to_be_bytes());
        if i + 1 < number {
            p[start + 13] &= !Flags::PSH.bits();
        }
        checked(p)
    };
    payload.chunks(each).enumerate().map(packet).collect()
}

/// Every length from a byte to far more than the headers, in every order: what comes out is what went in, as without merging.
#[test]
fn whatever_is_merged_is_split_into_the_same_packets() {
    let mut rng = Rng::stream(1, "departures");
    let mut merged = 0;
    for round in 0..600 {
        let v4 = rng.below(2) == 0;
        let by = if rng.below(2) == 0 { Checksum::Left } else { Checksum::Written };
        let mut d = Device::new(Plan::LowerEffort, Profile::Paper, v4);
        d.departures.set_checksum(by);
        let mss = if round < 400 { 1 + round / 4 } else { 1 + rng.below(1400) as u32 };
        let ts = (rng.below(2) == 0).then_some((7, 9));
        let mut seq = Seq(u32::MAX - rng.below(5000) as u32);
        for _ in 0..rng.below(60) {
            // Most are full, as those of a peer with this MSS; others have any length.
            let len = if rng.below(4) > 0 { mss } else { 1 + rng.below(mss.into()) as u32 };
            let flags = match rng.below(12) {
                0 => Flags::ACK.with(Flags::PSH),
                1 => Flags::ACK.with(Flags::FIN),
                2 => Flags::SYN,
                3 => Flags::RST,
                _ => Flags::ACK,
            };
            let len = if rng.below(16) == 0 { 0 } else { len };
            let ack = Seq(5 + u32::from(rng.below(20) == 0));
            let low_priority = rng.below(20) == 0;
            let s = Segment { seq, ack, len, window: 1000, ts, flags, low_priority, ..Segment::default() };
            let merge = match rng.below(20) {
                0 => Merge::Alone,
                _ if low_priority => Merge::Low,
                _ => Merge::Allowed,
            };
            d.push(&s, merge);
            if rng.below(20) > 0 {
                seq = seq.add(len);
            }
            if rng.below(20) == 0 {
                d.flush();
            }
        }
        d.flush();
        let mut out = Vec::new();
        for w in &d.written {
            let parts = naive(w);
            merged += usize::from(parts.len() > 1);
            // The library's reading is the same.
            let mut a = arrived(w);
            assert!(a.packets().eq(parts.iter().map(|p| &p[..])), "MSS {mss}");
            out.extend(parts);
        }
        // A packet that waits may lack its checksum, and a device numbers what it splits (RFC 6864: no one looks at it).
        let plain = |p: &Vec<u8>| {
            let mut p = p.clone();
            let start = if v4 { ip::V4_HEADER } else { ip::V6_HEADER };
            if v4 {
                assert_eq!(Sum::default().bytes(&p[..start]).finish(), 0, "MSS {mss}");
                p[4..6].fill(0);
                p[10..12].fill(0);
            }
            p[start + 16..start + 18].fill(0);
            p
        };
        assert!(out.iter().all(|p| Packet::parse(p).is_ok()), "MSS {mss}: checksums");
        let [out, seen] = [&out, &d.seen].map(|all| all.iter().map(plain).collect::<Vec<_>>());
        assert_eq!(out, seen, "MSS {mss}, {} packets", seen.len());
    }
    assert!(merged > 1000, "{merged} super-packets");
}

/// Peers with the smallest segments get one super-packet for many of them.
#[test]
fn segments_shorter_than_their_headers_are_merged() {
    for (v4, len, ts) in
        [(true, 36, true), (true, 1, true), (true, 36, false), (false, 71, true), (false, 1, false)]
    {
        let mut d = Device::new(Plan::LowerEffort, Profile::Off, v4);
        d.departures.set_checksum(Checksum::Left);
        for n in 0..100 {
            let s = data(0, len);
            d.push(&Segment { seq: s.seq.add(n * len), ts: s.ts.filter(|_| ts), ..s }, Merge::Allowed);
        }
        d.flush();
        assert_eq!(d.written.len(), 1, "{len} bytes");
        assert_eq!(naive(&d.written[0]).len(), 100);
    }
}
