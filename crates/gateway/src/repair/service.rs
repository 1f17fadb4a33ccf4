//! The thread that carries datagrams between the interface into which they are routed and the UDP socket towards the other gateway.

use super::key::Secret;
use super::moves::Moves;
use super::passage::{Blocked, Watch};
use super::path::{Cause, Origin, Outgoing, Path};
use super::settings::{KeyText, SHORTEST_KEY, Settings};
use super::share::{Divider, Share};
use super::status::RepairStatus;
use crate::config::Config;
use crate::error::GatewayError;
use crate::log::Level;
use crate::proof::News;
use crate::rules::{self, REPAIR_TABLE};
use crate::worker::Worker;
use nix::sys::socket::sockopt::{RcvBufForce, RxqOvfl, SndBufForce};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt,
};
use rustix::net::sockopt;
use skyhaul_base::{Duration, Instant, Rate};
use skyhaul_net::routing::{self, DefaultRoute};
use skyhaul_net::tun::{self, Tun, TunConfig};
use skyhaul_net::wait::Wait;
use skyhaul_net::{Clock, NetError, ipv6};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The address of the interface, which needs none of its own (RFC 7600); see [`crate::run`].
pub(crate) const DUMMY: (IpAddr, u8) = (IpAddr::V4(Ipv4Addr::new(192, 0, 0, 8)), 32);
/// Buffers of the socket, bytes.
const BUFFER: usize = 4 << 20;
/// Packets read from a descriptor before the other one is read.
const BATCH: usize = 64;
/// Interval between looks at rates, routes and counters.
const TICK: Duration = Duration::from_millis(100);
/// Maximum delay of a wake-up that is made up for: what should have left since then leaves at once.
const CATCH_UP: Duration = Duration::from_millis(10);
/// Interval between looks at what the kernel has dropped, and for how long nothing is repaired if that was too much.
const LOOK: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(10);
/// Too much: so many packets in [`LOOK`], and more than this share of those that were handled.
const TOO_MANY: u64 = 20;
const TOO_LARGE: f64 = 0.02;
/// For how long nothing is repaired after a firewall was found to drop everything.
const BLOCKED: Duration = Duration::from_secs(60);
/// How long a cause other than a withdrawal lasts before it is told, and after which silence the socket is opened again.
const PATIENCE: Duration = Duration::from_secs(2);
/// The smallest MTU in a router's message that is believed, bytes: anybody may forge such a message.
const LEAST_LEARNT: u32 = 1000;
/// The smallest MTU of IPv6 (RFC 8200 §5).
const LEAST_V6: u32 = 1280;

/// The state of the thread, for others.
#[derive(Clone, Debug, Default)]
pub(crate) struct View(Arc<Mutex<(RepairStatus, VecDeque<News>)>>);

impl View {
    fn lock(&self) -> MutexGuard<'_, (RepairStatus, VecDeque<News>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Its state and counters.
    pub(crate) fn status(&self) -> RepairStatus {
        self.lock().0.clone()
    }
    /// The next line for the log.
    pub(crate) fn next_news(&self) -> Option<News> {
        self.lock().1.pop_front()
    }
}

/// The thread; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Service {
    view: View,
    worker: Worker,
}

/// The pre-shared key.
///
/// # Errors
/// What is wrong, and the remedy.
pub(crate) fn key_of(settings: &Settings) -> Result<Vec<u8>, String> {
    let text = match (&settings.key, &settings.key_file) {
        (Some(KeyText(key)), _) => key.clone().into_bytes(),
        (None, Some(path)) => {
            std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?
        }
        (None, None) => Vec::new(),
    };
    let key = text.trim_ascii();
    if key.len() < SHORTEST_KEY {
        let why = format!(
            "a key of {} bytes is too short: write at least {SHORTEST_KEY}, such as those of `head -c 32 /dev/urandom | base64`",
            key.len()
        );
        return Err(why);
    }
    Ok(key.to_vec())
}

