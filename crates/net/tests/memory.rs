//! The memory of connections follows the data that has arrived or was written, not the windows that were announced, and is limited.
#![cfg(target_os = "linux")]

mod common;

use common::{Party, Weather, World, accepted, hash_of};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::host::{ConnId, Endpoint, Host, HostConfig};
use skyhaul_tcp::{Flags, Segment};
use skyhaul_wire::{Agreement, Envelope, Payload};

/// Announces its whole buffer at once, which is more than it holds; without timestamps, which forged segments would have to know.
fn endpoint() -> Endpoint {
    let mut e = Endpoint::host(skyhaul_cc::Config::by_name("cubic").expect("known"));
    e.tcp.receive_autotuning = false;
    e.tcp.timestamps = false;
    e
}
fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn world(memory: u64) -> World {
    let mut w = World::new(Instant::ZERO + ms(5), false, Weather::calm(ms(10)));
    for side in 0..2 {
        let c = HostConfig { memory, ..w.hosts[side].config().clone() };
        w.hosts[side] = Host::new(c);
    }
    w.hosts[1].listen(80, endpoint()).unwrap();
    w
}
/// A connection that both sides know.
fn open(w: &mut World) -> (ConnId, ConnId) {
    let id = w.open(false, 80, &endpoint());
    loop {
        assert!(w.step());
        if let Some(server) = accepted(&mut w.hosts[1]) {
            return (id, server);
        }
    }
}
/// A segment of the client with `data` so many bytes beyond what the server expects.
fn beyond(w: &World, (client, server): (ConnId, ConnId), offset: u32, data: &[u8]) -> Vec<u8> {
    let (c, s) = (w.hosts[0].conn(client).unwrap(), w.hosts[1].conn(server).unwrap());
    let seg = Segment {
        seq: s.tcp().expected().add(offset),
        ack: s.tcp().acknowledged(),
        len: data.len() as u32,
        window: 65_535,
        flags: Flags::ACK,
        ..Segment::default()
    };
    let mut room = vec![0; 2000];
    let (envelope, agreed) = (Envelope::new(c.local(), c.remote()), Agreement::default());
    let n = skyhaul_wire::encode(&mut room, &envelope, &agreed, &seg, Payload::Bytes(data)).expect("fits");
    room.truncate(n.written);
    room
}

#[test]
fn a_byte_at_the_far_edge_of_the_window_costs_bytes() {
    let mut w = world(1 << 30);
    let ids: Vec<_> = (0..200).map(|_| open(&mut w)).collect();
    let before = w.hosts[1].memory().held;
    for id in &ids {
        let edge = u32::try_from(w.hosts[1].conn(id.1).unwrap().tcp().receiver().next_expected()).unwrap();
        let p = beyond(&w, *id, (5 << 20) - edge, &[1]);
        w.inject(1, &p);
    }
    let m = w.hosts[1].memory();
    let beyond: usize = ids.iter().map(|id| w.hosts[1].conn(id.1).unwrap().tcp().held().beyond).sum();
    assert!(beyond > 0, "they were taken");
    assert!(m.held - before < 200 * 200, "{} bytes for 200 bytes", m.held - before);
}

#[test]
fn idle_connections_give_their_room_back() {
    let mut w = world(1 << 30);
    let (client, server) = open(&mut w);
    let empty = w.hosts[1].memory().held;
    let mut parties = [Party::new(3_000_000), Party::new(3_000_000)];
    parties.iter_mut().for_each(|p| p.closed = true);
    parties[1].reads_from = w.now + ms(400);
    loop {
        parties[0].turn(w.now, &mut w.hosts[0], client);
        parties[1].turn(w.now, &mut w.hosts[1], server);
        w.flush();
        if parties.iter().all(|p| p.received == 3_000_000) {
            break;
        }
        w.step_by(w.now + ms(50));
    }
    let most = w.hosts[1].memory().most;
    assert!(most > 2_000_000, "{most}");
    let end = w.now + ms(2500);
    while w.now < end {
        w.step_by(w.now + ms(100));
    }
    for side in 0..2 {
        let m = w.hosts[side].memory();
        assert!(m.held < empty + 4096 && m.trimmed > 0, "{m:?}");
    }
    assert_eq!(parties[1].hash(), hash_of(3_000_000));
}

