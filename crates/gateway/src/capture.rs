//! Packets and events of chosen connections over the link, streamed through the control socket to the program that asks for them.
//!
//! ```text
//! driver ──▶ tap ──▶ bounded queue ──▶ thread ──▶ control socket ──▶ `skyhaul gateway capture` ──▶ files
//! ```
//! The gateway itself opens no file: the program that requests the capture writes the files, with its own rights. A slow reader loses
//! packets, which are counted, and never holds up the data path.

use crate::control;
use crate::error::GatewayError;
use crate::qlog;
use nix::sys::socket::{MsgFlags, recv};
use serde::{Deserialize, Serialize};
use skyhaul_base::{Duration, Instant};
use skyhaul_net::Clock;
use skyhaul_net::tap::{EndFilter, Filter, Reader, Socket, Tapped, Traced};
use skyhaul_trace::calendar::rfc3339_millis;
use skyhaul_trace::qlog::{Log, LogMetadata};
use skyhaul_wire::pcapng::Capture;
use std::cell::Cell;
use std::io::{self, BufWriter, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;

/// Maximum number of packets and events that wait for the reader; what does not fit is dropped and counted.
pub(crate) const QUEUE: usize = 4096;
/// Interval between checks for the end of the capture while nothing arrives.
const CHECK: std::time::Duration = std::time::Duration::from_millis(100);
/// How long a capture of one connection goes on after the connection has ended: the acknowledgement of the last FIN may follow.
const AFTER_END: Duration = Duration::from_secs(1);

/// What to capture, and how much of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Request {
    /// One connection, by its number in the status.
    pub flow: Option<u64>,
    /// Address and port of clients.
    pub client: EndText,
    /// Address and port of servers.
    pub server: EndText,
    /// Packets are wanted, as pcapng.
    pub pcap: bool,
    /// Events are wanted, as qlog.
    pub qlog: bool,
    /// Packets are captured with their payload; otherwise their headers alone.
    pub payload: bool,
    /// Maximum number of packets.
    pub packets: Option<u64>,
    /// Maximum size of both files together, bytes; the last packet or event may exceed it.
    pub bytes: Option<u64>,
    /// Maximum time, seconds.
    pub seconds: Option<f64>,
}

/// Address and port of an end, as people write it: `192.0.2.1`, `192.0.2.1:80`, `[fd00::1]:80`, `:80`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndText {
    ip: Option<IpAddr>,
    port: Option<u16>,
}

impl EndText {
    /// As a filter.
    #[must_use]
    pub fn filter(self) -> EndFilter {
        EndFilter { ip: self.ip, port: self.port }
    }
}

impl std::str::FromStr for EndText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(port) = text.strip_prefix(':').and_then(|p| p.parse().ok()) {
            return Ok(Self { ip: None, port: Some(port) });
        }
        if let Ok(ip) = text.parse() {
            return Ok(Self { ip: Some(ip), port: None });
        }
        let end: SocketAddr = text.parse().map_err(|_| {
            format!("{text:?} is no end: write \"192.0.2.1\", \"192.0.2.1:80\", \"[fd00::1]:80\" or \":80\"")
        })?;
        Ok(Self { ip: Some(end.ip()), port: Some(end.port()) })
    }
}

impl Request {
    /// The filter for clients and servers.
    #[must_use]
    pub fn filter(&self) -> Filter {
        Filter { client: self.client.filter(), server: self.server.filter() }
    }
    /// The command for the control socket.
    #[must_use]
    pub fn command(&self) -> String {
        format!("{} {}", control::CAPTURE, serde_json::to_string(self).unwrap_or_default())
    }
}

/// What a capture has captured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summary {
    /// Packets in the capture file.
    pub packets: u64,
    /// Bytes of both files.
    pub bytes: u64,
    /// Events in the log.
    pub events: u64,
    /// Packets and events that were lost because they came faster than they were taken.
    pub dropped: u64,
    /// Why it ended: `limit`, `stopped`, `flow-ended` or `gateway-ended`.
    pub ended: String,
}

