//! The services in virtual time: a peer that vanishes or does nothing, in every stage, does not keep a connection.
#![cfg(target_os = "linux")]

mod common;

use common::{Weather, World};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{App, Http, Iperf, Serve, Sink};
use skyhaul_net::host::{ConnId, Endpoint};
use std::cell::Cell;
use std::rc::Rc;

const IDLE: Duration = Duration::from_secs(300);
const SECOND: Duration = Duration::from_secs(1);

fn endpoint() -> Endpoint {
    Endpoint::host(skyhaul_cc::Config::by_name("cubic").expect("known"))
}
/// A client and a server, and whether the client is there.
fn world(port: u16) -> (World, Rc<Cell<bool>>) {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(Duration::from_millis(10)));
    w.hosts[1].listen(port, endpoint()).unwrap();
    let there = Rc::new(Cell::new(true));
    for side in 0..2 {
        let there = there.clone();
        w.boxes[side] = Some(Box::new(move |_, _, _| there.get()));
    }
    (w, there)
}
/// Lets so much time pass; the client reads nothing. Returns after how many seconds the server held no connection.
fn pass(w: &mut World, app: &mut impl App, seconds: u64) -> Option<u64> {
    let began = w.now;
    let end = began + Duration::from_secs(seconds);
    while w.now < end {
        let _ = app.turn(w.now, &mut w.hosts[1]);
        while w.hosts[0].next_changed().is_some() {}
        w.flush();
        let opened = w.hosts[1].connections() == w.hosts[1].half_open();
        if opened && w.now > began + SECOND {
            return Some((w.now - began).as_nanos() / 1_000_000_000);
        }
        let next = app.next_timeout().max(w.now + Duration::from_millis(1));
        w.step_by(next.min(w.now + Duration::from_millis(500)));
    }
    None
}
fn say(w: &mut World, app: &mut impl App, id: ConnId, words: &[u8]) {
    assert_eq!(w.hosts[0].write(w.now, id, words), words.len());
    assert_eq!(pass(w, app, 1), None);
}
fn within(seconds: Option<u64>, least: u64, most: u64, what: &str) {
    assert!(
        seconds.is_some_and(|s| (least..=most).contains(&s)),
        "{what}: {seconds:?} s, not {least} to {most}"
    );
}

const CLOSE: &[u8] = b"GET /100 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const LONG: &[u8] = b"GET /100000000 HTTP/1.1\r\nHost: a\r\n\r\n";
const PUT: &[u8] = b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc";

#[test]
fn a_client_of_http_that_vanishes_or_does_nothing_loses_its_connection() {
    // What it says, whether it closes its side then, and the time until its connection is gone: alive, and vanished.
    for (said, closes, alive, vanished) in [
        (&b""[..], false, (59, 63), (59, 361)),
        (b"GET /1", false, (59, 63), (59, 361)),
        (CLOSE, false, (59, 63), (59, 301)),
        (LONG, false, (299, 376), (299, 376)),
        (LONG, true, (299, 376), (299, 376)),
        (PUT, false, (299, 376), (299, 376)),
        (b"GET /3 HTTP/1.1\r\nHost: a\r\n\r\n", false, (59, 63), (59, 361)),
    ] {
        for there in [true, false] {
            let (mut w, here) = world(80);
            let mut app = Serve::new(|_| Http::new(IDLE), SECOND, None).idle(IDLE);
            let id = w.open(false, 80, &endpoint());
            assert_eq!(pass(&mut w, &mut app, 1), None);
            say(&mut w, &mut app, id, said);
            if closes {
                w.hosts[0].shutdown(w.now, id);
                assert_eq!(pass(&mut w, &mut app, 1), None);
            }
            here.set(there);
            let (least, most) = if there { alive } else { vanished };
            let what = format!("{:?}, closes {closes}, there {there}", String::from_utf8_lossy(said));
            // A second or two have passed already; a released connection has 60 s for its FIN.
            within(pass(&mut w, &mut app, 2000), least - 4, most + 62, &what);
            // The service knows of it in its next turn.
            w.now += SECOND;
            let _ = app.turn(w.now, &mut w.hosts[1]);
            assert_eq!(app.take_ended().len(), 1, "{what}");
        }
    }
}

