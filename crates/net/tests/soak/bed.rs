//! A namespace with our server on a TUN interface, strangers and paths to it, and questions to the server while it runs.

use crate::stop;
use skyhaul_base::{Duration, Instant};
use skyhaul_net::app::{ConnectionHandler, Http, NextStep, Serve, Sink};
use skyhaul_net::driver::Driver;
use skyhaul_net::emulator::{Emulation, End, Options, addresses};
use skyhaul_net::host::{Census, ConnId, Counts, Endpoint, Host, HostConfig, Memory, Secret};
use skyhaul_net::tun::{Tun, TunConfig};
use skyhaul_net::wait::Waker;
use skyhaul_net::{Namespace, NetError};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The kernel's address, and the first of the server's.
const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 84, 0, 1));
pub const FIRST: u8 = 2;
/// Addresses of the server: each has all ports of a client.
pub const ADDRESSES: u8 = 8;
/// Ports: answers HTTP; reads and forgets; reads slowly.
pub const HTTP: u16 = 80;
pub const SINK: u16 = 9;
pub const SLOW: u16 = 7;

/// One of the server's addresses.
pub fn at(n: u32, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 84, 0, FIRST + (n % u32::from(ADDRESSES)) as u8], port))
}

pub fn endpoint() -> Endpoint {
    Endpoint::host(skyhaul_cc::Config::by_name("cubic").expect("known"))
}

/// How a connection is served.
enum Role {
    Http(Box<Http>),
    Sink(Sink),
    Slow(Slow),
}

impl ConnectionHandler for Role {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> NextStep {
        match self {
            Self::Http(t) => t.turn(now, host, id),
            Self::Sink(t) => t.turn(now, host, id),
            Self::Slow(t) => t.turn(now, host, id),
        }
    }
}

/// How much a slow reader reads, and how often.
const SIP: usize = 4096;
const PAUSE: Duration = Duration::from_millis(100);

/// Reads a little now and then; everything once it is told to.
struct Slow {
    next: Instant,
    hurry: Arc<AtomicBool>,
    read: Arc<AtomicU64>,
}

impl ConnectionHandler for Slow {
    fn turn(&mut self, now: Instant, host: &mut Host, id: ConnId) -> NextStep {
        if self.hurry.load(Ordering::Relaxed) {
            self.read.fetch_add(host.discard(now, id), Ordering::Relaxed);
        } else if now >= self.next {
            self.next = now + PAUSE;
            self.read.fetch_add(host.read(now, id, &mut [0; SIP]) as u64, Ordering::Relaxed);
        }
        if host.conn(id).is_none_or(|c| c.at_end() || c.is_over()) {
            NextStep::Close
        } else {
            NextStep::Until(self.next.max(now + PAUSE))
        }
    }
}

/// The server's state at a moment.
pub struct ServerSnapshot {
    pub connections: usize,
    pub half_open: usize,
    pub time_waits: usize,
    pub table_bytes: [usize; 2],
    pub memory: Memory,
    pub timers: usize,
    pub counts: Counts,
}

impl ServerSnapshot {
    fn of(host: &Host) -> Self {
        Self {
            connections: host.connections(),
            half_open: host.half_open(),
            time_waits: host.time_waits(),
            table_bytes: host.table_bytes(),
            memory: host.memory(),
            timers: host.timers(),
            counts: host.counts().clone(),
        }
    }
}

type Question = Box<dyn FnOnce(&Host) + Send>;

/// A server of ours on a thread of its own.
pub struct Server {
    questions: Sender<Question>,
    waker: Waker,
    ending: Arc<AtomicBool>,
    /// Slow readers read everything from now on.
    pub hurry: Arc<AtomicBool>,
    /// Bytes that slow readers have read.
    pub slowly_read: Arc<AtomicU64>,
    /// Name of the interface.
    pub interface: String,
    thread: JoinHandle<Result<u64, NetError>>,
}

/// What the thread of a server needs.
struct Work {
    questions: Receiver<Question>,
    ending: Arc<AtomicBool>,
    hurry: Arc<AtomicBool>,
    read: Arc<AtomicU64>,
}

impl Work {
    /// Serves until it is told to end. With `again` a new interface is made when the old one has gone.
    fn run(
        &self,
        mut driver: Driver,
        again: Option<impl Fn() -> Result<Tun, NetError>>,
    ) -> Result<u64, NetError> {
        let (hurry, read) = (self.hurry.clone(), self.read.clone());
        let greet = move |port| match port {
            HTTP => Role::Http(Box::default()),
            SLOW => Role::Slow(Slow { next: Instant::ZERO, hurry: hurry.clone(), read: read.clone() }),
            _ => Role::Sink(Sink),
        };
        let mut app = Serve::new(greet, Duration::from_secs(100_000), None);
        loop {
            let ran = driver.run(&mut app, |_, app, host| {
                drop(app.take_ended());
                while let Ok(question) = self.questions.try_recv() {
                    question(host);
                }
                self.ending.load(Ordering::Relaxed)
            });
            match (ran, &again) {
                (Err(_), Some(again)) if !self.ending.load(Ordering::Relaxed) => driver.renew(again()?)?,
                (ran, _) => return ran.map(|()| driver.refused()),
            }
        }
    }
}

