//! An endpoint and the application above it.

use super::fault::Faults;
use super::packet::Packet;
use super::side::Side;
use skyhaul_base::Instant;
use skyhaul_tcp::{Bytes, Connection, Counted, Event, State, Store};

/// A payload store that tells whether it keeps the bytes, in which case the harness supplies and checks them.
pub trait PayloadStore: Store {
    /// True if the bytes are kept.
    const BYTES: bool;
}
impl PayloadStore for Counted {
    const BYTES: bool = false;
}
impl PayloadStore for Bytes {
    const BYTES: bool = true;
}

/// What an application does at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Writes this many bytes, as the buffer allows.
    Write(u64),
    /// Reads at most this many bytes (of an application that does not read at once).
    Read(u64),
    /// From now on reads everything at once.
    ReadEagerly,
    /// Closes its direction after the last byte is written.
    Shutdown,
    /// Aborts.
    Abort,
}

/// An endpoint, its application and what the test decides about its segments.
pub struct End<S: Store> {
    /// The endpoint.
    pub conn: Connection<S>,
    /// Events that the endpoint has reported so far.
    pub events: Vec<Event>,
    /// Bytes read by the application.
    pub received: u64,
    /// The first byte that differed from what the peer wrote.
    pub corrupt: Option<u64>,
    /// Decides about each segment that it sends; `None` delivers all.
    pub(super) faults: Option<Faults>,
    /// Packets that the test holds back, and when they enter the path.
    pub(super) late: Vec<(Instant, Packet)>,
    /// What the application will do, in order of time.
    pub(super) agenda: Vec<(Instant, Act)>,
    /// Bytes that wait for room in the send buffer.
    pub(super) to_write: u64,
    pub(super) written: u64,
    /// The application closes its direction once nothing waits to be written.
    pub(super) shutdown: bool,
    /// The application reads at once.
    pub(super) eager: bool,
    /// Bytes of headers of each packet.
    pub(super) header: u32,
    /// Where the route of its packets begins in the route table.
    pub(super) hop: u16,
    /// Segments sent, and those of them with data, and those that are probes.
    pub(super) sent: u64,
    pub(super) data_sent: u64,
    pub(super) probes_sent: u64,
}

/// The byte at `offset` of the stream that `side` writes: a hash, so that a byte of another offset or side is noticed.
#[must_use]
pub fn content(side: Side, offset: u64) -> u8 {
    let x = (offset + 1 + side as u64 * 77).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 56) as u8 ^ (offset >> 8) as u8
}

impl<S: PayloadStore> End<S> {
    /// An endpoint whose application reads at once. Its segments have `header` bytes of headers, and their route begins at
    /// `hop`.
    pub(super) fn new(conn: Connection<S>, header: u32, hop: u16) -> Self {
        Self {
            conn,
            events: Vec::new(),
            received: 0,
            corrupt: None,
            faults: None,
            late: Vec::new(),
            agenda: Vec::new(),
            to_write: 0,
            written: 0,
            shutdown: false,
            eager: true,
            header,
            hop,
            sent: 0,
            data_sent: 0,
            probes_sent: 0,
        }
    }

    /// The application's turn: it reads, writes what there is room for, and closes after the last byte.
    pub(super) fn application(&mut self, now: Instant, side: Side) {
        if self.eager {
            self.read(u64::MAX, side);
        }
        // A listener has no peer yet, and closing it would end the endpoint.
        if matches!(self.conn.state(), State::Closed | State::Listen) {
            return;
        }
        while self.to_write > 0 {
            let most = if S::BYTES { 65_536 } else { u64::MAX };
            let n = self.to_write.min(self.conn.writable()).min(most);
            let bytes: Vec<u8> = if S::BYTES {
                (self.written..self.written + n).map(|i| content(side, i)).collect()
            } else {
                Vec::new()
            };
            let taken = self.conn.write(now, &bytes, n);
            self.written += taken;
            self.to_write -= taken;
            if taken == 0 {
                return;
            }
        }
        if core::mem::take(&mut self.shutdown) {
            self.conn.shutdown(now);
        }
    }

    /// Reads at most `most` bytes, and compares them with what the peer writes.
    pub(super) fn read(&mut self, most: u64, side: Side) {
        let mut left = most;
        while left > 0 {
            let n = self.conn.readable().min(left).min(65_536);
            if n == 0 {
                return;
            }
            let mut out = vec![0; if S::BYTES { n as usize } else { 0 }];
            let got = self.conn.read(&mut out, n);
            for (i, &b) in out.iter().enumerate() {
                let at = self.received + i as u64;
                if b != content(side.other(), at) {
                    self.corrupt.get_or_insert(at);
                }
            }
            self.received += got;
            left -= got;
        }
    }

    /// Bytes the application has written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }
}
