//! Strangers that open connections and never complete them, and clients that open many and close them in order: neither
//! shuts out other clients, and each costs few bytes.
#![cfg(target_os = "linux")]

mod common;

use common::{Party, Weather, World, accepted, addresses, hash_of};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_net::host::{ConnId, Endpoint, Host, HostConfig, Secret};
use skyhaul_tcp::{Flags, Segment, Seq, SynOptions};
use skyhaul_wire::{Agreement, Capability, Envelope, Packet, Payload, Profile, Transport};
use std::collections::BTreeMap;
use std::net::SocketAddr;

fn endpoint(name: &str) -> Endpoint {
    Endpoint::host(skyhaul_cc::Config::by_name(name).expect("known"))
}
fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn server() -> SocketAddr {
    SocketAddr::new(addresses(false)[1], 80)
}

/// A segment as bytes.
fn packet(from: SocketAddr, to: SocketAddr, seg: &Segment) -> Vec<u8> {
    let mut room = vec![0; 200];
    let agreed = Agreement { capability: Capability { flags: 0, log2_most: 0 }, ..Agreement::default() };
    let n = skyhaul_wire::encode(&mut room, &Envelope::new(from, to), &agreed, seg, Payload::Bytes(&[]));
    room.truncate(n.expect("fits").written);
    room
}
fn syn(seq: u32, options: bool) -> Segment {
    let all =
        SynOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true, ..SynOptions::default() };
    Segment {
        seq: Seq(seq),
        window: 65_535,
        flags: Flags::SYN,
        syn: if options { all } else { SynOptions { mss: Some(1460), ..SynOptions::default() } },
        ts: options.then_some((1000, 0)),
        ..Segment::default()
    }
}
/// The packets with which a host answers a packet.
fn answers(host: &mut Host, now: Instant, p: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    host.arrive(now, p, &mut |p: &[u8]| out.push(p.to_vec()));
    out
}

/// 10^5 SYNs of random addresses, and between them clients that fetch 20 kB each.
#[test]
fn a_flood_of_syns_leaves_genuine_clients_alone() {
    const FLOOD: u32 = 100_000;
    const CLIENTS: usize = 50;
    let mut w = World::new(Instant::ZERO + ms(1000), false, Weather::calm(ms(20)));
    let e = endpoint("cubic");
    w.hosts[1].listen(80, e.clone()).unwrap();
    let mut rng = Rng::stream(3, "flood");
    let mut clients: Vec<(Instant, ConnId, Party, Option<Instant>)> = Vec::new();
    let mut servers: BTreeMap<ConnId, Party> = BTreeMap::new();
    let (mut sent, mut most_bytes, mut synacks) = (0, 0, 0u64);
    let start = w.now;
    let mut answered = 0u64;
    while clients.len() < CLIENTS || clients.iter().any(|c| !c.2.at_end) {
        // 10^5 SYNs in five seconds.
        while sent < FLOOD && w.now >= start + Duration::from_micros(50) * u64::from(sent) {
            // Of 32.0.0.0/3: all of it global unicast.
            let address = 0x2000_0000 + (rng.unit() * f64::from(0x2000_0000)) as u32;
            let from = SocketAddr::from((address.to_be_bytes(), (rng.unit() * 64_000.0) as u16 + 1));
            let p = packet(from, server(), &syn(sent.wrapping_mul(7919), sent % 2 == 0));
            let out = answers(&mut w.hosts[1], w.now, &p);
            synacks += out.len() as u64;
            answered += u64::from(out.len() == 1);
            sent += 1;
        }
        let [half, _] = w.hosts[1].table_bytes();
        most_bytes = most_bytes.max(half);
        assert!(w.hosts[1].half_open() <= 4096);
        if clients.len() < CLIENTS && w.now >= start + ms(100) * clients.len() as u64 {
            clients.push((w.now, w.open(false, 80, &e), Party::new(100), None));
        }
        while let Some(id) = w.hosts[1].next_changed() {
            servers.entry(id).or_insert_with(|| Party::new(20_000));
        }
        for (id, party) in &mut servers {
            party.turn(w.now, &mut w.hosts[1], *id);
        }
        for (_, id, party, first) in &mut clients {
            party.turn(w.now, &mut w.hosts[0], *id);
            if party.received > 0 {
                first.get_or_insert(w.now);
            }
        }
        w.flush();
        let next = if sent < FLOOD { w.now + ms(1) } else { w.now + ms(1000) };
        w.step_by(next);
        assert!(w.now < start + Duration::from_secs(60), "a client is not served");
    }
    assert_eq!((sent, answered), (FLOOD, u64::from(FLOOD)), "each SYN has one answer, {synacks} in all");
    let c = w.hosts[1].counts();
    assert!(c.cookies_sent > u64::from(FLOOD) / 2, "{c:?}");
    assert!(c.cookies_taken >= CLIENTS as u64 / 2, "{c:?}");
    assert_eq!(c.syns_dropped, 0);
    assert_eq!(servers.len(), CLIENTS);
    // The handshake and the request with its response take two round trips of 40 ms.
    let calm = ms(80) + ms(1);
    for (began, _, party, first) in &clients {
        assert_eq!(party.hash(), hash_of(20_000));
        let took = first.expect("served") - *began;
        assert!(took <= calm + calm, "first byte after {took:?}");
    }
    assert!(most_bytes <= 4096 * 200, "{most_bytes} bytes");
    // Half-open connections expire after a minute.
    while w.now < start + Duration::from_secs(70) {
        w.step_by(w.now + ms(500));
    }
    let c = w.hosts[1].counts();
    assert_eq!((w.hosts[1].half_open(), w.hosts[1].table_bytes()[0] < 64 << 10), (0, true));
    assert!(c.half_open_expired >= 4096 - CLIENTS as u64, "{c:?}");
    // In a crowd a SYN-ACK is repeated once.
    assert!(w.sent[1] < 3 * c.half_open_expired + 5000, "{} packets", w.sent[1]);
}

