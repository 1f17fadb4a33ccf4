//! Kernel sockets that receive the data of flows: data of connections is read and discarded, datagrams are
//! measured.

use super::setting::Setting;
use crate::app::{ArrivalLog, Inbox};
use crate::device::Clock;
use crate::device::ready::Ready;
use crate::device::wait::{Wait, Waker};
use crate::error::NetError;
use skyhaul_base::{Duration, Instant};
use skyhaul_scenario::resolved::Transport;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How long a connection is kept after we answered the end of its data: the sender asks its kernel for the counters of the
/// connection, which the kernel has only until both ends have closed.
const KEPT: Duration = Duration::from_secs(1);
/// The answer to the end of the data.
const ANSWER: [u8; 1] = [0x06];

/// A socket; listeners and sockets for datagrams with their port.
#[derive(Debug)]
enum Socket {
    Listener(TcpListener, u16),
    Stream(Stream),
    Datagrams(UdpSocket, u16),
}

/// A connection.
#[derive(Debug)]
struct Stream {
    socket: TcpStream,
    /// Address and port of the sender.
    from: SocketAddr,
    /// Local port.
    port: u16,
    /// Bytes received.
    read: u64,
}

/// Bound sockets that are not read yet, and the log of the flows with a viewer.
#[derive(Debug)]
pub(super) struct Bound(Vec<Socket>, ArrivalLog);

/// Sockets read by a separate thread.
#[derive(Debug)]
pub(super) struct Receivers {
    over: Arc<AtomicBool>,
    waker: Waker,
    thread: JoinHandle<Result<(Inbox, ArrivalLog), NetError>>,
}

impl Receivers {
    /// Binds sockets for flow groups at this address of the receivers' namespace.
    pub(super) fn bind(s: &Setting<'_>, address: Ipv4Addr) -> Result<Bound, NetError> {
        let fail = |e: io::Error| NetError::os("listen in the receiver's namespace", e);
        s.server.within(|| {
            let bind = |transport, port| match transport {
                Transport::Tcp => {
                    let listener = TcpListener::bind((address, port))?;
                    listener.set_nonblocking(true)?;
                    Ok(Socket::Listener(listener, port))
                }
                // Rate-controlled flows were refused before: the kernel does not implement them.
                Transport::Udp | Transport::Tfrc(_) | Transport::Ssvp(_) => {
                    let socket = UdpSocket::bind((address, port))?;
                    socket.set_nonblocking(true)?;
                    Ok(Socket::Datagrams(socket, port))
                }
            };
            let sockets = s.groups().map(|(group, port)| bind(group.transport, port));
            sockets.collect::<io::Result<_>>().map(|all| Bound(all, s.watched())).map_err(fail)
        })?
    }
    /// Stops; returns the measurements of datagrams, and the arrivals of watched flows.
    pub(super) fn end(self) -> Result<(Inbox, ArrivalLog), NetError> {
        self.over.store(true, Ordering::Relaxed);
        self.waker.wake();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Bound {
    /// Starts reading. Datagrams count until `until`. With `answers`, the end of a connection's data is answered
    /// with one byte, for senders whose kernel does not report when everything is acknowledged.
    pub(super) fn run(self, answers: bool, until: Instant) -> Result<Receivers, NetError> {
        let ready = Ready::new()?;
        let mut wait = Wait::on(&[&ready])?;
        let mut reading = Reading {
            ready,
            answers,
            sockets: BTreeMap::new(),
            next: 0,
            closing: BTreeSet::new(),
            inbox: Inbox::new(until),
            watched: self.1,
            room: vec![0; 1 << 17],
        };
        for socket in self.0 {
            reading.add(socket)?;
        }
        let (over, waker) = (Arc::new(AtomicBool::new(false)), wait.waker());
        let flag = over.clone();
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                wait.until(reading.turn()?)?;
            }
            Ok((reading.inbox, reading.watched))
        });
        Ok(Receivers { over, waker, thread })
    }
}

/// The running receivers.
#[derive(Debug)]
struct Reading {
    ready: Ready,
    answers: bool,
    sockets: BTreeMap<u64, Socket>,
    next: u64,
    /// Connections to close, by time.
    closing: BTreeSet<(Instant, u64)>,
    inbox: Inbox,
    watched: ArrivalLog,
    room: Vec<u8>,
}

impl Reading {
    fn add(&mut self, socket: Socket) -> Result<(), NetError> {
        match &socket {
            Socket::Listener(s, _) => self.ready.add(s, self.next)?,
            Socket::Stream(s) => self.ready.add(&s.socket, self.next)?,
            Socket::Datagrams(s, _) => self.ready.add(s, self.next)?,
        }
        self.sockets.insert(self.next, socket);
        self.next += 1;
        Ok(())
    }

    /// Reads everything available; returns the latest time of the next call.
    fn turn(&mut self) -> Result<Instant, NetError> {
        let mut numbers = Vec::new();
        self.ready.take(&mut numbers)?;
        for number in numbers {
            self.read(number)?;
        }
        let now = Clock::now();
        while let Some((at, number)) = self.closing.first().copied() {
            if at > now {
                return Ok(at);
            }
            self.closing.pop_first();
            self.sockets.remove(&number);
        }
        Ok(Instant::MAX)
    }

    fn read(&mut self, number: u64) -> Result<(), NetError> {
        let Self { sockets, inbox, watched, room, .. } = self;
        let mut accepted = Vec::new();
        match sockets.get_mut(&number) {
            None => {}
            Some(Socket::Listener(listener, port)) => {
                while let Ok((socket, from)) = listener.accept() {
                    if socket.set_nonblocking(true).is_ok() {
                        accepted.push(Stream { socket, from: plain(from), port: *port, read: 0 });
                    }
                }
            }
            Some(Socket::Datagrams(socket, port)) => loop {
                match socket.recv_from(room) {
                    Ok((n, from)) => {
                        let (now, from) = (Clock::now(), plain(from));
                        let datagram = room.get(..n).unwrap_or_default();
                        inbox.arrived(now, from, datagram);
                        watched.datagram(now, from, *port, datagram);
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    // A signal; no ICMP error, since this socket sends nothing.
                    Err(_) => {}
                }
            },
            Some(Socket::Stream(stream)) => loop {
                match stream.socket.read(room) {
                    Ok(0) => {
                        if self.answers && !self.closing.iter().any(|(_, n)| *n == number) {
                            // One byte always fits into an empty buffer.
                            let _ = stream.socket.write(&ANSWER);
                            self.closing.insert((Clock::now() + KEPT, number));
                        } else if !self.answers {
                            sockets.remove(&number);
                        }
                        break;
                    }
                    Ok(n) => {
                        stream.read += n as u64;
                        watched.in_order(Clock::now(), stream.from, stream.port, stream.read);
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(_) => {
                        sockets.remove(&number);
                        break;
                    }
                }
            },
        }
        accepted.into_iter().try_for_each(|stream| self.add(Socket::Stream(stream)))
    }
}

/// An address in the senders' notation: IPv4-mapped addresses become IPv4.
fn plain(from: SocketAddr) -> SocketAddr {
    SocketAddr::new(from.ip().to_canonical(), from.port())
}
