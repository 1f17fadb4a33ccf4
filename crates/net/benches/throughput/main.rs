//! Throughput over TUN, compared with other ways on the same machine: `cargo bench -p skyhaul-net` (as root).
//!
//! Each way carries the same bytes to a sink, or from a source, that uses the kernel's TCP. The ways take turns over
//! several repetitions, so that other load of the machine falls on all of them: our sender and our receiver; the same
//! with super-packets; a minimal sender or receiver, which writes prebuilt packets into the same kind of interface; and
//! the kernel's TCP over a veth, without offloads. Ratios are taken within a repetition. A word behind `--` measures
//! only the ways that have it in their name.
#![allow(missing_docs, missing_debug_implementations, reason = "a program")]

#[cfg(target_os = "linux")]
mod blaster;

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}
#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use super::blaster;
    use skyhaul_base::Duration;
    use skyhaul_net::app::{Bulk, Limit, Serve, Sink};
    use skyhaul_net::driver::Driver;
    use skyhaul_net::host::{Endpoint, Host, HostConfig, Secret};
    use skyhaul_net::tun::{Tun, TunConfig};
    use skyhaul_net::{Clock, Namespace};
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
    use std::process::Command;
    use std::thread::JoinHandle;

    const BYTES: u64 = 1_000_000_000;
    const REPETITIONS: usize = 5;

    /// What one way took.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Took {
        /// Time of the transfer, including what the way does around it (handshake, close).
        seconds: f64,
        /// Processor time of the measured thread: the sender, or the receiver in ways that receive.
        cpu: f64,
    }

    impl Took {
        pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (Self, T) {
            let (began, cpu) = (Clock::now(), Clock::thread_cpu());
            let done = work();
            let took = Self {
                seconds: (Clock::now() - began).as_secs_f64(),
                cpu: (Clock::thread_cpu() - cpu).as_secs_f64(),
            };
            (took, done)
        }
        fn rate(self) -> f64 {
            BYTES as f64 * 8.0 / self.seconds / 1e6
        }
        fn cpu_per_gb(self) -> f64 {
            self.cpu * 1e9 / BYTES as f64
        }
    }

    /// A thread that reads from the kernel's TCP and discards; returns the bytes read.
    fn sink(ns: &Namespace, at: IpAddr) -> (SocketAddr, JoinHandle<u64>) {
        let listener = ns.within(|| TcpListener::bind((at, 0))).expect("enters").expect("binds");
        let to = listener.local_addr().expect("an address");
        let thread = std::thread::spawn(move || {
            let (mut s, mut buf, mut n) = (listener.accept().expect("connects").0, vec![0; 1 << 18], 0);
            loop {
                match s.read(&mut buf) {
                    Ok(0) | Err(_) => return n,
                    Ok(k) => n += k as u64,
                }
            }
        });
        (to, thread)
    }

    fn tun(ns: &Namespace, kernel: IpAddr, offload: bool) -> Tun {
        let config = TunConfig { name: None, addresses: vec![(kernel, 24)], mtu: 1500, offload };
        ns.within(|| Tun::open(&config)).expect("enters").expect("opens")
    }

    fn ours(ns: &Namespace, offload: bool) -> Took {
        let (kernel, own): (IpAddr, IpAddr) = ([10, 84, 0, 1].into(), [10, 84, 0, 2].into());
        let host = HostConfig::new(vec![own], Secret::draw().expect("random"));
        let mut driver = Driver::new(tun(ns, kernel, offload), Host::new(host)).expect("a driver");
        let (to, sink) = sink(ns, kernel);
        let endpoint = Endpoint::host(skyhaul_cc::Config::by_name("cubic").expect("known"));
        let (took, ()) = Took::of(|| {
            let from = SocketAddr::new(own, 0);
            let limit = Limit::Bytes(BYTES);
            let every = Duration::from_secs(1);
            let mut bulk =
                Bulk::open(Clock::now(), driver.host_mut(), (from, to), &endpoint, limit, 1, every)
                    .expect("opens");
            driver.run(&mut bulk, |_, _, _| false).expect("the device stays");
        });
        assert_eq!(sink.join().expect("ends"), BYTES);
        took
    }

    fn blast(ns: &Namespace) -> Took {
        let kernel: IpAddr = [10, 84, 0, 1].into();
        let tun = tun(ns, kernel, false);
        let (to, sink) = sink(ns, kernel);
        let took = blaster::send(&tun, [10, 84, 0, 2], [10, 84, 0, 1], to.port(), BYTES);
        assert_eq!(sink.join().expect("ends"), BYTES);
        took
    }

    /// Whether a program succeeds in a namespace.
    fn succeeds(ns: &Namespace, program: &str, args: &str) -> bool {
        let run = || Command::new(program).args(args.split(' ')).output();
        ns.within(run).expect("enters").is_ok_and(|o| o.status.success())
    }

    /// Connects two namespaces by a veth without offloads: every packet is sent on its own.
    fn pair(near: &Namespace, far: &Namespace) {
        let mut holder =
            far.within(|| Command::new("sleep").arg("60").spawn()).expect("enters").expect("starts");
        assert!(succeeds(
            near,
            "ip",
            &format!("link add near0 type veth peer name far0 netns {}", holder.id())
        ));
        for (ns, name, own) in [(near, "near0", 1), (far, "far0", 2)] {
            assert!(succeeds(ns, "ip", &format!("addr add 10.85.0.{own}/24 dev {name}")));
            assert!(succeeds(ns, "ip", &format!("link set {name} up")));
            if !succeeds(ns, "ethtool", &format!("-K {name} tso off gso off gro off")) {
                println!(
                    "ethtool failed: the kernel sends packets of up to 64 KiB, so its figures cannot be compared"
                );
            }
        }
        holder.kill().expect("kills");
        holder.wait().expect("ends");
    }

    fn kernels(near: &Namespace, far: &Namespace) -> Took {
        let (to, sink) = sink(far, [10, 85, 0, 2].into());
        let mut s = near.within(|| TcpStream::connect(to)).expect("enters").expect("connects");
        let (took, ()) = Took::of(|| {
            write_all(&mut s);
            drop(s);
            assert_eq!(sink.join().expect("ends"), BYTES);
        });
        took
    }

    fn write_all(s: &mut TcpStream) {
        let data = vec![1; 1 << 16];
        let mut left = BYTES;
        while left > 0 {
            let n = left.min(data.len() as u64);
            s.write_all(&data[..n as usize]).expect("writes");
            left -= n;
        }
    }

    /// A thread that sends everything through the kernel's TCP and closes.
    fn source(ns: &Namespace, to: SocketAddr) -> JoinHandle<()> {
        let ns = ns.clone();
        std::thread::spawn(move || {
            let mut s = ns.within(|| TcpStream::connect(to)).expect("enters").expect("connects");
            write_all(&mut s);
        })
    }

    const KERNEL: [u8; 4] = [10, 84, 0, 1];
    const OWN: [u8; 4] = [10, 84, 0, 2];

    fn receives(ns: &Namespace, offload: bool) -> Took {
        let host = HostConfig::new(vec![OWN.into()], Secret::draw().expect("random"));
        let mut driver = Driver::new(tun(ns, KERNEL.into(), offload), Host::new(host)).expect("a driver");
        let endpoint = Endpoint::host(skyhaul_cc::Config::by_name("cubic").expect("known"));
        driver.host_mut().listen(blaster::OUR_PORT, endpoint).expect("a free port");
        let mut serve = Serve::new(|_| Sink, Duration::from_secs(1), Some(1));
        let source = source(ns, (OWN, blaster::OUR_PORT).into());
        let (took, ()) = Took::of(|| driver.run(&mut serve, |_, _, _| false).expect("the device stays"));
        source.join().expect("ends");
        assert_eq!(serve.take_ended()[0].account.bytes_read, BYTES);
        took
    }

    fn acknowledges(ns: &Namespace) -> Took {
        let tun = tun(ns, KERNEL.into(), false);
        let source = source(ns, (OWN, blaster::OUR_PORT).into());
        let (took, bytes) = Took::of(|| blaster::receive(&tun, OWN, KERNEL));
        source.join().expect("ends");
        assert_eq!(bytes, BYTES);
        took
    }

    fn summary(mut values: Vec<f64>) -> String {
        values.sort_by(f64::total_cmp);
        format!("{:.2} ({:.2} - {:.2})", values[values.len() / 2], values[0], values[values.len() - 1])
    }

    pub(crate) fn main() {
        let (near, far) = match (Namespace::new(), Namespace::new()) {
            (Ok(near), Ok(far)) => (near, far),
            (Err(e), _) | (_, Err(e)) => {
                println!("not measured: {e}");
                return;
            }
        };
        pair(&near, &far);
        type Measurement<'a> = (&'static str, &'a dyn Fn() -> Took);
        let measurements: [Measurement<'_>; 7] = [
            ("skyhaul sends over TUN", &|| ours(&near, false)),
            ("blaster sends over TUN", &|| blast(&near)),
            ("skyhaul sends over TUN, super-packets", &|| ours(&near, true)),
            ("skyhaul receives over TUN", &|| receives(&near, false)),
            ("bare receiver over TUN", &|| acknowledges(&near)),
            ("skyhaul receives over TUN, super-packets", &|| receives(&near, true)),
            ("kernel over veth", &|| kernels(&near, &far)),
        ];
        // Cargo adds a flag of its own.
        let word = std::env::args().skip(1).find(|a| !a.starts_with('-'));
        let selected: Vec<&Measurement<'_>> =
            measurements.iter().filter(|(name, _)| word.as_ref().is_none_or(|w| name.contains(w))).collect();
        let all: Vec<BTreeMap<&str, Took>> = (0..REPETITIONS)
            .map(|_| selected.iter().map(|(name, measurement)| (*name, measurement())).collect())
            .collect();
        println!("{} MB in packets of 1500 bytes, median (range) of {REPETITIONS}", BYTES / 1_000_000);
        for (name, _) in &selected {
            let rate = summary(all.iter().map(|r| r[name].rate()).collect());
            let cpu = summary(all.iter().map(|r| r[name].cpu_per_gb()).collect());
            println!("{name}: {rate} Mbit/s, {cpu} CPU s/GB of the measured thread");
        }
        let ratio = |a: usize, b: usize| {
            let (a, b) = (measurements[a].0, measurements[b].0);
            if all.iter().any(|r| !r.contains_key(a) || !r.contains_key(b)) {
                return;
            }
            let of = |f: &dyn Fn(&Took) -> f64| summary(all.iter().map(|r| f(&r[a]) / f(&r[b])).collect());
            println!("{a} / {b}: time {}, CPU {}", of(&|t| t.seconds), of(&|t| t.cpu));
        };
        ratio(0, 1);
        ratio(3, 4);
        ratio(0, 6);
        ratio(2, 0);
        ratio(5, 3);
    }
}