/// SYNs in the name of one victim: the SYN-ACKs that it gets are limited, and a genuine client is served when it repeats its SYN.
#[test]
fn forged_syns_make_us_send_no_more_than_the_limit() {
    const LIMIT: u32 = 1000;
    let mut w = World::new(Instant::ZERO + ms(1000), false, Weather::calm(ms(20)));
    w.hosts[1] = Host::new(HostConfig { syn_acks: LIMIT, ..w.hosts[1].config().clone() });
    let e = endpoint("cubic");
    w.hosts[1].listen(80, e.clone()).unwrap();
    let start = w.now;
    let (mut sent, mut reflected) = (0u32, 0);
    while w.now < start + Duration::from_secs(3) {
        for _ in 0..20 {
            let from = SocketAddr::from(([198, 18, 0, 1], (sent % 60_000) as u16 + 1));
            let p = packet(from, server(), &syn(sent.wrapping_mul(7919), true));
            reflected += answers(&mut w.hosts[1], w.now, &p).len();
            sent += 1;
        }
        w.step_by(w.now + ms(1));
    }
    assert!(
        reflected as u32 <= 3 * LIMIT + LIMIT / 10 && reflected as u32 > 2 * LIMIT,
        "{reflected} of {sent}"
    );
    assert!(w.sent[1] <= u64::from(3 * LIMIT), "{} repetitions", w.sent[1]);
    let withheld = w.hosts[1].counts().syn_acks_withheld;
    assert!(withheld >= u64::from(sent) - reflected as u64, "{withheld}");
    let id = w.open(false, 80, &e);
    while w.now < start + Duration::from_secs(10) && !w.hosts[0].conn(id).unwrap().is_connected() {
        w.step_by(w.now + ms(10));
    }
    assert!(w.hosts[0].conn(id).unwrap().is_connected());
}

/// A cookie serves with and without timestamps, over every profile, and its connection sends as any other.
#[test]
fn a_connection_that_began_with_a_cookie_is_like_any_other() {
    for (profile, timestamps) in [(Profile::Option, true), (Profile::Compact, true), (Profile::Off, false)] {
        let mut w = World::new(Instant::ZERO + ms(5), false, Weather { loss: 0.01, ..Weather::calm(ms(40)) });
        w.hosts[1] = Host::new(HostConfig { backlog: 0, ..w.hosts[1].config().clone() });
        let mut e = endpoint("peach");
        e.profile = profile;
        e.tcp.timestamps = timestamps;
        let (parties, ids) = common::transfer(&mut w, false, [&e, &e], 500_000, 500_000, |_, _, _| {});
        common::check(&w, &parties, ids);
        let c = w.hosts[1].counts();
        assert_eq!((c.cookies_taken, w.hosts[1].half_open()), (1, 0), "{c:?}");
        let server = w.hosts[1].conn(ids[1]).expect("open");
        // Without timestamps there is no room for a window scale.
        assert_eq!(server.tcp().scales(), if timestamps { (7, 7) } else { (0, 0) });
        if timestamps {
            assert_eq!(server.probe_support(), skyhaul_cc::ProbeSupport::Yes, "{profile:?}");
        }
    }
}