impl Service {
    /// Starts in the calling thread's network namespace; `None` if the file has no `[repair]`. `share` is the rate that split connections
    /// use, too; `wake` is called when there is a line for the log.
    ///
    /// # Errors
    /// If there is no key, or the interface or the port cannot be opened.
    pub(crate) fn start(
        config: &Config,
        share: Option<Share>,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Option<Self>, GatewayError> {
        let Some(settings) = &config.repair else { return Ok(None) };
        let key = key_of(settings).map_err(|why| {
            let name = if settings.key.is_some() { "repair.key" } else { "repair.key-file" };
            config.sources.refuse(name, why)
        })?;
        let Some(rate) = settings.rate.or(config.satellite.rate) else { return Ok(None) };
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|e| GatewayError::os("draw random numbers")(io::Error::other(e)))?;
        let draw = move || {
            getrandom::fill(&mut id).expect("the system had random numbers before");
            id
        };
        let mtu = u32::from(config.satellite.mtu);
        let path = Path::new(Clock::now(), settings.config(rate, mtu), Secret::new(&key), Box::new(draw));
        let device = TunConfig {
            name: Some(config.repair_interface()),
            addresses: vec![DUMMY],
            mtu: path.config().largest_datagram() as u16,
            offload: false,
        };
        let tun = Tun::open(&device)?;
        let index = tun.index()?;
        // Packets of hosts behind the link arrive here, where no route leads to them. 2 is the loose mode, for which any route to the source
        // is enough (RFC 3704 §2.4).
        let _ = std::fs::write(format!("/proc/sys/net/ipv4/conf/{}/rp_filter", tun.name()), "2");
        let port = Port {
            own: settings.port,
            named: settings.peer_at(),
            v6: settings.peer.is_v6(),
            interface: config.satellite.interface.clone(),
        };
        let socket = port.open().map_err(GatewayError::udp_port("repair", settings.port))?;
        let wait = Wait::on(&[&tun, &socket])?;
        let view = View::default();
        let shared = settings.rate.is_none().then_some(share).flatten();
        let carrier = Carrier {
            path,
            tun,
            index,
            socket: Some(socket),
            peer: port.named,
            asked: None,
            moves: Moves::default(),
            port,
            wait,
            view: view.clone(),
            watch: Watch::start(rules::table(config))?,
            name: config.repair_interface(),
            divider: shared.map(Divider::new),
            at: Clock::now(),
            routed: false,
            link_mtu: mtu,
            told: None,
            ticked: Instant::ZERO,
            looked: (Instant::ZERO, 0, 0),
            handled: 0,
            overflows: 0,
            reopened: Instant::ZERO,
            buffer: vec![0; 1 << 16],
            out: Vec::with_capacity(1 << 11),
        };
        let worker = Worker::start("repair", move |stop| carrier.run(stop, &wake))?;
        Ok(Some(Self { view, worker }))
    }
    /// Whether the thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.worker.has_ended()
    }
    /// Its state.
    pub(crate) fn view(&self) -> View {
        self.view.clone()
    }
}

/// Where the socket is.
struct Port {
    own: u16,
    /// The other gateway, if the file names it.
    named: Option<SocketAddr>,
    v6: bool,
    interface: String,
}

impl Port {
    /// A socket at the satellite interface.
    fn new_socket(&self) -> io::Result<Socket> {
        let domain = if self.v6 { Domain::IPV6 } else { Domain::IPV4 };
        let socket = Socket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
        socket.bind_device(Some(self.interface.as_bytes()))?;
        Ok(socket)
    }
    /// Opens the socket. If the file names the other gateway, the kernel passes on only what comes from its address and port.
    fn open(&self) -> io::Result<Socket> {
        let (v6, socket) = (self.v6, self.new_socket()?);
        if v6 {
            socket.set_only_v6(true)?;
            socket.set_recv_tclass_v6(true)?;
        } else {
            socket.set_recv_tos_v4(true)?;
        }
        let any: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        socket.bind(&SocketAddr::new(any, self.own).into())?;
        // Sizes beyond net.core.rmem_max and wmem_max need privileges.
        let _ = setsockopt(&socket, SndBufForce, &BUFFER);
        let _ = setsockopt(&socket, RcvBufForce, &BUFFER);
        let _ = setsockopt(&socket, RxqOvfl, &1);
        // Without a route there is nobody to hear: the socket is opened again after a while.
        if let Some(named) = self.named {
            let _ = socket.connect(&named.into());
        }
        Ok(socket)
    }
    /// The MTU of the path to this address, which the kernel learns from routers (RFC 1191, RFC 8201). Each socket asks for the route when it
    /// connects, and so has what was learnt until then.
    fn mtu_to(&self, peer: SocketAddr) -> Option<u32> {
        let socket = self.new_socket().ok()?;
        socket.connect(&peer.into()).ok()?;
        if self.v6 { sockopt::ipv6_mtu(&socket) } else { sockopt::ip_mtu(&socket) }.ok()
    }
}

