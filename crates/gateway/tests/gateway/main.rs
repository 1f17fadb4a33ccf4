//! Gateways between namespaces, with the sockets of the kernel as clients and servers.
//!
//! This file has a `main` of its own because it starts itself once more: as a gateway, and as its keeper.

mod accounting;
mod bed;
mod clock;
mod contain;
mod doctor;
mod environment;
mod evidence;
mod firewall;
mod narrow;
mod operations;
mod pair;
mod priority;
mod programs;
mod quic;
mod refusals;
mod repair;
mod replay;
mod several;
mod sharing;
mod stack;
mod surroundings;
mod threads;
mod tunnel;

use bed::{Bed, CLIENT, FAR, Link, NEAR, SERVER};
use sha2::{Digest, Sha256};
use skyhaul_base::Duration;
use skyhaul_gateway::Config;
use skyhaul_gateway::status::Status;
use skyhaul_testkit::need;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if bed::stands_in(&args) || args.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    // For example: cargo test --test gateway -- --threads=2
    if let Some(n) = args.iter().find_map(|a| a.strip_prefix("--threads=")) {
        bed::THREADS.store(n.parse().expect("a number"), Ordering::Relaxed);
    }
    let wanted: Vec<_> = args.iter().filter(|a| !a.starts_with('-')).collect();
    let mut tests: Vec<(&str, fn())> = vec![
        ("streams_arrive_whole", streams_arrive_whole),
        ("ipv6", ipv6),
        ("one_gateway_alone", one_gateway_alone),
        ("half_closes_and_refusals_pass", half_closes_and_refusals_pass),
        ("older_connections_pass_untouched", older_connections_pass_untouched),
        ("a_killed_gateway_is_bypassed", a_killed_gateway_is_bypassed),
        ("without_room_connections_are_forwarded", without_room_connections_are_forwarded),
        ("with_block_nothing_passes_a_dead_gateway", with_block_nothing_passes_a_dead_gateway),
        ("the_class_of_packets_is_kept", the_class_of_packets_is_kept),
        ("windows_are_resumed", windows_are_resumed),
        ("a_reload_keeps_connections", a_reload_keeps_connections),
        ("ports_are_forwarded_without_routes", ports_are_forwarded_without_routes),
        ("first_data_travels_with_the_syn", stack::first_data_travels_with_the_syn),
        ("early_data_survives_a_rough_link", stack::early_data_survives_a_rough_link),
        ("long_packets_are_reported_and_shortened", stack::long_packets_are_reported_and_shortened),
        ("a_black_hole_costs_a_path_one_search", stack::a_black_hole_costs_a_path_one_search),
        ("routes_limit_segments", stack::routes_limit_segments),
        ("unreachable_hosts_are_reported", stack::unreachable_hosts_are_reported),
        ("other_traffic_passes_untouched", stack::other_traffic_passes_untouched),
        ("real_programs_work", programs::real_programs_work),
        ("nothing_is_left_behind", nothing_is_left_behind),
        ("steps_of_the_time_of_day_are_harmless", clock::steps_of_the_time_of_day_are_harmless),
        ("a_panic_ends_one_connection", contain::a_panic_ends_one_connection),
        ("shadow_touches_nothing", evidence::shadow_touches_nothing),
        ("arms_are_those_of_the_kernel", evidence::arms_are_those_of_the_kernel),
        ("a_b_tests_find_what_helps", evidence::a_b_tests_find_what_helps),
        ("equal_arms_stay_undecided", evidence::equal_arms_stay_undecided),
        ("probes_need_a_path_that_honours_priority", priority::probes_need_a_path_that_honours_priority),
        ("without_an_answer_nothing_is_trusted", priority::without_an_answer_nothing_is_trusted),
    ];
    tests.extend(operations::ALL);
    tests.extend(threads::ALL);
    tests.extend(environment::ALL);
    tests.extend(refusals::ALL);
    tests.extend(sharing::ALL);
    tests.extend(pair::ALL);
    tests.extend(doctor::ALL);
    tests.extend(firewall::ALL);
    tests.extend(surroundings::ALL);
    tests.extend(repair::ALL);
    tests.extend(replay::ALL);
    tests.extend(accounting::ALL);
    tests.extend(several::ALL);
    tests.extend(narrow::ALL);
    if let Some(name) = args.iter().find_map(|a| a.strip_prefix("--exact=")) {
        let (_, test) = tests.iter().find(|(n, _)| *n == name).expect("a test of this program");
        need::test(name);
        test();
        return ExitCode::SUCCESS;
    }
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str()));
    let names: Vec<&str> = tests.iter().map(|(n, _)| *n).filter(|n| chosen(n)).collect();
    if side_by_side(&names, &args) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Number of tests that run at a time: each waits most of the time, in namespaces of its own.
