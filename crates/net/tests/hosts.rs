//! Two hosts over paths in virtual time: whatever the path does, the streams arrive as they were sent.
#![cfg(target_os = "linux")]

mod common;
#[path = "hosts/contain.rs"]
mod contain;
#[path = "hosts/early.rs"]
mod early;
#[path = "hosts/merged.rs"]
mod merged;
#[path = "hosts/paths.rs"]
mod paths;
#[path = "hosts/turns.rs"]
mod turns;

use common::{Party, Weather, World, accepted, addresses, check, transfer};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::Meter;
use skyhaul_net::host::{Endpoint, Failure, Host, HostConfig, Secret};
use skyhaul_tcp::State;
use skyhaul_wire::Profile;
use std::net::SocketAddr;

const MB: u64 = 1_000_000;

fn endpoint(name: &str) -> Endpoint {
    Endpoint::host(skyhaul_cc::Config::by_name(name).expect("known"))
}
fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The start of the clock for which the client's first sequence number is this many bytes below the wrap.
fn start_below_wrap(bytes: u32) -> Instant {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(1)));
    let id = w.open(false, 80, &endpoint("newreno"));
    let seq = w.hosts[0].conn(id).expect("open").tcp().acknowledged();
    Instant::from_nanos(u64::from(0u32.wrapping_sub(bytes).wrapping_sub(seq.0)) * 4000)
}

#[test]
fn a_hundred_megabytes_each_way_through_loss_duplication_reordering_corruption_and_the_wrap() {
    for (v6, cc) in [(false, "newreno"), (true, "peach")] {
        let mut w = World::new(start_below_wrap(40 * MB as u32), v6, Weather::stormy(ms(2)));
        let e = endpoint(cc);
        let (parties, ids) = transfer(&mut w, v6, [&e, &e], 100 * MB, 100 * MB, |_, _, _| {});
        check(&w, &parties, ids);
        let counts = w.hosts[1].counts();
        assert!(counts.refusals.total() > 100, "corrupted packets are refused: {counts:?}");
        let c = w.hosts[0].conn(ids[0]).unwrap();
        assert!(c.counters().retransmissions > 100);
    }
}

#[test]
fn every_algorithm_delivers_through_bad_weather() {
    for name in skyhaul_cc::NAMES {
        for (profile, v6) in [(Profile::Option, false), (Profile::Compact, true)] {
            let mut w = World::new(Instant::ZERO, v6, Weather::stormy(ms(20)));
            let mut e = endpoint(name);
            e.profile = profile;
            let (parties, ids) = transfer(&mut w, v6, [&e, &e], MB, MB / 4, |_, _, _| {});
            check(&w, &parties, ids);
        }
    }
}

#[test]
fn packets_have_the_size_that_the_device_takes_and_the_peer_asked_for() {
    for (v6, mtu, peer_mtu, payload) in [
        // 20 + 20 + 12 bytes of headers with timestamps, 20 more over IPv6.
        (false, 1500, 1500, 1448),
        (true, 1500, 1500, 1428),
        (false, 1500, 1000, 948),
        (true, 1280, 1500, 1208),
    ] {
        let mut w = World::new(Instant::ZERO, v6, Weather::calm(ms(5)));
        for (side, mtu) in [mtu, peer_mtu].into_iter().enumerate() {
            let config = HostConfig { mtu, record: true, ..w.hosts[side].config().clone() };
            w.hosts[side] = Host::new(config);
        }
        let least = u64::from(mtu.min(peer_mtu));
        w.boxes[0] = Some(Box::new(move |_, p, _| {
            assert!(p.len() as u64 <= least, "{} bytes", p.len());
            true
        }));
        let e = endpoint("peach");
        let (parties, ids) = transfer(&mut w, v6, [&e, &e], 40 * payload, 0, |_, _, _| {});
        check(&w, &parties, ids);
        let c = w.hosts[0].conn(ids[0]).unwrap();
        assert_eq!(c.counters().segments_sent, 40, "full segments, the last one with the FIN");
        assert!(c.counters().probes_sent > 0);
    }
}

