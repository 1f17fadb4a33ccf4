//! Whether data moves on a connection.

use crate::host::Conn;
use skyhaul_base::{Duration, Instant};

/// Detects that a connection moves fewer than `least` bytes, in both directions together, within a given time. Data that
/// the server sends counts only once the peer has acknowledged it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standstill {
    least: u64,
    moved: u64,
    since: Instant,
}

impl Standstill {
    pub(super) fn new(now: Instant, c: &Conn, least: u64) -> Self {
        Self { least, moved: moved(c), since: now }
    }
    /// Whether the connection has stood still for `patience`; to be called at [`Self::next`] at the latest.
    pub(super) fn is_over(&mut self, now: Instant, c: &Conn, patience: Duration) -> bool {
        let moved = moved(c);
        if moved >= self.moved + self.least {
            (self.moved, self.since) = (moved, now);
        }
        now >= self.since + patience
    }
    /// When to check again: acknowledgements alone do not wake the server.
    pub(super) fn next(&self, now: Instant, patience: Duration) -> Instant {
        (self.since + patience).min(now + patience / 4)
    }
}

fn moved(c: &Conn) -> u64 {
    c.bytes_read() + c.counters().bytes_acked
}
