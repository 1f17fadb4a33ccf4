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

/// The part of a connection in TIME-WAIT that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeWait {
    remains: TimeWaitState,
    /// Our window scale, for the windows we send.
    shift: u8,
    /// 2 MSL, milliseconds.
    period: u32,
    until: Instant,
    /// Late segments are not answered before this time.
    silent: Instant,
}

impl Host {
    /// Reduces a connection in TIME-WAIT that the application has released to an entry of the table.
    pub(super) fn reduce(&mut self, slot: u32) {
        let Some(conn) = self.at(slot) else { return };
        let (tcp, ends) = (conn.tcp(), Ends::new(conn.local(), conn.remote()));
        let period = tcp.time_wait();
        let entry = TimeWait {
            remains: tcp.remains(),
            shift: tcp.scales().0,
            period: u32::try_from(period.as_nanos() / 1_000_000).unwrap_or(u32::MAX),
            until: tcp.next_timeout(),
            silent: Instant::ZERO,
        };
        self.remove(slot);
        if self.time_wait.len() >= self.config.most_waiting {
            // The one that is closest to its end makes room.
            if let Some(at) = self.time_wait.due(Instant::MAX) {
                self.time_wait.remove(at);
                self.counts.time_waits_cut += 1;
            }
        }
        if self.time_wait.len() < self.config.most_waiting {
            let at = self.time_wait.insert(ends, entry);
            self.time_wait.arm(at, entry.until);
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
        let at = self.time_wait.find(&Ends::new(local, remote))?;
        let next = self.time_wait.get(at)?.remains.next;
        self.time_wait.remove(at);
        Some(next)
    }

    /// Handles a segment of a connection in TIME-WAIT. If it starts a new connection, returns the number above
    /// which our sequence numbers must start.
    pub(super) fn time_wait_segment(
        &mut self,
        now: Instant,
        at: u32,
        tcp: &Tcp<'_>,
        out: &mut impl Outlet,
    ) -> Option<Seq> {
        let ends = self.time_wait.ends(at);
        let remains = self.time_wait.get(at)?.remains;
        if self.begins_anew(&remains, &ends, tcp) {
            self.time_wait.remove(at);
            return Some(remains.next);
        }
        // RFC 1337: a RST does not end TIME-WAIT.
        if tcp.flags.has(Flags::RST) {
            return None;
        }
        let w = self.time_wait.get_mut(at)?;
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
    pub(super) fn remove_expired_time_waits(&mut self, now: Instant) {
        while let Some(at) = self.time_wait.due(now) {
            match self.time_wait.get(at).map(|w| w.until) {
                Some(until) if until > now => self.time_wait.arm(at, until),
                _ => drop(self.time_wait.remove(at)),
            }
        }
    }
}

/// Whether a connection can be reduced to a table entry.
pub(super) fn may_be_reduced(conn: &Conn) -> bool {
    conn.released && conn.tcp().state() == State::TimeWait
}
