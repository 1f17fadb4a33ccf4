//! Packets of every kind over paths that lose and reorder: the same packet or none.

use super::header::{Layout, Profile};
use super::{COMPRESSED, Compressor, Decompressor, SEVERAL, forms, join, joined_size};
use crate::ip::{checksum, sum};
use proptest::prelude::*;
use skyhaul_base::{Duration, Instant, Rng};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Udp,
    Quic,
    Rtp,
    Tcp,
    Esp,
    Gre,
    Icmp,
    Fragment,
    Noise,
}
const ALL: [What; 9] = [
    What::Udp,
    What::Quic,
    What::Rtp,
    What::Tcp,
    What::Esp,
    What::Gre,
    What::Icmp,
    What::Fragment,
    What::Noise,
];

/// A flow of packets as hosts send them.
#[derive(Debug)]
struct Flow {
    what: What,
    v6: bool,
    number: u8,
    id: u16,
    seq: u32,
    ack: u32,
    stamp: u32,
    class: u8,
    limit: u8,
    sums: bool,
    /// How often something unusual happens to a packet, of 100.
    odd: u64,
}

impl Flow {
    fn new(what: What, v6: bool, number: u8, odd: u64, rng: &mut Rng) -> Self {
        let mut n = || rng.below(1 << 32) as u32;
        let (id, seq, ack, stamp) = (n() as u16, n(), n(), n());
        Self { what, v6, number, id, seq, ack, stamp, class: 0, limit: 63, sums: true, odd }
    }

    fn transport(&mut self, rng: &mut Rng) -> (u8, Vec<u8>) {
        let ports = [0x30, self.number, 1, 187];
        let payload = |rng: &mut Rng, most: u64| -> Vec<u8> {
            let len = rng.below(most + 1);
            (0..len).map(|_| rng.below(256) as u8).collect()
        };
        let odd = rng.below(100) < self.odd;
        match self.what {
            What::Udp | What::Quic | What::Rtp => {
                let body = match self.what {
                    What::Rtp => {
                        self.seq = self.seq.wrapping_add(if odd { rng.below(9) as u32 } else { 1 });
                        self.stamp =
                            self.stamp.wrapping_add(if odd { rng.below(1 << 32) as u32 } else { 160 });
                        let mark = if odd { 0x80 } else { 0 };
                        let mut b = vec![0x80, mark];
                        b.extend((self.seq as u16).to_be_bytes());
                        b.extend(self.stamp.to_be_bytes());
                        b.extend(if odd && rng.below(3) == 0 { [9; 4] } else { [self.number; 4] });
                        b.extend(payload(rng, 160));
                        b
                    }
                    What::Quic => [vec![0x40], payload(rng, 1251)].concat(),
                    _ => payload(rng, 400),
                };
                let len = (8 + body.len()) as u16;
                (17, [&ports[..], &len.to_be_bytes(), &[0, 0], &body].concat())
            }
            What::Tcp => {
                let stamps = |own: u32, peer: u32| {
                    [&[1, 1, 8, 10][..], &own.to_be_bytes(), &peer.to_be_bytes()].concat()
                };
                self.seq = self.seq.wrapping_add(rng.below(3000) as u32);
                self.ack = self.ack.wrapping_add(rng.below(3000) as u32);
                self.stamp = self.stamp.wrapping_add(rng.below(20) as u32);
                let mut options = stamps(self.stamp, self.stamp.wrapping_sub(77));
                if odd {
                    match rng.below(4) {
                        0 => options.extend([1, 1, 5, 10, 0, 0, 1, 2, 0, 0, 3, 4]),
                        1 => options.clear(),
                        2 => options = vec![2, 4, 5, 0xb4, 8, 3, 9, 0],
                        _ => options.rotate_left(4),
                    }
                }
                let offset = ((20 + options.len()) / 4) as u8;
                let flags = if odd { rng.below(256) as u8 } else { 0x10 };
                let window = (rng.below(3) as u16 + 500).to_be_bytes();
                let head = [&ports[..], &self.seq.to_be_bytes(), &self.ack.to_be_bytes()].concat();
                let low = if odd { 1 } else { 0 };
                let rest = [offset << 4 | low, flags, window[0], window[1], 0, 0, 0, u8::from(odd)];
                let body = if self.number % 2 == 0 { Vec::new() } else { payload(rng, 1000) };
                (6, [head, rest.to_vec(), options, body].concat())
            }
            What::Esp => {
                self.seq = self.seq.wrapping_add(if odd { rng.below(1 << 32) as u32 } else { 1 });
                let head = [[7, 7, 7, self.number], self.seq.to_be_bytes()].concat();
                (50, [head, payload(rng, 1000)].concat())
            }
            What::Gre => (47, [vec![0, 0, 8, 0], payload(rng, 500)].concat()),
            What::Icmp => (1, [vec![8, 0, 1, 2], payload(rng, 60)].concat()),
            What::Fragment => (if self.v6 { 44 } else { 17 }, payload(rng, 700)),
            What::Noise => (rng.below(256) as u8, payload(rng, 90)),
        }
    }

