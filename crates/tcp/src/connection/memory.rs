//! What a connection holds, and what it can do without.

use super::Connection;
use crate::store::Store;

/// Memory that the payload of a connection takes, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Both directions, with the room that is kept for what may come.
    pub all: usize,
    /// What of that has arrived beyond a gap.
    pub beyond: usize,
}

impl<S: Store> Connection<S> {
    /// Memory that payload takes.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Held {
        let (received, beyond) = self.receiver.held();
        Held { all: received + self.sender.held(), beyond }
    }
    /// Nothing waits to be acknowledged or to be read, and nothing lies beyond a gap.
    #[inline]
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        self.unacked() == 0 && self.readable() == 0 && self.receiver.held().1 == 0
    }
    /// Gives room back that nothing is in.
    pub fn trim(&mut self) {
        self.receiver.trim();
        self.sender.trim();
    }
    /// Forgets what has arrived beyond a gap: the peer sends it again (RFC 2018 §8).
    pub fn renege(&mut self) {
        self.receiver.renege();
    }
}
