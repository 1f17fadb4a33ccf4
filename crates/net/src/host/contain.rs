//! Containment of panics: a panic in the work of a connection ends that connection, one in the work of half-open connections ends
//! those, and all others go on.

use super::conn::Conn;
use super::ends::Ends;
use super::failure::Failure;
use super::table::Table;
use super::transparent::Arrivals;
use super::{ConnId, Host};
use crate::outlet::Outlet;
use skyhaul_base::{Instant, Rng};
use skyhaul_tcp::{Connection, Flags, Segment, Seq};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A connection that was given up, and the numbers of its reset.
#[derive(Debug)]
pub(super) struct AbandonedConnection {
    ends: Ends,
    next: Seq,
    expected: Seq,
}

fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

impl Host {
    /// Does the work for one packet, one timer or one call of an application; `None` if it panics. What it was working on is
    /// then thrown away, since it may be in any state: the connection that was worked on last, or else all half-open ones and those
    /// in TIME-WAIT.
    pub(super) fn contain<T>(&mut self, now: Instant, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.at_work = None;
        let done = caught(|| work(self));
        if done.is_none() {
            self.counts.defects += 1;
            match self.at_work {
                Some(slot) => self.give_up(now, slot),
                None => self.clear_tables(),
            }
        }
        done
    }

    /// Puts a connection that has failed in the place of one that is broken: the application sees it as any that fails, and the
    /// peer gets a reset with the next flush.
    fn give_up(&mut self, now: Instant, slot: u32) {
        let Some(conn) = self.slots.get_mut(slot as usize).and_then(|s| s.conn.take()) else { return };
        let ends = Ends::new(conn.local(), conn.remote());
        self.ledger.strike(&conn);
        // Totals never decrease.
        let _ = caught(|| self.past.add_traffic(&conn));
        self.demux.remove(&ends, slot);
        if let Some(remains) = caught(|| conn.tcp().remains()) {
            self.broken.push(AbandonedConnection { ends, next: remains.next, expected: remains.expected });
        }
        let dead = caught(|| conn.dead(now)).flatten();
        // Its parts may fail once more while they are dropped.
        let _ = caught(move || drop(conn));
        if let (Some(dead), Some(s)) = (dead, self.slots.get_mut(slot as usize)) {
            s.conn = Some(Box::new(dead));
            if caught(|| self.settle(now, slot, true)).is_some() {
                return;
            }
        }
        if let Some(s) = self.slots.get_mut(slot as usize) {
            s.conn = None;
            s.generation = s.generation.wrapping_add(1);
            self.free.push(slot);
        }
    }
    /// Drops all half-open connections, and those in TIME-WAIT that no application holds. A peer that still wants a connection
    /// repeats its SYN.
    fn clear_tables(&mut self) {
        self.half_open = Table::new(&self.config.secret);
        self.early = Arrivals::default();
        self.time_wait = Table::new(&self.config.secret);
        for id in self.vacate_all() {
            self.admissions.withdraw(id);
        }
    }

    /// Resets the peers of connections that were given up.
    pub(super) fn reset_broken(&mut self, out: &mut impl Outlet) {
        for AbandonedConnection { ends, next, expected } in core::mem::take(&mut self.broken) {
            let flags = Flags::RST.with(Flags::ACK);
            let rst = Segment { seq: next, ack: expected, flags, ..Segment::default() };
            self.reset(ends.local(), ends.remote(), &rst, out);
        }
    }

    /// Counts a panic that was contained outside.
    pub fn note_defect(&mut self) {
        self.counts.defects += 1;
    }

    /// Makes the next work on a connection panic, for tests.
    #[doc(hidden)]
    pub fn break_down(&mut self, id: ConnId) {
        if let Some(conn) = self.get_mut(id) {
            conn.breaks = true;
        }
    }
}

impl Conn {
    /// The connection that replaces this one after a panic in it.
    fn dead(&self, now: Instant) -> Option<Self> {
        let config = skyhaul_tcp::Config::host();
        let control = skyhaul_cc::Config::by_name("newreno")?.build(&config.rules);
        let mut tcp = Connection::connect(now, config, control, Seq(0), Rng::stream(0, "dead"));
        tcp.abort(now);
        let mut dead = Self::new(tcp, self.local(), self.remote(), self.agreement(), self.listener);
        dead.fail(Failure::Defect);
        (dead.released, dead.gateway) = (self.released, self.gateway);
        Some(dead)
    }
}