/// Kinds of the chunks of the stream: the first byte of each. No text, such as a refusal, begins with such a byte.
const PCAP: u8 = 1;
const QLOG: u8 = 2;
const DONE: u8 = 3;
/// Maximum number of bytes in a chunk, without its kind and length.
const LONGEST: usize = 1 << 20;

/// Writes bytes to the control socket in chunks. A chunk is its kind, its length (four bytes, big-endian) and its bytes.
struct ChunkWriter {
    to: UnixStream,
    kind: u8,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(LONGEST);
        let mut chunk = Vec::with_capacity(5 + n);
        chunk.push(self.kind);
        chunk.extend((n as u32).to_be_bytes());
        chunk.extend(bytes.iter().take(n));
        self.to.write_all(&chunk)?;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One of the two files; its bytes are added to a count for both.
struct Output<'a> {
    to: BufWriter<ChunkWriter>,
    bytes: &'a Cell<u64>,
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.bytes.set(self.bytes.get() + n as u64);
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn output<'a>(to: &UnixStream, kind: u8, bytes: &'a Cell<u64>) -> io::Result<Output<'a>> {
    Ok(Output { to: BufWriter::with_capacity(16 << 10, ChunkWriter { to: to.try_clone()?, kind }), bytes })
}

/// A capture with what it needs to run.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) request: Request,
    pub(crate) reader: Reader,
    /// Where the tap is attached.
    pub(crate) socket: Arc<Socket>,
    pub(crate) gateway: String,
    pub(crate) interface: String,
    /// The ends of the connection that is captured, if it is only one.
    pub(crate) flow: Option<String>,
}

impl Running {
    /// Streams until a limit is reached, the reader closes its side of the connection, or the gateway ends.
    pub(crate) fn stream(self, to: &UnixStream) {
        let attached = Cell::new(true);
        // An error means that the reader has gone: there is nobody to tell.
        let _ = self.write(to, &attached);
        // Only this capture's own tap: by now that of another capture may be attached.
        if attached.get() {
            self.socket.detach();
        }
    }

