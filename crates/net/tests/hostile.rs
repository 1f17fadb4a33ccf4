//! Hostile paths and peers: middleboxes that strip, bleach, zero, thin and merge, and forged segments.
#![cfg(target_os = "linux")]

mod common;

use common::{Mangler, Weather, World, check, transfer};
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::ProbeSupport;
use skyhaul_net::host::{ConnId, Endpoint, Host};
use skyhaul_tcp::{Flags, SackBlocks, Segment, Seq};
use skyhaul_wire::checksum::Sum;
use skyhaul_wire::{Agreement, Envelope, Packet, Payload, Profile, Transport, ip};
use std::net::SocketAddr;

const MB: u64 = 1_000_000;
const HEADER: usize = 20;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn peach(profile: Profile) -> Endpoint {
    let cc = skyhaul_cc::Config::by_name("peach").expect("known");
    Endpoint { profile, ..Endpoint::host(cc) }
}
fn improved(profile: Profile) -> Endpoint {
    let cc = skyhaul_cc::Config::by_name("peach").expect("known");
    let readings = cc.readings();
    let cc = readings.into_iter().find(|(name, ..)| *name == "improved").expect("a reading").2;
    Endpoint { profile, ..Endpoint::host(cc) }
}
fn geo() -> World {
    World::new(Instant::ZERO, false, Weather { loss: 0.01, ..Weather::calm(ms(275)) })
}

/// Repairs the checksum of the TCP segment in an IPv4 packet that was changed.
fn repair(p: &mut [u8]) {
    p[HEADER + 16..HEADER + 18].fill(0);
    let len = p.len() - HEADER;
    let sum = Sum::default().bytes(&p[12..20]).long(6).long(len as u32).bytes(&p[HEADER..]).finish();
    p[HEADER + 16..HEADER + 18].copy_from_slice(&sum.to_be_bytes());
}
fn is_syn(p: &[u8]) -> bool {
    p[HEADER + 13] & 2 != 0
}
fn is_pure_ack(p: &[u8]) -> bool {
    p[HEADER + 13] == 0x10 && p.len() == HEADER + usize::from(p[HEADER + 12] >> 4) * 4
}
/// Blanks options of experiments (kind 253).
fn strip(p: &mut [u8]) {
    let end = HEADER + usize::from(p[HEADER + 12] >> 4) * 4;
    let mut at = HEADER + 20;
    while at < end {
        match p[at] {
            0 => break,
            1 => at += 1,
            kind => {
                let len = usize::from(p[at + 1]).max(2);
                if kind == 253 {
                    p[at..(at + len).min(end)].fill(1);
                }
                at += len;
            }
        }
    }
    repair(p);
}

fn both(w: &mut World, make: impl Fn() -> Mangler) {
    w.boxes = [Some(make()), Some(make())];
}

/// Sends 2 MB over a GEO path with this box in both directions; returns the world and the sender's connection.
fn through(profile: Profile, make: impl Fn() -> Mangler) -> (World, ConnId) {
    through_with(&peach(profile), make)
}

fn through_with(e: &Endpoint, make: impl Fn() -> Mangler) -> (World, ConnId) {
    let mut w = geo();
    both(&mut w, make);
    let (parties, ids) = transfer(&mut w, false, [e, e], 2 * MB, 50_000, |_, _, _| {});
    check(&w, &parties, ids);
    (w, ids[0])
}

#[test]
fn without_a_box_probes_are_answered_in_every_profile() {
    for profile in [Profile::Option, Profile::Compact, Profile::Paper] {
        let (w, id) = through(profile, || Box::new(|_, _, _| true));
        let c = w.hosts[0].conn(id).unwrap();
        assert_eq!(c.probe_support(), ProbeSupport::Yes, "{profile:?}");
        let n = c.counters();
        assert!(n.probes_sent > 20 && n.probes_answered > n.probes_sent / 2, "{profile:?}: {n:?}");
        assert_eq!(c.marks_by_option(), profile == Profile::Option);
    }
}

#[test]
fn a_box_that_strips_unknown_options_leaves_plain_tcp() {
    for profile in [Profile::Option, Profile::Compact] {
        let (w, id) = through(profile, || {
            Box::new(|_, p, _| {
                strip(p);
                true
            })
        });
        let c = w.hosts[0].conn(id).unwrap();
        assert_eq!((c.probe_support(), c.counters().probes_sent), (ProbeSupport::No, 0));
        assert!(!c.marks_by_option(), "{profile:?}: no probe was sent");
    }
}