#[test]
fn what_only_looks_like_a_cookie_is_refused() {
    let mut host = Host::new(HostConfig {
        backlog: 0,
        ..HostConfig::new(addresses(false)[1..].to_vec(), Secret::fixed([5; 16]))
    });
    host.listen(80, endpoint("cubic")).unwrap();
    let from = SocketAddr::from(([192, 0, 2, 9], 5000));
    let ack = |n: u32, seq: u32| Segment {
        seq: Seq(seq),
        ack: Seq(n),
        window: 65_535,
        flags: Flags::ACK,
        ..Segment::default()
    };
    let t = Instant::ZERO + ms(10);
    let out = answers(&mut host, t, &packet(from, server(), &syn(100, false)));
    let Transport::Tcp(synack) = Packet::parse(&out[0]).unwrap().transport else { panic!("a SYN-ACK") };
    let iss = synack.seq;
    assert_eq!((synack.flags, synack.ack), (Flags::SYN.with(Flags::ACK), Seq(101)));
    for (n, seq) in [(iss.0 + 2, 101), (iss.0 + 1, 102), (12, 101)] {
        let out = answers(&mut host, t, &packet(from, server(), &ack(n, seq)));
        let Transport::Tcp(rst) = Packet::parse(&out[0]).unwrap().transport else { panic!("a reset") };
        assert!(rst.flags.has(Flags::RST));
        assert_eq!(host.connections(), 0);
    }
    answers(&mut host, t, &packet(from, server(), &ack(iss.0 + 1, 101)));
    assert_eq!((host.connections(), host.counts().cookies_taken), (1, 1));
}

/// Clients that come and go: TIME-WAIT costs few bytes each, is limited, and shuts out no new client.
#[test]
fn time_wait_is_small_and_shuts_nobody_out() {
    let mut w = World::new(Instant::ZERO + ms(5), false, Weather::calm(ms(1)));
    for side in 0..2 {
        let c = HostConfig { record: false, most: 100, most_waiting: 1000, ..w.hosts[side].config().clone() };
        w.hosts[side] = Host::new(c);
    }
    let e = endpoint("cubic");
    w.hosts[1].listen(80, e.clone()).unwrap();
    for n in 0..1500 {
        let id = w.open(false, 80, &e);
        let mut server = None;
        while server.is_none() {
            assert!(w.step(), "connection {n} is not served");
            server = accepted(&mut w.hosts[1]);
        }
        // The server closes first, so that it is the one that waits.
        w.hosts[1].release(w.now, server.unwrap());
        w.flush();
        while !w.hosts[0].conn(id).unwrap().at_end() {
            w.step();
        }
        w.hosts[0].release(w.now, id);
        w.flush();
        w.step_by(w.now + ms(1));
        w.step_by(w.now + ms(1));
    }
    let host = &w.hosts[1];
    assert_eq!((host.time_waits(), host.counts().time_waits_cut), (1000, 500));
    let [_, bytes] = host.table_bytes();
    assert!(bytes <= 1000 * 200, "{bytes} bytes");
    assert_eq!(w.hosts[0].connections(), 0);
    while w.step() {}
    assert_eq!((w.hosts[1].time_waits(), w.hosts[1].table_bytes()[1] < 64 << 10), (0, true));
}

/// RFC 6191: a SYN from the same port replaces a connection in TIME-WAIT, whatever its sequence number, if its timestamp is newer.
#[test]
fn a_newer_timestamp_ends_time_wait() {
    let mut host = Host::new(HostConfig::new(addresses(false)[1..].to_vec(), Secret::fixed([5; 16])));
    host.listen(80, endpoint("cubic")).unwrap();
    let from = SocketAddr::from(([192, 0, 2, 9], 5000));
    let t = Instant::ZERO + ms(10);
    let seg = |flags: Flags, seq: u32, ack: u32, ts: u32| Segment {
        seq: Seq(seq),
        ack: Seq(ack),
        window: 65_535,
        flags,
        ts: Some((ts, 0)),
        ..Segment::default()
    };
    let tcp = |p: &[u8]| match Packet::parse(p).unwrap().transport {
        Transport::Tcp(t) => (t.flags, t.seq.0, t.ack.0),
        other => panic!("{other:?}"),
    };
    let say = |host: &mut Host, now: Instant, s: &Segment| -> Vec<(Flags, u32, u32)> {
        answers(host, now, &packet(from, server(), s)).iter().map(|p| tcp(p)).collect()
    };
    let (_, iss, _) = say(&mut host, t, &syn(1000, true))[0];
    assert!(say(&mut host, t, &seg(Flags::ACK, 1001, iss + 1, 1001)).is_empty());
    let id = accepted(&mut host).expect("complete");
    host.release(t, id);
    host.flush(t, &mut |_: &[u8]| {});
    say(&mut host, t, &seg(Flags::ACK.with(Flags::FIN), 1001, iss + 2, 1002));
    assert_eq!((host.time_waits(), host.connections()), (1, 1));
    // A repeated FIN is acknowledged, but not one for one.
    let fin = seg(Flags::ACK.with(Flags::FIN), 1001, iss + 2, 1002);
    let t = t + ms(600);
    assert_eq!(say(&mut host, t, &fin), [(Flags::ACK, iss + 2, 1002)]);
    assert!((0..100).all(|_| say(&mut host, t + ms(1), &fin).is_empty()));
    // A reset does not end it (RFC 1337), and an old SYN is a duplicate.
    assert!(say(&mut host, t + ms(1), &seg(Flags::RST, 1002, 0, 1003)).is_empty());
    let t = t + ms(600);
    let old = Segment { ts: Some((900, 0)), ..syn(5000, true) };
    assert_eq!(say(&mut host, t, &old), [(Flags::ACK, iss + 2, 1002)]);
    assert_eq!(host.time_waits(), 1);
    // A lower sequence number with a newer timestamp.
    let new = Segment { ts: Some((1500, 0)), ..syn(500, true) };
    let (flags, theirs, ack) = say(&mut host, t, &new)[0];
    assert_eq!((flags, ack), (Flags::SYN.with(Flags::ACK), 501));
    assert!(Seq(theirs).diff(Seq(iss + 2)) >= 65_536, "our numbers begin beyond the old ones");
    assert_eq!((host.time_waits(), host.half_open()), (0, 1));
}