#[test]
fn a_reader_that_stalls_stops_the_sender_and_nothing_is_lost() {
    let mut w = World::new(Instant::ZERO, false, Weather::stormy(ms(10)));
    let mut e = endpoint("newreno");
    e.tcp.receive_buffer = 100_000;
    e.tcp.receive_autotuning = false;
    w.hosts[1].listen(80, e.clone()).unwrap();
    let id = w.open(false, 80, &e);
    let mut parties = [Party::new(3 * MB), Party::new(0)];
    // Three stalls of five seconds each: the window closes, and only window probes find it open again.
    let mut server = None;
    let mut stalls = 0;
    while !(parties[1].at_end && w.hosts[0].conn(id).is_some_and(|c| c.is_over())) {
        server = server.or_else(|| accepted(&mut w.hosts[1]));
        parties[0].turn(w.now, &mut w.hosts[0], id);
        if let Some(s) = server {
            let before = parties[1].received / MB;
            parties[1].turn(w.now, &mut w.hosts[1], s);
            if parties[1].received / MB > before && stalls < 3 {
                stalls += 1;
                parties[1].reads_from = w.now + Duration::from_secs(5);
            }
            if w.now < parties[1].reads_from {
                let unread = w.hosts[1].conn(s).unwrap().tcp().readable();
                assert!(unread <= 100_000, "{unread} bytes in a buffer of 100000");
                if w.next_event() > parties[1].reads_from {
                    w.now = parties[1].reads_from;
                    continue;
                }
            }
        }
        w.flush();
        assert!(w.step());
    }
    check(&w, &parties, [id, server.unwrap()]);
    assert!(w.hosts[0].conn(id).unwrap().counters().window_probes > 0);
}

#[test]
fn a_thousand_connections_at_once() {
    let mut w = World::new(Instant::ZERO, false, Weather::stormy(ms(10)));
    let e = endpoint("cubic");
    w.hosts[1].listen(80, e.clone()).unwrap();
    let ids: Vec<_> = (0..1000).map(|_| w.open(false, 80, &e)).collect();
    let mut clients: Vec<_> = ids.iter().map(|_| Party::new(30_000)).collect();
    let mut servers = std::collections::BTreeMap::new();
    let at: std::collections::BTreeMap<_, _> = ids.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let mut finished = 0;
    while finished < 1000 {
        while let Some(id) = w.hosts[0].next_changed() {
            clients[at[&id]].turn(w.now, &mut w.hosts[0], id);
        }
        while let Some(id) = w.hosts[1].next_changed() {
            let p = servers.entry(id).or_insert_with(|| Party::new(20_000));
            p.turn(w.now, &mut w.hosts[1], id);
        }
        w.flush();
        finished = clients
            .iter()
            .filter(|c| c.at_end)
            .count()
            .min(servers.values().filter(|s: &&Party| s.at_end).count());
        assert!(w.step() || finished == 1000);
    }
    let (up, down) = (common::hash_of(30_000), common::hash_of(20_000));
    assert_eq!(servers.len(), 1000);
    assert!(clients.iter().all(|c| c.hash() == down) && servers.values().all(|s| s.hash() == up));
    // All of them end, and nothing is left once the applications let go.
    for id in ids {
        w.hosts[0].release(w.now, id);
    }
    for id in servers.keys() {
        w.hosts[1].release(w.now, *id);
    }
    w.flush();
    while w.step() {}
    assert_eq!((w.hosts[0].connections(), w.hosts[1].connections()), (0, 0));
}

#[test]
fn one_side_may_close_while_the_other_sends_on() {
    for (up, down) in [(0, MB), (MB, 0), (1, 2 * MB)] {
        let mut w = World::new(Instant::ZERO, false, Weather::stormy(ms(10)));
        let e = endpoint("newreno");
        let (parties, ids) = transfer(&mut w, false, [&e, &e], up, down, |_, _, _| {});
        check(&w, &parties, ids);
    }
}

