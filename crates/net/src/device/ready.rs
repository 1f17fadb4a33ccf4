//! Which of many sockets have something new: data, room, a peer, an end.

use crate::error::NetError;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::os::fd::{AsFd, BorrowedFd};

/// Tells each change of a socket once: whoever is told reads or writes until there is nothing more.
///
/// It is a descriptor itself, so that a [`Wait`](super::wait::Wait) takes it with a time to wake at.
#[derive(Debug)]
pub(crate) struct Ready(Epoll);

impl Ready {
    /// Of no sockets.
    pub(crate) fn new() -> Result<Self, NetError> {
        Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map(Self).map_err(|e| NetError::os("wait for sockets", e))
    }
    /// Adds a socket under a number. It goes by itself when it is closed.
    pub(crate) fn add(&self, socket: impl AsFd, number: u64) -> Result<(), NetError> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.0.add(socket, EpollEvent::new(flags, number)).map_err(|e| NetError::os("wait for a socket", e))
    }
    /// Appends the numbers of sockets with news; does not wait.
    pub(crate) fn take(&self, numbers: &mut Vec<u64>) -> Result<(), NetError> {
        let mut events = [EpollEvent::empty(); 64];
        loop {
            let n = match self.0.wait(&mut events, EpollTimeout::ZERO) {
                Ok(n) => n,
                Err(nix::Error::EINTR) => continue,
                Err(e) => return Err(NetError::os("wait for sockets", e)),
            };
            numbers.extend(events[..n].iter().map(EpollEvent::data));
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