const AT_ONCE: usize = 4;

/// Runs each test in a process of its own, and prints which pass, and the output of those that do not.
fn side_by_side(names: &[&str], args: &[String]) -> bool {
    let program = std::env::current_exe().expect("is known");
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let one = |name: &str| {
        let options = args.iter().filter(|a| a.starts_with("--threads="));
        let done =
            Command::new(&program).arg(format!("--exact={name}")).args(options).output().expect("runs");
        if done.status.success() {
            eprintln!("gateway: {name}: passed");
        } else {
            failed.fetch_add(1, Ordering::Relaxed);
            let said = String::from_utf8_lossy(&done.stderr);
            eprintln!("gateway: {name}: FAILED ({})\n{said}", done.status);
        }
    };
    std::thread::scope(|s| {
        for _ in 0..AT_ONCE {
            s.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    one(name);
                }
            });
        }
    });
    let failed = failed.into_inner();
    eprintln!("gateway: {} passed, {failed} failed", names.len() - failed);
    failed == 0
}

/// A short link without losses.
fn calm() -> Link {
    Link { delay: Duration::from_millis(5), ..Link::default() }
}
const PORT: u16 = 7000;

fn server() -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 2, 0, 2]), PORT)
}

/// Random bytes of a seed.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = skyhaul_base::Rng::stream(seed, "bytes");
    (0..len).map(|_| rng.below(256) as u8).collect()
}

fn digest(data: &[u8]) -> Vec<u8> {
    Sha256::digest(data).to_vec()
}

/// A server that reads each connection to its end, and answers with the digest of the data and the data.
fn echo(listener: TcpListener, connections: usize) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let served: Vec<_> = (0..connections)
            .map(|_| {
                let (mut s, _) = listener.accept().expect("accepts");
                std::thread::spawn(move || {
                    let mut data = Vec::new();
                    if s.read_to_end(&mut data).is_ok() {
                        let _ = s.write_all(&digest(&data));
                        let _ = s.write_all(&data);
                    }
                })
            })
            .collect();
        served.into_iter().for_each(|s| s.join().expect("serves"));
    })
}

/// Sends the bytes of a seed to a server of [`echo`], and checks its answer.
fn exchange(to: SocketAddr, seed: u64, len: usize) {
    let mut s = TcpStream::connect(to).expect("connects");
    let data = bytes(seed, len);
    s.write_all(&data).expect("writes");
    s.shutdown(Shutdown::Write).expect("half-closes");
    let mut back = Vec::new();
    s.read_to_end(&mut back).expect("reads");
    assert_eq!(back.len(), 32 + len, "whole");
    assert!(back[..32] == digest(&data)[..] && back[32..] == data[..], "equal");
}

fn listen(bed: &Bed, at: SocketAddr) -> TcpListener {
    bed.spaces[SERVER].within(|| TcpListener::bind(at).expect("listens")).expect("enters")
}

