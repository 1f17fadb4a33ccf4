//! Workloads and datagrams on two hosts in virtual time.
#![cfg(target_os = "linux")]

mod common;

use common::{Weather, World, addresses};
use skyhaul_apps::{App, Bulk, Config, Start, Streams, Transport, cbr, pages};
use skyhaul_base::amount::RateSpec;
use skyhaul_base::dist::Times;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_net::app::{App as _, HostTransport, Inbox, Serve, Session, Sink};
use skyhaul_net::host::{ConnId, Endpoint, HostError, Op};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
fn endpoint(name: &str) -> Arc<Endpoint> {
    Arc::new(Endpoint::host(skyhaul_cc::Config::by_name(name).expect("known")))
}
fn ends(v6: bool) -> (SocketAddr, SocketAddr) {
    let [a, b] = addresses(v6);
    (SocketAddr::new(a, 0), SocketAddr::new(b, 80))
}
fn session(config: impl Into<Config>, over: Transport, stops: Instant) -> Session {
    let streams = Streams::of(1, "flows.a[0]");
    let start = Start { now: Instant::ZERO, over, streams: &streams };
    Session::new(config.into().resolve(over).unwrap().build(&start), (Instant::ZERO, stops), 28)
}

/// Runs a session until all of it is over. Returns the connections that it had.
fn run(w: &mut World, session: &mut Session, transport: &mut HostTransport) -> BTreeSet<ConnId> {
    let mut server = Serve::new(|_| Sink, ms(1000), None);
    let mut known = BTreeSet::new();
    loop {
        let now = w.now;
        let done = session.pages().len();
        session.turn(now, &mut transport.carrier(&mut w.hosts[0])).expect("opens");
        known.extend(transport.open());
        if session.pages().len() > done {
            // The simulator's endpoint would have sent the same, also with the path state that it was given.
            for id in &known {
                let journal = w.hosts[0].conn(*id).and_then(|c| c.journal());
                assert!(journal.is_none_or(|j| j.replay().is_ok()));
            }
        }
        transport.tend(now, &mut w.hosts[0]);
        server.turn(now, &mut w.hosts[1]);
        w.flush();
        let next = session.next().min(transport.next());
        if session.finished().is_some() && next == Instant::MAX {
            return known;
        }
        assert!(w.step_by(next), "nothing happens any more: {session:?} {transport:?}");
    }
}

#[test]
fn pages_cross_bad_weather_one_connection_each() {
    for (v6, cc) in [(false, "cubic"), (true, "peach"), (false, "fast-start")] {
        let mut w = World::new(Instant::ZERO, v6, Weather::stormy(ms(20)));
        let e = endpoint(cc);
        w.hosts[1].listen(80, (*e).clone()).expect("free");
        let config = pages::Config { segments: 40, count: Some(5), idle: Some(Times::Constant(ms(300))) };
        let mut session = session(config, Transport::Stream { segment: 1000 }, Instant::MAX);
        let mut transport = HostTransport::connections(ends(v6), e);
        let ids = run(&mut w, &mut session, &mut transport);
        assert_eq!((session.pages().len(), ids.len()), (5, 5), "{cc}");
        assert_eq!(transport.tally(&w.hosts[0]).acked, 200_000, "{cc}");
        let over = transport.take_summaries();
        assert_eq!(over.iter().map(|(transfer, _)| *transfer).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!(over.iter().all(|(_, a)| a.failure.is_none() && a.counters.bytes_acked == 40_000));
        assert!(session.pages().iter().all(|t| *t >= ms(80)), "a handshake and a round trip at least");
    }
}

#[test]
fn a_new_connection_is_told_what_the_last_one_learnt() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(50)));
    let e = endpoint("fast-start");
    w.hosts[1].listen(80, (*e).clone()).expect("free");
    let config = pages::Config { segments: 200, count: Some(2), idle: None };
    let mut session = session(config, Transport::Stream { segment: 1000 }, Instant::MAX);
    let mut transport = HostTransport::connections(ends(false), e);
    let mut told = Vec::new();
    while session.finished().is_none() {
        let now = w.now;
        let mut server = Serve::new(|_| Sink, ms(1000), None);
        session.turn(now, &mut transport.carrier(&mut w.hosts[0])).expect("opens");
        server.turn(now, &mut w.hosts[1]);
        if let Some(c) = transport.open().next().and_then(|id| w.hosts[0].conn(id)) {
            let recalls = |(_, op): &(Instant, Op)| matches!(op, Op::Recall(_));
            told.push(c.journal().unwrap().ops().iter().any(recalls));
        }
        w.flush();
        assert!(w.step_by(session.next()));
    }
    assert_eq!((told.first(), told.last()), (Some(&false), Some(&true)));
    assert!(session.pages()[1] < session.pages()[0], "{:?}", session.pages());
}

