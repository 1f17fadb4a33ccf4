//! The thread that tests paths and answers the tests of others, with its UDP sockets at the satellite interface.

use super::answer::Answerer;
use super::message::{Message, ROOM};
use super::tester::{Outgoing, Tester};
use super::trust::Trust;
use crate::config::Config;
use crate::error::GatewayError;
use crate::stamp;
use crate::worker::Worker;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg,
    sendmsg, setsockopt, sockopt,
};
use skyhaul_base::Rng;
use skyhaul_net::Clock;
use skyhaul_wire::Plan;
use socket2::{Domain, Protocol, Socket, Type};
use std::hash::{BuildHasher, RandomState};
use std::io::{IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// How long the thread waits before it looks whether it is to stop, milliseconds.
const PATIENCE: u16 = 200;
/// Socket buffers, bytes: room for a whole train.
const BUFFER: usize = 1 << 20;

/// Opens the socket of an address family, at the satellite interface alone.
fn open(v6: bool, port: u16, interface: &str) -> std::io::Result<Socket> {
    let domain = if v6 { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, Type::DGRAM.nonblocking().cloexec(), Some(Protocol::UDP))?;
    // Greetings that are addressed to hosts arrive here, too: see `tproxy` in `rules::interception`.
    socket.set_ip_transparent_v4(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    if v6 {
        socket.set_only_v6(true)?;
        socket.set_recv_tclass_v6(true)?;
    } else {
        socket.set_recv_tos_v4(true)?;
    }
    let any: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    socket.bind(&SocketAddr::new(any, port).into())?;
    // Sizes beyond net.core.rmem_max and wmem_max need privileges.
    let _ = setsockopt(&socket, sockopt::SndBufForce, &BUFFER);
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &BUFFER);
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    Ok(socket)
}

/// The testing thread; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Service {
    trust: Trust,
    worker: Worker,
}

impl Service {
    /// Starts in the calling thread's network namespace; `None` if the configuration asks for no tests. `gateway` is the number that
    /// this gateway states in handshakes; `wake` is called when there is a line for the log.
    ///
    /// # Errors
    /// If the port cannot be opened.
    pub(crate) fn start(
        config: &Config,
        gateway: Option<NonZeroU32>,
        wake: impl Fn() + Send + 'static,
    ) -> Result<Option<Self>, GatewayError> {
        let Some(gateway) = gateway.filter(|_| config.tests_priority()) else { return Ok(None) };
        let s = &config.priority_test;
        let mut sockets = Vec::new();
        for v6 in [false, true] {
            if v6 && !skyhaul_net::ipv6::is_on() {
                continue;
            }
            let socket = open(v6, s.port, &config.satellite.interface);
            sockets.push(socket.map_err(GatewayError::udp_port("priority-test", s.port))?);
        }
        let trust = Trust::new(s.interval.0 * 2, config.fallback.cc.name().into());
        let seed = RandomState::new().hash_one(0);
        let plan = Plan::default();
        let tester = Tester::new(Clock::now(), s, plan.dscp(true), Rng::stream(seed, "priority test"));
        let answerer = Answerer::new(gateway);
        let tests = Tests { sockets, tester, answerer, trust: trust.clone(), plan };
        let worker = Worker::start("priority", move |stop| tests.run(stop, &wake))?;
        Ok(Some(Self { trust, worker }))
    }
    /// Whether the thread has ended, and tests and answers no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.worker.has_ended()
    }
    /// The results of its tests.
    pub(crate) fn trust(&self) -> Trust {
        self.trust.clone()
    }
}

struct Tests {
    sockets: Vec<Socket>,
    tester: Tester,
    answerer: Answerer,
    trust: Trust,
    plan: Plan,
}

impl Tests {
    fn run(mut self, stop: &AtomicBool, wake: &impl Fn()) {
        while !stop.load(Ordering::Relaxed) {
            while let Some((gateway, host)) = self.trust.next_met() {
                self.tester.meet(Clock::now(), gateway, host);
            }
            while let Some(out) = self.tester.next_outgoing(Clock::now()) {
                self.send(&out);
            }
            while let Some((gateway, finding)) = self.tester.next_found() {
                self.trust.found(Clock::now(), gateway, finding);
                wake();
            }
            self.wait();
            self.receive();
        }
    }

    fn wait(&self) {
        let left = self.tester.next_timeout().since(Clock::now()).as_nanos() / 1_000_000;
        // Rounded up, so that the thread does not wake too early.
        let left = PollTimeout::from((left.min(u64::from(PATIENCE) - 1) + 1) as u16);
        let mut fds: Vec<_> =
            self.sockets.iter().map(|s| PollFd::new(s.as_fd(), PollFlags::POLLIN)).collect();
        let _ = poll(&mut fds, left);
    }

    /// Sends a message. What the system refuses is lost, as on a link.
    fn send(&self, out: &Outgoing) {
        let v6 = out.to.is_ipv6();
        let Some(socket) = self.sockets.get(usize::from(v6)) else { return };
        let mut bytes = [0; ROOM];
        let n = out.message.write(&mut bytes);
        let class = self.plan.dscp(out.low) << 2;
        let wide = i32::from(class);
        let with = [if v6 { ControlMessage::Ipv6TClass(&wide) } else { ControlMessage::Ipv4Tos(&class) }];
        let to = SockaddrStorage::from(out.to);
        let _ = sendmsg(
            socket.as_raw_fd(),
            &[IoSlice::new(bytes.get(..n).unwrap_or(&bytes))],
            &with,
            MsgFlags::MSG_DONTWAIT,
            Some(&to),
        );
    }

    fn receive(&mut self) {
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec, i32);
        let mut bytes = [0; ROOM];
        let sockets: Vec<_> = self.sockets.iter().map(AsRawFd::as_raw_fd).collect();
        for raw in sockets {
            // At most 1024 messages per turn, so that a flood does not stop the tests.
            for _ in 0..1024 {
                let mut into = [IoSliceMut::new(&mut bytes)];
                let got =
                    recvmsg::<SockaddrStorage>(raw, &mut into, Some(&mut control), MsgFlags::MSG_DONTWAIT);
                let Ok(got) = got else { break };
                let (mut class, mut stamped) = (0, None);
                for message in got.cmsgs().into_iter().flatten() {
                    match message {
                        ControlMessageOwned::Ipv4Tos(c) => class = c,
                        ControlMessageOwned::Ipv6TClass(c) => class = c as u8,
                        ControlMessageOwned::ScmTimestampns(t) => stamped = Some(t),
                        _ => {}
                    }
                }
                let (n, from) = (got.bytes, got.address.as_ref().and_then(address));
                let Some(message) = Message::read(bytes.get(..n).unwrap_or(&bytes)) else { continue };
                let Some(from) = from else { continue };
                let at = stamped.map_or_else(Clock::now, stamp::arrival);
                self.tester.take(Clock::now(), from, &message);
                if let Some(answer) = self.answerer.take(at, from, class >> 2, &message) {
                    self.send(&Outgoing { to: from, low: false, message: answer });
                }
            }
        }
    }
}

fn address(of: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = of.as_sockaddr_in().map(|a: &SockaddrIn| SocketAddr::new(a.ip().into(), a.port()));
    v4.or_else(|| of.as_sockaddr_in6().map(|a: &SockaddrIn6| SocketAddr::new(a.ip().into(), a.port())))
}