    fn write(&self, to: &UnixStream, attached: &Cell<bool>) -> io::Result<()> {
        let (zero, epoch) = (Clock::now(), Clock::wall_nanos());
        let wall = |at: Instant| epoch.saturating_add((at.max(zero) - zero).as_nanos());
        let bytes = Cell::new(0);
        let mut pcap = Capture::new(output(to, PCAP, &bytes)?, 1 << 16)?.cut();
        let interface = pcap.interface(&self.interface, "satellite leg, between the stack and the kernel")?;
        let metadata = LogMetadata {
            title: &format!("gateway {}", self.gateway),
            description: &format!("captured by skyhaul {}", env!("CARGO_PKG_VERSION")),
            object: self.flow.as_deref().unwrap_or("connections over the link"),
            protocol: "TCP",
            vantage: "network",
            flow: None,
            began: Some(&rfc3339_millis(epoch)),
        };
        let mut log = Log::new(output(to, QLOG, &bytes)?, &metadata);
        let mut done = Summary::default();
        let ends = self.request.seconds.map(|s| zero + Duration::from_secs_f64(s));
        let full = |done: &Summary| {
            self.request.packets.is_some_and(|most| done.packets >= most)
                || self.request.bytes.is_some_and(|most| bytes.get() >= most)
        };
        let over = Cell::new(Instant::MAX);
        let mut take = |done: &mut Summary, tapped: Tapped| -> io::Result<()> {
            if let Tapped::Event { at, flow, what: Traced::Ended(_) } = &tapped
                && self.request.flow == Some(*flow)
            {
                over.set(*at + AFTER_END);
            }
            match tapped {
                Tapped::Packet { at, bytes: packet, total, .. } if self.request.pcap => {
                    done.packets += 1;
                    pcap.packet(wall(at), interface, &packet, total, false, None)?;
                }
                Tapped::Event { at, flow, what } if self.request.qlog => {
                    done.events += 1;
                    let (name, data) = qlog::event(&what);
                    // An event from just before the capture began gets the time of its beginning.
                    log.event(Instant::ZERO + (at.max(zero) - zero), Some(flow), name, &data);
                }
                _ => {}
            }
            Ok(())
        };
        done.ended = loop {
            let now = Clock::now();
            if full(&done) || ends.is_some_and(|at| now >= at) {
                break "limit";
            }
            if now >= over.get() {
                break "flow-ended";
            }
            if !self.socket.is_taken() {
                break "gateway-ended";
            }
            if closed(to) {
                break "stopped";
            }
            let wait =
                ends.map_or(CHECK, |at| CHECK.min(std::time::Duration::from_nanos((at - now).as_nanos())));
            match self.reader.from.recv_timeout(wait) {
                Ok(first) => {
                    take(&mut done, first)?;
                    // A limited number, so that the end is checked for under load, too.
                    for tapped in self.reader.from.try_iter().take(256) {
                        if full(&done) {
                            break;
                        }
                        take(&mut done, tapped)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break "gateway-ended",
            }
        }
        .into();
        self.socket.detach();
        attached.set(false);
        while !full(&done) {
            let Ok(tapped) = self.reader.from.try_recv() else { break };
            take(&mut done, tapped)?;
        }
        done.dropped = self.reader.dropped();
        pcap.dropped(wall(Clock::now()), interface, done.dropped)?;
        pcap.finish()?;
        log.finish()?;
        done.bytes = bytes.get();
        let mut end = output(to, DONE, &bytes)?;
        end.write_all(&serde_json::to_vec(&done).unwrap_or_default())?;
        end.flush()
    }
}

/// Whether the other end has closed its side of the connection.
fn closed(stream: &UnixStream) -> bool {
    match recv(stream.as_raw_fd(), &mut [0; 64], MsgFlags::MSG_DONTWAIT) {
        Ok(n) => n == 0,
        Err(e) => e != nix::errno::Errno::EAGAIN && e != nix::errno::Errno::EINTR,
    }
}

/// Asks a running gateway for a capture and writes it, until it is over. `stop` says whether to end it now. `pcap` and `qlog`
/// take the two files; what was not asked for is not written.
///
/// # Errors
/// If no gateway of that name runs, it refuses the request, or a file cannot be written.
pub fn run(
    folder: &Path,
    name: &str,
    request: &Request,
    stop: impl Fn() -> bool,
    mut pcap: Option<impl Write>,
    mut qlog: Option<impl Write>,
) -> Result<Summary, GatewayError> {
    let mut from = control::begin(folder, name, &request.command())?;
    let fail = || GatewayError::os(format!("read the capture of the gateway {name:?}"));
    from.set_read_timeout(Some(CHECK)).map_err(fail())?;
    let (mut stopped, mut silent) = (false, std::time::Duration::ZERO);
    // The stop is passed on to the gateway, which then sends the rest.
    let mut read = |from: &mut UnixStream, into: &mut [u8]| -> io::Result<()> {
        let mut into = into;
        while !into.is_empty() {
            if stop() && !stopped {
                stopped = true;
                from.shutdown(std::net::Shutdown::Write)?;
            }
            match from.read(into) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    into = into.get_mut(n..).unwrap_or_default();
                    silent = std::time::Duration::ZERO;
                }
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    silent += CHECK;
                    // A gateway answers a stop at once.
                    if stopped && silent > control::PATIENCE {
                        return Err(e);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    };
    let mut first = true;
    loop {
        let mut head = [0; 5];
        if let Err(e) = read(&mut from, &mut head[..1]) {
            return Err(if e.kind() == io::ErrorKind::UnexpectedEof {
                GatewayError::CaptureCut(name.into())
            } else {
                fail()(e)
            });
        }
        if first && head[0] >= b' ' {
            let mut said = vec![head[0]];
            let _ = from.set_read_timeout(Some(control::PATIENCE));
            let _ = from.read_to_end(&mut said);
            return Err(GatewayError::Refuses(String::from_utf8_lossy(&said).trim().into()));
        }
        first = false;
        let cut = |e: io::Error| match e.kind() {
            io::ErrorKind::UnexpectedEof => GatewayError::CaptureCut(name.into()),
            _ => fail()(e),
        };
        read(&mut from, &mut head[1..]).map_err(cut)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > LONGEST {
            return Err(GatewayError::CaptureCut(name.into()));
        }
        let mut bytes = vec![0; length];
        read(&mut from, &mut bytes).map_err(cut)?;
        let written = match head[0] {
            PCAP => pcap.as_mut().map_or(Ok(()), |f| f.write_all(&bytes)),
            QLOG => qlog.as_mut().map_or(Ok(()), |f| f.write_all(&bytes)),
            DONE => {
                let flushed = pcap.as_mut().map_or(Ok(()), Write::flush);
                flushed
                    .and(qlog.as_mut().map_or(Ok(()), Write::flush))
                    .map_err(GatewayError::os("write the capture"))?;
                return serde_json::from_slice(&bytes).map_err(|_| GatewayError::CaptureCut(name.into()));
            }
            _ => return Err(GatewayError::CaptureCut(name.into())),
        };
        written.map_err(GatewayError::os("write the capture"))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_written_as_people_write_them() {
        for (text, ip, port) in [
            ("192.0.2.1", Some([192, 0, 2, 1]), None),
            ("192.0.2.1:80", Some([192, 0, 2, 1]), Some(80)),
            (":80", None, Some(80)),
        ] {
            let end: EndText = text.parse().unwrap();
            assert_eq!((end.ip, end.port), (ip.map(IpAddr::from), port), "{text}");
        }
        let end: EndText = "[fd00::1]:80".parse().unwrap();
        assert_eq!(end.port, Some(80));
        assert_eq!("fd00::1".parse::<EndText>().unwrap().port, None);
        for text in ["", "80", "localhost:80", ":x", "192.0.2.1:70000"] {
            let e = text.parse::<EndText>().unwrap_err();
            assert!(e.contains("is no end: write"), "{e}");
        }
    }

    #[test]
    fn a_capture_that_still_writes_does_not_end_the_next_one() {
        let socket = Arc::new(Socket::default());
        let tap = || skyhaul_net::tap::Tap::new(Filter::default(), false, 1);
        let (first, reader) = tap();
        socket.attach(first);
        let request = Request { pcap: true, seconds: Some(0.0), ..Request::default() };
        let names = ("near".to_owned(), "sky-near".to_owned());
        let running = Running {
            request,
            reader,
            socket: socket.clone(),
            gateway: names.0,
            interface: names.1,
            flow: None,
        };
        // The program that asked for it reads nothing yet: the capture waits, with its tap detached.
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        while ours.write(&[0; 1024]).is_ok() {}
        ours.set_nonblocking(false).unwrap();
        let writes = std::thread::spawn(move || running.stream(&ours));
        while socket.is_taken() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let (second, _reader) = tap();
        socket.attach(second);
        theirs.read_to_end(&mut Vec::new()).unwrap();
        writes.join().unwrap();
        assert!(socket.is_taken());
    }

    #[test]
    fn a_request_survives_the_control_socket() {
        let request = Request {
            flow: Some(7),
            client: "[2001:db8:1111:2222:3333:4444:5555:6666]:65535".parse().unwrap(),
            server: "[2001:db8:1111:2222:3333:4444:5555:7777]:65535".parse().unwrap(),
            pcap: true,
            qlog: true,
            payload: true,
            packets: Some(u64::MAX),
            bytes: Some(u64::MAX),
            seconds: Some(123_456.789),
        };
        let command = request.command();
        assert!(command.len() < control::LONGEST as usize, "{}", command.len());
        let json = command.strip_prefix("capture ").unwrap();
        assert_eq!(serde_json::from_str::<Request>(json).unwrap(), request);
    }
}