/// A hundred readers that do not read, within a limit that a few of them would fill; then they read everything.
#[test]
fn slow_readers_stay_within_the_limit_and_get_everything() {
    const LIMIT: u64 = 8 << 20;
    const EACH: u64 = 600_000;
    let mut w = world(LIMIT);
    // The clients have all the room they want.
    w.hosts[0] = Host::new(HostConfig { memory: 1 << 30, ..w.hosts[0].config().clone() });
    let pairs: Vec<_> = (0..100).map(|_| open(&mut w)).collect();
    let slow = w.now + Duration::from_secs(3);
    let mut parties: Vec<_> = pairs
        .iter()
        .map(|(c, s)| {
            let mut reader = Party::new(10);
            reader.reads_from = slow;
            (*c, Party::new(EACH), *s, reader)
        })
        .collect();
    let began = w.now;
    while parties.iter().any(|(_, _, _, r)| !r.at_end) {
        for (c, writer, s, reader) in &mut parties {
            writer.turn(w.now, &mut w.hosts[0], *c);
            reader.turn(w.now, &mut w.hosts[1], *s);
        }
        w.flush();
        w.step_by(w.now + ms(20));
        assert!(w.now < began + Duration::from_secs(200), "somebody waits for ever");
    }
    let m = w.hosts[1].memory();
    // A buffer grows by doubling, and each connection may hold a little whatever the others do.
    assert!(m.most <= 2 * LIMIT + 100 * (16 << 10), "{m:?}");
    assert!(m.refused > 0, "{m:?}");
    for (_, _, _, reader) in &parties {
        assert_eq!((reader.received, reader.hash()), (EACH, hash_of(EACH)));
    }
}

/// Data beyond gaps is the first thing that goes, and a transfer whose receiver forgets it completes.
#[test]
fn what_lies_beyond_gaps_goes_first() {
    let mut w = world(400 << 10);
    w.hosts[0] = Host::new(HostConfig { memory: 1 << 30, ..w.hosts[0].config().clone() });
    w.weather[0].loss = 0.02;
    w.weather[0].delay = ms(150);
    let pairs: Vec<_> = (0..10).map(|_| open(&mut w)).collect();
    let mut parties: Vec<_> =
        pairs.iter().map(|(c, s)| (*c, Party::new(1_500_000), *s, Party::new(1))).collect();
    let began = w.now;
    while parties.iter().any(|(_, _, _, r)| !r.at_end) {
        for (c, writer, s, reader) in &mut parties {
            writer.turn(w.now, &mut w.hosts[0], *c);
            reader.turn(w.now, &mut w.hosts[1], *s);
        }
        w.flush();
        w.step_by(w.now + ms(20));
        assert!(w.now < began + Duration::from_secs(300), "somebody waits for ever");
    }
    let m = w.hosts[1].memory();
    assert!(m.reneged > 0 && m.most <= 1 << 20, "{m:?}");
    for (client, _, server, reader) in &parties {
        assert_eq!(reader.hash(), hash_of(1_500_000));
        for (side, id) in [(0, client), (1, server)] {
            let journal = w.hosts[side].conn(*id).and_then(|c| c.journal()).expect("recorded");
            assert_eq!(journal.replay(), Ok(()));
        }
    }
}