/// Carries datagrams.
struct Carrier {
    path: Path,
    tun: Tun,
    index: u32,
    socket: Option<Socket>,
    port: Port,
    /// Where the other gateway is: as the file says, or where it was last heard.
    peer: Option<SocketAddr>,
    /// Where the last hello came from.
    asked: Option<SocketAddr>,
    moves: Moves,
    wait: Wait,
    view: View,
    watch: Watch,
    name: String,
    divider: Option<Divider>,
    /// The time up to which the path has been served.
    at: Instant,
    /// Whether marked packets are routed into the interface.
    routed: bool,
    /// The largest packet to the other gateway.
    link_mtu: u32,
    /// What was last told: nothing yet, that datagrams are repaired, or why not.
    told: Option<Option<Cause>>,
    ticked: Instant,
    /// When it last looked at what the kernel had dropped, and the numbers of packets dropped and handled then.
    looked: (Instant, u64, u64),
    handled: u64,
    overflows: u64,
    reopened: Instant,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

impl Carrier {
    fn run(mut self, stop: &AtomicBool, wake: &impl Fn()) {
        while !stop.load(Ordering::Relaxed) {
            let now = Clock::now();
            self.catch_up(now);
            self.receive(now);
            if self.take(now).is_err() {
                break;
            }
            self.serve(now);
            if self.routed != self.path.repairs() {
                self.route();
            }
            if now >= self.ticked + TICK {
                self.tick(now, wake);
            }
            let until = self.path.next_timeout(now).min(self.ticked + TICK);
            if self.wait.until(until).is_err() {
                break;
            }
        }
        // The other gateway need not wait until this one counts as gone.
        let now = Clock::now();
        self.path.leave(now);
        self.serve(now);
        self.route();
    }

    /// What was due since the last call happens at its time, so that a late wake-up does not slow down the sending.
    fn catch_up(&mut self, now: Instant) {
        let mut at = self.at.max(now - CATCH_UP);
        // Each step sends a packet, or a timer has expired: there are not many within a few milliseconds.
        for _ in 0..10_000 {
            let due = self.path.next_timeout(at).max(at);
            if due > now {
                break;
            }
            at = due;
            self.serve(at);
        }
        self.at = now;
    }
    /// Sends and delivers what is ready.
    fn serve(&mut self, at: Instant) {
        self.path.handle_timeout(at);
        let mut out = core::mem::take(&mut self.out);
        while let Some(Outgoing { class, is_answer }) = self.path.poll_transmit(at, &mut out) {
            // Who asks need not be the other gateway.
            let to = if is_answer && self.port.named.is_none() { self.asked } else { self.peer };
            if let Some(to) = to {
                self.send(&out, to, class);
            }
        }
        self.out = out;
        while let Some(packet) = self.path.poll_delivery() {
            let _ = self.tun.write(&packet);
        }
    }

    /// Sends a packet. What the system refuses is lost, as on a link.
    fn send(&self, packet: &[u8], to: SocketAddr, class: u8) {
        let Some(socket) = &self.socket else { return };
        let to = self.port.named.is_none().then(|| SockaddrStorage::from(to));
        let wide = i32::from(class);
        let with =
            [if self.port.v6 { ControlMessage::Ipv6TClass(&wide) } else { ControlMessage::Ipv4Tos(&class) }];
        let parts = [IoSlice::new(packet)];
        // A pending error about an earlier packet is reported in place of sending this one.
        for _ in 0..2 {
            match sendmsg(socket.as_raw_fd(), &parts, &with, MsgFlags::MSG_DONTWAIT, to.as_ref()) {
                Err(nix::Error::ECONNREFUSED | nix::Error::EHOSTUNREACH | nix::Error::ENETUNREACH) => {}
                _ => break,
            }
        }
    }