#[test]
fn a_box_that_strips_options_after_the_handshake_costs_probes_and_nothing_else() {
    let (w, id) = through(Profile::Option, || {
        Box::new(|_, p, _| {
            if !is_syn(p) {
                strip(p);
            }
            true
        })
    });
    let n = w.hosts[0].conn(id).unwrap().counters();
    assert!(n.probes_sent > 0 && n.probes_answered == 0, "{n:?}");
}

#[test]
fn a_box_that_bleaches_priorities_changes_no_byte() {
    let (w, id) = through(Profile::Option, || {
        Box::new(|_, p, _| {
            ip::remark(p, 0);
            true
        })
    });
    assert!(w.hosts[0].conn(id).unwrap().counters().probes_answered > 0);
}

#[test]
fn bits_that_are_zeroed_give_way_to_options() {
    let (w, id) = through(Profile::Compact, || {
        Box::new(|_, p, _| {
            p[HEADER + 12] &= 0xf0;
            repair(p);
            true
        })
    });
    let c = w.hosts[0].conn(id).unwrap();
    assert!(c.marks_by_option());
    assert!(c.counters().probes_answered > 0, "answered once they are marked by options: {:?}", c.counters());
}

#[test]
fn bits_that_are_zeroed_without_negotiation_are_duplicates_and_no_losses() {
    let (w, id) = through(Profile::Paper, || {
        Box::new(|_, p, _| {
            p[HEADER + 12] &= 0xf0;
            repair(p);
            true
        })
    });
    let c = w.hosts[0].conn(id).unwrap();
    assert_eq!(c.probe_support(), ProbeSupport::No, "taken for a receiver that knows nothing of probes");
    assert!(c.counters().probes_sent > 0);
}

#[test]
fn acknowledgements_may_be_thinned_and_merged() {
    // Three of four pure acknowledgements vanish, answers to probes among them. After a timeout a window of one segment would
    // need four timeouts for each of its acknowledgements, so this is for the improved reading, which begins again with Sudden Start.
    let (w, id) = through_with(&improved(Profile::Option), || {
        let mut n = 0;
        Box::new(move |_, p, _| {
            n += u32::from(is_pure_ack(p));
            !is_pure_ack(p) || n % 4 == 0
        })
    });
    let n = w.hosts[0].conn(id).unwrap().counters();
    assert!(n.probes_answered < n.probes_sent);
    // A pure acknowledgement that comes within 5 ms of the last packet that was passed on is dropped: the next one includes it.
    through(Profile::Option, || {
        let mut last = Instant::ZERO;
        Box::new(move |now, p, _| {
            if is_pure_ack(p) && now > Instant::ZERO && now - last < ms(5) {
                return false;
            }
            last = now;
            true
        })
    });
}

#[test]
fn answers_that_are_doubled_open_the_window_once() {
    let (plain, id) = through(Profile::Option, || Box::new(|_, _, _| true));
    let mut w = geo();
    let e = peach(Profile::Option);
    let agreed = Agreement::with(Profile::Option);
    let mut copies: Vec<Vec<u8>> = Vec::new();
    let (parties, ids) = transfer(&mut w, false, [&e, &e], 2 * MB, 50_000, |w, client, _| {
        // The last answer that has arrived, from the client's journal, arrives once more.
        let c = w.hosts[0].conn(client).expect("there");
        let answer =
            c.journal().expect("recorded").ops().iter().rev().take(16).find_map(|(_, op)| match op {
                skyhaul_net::host::Op::Handle(s) if s.mark.is_answer() => Some(**s),
                _ => None,
            });
        if let Some(answer) = answer {
            let envelope = Envelope::new(c.remote(), c.local());
            let agreed = Agreement { window_shift: c.tcp().scales().1, ..agreed };
            let mut out = [0; 128];
            let n = skyhaul_wire::encode(&mut out, &envelope, &agreed, &answer, Payload::Bytes(&[])).unwrap();
            copies.push(out[..n.written].to_vec());
        }
        for p in copies.drain(..) {
            w.inject(0, &p);
        }
    });
    check(&w, &parties, ids);
    let (a, b) = (plain.hosts[0].conn(id).unwrap().counters(), w.hosts[0].conn(ids[0]).unwrap().counters());
    assert!(b.probe_answers_refused > 10 && b.probes_answered <= b.probes_sent, "{b:?} after {a:?}");
}