    fn next(&mut self, rng: &mut Rng) -> Vec<u8> {
        let (protocol, mut transport) = self.transport(rng);
        let odd = rng.below(100) < self.odd;
        if odd {
            match rng.below(4) {
                0 => self.class = rng.below(256) as u8,
                1 => self.limit = rng.below(256) as u8,
                2 => self.sums = !self.sums,
                _ => self.id = rng.below(1 << 16) as u16,
            }
        }
        self.id = self.id.wrapping_add(if self.number % 3 == 0 { 0 } else { 1 + rng.below(2) as u16 });
        let mut p = if self.v6 {
            let mut p = vec![0x60 | self.class >> 4, self.class << 4, 7, 9, 0, 0, protocol, self.limit];
            p[4..6].copy_from_slice(&(transport.len() as u16).to_be_bytes());
            p.extend([0xfd; 15]);
            p.extend([self.number % 5; 17]);
            p
        } else {
            let len = ((20 + transport.len()) as u16).to_be_bytes();
            let more = if self.what == What::Fragment { 0x20 } else { 0x40 };
            let id = self.id.to_be_bytes();
            let mut p = vec![0x45, self.class, len[0], len[1], id[0], id[1], more, 0, self.limit, protocol];
            p.extend([0, 0, 10, 0, 0, self.number % 5, 10, 0, 0, 9]);
            let header = checksum(sum(&p)).to_be_bytes();
            p[10..12].copy_from_slice(&header);
            p
        };
        let addresses = if self.v6 { 8..40 } else { 12..20 };
        let at = match protocol {
            6 => Some(16),
            17 if transport.len() >= 8 => Some(6),
            _ => None,
        };
        if let Some(at) = at.filter(|at| at + 2 <= transport.len() && self.sums) {
            let pseudo = sum(&p[addresses]) + u64::from(protocol) + transport.len() as u64;
            let value = match checksum(pseudo + sum(&transport)) {
                0 if protocol == 17 => 0xffff,
                value => value,
            };
            transport[at..at + 2].copy_from_slice(&value.to_be_bytes());
        }
        p.extend(transport);
        if odd {
            match rng.below(12) {
                // A wrong bit somewhere, wrong checksums and lengths among them.
                0 => {
                    let at = rng.below(p.len() as u64) as usize;
                    p[at] ^= 1 << rng.below(8);
                }
                1 => p.truncate(rng.below(1 + p.len() as u64) as usize),
                2 => p.push(0),
                _ => {}
            }
        }
        if p.first().is_none_or(|b| !matches!(b >> 4, 4 | 6)) {
            p = vec![0x45];
        }
        p
    }
}

/// What a path does, drawn at random.
#[derive(Clone, Copy, Debug)]
struct Channel {
    loss: f64,
    /// Largest extra delay of a datagram, in packets.
    reorder: u64,
    acks_lost: f64,
    /// Several packets in one datagram, so often.
    together: f64,
}

