//! The host against the kernel's TCP, over TUN, in network namespaces of the tests' own.
#![cfg(target_os = "linux")]

mod common;
mod kernel_side;

use common::{Weather, hash_of};
use kernel_side::{Exchange, Place, endpoint, kernel_party, marked, open, run, space};
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::ProbeSupport;
use skyhaul_net::app::{App, AppStatus, Bulk, Http, Iperf, Limit, Serve, Sink};
use skyhaul_net::driver::Driver;
use skyhaul_net::host::{Failure, Host, HostConfig, Secret};
use skyhaul_net::{Clock, NetError};
use skyhaul_testkit::{need, tshark};
use skyhaul_wire::Profile;
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

const MB: u64 = 1_000_000;

#[test]
fn a_hundred_megabytes_each_way_between_us_and_the_kernel() {
    let Some(ns) = space() else { return };
    // As single packets, and as super-packets that the kernel takes and gives whole.
    for (v6, cc, offload) in
        [(false, "cubic", false), (true, "peach", false), (false, "peach", true), (true, "cubic", true)]
    {
        let place = Place { offload, ..Place::new(v6) };
        let mut driver = place.driver(&ns);
        let listener = ns.within(|| TcpListener::bind((place.kernel, 0)).unwrap()).unwrap();
        let port = listener.local_addr().unwrap().port();
        let kernel = std::thread::spawn(move || kernel_party(listener.accept().unwrap().0, 100 * MB));
        let id = open(&mut driver, &place, port, &endpoint(cc));
        let mut app = Exchange::new(100 * MB, 1);
        app.meddle = Some(Box::new(move |_, host, this| {
            assert_eq!(this, id);
            // The kernel knows nothing of probes: none is sent.
            let c = host.conn(id).unwrap();
            assert_eq!((c.peer_capability(), c.counters().probes_sent), (None, 0));
        }));
        run(&mut driver, &mut app);
        let ours = app.ended.pop().unwrap();
        assert_eq!((ours.received, ours.hash(), ours.failure), (100 * MB, hash_of(100 * MB), None));
        assert_eq!(kernel.join().unwrap(), (100 * MB, hash_of(100 * MB)));
        assert!(app.replayed > 10_000, "the simulator's endpoint said the same {} times", app.replayed);
        assert_eq!(driver.host().counts().unwritable, 0);
    }
}

/// Packets on their way through bad weather.
struct Storm {
    flying: BTreeMap<(Instant, u64), Vec<u8>>,
    rng: Rng,
    count: u64,
}

impl Storm {
    fn new(name: &str) -> Self {
        Self { flying: BTreeMap::new(), rng: Rng::stream(4, name), count: 0 }
    }
    /// Takes a packet; loses, duplicates, delays or corrupts some.
    fn take(&mut self, now: Instant, packet: &[u8]) {
        let w = Weather::stormy(Duration::from_millis(2));
        let draws: Vec<f64> = (0..5).map(|_| self.rng.unit()).collect();
        if draws[0] < w.loss {
            return;
        }
        let mut p = packet.to_vec();
        if draws[1] < w.corrupt {
            let at = (draws[4] * p.len() as f64) as usize;
            p[at] ^= 1 << (self.count % 8);
        }
        let late = if draws[2] < w.reorder { 1.0 + draws[4] } else { 1.0 };
        let copies = if draws[3] < w.duplicate { 2 } else { 1 };
        for n in 0..copies {
            self.count += 1;
            self.flying.insert((now + w.delay.mul_f64(late + f64::from(n)), self.count), p.clone());
        }
    }
    /// The packets that have come through by now.
    fn give(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let later = self.flying.split_off(&(now + Duration::from_nanos(1), 0));
        std::mem::replace(&mut self.flying, later).into_values().collect()
    }
}

