//! Kernel sockets of the terrestrial side: who connects to somebody behind the link, and to whom we connect in the name of
//! somebody behind the link (IP_TRANSPARENT, Documentation/networking/tproxy.rst of the kernel).

use crate::config::Preserve;
use crate::error::GatewayError;
use skyhaul_relay::{Bytes, End, Fifo};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Connections that wait to be accepted. The kernel allows no more than net.core.somaxconn.
const BACKLOG: i32 = 4096;
/// What moves from or to a socket at a time, bytes.
pub(crate) const CHUNK: usize = 1 << 16;

fn socket(of: IpAddr) -> io::Result<Socket> {
    let domain = if of.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    // The kernel keeps one flag for both families.
    socket.set_ip_transparent_v4(true)?;
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// Takes connections to whatever address the kernel gives us. The port is the kernel's choice.
pub(crate) fn listen(v6: bool) -> Result<TcpListener, GatewayError> {
    // At loopback: at every address, the rules would take what comes to its port for a connection of ours.
    let here: IpAddr = if v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
    let open = || {
        let socket = socket(here)?;
        if v6 {
            socket.set_only_v6(true)?;
        }
        socket.bind(&SocketAddr::new(here, 0).into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    open().map_err(|e: io::Error| match e.kind() {
        ErrorKind::PermissionDenied => {
            skyhaul_net::NetError::Privileges { what: "accept connections to any address".into() }.into()
        }
        _ => GatewayError::os("listen for connections to any address")(e),
    })
}

/// Takes connections at an address of this machine.
pub(crate) fn listen_at(at: SocketAddr) -> Result<TcpListener, GatewayError> {
    let open = || {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    open().map_err(GatewayError::os(format!("listen at {at}, as [[forward]] says")))
}

/// What every socket of a connection is.
fn prepare(socket: &Socket, idle: Duration) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    // Should we be killed, the kernel resets what is open. An end of stream in its place would look like success.
    socket.set_linger(Some(Duration::ZERO))?;
    let keepalive =
        TcpKeepalive::new().with_time(idle).with_interval(Duration::from_secs(10)).with_retries(3);
    socket.set_tcp_keepalive(&keepalive)
}

/// A kernel socket, and what is known of it.
#[derive(Debug)]
pub(crate) struct Near {
    stream: TcpStream,
    /// Something may be there to be read, and there may be room: the last attempt did not say otherwise.
    readable: bool,
    writable: bool,
    connecting: bool,
    ended: bool,
    failed: bool,
}

impl Near {
    /// A connection that was accepted.
    pub(crate) fn accepted(stream: TcpStream, idle: Duration) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        prepare(&socket2::SockRef::from(&stream), idle)?;
        Ok(Self { stream, readable: true, writable: true, connecting: false, ended: false, failed: false })
    }

    /// Connects to `server`; it sees `client`, as far as `preserve` says.
    pub(crate) fn connect(
        client: SocketAddr,
        server: SocketAddr,
        preserve: Preserve,
        dscp: u8,
        idle: Duration,
    ) -> io::Result<Self> {
        let from = match preserve {
            Preserve::Full => Some(client),
            Preserve::Address => Some(SocketAddr::new(client.ip(), 0)),
            Preserve::None => None,
        };
        let stream = match Self::call(from, server, dscp, idle) {
            // The port is in use here, or an earlier connection from it has ended a moment ago: another one of the same
            // address.
            Err(e)
                if preserve == Preserve::Full
                    && matches!(e.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable) =>
            {
                Self::call(Some(SocketAddr::new(client.ip(), 0)), server, dscp, idle)
            }
            other => other,
        }?;
        Ok(Self { stream, readable: false, writable: false, connecting: true, ended: false, failed: false })
    }

    fn call(from: Option<SocketAddr>, server: SocketAddr, dscp: u8, idle: Duration) -> io::Result<TcpStream> {
        let socket = socket(server.ip())?;
        if dscp != 0 {
            // The class of its client's packets.
            let class = u32::from(dscp) << 2;
            let _ = if server.is_ipv4() { socket.set_tos_v4(class) } else { socket.set_tclass_v6(class) };
        }
        prepare(&socket, idle)?;
        if let Some(from) = from {
            socket.bind(&from.into())?;
        }
        match socket.connect(&server.into()) {
            Ok(()) => {}
            Err(e) if e.raw_os_error() == Some(nix::errno::Errno::EINPROGRESS as i32) => {}
            Err(e) => return Err(e),
        }
        Ok(socket.into())
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }
    /// DSCP of the packets that it sends: that of the client's SYN, where the kernel reflects it (`net.ipv4.tcp_reflect_tos`).
    pub(crate) fn dscp(&self) -> u8 {
        let socket = socket2::SockRef::from(&self.stream);
        let v4 = self.stream.local_addr().is_ok_and(|a| a.is_ipv4());
        let class = if v4 { socket.tos_v4() } else { socket.tclass_v6() };
        class.map_or(0, |c| (c >> 2) as u8 & 0x3f)
    }
    /// The server has not answered yet.
    pub(crate) fn is_connecting(&self) -> bool {
        self.connecting
    }
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }
    /// Something happened to it.
    pub(crate) fn wake(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
        if self.connecting && writable {
            match self.stream.take_error() {
                Ok(None) => self.connecting = false,
                _ => self.failed = true,
            }
        }
    }
    /// Closes in order: what was written is still delivered.
    pub(crate) fn close(self) {
        let _ = socket2::SockRef::from(&self.stream).set_linger(None);
    }
}

/// A socket as a relay sees it.
pub(crate) struct Side<'a> {
    pub(crate) near: &'a mut Near,
    /// Room for a chunk.
    pub(crate) chunk: &'a mut [u8],
}

impl Side<'_> {
    /// What came of an attempt: how many bytes, none for now, or a failure.
    fn outcome(near: &mut Near, outcome: io::Result<usize>) -> Option<usize> {
        match outcome {
            Ok(n) => Some(n),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            Err(_) => {
                near.failed = true;
                None
            }
        }
    }
}

impl End<Bytes> for Side<'_> {
    fn ended(&self) -> bool {
        self.near.ended
    }
    fn failed(&self) -> bool {
        self.near.failed
    }
    fn read(&mut self, into: &mut Bytes, most: u64) -> u64 {
        let near = &mut *self.near;
        if !near.readable || near.ended || near.connecting {
            return 0;
        }
        let room = self.chunk.len().min(most as usize);
        let n = match Self::outcome(near, (&near.stream).read(&mut self.chunk[..room])) {
            Some(0) => {
                near.ended = true;
                0
            }
            Some(n) => n,
            None => {
                near.readable = false;
                0
            }
        };
        into.0.extend(&self.chunk[..n]);
        n as u64
    }
    fn write(&mut self, from: &mut Bytes) -> u64 {
        let near = &mut *self.near;
        if !near.writable || near.connecting {
            return 0;
        }
        let mut written = 0;
        while !from.is_empty() {
            let Some(n) = Self::outcome(near, (&near.stream).write(from.0.as_slices().0)) else {
                near.writable = false;
                break;
            };
            from.0.drain(..n);
            written += n as u64;
        }
        if from.is_empty() {
            // An idle connection keeps no room.
            from.clear();
        }
        written
    }
    fn finish(&mut self) {
        let _ = self.near.stream.shutdown(Shutdown::Write);
    }
    fn abort(&mut self) {
        // Closed with what waits in it, it is reset.
        self.near.failed = true;
    }
}