#[test]
fn a_path_that_becomes_narrower_says_so_and_is_heard() {
    for v6 in [false, true] {
        let mut w = World::new(Instant::ZERO, v6, Weather { loss: 0.002, ..Weather::calm(ms(20)) });
        let mut packets = 0u32;
        w.boxes[0] = Some(Box::new(move |_, p, back| {
            packets += 1;
            // From the 300th packet on.
            let mtu = if packets < 300 { 1500 } else { 1300 };
            if p.len() <= mtu {
                return true;
            }
            back.push(too_big(p, mtu as u32));
            false
        }));
        let e = peach(Profile::Option);
        let (parties, ids) = transfer(&mut w, v6, [&e, &e], 2 * MB, 0, |_, _, _| {});
        check(&w, &parties, ids);
        assert!(w.hosts[0].counts().paths_narrowed > 0);
        // The next connection knows.
        let id = w.open(v6, 80, &e);
        while w.step() {
            w.hosts[0].write(w.now, id, &[0; 5000]);
            if w.hosts[0].conn(id).unwrap().counters().bytes_acked > 4000 {
                break;
            }
            w.flush();
        }
        let c = w.hosts[0].conn(id).unwrap().counters();
        assert_eq!(c.retransmissions, 0);
    }
}

/// The message of a router about a packet that is too long for a link of this MTU.
fn too_big(p: &[u8], mtu: u32) -> Vec<u8> {
    let v4 = p[0] >> 4 == 4;
    let header = if v4 { 20 } else { 40 };
    let quote = &p[..header + 8];
    let len = header + 8 + quote.len();
    let mut m = vec![0; len];
    // From the destination of the packet instead of a router: the source of the message has no effect.
    if v4 {
        m[0] = 0x45;
        m[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        m[8] = 64;
        m[9] = 1;
        m[12..16].copy_from_slice(&p[16..20]);
        m[16..20].copy_from_slice(&p[12..16]);
        let sum = Sum::default().bytes(&m[..20]).finish();
        m[10..12].copy_from_slice(&sum.to_be_bytes());
        m[20..22].copy_from_slice(&[3, 4]);
    } else {
        m[0] = 0x60;
        m[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
        m[6] = 58;
        m[7] = 64;
        m[8..24].copy_from_slice(&p[24..40]);
        m[24..40].copy_from_slice(&p[8..24]);
        m[40] = 2;
    }
    m[header + 4..header + 8].copy_from_slice(&mtu.to_be_bytes());
    m[header + 8..].copy_from_slice(quote);
    let sum =
        if v4 { Sum::default() } else { Sum::default().bytes(&m[8..40]).long(58).long((len - 40) as u32) };
    let sum = sum.bytes(&m[header..]).finish();
    m[header + 2..header + 4].copy_from_slice(&sum.to_be_bytes());
    m
}

/// The last timestamp that the peer sent, which a blind attacker does not know: with it no segment is refused for its timestamp.
fn last_timestamp(c: &skyhaul_net::host::Conn) -> Option<u32> {
    c.journal().expect("recorded").ops().iter().rev().find_map(|(_, op)| match op {
        skyhaul_net::host::Op::Handle(s) => Some(s.ts?.0),
        _ => None,
    })
}

/// A segment from a blind attacker to the client of a connection, with the right ports.
fn forged(c: &skyhaul_net::host::Conn, change: impl FnOnce(&mut Segment)) -> Vec<u8> {
    let mut seg = Segment {
        seq: c.tcp().expected(),
        ack: c.tcp().acknowledged(),
        flags: Flags::ACK,
        ts: last_timestamp(c).map(|val| (val, 0)),
        window: 60_000,
        ..Segment::default()
    };
    change(&mut seg);
    let agreed = Agreement { window_shift: c.tcp().scales().1, ..Agreement::default() };
    let mut out = vec![0; 2000];
    let bytes = [7; 1000];
    let data = Payload::Bytes(&bytes[..seg.len as usize]);
    let n = skyhaul_wire::encode(&mut out, &Envelope::new(c.remote(), c.local()), &agreed, &seg, data);
    out.truncate(n.expect("fits").written);
    out
}

#[test]
fn blind_segments_are_counted_and_dropped_and_the_transfer_goes_on() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(20)));
    let e = peach(Profile::Option);
    let mut attacks = 0;
    let (parties, ids) = transfer(&mut w, false, [&e, &e], 3 * MB, 3 * MB, |w, client, _| {
        let Some(c) = w.hosts[0].conn(client).filter(|c| c.counters().bytes_acked > 0 && attacks < 400)
        else {
            return;
        };
        attacks += 1;
        let far = Seq(0x4000_0000);
        let p = match attacks % 8 {
            // A reset within the window that is not exact, a SYN, a reset far away.
            0 => forged(c, |s| (s.seq, s.flags) = (s.seq.add(1000), Flags::RST)),
            1 => forged(c, |s| (s.seq, s.flags) = (s.seq.add(1000), Flags::SYN)),
            2 => forged(c, |s| (s.seq, s.flags) = (s.seq.add(far.0), Flags::RST)),
            // Data far away, an acknowledgement of what was never sent, one that is far too old.
            3 => forged(c, |s| (s.seq, s.len) = (s.seq.add(far.0), 1000)),
            4 => forged(c, |s| s.ack = s.ack.add(far.0)),
            5 => forged(c, |s| s.ack = s.ack.add(0u32.wrapping_sub(far.0))),
            // Data with an old timestamp; a segment without flags.
            6 => forged(c, |s| (s.ts, s.len) = (s.ts.map(|(val, _)| (val.wrapping_sub(1 << 30), 1)), 10)),
            _ => forged(c, |s| s.flags = Flags::NONE),
        };
        let now = w.now;
        w.hosts[0].arrive(now, &p, &mut |_: &[u8]| {});
    });
    check(&w, &parties, ids);
    let n = w.hosts[0].counts();
    for reason in ["challenged", "out-of-window", "ack-of-unsent", "ack-too-old", "flags", "paws"] {
        assert!(n.rejected_as(reason) >= 40, "{reason}: {:?}", n.rejected);
    }
}

