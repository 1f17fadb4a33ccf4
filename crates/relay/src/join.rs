//! The relay: joins two connections, A towards the sender and B towards the receiver, with one bounded buffer per
//! direction.
//!
//! It reads only as much as it has room for, so that a stalled leg closes the window of the previous one
//! (back-pressure) instead of losing data. An end of stream is forwarded after all data before it, and the other
//! direction continues (half-close, RFC 9293 §3.6). An abort is forwarded at once and drops the data waiting in
//! both directions: the aborting side reads nothing more, and data that the gateway had acknowledged in the other's
//! name is lost (RFC 3135 §4.1).

use crate::fifo::Fifo;

/// One side of a relay: the gateway's end of a connection.
pub trait End<F: Fifo> {
    /// Whether the peer has ended its stream and all its data is read.
    fn ended(&self) -> bool;
    /// Whether either side aborted the connection.
    fn failed(&self) -> bool;
    /// Reads at most `most` bytes and appends them to `into`. Returns how many.
    fn read(&mut self, into: &mut F, most: u64) -> u64;
    /// Writes from the front of `from` as far as there is room. Returns how many bytes.
    fn write(&mut self, from: &mut F) -> u64;
    /// As [`Self::write`], and the end of the stream follows as soon as everything is written, so that both may leave together.
    fn write_last(&mut self, from: &mut F) -> u64 {
        self.write(from)
    }
    /// Ends the stream after the written data.
    fn finish(&mut self);
    /// Aborts the connection; the peer is informed.
    fn abort(&mut self);
}

/// One direction of a relay.
#[derive(Clone, Debug, Default)]
pub struct Direction<F> {
    waits: F,
    capacity: u64,
    /// The source has ended.
    ended: bool,
    /// The end was forwarded.
    finished: bool,
    taken: u64,
    given: u64,
}

impl<F: Fifo> Direction<F> {
    fn new(capacity: u64) -> Self {
        Self { waits: F::default(), capacity, ended: false, finished: false, taken: 0, given: 0 }
    }
    /// Bytes waiting.
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
    /// Whether the source has ended and the end was forwarded.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.finished
    }

    /// Moves as much as possible. True if anything moved.
    fn pump(&mut self, from: &mut impl End<F>, to: &mut impl End<F>) -> bool {
        let room = self.capacity.saturating_sub(self.waits.len());
        let read = if room > 0 && !self.ended { from.read(&mut self.waits, room) } else { 0 };
        self.ended |= from.ended();
        let written = match (self.waits.is_empty(), self.ended) {
            (true, _) => 0,
            (false, false) => to.write(&mut self.waits),
            (false, true) => to.write_last(&mut self.waits),
        };
        self.taken += read;
        self.given += written;
        let finishes = self.ended && !self.finished && self.waits.is_empty();
        if finishes {
            self.finished = true;
            to.finish();
        }
        read > 0 || written > 0 || finishes
    }
}

/// Result of a relay step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Data, or its end, has moved.
    Some,
    /// Nothing can move before the next event.
    Nothing,
    /// One side aborted, now or before, and the relay has aborted the other.
    Aborted,
}

/// Joins two connections.
#[derive(Clone, Debug, Default)]
pub struct Relay<F> {
    forward: Direction<F>,
    back: Direction<F>,
    aborted: bool,
    lost: u64,
}

impl<F: Fifo> Relay<F> {
    /// A relay with a buffer of `capacity` bytes per direction, at least one.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        let direction = || Direction::new(capacity.max(1));
        Self { forward: direction(), back: direction(), aborted: false, lost: 0 }
    }
    /// From A to B.
    #[must_use]
    pub fn forward(&self) -> &Direction<F> {
        &self.forward
    }
    /// From B to A.
    #[must_use]
    pub fn back(&self) -> &Direction<F> {
        &self.back
    }
    /// Whether both directions have ended, and the ends were forwarded.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.aborted || (self.forward.finished && self.back.finished)
    }
    /// Bytes waiting here when a side aborted.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Moves as much as possible. To be called after each event of one of the connections.
    pub fn pump(&mut self, a: &mut impl End<F>, b: &mut impl End<F>) -> Progress {
        if self.aborted {
            return Progress::Aborted;
        }
        if self.gives_up(a, b) {
            self.abort(a, b);
            return Progress::Aborted;
        }
        let mut moved = Progress::Nothing;
        while self.forward.pump(a, b) | self.back.pump(b, a) {
            moved = Progress::Some;
        }
        // A socket may report a reset only when it is read or written.
        if self.gives_up(a, b) {
            self.abort(a, b);
            return Progress::Aborted;
        }
        moved
    }

    /// Whether a side has failed prematurely. A side that has ended its stream and was informed of the other's end may
    /// be gone: data that waits for the other side is still delivered.
    fn gives_up(&self, a: &impl End<F>, b: &impl End<F>) -> bool {
        let done = |end: bool, from: &Direction<F>, to: &Direction<F>| (from.ended || end) && to.finished;
        a.failed() && !done(a.ended(), &self.forward, &self.back)
            || b.failed() && !done(b.ended(), &self.back, &self.forward)
    }

    /// Aborts both connections.
    pub fn abort(&mut self, a: &mut impl End<F>, b: &mut impl End<F>) {
        for direction in [&mut self.forward, &mut self.back] {
            self.lost += direction.waits.len();
            direction.waits.clear();
        }
        self.aborted = true;
        if !a.failed() {
            a.abort();
        }
        if !b.failed() {
            b.abort();
        }
    }

    /// Bytes waiting in both directions.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.forward.waits.len() + self.back.waits.len()
    }
}