/// This number of connections, eight at a time, each with a length of its own.
fn many(bed: &Bed, to: SocketAddr, connections: usize, longest: usize) {
    let server = echo(listen(bed, to), connections);
    let next = AtomicUsize::new(0);
    bed.spaces[CLIENT]
        .within(|| {
            std::thread::scope(|s| {
                for _ in 0..8 {
                    s.spawn(|| {
                        loop {
                            let n = next.fetch_add(1, Ordering::Relaxed);
                            if n >= connections {
                                return;
                            }
                            exchange(to, n as u64, longest * n / connections);
                        }
                    });
                }
            });
        })
        .expect("enters");
    server.join().expect("serves");
}

fn streams_arrive_whole() {
    let rough = Link { delay: Duration::from_millis(10), loss: 0.01, ..Link::default() };
    let Some(bed) = Bed::new("streams", rough) else { return };
    let near = bed.gateway(NEAR, "");
    let far = bed.gateway(FAR, "rate = \"50 Mbit/s\"");
    many(&bed, server(), 60, 400_000);
    for (gateway, key) in [(&near, "from-hosts"), (&far, "from-link")] {
        assert_eq!(gateway.count(key), 60);
        // The last acknowledgement of a connection may still be on its way.
        while gateway.count("flows") > 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!((gateway.count("finished"), gateway.count("aborted")), (60, 0));
        assert_eq!(gateway.count("bytes-lost"), 0);
    }
    assert_eq!(near.count("bytes-to-link"), far.count("bytes-to-hosts"));
    // The counters by network behind the link agree.
    for (gateway, prefix) in [(&near, "10.2.0.0/24"), (&far, "10.1.0.0/24")] {
        let status: Status = serde_json::from_str(&gateway.ask("status")).expect("JSON");
        let [p] = &status.prefixes[..] else { panic!("{:?}", status.prefixes) };
        assert_eq!((p.prefix.as_str(), p.connections, p.flows), (prefix, 60, 0));
        assert_eq!((p.to_link, p.to_hosts), (status.counts.bytes_to_link, status.counts.bytes_to_hosts));
        assert!(p.srtt >= 0.02 && p.goodput_to_link > 0.0 && p.goodput_to_hosts > 0.0, "{p:?}");
        // The link loses one packet in a hundred in each direction.
        assert!(0 < p.retransmitted && p.loss < 0.1 && p.segments > 1000, "{p:?}");
        let line = format!(
            "skyhaul_gateway_prefix_retransmitted_total{{gateway=\"{}\",prefix=\"{prefix}\"}} {}",
            status.name, p.retransmitted
        );
        assert!(gateway.ask("metrics").contains(&line), "{line}");
    }
    near.stop();
    far.stop();
}

fn ipv6() {
    let Some(bed) = Bed::new("ipv6", calm()) else { return };
    let (near, far) = (bed.gateway(NEAR, ""), bed.gateway(FAR, ""));
    many(&bed, SocketAddr::new("fd02::2".parse().expect("an address"), PORT), 10, 100_000);
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (10, 10));
}

fn one_gateway_alone() {
    let Some(bed) = Bed::new("alone", calm()) else { return };
    for (at, key) in [(NEAR, "from-hosts"), (FAR, "from-link")] {
        let gateway = bed.gateway(at, "");
        many(&bed, server(), 10, 100_000);
        assert_eq!(gateway.count(key), 10);
        gateway.stop();
    }
}