#[derive(Debug, Default)]
struct Outcome {
    packets: u64,
    bytes: u64,
    carried: u64,
    compressed: u64,
    arrived: u64,
    unreadable: u64,
}

/// Packets, and the form in which they are carried together.
type Datagram = (Vec<Vec<u8>>, Vec<u8>);

/// Flows whose packets take turns. Panics if a packet comes out that differs from the one that was sent.
fn drive(seed: u64, flows: &mut [Flow], packets: u64, gap: Duration, channel: Channel) -> Outcome {
    let mut rng = Rng::stream(seed, "channel");
    let (mut near, mut far) = (Compressor::default(), Decompressor::default());
    let mut out = Outcome::default();
    let mut now = Instant::ZERO;
    // Datagrams under way by the step of their arrival, and acknowledgements on their way back.
    let mut flying: BTreeMap<(u64, u64), Datagram> = BTreeMap::new();
    let mut acks: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for seq in 0..packets + 1000 {
        now += gap;
        if seq < packets {
            let (mut sent, mut carried) = (Vec::new(), Vec::new());
            for n in 0.. {
                let flow = rng.below(flows.len() as u64) as usize;
                let packet = flows[flow].next(&mut rng);
                let mut form = Vec::new();
                near.compress(now, seq, &packet, 1450, &mut form);
                out.packets += 1;
                out.bytes += packet.len() as u64;
                out.compressed += u64::from(form[0] & COMPRESSED != 0);
                assert!(form.len() <= packet.len() + 2);
                if n == 0 {
                    carried = form;
                } else {
                    assert!(joined_size(&carried, &form) >= carried.len() + form.len());
                    join(&mut carried, &form);
                }
                sent.push(packet);
                if rng.unit() >= channel.together {
                    break;
                }
            }
            out.carried += carried.len() as u64;
            if rng.unit() >= channel.loss {
                flying.insert((seq + 20 + rng.below(channel.reorder + 1), seq), (sent, carried));
            }
        }
        while let Some(at) = flying.first_entry().filter(|e| e.key().0 <= seq) {
            let ((_, number), (sent, carried)) = at.remove_entry();
            let mut installs = Vec::new();
            let forms = forms(&carried).expect("what was joined is taken apart");
            assert_eq!(forms.len(), sent.len());
            for (form, packet) in forms.iter().zip(&sent) {
                match far.restore(number, form) {
                    Some(restored) => {
                        assert_eq!(&restored.packet, packet, "another packet");
                        installs.extend(restored.installs);
                        out.arrived += 1;
                    }
                    None => out.unreadable += 1,
                }
            }
            if !installs.is_empty() && installs.iter().all(|i| *i) && rng.unit() >= channel.acks_lost {
                acks.insert((seq + 20 + rng.below(30), number), number);
            }
        }
        while let Some(at) = acks.first_entry().filter(|e| e.key().0 <= seq) {
            near.acknowledged(now, at.remove());
        }
    }
    out
}

