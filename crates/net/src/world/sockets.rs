//! The kernel sockets of one sender, which carry a session.

use crate::app::Carrier;
use crate::device::netlink::{self, KernelFlow};
use crate::device::ready::Ready;
use crate::error::NetError;
use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn, sockopt};
use skyhaul_apps::Datagram;
use skyhaul_base::Instant;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

/// The content of all data sent.
static ZEROS: [u8; 1 << 17] = [0; 1 << 17];
/// Segment sizes that the kernel accepts for a connection (TCP_MAXSEG of tcp(7)), bytes.
const SEGMENTS: std::ops::RangeInclusive<u32> = 88..=32_767;
/// IPv4 and TCP headers without options, bytes.
const HEADERS: u32 = 40;

/// How connections are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionSettings<'a> {
    /// The receiver.
    pub(super) to: SocketAddrV4,
    /// The kernel's congestion control.
    pub(super) control: &'a str,
    /// Largest packet (MTU), bytes.
    pub(super) packet: u32,
}

/// A connection.
#[derive(Debug)]
struct Connection {
    transfer: u64,
    stream: TcpStream,
    /// Bytes written.
    written: u64,
    /// The receiver has answered the end of the data.
    acknowledged: bool,
}

/// The kernel sockets of one sender. To be used in the namespace in which they were made.
#[derive(Debug)]
pub(super) struct Sockets<'a> {
    settings: ConnectionSettings<'a>,
    ready: &'a Ready,
    /// Number under which its sockets are registered.
    number: u64,
    connections: Vec<Connection>,
    /// The socket for datagrams, and its address.
    datagrams: Option<(UdpSocket, SocketAddr)>,
    /// Source address of its first connection.
    first_source: Option<SocketAddr>,
    /// Payload bytes acknowledged and segments retransmitted over released connections.
    past: (u64, u64),
    room: Vec<u8>,
    failure: Option<io::Error>,
}

impl<'a> Sockets<'a> {
    /// Uses connections.
    pub(super) fn connections(settings: ConnectionSettings<'a>, ready: &'a Ready, number: u64) -> Self {
        Self {
            settings,
            ready,
            number,
            connections: Vec::new(),
            datagrams: None,
            first_source: None,
            past: (0, 0),
            room: Vec::new(),
            failure: None,
        }
    }
    /// Sends datagrams from this address.
    pub(super) fn datagrams(
        settings: ConnectionSettings<'a>,
        from: Ipv4Addr,
        ready: &'a Ready,
        number: u64,
    ) -> Result<Self, NetError> {
        let socket = UdpSocket::bind((from, 0)).and_then(|s| s.connect(settings.to).map(|()| s));
        let local = socket.and_then(|s| Ok((s.local_addr()?, s)));
        let (local, socket) =
            local.map_err(|e| NetError::of_sending(format!("send datagrams to {}", settings.to), e))?;
        Ok(Self { datagrams: Some((socket, local)), ..Self::connections(settings, ready, number) })
    }
    /// Source address of datagrams.
    pub(super) fn datagram_source(&self) -> Option<SocketAddr> {
        self.datagrams.as_ref().map(|(_, local)| *local)
    }
    /// Source address of its first connection.
    pub(super) fn first_source(&self) -> Option<SocketAddr> {
        self.first_source
    }
    /// Why a connection failed.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }
    /// Payload bytes acknowledged and segments retransmitted so far, and the congestion window of the connection, segments, if
    /// there is exactly one; `seen` are the connections of the kernel.
    pub(super) fn counts(&self, seen: &[KernelFlow]) -> (u64, u64, Option<f64>) {
        let (mut acked, mut again) = self.past;
        let mut cwnd = None;
        for connection in &self.connections {
            let Some(flow) = self.flow(connection, seen) else { continue };
            // Without our SYN, and without the FIN.
            acked += flow.acked.saturating_sub(1).min(connection.written);
            again += flow.retransmitted;
            cwnd = Some(f64::from(flow.cwnd));
        }
        (acked, again, cwnd.filter(|_| self.connections.len() == 1))
    }

    /// What the kernel knows of a connection.
    fn flow(&self, connection: &Connection, seen: &[KernelFlow]) -> Option<KernelFlow> {
        let ports = (connection.stream.local_addr().ok()?.port(), self.settings.to.port());
        seen.iter().find(|f| f.ports == ports).copied()
    }
    /// Opens a connection. The congestion control is set before the SYN: if the default paces (BBR), a socket that leaves it
    /// after the handshake stays paced.
    fn connect(&self) -> Result<TcpStream, NetError> {
        let ConnectionSettings { to, control, packet } = self.settings;
        let fail = |e: nix::Error| NetError::os(format!("connect to {to} with {control}"), e);
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket::socket(AddressFamily::Inet, SockType::Stream, flags, None).map_err(fail)?;
        socket::setsockopt(&fd, sockopt::TcpCongestion, &control.into()).map_err(fail)?;
        let segment = packet.saturating_sub(HEADERS);
        if SEGMENTS.contains(&segment) {
            socket::setsockopt(&fd, sockopt::TcpMaxSeg, &segment).map_err(fail)?;
        }
        match socket::connect(fd.as_raw_fd(), &SockaddrIn::from(to)) {
            Ok(()) | Err(nix::Error::EINPROGRESS) => Ok(fd.into()),
            Err(e) => Err(NetError::of_sending(format!("connect to {to}"), e)),
        }
    }
    fn connection(&mut self, transfer: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|c| c.transfer == transfer)
    }
}

