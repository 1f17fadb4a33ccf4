//! The relay: joins two connections, A towards the sender and B towards the receiver, with one bounded buffer per direction.
//!
//! It reads no more than it has room for, so that a leg which stalls closes the window of the leg before it (back-pressure)
//! instead of losing data. An end of stream passes once everything before it has, and the other direction goes on
//! (half-close, RFC 9293 §3.6). An abort passes at once, and takes with it what waited in both directions: whoever gave up
//! reads nothing more, and what the gateway had acknowledged in the other's name is lost (RFC 3135 §4.1).

use crate::fifo::Fifo;

/// One side of a relay: the gateway's end of a connection.
pub trait End<F: Fifo> {
    /// The peer will send no more, and all that it sent is read.
    fn ended(&self) -> bool;
    /// The connection was given up, by whomever.
    fn failed(&self) -> bool;
    /// Reads at most `most` bytes to the end of `into`. Returns how many.
    fn read(&mut self, into: &mut F, most: u64) -> u64;
    /// Writes from the front of `from` what there is room for. Returns how many bytes.
    fn write(&mut self, from: &mut F) -> u64;
    /// Nothing more will be written: an end of stream follows what was.
    fn finish(&mut self);
    /// Gives the connection up; the peer is told.
    fn abort(&mut self);
}

/// One direction.
#[derive(Clone, Debug, Default)]
pub struct Way<F> {
    waits: F,
    capacity: u64,
    ended: bool,
    finished: bool,
    taken: u64,
    given: u64,
}

impl<F: Fifo> Way<F> {
    fn new(capacity: u64) -> Self {
        Self { waits: F::default(), capacity, ended: false, finished: false, taken: 0, given: 0 }
    }
    /// Bytes that wait.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waits.len()
    }
    /// Bytes read so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }
    /// Bytes written so far.
    #[must_use]
    pub fn given(&self) -> u64 {
        self.given
    }
    /// The source has ended and the end has been passed on.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.finished
    }

    /// Moves what can be moved. True if something was.
    fn pump(&mut self, from: &mut impl End<F>, to: &mut impl End<F>) -> bool {
        let room = self.capacity.saturating_sub(self.waits.len());
        let read = if room > 0 && !self.ended { from.read(&mut self.waits, room) } else { 0 };
        let written = if self.waits.is_empty() { 0 } else { to.write(&mut self.waits) };
        self.taken += read;
        self.given += written;
        self.ended |= from.ended();
        let finishes = self.ended && !self.finished && self.waits.is_empty();
        if finishes {
            self.finished = true;
            to.finish();
        }
        read > 0 || written > 0 || finishes
    }
}

/// What became of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Data, or its end, has passed.
    Some,
    /// Nothing can move before something else happens.
    Nothing,
    /// One side gave up, now or before: so did the other.
    Aborted,
}

/// Joins two connections.
#[derive(Clone, Debug, Default)]
pub struct Relay<F> {
    forward: Way<F>,
    back: Way<F>,
    aborted: bool,
    lost: u64,
}

impl<F: Fifo> Relay<F> {
    /// A relay that holds up to `capacity` bytes per direction, at least one.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        let way = || Way::new(capacity.max(1));
        Self { forward: way(), back: way(), aborted: false, lost: 0 }
    }
    /// From A to B.
    #[must_use]
    pub fn forward(&self) -> &Way<F> {
        &self.forward
    }
    /// From B to A.
    #[must_use]
    pub fn back(&self) -> &Way<F> {
        &self.back
    }
    /// Both directions have ended, and the ends were passed on.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.aborted || (self.forward.finished && self.back.finished)
    }
    /// Bytes that waited here when a side gave up.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Moves everything that can be moved. To be called after each event of one of the connections.
    pub fn pump(&mut self, a: &mut impl End<F>, b: &mut impl End<F>) -> Moved {
        if self.aborted {
            return Moved::Aborted;
        }
        if a.failed() || b.failed() {
            self.abort(a, b);
            return Moved::Aborted;
        }
        let mut moved = Moved::Nothing;
        while self.forward.pump(a, b) | self.back.pump(b, a) {
            moved = Moved::Some;
        }
        // Sockets tell of it when they are read.
        if a.failed() || b.failed() {
            self.abort(a, b);
            return Moved::Aborted;
        }
        moved
    }

    /// Gives up both connections.
    pub fn abort(&mut self, a: &mut impl End<F>, b: &mut impl End<F>) {
        for way in [&mut self.forward, &mut self.back] {
            self.lost += way.waits.len();
            way.waits.clear();
        }
        self.aborted = true;
        if !a.failed() {
            a.abort();
        }
        if !b.failed() {
            b.abort();
        }
    }

    /// Bytes that wait in both directions.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.forward.waits.len() + self.back.waits.len()
    }
}
