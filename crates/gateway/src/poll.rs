//! What happens to kernel sockets, of which there are many.

use crate::error::GatewayError;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io;
use std::os::fd::AsFd;

/// Something happened to a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Happened {
    /// The number under which it is watched.
    pub(crate) number: u64,
    /// It may have something to read, or its end.
    pub(crate) readable: bool,
    /// It may have room, or is connected.
    pub(crate) writable: bool,
}

/// Events of kernel sockets. Each is told once, until there is nothing more to read or no more room.
#[derive(Debug)]
pub(crate) struct Poll(Epoll);

fn fail(e: nix::Error) -> GatewayError {
    GatewayError::os("wait for sockets")(io::Error::from(e))
}

impl Poll {
    pub(crate) fn new() -> Result<Self, GatewayError> {
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map(Self).map_err(fail)
    }
    /// The descriptor that is readable when something has happened.
    pub(crate) fn descriptor(&self) -> &impl AsFd {
        &self.0.0
    }
    /// Tells what happens to a socket under this number, until it is closed.
    pub(crate) fn watch(&self, socket: &impl AsFd, number: u64) -> Result<(), GatewayError> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        self.0.add(socket.as_fd(), EpollEvent::new(flags, number)).map_err(fail)
    }
    /// Adds what has happened to `into`; does not wait.
    pub(crate) fn take(&self, into: &mut Vec<Happened>) -> Result<(), GatewayError> {
        let mut events = [EpollEvent::empty(); 128];
        loop {
            let n = match self.0.wait(&mut events, EpollTimeout::ZERO) {
                Ok(n) => n,
                Err(nix::Error::EINTR) => continue,
                Err(e) => return Err(fail(e)),
            };
            into.extend(events[..n].iter().map(|e| {
                let has = |f| e.events().intersects(f);
                let over = has(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP);
                Happened {
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
