//! Kernel sockets of the terrestrial side: accepted connections, which hosts open to addresses behind the link, and
//! connections to hosts, which have the address of a client behind the link as their source (IP_TRANSPARENT,
//! Documentation/networking/tproxy.rst of the kernel).

use crate::config::Preserve;
use crate::error::GatewayError;
use crate::rules::SOCKET_MARK;
use nix::sys::socket::MsgFlags;
use skyhaul_net::sockets::{Connections, KernelConn};
use skyhaul_relay::{Bytes, End};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use std::cell::RefCell;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Listen backlog, connections. The kernel limits it to net.core.somaxconn.
const BACKLOG: i32 = 4096;
/// Maximum bytes per read from a socket.
pub(crate) const CHUNK: usize = 1 << 16;

/// A non-blocking TCP socket of the family of `address` that may be bound to any address (IP_TRANSPARENT).
fn socket(address: IpAddr) -> io::Result<Socket> {
    let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))?;
    // The kernel has one flag for both address families.
    socket.set_ip_transparent_v4(true)?;
    // Connections that a listener accepts inherit the mark.
    socket.set_mark(SOCKET_MARK)?;
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// A listener for intercepted connections to any address. The kernel chooses its port.
pub(crate) fn listen(v6: bool) -> Result<TcpListener, GatewayError> {
    // The listener is bound to loopback: a wildcard address would match every packet to its port in the `socket` match of
    // the nftables rules.
    let here: IpAddr = if v6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
    let open = || {
        let socket = socket(here)?;
        if v6 {
            socket.set_only_v6(true)?;
        }
        socket.bind(&SocketAddr::new(here, 0).into())?;
        prepare(&socket)?;
        enable_keepalive(&socket)?;
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

/// A listener at an address of this machine, for a forwarded port.
pub(crate) fn listen_at(at: SocketAddr) -> Result<TcpListener, GatewayError> {
    let open = || {
        let listener = TcpListener::bind(at)?;
        prepare(&socket2::SockRef::from(&listener))?;
        enable_keepalive(&socket2::SockRef::from(&listener))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    open().map_err(GatewayError::os(format!("listen at {at}, as [[forward]] says")))
}

/// Idle time before the first keepalive to a terrestrial host.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Sets the options of a connection's socket, or of a listener, whose connections inherit them.
fn prepare(socket: &Socket) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    // An urgent byte stays where it is in the stream; only its mark is lost (RFC 6093 §3.1).
    socket.set_out_of_band_inline(true)?;
    // If the gateway is killed, the kernel resets open connections. A FIN would make a truncated stream look complete.
    socket.set_linger(Some(Duration::ZERO))
}

/// Turns on the keepalives of a kernel socket, which find out whether a silent host still exists.
fn enable_keepalive(socket: &Socket) -> io::Result<()> {
    let keepalive =
        TcpKeepalive::new().with_time(KEEPALIVE).with_interval(Duration::from_secs(10)).with_retries(3);
    socket.set_tcp_keepalive(&keepalive)
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The server has not answered the SYN yet.
    Connecting,
    /// Both directions may carry data.
    Open,
    /// The end of the peer's stream was read; data may still be sent.
    PeerEnded,
    /// It has failed or is aborted. It is reset when it is closed, because its linger time is zero.
    Failed,
}

/// A kernel socket and its readiness.
#[derive(Debug)]
pub(crate) struct Near {
    stream: TcpStream,
    v4: bool,
    /// Whether a read may succeed: true from a readiness event until a read would have blocked.
    readable: bool,
    /// Whether a write may succeed, in the same sense.
    writable: bool,
    phase: Phase,
    /// The kernel sends keepalives.
    kept_alive: bool,
    /// The kernel's list of connections, where [`Self::state`] looks the socket up; `None`: nobody asks for the state.
    kernel: Option<Arc<Connections>>,
    /// The last state that the kernel had for the socket.
    state: Option<KernelConn>,
}

impl Near {
    /// An accepted connection of `client`. Its socket has inherited the options of the listener.
    ///
    /// # Errors
    /// If the kernel refuses a socket option.
    pub(crate) fn accepted(stream: TcpStream, client: SocketAddr) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { readable: true, writable: true, kept_alive: true, ..Self::new(stream, client.is_ipv4()) })
    }

    /// Starts to connect to `server`, from the address and the port of `client`, from its address only, or from an address
    /// of this machine, as `preserve` says. Its packets carry `dscp`.
    ///
    /// # Errors
    /// If the kernel refuses the socket, the address or the connection at once.
    pub(crate) fn connect(
        client: SocketAddr,
        server: SocketAddr,
        preserve: Preserve,
        dscp: u8,
    ) -> io::Result<Self> {
        let from = match preserve {
            Preserve::Full => Some(client),
            Preserve::Address => Some(SocketAddr::new(client.ip(), 0)),
            Preserve::None => None,
        };
        let stream = match Self::start_connect(from, server, dscp) {
            // The port is in use, or an earlier connection from it is in TIME-WAIT: another port of the same address.
            Err(e)
                if preserve == Preserve::Full
                    && matches!(e.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable) =>
            {
                Self::start_connect(Some(SocketAddr::new(client.ip(), 0)), server, dscp)
            }
            other => other,
        }?;
        Ok(Self { phase: Phase::Connecting, ..Self::new(stream, server.is_ipv4()) })
    }

    fn new(stream: TcpStream, v4: bool) -> Self {
        Self {
            stream,
            v4,
            readable: false,
            writable: false,
            phase: Phase::Open,
            kept_alive: false,
            kernel: None,
            state: None,
        }
    }

    /// A socket that connects to `server`, from `from` or an address that the kernel chooses.
    fn start_connect(from: Option<SocketAddr>, server: SocketAddr, dscp: u8) -> io::Result<TcpStream> {
        let socket = socket(server.ip())?;
        if dscp != 0 {
            let class = u32::from(dscp) << 2;
            let _ = if server.is_ipv4() { socket.set_tos_v4(class) } else { socket.set_tclass_v6(class) };
        }
        prepare(&socket)?;
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

    /// Turns keepalives on, unless they are on. Only connections that last need them: keepalives begin after a minute, and to
    /// turn them on takes four system calls.
    pub(crate) fn keep_alive(&mut self) {
        if !std::mem::replace(&mut self.kept_alive, true) {
            let _ = enable_keepalive(&socket2::SockRef::from(&self.stream));
        }
    }
    /// Marks the connection as failed, so that closing resets it.
    pub(crate) fn give_up(&mut self) {
        self.phase = Phase::Failed;
    }
    /// Marks the socket as not readable until the next readiness event.
    pub(crate) fn await_data(&mut self) {
        self.readable = false;
    }
    /// Whether data, the end of the stream or an error may be readable.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable
    }
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }
    /// DSCP of the packets that the socket sends: that of the client's SYN if the kernel reflects it
    /// (`net.ipv4.tcp_reflect_tos`).
    pub(crate) fn dscp(&self) -> u8 {
        let socket = socket2::SockRef::from(&self.stream);
        let class = if self.v4 { socket.tos_v4() } else { socket.tclass_v6() };
        class.map_or(0, |c| (c >> 2) as u8 & 0x3f)
    }
    /// Whether the server has not answered yet.
    pub(crate) fn is_connecting(&self) -> bool {
        self.phase == Phase::Connecting
    }
    pub(crate) fn has_failed(&self) -> bool {
        self.phase == Phase::Failed
    }
    /// Makes [`Self::state`] ask `kernel`.
    pub(crate) fn observe(&mut self, kernel: Arc<Connections>) {
        self.kernel = Some(kernel);
    }
    /// The state of the kernel's socket, or the last known one: the kernel forgets the socket with the last FIN.
    pub(crate) fn state(&mut self) -> Option<KernelConn> {
        if let Some(kernel) = &self.kernel
            && let (Ok(local), Ok(remote)) = (self.stream.local_addr(), self.stream.peer_addr())
        {
            self.state = kernel.find(local, remote).or(self.state);
        }
        self.state
    }
    /// Processes a readiness event, which may complete or fail a pending connection.
    pub(crate) fn wake(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
        if self.is_connecting() && writable {
            self.phase = match self.stream.take_error() {
                Ok(None) => Phase::Open,
                _ => Phase::Failed,
            };
        }
    }
    /// Closes in order: what was written is still delivered.
    pub(crate) fn close(self) {
        let _ = socket2::SockRef::from(&self.stream).set_linger(None);
    }
}