#[test]
fn a_workload_that_is_told_to_end_ends_in_order() {
    for stops in [ms(1), ms(30), ms(700)] {
        let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(50)));
        let e = endpoint("cubic");
        w.hosts[1].listen(80, (*e).clone()).expect("free");
        let app = App::Bulk(Bulk::endless(Instant::ZERO));
        let mut session = Session::new(app, (Instant::ZERO, Instant::ZERO + stops), 0);
        let mut transport = HostTransport::connections(ends(false), e);
        run(&mut w, &mut session, &mut transport);
        let over = transport.take_summaries();
        assert_eq!((over.len(), session.pages().len()), (1, 0), "{stops:?}");
        assert!(over[0].1.in_order && over[0].1.failure.is_none(), "{stops:?}: {over:?}");
        assert_eq!(over[0].1.counters.bytes_acked > 0, stops > ms(100), "what was not sent was taken back");
    }
}

#[test]
fn datagrams_are_measured_by_whoever_receives_them() {
    for (v6, weather) in
        [(false, Weather::calm(ms(40))), (true, Weather::calm(ms(40))), (false, Weather::stormy(ms(40)))]
    {
        let (mut w, calm) = (World::new(Instant::ZERO, v6, weather.clone()), weather.loss == 0.0);
        let config =
            cbr::Config { rate: RateSpec::Bits(Rate::from_bits_per_sec(800_000)), packet: Some(500) };
        let over = Transport::Datagrams { header: 28, yields: false };
        let mut session = session(config, over, Instant::ZERO + Duration::from_secs(20));
        w.hosts[1].bind(80).expect("free");
        let mut transport =
            HostTransport::datagrams(&mut w.hosts[0], ends(v6), endpoint("cubic")).expect("a free port");
        let mut inbox = Inbox::new(Instant::MAX);
        loop {
            let now = w.now;
            session.turn(now, &mut transport.carrier(&mut w.hosts[0])).expect("sends");
            inbox.read(&mut w.hosts[1]);
            w.flush();
            if !w.step_by(session.next()) {
                break;
            }
        }
        inbox.read(&mut w.hosts[1]);
        let delays = inbox.of(transport.local());
        let m = delays.measured();
        assert_eq!(session.datagrams(), 4000);
        assert_eq!(w.hosts[0].counts().datagrams_out, 4000);
        assert_eq!(delays.bytes(), m.delivered * 472);
        if calm {
            assert_eq!((m.delivered, m.missing, m.delay_max, m.jitter), (4000, 0, Some(0.04), Some(0.0)));
        } else {
            // A hundredth is lost, a two-hundredth corrupted and refused for its checksum, a hundredth comes twice.
            let refused = w.hosts[1].counts().refusals.total();
            assert!(refused > 5 && (3800..4100).contains(&m.delivered), "{m:?}, {refused} refused");
            assert!(m.delay_max > Some(0.04) && m.jitter > Some(0.0), "{m:?}");
        }
    }
}

#[test]
fn datagrams_that_cannot_be_sent_or_read_are_refused_and_counted() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(1)));
    let (from, to) = ends(false);
    let [a, b] = &mut w.hosts;
    assert_eq!(b.bind(80), Ok(80));
    assert_eq!(b.bind(80), Err(HostError::PortInUse(80)));
    assert!(b.listen(80, (*endpoint("reno")).clone()).is_ok(), "TCP has its own ports");
    let from = SocketAddr::new(from.ip(), a.bind(0).expect("one is free"));
    assert_ne!(a.bind(0), Ok(from.port()));
    assert_eq!(a.send_to(from, to, &[0; 1472]), Ok(()));
    assert_eq!(a.send_to(from, to, &[0; 1473]), Err(HostError::TooLong { bytes: 1473, most: 1472 }));
    assert!(matches!(a.send_to(to, from, &[]), Err(HostError::NotOurs(_))));
    assert!(matches!(a.send_to(from, ends(true).1, &[]), Err(HostError::Families { .. })));
    // No application reads at that port, or it does not read for long.
    a.send_to(from, SocketAddr::new(to.ip(), 81), &[1, 2, 3]).expect("leaves");
    for n in 0..5000u16 {
        a.send_to(from, to, &n.to_be_bytes()).expect("leaves");
    }
    w.flush();
    while w.step() {}
    let c = w.hosts[1].counts().clone();
    assert_eq!((c.not_tcp, c.datagrams_in, c.datagrams_dropped), (1, 4096, 905));
    let first = w.hosts[1].receive().expect("the long one");
    assert_eq!((first.from, first.to, first.payload.len()), (from, to, 1472));
    assert_eq!(w.hosts[1].receive().expect("the next").payload, [0, 0]);
    w.hosts[1].unbind(80);
    w.hosts[0].send_to(from, to, &[7]).expect("leaves");
    w.flush();
    while w.step() {}
    assert_eq!(w.hosts[1].counts().not_tcp, 2);
}