fn half_closes_and_refusals_pass() {
    let Some(bed) = Bed::new("ends", calm()) else { return };
    let (near, far) = (bed.gateway(NEAR, ""), bed.gateway(FAR, ""));
    // Nobody listens there: the client gets a reset, and no byte.
    let refused = bed.spaces[CLIENT].within(|| {
        let mut s = TcpStream::connect(server())?;
        s.read(&mut [0; 8])
    });
    let e = refused.expect("enters").expect_err("nobody is there");
    assert!(matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused), "{e}");
    // The server sends a banner and half-closes; the client goes on.
    let listener = listen(&bed, server());
    let serves = std::thread::spawn(move || {
        let (mut s, peer) = listener.accept().expect("accepts");
        assert_eq!(peer.ip(), IpAddr::from([10, 1, 0, 2]), "the server sees the client's address");
        s.write_all(b"welcome").expect("writes");
        s.shutdown(Shutdown::Write).expect("half-closes");
        let mut rest = Vec::new();
        s.read_to_end(&mut rest).expect("reads");
        // An abort by the client reaches the server as an abort.
        let (mut s, _) = listener.accept().expect("accepts");
        let mut first = [0; 5];
        s.read_exact(&mut first).expect("reads");
        let e = s.read(&mut [0; 8]).expect_err("the client has given up");
        (rest, e.kind())
    });
    let client = || {
        let mut s = TcpStream::connect(server()).expect("connects");
        let mut banner = Vec::new();
        s.read_to_end(&mut banner).expect("reads");
        assert_eq!(banner, b"welcome");
        s.write_all(b"still here").expect("writes");
        drop(s);
        let mut s = TcpStream::connect(server()).expect("connects");
        s.write_all(b"hello").expect("writes");
        // The data must have passed before the abort, which discards it otherwise.
        while far.count("bytes-to-hosts") + far.count("flows") == 0 {}
        std::thread::sleep(std::time::Duration::from_millis(300));
        socket2::SockRef::from(&s).set_linger(Some(std::time::Duration::ZERO)).expect("lingers");
    };
    bed.spaces[CLIENT].within(client).expect("enters");
    assert_eq!(serves.join().expect("serves"), (b"still here".to_vec(), ErrorKind::ConnectionReset));
    assert!(near.count("refused") > 0 && near.count("aborted") > 0);
}

/// A connection to a server of [`echo`] that begins before an event and ends after it.
struct Lasting {
    client: TcpStream,
    serves: std::thread::JoinHandle<()>,
}

impl Lasting {
    fn begin(bed: &Bed) -> Self {
        let serves = echo(listen(bed, server()), 1);
        let connect = || TcpStream::connect(server()).expect("connects");
        let mut client = bed.spaces[CLIENT].within(connect).expect("enters");
        client.write_all(b"before").expect("writes");
        Self { client, serves }
    }
    fn end(mut self) {
        self.client.write_all(b" and after").expect("writes");
        self.client.shutdown(Shutdown::Write).expect("half-closes");
        let mut back = Vec::new();
        self.client.read_to_end(&mut back).expect("reads");
        assert_eq!(&back[32..], b"before and after");
        self.serves.join().expect("serves");
    }
}

fn older_connections_pass_untouched() {
    let Some(bed) = Bed::new("older", calm()) else { return };
    let old = Lasting::begin(&bed);
    let (near, far) = (bed.gateway(NEAR, ""), bed.gateway(FAR, ""));
    old.end();
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (0, 0));
}

fn a_killed_gateway_is_bypassed() {
    for victim in [NEAR, FAR] {
        let Some(bed) = Bed::new("killed", calm()) else { return };
        let (near, far) = (bed.gateway(NEAR, ""), bed.gateway(FAR, ""));
        let listener = listen(&bed, server());
        let again = listener.try_clone().expect("clones");
        // A download that never ends.
        std::thread::spawn(move || {
            let (mut s, _) = listener.accept().expect("accepts");
            while s.write_all(&[7; 4096]).is_ok() {}
        });
        let mut s =
            bed.spaces[CLIENT].within(|| TcpStream::connect(server()).expect("connects")).expect("enters");
        s.read_exact(&mut [0; 100_000]).expect("reads");
        let (dead, other) = if victim == NEAR { (near, far) } else { (far, near) };
        dead.kill();
        if victim == NEAR {
            let mut rest = Vec::new();
            let e = s.read_to_end(&mut rest).expect_err("cut short is no end of file");
            assert_eq!(e.kind(), ErrorKind::ConnectionReset, "{e}");
        }
        // New connections work at once, whichever gateway is left.
        let serves = echo(again, 5);
        let work = || (0..5).for_each(|n| exchange(server(), n, 50_000));
        bed.spaces[CLIENT].within(work).expect("enters");
        serves.join().expect("serves");
        // The keeper removes everything.
        while bed.traces(victim).contains("skyhaul") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        drop(s);
        other.stop();
    }
}

