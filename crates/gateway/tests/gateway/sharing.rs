//! Classes and rates of subscribers at a link that bulk transfers fill.

use crate::bed::{Bed, CLIENT, FAR, Link, NEAR, SERVER};
use skyhaul_base::{Duration, Rate};
use skyhaul_net::Clock;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) const ALL: [(&str, fn()); 1] =
    [("small_flows_and_subscribers_have_their_share", small_flows_and_subscribers_have_their_share)];

/// Ports of servers: one with a class of its own and one without, for small exchanges, and one for bulk.
const SMALL: u16 = 7001;
const PLAIN: u16 = 7002;
const BULK: u16 = 7003;
/// Two clients: the second one is a subscriber with a rate.
const FREE: [u8; 4] = [10, 1, 0, 2];
const LIMITED: [u8; 4] = [10, 1, 0, 3];

fn at(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 2, 0, 2]), port)
}

fn connect(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((from, 0)).into()).expect("binds");
    socket.connect(&to.into()).expect("connects");
    socket.into()
}

/// The median time of 40 small exchanges over one connection.
fn median_latency(port: u16) -> Duration {
    let mut s = connect(FREE, at(port));
    s.set_nodelay(true).expect("sets");
    let mut all: Vec<_> = (0..40)
        .map(|_| {
            let (asked, mut room) = (Clock::now(), [0; 64]);
            s.write_all(&[7; 64]).expect("writes");
            s.read_exact(&mut room).expect("reads");
            Clock::now() - asked
        })
        .collect();
    all.sort();
    all[all.len() / 2]
}

fn small_flows_and_subscribers_have_their_share() {
    let rate = Some((Rate::from_bits_per_sec(10_000_000), 100));
    let Some(bed) = Bed::new("sharing", Link { delay: Duration::from_millis(5), rate, ..Link::default() })
    else {
        return;
    };
    let more = || Command::new("ip").args(["addr", "add", "10.1.0.3/24", "dev", "c0"]).status();
    assert!(bed.spaces[CLIENT].within(more).expect("enters").expect("runs").success());
    let near = bed.gateway(
        NEAR,
        "rate = \"8 Mbit/s\"\n[[class]]\nname = \"small\"\nports = [7001]\nweight = 4\n\
         [[subscriber]]\nnetworks = [\"10.1.0.3\"]\nrate = \"1 Mbit/s\"\n",
    );
    let far = bed.gateway(FAR, "");
    // Bytes that the server has received from each client.
    let received: [AtomicU64; 2] = Default::default();
    let over = AtomicBool::new(false);
    let listen =
        |port| bed.spaces[SERVER].within(|| TcpListener::bind(at(port)).expect("listens")).expect("enters");
    let bulk = listen(BULK);
    let small = [listen(SMALL), listen(PLAIN)];
    let (([with, without], held), ([free, limited], elapsed), (status, metrics)) = std::thread::scope(|s| {
        let (received, over) = (&received, &over);
        for listener in &small {
            s.spawn(move || {
                let (mut stream, _) = listener.accept().expect("accepts");
                stream.set_nodelay(true).expect("sets");
                let mut room = [0; 64];
                while stream.read_exact(&mut room).is_ok() && stream.write_all(&room).is_ok() {}
            });
        }
        s.spawn(move || {
            for _ in 0..24 {
                let (mut stream, client) = bulk.accept().expect("accepts");
                s.spawn(move || {
                    let mut room = vec![0; 1 << 16];
                    let whose = usize::from(client.ip() == IpAddr::from(LIMITED));
                    while let Ok(n @ 1..) = stream.read(&mut room) {
                        received[whose].fetch_add(n as u64, Ordering::Relaxed);
                    }
                });
            }
        });
        let began = Clock::now();
        bed.spaces[CLIENT]
            .within(|| {
                for n in 0..24 {
                    let mut stream = connect(if n < 20 { FREE } else { LIMITED }, at(BULK));
                    stream.set_write_timeout(Some(std::time::Duration::from_millis(200))).expect("sets");
                    s.spawn(move || {
                        while !over.load(Ordering::Relaxed) {
                            let _ = stream.write(&[7; 10_000]);
                        }
                    });
                }
            })
            .expect("enters");
        let both = || {
            std::thread::scope(|t| {
                [SMALL, PLAIN]
                    .map(|port| t.spawn(move || median_latency(port)))
                    .map(|t| t.join().expect("measures"))
            })
        };
        // A thread has the namespace of the thread that starts it.
        let [with, without] = bed.spaces[CLIENT].within(both).expect("enters");
        let held = (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            near.count("held-subscribers") == 1
        });
        let [free, limited] = [0, 1].map(|whose: usize| received[whose].load(Ordering::Relaxed));
        let elapsed = Clock::now() - began;
        over.store(true, Ordering::Relaxed);
        let told = (near.status(), near.ask("metrics"));
        // The end of both gateways closes all connections, so that every thread of the test ends.
        near.kill();
        far.kill();
        (([with, without], held), ([free, limited], elapsed), told)
    });
    eprintln!("sharing: {with:?} beside {without:?}; {free} and {limited} bytes in {elapsed:?}");
    assert!(with * 2 < without, "{with:?} in the class, {without:?} beside it");
    assert!(held, "the subscriber is seen to wait");
    assert!(limited as f64 <= 1e6 / 8.0 * elapsed.as_secs_f64() + 10_000.0, "{limited} bytes in {elapsed:?}");
    assert!(limited > 0 && free > 3 * limited, "{free} and {limited} bytes");
    let class = |n: usize| {
        (status["classes"][n]["name"].clone(), status["classes"][n]["sent"].as_u64().expect("bytes"))
    };
    let ((first, little), (last, much)) = (class(0), class(1));
    assert_eq!((first, last), ("small".into(), "others".into()));
    assert!(little > 0 && much > 10 * little, "{little} and {much}");
    assert!(metrics.contains("skyhaul_gateway_class_sent_bytes_total{gateway=\"near\",class=\"small\"}"));
}