/// In a crowd a half-open connection is dropped early, but not between a SYN-ACK and its acknowledgement.
#[test]
fn a_half_open_connection_outlasts_its_latest_answer_in_a_crowd() {
    let mut w = World::new(Instant::ZERO + ms(1000), false, Weather::calm(ms(40)));
    w.hosts[1] = Host::new(HostConfig { backlog: 64, ..w.hosts[1].config().clone() });
    let e = endpoint("cubic");
    w.hosts[1].listen(80, e.clone()).unwrap();
    // Two answers are lost; the third SYN comes a moment before the server would forget the first one.
    let mut synacks = 0;
    w.boxes[1] = Some(Box::new(move |_, p, _| {
        let synack = p[33] & 0x12 == 0x12 && p[16..20] == [10, 84, 0, 1];
        synacks += u32::from(synack);
        !synack || synacks >= 3
    }));
    let start = w.now;
    let id = w.open(false, 80, &e);
    let (mut party, mut served) = (Party::new(100), None);
    let mut strangers = 0;
    while !party.at_end && party.failure.is_none() {
        // Each second brings a new crowd of half-open connections.
        while strangers < 40 * (1 + (w.now - start).as_nanos() / 1_000_000_000) {
            strangers += 1;
            let from = SocketAddr::from(([32, 0, (strangers >> 8) as u8, strangers as u8], 1000));
            answers(&mut w.hosts[1], w.now, &packet(from, server(), &syn(strangers as u32, true)));
        }
        // The server would forget the client's first SYN after 3.04 s: the third SYN leaves after 3 s, and takes 35 instead of 40 ms.
        if w.now >= start + ms(1500) {
            w.weather[0].delay = ms(35);
        }
        if served.is_none() {
            served = accepted(&mut w.hosts[1]).map(|id| (id, Party::new(1000)));
        }
        if let Some((id, p)) = &mut served {
            p.turn(w.now, &mut w.hosts[1], *id);
        }
        party.turn(w.now, &mut w.hosts[0], id);
        w.flush();
        w.step_by(w.now + ms(10));
        assert!(w.now < start + Duration::from_secs(30), "the client is not served");
    }
    assert_eq!((party.failure, party.hash()), (None, hash_of(1000)));
}

/// A reset that is not exact gets a challenge ACK (RFC 5961 §3.2), which states the window and, if they were agreed on, timestamps.
#[test]
fn the_challenge_ack_of_a_half_open_connection_has_a_window_and_timestamps() {
    for options in [false, true] {
        let mut host = Host::new(HostConfig::new(addresses(false)[1..].to_vec(), Secret::fixed([5; 16])));
        host.listen(80, endpoint("cubic")).unwrap();
        let from = SocketAddr::from(([192, 0, 2, 9], 5000));
        let t = Instant::ZERO + ms(10);
        let first = answers(&mut host, t, &packet(from, server(), &syn(100, options)));
        let Transport::Tcp(synack) = Packet::parse(&first[0]).unwrap().transport else { panic!("a SYN-ACK") };
        let rst = Segment { seq: Seq(102), flags: Flags::RST, ..Segment::default() };
        let second = answers(&mut host, t + ms(1), &packet(from, server(), &rst));
        let Transport::Tcp(ack) = Packet::parse(&second[0]).unwrap().transport else { panic!("an ACK") };
        assert_eq!((ack.flags, ack.seq, ack.ack), (Flags::ACK, synack.seq.add(1), Seq(101)));
        assert_eq!(ack.window, synack.window >> synack.options.window_scale.unwrap_or(0));
        assert!(ack.window > 0 && ack.options.timestamps.is_some() == options);
    }
}
