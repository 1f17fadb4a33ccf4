//! What hosts remember of paths, and what connections of one path learn from each other.

use super::common::{Party, Weather, World, accepted, check, transfer};
use super::{MB, endpoint, ms};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::host::{ConnId, Host, HostConfig};
use std::cell::Cell;
use std::num::NonZeroU32;
use std::rc::Rc;

/// Headers of a segment with timestamps over IPv4, bytes.
const HEADERS: u32 = 52;

/// Releases both ends of a connection that is over, so that a later connection cannot be taken for this one.
fn release(w: &mut World, ids: [ConnId; 2]) {
    w.hosts[1].unlisten(80);
    for (side, id) in ids.into_iter().enumerate() {
        let now = w.now;
        w.hosts[side].release(now, id);
        while w.hosts[side].next_changed().is_some() {}
    }
    w.flush();
}

/// Two hosts; if `gateways`, each announces itself as a gateway.
fn world(gateways: bool) -> World {
    let mut w = World::new(Instant::ZERO + Duration::from_secs(5), false, Weather::calm(ms(20)));
    for (n, host) in w.hosts.iter_mut().enumerate() {
        let gateway = NonZeroU32::new(n as u32 + 1).filter(|_| gateways);
        *host = Host::new(HostConfig { gateway, search_mtu: true, record: true, ..host.config().clone() });
    }
    w
}

/// Makes a path MTU black hole: packets of more than 1300 bytes disappear on the way from the first host. The result counts them.
fn black_hole(w: &mut World) -> Rc<Cell<u32>> {
    let dropped = Rc::new(Cell::new(0));
    let counted = dropped.clone();
    w.boxes[0] = Some(Box::new(move |_, packet, _| {
        let passes = packet.len() <= 1300;
        counted.set(counted.get() + u32::from(!passes));
        passes
    }));
    dropped
}

#[test]
fn a_black_hole_costs_the_first_connection_of_a_path_one_search() {
    for gateways in [false, true] {
        let mut w = world(gateways);
        let dropped = black_hole(&mut w);
        let mut e = endpoint("newreno");
        e.tcp.receiver_rate = false;
        for n in 0..3 {
            let before = dropped.get();
            let (parties, ids) = transfer(&mut w, false, [&e, &e], 3 * MB, 0, |_, _, _| {});
            check(&w, &parties, ids);
            let conn = w.hosts[0].conn(ids[0]).expect("not released");
            assert_eq!(conn.counters().timeouts, 0, "connection {n}");
            assert!((1293..=1300).contains(&(conn.segment_size() + HEADERS)), "{}", conn.segment_size());
            assert_eq!(dropped.get() > before, n == 0, "connection {n}: {} dropped", dropped.get() - before);
            release(&mut w, ids);
        }
    }
}

#[test]
fn short_connections_search_a_black_hole_once_in_a_while() {
    let mut w = world(false);
    let dropped = black_hole(&mut w);
    let e = endpoint("newreno");
    let mut lost = Vec::new();
    for pause in [0, 0, 61] {
        w.now += Duration::from_secs(pause);
        let before = dropped.get();
        let (parties, ids) = transfer(&mut w, false, [&e, &e], 50_000, 0, |_, _, _| {});
        check(&w, &parties, ids);
        release(&mut w, ids);
        lost.push(dropped.get() > before);
    }
    assert_eq!(lost, [true, false, true]);
}

#[test]
fn a_path_without_a_hole_is_searched_once() {
    let mut w = world(false);
    let e = endpoint("newreno");
    let payload = u64::from(1500 - HEADERS);
    let sent = [(); 3].map(|()| {
        let (parties, ids) = transfer(&mut w, false, [&e, &e], 1000 * payload, 0, |_, _, _| {});
        check(&w, &parties, ids);
        let c = w.hosts[0].conn(ids[0]).expect("not released").counters();
        assert_eq!(c.retransmissions, 0);
        release(&mut w, ids);
        c.segments_sent
    });
    // The first connection begins with shorter segments.
    assert!(sent[0] > sent[1] && sent[1] == sent[2] && sent[0] < 1030, "{sent:?}");
}

/// How long after the end of an outage of 70 s data of a transfer is acknowledged again. One second after the outage, a second connection
/// to the same host is opened.
fn goes_on_after(gateways: bool) -> Duration {
    let mut w = world(gateways);
    let (down, up) = (w.now + Duration::from_secs(2), w.now + Duration::from_secs(72));
    for side in 0..2 {
        w.boxes[side] = Some(Box::new(move |now, _, _| now < down || now >= up));
    }
    let mut e = endpoint("newreno");
    e.tcp.receiver_rate = false;
    // The transfer takes 5 s, so that the outage interrupts it.
    w.rates = [Some(1_000_000); 2];
    e.tcp.send_buffer = 100_000;
    e.tcp.send_autotuning = false;
    w.hosts[1].listen(80, e.clone()).expect("listens");
    let id = w.open(false, 80, &e);
    let mut parties = [Party::new(5 * MB), Party::new(0)];
    let (mut server, mut other) = (None, false);
    let mut before = 0;
    let acknowledged = |w: &World| w.hosts[0].conn(id).map_or(0, |c| c.counters().bytes_acked);
    loop {
        server = server.or_else(|| accepted(&mut w.hosts[1]));
        parties[0].turn(w.now, &mut w.hosts[0], id);
        if let Some(server) = server {
            parties[1].turn(w.now, &mut w.hosts[1], server);
        }
        w.flush();
        let opens = up + Duration::from_secs(1);
        if w.now >= opens && !std::mem::replace(&mut other, true) {
            before = acknowledged(&w);
            w.open(false, 80, &e);
        }
        if other && acknowledged(&w) > before {
            return w.now - up;
        }
        assert!(w.step_by(if other { Instant::MAX } else { opens }), "the transfer goes on at some time");
    }
}

#[test]
fn a_sign_of_life_of_a_gateway_ends_the_wait_of_all_connections_to_it() {
    let (with, without) = (goes_on_after(true), goes_on_after(false));
    assert!(with < Duration::from_millis(1200), "{with:?}");
    assert!(without > Duration::from_secs(5), "{without:?}");
}
