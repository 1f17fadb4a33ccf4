//! The memory used by all connections, and what happens when it is short.
//!
//! Above three quarters of the limit, applications may write less, offered windows shrink, receive buffers do not
//! grow, and dispensable memory is reclaimed: first data beyond gaps, which the peer must keep and retransmits (RFC
//! 2018 §8), then the space of idle buffers. An offered window is never withdrawn. Above the limit, arriving data
//! is discarded as if the path had lost it, but acknowledgements are processed. Each connection may always use a
//! small amount, so that all make progress.

use super::Host;
use super::config::ALWAYS;
use super::conn::Conn;
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::Flags;
use skyhaul_wire::tcp::Tcp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum time between two rounds of reclaiming memory from connections.
const SWEEP: Duration = Duration::from_millis(100);

/// The memory used by all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The limit, bytes.
    pub limit: u64,
    /// Current use, bytes: payload in both directions with reserved buffer space, records of segments in flight, a
    /// record per connection, half-open connections, those in TIME-WAIT, and data of SYNs that wait for admission.
    pub held: u64,
    /// Maximum use so far, bytes, without half-open connections, those in TIME-WAIT that no application holds, and data of SYNs
    /// that wait for admission.
    pub most: u64,
    /// How often a connection discarded out-of-order data for lack of memory.
    pub reneged: u64,
    /// How often an idle connection released buffer memory, under pressure or after a while.
    pub trimmed: u64,
    /// Segments whose data was discarded.
    pub refused: u64,
}

/// The account, and when memory was last reclaimed.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) memory: Memory,
    /// What this host and those that share its limit hold, bytes.
    total: Arc<AtomicU64>,
    swept: Instant,
}

impl Ledger {
    pub(super) fn new(limit: u64, total: Option<Arc<AtomicU64>>) -> Self {
        let memory = Memory { limit, held: 0, most: 0, reneged: 0, trimmed: 0, refused: 0 };
        Self { memory, total: total.unwrap_or_default(), swept: Instant::ZERO }
    }
    /// Updates the account of a connection.
    pub(super) fn book(&mut self, now: Instant, conn: &mut Conn) {
        let used = conn.memory_use();
        let m = &mut self.memory;
        if used != conn.booked {
            m.held = m.held + used - conn.booked;
            // Less than before: the difference wraps around, and so does the sum.
            self.total.fetch_add(used.wrapping_sub(conn.booked), Ordering::Relaxed);
            conn.booked = used;
            m.most = m.most.max(m.held);
        }
        conn.set_pressed(now, self.presses());
    }
    /// Removes the account of a connection.
    pub(super) fn strike(&mut self, conn: &Conn) {
        self.memory.held -= conn.booked;
        self.total.fetch_sub(conn.booked, Ordering::Relaxed);
    }
    /// Whether applications must write less.
    pub(super) fn presses(&self) -> bool {
        self.total.load(Ordering::Relaxed) > self.memory.limit / 4 * 3
    }
    pub(super) fn is_full(&self) -> bool {
        self.total.load(Ordering::Relaxed) > self.memory.limit
    }
}

impl Host {
    /// The memory used by connections.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let without_slot = (self.table_bytes().iter().sum::<usize>() + self.early.held()) as u64;
        let m = self.ledger.memory;
        Memory { held: m.held + without_slot, ..m }
    }

    /// Reclaims memory if too much is in use.
    pub(super) fn relieve(&mut self, now: Instant) {
        if !self.ledger.presses() || now < self.ledger.swept + SWEEP {
            return;
        }
        self.ledger.swept = now;
        for beyond_gaps in [true, false] {
            for (number, slot) in self.slots.iter_mut().enumerate() {
                if !self.ledger.presses() {
                    return;
                }
                self.at_work = Some(number as u32);
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

    /// The part of a segment that a connection may get: without its data if there is no room.
    pub(super) fn admitted<'a>(&mut self, slot: u32, tcp: &Tcp<'a>) -> Tcp<'a> {
        let mut tcp = *tcp;
        if tcp.payload.is_empty() || !self.ledger.is_full() {
            return tcp;
        }
        let Some(conn) = self.at(slot) else { return tcp };
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
