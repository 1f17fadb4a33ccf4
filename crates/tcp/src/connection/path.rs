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
    /// A longer packet was lost.
    pub failed: bool,
}

impl<S: Store> Connection<S> {
    /// What its path MTU search has found; `None` if it searches for nothing.
    #[must_use]
    pub fn found_mtu(&self) -> Option<FoundMtu> {
        let search = self.sender.mtu_search()?;
        let limit = search.size() + self.options_of_each();
        Some(FoundMtu { limit, complete: search.is_complete(), failed: search.lost_until() > 0 })
    }

    /// Another connection has shown that the path works again: what waits for a backed-off timer leaves now. False if nothing does.
    pub fn retry(&mut self, now: Instant) -> bool {
        let opens = matches!(self.state, State::SynSent | State::SynReceived) && self.handshake.tries > 1;
        if opens {
            self.deadline = self.deadline.min(now);
        }
        let waits = self.sender.retry(now) || opens;
        if waits {
            self.handle_timeout(now);
        }
        waits
    }
}
