//! The services in virtual time: a peer that vanishes or does nothing, in every stage, does not keep a connection.
#![cfg(target_os = "linux")]

mod common;

use common::{Weather, World};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{App, AppStatus, Bulk, Drain, Http, Iperf, Limit, Serve, Sink};
use skyhaul_net::host::{ConnId, Endpoint, Host, HostConfig};
use std::cell::Cell;
use std::rc::Rc;

const IDLE: Duration = Duration::from_secs(300);
const SECOND: Duration = Duration::from_secs(1);

fn endpoint() -> Endpoint {
    Endpoint::host(skyhaul_cc::Config::by_name("cubic").expect("known"))
}
/// A client and a server, and whether packets pass: if not, each has vanished for the other.
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
/// Lets this many seconds pass; the client reads nothing. Returns after how many seconds the server held no connection.
fn pass(w: &mut World, app: &mut impl App, seconds: u64) -> Option<u64> {
    let began = w.now;
    let end = began + Duration::from_secs(seconds);
    while w.now < end {
        let _ = app.turn(w.now, &mut w.hosts[1]);
        while w.hosts[0].next_changed().is_some() {}
        w.flush();
        let none = w.hosts[1].connections() == w.hosts[1].half_open();
        if none && w.now > began + SECOND {
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
    // What the client sends, whether it then closes its side, and the seconds until its connection is gone: of a client that is alive,
    // and of one that has vanished.
    for (said, closes, alive, vanished) in [
        (&b""[..], false, (59, 63), (59, 361)),
        (b"GET /1", false, (59, 63), (59, 361)),
        (CLOSE, false, (59, 63), (59, 376)),
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
            // The service notices in its next turn.
            w.now += SECOND;
            let _ = app.turn(w.now, &mut w.hosts[1]);
            assert_eq!(app.take_ended().len(), 1, "{what}");
        }
    }
}

#[test]
fn bytes_that_trickle_in_do_not_extend_the_time_of_a_head() {
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

/// A request for 100 kB, after which the server closes: its send buffer holds all of the response.
const LONG_CLOSE: &[u8] = b"GET /100000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
/// An endpoint with a receive buffer of this many bytes.
fn with_room(bytes: u64) -> Endpoint {
    let mut e = endpoint();
    (e.tcp.receive_buffer, e.tcp.receive_autotuning) = (bytes, false);
    e
}
/// A client that sends [`LONG_CLOSE`] and has room for a part of the response.
fn asks_to_close(idle: Duration) -> (World, Serve<Http, impl FnMut(u16) -> Http>, ConnId) {
    let (mut w, _) = world(80);
    let mut app = Serve::new(move |_| Http::new(idle), SECOND, None).idle(idle);
    let id = w.open(false, 80, &with_room(8192));
    assert_eq!(pass(&mut w, &mut app, 1), None);
    say(&mut w, &mut app, id, LONG_CLOSE);
    (w, app, id)
}
/// Reads up to `bytes` of the response every `every` seconds; returns after how many seconds the server held no connection, and how
/// much was read.
fn sips(w: &mut World, app: &mut impl App, id: ConnId, bytes: usize, every: u64) -> (u64, usize) {
    let (began, mut read) = (w.now, 0);
    loop {
        read += w.hosts[0].read(w.now, id, &mut vec![0; bytes]);
        if w.hosts[0].conn(id).is_some_and(|c| c.at_end()) {
            w.hosts[0].shutdown(w.now, id);
        }
        let over = pass(w, app, every);
        let seconds = (w.now - began).as_nanos() / 1_000_000_000;
        if over.is_some() || seconds > 20_000 {
            // The server no longer waits for data that the client has acknowledged.
            return (seconds, read + w.hosts[0].discard(w.now, id) as usize);
        }
    }
}

#[test]
fn a_window_that_stays_closed_ends_a_closed_connection_in_time() {
    // The limit is checked four times while it lasts.
    for idle in [300, 60, 20] {
        let (mut w, mut app, _) = asks_to_close(SECOND * idle);
        within(pass(&mut w, &mut app, 1000), idle - 2, idle + idle / 4 + 1, &format!("--idle {idle}s"));
        w.now += SECOND;
        let _ = app.turn(w.now, &mut w.hosts[1]);
        assert!(app.take_ended().len() == 1 && app.next_timeout() == Instant::MAX);
    }
    // Without a limit, never.
    let (mut w, mut app, id) = asks_to_close(Duration::ZERO);
    assert_eq!(pass(&mut w, &mut app, 3000), None);
    let (_, read) = sips(&mut w, &mut app, id, 100_000, 1);
    assert!(read > 100_000, "all of it: {read}");
}

#[test]
fn a_slow_reader_is_no_dead_one() {
    // A full segment every forty seconds: 100 kB take 46 minutes. The window opens when the server probes it, which it does ever less.
    let (mut w, mut app, id) = asks_to_close(IDLE);
    let (took, read) = sips(&mut w, &mut app, id, 1460, 40);
    assert!(took > 2500 && read > 100_000, "{read} bytes in {took} s");
    assert_eq!(w.hosts[0].conn(id).and_then(|c| c.failure()), None);
    // Too little for a limit: a window opens every ten minutes.
    let (mut w, mut app, id) = asks_to_close(Duration::ZERO);
    let (took, read) = sips(&mut w, &mut app, id, 100, 15);
    assert!(took > 14_000 && read > 100_000, "{read} bytes in {took} s");
    assert_eq!(w.hosts[0].conn(id).and_then(|c| c.failure()), None);
}

#[test]
fn a_server_that_stops_waits_for_those_who_still_acknowledge() {
    // A queue of more than a second at 300 kB/s, from which something is acknowledged all the time; and a peer that acknowledges nothing.
    for there in [true, false] {
        let (mut w, here) = world(80);
        let mut app = Serve::new(|_| Http::new(IDLE), SECOND, None).idle(IDLE);
        let id = w.open(false, 80, &endpoint());
        assert_eq!(pass(&mut w, &mut app, 1), None);
        w.hosts[0].write(w.now, id, LONG);
        // The window has grown to all that the client offers, and then the link becomes slow.
        let begins = w.now;
        while w.now < begins + Duration::from_millis(400) {
            if w.now > begins + Duration::from_millis(300) {
                w.rates[1] = Some(300_000);
            }
            let _ = app.turn(w.now, &mut w.hosts[1]);
            w.hosts[0].discard(w.now, id);
            w.flush();
            w.step_by(w.now + Duration::from_millis(5));
        }
        here.set(there);
        app.stop(w.now, &mut w.hosts[1]);
        let (mut read, began) = (0, w.now);
        loop {
            let turn = app.turn(w.now, &mut w.hosts[1]);
            w.flush();
            read += w.hosts[0].discard(w.now, id);
            if w.hosts[0].conn(id).is_some_and(|c| c.at_end()) {
                w.hosts[0].shutdown(w.now, id);
            }
            if turn == AppStatus::Done {
                break;
            }
            let next = app.next_timeout().max(w.now + Duration::from_millis(1));
            w.step_by(next.min(w.now + Duration::from_millis(10)));
        }
        let ended = app.take_ended();
        assert_eq!((ended.len(), ended[0].account.failure), (1, None));
        let took = w.now - began;
        if there {
            // As long as it acknowledges, up to four seconds.
            assert!(took > SECOND && took < SECOND * 4 + Duration::from_millis(50), "{took:?}");
            assert!(read > 300_000, "{read} bytes");
        } else {
            assert!(took >= SECOND && took < SECOND * 3, "{took:?}");
        }
    }
}

#[test]
fn connections_that_do_nothing_keep_nobody_out_for_ever() {
    const MOST: usize = 500;
    let mut w = World::new(Instant::ZERO, false, Weather::calm(Duration::from_millis(10)));
    for side in 0..2 {
        let most = if side == 1 { MOST } else { 65_536 };
        let config = HostConfig { record: false, most, ..w.hosts[side].config().clone() };
        w.hosts[side] = Host::new(config);
    }
    w.hosts[1].listen(80, endpoint()).unwrap();
    let mut app = Serve::new(|_| Http::new(IDLE), SECOND, None).idle(IDLE);
    // More connections than there is room for. They do nothing, and do not answer the server's FIN; half of them have asked for a page.
    let idle: Vec<ConnId> = (0..MOST + 100).map(|_| w.open(false, 80, &endpoint())).collect();
    assert_eq!(pass(&mut w, &mut app, 3), None);
    for id in idle.iter().step_by(2) {
        w.hosts[0].write(w.now, *id, b"GET /5 HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    assert_eq!(pass(&mut w, &mut app, 3), None);
    assert!(w.hosts[1].census().states.contains(&("established", MOST as u64)), "full");
    // A client with a request: its SYN is repeated until there is room.
    let mut patient = endpoint();
    patient.tcp.rto.max = SECOND * 10;
    let id = w.open(false, 80, &patient);
    assert_eq!(pass(&mut w, &mut app, 10), None);
    assert!(!w.hosts[0].conn(id).unwrap().is_connected(), "there is no room yet");
    let mut answer = Vec::new();
    w.hosts[0].write(w.now, id, CLOSE);
    for _ in 0..200 {
        pass(&mut w, &mut app, 1);
        let mut room = [0; 1000];
        let n = w.hosts[0].read(w.now, id, &mut room);
        answer.extend_from_slice(&room[..n]);
        if answer.ends_with(&[b'v'; 1]) {
            break;
        }
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{:?}", String::from_utf8_lossy(&answer));
    // In the end none of them is left.
    w.hosts[0].abort_all(w.now);
    assert!(pass(&mut w, &mut app, 400).is_some());
    assert!(app.take_ended().len() >= MOST);
}

/// What the peer of a sender does instead of reading and closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// It reads, and does not close.
    Reads,
    /// It reads nothing.
    Waits,
    /// It has vanished.
    Vanishes,
}

#[test]
fn a_sender_whose_time_is_over_waits_five_seconds_for_its_peer() {
    for peer in [Peer::Reads, Peer::Waits, Peer::Vanishes] {
        let (mut w, there) = world(9);
        let [a, b] = common::addresses(false).map(|ip| std::net::SocketAddr::new(ip, 0));
        let to = std::net::SocketAddr::new(b.ip(), 9);
        let limit = Limit::Time(SECOND * 2);
        let mut app =
            Bulk::open(w.now, &mut w.hosts[0], (a, to), &endpoint(), limit, 2, SECOND).expect("opens");
        let began = w.now;
        let mut over = None;
        while over.is_none() {
            assert!(w.now < began + SECOND * 60, "{peer:?}: it goes on");
            if peer == Peer::Vanishes && w.now > began + SECOND {
                there.set(false);
            }
            let turn = app.turn(w.now, &mut w.hosts[0]);
            over = (turn == AppStatus::Done).then_some(w.now - began);
            while let Some(id) = w.hosts[1].next_changed() {
                if peer != Peer::Waits {
                    w.hosts[1].sink(w.now, id);
                }
            }
            w.flush();
            w.step_by(app.next_timeout().max(w.now + Duration::from_micros(100)));
        }
        // Two seconds of work, and five of waiting, or one if the peer has everything and does not close.
        let (least, most) = if peer == Peer::Reads { (3, 4) } else { (7, 8) };
        assert!(over.is_some_and(|t| t >= SECOND * least && t < SECOND * most), "{peer:?}: {over:?}");
        // The command then drains what is left.
        let mut last = Drain::new(Duration::from_millis(20));
        let began = w.now;
        while last.turn(w.now, &mut w.hosts[0]) != AppStatus::Done {
            w.flush();
            assert!(w.now < began + SECOND * 6, "{peer:?}: the last packets");
            w.step_by(last.next_timeout().max(w.now + Duration::from_micros(100)));
        }
    }
}
