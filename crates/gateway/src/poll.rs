//! Readiness events of the kernel sockets (epoll).

use crate::error::GatewayError;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io;
use std::os::fd::AsFd;

/// A readiness event of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readiness {
    /// The number under which the socket is registered.
    pub(crate) number: u64,
    /// Data or the end of the stream may be readable.
    pub(crate) readable: bool,
    /// Its send buffer may have space, or it has connected.
    pub(crate) writable: bool,
}

/// Edge-triggered events of kernel sockets: an event is reported again only after the socket has been read until it is
/// empty, or written until it is full.
#[derive(Debug)]
pub(crate) struct Poll(Epoll);

fn fail(e: nix::Error) -> GatewayError {
    GatewayError::os("wait for sockets")(io::Error::from(e))
}

impl Poll {
    pub(crate) fn new() -> Result<Self, GatewayError> {
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map(Self).map_err(fail)
    }
    /// The descriptor that is readable when events are pending.
    pub(crate) fn descriptor(&self) -> &impl AsFd {
        &self.0.0
    }
    /// Registers a socket under this number, until it is closed.
    pub(crate) fn watch(&self, socket: &impl AsFd, number: u64) -> Result<(), GatewayError> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        self.0.add(socket.as_fd(), EpollEvent::new(flags, number)).map_err(fail)
    }
    /// Appends the pending events to `into`; does not wait.
    pub(crate) fn take(&self, into: &mut Vec<Readiness>) -> Result<(), GatewayError> {
        let mut events = [EpollEvent::empty(); 128];
        loop {
            let n = match self.0.wait(&mut events, EpollTimeout::ZERO) {
                Ok(n) => n,
                Err(nix::Error::EINTR) => continue,
                Err(e) => return Err(fail(e)),
            };
            into.extend(events.iter().take(n).map(|e| {
                let has = |f| e.events().intersects(f);
                let over = has(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP);
                Readiness {
                    number: e.data(),
                    readable: over || has(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP),
                    writable: over || has(EpollFlags::EPOLLOUT),
                }
            }));
            if n < events.len() {
                return Ok(());
            }
        }
    }
}
