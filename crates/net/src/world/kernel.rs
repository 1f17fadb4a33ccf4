//! The kernel's transport over the emulated links.

use super::{Outcome, Sample, Sent, Setting, WorldError};
use crate::device::Clock;
use crate::device::netlink::{self, KernelFlow};
use crate::emulator;
use crate::error::NetError;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn, sockopt};
use skyhaul_base::{Duration, Instant};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration as StdDuration;

const PORT: u16 = 5201;
/// How often threads that wait look whether they should.
const LOOK: StdDuration = StdDuration::from_millis(20);

/// Threads that read and forget what comes.
pub(super) struct Sinks {
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Sinks {
    pub(super) fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// Reads and forgets what comes to a listener.
pub(super) fn sink(listener: TcpListener) -> Sinks {
    let over = Arc::new(AtomicBool::new(false));
    let flag = over.clone();
    let thread = std::thread::spawn(move || {
        let _ = listener.set_nonblocking(true);
        let mut readers = Vec::new();
        while !flag.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let flag = flag.clone();
                    readers.push(std::thread::spawn(move || drain(stream, &flag)));
                }
                Err(_) => std::thread::sleep(LOOK),
            }
        }
        readers.into_iter().for_each(|r| drop(r.join()));
    });
    Sinks { over, thread }
}

fn drain(mut stream: TcpStream, over: &AtomicBool) {
    let _ = (stream.set_nonblocking(false), stream.set_read_timeout(Some(LOOK)));
    let mut buf = vec![0; 1 << 17];
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut buf) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

/// A connection with this congestion control, chosen before the SYN: chosen later, a default that paces would have
/// left its pacing behind.
fn connect(to: SocketAddrV4, control: &str) -> Result<TcpStream, NetError> {
    let fail = |e: nix::Error| NetError::os(format!("connect to {to} with {control}"), e);
    let fd =
        socket::socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).map_err(fail)?;
    socket::setsockopt(&fd, sockopt::TcpCongestion, &control.into()).map_err(fail)?;
    socket::connect(fd.as_raw_fd(), &SockaddrIn::from(to)).map_err(fail)?;
    Ok(fd.into())
}

pub(super) fn run(
    s: &Setting<'_>,
    control: &str,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, WorldError> {
    let key = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let known = s.client.within(|| std::fs::read_to_string(key))?.unwrap_or_default();
    if !known.split_whitespace().any(|k| k == control) {
        let known = known.trim().to_owned();
        return Err(WorldError::NoSuchControl { name: control.to_owned(), known });
    }
    let emulation = s.emulate()?;
    let address = |client: bool| {
        emulator::addresses(client).into_iter().find_map(|(a, _)| match a {
            IpAddr::V4(a) => Some(a),
            IpAddr::V6(_) => None,
        })
    };
    let to = SocketAddrV4::new(address(false).unwrap_or(Ipv4Addr::LOCALHOST), PORT);
    // The kernel takes as much as the scenario's receiver, at most; it doubles what it is given for its own overhead.
    let sinks = s.server.within(|| {
        let listener =
            TcpListener::bind(to).map_err(|e| NetError::os("listen in the receiver's namespace", e))?;
        Ok::<_, NetError>(sink(listener))
    })??;
    let began = Clock::now();
    let over = AtomicBool::new(false);
    let outcome =
        s.client.within(|| std::thread::scope(|scope| flows(s, control, to, began, &over, scope, stop)))?;
    sinks.end();
    let mut sent = outcome?;
    sent.took = sent.took.min(s.scenario.duration);
    Ok(sent.with(s, emulation.finish()?))
}

/// Opens the flows at their times and samples them. Runs in the sender's namespace.
fn flows<'scope>(
    s: &'scope Setting<'_>,
    control: &'scope str,
    to: SocketAddrV4,
    began: Instant,
    over: &'scope AtomicBool,
    scope: &'scope std::thread::Scope<'scope, '_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Sent, WorldError> {
    let ports = Arc::new(std::sync::Mutex::new(BTreeMap::<u16, u32>::new()));
    let failure = Arc::new(std::sync::Mutex::new(None));
    for (flow, start) in (0..).zip(&s.starts) {
        let (ports, failure, client) = (ports.clone(), failure.clone(), s.client.clone());
        let start = began + *start;
        scope.spawn(move || {
            while Clock::now() < start && !over.load(Ordering::Relaxed) {
                let left = start - Clock::now();
                std::thread::sleep(LOOK.min(StdDuration::from_nanos(left.as_nanos())));
            }
            let opened = client.enter().and_then(|()| connect(to, control));
            match opened {
                Ok(mut stream) => {
                    if let (Ok(a), Ok(mut p)) = (stream.local_addr(), ports.lock()) {
                        p.insert(a.port(), flow);
                    }
                    let _ = stream.set_write_timeout(Some(LOOK));
                    let chunk = vec![0; 1 << 17];
                    while !over.load(Ordering::Relaxed) {
                        match stream.write(&chunk) {
                            Ok(_) => {}
                            Err(e)
                                if matches!(
                                    e.kind(),
                                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                                ) => {}
                            Err(e) => {
                                if let Ok(mut f) = failure.lock() {
                                    f.get_or_insert(WorldError::Failed(e.to_string()));
                                }
                                return;
                            }
                        }
                    }
                }
                Err(e) => {
                    if let Ok(mut f) = failure.lock() {
                        f.get_or_insert(e.into());
                    }
                }
            }
        });
    }
    let mut sent = Sent { acked: vec![0; s.starts.len()], ..Sent::default() };
    let mut retransmissions = vec![0; s.starts.len()];
    let ends = began + s.scenario.duration;
    let mut next = began;
    let outcome = loop {
        let now = Clock::now();
        if now >= next.min(ends) {
            let seen = match netlink::kernel_flows() {
                Ok(seen) => seen,
                Err(e) => break Err(e.into()),
            };
            let at = Clock::now() - began;
            let known = ports.lock().map(|p| p.clone()).unwrap_or_default();
            for KernelFlow { port, cwnd, acked, retransmitted } in seen {
                let Some(&flow) = known.get(&port) else { continue };
                sent.acked[flow as usize] = acked;
                retransmissions[flow as usize] = retransmitted;
                sent.samples.push(Sample { at, flow, cwnd: cwnd.into(), acked });
            }
            next += s.every;
        }
        sent.took = now - began;
        if now >= ends || stop() {
            break Ok(());
        }
        if let Some(e) = failure.lock().ok().and_then(|mut f| f.take()) {
            break Err(e);
        }
        let left = (next.min(ends) - Clock::now()).min(Duration::from_millis(20));
        std::thread::sleep(StdDuration::from_nanos(left.as_nanos()));
    };
    over.store(true, Ordering::Relaxed);
    outcome?;
    sent.retransmissions = retransmissions.iter().sum();
    Ok(sent)
}
