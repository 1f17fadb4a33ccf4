//! Panics in the work of one connection, which others survive; and segments that are shorter than their headers.

use crate::common::{Party, Weather, World, accepted, check, hash_of, transfer};
use crate::{endpoint, ms};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{App, ConnectionHandler, NextStep, Serve, Sink};
use skyhaul_net::host::{ConnId, Failure, Host};
use skyhaul_net::offload::Device;

const EACH: u64 = 300_000;

/// Three clients send; the server's end of the second connection panics. `by_write`: when its application writes; otherwise when a
/// segment arrives.
fn breaks(by_write: bool) {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(20)));
    w.may_break = true;
    let e = endpoint("sack");
    w.hosts[1].listen(80, e.clone()).unwrap();
    let (mut clients, mut servers) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let id = w.open(false, 80, &e);
        clients.push((id, Party::new(EACH)));
        let server = loop {
            if let Some(server) = accepted(&mut w.hosts[1]) {
                break server;
            }
            assert!(w.step());
        };
        servers.push((server, Party::new(0)));
    }
    let mut broken = false;
    for _ in 0..100_000 {
        for (side, ends) in [&mut clients, &mut servers].into_iter().enumerate() {
            ends.iter_mut().for_each(|(id, party)| party.turn(w.now, &mut w.hosts[side], *id));
        }
        if servers[1].1.received > EACH / 3 && !broken {
            broken = true;
            w.hosts[1].break_down(servers[1].0);
            if by_write {
                assert_eq!(w.hosts[1].write(w.now, servers[1].0, b"x"), 0);
            }
        }
        w.flush();
        if [0, 2].iter().all(|n| servers[*n].1.at_end && clients[*n].1.at_end)
            && clients[1].1.failure.is_some()
        {
            break;
        }
        assert!(w.step(), "it stalls");
    }
    for n in [0, 2] {
        assert_eq!((servers[n].1.received, servers[n].1.hash()), (EACH, hash_of(EACH)));
        assert_eq!((clients[n].1.failure, servers[n].1.failure), (None, None));
    }
    assert_eq!(w.hosts[1].conn(servers[1].0).unwrap().failure(), Some(Failure::Defect));
    assert_eq!(clients[1].1.failure, Some(Failure::Reset), "its peer is told");
    assert_eq!([w.hosts[0].counts().defects, w.hosts[1].counts().defects], [0, 1]);
    let received = w.hosts[1].census().traffic.bytes_received;
    assert!(received > 2 * EACH + EACH / 3, "what it has received is still counted: {received}");
    // The broken connection leaves nothing behind.
    for (side, ends) in [clients, servers].into_iter().enumerate() {
        ends.iter().for_each(|(id, _)| w.hosts[side].release(w.now, *id));
    }
    w.flush();
    while w.step() {}
    assert_eq!(w.hosts[1].connections(), 0);
    assert!(w.hosts[1].memory().held < 1000, "{:?}", w.hosts[1].memory());
    // Its ends are free, and others are served.
    let id = w.open(false, 80, &e);
    while w.step() {}
    assert!(w.hosts[0].conn(id).unwrap().is_connected());
}

#[test]
fn a_panic_at_a_segment_ends_one_connection() {
    breaks(false);
}

#[test]
fn a_panic_at_a_call_of_the_application_ends_one_connection() {
    breaks(true);
}

/// Reads; panics if it gets a word.
struct Touchy;

impl ConnectionHandler for Touchy {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> NextStep {
        let mut room = [0; 100];
        let n = host.read(now, id, &mut room);
        assert!(!room[..n].starts_with(b"boo"), "it is touchy");
        Sink.turn(now, host, id)
    }
}

#[test]
fn a_panic_of_a_handler_ends_its_connection() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(5)));
    w.may_break = true;
    let e = endpoint("sack");
    w.hosts[1].listen(80, e.clone()).unwrap();
    let mut app = Serve::new(|_| Touchy, Duration::from_secs(1), None);
    let ids = [0; 3].map(|_| w.open(false, 80, &e));
    let mut said = false;
    for _ in 0..2000 {
        let _ = app.turn(w.now, &mut w.hosts[1]);
        if !said && ids.iter().all(|id| w.hosts[0].conn(*id).is_some_and(|c| c.is_connected())) {
            said = true;
            for (id, words) in ids.iter().zip([&b"hello"[..], b"boo", b"hello"]) {
                w.hosts[0].write(w.now, *id, words);
                w.hosts[0].shutdown(w.now, *id);
            }
        }
        w.flush();
        w.step_by(w.now + ms(1));
    }
    let [first, touched, last] = ids.map(|id| w.hosts[0].conn(id).unwrap());
    assert_eq!((first.failure(), touched.failure(), last.failure()), (None, Some(Failure::Reset), None));
    assert!(first.at_end() && last.at_end());
    assert_eq!(w.hosts[1].counts().defects, 1);
    assert_eq!(app.take_ended().len(), 3);
}

/// Every small size, either family, with timestamps and without: over a device with super-packets the stream is the same.
#[test]
fn segments_of_1_to_100_bytes_over_a_device_with_super_packets() {
    for mss in 1..=100 {
        for (v6, stamps) in [(false, true), (false, false), (true, true), (true, false)] {
            let mut w = World::new(Instant::ZERO, v6, Weather::calm(ms(2)));
            w.devices = [Some(Device::default()), Some(Device::default())];
            let (mut small, mut other) = (endpoint("sack"), endpoint("sack"));
            small.tcp.mss = mss;
            (small.tcp.timestamps, other.tcp.timestamps) = (stamps, stamps);
            let (parties, ids) = transfer(&mut w, v6, [&small, &other], 3000, 6000, |_, _, _| {});
            check(&w, &parties, ids);
            assert_eq!(w.hosts.iter().map(|h| h.counts().defects).sum::<u64>(), 0, "MSS {mss}");
        }
    }
}