impl Server {
    /// A server in a namespace; `change` says how its host differs from others, `again` whether it makes itself a new
    /// interface when it loses its own.
    pub fn start(ns: &Namespace, again: bool, change: impl FnOnce(&mut HostConfig)) -> Result<Self, String> {
        let ours = (FIRST..FIRST + ADDRESSES).map(|n| IpAddr::from([10, 84, 0, n])).collect();
        let mut config = HostConfig::new(ours, Secret::draw().map_err(|e| e.to_string())?);
        change(&mut config);
        let wanted = TunConfig {
            name: Some("soak0".into()),
            addresses: vec![(KERNEL, 24)],
            mtu: 1500,
            offload: false,
        };
        let place = ns.clone();
        let open = move || place.within(|| Tun::open(&wanted))?;
        let (questions, asked) = channel();
        let (ending, hurry, read) =
            (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let work =
            Work { questions: asked, ending: ending.clone(), hurry: hurry.clone(), read: read.clone() };
        let (sender, receiver) = channel();
        // A driver stays on the thread that made it.
        let thread = std::thread::spawn(move || {
            let mut host = Host::new(config);
            for port in [HTTP, SINK, SLOW] {
                host.listen(port, endpoint())
                    .map_err(|e| NetError::os("listen", std::io::Error::other(e)))?;
            }
            let driver = open().and_then(|tun| Driver::new(tun, host))?;
            let _ = sender.send((driver.waker(), driver.tun().name().to_owned()));
            work.run(driver, again.then_some(open))
        });
        match receiver.recv() {
            Ok((waker, interface)) => {
                Ok(Self { questions, waker, ending, hurry, slowly_read: read, interface, thread })
            }
            Err(_) => match thread.join() {
                Ok(Err(e)) => Err(e.to_string()),
                _ => Err("the server did not start".into()),
            },
        }
    }
    /// Asks the host something; `None` if the server has ended.
    pub fn ask<T: Send + 'static>(&self, question: impl FnOnce(&Host) -> T + Send + 'static) -> Option<T> {
        let (sender, receiver) = channel();
        let question = move |host: &Host| drop(sender.send(question(host)));
        self.questions.send(Box::new(question)).ok()?;
        self.waker.wake();
        receiver.recv_timeout(std::time::Duration::from_secs(60)).ok()
    }
    /// Its state now.
    pub fn snapshot(&self) -> Result<ServerSnapshot, String> {
        self.ask(ServerSnapshot::of).ok_or_else(|| "the server has ended".into())
    }
    /// All that can be counted.
    pub fn census(&self) -> Result<Census, String> {
        self.ask(Host::census).ok_or_else(|| "the server has ended".into())
    }
    /// Ends it; returns how many packets its interface refused.
    pub fn end(self) -> Result<u64, String> {
        self.ending.store(true, Ordering::Relaxed);
        self.waker.wake();
        match self.thread.join() {
            Ok(ended) => ended.map_err(|e| e.to_string()),
            Err(_) => Err("the server panicked".into()),
        }
    }
}

/// A namespace for servers and clients.
pub fn space() -> Result<Namespace, String> {
    let ns = Namespace::new().map_err(|e| e.to_string())?;
    for (key, value) in [
        ("net/ipv4/ip_local_port_range", "1024 65535"),
        // Clients use a port in TIME-WAIT again after a second.
        ("net/ipv4/tcp_tw_reuse", "1"),
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/default/rp_filter", "0"),
    ] {
        let _ = ns.sysctl(key, value);
    }
    Ok(ns)
}

/// The rest of the world, behind a router: packets from any sender come in here, and answers to all addresses go out.
pub struct Stranger(Arc<Tun>);

impl Stranger {
    pub fn new(ns: &Namespace) -> Result<Self, String> {
        let router = IpAddr::from([192, 0, 2, 1]);
        let config = TunConfig { name: None, addresses: vec![(router, 24)], mtu: 1500, offload: false };
        let tun = ns.within(|| Tun::open(&config)).and_then(|t| t).map_err(|e| e.to_string())?;
        let anywhere = (IpAddr::from([0; 4]), 0);
        ns.route(anywhere, tun.name(), None).map_err(|e| e.to_string())?;
        Ok(Self(Arc::new(tun)))
    }
    /// Sends a packet.
    pub fn say(&self, packet: &[u8]) -> bool {
        self.0.write(packet).unwrap_or(false)
    }
    /// Reads and forgets all that has come; returns how many packets.
    pub fn hear(&self) -> u64 {
        let (mut room, mut n) = ([0; 2048], 0);
        while let Ok(Some(_)) = self.0.read(&mut room) {
            n += 1;
        }
        n
    }
}

/// A path between a namespace of clients and the server's: each way `delay`.
pub struct Path {
    pub clients: Namespace,
    emulation: Emulation,
}

impl Path {
    pub fn new(server: &Namespace, links: &str) -> Result<Self, String> {
        let words = |e: NetError| e.to_string();
        let clients = Namespace::new().map_err(words)?;
        let text = format!("duration = \"60 s\"\n{links}\n[flows.bulk]\npath = [\"sat\"]\n");
        let scenario = skyhaul_scenario::Document::parse("soak.toml", &text, &skyhaul_scenario::no_files)
            .and_then(|d| d.resolve())
            .map_err(|e| e.to_string())?;
        let end = |ns: &Namespace, is_client| {
            let config = TunConfig { name: None, addresses: addresses(is_client), mtu: 1500, offload: false };
            End::open(ns, &config)
        };
        let ends = [end(&clients, true).map_err(words)?, end(server, false).map_err(words)?];
        let name = ends[0].device.name().to_owned();
        let emulation =
            Emulation::start(&scenario, &scenario.flows[0], ends, &Options::default()).map_err(words)?;
        let servers = (IpAddr::from([10, 84, 0, 0]), 24);
        clients.route(servers, &name, Some(IpAddr::from([10, 83, 0, 2]))).map_err(words)?;
        Ok(Self { clients, emulation })
    }
    pub fn end(self) {
        drop(self.emulation.finish());
    }
}

/// Sleeps for this time, or until a stop is requested.
pub fn sleep(time: std::time::Duration) {
    let end = std::time::Instant::now() + time;
    while !stop::requested() && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(20).min(time));
    }
}
