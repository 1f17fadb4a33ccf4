//! Where the lines of the logs go: files, which are rotated, sockets of collectors, or standard error.
//!
//! No socket and no pipe is waited for, except standard error: what does not take a line at once does not get the line.

use super::{LogConfig, Target};
use crate::error::GatewayError;
use nix::fcntl::OFlag;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The logs, as places in [`Outputs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Flows,
    Events,
}

/// A file that is open for lines.
#[derive(Debug)]
struct OpenFile {
    file: File,
    path: PathBuf,
    /// Size of the file, or the bytes since a failed attempt to rename the file.
    size: u64,
    /// Whether it is rotated: a pipe or a device is not.
    regular: bool,
    /// The file ends in a part of a line: a full disk, or a full pipe, took no more of it.
    torn: bool,
}

/// Something that takes lines.
#[derive(Debug)]
enum Sink {
    Stderr,
    File(OpenFile),
    /// A socket, and the path of the collector's. The path is looked up for each line, since the collector may start later, or anew.
    Unix(UnixDatagram, PathBuf),
    Udp(UdpSocket),
}

/// Where the lines of both logs go.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    sinks: Vec<(Target, Sink)>,
    /// The places of the logs in `sinks`; `None`: nowhere.
    flows: Option<usize>,
    events: Option<usize>,
    /// The size at which a file is renamed, bytes, and how many renamed files are kept.
    rotation: Option<(u64, u32)>,
}

/// The result of [`Outputs::write`].
#[derive(Debug)]
pub(super) struct Written {
    /// Whether the line has left.
    pub(super) whole: bool,
    /// What went wrong, with the line or with the rotation of its file.
    pub(super) complaint: Option<io::Error>,
}

impl Outputs {
    /// Opens what a configuration names, even files that are open already: they may have been rotated.
    ///
    /// # Errors
    /// If a file or a socket cannot be opened.
    pub(crate) fn open(config: &LogConfig) -> Result<Self, GatewayError> {
        let rotation = config.rotate.map(|size| (size.0, config.kept()));
        let mut all = Self { rotation, ..Self::default() };
        all.flows = config.flows.as_ref().map(|t| all.output("log.flows", t)).transpose()?;
        all.events = config.events.as_ref().map(|t| all.output("log.events", t)).transpose()?;
        Ok(all)
    }
    /// Opens the place of a log, unless the other log has opened the same one.
    fn output(&mut self, key: &str, target: &Target) -> Result<usize, GatewayError> {
        if let Some(n) = self.sinks.iter().position(|(t, _)| t == target) {
            return Ok(n);
        }
        let opened = Sink::open(target);
        let opened = opened.map_err(GatewayError::os(format!("open {target}, as {key} says")))?;
        self.sinks.push((target.clone(), opened));
        Ok(self.sinks.len() - 1)
    }
    /// Writes a line of a log; `None` if the lines of this log go nowhere. On standard error, `priority` is before the line.
    pub(super) fn write(&mut self, log: Which, priority: &str, line: &str) -> Option<Written> {
        let n = match log {
            Which::Flows => self.flows,
            Which::Events => self.events,
        }?;
        let (_, sink) = self.sinks.get_mut(n)?;
        let mut complaint = None;
        let sent = match sink {
            Sink::Stderr => io::stderr().lock().write_all(format!("{priority}{line}\n").as_bytes()),
            Sink::Unix(socket, path) => whole(line, socket.send_to(line.as_bytes(), path)),
            Sink::Udp(socket) => {
                // A first failure may be the report about an earlier line, which a router or the collector's machine has sent (ICMP).
                let sent = socket.send(line.as_bytes()).or_else(|e| match e.kind() {
                    ErrorKind::WouldBlock => Err(e),
                    _ => socket.send(line.as_bytes()),
                });
                whole(line, sent)
            }
            Sink::File(file) => {
                let more = line.len() as u64 + 1;
                if let Some((size, keep)) = self.rotation
                    && file.regular
                    && file.size > 0
                    && file.size + more > size
                {
                    complaint = file.rotate(keep).err();
                }
                file.append(line)
            }
        };
        let whole = sent.is_ok();
        Some(Written { whole, complaint: sent.err().or(complaint) })
    }
}

/// Whether a datagram took the whole line.
fn whole(line: &str, sent: io::Result<usize>) -> io::Result<()> {
    if sent? == line.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

impl Sink {
    fn open(target: &Target) -> io::Result<Self> {
        Ok(match target {
            Target::Stderr => Self::Stderr,
            Target::File(path) => Self::File(OpenFile::new(path)?),
            Target::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.set_nonblocking(true)?;
                Self::Unix(socket, path.clone())
            }
            Target::Udp(to) => {
                let any: IpAddr =
                    if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
                let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
                socket.connect(to)?;
                socket.set_nonblocking(true)?;
                Self::Udp(socket)
            }
        })
    }
}

impl OpenFile {
    fn new(path: &Path) -> io::Result<Self> {
        // The file holds users' addresses: only the gateway's user may read it. If it is a pipe, nothing waits for its reader.
        let nonblocking = OFlag::O_NONBLOCK.bits();
        let file =
            File::options().create(true).append(true).mode(0o600).custom_flags(nonblocking).open(path)?;
        let metadata = file.metadata()?;
        Ok(Self { file, path: path.into(), size: metadata.len(), regular: metadata.is_file(), torn: false })
    }
    /// Appends a line, which begins anew after a part of another one.
    fn append(&mut self, line: &str) -> io::Result<()> {
        let text = format!("{}{line}\n", if self.torn { "\n" } else { "" });
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let done = match self.file.write(rest) {
                Ok(0) => Err(ErrorKind::WriteZero.into()),
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                done => done,
            };
            let n = match done {
                Ok(n) => n,
                Err(e) => {
                    // Without a byte of this line, the file ends as it did before.
                    self.torn |= rest.len() < text.len();
                    return Err(e);
                }
            };
            self.size += n as u64;
            rest = rest.get(n..).unwrap_or_default();
        }
        self.torn = false;
        Ok(())
    }
    /// Renames the file to `PATH.1`, the file of this name to `PATH.2`, and so on, and begins a new file. If that fails, lines still go to
    /// the old file, which grows by as much again before the next attempt. Somebody else may have renamed or removed the file, or an
    /// attempt may have failed between the last renaming and the new file: a new file begins.
    fn rotate(&mut self, keep: u32) -> io::Result<()> {
        self.size = 0;
        let path = self.path.display();
        let fail = |e: io::Error| io::Error::new(e.kind(), format!("cannot rotate {path}, which grows: {e}"));
        let name = |n: u32| {
            let mut name = self.path.clone().into_os_string();
            if n > 0 {
                name.push(format!(".{n}"));
            }
            PathBuf::from(name)
        };
        let unless_gone = |done: io::Result<()>| match done {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            other => other.map_err(fail),
        };
        if keep == 0 {
            unless_gone(std::fs::remove_file(&self.path))?;
        }
        // From the oldest file, which the second oldest replaces, to the present one.
        for n in (0..keep).rev() {
            unless_gone(std::fs::rename(name(n), name(n + 1)))?;
        }
        let new = Self::new(&self.path).map_err(fail)?;
        *self = new;
        Ok(())
    }
}
