//! The TCP stack under the gateway: data in SYNs, path MTUs, errors of routers, and packets that it leaves to others.

use super::bed::{Bed, CLIENT, FAR, Link, NEAR, Noise, Running, SERVER, SWALLOWED};
use super::{PORT, calm, echo, exchange, listen, many, server};
use skyhaul_base::Duration;
use skyhaul_testkit::need;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::Ordering;

/// Waits until a counter has a value.
fn until(gateway: &Running, key: &str, value: u64) {
    for _ in 0..3000 {
        if gateway.count(key) == value {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(gateway.count(key), value, "{key}");
}

/// A client sends a request and reads an answer. An empty request: the server speaks first.
fn asks(bed: &Bed, listener: &TcpListener, request: usize, answer: usize) {
    let serve = || {
        let (mut s, _) = listener.accept().expect("accepts");
        let mut all = vec![0; request];
        s.read_exact(&mut all).expect("reads");
        assert!(all.iter().all(|b| *b == 1), "what was sent");
        s.write_all(&vec![7; answer]).expect("writes");
        assert_eq!(s.read(&mut [0]).expect("an end"), 0, "once");
    };
    let ask = || {
        let mut s = TcpStream::connect(server()).expect("connects");
        s.write_all(&vec![1; request]).expect("writes");
        s.read_exact(&mut vec![0; answer]).expect("reads");
    };
    std::thread::scope(|s| {
        s.spawn(serve);
        bed.spaces[CLIENT].within(ask).expect("enters")
    });
}

/// The stack's own tests `hosts::early` show in virtual time how many round trips this saves.
pub(super) fn first_data_travels_with_the_syn() {
    // The RTT is far shorter than the retransmission timeout of a SYN, so that even a busy machine repeats none.
    let Some(bed) = Bed::new("early", calm()) else { return };
    let waits = "early-data = \"100 ms\"\n";
    let (near, far) = (bed.gateway(NEAR, waits), bed.gateway(FAR, waits));
    let listener = listen(&bed, server());
    // On a busy machine, the first bytes of a client may come too late for its SYN.
    let asks_early = |listener: &TcpListener, request: usize| {
        let before = near.count("early-sent");
        let leaves = (0..50).any(|_| {
            asks(&bed, listener, request, 1000);
            near.count("early-sent") > before
        });
        assert!(leaves, "{request} bytes never leave with a SYN");
    };
    // The gateways do not know each other before the first connection.
    asks(&bed, &listener, 300, 1000);
    assert_eq!((near.count("early-sent"), far.count("early-received")), (0, 0));
    asks_early(&listener, 300);
    until(&near, "early-taken", 1);
    assert_eq!((near.count("early-sent"), far.count("early-received")), (1, 1));
    // A server that speaks first does not wait for a client that sends nothing.
    asks(&bed, &listener, 0, 1000);
    assert_eq!((near.count("early-sent"), far.count("early-received")), (1, 1));
    // More than a SYN carries.
    asks_early(&listener, 5000);
    until(&near, "early-taken", 2);
    assert_eq!((near.count("early-sent"), far.count("early-received")), (2, 2));
    // A refusal is a reset before a byte, whatever was sent with the SYN.
    drop(listener);
    let refused = bed.spaces[CLIENT].within(|| {
        let mut s = TcpStream::connect(server())?;
        s.write_all(b"a request")?;
        s.read(&mut [0; 8])
    });
    assert_eq!(refused.expect("enters").expect_err("nobody is there").kind(), ErrorKind::ConnectionReset);
    // A gateway that was started again takes no data from the SYN: the data arrives in a later segment, once.
    let listener = listen(&bed, server());
    far.kill();
    let far = bed.gateway(FAR, waits);
    asks(&bed, &listener, 300, 1000);
    assert_eq!((far.count("from-link"), far.count("early-received")), (1, 0));
    asks_early(&listener, 300);
    until(&far, "early-received", 1);
}

pub(super) fn early_data_survives_a_rough_link() {
    let noise = Noise { duplicate: 0.05, reorder: 0.05, ..Noise::default() };
    let rough = Link { delay: Duration::from_millis(10), loss: 0.05, noise, ..Link::default() };
    let Some(bed) = Bed::new("rough", rough) else { return };
    let (near, far) = (bed.gateway(NEAR, ""), bed.gateway(FAR, ""));
    many(&bed, server(), 1, 1);
    many(&bed, SocketAddr::new(server().ip(), PORT + 1), 150, 3000);
    assert!(near.count("early-taken") > 50 && far.count("early-received") >= near.count("early-taken"));
    assert_eq!((near.count("from-hosts"), near.count("bytes-lost"), far.count("bytes-lost")), (151, 0, 0));
}

pub(super) fn long_packets_are_reported_and_shortened() {
    let narrow = Link { mtu: Some([1200, 1300]), ..calm() };
    let Some(bed) = Bed::new("narrow", narrow) else { return };
    let near = bed.gateway(NEAR, &format!("[split]\nexclude-ports = [{}]\n", PORT + 1));
    let far = bed.gateway(FAR, &format!("[split]\nexclude-ports = [{}]\n", PORT + 1));
    let v6 = |port| SocketAddr::new("fd02::2".parse().expect("an address"), port);
    for to in [server(), v6(PORT)] {
        many(&bed, to, 2, 300_000);
    }
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (4, 4));
    assert!(near.count("paths-narrowed") > 0 && far.count("paths-narrowed") > 0, "routers were heard");
    // ICMP errors about connections that are not split are forwarded to their hosts.
    for to in [SocketAddr::new(server().ip(), PORT + 1), v6(PORT + 1)] {
        many(&bed, to, 2, 300_000);
    }
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (4, 4));
}

