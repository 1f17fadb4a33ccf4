//! Connections in TIME-WAIT that no application holds. They take a few bytes each in a separate table, so they
//! neither cost as much as a connection nor occupy the place of one.

use super::Host;
use super::conn::Conn;
use super::ends::Ends;
use crate::outlet::{Merge, Outlet};
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::{Flags, Seq, State, TimeWaitState};
use skyhaul_wire::tcp::Tcp;
use skyhaul_wire::{Agreement, Checksum, Envelope};
use std::net::SocketAddr;

/// Minimum time between answers to late segments of one connection (as in Linux: `tcp_invalid_ratelimit`).
const PAUSE: Duration = Duration::from_millis(500);

/// What is kept of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    remains: TimeWaitState,
    /// Our window scale, for the windows we send.
    shift: u8,
    /// 2 MSL, milliseconds.
    period: u32,
    until: Instant,
    /// No answers before this time.
    silent: Instant,
}

impl Host {
    /// Moves a connection in TIME-WAIT that the application has released to the table.
    pub(super) fn lay_down(&mut self, slot: u32) {
        let Some(conn) = self.at(slot) else { return };
        let (tcp, ends) = (conn.tcp(), Ends::new(conn.local(), conn.remote()));
        let period = tcp.time_wait();
        let waiting = Waiting {
            remains: tcp.remains(),
            shift: tcp.scales().0,
            period: u32::try_from(period.as_nanos() / 1_000_000).unwrap_or(u32::MAX),
            until: tcp.next_timeout(),
            silent: Instant::ZERO,
        };
        self.remove(slot);
        if self.waiting.len() >= self.config.most_waiting {
            // The oldest one is closest to its end.
            if let Some(at) = self.waiting.due(Instant::MAX) {
                self.waiting.remove(at);
                self.counts.time_waits_cut += 1;
            }
        }
        if self.waiting.len() < self.config.most_waiting {
            let at = self.waiting.insert(ends, waiting);
            self.waiting.arm(at, waiting.until);
        }
    }

    /// Whether a segment to a connection in TIME-WAIT starts a new connection. Our sequence numbers of the new connection must be
    /// above those of the old one.
    pub(super) fn begins_anew(&self, remains: &TimeWaitState, ends: &Ends, tcp: &Tcp<'_>) -> bool {
        tcp.flags.has(Flags::SYN)
            && !tcp.flags.has(Flags::ACK)
            && !tcp.flags.has(Flags::RST)
            && remains.admits(tcp.seq, tcp.options.timestamps.map(|(val, _)| val))
            && self.listeners.at(ends.local().port()).is_some()
    }

    /// Ends the wait of a connection between these ends; returns the number above which a new one must start.
    pub(super) fn displace(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<Seq> {
        let at = self.waiting.find(&Ends::new(local, remote))?;
        let next = self.waiting.get(at)?.remains.next;
        self.waiting.remove(at);
        Some(next)
    }

    /// Handles a segment of a connection in TIME-WAIT. If it starts a new connection, returns the number above
    /// which our sequence numbers must start.
    pub(super) fn late(
        &mut self,
        now: Instant,
        at: u32,
        tcp: &Tcp<'_>,
        out: &mut impl Outlet,
    ) -> Option<Seq> {
        let ends = self.waiting.ends(at);
        let remains = self.waiting.get(at)?.remains;
        if self.begins_anew(&remains, &ends, tcp) {
            self.waiting.remove(at);
            return Some(remains.next);
        }
        // RFC 1337: a RST does not end TIME-WAIT.
        if tcp.flags.has(Flags::RST) {
            return None;
        }
        let w = self.waiting.get_mut(at)?;
        if tcp.flags.has(Flags::FIN) && tcp.seq.diff(remains.expected) < 0 {
            // The last acknowledgement was lost: TIME-WAIT restarts (RFC 9293 §3.10.7.4).
            w.until = now + Duration::from_millis(w.period.into());
        }
        if now < w.silent {
            self.counts.answers_withheld += 1;
            return None;
        }
        w.silent = now + PAUSE;
        let agreed = Agreement { plan: self.config.plan, window_shift: w.shift, ..Agreement::default() };
        let (answer, envelope) = (remains.answer(now), Envelope::new(ends.local(), ends.remote()));
        let write = |room: &mut [u8]| {
            skyhaul_wire::encode_with(room, &envelope, &agreed, &answer, Checksum::Written, |_| {})
        };
        if out.send(skyhaul_wire::MAX_HEADER, Merge::Alone, write).is_ok() {
            self.counts.packets_out += 1;
        }
        None
    }

    /// Removes expired connections.
    pub(super) fn bury(&mut self, now: Instant) {
        while let Some(at) = self.waiting.due(now) {
            match self.waiting.get(at).map(|w| w.until) {
                Some(until) if until > now => self.waiting.arm(at, until),
                _ => drop(self.waiting.remove(at)),
            }
        }
    }
}

/// Whether a connection can be reduced to a table entry.
pub(super) fn may_lie_down(conn: &Conn) -> bool {
    conn.released && conn.tcp().state() == State::TimeWait
}