#[test]
fn bytes_of_all_kinds_are_refused_for_a_reason() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(20)));
    let e = peach(Profile::Option);
    let mut rng = skyhaul_base::Rng::stream(3, "bytes");
    let (parties, ids) = transfer(&mut w, false, [&e, &e], 300_000, 300_000, |w, client, _| {
        let Some(c) = w.hosts[0].conn(client) else { return };
        // A sound segment far out of the window, in which one to four bytes are wrong.
        let mut p = forged(c, |s| {
            s.seq = s.seq.add(1 << 30);
            s.len = 100;
            s.sack = SackBlocks::EMPTY;
            s.sack.push(Seq(1), Seq(2));
        });
        for _ in 0..=rng.below(4) {
            let at = rng.below(p.len() as u64) as usize;
            p[at] ^= 1 << rng.below(8);
        }
        p.truncate(p.len() - (rng.below(3) * rng.below(60)) as usize);
        let now = w.now;
        w.hosts[0].arrive(now, &p, &mut |_: &[u8]| {});
    });
    check(&w, &parties, ids);
    assert!(w.hosts[0].counts().refusals.total() > 100);
}

#[test]
fn strangers_get_resets_but_not_without_limit() {
    let config = skyhaul_net::host::HostConfig::new(
        vec![[10, 84, 0, 2].into()],
        skyhaul_net::host::Secret::fixed([1; 16]),
    );
    let mut host = Host::new(config);
    let mut out = Vec::new();
    let (from, to) = (SocketAddr::from(([10, 84, 0, 1], 4000)), SocketAddr::from(([10, 84, 0, 2], 81)));
    let mut buf = [0; 200];
    for n in 0..1000u32 {
        let seg = Segment { seq: Seq(n), flags: Flags::SYN, ..Segment::default() };
        let envelope = Envelope::new(from, to);
        let e = skyhaul_wire::encode(&mut buf, &envelope, &Agreement::default(), &seg, Payload::Bytes(&[]));
        let now = Instant::from_nanos(u64::from(n) * 1000);
        host.arrive(now, &buf[..e.unwrap().written], &mut |p: &[u8]| out.push(p.to_vec()));
    }
    // The limit for each address is 50 per second.
    assert_eq!((out.len(), host.counts().strangers, host.counts().answers_withheld), (50, 1000, 950));
    let Transport::Tcp(rst) = Packet::parse(&out[7]).unwrap().transport else { panic!() };
    // RFC 9293 §3.10.7.1: <SEQ=0><ACK=SEG.SEQ+SEG.LEN><CTL=RST,ACK>.
    assert_eq!((rst.seq, rst.ack, rst.flags), (Seq(0), Seq(8), Flags::RST.with(Flags::ACK)));
    // A reset is never answered.
    let seg = Segment { flags: Flags::RST, ..Segment::default() };
    let e = skyhaul_wire::encode(
        &mut buf,
        &Envelope::new(from, to),
        &Agreement::default(),
        &seg,
        Payload::Bytes(&[]),
    );
    let before = out.len();
    host.arrive(Instant::from_nanos(5_000_000_000), &buf[..e.unwrap().written], &mut |p: &[u8]| {
        out.push(p.to_vec())
    });
    assert_eq!(out.len(), before);
}