#[test]
fn a_reset_ends_a_connection_in_every_state() {
    use State as S;
    let states =
        [S::SynReceived, S::Established, S::FinWait1, S::FinWait2, S::CloseWait, S::Closing, S::LastAck];
    for wanted in states {
        let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(50)));
        let e = endpoint("newreno");
        w.hosts[1].listen(80, e.clone()).unwrap();
        let id = w.open(false, 80, &e);
        // What both applications do so that the server passes through the state.
        let server_closes = matches!(wanted, S::FinWait1 | S::FinWait2 | S::Closing);
        let client_closes = matches!(wanted, S::CloseWait | S::LastAck | S::Closing);
        let mut server = None;
        let mut resets = 0;
        for _ in 0..200 {
            server = server.or_else(|| accepted(&mut w.hosts[1]));
            if let Some(s) = server.filter(|_| w.hosts[0].conn(id).is_some_and(|c| c.is_connected())) {
                if client_closes {
                    w.hosts[0].shutdown(w.now, id);
                }
                let finished = w.hosts[1].conn(s).is_some_and(|c| c.tcp().peer_finished());
                if server_closes || (wanted == S::LastAck && finished) {
                    w.hosts[1].shutdown(w.now, s);
                }
            }
            w.flush();
            let tcp = |c: &skyhaul_net::host::Conn| c.tcp().state();
            let now_in = server.and_then(|s| w.hosts[1].conn(s)).map(tcp);
            if now_in == Some(wanted) || (wanted == S::SynReceived && w.hosts[1].connections() == 1) {
                w.hosts[0].abort(w.now, id);
                resets += 1;
                break;
            }
            if !w.step() {
                break;
            }
        }
        assert_eq!(resets, 1, "{wanted:?} was never reached");
        w.flush();
        while w.step() {}
        match server.and_then(|s| w.hosts[1].conn(s)) {
            // Its FIN was acknowledged meanwhile: nothing assassinates TIME-WAIT (RFC 1337).
            Some(c) if wanted == S::Closing => assert!(c.ended_in_order()),
            Some(c) => {
                assert_eq!((c.failure(), c.tcp().state()), (Some(Failure::Reset), S::Closed), "{wanted:?}")
            }
            // The application was not informed yet.
            None => assert_eq!((wanted, w.hosts[1].connections()), (S::SynReceived, 0)),
        }
    }
}

#[test]
fn a_peer_that_vanishes_is_given_up_on() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(50)));
    let mut e = endpoint("newreno");
    e.tcp.max_retransmissions = 5;
    let mut gone = false;
    let (parties, ids) = transfer(&mut w, false, [&e, &e], 5 * MB, 0, |w, id, _| {
        if !gone && w.hosts[0].conn(id).is_some_and(|c| c.counters().bytes_acked > MB) {
            gone = true;
            w.weather = [Weather { loss: 1.0, ..Weather::calm(ms(50)) }, Weather::calm(ms(50))];
        }
    });
    assert_eq!(parties[0].failure, Some(Failure::TimedOut));
    w.hosts[0].release(w.now, ids[0]);
    w.flush();
    assert_eq!(w.hosts[0].connections(), 0);

    // The SYN gets no answer; the SYN gets a reset.
    let mut w = World::new(Instant::ZERO, false, Weather { loss: 1.0, ..Weather::calm(ms(50)) });
    let id = w.open(false, 80, &e);
    while w.step() {}
    assert_eq!(w.hosts[0].conn(id).unwrap().failure(), Some(Failure::TimedOut));
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(50)));
    let id = w.open(false, 80, &e);
    while w.step() {}
    assert_eq!(w.hosts[0].conn(id).unwrap().failure(), Some(Failure::Refused));
    assert_eq!(w.hosts[1].counts().resets_out, 1);
}

#[test]
fn an_orphan_does_not_wait_for_ever() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(50)));
    let e = endpoint("newreno");
    w.hosts[1].listen(80, e.clone()).unwrap();
    let id = w.open(false, 80, &e);
    while w.step() {}
    // The server never closes.
    w.hosts[0].release(w.now, id);
    w.flush();
    let began = w.now;
    while w.step() {}
    assert_eq!(w.hosts[0].connections(), 0);
    assert!(w.now - began >= Duration::from_secs(60));
    let server = accepted(&mut w.hosts[1]).unwrap();
    assert_eq!(w.hosts[1].conn(server).unwrap().failure(), Some(Failure::Reset));
}

#[test]
fn what_is_aborted_and_let_go_at_once_still_says_so() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(50)));
    let e = endpoint("newreno");
    w.hosts[1].listen(80, e.clone()).unwrap();
    let id = w.open(false, 80, &e);
    while w.step() {}
    w.hosts[0].abort(w.now, id);
    w.hosts[0].release(w.now, id);
    w.flush();
    while w.step() {}
    let server = accepted(&mut w.hosts[1]).unwrap();
    assert_eq!(w.hosts[1].conn(server).unwrap().failure(), Some(Failure::Reset));
    assert_eq!(w.hosts[0].connections(), 0);
}

#[test]
fn half_open_connections_have_a_limit() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(50)));
    let e = endpoint("newreno");
    let config = HostConfig { backlog: 10, ..w.hosts[1].config().clone() };
    w.hosts[1] = Host::new(config);
    w.hosts[1].listen(80, e.clone()).unwrap();
    // Their answers never come.
    w.weather[1].loss = 1.0;
    for _ in 0..50 {
        w.open(false, 80, &e);
    }
    while w.now < Instant::ZERO + ms(900) {
        w.step_by(w.now + ms(100));
    }
    assert_eq!((w.hosts[1].connections(), w.hosts[1].half_open()), (10, 10));
    assert!(w.hosts[1].counts().cookies_sent >= 40, "the others get cookies");
    assert_eq!(accepted(&mut w.hosts[1]), None, "none of them is told of");
}

