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
    /// News so far.
    pub events: Vec<Event>,
    /// Bytes read by the application.
    pub received: u64,
    /// The first byte that differed from what the peer wrote.
    pub corrupt: Option<u64>,
    pub(super) faults: Option<Faults>,
    pub(super) late: Vec<(Instant, Packet)>,
    pub(super) agenda: Vec<(Instant, Act)>,
    pub(super) to_write: u64,
    pub(super) written: u64,
    pub(super) shutdown: bool,
    pub(super) eager: bool,
    pub(super) header: u32,
    pub(super) hop: u16,
    pub(super) sent: u64,
    pub(super) data_sent: u64,
    pub(super) probes_sent: u64,
}

/// The byte at `offset` of the stream that `side` writes.
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

    pub(super) fn application(&mut self, now: Instant, side: Side) {
        if self.eager {
            self.read(u64::MAX, side);
        }
        // A listener has nobody to write to, and closing it would end the matter.
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