/// A SYN from an address that no host can have is not answered: the answer would go to many hosts, or to this one.
#[test]
fn martians_get_no_answer() {
    let mut w = World::new(Instant::ZERO + ms(10), false, Weather::calm(ms(1)));
    w.hosts[1].listen(80, peach(Profile::Off)).unwrap();
    let to = SocketAddr::from(([10, 84, 0, 2], 80));
    let martians =
        [[224, 0, 0, 1], [255, 255, 255, 255], [127, 0, 0, 1], [240, 1, 2, 3], [0, 0, 0, 0], [10, 84, 0, 2]];
    for from in
        martians.map(|a| SocketAddr::from((a, 5000))).into_iter().chain([([192, 0, 2, 1], 5000).into()])
    {
        let seg = Segment { seq: Seq(1), window: 1000, flags: Flags::SYN, ..Segment::default() };
        let mut room = vec![0; 200];
        let (envelope, agreed) = (Envelope::new(from, to), Agreement::default());
        let n = skyhaul_wire::encode(&mut room, &envelope, &agreed, &seg, Payload::Bytes(&[])).expect("fits");
        w.inject(1, &room[..n.written]);
    }
    assert_eq!((w.hosts[1].counts().martians, w.sent[1], w.hosts[1].half_open()), (6, 1, 1));
}

/// An ICMP message about a connection that is being opened has to quote its SYN, and does not change the path MTU (RFC 5927).
#[test]
fn messages_with_a_wrong_number_neither_end_an_open_nor_poison_the_path() {
    let mut w = World::new(Instant::ZERO + ms(10), false, Weather { loss: 1.0, ..Weather::calm(ms(1)) });
    let id = w.open(false, 80, &peach(Profile::Off));
    let c = w.hosts[0].conn(id).unwrap();
    let (local, remote) = (c.local(), c.remote());
    // The SYN has the number before the first byte.
    let iss = c.tcp().acknowledged().add(u32::MAX);
    let message = |kind: u8, code: u8, seq: Seq| {
        let quote = Segment { seq, flags: Flags::SYN, ..Segment::default() };
        let mut room = vec![0; 200];
        let envelope = Envelope::new(local, remote);
        let n =
            skyhaul_wire::encode(&mut room, &envelope, &Agreement::default(), &quote, Payload::Bytes(&[]));
        let quoted = &room[..n.expect("fits").written];
        let mut p = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 1, 10, 84, 0, 1];
        p.extend([kind, code, 0, 0, 0, 0, 0x02, 0x58]);
        p.extend(quoted);
        let len = p.len() as u16;
        p[2..4].copy_from_slice(&len.to_be_bytes());
        let sum = Sum::default().bytes(&p[..20]).finish();
        p[10..12].copy_from_slice(&sum.to_be_bytes());
        let sum = Sum::default().bytes(&p[20..]).finish();
        p[22..24].copy_from_slice(&sum.to_be_bytes());
        p
    };
    for (kind, code, seq) in
        [(3, 3, iss.add(1)), (3, 3, Seq(iss.0 ^ 0x4000)), (3, 4, iss.add(9)), (3, 4, iss)]
    {
        w.inject(0, &message(kind, code, seq));
        assert_eq!(w.hosts[0].conn(id).unwrap().failure(), None, "{kind} {code}");
    }
    let c = w.hosts[0].counts();
    assert_eq!((c.messages_refused, c.paths_narrowed, c.refusals.total()), (4, 0, 0), "{c:?}");
    w.inject(0, &message(3, 3, iss));
    assert_eq!(w.hosts[0].conn(id).unwrap().failure(), Some(skyhaul_net::host::Failure::Unreachable));
}
