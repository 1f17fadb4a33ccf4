//! Memory use of a connection, and how it is reduced.

use super::{Connection, State, UNSCALED};
use crate::store::Store;

/// Memory use that grows with the data of a connection, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBytes {
    /// Payload of both directions, with reserved buffer space, and records.
    pub all: usize,
    /// Received data beyond a gap, a part of `all`.
    pub beyond: usize,
    /// Records, a part of `all`: scoreboard with related state, ranges beyond gaps, and answers due to probes.
    pub records: usize,
}

impl<S: Store> Connection<S> {
    /// Memory used by payload and records.
    #[inline]
    #[must_use]
    pub fn held(&self) -> HeldBytes {
        let (received, beyond, ranges) = self.receiver.held();
        let (written, segments) = self.sender.held();
        let records = ranges + segments;
        HeldBytes { all: received + written + records, beyond, records }
    }
    /// Whether everything is acknowledged and read, and nothing lies beyond a gap.
    #[inline]
    #[must_use]
    pub fn holds_nothing(&self) -> bool {
        // An outstanding FIN has no payload, but a record.
        let sent = self.unacked() == 0 && self.sender.una() == self.sender.max();
        sent && self.readable() == 0 && self.receiver.held().1 == 0
    }
    /// Releases unused buffer memory.
    pub fn trim(&mut self) {
        self.receiver.trim();
        self.sender.trim();
    }
    /// Memory is short: the window offered to the peer and the unread data together are at most `most` bytes, but earlier
    /// offers stand, and the receive buffer does not grow. `None`: memory is no longer short.
    pub fn offer_at_most(&mut self, most: Option<u64>) {
        self.receiver.offer_at_most(most.unwrap_or(u64::MAX));
        let nothing_offered =
            matches!(self.state, State::Listen | State::SynSent) && self.handshake.tries == 0;
        if nothing_offered {
            self.receiver.begin_at_most(UNSCALED);
        }
    }
    /// Discards received data beyond a gap, even if it was SACKed: the peer retransmits it (RFC 2018 §8).
    pub fn renege(&mut self) {
        self.receiver.renege();
    }
}