impl Carrier for Sockets<'_> {
    type Error = NetError;

    fn open(&mut self, _now: Instant, transfer: u64) -> Result<(), NetError> {
        let stream = self.connect()?;
        self.ready.add(&stream, self.number)?;
        self.first_source = self.first_source.or_else(|| stream.local_addr().ok());
        self.connections.push(Connection { transfer, stream, written: 0, acknowledged: false });
        Ok(())
    }
    fn write(&mut self, _now: Instant, transfer: u64, most: u64) -> u64 {
        let Some(connection) = self.connection(transfer) else { return 0 };
        let mut written = 0;
        while written < most {
            let most = usize::try_from(most - written).unwrap_or(usize::MAX);
            match connection.stream.write(ZEROS.get(..most).unwrap_or(&ZEROS)) {
                Ok(n) => written += n as u64,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => {
                    self.failure.get_or_insert(e);
                    return written;
                }
            }
        }
        connection.written += written;
        written
    }
    /// The kernel cannot take data back; `tcp_notsent_lowat` of the namespace keeps unsent data small.
    fn take_back(&mut self, _now: Instant, _transfer: u64) {}
    fn finish(&mut self, _now: Instant, transfer: u64) {
        let Some(connection) = self.connection(transfer) else { return };
        if connection.written == 0 {
            // Nothing to acknowledge; perhaps there is no connection yet.
            connection.acknowledged = true;
        } else if let Err(e) = connection.stream.shutdown(Shutdown::Write) {
            self.failure.get_or_insert(e);
        }
    }
    /// Whether the receiver has answered the end of the data with one byte: no event of a socket says that all is
    /// acknowledged.
    fn is_acknowledged(&mut self, _now: Instant, transfer: u64) -> bool {
        let Some(connection) = self.connection(transfer) else { return false };
        if connection.acknowledged {
            return true;
        }
        match connection.stream.read(&mut [0; 8]) {
            Ok(n) => {
                connection.acknowledged = n > 0;
                if n == 0 {
                    let e = io::Error::new(
                        ErrorKind::ConnectionAborted,
                        "the receiver closed the connection without an answer",
                    );
                    self.failure.get_or_insert(e);
                }
                n > 0
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => false,
            Err(e) => {
                self.failure.get_or_insert(e);
                false
            }
        }
    }
    fn release(&mut self, _now: Instant, transfer: u64) {
        let Some(at) = self.connections.iter().position(|c| c.transfer == transfer) else { return };
        let connection = self.connections.swap_remove(at);
        let seen = netlink::kernel_flows().unwrap_or_default();
        let again = self.flow(&connection, &seen).map_or(0, |f| f.retransmitted);
        self.past = (self.past.0 + connection.written, self.past.1 + again);
    }
    fn datagram(&mut self, _now: Instant, datagram: &Datagram) -> Result<(), NetError> {
        let Some((socket, _)) = &self.datagrams else { return Ok(()) };
        self.room.resize(datagram.len as usize, 0);
        let _ = datagram.write(&mut self.room);
        match socket.send(&self.room) {
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                Err(NetError::of_sending(format!("send datagrams to {}", self.settings.to), e))
            }
            // An ICMP error about an earlier datagram says nothing about this one.
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_testkit::need;
    use std::net::TcpListener;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_firewall_that_refuses_datagrams_is_named() {
        let Some(space) = need::granted(crate::Namespace::new()) else { return };
        if !need::program("nft") {
            return;
        }
        space
            .within(|| {
                let rules = "add table inet t; add chain inet t o { type filter hook output priority 0; }; add rule inet t o udp dport 5001 drop";
                assert!(Command::new("nft").arg(rules).status().expect("runs").success());
                let ready = Ready::new().expect("descriptors");
                let sent = |port: u16| {
                    let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
                    let settings = ConnectionSettings { to, control: "reno", packet: 1500 };
                    let sockets = Sockets::datagrams(settings, Ipv4Addr::LOCALHOST, &ready, 0);
                    let datagram = Datagram { number: 0, sent_at: Instant::ZERO, len: 100 };
                    sockets.expect("binds").datagram(Instant::ZERO, &datagram)
                };
                assert!(sent(5002).is_ok());
                let e = sent(5001).expect_err("is refused").to_string();
                assert!(e.starts_with("cannot send datagrams to 127.0.0.1:5001: a firewall of this machine"), "{e}");
                assert!(!e.contains("CAP_NET_ADMIN"), "{e}");
            })
            .expect("enters");
    }

    #[test]
    fn only_payload_counts_as_acknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let Ok(SocketAddr::V4(to)) = listener.local_addr() else { panic!("IPv4") };
        let ready = Ready::new().expect("descriptors");
        let settings = ConnectionSettings { to, control: "reno", packet: 1500 };
        let mut sockets = Sockets::connections(settings, &ready, 0);
        sockets.open(Instant::ZERO, 0).expect("connects");
        let (mut peer, _) = listener.accept().expect("connects");
        while sockets.write(Instant::ZERO, 0, 10) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        peer.read_exact(&mut [0; 10]).expect("reads");
        // With the SYN, and then with the FIN.
        for acked in [11, 12] {
            let seen = loop {
                let seen = netlink::kernel_flows().expect("sock_diag");
                if sockets.flow(&sockets.connections[0], &seen).expect("is there").acked == acked {
                    break seen;
                }
                std::thread::sleep(Duration::from_millis(1));
            };
            assert_eq!(sockets.counts(&seen).0, 10);
            sockets.finish(Instant::ZERO, 0);
        }
    }
}
