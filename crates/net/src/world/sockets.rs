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
/// Segment sizes that the kernel accepts for a connection.
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
struct Line {
    transfer: u64,
    stream: TcpStream,
    written: u64,
    acknowledged: bool,
}

impl Line {
    fn port(&self) -> Option<u16> {
        self.stream.local_addr().ok().map(|a| a.port())
    }
}

/// The kernel sockets of one sender. To be used in the namespace in which it was made.
#[derive(Debug)]
pub(super) struct Sockets<'a> {
    settings: ConnectionSettings<'a>,
    ready: &'a Ready,
    /// Number under which its sockets are registered.
    number: u64,
    lines: Vec<Line>,
    datagrams: Option<(UdpSocket, SocketAddr)>,
    /// Source address of its first connection.
    stream: Option<SocketAddr>,
    /// Bytes acknowledged and segments retransmitted over released connections.
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
            lines: Vec::new(),
            datagrams: None,
            stream: None,
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
            local.map_err(|e| NetError::os(format!("send datagrams to {}", settings.to), e))?;
        Ok(Self { datagrams: Some((socket, local)), ..Self::connections(settings, ready, number) })
    }
    /// Source address of datagrams.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.datagrams.as_ref().map(|(_, local)| *local)
    }
    /// Source address of its first connection.
    pub(super) fn stream(&self) -> Option<SocketAddr> {
        self.stream
    }
    /// Why a connection failed.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }
    /// Bytes acknowledged and segments retransmitted so far, and the window of its only connection, segments.
    pub(super) fn counts(&self, seen: &[KernelFlow]) -> (u64, u64, Option<f64>) {
        let (mut acked, mut again) = self.past;
        let mut cwnd = None;
        for line in &self.lines {
            let Some(flow) = line.port().and_then(|port| seen.iter().find(|f| f.port == port)) else {
                continue;
            };
            acked += flow.acked;
            again += flow.retransmitted;
            cwnd = Some(f64::from(flow.cwnd));
        }
        (acked, again, cwnd.filter(|_| self.lines.len() == 1))
    }

    /// Opens a connection. The congestion control is set before the SYN: set later, a pacing default would leave
    /// its pacing behind.
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
            Err(e) => Err(fail(e)),
        }
    }
    fn line(&mut self, transfer: u64) -> Option<&mut Line> {
        self.lines.iter_mut().find(|l| l.transfer == transfer)
    }
}

impl Carrier for Sockets<'_> {
    type Error = NetError;

    fn open(&mut self, _now: Instant, transfer: u64) -> Result<(), NetError> {
        let stream = self.connect()?;
        self.ready.add(&stream, self.number)?;
        self.stream = self.stream.or_else(|| stream.local_addr().ok());
        self.lines.push(Line { transfer, stream, written: 0, acknowledged: false });
        Ok(())
    }
    fn write(&mut self, _now: Instant, transfer: u64, most: u64) -> u64 {
        let Some(line) = self.line(transfer) else { return 0 };
        let mut written = 0;
        while written < most {
            let most = usize::try_from(most - written).unwrap_or(usize::MAX);
            match line.stream.write(ZEROS.get(..most).unwrap_or(&ZEROS)) {
                Ok(n) => written += n as u64,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => {
                    self.failure.get_or_insert(e);
                    return written;
                }
            }
        }
        line.written += written;
        written
    }
    /// The kernel cannot take data back; the limit of the namespace keeps unsent data small.
    fn take_back(&mut self, _now: Instant, _transfer: u64) {}
    fn finish(&mut self, _now: Instant, transfer: u64) {
        let Some(line) = self.line(transfer) else { return };
        if line.written == 0 {
            // Nothing to acknowledge; perhaps there is no connection yet.
            line.acknowledged = true;
        } else if let Err(e) = line.stream.shutdown(Shutdown::Write) {
            self.failure.get_or_insert(e);
        }
    }
    /// The kernel does not report this. The receiver does, with one byte.
    fn is_acknowledged(&mut self, _now: Instant, transfer: u64) -> bool {
        let Some(line) = self.line(transfer) else { return false };
        if line.acknowledged {
            return true;
        }
        match line.stream.read(&mut [0; 8]) {
            Ok(n) => {
                line.acknowledged = n > 0;
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
        let Some(at) = self.lines.iter().position(|l| l.transfer == transfer) else { return };
        let line = self.lines.swap_remove(at);
        let seen = netlink::kernel_flows().unwrap_or_default();
        let again =
            line.port().and_then(|port| seen.iter().find(|f| f.port == port)).map_or(0, |f| f.retransmitted);
        self.past = (self.past.0 + line.written, self.past.1 + again);
    }
    fn datagram(&mut self, _now: Instant, datagram: &Datagram) -> Result<(), NetError> {
        let Some((socket, _)) = &self.datagrams else { return Ok(()) };
        self.room.resize(datagram.len as usize, 0);
        let _ = datagram.write(&mut self.room);
        match socket.send(&self.room) {
            // An ICMP error about an earlier datagram says nothing about this one.
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