#[test]
fn loss_duplication_reordering_and_corruption_between_us_and_the_kernel_change_no_byte() {
    let Some(ns) = space() else { return };
    for (v6, we_open) in [(false, true), (true, false)] {
        let place = Place::new(v6);
        let (tun, mut host) = (place.tun(&ns), place.host());
        let bytes = 5 * MB;
        let kernel = if we_open {
            let listener = ns.within(|| TcpListener::bind((place.kernel, 0)).unwrap()).unwrap();
            let to = place.out(listener.local_addr().unwrap().port());
            host.connect(Clock::now(), to.0, to.1, &endpoint("cubic")).unwrap();
            std::thread::spawn(move || kernel_party(listener.accept().unwrap().0, bytes))
        } else {
            host.listen(8080, endpoint("cubic")).unwrap();
            let space = ns.clone();
            std::thread::spawn(move || {
                kernel_party(space.within(|| TcpStream::connect((place.ours, 8080)).unwrap()).unwrap(), bytes)
            })
        };
        let mut app = Exchange::new(bytes, 1);
        let (mut to_us, mut to_kernel) = (Storm::new("in"), Storm::new("out"));
        let mut buf = vec![0; 1 << 16];
        loop {
            let now = Clock::now();
            while let Some(n) = tun.read(&mut buf).unwrap() {
                to_us.take(now, &buf[..n]);
            }
            let mut out = |p: &[u8]| to_kernel.take(now, p);
            for p in to_us.give(now) {
                host.arrive(now, &p, &mut out);
            }
            host.handle_timeout(now, &mut out);
            let done = app.turn(now, &mut host) == AppStatus::Done;
            host.flush(now, &mut out);
            for p in to_kernel.give(now) {
                tun.write(&p).unwrap();
            }
            if done && kernel.is_finished() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        let ours = app.ended.pop().unwrap();
        assert_eq!((ours.received, ours.hash(), ours.failure), (bytes, hash_of(bytes), None));
        assert_eq!(kernel.join().unwrap(), (bytes, hash_of(bytes)));
        assert!(host.counts().refusals.total() > 0, "damaged packets were refused");
        assert!(app.replayed > 1000);
    }
}

#[test]
fn sequence_numbers_wrap_on_the_way_to_the_kernel() {
    let Some(ns) = space() else { return };
    let place = Place::new(false);
    let tun = place.tun(&ns);
    let listener = ns.within(|| TcpListener::bind((place.kernel, 0)).unwrap()).unwrap();
    let ends = place.out(listener.local_addr().unwrap().port());
    // Keys until one makes the connection begin less than 50 MB below the wrap.
    let host = (0..).find_map(|n: u64| {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&n.to_be_bytes());
        let config = HostConfig { secret: Secret::fixed(key), record: true, ..place.host().config().clone() };
        let mut host = Host::new(config);
        let id = host.connect(Clock::now(), ends.0, ends.1, &endpoint("cubic")).unwrap();
        let first = host.conn(id).unwrap().tcp().acknowledged();
        (first.0 > u32::MAX - 50_000_000).then_some(host)
    });
    let mut driver = Driver::new(tun, host.unwrap()).unwrap();
    let kernel = std::thread::spawn(move || kernel_party(listener.accept().unwrap().0, MB));
    let mut app = Exchange::new(100 * MB, 1);
    run(&mut driver, &mut app);
    assert_eq!(kernel.join().unwrap(), (100 * MB, hash_of(100 * MB)));
    assert_eq!(app.ended[0].hash(), hash_of(MB));
}

#[test]
fn a_kernel_client_is_served_and_many_at_once() {
    let Some(ns) = space() else { return };
    for (v6, clients, bytes) in [(false, 1000, 20_000), (true, 3, 10 * MB)] {
        let place = Place::new(v6);
        let mut driver = place.driver(&ns);
        driver.host_mut().listen(8080, endpoint("newreno")).unwrap();
        let space = ns.clone();
        let kernel = std::thread::spawn(move || {
            space.within(|| {
                let streams: Vec<_> =
                    (0..clients).map(|_| TcpStream::connect((place.ours, 8080)).unwrap()).collect();
                let busy: Vec<_> = streams
                    .into_iter()
                    .map(|s| {
                        std::thread::Builder::new()
                            .stack_size(1 << 18)
                            .spawn(move || kernel_party(s, bytes))
                            .unwrap()
                    })
                    .collect();
                busy.into_iter().map(|t| t.join().unwrap()).collect::<Vec<_>>()
            })
        });
        let mut app = Exchange::new(bytes / 2, clients);
        run(&mut driver, &mut app);
        let theirs = kernel.join().unwrap().unwrap();
        assert!(theirs.iter().all(|(n, h)| (*n, h) == (bytes / 2, &hash_of(bytes / 2))));
        assert!(app.ended.iter().all(|p| p.failure.is_none() && p.hash() == hash_of(bytes)));
    }
}