fn without_room_connections_are_forwarded() {
    let Some(bed) = Bed::new("room", calm()) else { return };
    let near = bed.gateway(NEAR, "[limits]\nflows = 4\n");
    let listener = listen(&bed, server());
    let hold = std::thread::spawn(move || {
        (0..12).map(|_| listener.accept().expect("accepts").0).collect::<Vec<_>>()
    });
    let connect =
        |n: usize| (0..n).map(|_| TcpStream::connect(server()).expect("connects")).collect::<Vec<_>>();
    let admits = |whether: bool| near.ask("status").contains(&format!("\"admits\":{whether}"));
    let clients = bed.spaces[CLIENT].within(|| {
        let first = connect(4);
        while admits(true) {}
        (first, connect(8))
    });
    // All connections are open, four of them through the gateway.
    let served = hold.join().expect("serves");
    assert_eq!((near.count("from-hosts"), near.count("overloads")), (4, 1));
    // With room again it splits again.
    drop((clients, served));
    while admits(false) {}
    many(&bed, SocketAddr::new(server().ip(), PORT + 1), 1, 1000);
    assert_eq!(near.count("from-hosts"), 5);
}

fn with_block_nothing_passes_a_dead_gateway() {
    for at in [NEAR, FAR] {
        let Some(bed) = Bed::new("block", calm()) else { return };
        let block = |bed: &Bed| bed.gateway_of(at, "", "", "on-failure = \"block\"\n");
        let gateway = block(&bed);
        many(&bed, server(), 1, 1000);
        gateway.kill();
        let listener = listen(&bed, server());
        let patience = std::time::Duration::from_millis(1500);
        let connect = || TcpStream::connect_timeout(&server(), patience).is_ok();
        assert!(!bed.spaces[CLIENT].within(connect).expect("enters"), "nobody takes it");
        drop(listener);
        // When the gateway runs again, connections pass; after its orderly end, they are forwarded.
        let gateway = block(&bed);
        many(&bed, server(), 1, 1000);
        gateway.stop();
        many(&bed, server(), 1, 1000);
    }
}

fn the_class_of_packets_is_kept() {
    let Some(bed) = Bed::new("class", calm()) else { return };
    let (near, far) = (bed.gateway(NEAR, ""), bed.gateway(FAR, ""));
    // With this setting, the server's socket has the class of the SYN, from which the test learns it.
    if bed.spaces[SERVER].sysctl("net/ipv4/tcp_reflect_tos", "1").is_err() {
        need::skip("tcp_reflect_tos", "this kernel does not tell the class of a SYN");
        return;
    }
    let listener = listen(&bed, server());
    // AF11 and EF (RFC 2597, RFC 3246); the class of our probes is for probes alone (RFC 8622).
    for (class, expected) in [(10 << 2, 10 << 2), (46 << 2, 46 << 2), (1 << 2, 0)] {
        let connect = || {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
            socket.set_tos_v4(class)?;
            socket.connect(&server().into())?;
            Ok::<_, std::io::Error>(socket)
        };
        let client = bed.spaces[CLIENT].within(connect).expect("enters").expect("connects");
        let (served, _) = listener.accept().expect("accepts");
        assert_eq!(socket2::SockRef::from(&served).tos_v4().expect("is told"), expected);
        drop(client);
    }
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (3, 3));
}

