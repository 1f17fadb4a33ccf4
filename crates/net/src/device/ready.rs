//! Which of many sockets have an event: data, room for data, a new connection, the end of the data.

use crate::error::NetError;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsFd, BorrowedFd};

/// Reports each change of a socket once (edge-triggered): the caller reads or writes until nothing more is
/// possible.
///
/// It is a file descriptor itself, so that a [`Wait`](super::wait::Wait) with a timeout can include it.
#[derive(Debug)]
pub(crate) struct Ready(Epoll);

impl Ready {
    /// Starts without sockets.
    pub(crate) fn new() -> Result<Self, NetError> {
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map(Self).map_err(|e| NetError::os("wait for sockets", e))
    }
    /// Adds a socket under a number. Closing the socket removes it.
    pub(crate) fn add(&self, socket: impl AsFd, number: u64) -> Result<(), NetError> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.0.add(socket, EpollEvent::new(flags, number)).map_err(|e| NetError::os("wait for a socket", e))
    }
    /// Appends the numbers of sockets with events; does not wait.
    pub(crate) fn take(&self, numbers: &mut Vec<u64>) -> Result<(), NetError> {
        let mut events = [EpollEvent::empty(); 64];
        loop {
            let n = match self.0.wait(&mut events, EpollTimeout::ZERO) {
                Ok(n) => n,
                Err(nix::Error::EINTR) => continue,
                Err(e) => return Err(NetError::os("wait for sockets", e)),
            };
            numbers.extend(events.iter().take(n).map(EpollEvent::data));
            if n < events.len() {
                return Ok(());
            }
        }
    }
}

impl AsFd for Ready {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}