/// Runs a program in the namespace while the application serves it.
fn client(ns: &skyhaul_net::Namespace, program: &str, args: &[&str]) -> JoinHandle<Output> {
    let child = ns.within(|| {
        Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    });
    let child = child.unwrap().unwrap();
    std::thread::spawn(move || child.wait_with_output().unwrap())
}

#[test]
fn curl_fetches_and_sends() {
    let Some(ns) = space() else { return };
    if !need::program("curl") {
        return;
    }
    let place = Place::new(false);
    let file = std::env::temp_dir().join(format!("skyhaul-curl-{}", std::process::id()));
    std::fs::write(&file, vec![b'x'; 3_000_000]).unwrap();
    let to = file.to_str().unwrap();
    for (args, expected) in [
        (vec!["http://10.84.0.2/5000000"], 5_000_000),
        // Two requests over one connection.
        (vec!["http://10.84.0.2/1000", "http://10.84.0.2/2000"], 3000),
        (vec!["-T", to, "http://10.84.0.2/anything"], "3000000 bytes received\n".len()),
        (vec!["http://10.84.0.2/nothing"], "ask for /BYTES, such as /1000000\n".len()),
        (vec!["-X", "BREW", "http://10.84.0.2/1"], "405 Method Not Allowed\n".len()),
    ] {
        let mut driver = place.driver(&ns);
        driver.host_mut().listen(80, endpoint("cubic")).unwrap();
        let curl = client(&ns, "curl", &[&["-s", "-S"], &args[..]].concat());
        let mut app = Serve::new(|_| Http::default(), Duration::from_secs(1), Some(1));
        run(&mut driver, &mut app);
        let out = curl.join().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(out.stdout.len(), expected, "{args:?}");
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn an_iperf3_client_measures_with_our_receiver_and_our_sender() {
    let Some(ns) = space() else { return };
    if !need::program("iperf3") {
        return;
    }
    let place = Place::new(false);
    for (extra, reverse, streams) in [
        (&["-n", "20M"][..], false, 1),
        (&["-n", "20M", "-P", "4"], false, 4),
        (&["-n", "20M", "-R"], true, 1),
        (&["-t", "1", "-R", "-P", "3"], true, 3),
    ] {
        let mut driver = place.driver(&ns);
        driver.host_mut().listen(5201, endpoint("cubic")).unwrap();
        let iperf = client(&ns, "iperf3", &[&["-c", "10.84.0.2", "-J"], extra].concat());
        let mut app = Iperf::new("cubic".into(), Duration::from_secs(1), Some(1));
        run(&mut driver, &mut app);
        let out = iperf.join().unwrap();
        assert!(out.status.success(), "{extra:?}: {}", String::from_utf8_lossy(&out.stdout));
        let v: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let end = &v["end"];
        assert_eq!(end["streams"].as_array().unwrap().len(), streams);
        let (sent, received) = (end["sum_sent"]["bytes"].as_u64(), end["sum_received"]["bytes"].as_u64());
        let tested = app.take_tested().pop().expect("a test");
        assert_eq!((tested.in_order, tested.connections.len()), (true, streams));
        assert!(tested.connections.iter().all(|c| c.sends == reverse));
        let ours: u64 = tested.connections.iter().map(|c| c.meter.sum().bytes).sum();
        // The client is told what we count.
        assert_eq!(if reverse { sent } else { received }, Some(ours));
        assert!(received > Some(0));
        if reverse {
            assert_eq!(end["sender_tcp_congestion"], "cubic");
        }
    }
}

#[test]
fn dummies_to_a_kernel_that_knows_nothing_of_them_harm_nobody() {
    let Some(ns) = space() else { return };
    for offload in [false, true] {
        let place = Place { offload, ..Place::new(false) };
        let mut driver = place.driver(&ns);
        let listener = ns.within(|| TcpListener::bind((place.kernel, 0)).unwrap()).unwrap();
        let port = listener.local_addr().unwrap().port();
        let kernel = std::thread::spawn(move || kernel_party(listener.accept().unwrap().0, 0));
        // As in the paper: nothing is negotiated, and the answers show whether the receiver knows dummies.
        let mut e = marked("peach", Profile::Paper);
        // All of it is written at once.
        e.tcp.send_autotuning = false;
        open(&mut driver, &place, port, &e);
        let mut app = Exchange::new(2 * MB, 1);
        let seen = std::rc::Rc::new(std::cell::RefCell::new((0, ProbeSupport::Unknown, 0)));
        let at = seen.clone();
        app.meddle = Some(Box::new(move |_, host, id| {
            let c = host.conn(id).unwrap();
            let n = c.counters();
            *at.borrow_mut() = (n.probes_sent, c.probe_support(), n.retransmissions);
        }));
        run(&mut driver, &mut app);
        assert_eq!(kernel.join().unwrap(), (2 * MB, hash_of(2 * MB)));
        let (sent, support, retransmissions) = *seen.borrow();
        assert!(sent > 0);
        assert_eq!(support, ProbeSupport::No, "its answers are duplicates without a mark");
        assert_eq!(retransmissions, 0, "and no sign of a loss");
    }
}

#[test]
fn refusals_and_resets_of_the_kernel_are_understood() {
    let Some(ns) = space() else { return };
    let place = Place::new(false);
    let mut driver = place.driver(&ns);
    // Nobody listens there.
    let limit = Limit::Bytes(1000);
    let every = Duration::from_secs(1);
    let now = Clock::now();
    let mut app =
        Bulk::open(now, driver.host_mut(), place.out(9), &endpoint("reno"), limit, 1, every).unwrap();
    run(&mut driver, &mut app);
    assert_eq!(app.failure(), Some(Failure::Refused));
    // A program that dies with unread data resets its connection.
    let listener = ns.within(|| TcpListener::bind((place.kernel, 0)).unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port();
    let kernel = std::thread::spawn(move || {
        let (mut s, _) = listener.accept().unwrap();
        s.read_exact(&mut [0; 1000]).unwrap();
    });
    let limit = Limit::Bytes(100 * MB);
    let now = Clock::now();
    let mut app =
        Bulk::open(now, driver.host_mut(), place.out(port), &endpoint("reno"), limit, 1, every).unwrap();
    run(&mut driver, &mut app);
    kernel.join().unwrap();
    assert_eq!(app.failure(), Some(Failure::Reset));
    // And the kernel understands ours.
    driver.host_mut().listen(7, endpoint("reno")).unwrap();
    let space = ns.clone();
    let kernel = std::thread::spawn(move || {
        space.within(|| TcpStream::connect((place.ours, 8)).unwrap_err().kind()).unwrap()
    });
    let mut app = Serve::new(|_| Sink, every, None);
    let waker = driver.waker();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = done.clone();
    let waiting = std::thread::spawn(move || {
        let kind = kernel.join().unwrap();
        flag.store(true, std::sync::atomic::Ordering::SeqCst);
        waker.wake();
        kind
    });
    driver.run(&mut app, |_, _, _| done.load(std::sync::atomic::Ordering::SeqCst)).unwrap();
    assert_eq!(waiting.join().unwrap(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_device_that_is_taken_away_is_an_error_and_no_hang() {
    let Some(ns) = space() else { return };
    if !need::program("ip") {
        return;
    }
    let place = Place::new(false);
    let mut driver = place.driver(&ns);
    let name = driver.tun().name().to_owned();
    let space = ns.clone();
    let removing = std::thread::spawn(move || {
        let done = space.within(|| Command::new("ip").args(["link", "del", &name]).status());
        assert!(done.unwrap().unwrap().success());
    });
    let mut app = Serve::new(|_| Sink, Duration::from_millis(10), None);
    driver.host_mut().listen(80, endpoint("reno")).unwrap();
    let e = driver.run(&mut app, |_, _, _| false).unwrap_err();
    assert!(matches!(e, NetError::DeviceGone(_)), "{e}");
    removing.join().unwrap();
}

#[test]
fn a_router_of_the_kernels_that_finds_packets_too_long_is_heard() {
    let Some(near) = space() else { return };
    if !need::program("ip") {
        return;
    }
    let far = space().expect("as the first one");
    let place = Place::new(false);
    let mut driver = place.driver(&near);
    // A second hop of 1300 bytes, from the namespace of our device to another one.
    let ip = |ns: &skyhaul_net::Namespace, args: &str| {
        let run = || Command::new("ip").args(args.split(' ')).output().unwrap();
        let out = ns.within(run).unwrap();
        assert!(out.status.success(), "ip {args}: {}", String::from_utf8_lossy(&out.stderr));
    };
    let holder = far.within(|| Command::new("sleep").arg("600").spawn().unwrap()).unwrap();
    let mut holder = scopeguard(holder);
    ip(&near, &format!("link add near0 type veth peer name far0 netns {}", holder.0.id()));
    ip(&near, "addr add 10.85.0.1/24 dev near0");
    ip(&near, "link set near0 up mtu 1300");
    ip(&far, "addr add 10.85.0.2/24 dev far0");
    ip(&far, "link set far0 up mtu 1300");
    ip(&far, "route add 10.84.0.0/24 via 10.85.0.1");
    let listener = far.within(|| TcpListener::bind("10.85.0.2:0").unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let kernel = std::thread::spawn(move || {
        let (s, _) = listener.accept().unwrap();
        kernel_party(s, 0)
    });
    let from = place.out(0).0;
    // Its own limit of 1260 bytes per segment (MTU 1300) is what the far end announces; ours is not known to it. So that
    // packets are too long all the same, the announcement is ignored: the interface of the far end says 1500.
    ip(&far, "link set far0 mtu 1500");
    driver.host_mut().connect(Clock::now(), from, to, &endpoint("cubic")).unwrap();
    let mut app = Exchange::new(3 * MB, 1);
    run(&mut driver, &mut app);
    assert_eq!(kernel.join().unwrap(), (3 * MB, hash_of(3 * MB)));
    assert!(driver.host().counts().paths_narrowed > 0);
    holder.0.kill().unwrap();
}

/// Kills a child when the test ends, however it ends.
struct Guard(std::process::Child);
fn scopeguard(child: std::process::Child) -> Guard {
    Guard(child)
}
impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn tshark_reads_what_we_capture_without_a_complaint() {
    let Some(ns) = space() else { return };
    if !need::program("tshark") {
        return;
    }
    let place = Place::new(true);
    let mut driver = place.driver(&ns);
    let file = std::env::temp_dir().join(format!("skyhaul-capture-{}.pcapng", std::process::id()));
    driver.capture(std::fs::File::create(&file).unwrap()).unwrap();
    let listener = ns.within(|| TcpListener::bind((place.kernel, 0)).unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port();
    let kernel = std::thread::spawn(move || kernel_party(listener.accept().unwrap().0, MB));
    open(&mut driver, &place, port, &endpoint("peach"));
    let mut app = Exchange::new(MB, 1);
    run(&mut driver, &mut app);
    kernel.join().unwrap();
    let packets = driver.finish_capture().unwrap();
    assert!(packets > 1000);
    assert_eq!(tshark::count(&file, "frame"), packets);
    assert_eq!(tshark::count(&file, tshark::INVALID), 0);
    std::fs::remove_file(file).unwrap();
}