fn windows_are_resumed() {
    let Some(bed) = Bed::new("resume", Link { delay: Duration::from_millis(25), ..Link::default() }) else {
        return;
    };
    let more = "rate = \"100 Mbit/s\"\n";
    let (near, far) = (bed.gateway(NEAR, more), bed.gateway(FAR, more));
    many(&bed, server(), 1, 1);
    assert_eq!((near.count("peers"), far.count("peers")), (1, 1), "they know each other");
    let listener = listen(&bed, server());
    let serves = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut s, _) = listener.accept().expect("accepts");
            s.write_all(&vec![7; 4_000_000]).expect("writes");
        }
    });
    let download = || {
        let mut all = Vec::new();
        TcpStream::connect(server()).and_then(|mut s| s.read_to_end(&mut all)).expect("reads");
        assert_eq!(all.len(), 4_000_000);
    };
    bed.spaces[CLIENT].within(download).expect("enters");
    assert_eq!(far.count("resumed"), 0, "nothing was known before");
    bed.spaces[CLIENT].within(download).expect("enters");
    serves.join().expect("serves");
    assert_eq!(far.count("resumed"), 1);
    // The near gateway has sent only requests, and has learnt nothing.
    assert_eq!(near.count("resumed"), 0);
}

fn a_reload_keeps_connections() {
    let Some(bed) = Bed::new("reload", calm()) else { return };
    let (near, _far) = (bed.gateway(NEAR, "[limits]\nflows = 70\n"), bed.gateway(FAR, ""));
    let file = bed.folder.join("near.toml");
    let first = std::fs::read_to_string(&file).expect("is there");
    let old = Lasting::begin(&bed);
    // The kernel has accepted the connection; the gateway may not have yet.
    while near.count("from-hosts") < 1 {}
    // A file that cannot be read, or with a key that cannot change, changes nothing.
    for (text, says) in [
        ("nonsense".to_owned(), "near.toml: "),
        (first.clone() + "[split]\nports = [70000]\n", "split.ports"),
        (first.replace("flows = 70", "flows = 7"), "limits.flows: it cannot change while the gateway runs"),
    ] {
        std::fs::write(&file, text).expect("writes");
        let said = near.ask("reload");
        assert!(said.contains(says) && !said.contains("reloaded"), "{said}");
    }
    let other = |port: u16| many(&bed, SocketAddr::new(server().ip(), port), 1, 1000);
    other(PORT + 1);
    assert_eq!(near.count("from-hosts"), 2);
    // From now on connections to one port are forwarded, those to others are split, and the old one goes on.
    std::fs::write(&file, format!("{first}[split]\nexclude-ports = [{}]\n", PORT + 1)).expect("writes");
    assert_eq!(near.ask("reload"), "reloaded\n");
    other(PORT + 1);
    assert_eq!(near.count("from-hosts"), 2);
    other(PORT + 2);
    assert_eq!(near.count("from-hosts"), 3);
    old.end();
}