fn flows(seed: u64, count: u8, odd: u64) -> Vec<Flow> {
    let mut rng = Rng::stream(seed, "flows");
    (0..count)
        .map(|n| {
            let what = ALL[rng.below(ALL.len() as u64) as usize];
            let v6 = rng.below(2) == 0;
            Flow::new(what, v6, n, odd, &mut rng)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn the_same_packet_or_none(
        seed in 0_u64..1 << 32,
        count in 1_u8..40,
        odd in prop_oneof![Just(0_u64), 0_u64..40],
        gap in prop_oneof![Just(1_u64), 1_u64..200],
        loss in prop_oneof![Just(0.0), 0.0..0.5_f64],
        reorder in prop_oneof![Just(0_u64), 0_u64..900],
        acks_lost in prop_oneof![Just(0.0), 0.0..0.9_f64],
        together in prop_oneof![Just(0.0), 0.0..0.9_f64],
    ) {
        let channel = Channel { loss, reorder, acks_lost, together };
        let mut flows = flows(seed, count, odd);
        let out = drive(seed, &mut flows, 1500, Duration::from_millis(gap), channel);
        if reorder == 0 {
            // What arrives in order finds its reference, whatever was lost.
            prop_assert_eq!(out.unreadable, 0);
        }
        prop_assert!(out.arrived + out.unreadable <= out.packets);
    }
}

/// More flows than contexts: they are taken from those that are idle.
#[test]
fn contexts_are_taken_from_idle_flows() {
    let mut rng = Rng::stream(5, "many");
    let (mut near, mut far) = (Compressor::default(), Decompressor::default());
    let (mut seq, mut compressed) = (0, 0);
    let mut now = Instant::ZERO;
    for round in 0..20_u16 {
        // 200 flows of 10 packets each, with ports and addresses of their own.
        for n in 0..200_u8 {
            let mut flow = Flow::new(What::Udp, n % 2 == 0, n, 0, &mut rng);
            for _ in 0..10 {
                let mut packet = flow.next(&mut rng);
                let at = if flow.v6 { 40 } else { 20 };
                packet[at..at + 2].copy_from_slice(&(1000 * (round + 1) + u16::from(n)).to_be_bytes());
                let mut form = Vec::new();
                near.compress(now, seq, &packet, 1450, &mut form);
                compressed += u32::from(form[0] & COMPRESSED != 0);
                let restored = far.restore(seq, &form).expect("is readable");
                assert_eq!(restored.packet, packet);
                if restored.installs == Some(true) {
                    near.acknowledged(now, seq);
                }
                seq += 1;
            }
            now += Duration::from_millis(2);
        }
        now += Duration::from_secs(2);
    }
    // All but the first ones of each flow.
    assert!(compressed > 20 * 200 * 7, "{compressed}");
}

/// How many bytes of headers are left of a flow that nothing else disturbs, with a round trip of 40 packets.
fn left(what: What, v6: bool) -> f64 {
    let mut rng = Rng::stream(1, "left");
    let mut flow = Flow::new(what, v6, 4, 0, &mut rng);
    // Without their payload.
    let header = |packet: &[u8]| {
        let layout = Layout::of(packet).expect("is a packet");
        let layout = if what == What::Rtp { layout.rtp(packet).expect("is RTP") } else { layout };
        layout.len
    };
    let mut now = Instant::ZERO;
    let (mut near, mut far) = (Compressor::default(), Decompressor::default());
    let mut acks = BTreeMap::new();
    let (mut bytes, mut packets) = (0, 0);
    for seq in 0..4000_u64 {
        let packet = flow.next(&mut rng);
        let mut form = Vec::new();
        near.compress(now, seq, &packet, 1450, &mut form);
        let restored = far.restore(seq, &form).expect("is readable");
        assert_eq!(restored.packet, packet);
        if restored.installs == Some(true) {
            acks.insert(seq + 40, seq);
        }
        if let Some(at) = acks.remove(&seq) {
            near.acknowledged(now, at);
        }
        if seq >= 1000 {
            bytes += form.len() + header(&packet) - packet.len();
            packets += 1;
        }
        now += Duration::from_millis(10);
    }
    bytes as f64 / f64::from(packets)
}

#[test]
fn headers_take_few_bytes() {
    for (what, v6, before, most) in [
        (What::Quic, false, 28, 3.3),
        (What::Quic, true, 48, 2.0),
        (What::Rtp, false, 40, 8.5),
        (What::Rtp, true, 60, 7.3),
        (What::Tcp, false, 52, 17.0),
        (What::Tcp, true, 72, 15.0),
        (What::Esp, false, 28, 4.3),
        (What::Icmp, false, 20, 3.3),
    ] {
        let left = left(what, v6);
        assert!(left <= most && left >= 2.0, "{what:?} {v6}: {left} of {before}");
    }
}

/// A reference that a later one has displaced is not taken for it.
#[test]
fn a_displaced_reference_is_missed() {
    let mut rng = Rng::stream(3, "displaced");
    let mut flow = Flow::new(What::Tcp, false, 2, 0, &mut rng);
    let (mut near, mut far) = (Compressor::default(), Decompressor::default());
    let mut now = Instant::ZERO;
    let mut late = Vec::new();
    for seq in 0..20_000 {
        let packet = flow.next(&mut rng);
        let mut form = Vec::new();
        near.compress(now, seq, &packet, 1450, &mut form);
        now += Duration::from_millis(1);
        // Every tenth one comes when all others are there.
        if seq % 10 == 0 && form[0] & 0x90 == 0x80 {
            late.push((seq, packet, form));
            continue;
        }
        let restored = far.restore(seq, &form).expect("is readable");
        assert_eq!(restored.packet, packet);
        if restored.installs == Some(true) {
            near.acknowledged(now, seq);
        }
    }
    let total = late.len();
    let read: Vec<_> =
        late.into_iter().filter_map(|(seq, packet, form)| Some((packet, far.restore(seq, &form)?))).collect();
    assert!(read.iter().all(|(packet, restored)| restored.packet == *packet));
    // Those of the last four seconds.
    assert!(read.len() > total / 10 && read.len() < total / 2, "{} of {total}", read.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]
    #[test]
    fn any_bytes_are_read_or_refused(
        seed in 0_u64..1 << 32,
        bytes in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 0..40),
    ) {
        let mut rng = Rng::stream(seed, "any");
        let mut far = Decompressor::default();
        let mut flows = flows(seed, 10, 10);
        for (seq, own) in (0_u64..).zip(bytes) {
            let n = rng.below(10) as usize;
            let packet = flows[n].next(&mut rng);
            // References to be misused.
            let mut form = vec![rng.below(12) as u8, rng.below(4) as u8];
            form.extend(&packet);
            far.restore(seq, &form);
            let mut form = own;
            if let Some(context) = form.get_mut(1) {
                *context &= 3;
            }
            if let Some(restored) = far.restore(seq + 1, &form) {
                prop_assert!(matches!(restored.packet[0] >> 4, 4 | 6));
            }
            if let Some(forms) = forms(&form) {
                prop_assert!(forms.iter().map(|f| f.len()).sum::<usize>() <= form.len());
            }
        }
    }
}

#[test]
fn datagrams_of_any_length_are_joined_and_taken_apart() {
    let all: Vec<Vec<u8>> = [1, 127, 128, 300, 1400].iter().map(|n| vec![0x45; *n]).collect();
    let mut carried = all[0].clone();
    for form in &all[1..] {
        let most = joined_size(&carried, form);
        join(&mut carried, form);
        assert!(carried.len() <= most);
    }
    assert_eq!(forms(&carried), Some(all.iter().map(Vec::as_slice).collect()));
    assert_eq!(carried[0], SEVERAL);
    assert_eq!(forms(&carried[..carried.len() - 1]), None);
}

/// A question to a name server comes from a port of its own each time: the pair of hosts has a context.
#[test]
fn new_flows_between_known_hosts_are_compressed() {
    let mut rng = Rng::stream(8, "dns");
    let (mut near, mut far) = (Compressor::default(), Decompressor::default());
    let mut now = Instant::ZERO;
    for seq in 0..100 {
        let mut flow = Flow::new(What::Udp, false, 6, 0, &mut rng);
        let mut packet = flow.next(&mut rng);
        packet[20..22].copy_from_slice(&(seq as u16 + 1000).to_be_bytes());
        let mut form = Vec::new();
        near.compress(now, seq, &packet, 1450, &mut form);
        let restored = far.restore(seq, &form).expect("is readable");
        assert_eq!(restored.packet, packet);
        if restored.installs == Some(true) {
            near.acknowledged(now, seq);
        }
        match seq {
            0 => assert_eq!(form, packet),
            1 => assert_eq!(form.len(), packet.len() + 2),
            _ => assert!(form.len() <= packet.len() - 16, "{} of {}", form.len(), packet.len()),
        }
        assert_eq!(Layout::of(&packet).map(|l| l.profile), Some(Profile::Udp));
        now += Duration::from_millis(30);
    }
}