#[test]
fn the_head_of_a_request_takes_no_longer_for_coming_in_drops() {
    let (mut w, _) = world(80);
    let mut app = Serve::new(|_| Http::new(IDLE), SECOND, None);
    let id = w.open(false, 80, &endpoint());
    let mut seconds = 0;
    for byte in LONG.iter().cycle() {
        w.hosts[0].write(w.now, id, &[*byte]);
        pass(&mut w, &mut app, 5);
        seconds += 5;
        let mut room = [0; 100];
        let n = w.hosts[0].read(w.now, id, &mut room);
        if n > 0 {
            assert!(room.starts_with(b"HTTP/1.1 408 "), "{:?}", String::from_utf8_lossy(&room[..n]));
            break;
        }
        assert!(seconds < 80, "it waits");
    }
}

#[test]
fn a_client_of_a_sink_that_vanishes_or_does_nothing_loses_its_connection() {
    for (said, there) in [(&b""[..], true), (b"", false), (b"data", true), (b"data", false)] {
        let (mut w, here) = world(9);
        let mut app = Serve::new(|_| Sink, SECOND, None).idle(IDLE);
        let id = w.open(false, 9, &endpoint());
        assert_eq!(pass(&mut w, &mut app, 1), None);
        say(&mut w, &mut app, id, said);
        here.set(there);
        within(pass(&mut w, &mut app, 2000), 290, 680, &format!("{} bytes, there {there}", said.len()));
    }
}

#[test]
fn a_receiver_of_datagrams_that_has_vanished_gets_no_more_of_them() {
    const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz0123456789\0";
    for (limit, both) in [
        (r#""time":10"#, false),
        (r#""time":10"#, true),
        (r#""time":0,"num":1000000"#, false),
        (r#""time":0,"blockcount":1000"#, false),
        // Without a limit: keepalives.
        (r#""time":0"#, false),
    ] {
        let (mut w, there) = world(1);
        let mut asks = endpoint();
        let k = &mut asks.tcp.keepalive;
        (k.idle, k.interval, k.probes) = (IDLE / 4, IDLE / 16, 12);
        w.hosts[1].listen(5201, asks).unwrap();
        w.hosts[1].bind(5201).unwrap();
        let mut app = Iperf::new("cubic".into(), SECOND, None);
        let id = w.open(false, 5201, &endpoint());
        assert_eq!(pass(&mut w, &mut app, 1), None);
        say(&mut w, &mut app, id, COOKIE);
        let way = if both { "bidirectional" } else { "reverse" };
        let text =
            format!(r#"{{"udp":true,"{way}":true,"parallel":1,"len":1000,"bandwidth":1000000,{limit}}}"#);
        say(&mut w, &mut app, id, &[&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat());
        let end = |side: usize, port| std::net::SocketAddr::new(common::addresses(false)[side], port);
        for port in [7000, 7001].into_iter().take(if both { 2 } else { 1 }) {
            w.hosts[0].bind(port).unwrap();
            w.hosts[0].send_to(end(0, port), end(1, 5201), b"9876").unwrap();
            assert_eq!(pass(&mut w, &mut app, 1), None);
        }
        let before = w.sent[1];
        assert_eq!(pass(&mut w, &mut app, 2), None);
        assert!(w.sent[1] > before + 100, "{limit}: the test runs");
        there.set(false);
        // The time, or as long again as it took to send so much, and the grace; or `IDLE`.
        within(pass(&mut w, &mut app, 600), 30, 310, &format!("{limit}, both {both}"));
        let sent = w.sent[1];
        assert_eq!(pass(&mut w, &mut app, 1), None);
        assert_eq!(w.sent[1], sent, "{limit}, both {both}: it sends on");
        // The next one is served.
        there.set(true);
        let next = w.open(false, 5201, &endpoint());
        assert_eq!(pass(&mut w, &mut app, 1), None);
        say(&mut w, &mut app, next, COOKIE);
        let mut state = [0; 4];
        assert_eq!((w.hosts[0].read(w.now, next, &mut state), state[0]), (1, 9), "{limit}, both {both}");
    }
}