fn ports_are_forwarded_without_routes() {
    let Some(bed) = Bed::new("ports", Link { loss: 0.005, ..calm() }) else { return };
    // Forwarding is off on both machines.
    for at in [NEAR, FAR] {
        for key in ["net/ipv4/ip_forward", "net/ipv4/conf/sat0/forwarding"] {
            bed.spaces[at].sysctl(key, "0").expect("sets");
        }
    }
    let forwards = |at: usize| {
        let read = || std::fs::read_to_string("/proc/sys/net/ipv4/conf/sat0/forwarding").expect("reads");
        bed.spaces[at].within(read).expect("enters").trim() == "1"
    };
    let before = [NEAR, FAR].map(|at| bed.traces(at));
    let here = SocketAddr::from(([127, 0, 0, 1], 8080));
    let file = |to: &str| {
        format!("[satellite]\ninterface = \"sat0\"\n[[forward]]\nlisten = \"{here}\"\nto = \"{to}\"\n")
    };
    let near = bed.gateway_for(NEAR, &file("10.9.0.2:9000"));
    let far = bed.gateway_for(
        FAR,
        "[satellite]\ninterface = \"sat0\"\n[[publish]]\nport = 9000\nto = \"127.0.0.1:9001\"\n",
    );
    assert!(forwards(NEAR) && forwards(FAR));
    // Nobody listens: the client gets a reset, and no byte.
    let refused = bed.spaces[NEAR].within(|| TcpStream::connect(here)?.read(&mut [0; 8]));
    assert_eq!(refused.expect("enters").expect_err("nobody is there").kind(), ErrorKind::ConnectionReset);
    let listener =
        bed.spaces[FAR].within(|| TcpListener::bind("127.0.0.1:9001").expect("listens")).expect("enters");
    let server = echo(listener, 20);
    let exchanges = || {
        std::thread::scope(|s| {
            for n in 0..20 {
                s.spawn(move || exchange(here, n, 10_000 * n as usize));
            }
        });
    };
    bed.spaces[NEAR].within(exchanges).expect("enters");
    server.join().expect("serves");
    for (gateway, key) in [(&near, "from-hosts"), (&far, "from-link")] {
        assert_eq!(gateway.count(key), 21);
        assert_eq!(gateway.count("peers"), 1, "each knows the other");
    }
    // The address of the gateway's host is for connections of these ports alone, and nothing else is forwarded.
    let sat: IpAddr = [10, 9, 0, 1].into();
    bed.spaces[FAR].route(([192, 0, 0, 5].into(), 32), "sat0", Some(sat)).expect("a route");
    let connect = |to: SocketAddr| {
        let try_it = || TcpStream::connect_timeout(&to, std::time::Duration::from_millis(400));
        bed.spaces[FAR].within(try_it).expect("enters").map(|_| ())
    };
    for to in [([192, 0, 0, 5], 8080), ([10, 1, 0, 2], PORT)] {
        assert!(connect(to.into()).is_err());
    }
    near.stop();
    far.kill();
    // The keeper of the killed gateway removes everything.
    for _ in 0..500 {
        if !forwards(FAR) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(!forwards(NEAR) && !forwards(FAR), "as it was before");
    assert_eq!([NEAR, FAR].map(|at| bed.traces(at)), before);
    // A port that leads back to this machine is refused.
    let path = bed.folder.join("loop.toml");
    std::fs::write(&path, file("10.9.0.1:8080")).expect("writes");
    let config = Config::read(&path).expect("is good");
    let run = || skyhaul_gateway::run(&config, &bed::environment(&path, &bed.folder), &mut bed::Ready);
    let e = bed.spaces[NEAR].within(run).expect("enters").expect_err("leads back").to_string();
    assert_eq!(
        e,
        "forward: 10.9.0.1:8080 is an address of this machine: write that of a server behind the link"
    );
}

fn nothing_is_left_behind() {
    let Some(bed) = Bed::new("behind", calm()) else { return };
    let before = bed.traces(NEAR);
    let near = bed.gateway(NEAR, "");
    assert!(bed.traces(NEAR).contains("inet skyhaul_near"));
    // Another one of the same name is refused and changes nothing.
    let file = bed.folder.join("near.toml");
    let second = bed.spaces[NEAR].within(|| {
        let config = Config::read(&file).expect("is good");
        skyhaul_gateway::run(&config, &bed::environment(&file, &bed.folder), &mut bed::Ready).map(|_| ())
    });
    let e = second.expect("enters").expect_err("runs already").to_string();
    assert!(e.contains("runs already (process "), "{e}");
    assert!(bed.traces(NEAR).contains("inet skyhaul_near"));
    near.stop();
    assert_eq!(bed.traces(NEAR), before);
    assert!(
        std::fs::read_dir(&bed.folder)
            .expect("is there")
            .all(|f| { f.expect("an entry").path().extension().is_some_and(|e| e == "toml") })
    );
}