/// Flag of send(2) in linux/socket.h: the kernel keeps a partial segment until more follows, so that the FIN leaves with the last data.
const MSG_MORE: i32 = 0x8000;

/// A kernel socket as an end of a relay.
pub(crate) struct Side<'a> {
    pub(crate) near: &'a mut Near,
    /// Memory for bytes on their way between the socket and the relay's buffer, shared by all flows of a thread.
    pub(crate) spare: &'a RefCell<Vec<u8>>,
}

impl Side<'_> {
    fn send(&mut self, from: &mut Bytes, flags: i32) -> u64 {
        let near = &mut *self.near;
        if !near.writable || near.is_connecting() {
            return 0;
        }
        from.drain(&mut self.spare.borrow_mut(), |waiting| {
            let socket = socket2::SockRef::from(&near.stream);
            let n = Self::moved(near, socket.send_with_flags(waiting, flags | MsgFlags::MSG_NOSIGNAL.bits()));
            near.writable = n.is_some();
            n.unwrap_or(0)
        }) as u64
    }
    /// The number of bytes that a read or write moved; `None` if it would have blocked or has failed. After a failure, `near` is given up.
    fn moved(near: &mut Near, result: io::Result<usize>) -> Option<usize> {
        match result {
            Ok(n) => Some(n),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            Err(_) => {
                near.give_up();
                None
            }
        }
    }
}

