//! What a driver that serves several connections of one path asks a connection, and what it tells it.

use super::{Connection, State};
use crate::store::Store;
use skyhaul_base::Instant;

/// What the path MTU search of a connection has found so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundMtu {
    /// Options and payload of the longest packet that the path is known to carry, bytes.
    pub limit: u32,
    /// Nothing longer is searched for now: the path does not carry it, or the ends do not accept it.
    pub complete: bool,
}

impl<S: Store> Connection<S> {
    /// What its path MTU search has found; `None` if it searches for nothing.
    #[must_use]
    pub fn found_mtu(&self) -> Option<FoundMtu> {
        let (size, complete) = self.sender.found_mtu()?;
        Some(FoundMtu { limit: size + self.options_of_each(), complete })
    }

    /// Another connection has shown that the path works again: what waits for a backed-off timer leaves now.
    pub fn retry(&mut self, now: Instant) {
        if matches!(self.state, State::SynSent | State::SynReceived) && self.handshake.tries > 1 {
            self.deadline = self.deadline.min(now);
        }
        self.sender.retry(now);
    }
}
