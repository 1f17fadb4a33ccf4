//! What all connections hold together, and what is done when that is too much.
//!
//! Beyond three quarters of the limit applications write less, peers are offered smaller windows, no receive buffer
//! grows, and what can be done without is given up: first data beyond gaps, which the peer has to keep and sends again
//! (RFC 2018 §8), then the room of idle buffers. A window that was offered is never taken back. Beyond the limit data is not taken, as if the path had lost it; acknowledgements are. A little is allowed to each connection
//! always, so that every one gets on.

use super::Host;
use super::conn::Conn;
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::Flags;
use skyhaul_wire::tcp::Tcp;

/// What each connection may hold in each direction whatever the others hold, bytes.
pub(super) const ALWAYS: u64 = 16 << 10;
/// How often connections are asked for what they can do without, at most.
const SWEEP: Duration = Duration::from_millis(100);

/// What all connections hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The limit, bytes.
    pub limit: u64,
    /// Bytes now: payload in both directions with the room kept for it, records of segments on their way, and a record
    /// per connection; half-open ones and those in TIME-WAIT.
    pub held: u64,
    /// The most that it has been, bytes.
    pub most: u64,
    /// Connections that discarded out-of-order data for lack of memory.
    pub reneged: u64,
    /// Idle connections that released buffer memory, under pressure or after a while.
    pub trimmed: u64,
    /// Segments whose data was not taken.
    pub refused: u64,
}

/// The count, and when it was last acted upon.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) memory: Memory,
    swept: Instant,
}

impl Ledger {
    pub(super) fn new(limit: u64) -> Self {
        let memory = Memory { limit, held: 0, most: 0, reneged: 0, trimmed: 0, refused: 0 };
        Self { memory, swept: Instant::ZERO }
    }
    /// A connection holds something else than before.
    pub(super) fn book(&mut self, now: Instant, conn: &mut Conn) {
        let weight = conn.weight();
        let m = &mut self.memory;
        m.held = m.held + weight - conn.booked;
        conn.booked = weight;
        m.most = m.most.max(m.held);
        conn.feel(now, self.presses());
    }
    /// A connection is gone.
    pub(super) fn strike(&mut self, conn: &Conn) {
        self.memory.held -= conn.booked;
    }
    /// It is time to write less.
    pub(super) fn presses(&self) -> bool {
        self.memory.held > self.memory.limit / 4 * 3
    }
    fn is_full(&self) -> bool {
        self.memory.held > self.memory.limit
    }
}

impl Host {
    /// What connections hold.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let strangers = self.bytes_of_strangers().iter().sum::<usize>() as u64;
        let m = self.ledger.memory;
        Memory { held: m.held + strangers, ..m }
    }

    /// Gives up what can be done without, if there is too much.
    pub(super) fn relieve(&mut self, now: Instant) {
        if !self.ledger.presses() || now < self.ledger.swept + SWEEP {
            return;
        }
        self.ledger.swept = now;
        for beyond_gaps in [true, false] {
            for slot in &mut self.slots {
                if !self.ledger.presses() {
                    return;
                }
                let Some(conn) = slot.conn.as_deref_mut() else { continue };
                let m = &mut self.ledger.memory;
                if beyond_gaps && conn.tcp().held().beyond > 0 {
                    conn.renege(now);
                    m.reneged += 1;
                } else if !beyond_gaps && conn.is_idle() {
                    conn.trim();
                    m.trimmed += 1;
                } else {
                    continue;
                }
                self.ledger.book(now, conn);
            }
        }
    }

    /// What a connection is given of a segment: without its data if there is no room for that.
    pub(super) fn admitted<'a>(&mut self, slot: u32, tcp: &Tcp<'a>) -> Tcp<'a> {
        let mut tcp = *tcp;
        if tcp.payload.is_empty() || !self.ledger.is_full() {
            return tcp;
        }
        let Some(conn) = self.slots[slot as usize].conn.as_deref() else { return tcp };
        let few = conn.tcp().readable() + tcp.payload.len() as u64 <= ALWAYS;
        if few && tcp.seq.diff(conn.tcp().expected()) <= 0 {
            return tcp;
        }
        self.ledger.memory.refused += 1;
        tcp.payload = &[];
        tcp.flags = Flags::from_bits(tcp.flags.bits() & !Flags::FIN.bits() & !Flags::PSH.bits());
        tcp
    }
}