pub(super) fn a_black_hole_costs_a_path_one_search() {
    let Some(bed) = Bed::new("hole", Link { hole: Some(1300), ..calm() }) else { return };
    // The rate is so low that a search ends before the transfer does.
    let rate = "rate = \"20 Mbit/s\"\n";
    let (near, far) = (bed.gateway(NEAR, rate), bed.gateway(FAR, rate));
    let swallowed = || SWALLOWED.load(Ordering::Relaxed);
    let mut before = 0;
    for n in 0..3 {
        // The path stays the same with other ports, since the same gateway is at its end.
        let to = SocketAddr::new(server().ip(), PORT + n);
        let serves = echo(listen(&bed, to), 1);
        bed.spaces[CLIENT].within(|| exchange(to, n.into(), 3_000_000)).expect("enters");
        serves.join().expect("serves");
        let now = swallowed();
        assert_eq!(now > before, n == 0, "connection {n}: {} packets were too long", now - before);
        before = now;
    }
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (3, 3));
    assert_eq!((near.count("bytes-lost"), far.count("bytes-lost")), (0, 0));
}

/// Runs `ip` in a namespace; false if it is missing or fails.
fn ip(bed: &Bed, at: usize, line: &str) -> bool {
    let run = || Command::new("ip").args(line.split(' ')).status().is_ok_and(|s| s.success());
    bed.spaces[at].within(run).expect("enters")
}

pub(super) fn routes_limit_segments() {
    let Some(bed) = Bed::new("routes", calm()) else { return };
    let near = bed.gateway(NEAR, "");
    if !ip(&bed, NEAR, "route change 10.2.0.0/24 dev sat0 mtu 1000") {
        need::skip("ip", "it is not installed");
        return;
    }
    let listener = listen(&bed, server());
    let (_client, served) = bed.spaces[CLIENT]
        .within(|| (TcpStream::connect(server()).expect("connects"), listener.accept().expect("accepts").0))
        .expect("enters");
    // The server's segments fit the route, less their timestamps.
    let size = nix::sys::socket::getsockopt(&served, nix::sys::socket::sockopt::TcpMaxSeg).expect("is told");
    assert_eq!(size, 1000 - 40 - 12);
    assert_eq!(near.count("from-hosts"), 1);
}

pub(super) fn unreachable_hosts_are_reported() {
    // The router behind the link reports that the host is unreachable; or a gateway is there, and the router behind it reports that.
    for far_too in [false, true] {
        let Some(bed) = Bed::new("unreachable", calm()) else { return };
        let near = bed.gateway(NEAR, "");
        let far = far_too.then(|| bed.gateway(FAR, ""));
        let router = if far_too { SERVER } else { FAR };
        if !ip(&bed, router, "route add unreachable 10.2.0.66/32") {
            need::skip("ip", "it is not installed");
            return;
        }
        let connect = || {
            let mut s = TcpStream::connect(SocketAddr::from(([10, 2, 0, 66], PORT)))?;
            // 20 s are far less than an attempt to connect lasts without a report.
            s.set_read_timeout(Some(std::time::Duration::from_secs(20)))?;
            s.read(&mut [0; 8])
        };
        let e = bed.spaces[CLIENT].within(connect).expect("enters").expect_err("nobody is there");
        assert!(matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused), "{e}");
        assert_eq!(near.count("refused"), 1);
        drop(far);
    }
}

pub(super) fn other_traffic_passes_untouched() {
    let Some(bed) = Bed::new("other", calm()) else { return };
    let (near, far) = (bed.gateway(NEAR, ""), bed.gateway(FAR, ""));
    let patience = Some(std::time::Duration::from_secs(20));
    for (here, there) in [("10.1.0.2", "10.2.0.2"), ("fd01::2", "fd02::2")] {
        let [here, there] = [here, there].map(|a| a.parse::<IpAddr>().expect("an address"));
        let bind = |at: usize, ip: IpAddr| {
            bed.spaces[at].within(|| UdpSocket::bind((ip, 4000)).expect("binds")).expect("enters")
        };
        let (client, other) = (bind(CLIENT, here), bind(SERVER, there));
        // Datagrams both ways, whole and in fragments.
        for len in [0, 100, 4000, 20_000] {
            for (from, to) in [(&client, &other), (&other, &client)] {
                let data: Vec<u8> = (0..len).map(|n: u32| (n % 251) as u8).collect();
                to.set_read_timeout(patience).expect("sets");
                from.send_to(&data, to.local_addr().expect("bound")).expect("sends");
                let mut got = vec![0; 1 << 16];
                let (n, source) = to.recv_from(&mut got).expect("arrives");
                assert_eq!((&got[..n], source), (&data[..], from.local_addr().expect("bound")));
            }
        }
        // Echo requests and their replies, in fragments too.
        let (domain, protocol, kind) = if here.is_ipv4() {
            (socket2::Domain::IPV4, socket2::Protocol::ICMPV4, 8)
        } else {
            (socket2::Domain::IPV6, socket2::Protocol::ICMPV6, 128)
        };
        for len in [8, 3000] {
            let ping = || {
                let s = socket2::Socket::new(domain, socket2::Type::DGRAM, Some(protocol))?;
                s.set_read_timeout(patience)?;
                s.connect(&SocketAddr::new(there, 0).into())?;
                let mut echo = vec![kind, 0, 0, 0, 0, 0, 0, 1];
                echo.resize(len, 5);
                s.send(&echo)?;
                let mut back = vec![0; 1 << 16];
                let n = (&s).read(&mut back)?;
                Ok::<_, std::io::Error>((n, back[8..n].iter().all(|b| *b == 5)))
            };
            assert_eq!(bed.spaces[CLIENT].within(ping).expect("enters").expect("pings"), (len, true));
        }
    }
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (0, 0));
}
