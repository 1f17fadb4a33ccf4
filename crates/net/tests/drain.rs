//! The last data of an application that has ended still arrives.
#![cfg(target_os = "linux")]

mod common;

use common::{Party, Weather, World, accepted};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{App, AppStatus, Drain};
use skyhaul_net::host::{ConnId, Endpoint};
use std::cell::Cell;
use std::rc::Rc;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
/// Takes everything that is written at once.
fn endpoint() -> Endpoint {
    let mut e = Endpoint::host(skyhaul_cc::Config::by_name("cubic").expect("known"));
    e.tcp.send_autotuning = false;
    e
}
/// A client and a server that are connected; the client's packets pass from the time in `open` on.
fn met(open: &Rc<Cell<Instant>>) -> (World, ConnId, ConnId) {
    let mut w = World::new(Instant::ZERO + ms(5), false, Weather::calm(ms(50)));
    w.hosts[1].listen(80, endpoint()).unwrap();
    let open = open.clone();
    w.boxes[0] = Some(Box::new(move |now, _, _| now >= open.get()));
    let client = w.open(false, 80, &endpoint());
    let server = loop {
        assert!(w.step());
        if let Some(server) = accepted(&mut w.hosts[1]) {
            break server;
        }
    };
    (w, client, server)
}
/// Runs the client's host as a driver does until the application is done; returns how long that took.
fn part(w: &mut World, drain: &mut Drain, mut each: impl FnMut(&mut World)) -> Duration {
    let began = w.now;
    loop {
        let turn = drain.turn(w.now, &mut w.hosts[0]);
        w.flush();
        if turn == AppStatus::Done {
            return w.now - began;
        }
        each(w);
        w.step_by(drain.next_timeout().max(w.now));
    }
}

#[test]
fn a_fin_that_is_repeated_finds_somebody_who_acknowledges_it() {
    let open = Rc::new(Cell::new(Instant::ZERO));
    let (mut w, client, server) = met(&open);
    w.hosts[0].shutdown(w.now, client);
    w.flush();
    while !w.hosts[1].conn(server).unwrap().at_end() {
        w.step();
    }
    w.hosts[1].shutdown(w.now, server);
    w.flush();
    // The acknowledgement of its FIN is lost.
    open.set(Instant::MAX);
    while w.hosts[0].conn(client).unwrap().tcp().state() != skyhaul_tcp::State::TimeWait {
        w.step();
    }
    w.hosts[0].release(w.now, client);
    w.flush();
    open.set(Instant::ZERO);
    assert!(!w.hosts[1].conn(server).unwrap().is_over());
    let took = part(&mut w, &mut Drain::new(ms(100)), |_| {});
    // Nothing of the client is run any more; what has left is on its way.
    w.step_by(w.now + ms(60));
    assert!(w.hosts[1].conn(server).unwrap().ended_in_order(), "after {took:?}");
    assert!(took >= ms(400) && took < ms(2000), "{took:?}");
}

#[test]
fn data_that_nobody_has_acknowledged_is_seen_through() {
    let open = Rc::new(Cell::new(Instant::ZERO));
    let (mut w, client, server) = met(&open);
    let mut reader = Party::new(0);
    let mut data = vec![0; 100_000];
    common::fill(0, &mut data);
    assert_eq!(w.hosts[0].write(w.now, client, &data), data.len());
    w.hosts[0].release(w.now, client);
    w.flush();
    part(&mut w, &mut Drain::new(ms(100)), |w| reader.turn(w.now, &mut w.hosts[1], server));
    reader.turn(w.now, &mut w.hosts[1], server);
    assert_eq!((reader.received, reader.hash(), reader.at_end), (100_000, common::hash_of(100_000), true));
}

#[test]
fn nobody_is_waited_for_without_end_and_nobody_at_all_where_there_is_nothing() {
    let open = Rc::new(Cell::new(Instant::ZERO));
    let (mut w, client, server) = met(&open);
    let end = w.now + ms(5000);
    open.set(end);
    w.hosts[0].write(w.now, client, &[1; 5000]);
    w.hosts[0].release(w.now, client);
    w.flush();
    // The reset at the end is let through.
    let took = part(&mut w, &mut Drain::new(ms(100)), |_| {});
    assert!(took >= ms(5400) && took < ms(5500), "{took:?}");
    // The reset lay beyond what the server expected: it has asked back, and was answered.
    while w.hosts[1].conn(server).unwrap().failure().is_none() {
        assert!(w.now < end + ms(1000) && w.step_by(w.now + ms(10)));
    }
    assert_eq!(w.hosts[1].conn(server).unwrap().failure(), Some(skyhaul_net::host::Failure::Reset));
    let took = part(&mut w, &mut Drain::new(ms(100)), |_| {});
    assert_eq!((took, w.hosts[0].connections()), (Duration::ZERO, 0));
}
