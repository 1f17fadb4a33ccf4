//! Connections in TIME-WAIT that no application holds open: a few bytes each, in a table of their own, so that they neither
//! cost what a connection costs nor take the place of one.

use super::Host;
use super::conn::Conn;
use super::ends::Ends;
use crate::outlet::{Merge, Outlet};
use skyhaul_base::{Duration, Instant};
use skyhaul_tcp::{Flags, Remains, Seq, State};
use skyhaul_wire::tcp::Tcp;
use skyhaul_wire::{Agreement, Checksum, Envelope};
use std::net::SocketAddr;

/// Late segments of one connection are answered no more often than this (as in Linux: `tcp_invalid_ratelimit`).
const PAUSE: Duration = Duration::from_millis(500);

/// What is left of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    remains: Remains,
    /// Our scale: windows are written with it.
    shift: u8,
    /// 2 MSL, milliseconds.
    period: u32,
    until: Instant,
    /// Nothing is answered before then.
    silent: Instant,
}

impl Host {
    /// The application has let go of a connection that is in TIME-WAIT: what has to be kept of it is kept.
    pub(super) fn lay_down(&mut self, slot: u32) {
        let Some(conn) = self.slots[slot as usize].conn.as_deref() else { return };
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
            // The one that has waited longest has done most of its duty.
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

    /// True if a segment to a connection in TIME-WAIT begins a new one. Our numbers of that begin beyond the old ones.
    pub(super) fn begins_anew(&self, remains: &Remains, ends: &Ends, tcp: &Tcp<'_>) -> bool {
        tcp.flags.has(Flags::SYN)
            && !tcp.flags.has(Flags::ACK)
            && !tcp.flags.has(Flags::RST)
            && remains.admits(tcp.seq, tcp.options.timestamps.map(|(val, _)| val))
            && self.listeners.at(ends.local().port()).is_some()
    }

    /// Ends the wait of a connection between these ends; the number beyond which a new one has to begin.
    pub(super) fn displace(&mut self, local: SocketAddr, remote: SocketAddr) -> Option<Seq> {
        let at = self.waiting.find(&Ends::new(local, remote))?;
        let next = self.waiting.get(at)?.remains.next;
        self.waiting.remove(at);
        Some(next)
    }

    /// A segment of a connection in TIME-WAIT. Returns the number beyond which a new connection has to begin, if it
    /// begins one.
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
        // RFC 1337: nothing assassinates it.
        if tcp.flags.has(Flags::RST) {
            return None;
        }
        let w = self.waiting.get_mut(at)?;
        if tcp.flags.has(Flags::FIN) && tcp.seq.diff(remains.expected) < 0 {
            // The last acknowledgement was lost: the wait begins again (RFC 9293 §3.10.7.4).
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

    /// Forgets those whose time is over.
    pub(super) fn bury(&mut self, now: Instant) {
        while let Some(at) = self.waiting.due(now) {
            match self.waiting.get(at).map(|w| w.until) {
                Some(until) if until > now => self.waiting.arm(at, until),
                _ => drop(self.waiting.remove(at)),
            }
        }
    }
}

/// True if only a few bytes have to be kept of a connection.
pub(super) fn may_lie_down(conn: &Conn) -> bool {
    conn.released && conn.tcp().state() == State::TimeWait
}
