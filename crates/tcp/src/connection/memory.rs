//! What a connection holds, and what it can do without.

use super::{Connection, State, UNSCALED};
use crate::store::Store;

/// Memory that grows with what a connection has under way, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Payload of both directions, with the room that is kept for what may come, and records.
    pub all: usize,
    /// What of that has arrived beyond a gap.
    pub beyond: usize,
    /// Records of segments: the scoreboard and what belongs to it, ranges beyond gaps.
    pub records: usize,
}

impl<S: Store> Connection<S> {
    /// Memory that payload and records take.
    #[inline]
    #[must_use]
    pub fn held(&self) -> Held {
        let (received, beyond, ranges) = self.receiver.held();
        let (written, segments) = self.sender.held();
        let records = ranges + segments;
        Held { all: received + written + records, beyond, records }
    }
    /// Nothing waits to be acknowledged or to be read, and nothing lies beyond a gap.
    #[inline]
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        // A FIN on its way is no payload, but has a record.
        let sent = self.unacked() == 0 && self.sender.una() == self.sender.max();
        sent && self.readable() == 0 && self.receiver.held().1 == 0
    }
    /// Gives room back that nothing is in.
    pub fn trim(&mut self) {
        self.receiver.trim();
        self.sender.trim();
    }
    /// Memory is short: no more than `most` bytes are offered to the peer beyond what was offered before, and the receive
    /// buffer does not grow. `None`: it is short no more.
    pub fn offer_at_most(&mut self, most: Option<u64>) {
        self.receiver.offer_at_most(most.unwrap_or(u64::MAX));
        let nothing_said = matches!(self.state, State::Listen | State::SynSent) && self.handshake.tries == 0;
        if nothing_said {
            self.receiver.begin_at_most(UNSCALED);
        }
    }
    /// Forgets what has arrived beyond a gap: the peer sends it again (RFC 2018 §8).
    pub fn renege(&mut self) {
        self.receiver.renege();
    }
}