    /// Packets of the other gateway.
    fn receive(&mut self, now: Instant) {
        let mut control = nix::cmsg_space!(u32, i32);
        let Some(raw) = self.socket.as_ref().map(AsRawFd::as_raw_fd) else { return };
        for _ in 0..BATCH {
            let mut class = 0;
            let (n, from) = {
                let mut into = [IoSliceMut::new(&mut self.buffer)];
                match recvmsg::<SockaddrStorage>(raw, &mut into, Some(&mut control), MsgFlags::MSG_DONTWAIT) {
                    Ok(got) => {
                        for message in got.cmsgs().into_iter().flatten() {
                            match message {
                                ControlMessageOwned::Ipv4Tos(c) => class = c,
                                ControlMessageOwned::Ipv6TClass(c) => class = c as u8,
                                ControlMessageOwned::RxqOvfl(dropped) => self.overflows = dropped.into(),
                                _ => {}
                            }
                        }
                        (got.bytes, got.address.and_then(|a| address_of(&a)))
                    }
                    Err(nix::Error::EAGAIN) => break,
                    // Reports of routers about what was sent.
                    Err(_) => continue,
                }
            };
            self.handled += 1;
            let Some(packet) = self.buffer.get_mut(..n) else { continue };
            let origin = self.path.receive(now, packet, class & 3 == 3);
            if self.port.named.is_none() {
                match origin {
                    Origin::Unknown => {}
                    Origin::Asks => self.asked = from,
                    Origin::Peer => {
                        if let Some(to) = from {
                            self.moves.heard(self.peer, to);
                        }
                        (self.asked, self.peer) = (from, from);
                    }
                }
            }
        }
    }
    /// Packets of hosts.
    fn take(&mut self, now: Instant) -> Result<(), NetError> {
        for _ in 0..BATCH {
            let Some(n) = self.tun.read(&mut self.buffer)? else { break };
            self.handled += 1;
            let Some(packet) = self.buffer.get(..n) else { continue };
            if !self.path.offer(now, packet) {
                // The kernel forwards it, as it arrives from this interface without a mark.
                let _ = self.tun.write(packet);
            }
        }
        Ok(())
    }

    /// Routes marked packets into the interface, or lets the kernel forward them.
    fn route(&mut self) {
        if self.routed != self.path.repairs() {
            self.routed = !self.routed;
            self.watch.routed(self.routed.then(Clock::now));
        }
        for v6 in [false, true] {
            let out = DefaultRoute::Out(self.index);
            let fits = !v6 || (ipv6::is_on() && self.path.config().largest_datagram() >= LEAST_V6);
            if self.routed && fits {
                let _ = routing::add_route(v6, REPAIR_TABLE, out);
            } else {
                routing::remove_route(v6, REPAIR_TABLE, out);
            }
        }
    }

    fn tick(&mut self, now: Instant, wake: &impl Fn()) {
        let seconds = (now - self.ticked).as_secs_f64();
        self.ticked = now;
        let totals = self.path.totals();
        if let Some(divider) = &mut self.divider {
            let carried = totals.source_bytes.saturating_sub(totals.saved_bytes) + totals.header_bytes;
            let rate = divider.divide(seconds, carried + totals.repair_bytes + totals.report_bytes);
            self.set_rate(now, rate);
        }
        if let Some(blocked) = self.watch.take().filter(|_| self.routed) {
            self.path.pause_until(now + BLOCKED, Cause::Blocked(blocked));
        }
        if now >= self.looked.0 + LOOK {
            self.look(now);
            self.follow_mtu();
            // Others may have removed the route.
            self.route();
        }
        let (cause, since) = self.path.cause();
        if cause.is_some_and(|c| c != Cause::BusyHere)
            && now >= since + PATIENCE
            && now >= self.reopened + PATIENCE
        {
            // The address of the interface, or the route, may have changed.
            self.reopened = now;
            self.socket = None;
            self.socket = self.port.open().ok();
            if let Some(socket) = &self.socket {
                let _ = self.wait.replace(1, socket);
            }
        }
        self.tell(now, wake);
    }
    fn set_rate(&mut self, now: Instant, rate: Rate) {
        if rate != self.path.config().rate {
            self.path.set_rate(now, rate);
        }
    }
    /// Adapts to the MTU of the path to the other gateway.
    fn follow_mtu(&mut self) {
        let Some(learnt) = self.peer.and_then(|peer| self.port.mtu_to(peer)) else { return };
        let mtu = learnt.max(LEAST_LEARNT).min(self.link_mtu);
        let before = self.path.config().largest_datagram();
        if self.path.config().mtu != Some(mtu) {
            self.path.set_mtu(mtu);
            let largest = self.path.config().largest_datagram();
            if largest != before {
                let _ = self.tun.device().set_mtu(largest as u16);
                self.route();
            }
        }
    }
    /// Pauses if the kernel had to drop too much of what this thread did not take in time.
    fn look(&mut self, now: Instant) {
        let dropped = self.overflows + tun::dropped(self.tun.name()).unwrap_or(0);
        let (_, before, handled) = self.looked;
        let (dropped_now, handled_now) = (dropped.saturating_sub(before), self.handled - handled);
        self.looked = (now, dropped, self.handled);
        if dropped_now >= TOO_MANY && dropped_now as f64 > TOO_LARGE * handled_now as f64 {
            self.path.pause_until(now + REST, Cause::BusyHere);
        }
    }