/// While readers that do not read take most of the memory, another connection is offered little, and gets on.
#[test]
fn windows_are_small_while_memory_is_short_and_grow_again() {
    const EACH: u64 = 100_000;
    let mut w = world(2 << 20);
    w.hosts[0] = Host::new(HostConfig { memory: 1 << 30, ..w.hosts[0].config().clone() });
    let short = |w: &World| w.hosts[1].memory().held > w.hosts[1].memory().limit / 4 * 3;
    // Changes of the others must not be taken for the new connection.
    let open = |w: &mut World| {
        while w.hosts[1].next_changed().is_some() {}
        open(w)
    };
    let mut sleepers = Vec::new();
    while w.hosts[1].memory().held < w.hosts[1].memory().limit / 5 * 4 {
        let (client, server) = open(&mut w);
        let mut filler = Party::new(EACH);
        let until = w.now + ms(500);
        while w.now < until {
            filler.turn(w.now, &mut w.hosts[0], client);
            w.flush();
            w.step_by(w.now + ms(50));
        }
        sleepers.push((client, filler, server, Party::new(1)));
    }
    let other = open(&mut w);
    let (mut writer, mut reader) = (Party::new(6_000_000), Party::new(1));
    let (mut pressed, mut free) = (Vec::new(), Vec::new());
    let again = w.now + Duration::from_secs(5);
    while !(reader.at_end && sleepers.iter().all(|s| s.3.at_end)) {
        assert!(w.now < again + Duration::from_secs(100), "somebody waits for ever");
        writer.turn(w.now, &mut w.hosts[0], other.0);
        reader.turn(w.now, &mut w.hosts[1], other.1);
        for (client, filler, server, sleeper) in &mut sleepers {
            filler.turn(w.now, &mut w.hosts[0], *client);
            if w.now >= again {
                sleeper.turn(w.now, &mut w.hosts[1], *server);
            }
        }
        w.flush();
        w.step_by(w.now + ms(5));
        let flight = w.hosts[0].conn(other.0).map_or(0, |c| c.snapshot().in_flight);
        if w.now >= again {
            free.push(flight);
        } else {
            assert!(short(&w), "{:?}", w.hosts[1].memory());
            pressed.push(flight);
        }
    }
    assert_eq!(reader.hash(), hash_of(6_000_000));
    assert!(sleepers.iter().all(|s| s.3.hash() == hash_of(EACH)));
    assert!(pressed.iter().all(|f| *f <= 16 << 10), "{:?}", pressed.iter().max());
    let busy = pressed.iter().filter(|f| **f > 8 << 10).count();
    assert!(busy > pressed.len() / 2, "it gets on: {busy} of {}", pressed.len());
    assert!(free.iter().any(|f| *f > 64 << 10), "{:?}", free.iter().max());
    for side in 0..2 {
        let journal =
            w.hosts[side].conn([other.0, other.1][side]).and_then(|c| c.journal()).expect("recorded");
        assert_eq!(journal.replay(), Ok(()));
    }
}

/// Many applications write much before anything of it leaves: what they write is counted at once.
#[test]
fn what_is_written_before_anything_leaves_stays_within_the_limit() {
    const LIMIT: u64 = 4 << 20;
    let mut w = world(1 << 30);
    w.hosts[0] = Host::new(HostConfig { memory: LIMIT, ..w.hosts[0].config().clone() });
    let pairs: Vec<_> = (0..60).map(|_| open(&mut w)).collect();
    let data = vec![1; 1 << 16];
    for (client, _) in &pairs {
        while w.hosts[0].write(w.now, *client, &data) == data.len() {}
    }
    let m = w.hosts[0].memory();
    // A buffer grows by doubling, and each connection may hold a little whatever the others do.
    assert!(m.most > LIMIT / 2 && m.most <= LIMIT + 60 * (32 << 10), "{m:?}");
    // Whoever was refused writes when there is room again.
    let last = pairs[59].0;
    let written = w.hosts[0].conn(last).unwrap().bytes_written();
    let end = w.now + Duration::from_secs(5);
    while w.now < end && w.hosts[0].conn(last).unwrap().bytes_written() < written + (1 << 20) {
        while let Some(id) = w.hosts[1].next_changed() {
            w.hosts[1].discard(w.now, id);
        }
        w.hosts[0].write(w.now, last, &data);
        w.flush();
        w.step_by(w.now + ms(5));
    }
    assert!(w.hosts[0].conn(last).unwrap().bytes_written() >= written + (1 << 20));
}