impl End<Bytes> for Side<'_> {
    fn ended(&self) -> bool {
        self.near.phase == Phase::PeerEnded
    }
    fn failed(&self) -> bool {
        self.near.has_failed()
    }
    fn read(&mut self, into: &mut Bytes, most: u64) -> u64 {
        let near = &mut *self.near;
        if !near.readable || matches!(near.phase, Phase::PeerEnded | Phase::Connecting) {
            return 0;
        }
        let most = most.min(CHUNK as u64) as usize;
        into.fill(&mut self.spare.borrow_mut(), most, |room| {
            let n = Self::moved(near, (&near.stream).read(room));
            match n {
                Some(0) => {
                    // After a failure, a read of no bytes is no end of the stream.
                    if near.phase == Phase::Open {
                        near.phase = Phase::PeerEnded;
                    }
                    // For the log: the kernel forgets the socket with the last FIN.
                    near.state();
                }
                Some(_) => {}
                None => near.readable = false,
            }
            n.unwrap_or(0)
        }) as u64
    }
    fn write(&mut self, from: &mut Bytes) -> u64 {
        self.send(from, 0)
    }
    fn write_last(&mut self, from: &mut Bytes) -> u64 {
        self.send(from, MSG_MORE)
    }
    fn finish(&mut self) {
        self.near.state();
        let _ = self.near.stream.shutdown(Shutdown::Write);
    }
    fn abort(&mut self) {
        self.near.give_up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_connections_have_the_options_of_the_listener() {
        let listener = listen_at(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let accepted = loop {
            match listener.accept() {
                Ok((stream, from)) => break Near::accepted(stream, from).expect("a connection"),
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
            }
        };
        let socket = socket2::SockRef::from(accepted.stream());
        assert!(socket.tcp_nodelay().expect("an option") && socket.keepalive().expect("an option"));
        assert!(socket.out_of_band_inline().expect("an option"));
        assert_eq!(socket.linger().expect("an option"), Some(Duration::ZERO));
        assert_eq!(socket.tcp_keepalive_time().expect("an option"), KEEPALIVE);
        assert_eq!(socket.tcp_keepalive_interval().expect("an option"), Duration::from_secs(10));
        assert_eq!(socket.tcp_keepalive_retries().expect("an option"), 3);
        // To drop the socket without an orderly close resets the connection.
        drop(accepted);
        assert_eq!((&client).read(&mut [0]).expect_err("a reset").kind(), ErrorKind::ConnectionReset);
    }

    #[test]
    fn urgent_bytes_stay_in_the_stream() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let sender = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        sender.connect(&listener.local_addr().expect("an address").into()).expect("a connection");
        let (mut accepted, _) = listener.accept().expect("a connection");
        prepare(&socket2::SockRef::from(&accepted)).expect("options");
        sender.send(b"before").expect("sent");
        sender.send_out_of_band(b"!").expect("sent");
        sender.send(b"after").expect("sent");
        drop(sender);
        let mut read = Vec::new();
        accepted.read_to_end(&mut read).expect("data");
        assert_eq!(read, b"before!after");
    }
}