    /// Publishes the state, and a line when it has changed.
    fn tell(&mut self, now: Instant, wake: &impl Fn()) {
        let (cause, since) = self.path.cause();
        let peer = self.peer;
        // A withdrawal is told at once, and any other cause when it has lasted: sessions begin with short ones.
        let due = cause.is_none() || self.told == Some(None) || now >= since + PATIENCE;
        let words = cause.map(|c| words(c, peer, self.port.own, &self.name));
        let moved = peer.and_then(|at| self.moves.line(now, at));
        let mut shared = self.view.lock();
        let session = self.path.session();
        let estimate = session.map(|s| s.end.estimate());
        shared.0 = RepairStatus {
            peer: peer.map_or_else(|| "any".to_owned(), |p| p.to_string()),
            repairs: cause.is_none(),
            cause: words.clone(),
            lasts: (now - since).as_secs_f64(),
            rtt: session.and_then(|s| s.end.srtt()).map(Duration::as_secs_f64),
            loss: estimate.map_or(0.0, |e| e.loss()),
            burst: estimate.map_or(1.0, |e| e.burst()),
            rate: self.path.config().rate.bits_per_sec(),
            mtu: self.path.config().largest_datagram(),
            moves: self.moves.count(),
            totals: self.path.totals(),
        };
        let is_news = due && self.told != Some(cause);
        let any = moved.is_some() || is_news;
        if let Some(line) = moved {
            shared.1.push_back(News { level: Level::Info, event: "repair-peer-moved", line });
        }
        if is_news {
            self.told = Some(cause);
            let (level, event, line) = match words {
                None => {
                    (Level::Info, "repairs", format!("datagrams to and from {} are repaired", name_of(peer)))
                }
                Some(why) => (
                    Level::Warning,
                    "repair-withdrawn",
                    format!("datagrams are forwarded without repair: {why}"),
                ),
            };
            shared.1.push_back(News { level, event, line });
        }
        drop(shared);
        if any {
            wake();
        }
    }
}

fn address_of(from: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = from.as_sockaddr_in().map(|a| SocketAddr::V4((*a).into()));
    v4.or_else(|| from.as_sockaddr_in6().map(|a| SocketAddr::V6((*a).into())))
}

fn name_of(peer: Option<SocketAddr>) -> String {
    peer.map_or_else(|| "the other gateway".to_owned(), |p| p.to_string())
}

/// Why nothing is repaired, and the remedy.
fn words(cause: Cause, peer: Option<SocketAddr>, port: u16, name: &str) -> String {
    let who = name_of(peer);
    let peer_port = peer.map_or(port, |p| p.port());
    match cause {
        Cause::Silent if peer.is_none() => format!(
            "no gateway has called: name this one in repair.peer of the other gateway's file (not both may have \"any\"), and let UDP \
             port {port} pass in both directions"
        ),
        Cause::Silent => format!(
            "{who} does not answer: start a gateway with [repair] there, and let UDP port {port} pass in both directions"
        ),
        Cause::Key => {
            format!("{who} has another key: write the same repair.key or repair.key-file on both gateways")
        }
        Cause::Version(v) => {
            format!(
                "{who} has version {v} of the format, this gateway another: install the same release on both"
            )
        }
        Cause::Unheard => {
            format!("{who} hears nothing of this gateway: let UDP port {peer_port} pass towards it")
        }
        Cause::BusyThere => {
            format!("{who} cannot do it at present, or is about to stop: its status says why")
        }
        Cause::Blocked(Blocked::In) => format!(
            "a firewall drops packets that leave by {name}: accept them in its forward chain as those of the satellite interface (oifname {name})"
        ),
        Cause::Blocked(Blocked::Out) => format!(
            "a firewall drops packets that arrive at {name}: accept them in its forward chain as those of the satellite interface (iifname {name})"
        ),
        Cause::BusyHere => {
            "this machine cannot keep up with the packets: a lower repair.rate or a faster processor helps"
                .into()
        }
    }
}