#[test]
fn what_is_asked_wrongly_is_refused_in_words() {
    let [a, b] = addresses(false);
    let mut host = Host::new(HostConfig { most: 1, ..HostConfig::new(vec![a], Secret::fixed([0; 16])) });
    let e = endpoint("newreno");
    let to = SocketAddr::new(b, 80);
    let mut open = |local: &str, remote: SocketAddr| {
        let r = host.connect(Instant::ZERO, local.parse().unwrap(), remote, &e);
        r.map_err(|e| e.to_string())
    };
    assert_eq!(open("10.9.9.9:0", to).unwrap_err(), "10.9.9.9 is not an address of this stack");
    let v6 = SocketAddr::new(addresses(true)[1], 80);
    assert!(open("10.84.0.1:0", v6).unwrap_err().contains("one is an IPv4 address"));
    assert!(open("10.84.0.1:5000", to).is_ok());
    assert!(open("10.84.0.1:0", to).unwrap_err().contains("is reached"));
    assert!(host.listen(80, e.clone()).is_ok());
    assert!(host.listen(80, e).unwrap_err().to_string().contains("port 80 is in use"));
}

#[test]
fn the_longest_segment_of_a_path_that_swallows_is_found_without_a_timeout() {
    for (v6, width, headers) in [(false, 1400, 52), (true, 1320, 72)] {
        let mut w = World::new(Instant::ZERO, v6, Weather::calm(ms(50)));
        // What is too long vanishes, and nobody says so.
        w.boxes[0] = Some(Box::new(move |_, p, _| p.len() <= width));
        let mut e = endpoint("cubic");
        e.tcp.mtu_search = true;
        let (parties, ids) = transfer(&mut w, v6, [&e, &e], 20 * MB, 0, |_, _, _| {});
        check(&w, &parties, ids);
        let c = w.hosts[0].conn(ids[0]).unwrap();
        let found = c.tcp().sender().segment_size();
        // The search stops when the bounds are 8 bytes apart or less.
        let longest = (width - headers) as u32;
        assert!(found <= longest && found + 8 > longest, "{found} of {longest} bytes");
        // A lost probe of the size says nothing about congestion (RFC 4821 §7.5): it is repaired, and slow start goes on.
        assert_eq!(c.counters().timeouts, 0);
        assert!(c.counters().recoveries > 0 && c.snapshot().ssthresh == f64::INFINITY, "{:?}", c.snapshot());
    }
}

/// iperf#72, #613, #725: intervals in which nothing happens, and those that are cut short, have numbers like others.
#[test]
fn idle_intervals_have_zeros() {
    let mut w = World::new(Instant::ZERO, false, Weather::calm(ms(10)));
    let e = endpoint("cubic");
    w.hosts[1].listen(80, e.clone()).unwrap();
    let id = w.open(false, 80, &e);
    let mut meter = Meter::new(false, ms(1000));
    let mut party = Party::new(50_000);
    while w.now < Instant::ZERO + ms(22_500) {
        // Nothing is written before 20 s, and then no more than the window of a peer that does not read.
        if w.now >= Instant::ZERO + ms(20_000) {
            party.turn(w.now, &mut w.hosts[0], id);
            w.flush();
        }
        if let Some(c) = w.hosts[0].conn(id).filter(|c| c.is_connected()) {
            meter.begin(Instant::ZERO);
            meter.turn(w.now, c);
        }
        w.step_by(w.now + ms(50));
    }
    meter.finish(w.now, w.hosts[0].conn(id).unwrap());
    // A second end in the same instant adds no interval without length.
    meter.finish(w.now, w.hosts[0].conn(id).unwrap());
    let all = meter.intervals();
    let lengths: Vec<_> = all.iter().map(|i| i.to - i.from).collect();
    assert_eq!((all.len(), lengths[21], lengths[22]), (23, ms(1000), w.now - Instant::ZERO - ms(22_000)));
    assert!(all[..20].iter().all(|i| (i.bytes, i.retransmissions, i.goodput()) == (0, 0, 0.0)), "{all:?}");
    assert!(all.iter().all(|i| i.goodput().is_finite()));
    assert_eq!(all.iter().map(|i| i.bytes).sum::<u64>(), 50_000);
}
