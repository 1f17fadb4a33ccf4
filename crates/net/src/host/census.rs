//! State and totals of a host: connections by state, data carried, and how connections ended.
//!
//! Connections keep their own counters, so the totals cost nothing until they are read. A closing connection adds
//! its counters to the totals; a census sums up the present ones.

use super::Host;
use super::conn::Conn;
use super::failure::Failure;
use skyhaul_tcp::State;

/// States of connections, with the names used in reports.
const STATES: [(State, &str); 10] = [
    (State::SynSent, "syn-sent"),
    (State::SynReceived, "syn-received"),
    (State::Established, "established"),
    (State::FinWait1, "fin-wait-1"),
    (State::FinWait2, "fin-wait-2"),
    (State::CloseWait, "close-wait"),
    (State::Closing, "closing"),
    (State::LastAck, "last-ack"),
    (State::TimeWait, "time-wait"),
    (State::Closed, "closed"),
];

/// Totals over connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Payload acknowledged by peers, bytes.
    pub bytes_acked: u64,
    /// Payload received in order, bytes.
    pub bytes_received: u64,
    /// Data segments sent, retransmissions included, probes excluded.
    pub segments_sent: u64,
    /// Retransmissions among these.
    pub retransmissions: u64,
    /// Expirations of the retransmission timer.
    pub timeouts: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes answered.
    pub probes_answered: u64,
}

impl Traffic {
    fn add(&mut self, conn: &Conn) {
        let c = conn.counters();
        self.bytes_acked += c.bytes_acked;
        self.bytes_received += conn.tcp().receiver().payload_received();
        self.segments_sent += c.segments_sent;
        self.retransmissions += c.retransmissions;
        self.timeouts += c.timeouts;
        self.probes_sent += c.probes_sent;
        self.probes_answered += c.probes_answered;
    }
}

/// How connections began and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections that we opened.
    pub opened: u64,
    /// Incoming connections whose handshake was completed.
    pub accepted: u64,
    /// Connections that closed in order; TIME-WAIT counts as closed.
    pub closed: u64,
    /// Connections that a peer reset, or refused.
    pub reset: u64,
    /// Connections whose peer stopped answering or was unreachable.
    pub vanished: u64,
    /// Connections that we aborted with a RST.
    pub aborted: u64,
}

/// Memory use by purpose, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Payload in order, in both directions, including reserved buffer space.
    pub payload: u64,
    /// Payload beyond gaps.
    pub beyond_gaps: u64,
    /// Records of connections.
    pub records: u64,
    /// Half-open connections.
    pub half_open: u64,
    /// Connections in TIME-WAIT that no application holds open.
    pub time_wait: u64,
}

/// State and totals of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Current connections by state name, including half-open ones and those in TIME-WAIT.
    pub states: Vec<(&'static str, u64)>,
    /// How connections began and ended.
    pub lives: ConnectionCounts,
    /// Totals over all connections, including closed ones.
    pub traffic: Traffic,
    /// Memory use.
    pub memory: MemoryUse,
    /// Entries in the timer lists; a timer that was moved to an earlier time may have two.
    pub timers: u64,
}

/// Totals over closed connections.
#[derive(Debug, Default)]
pub(super) struct ClosedTotals {
    pub(super) lives: ConnectionCounts,
    traffic: Traffic,
}

impl ClosedTotals {
    /// Adds the traffic of a connection, not how it ended.
    pub(super) fn add_traffic(&mut self, conn: &Conn) {
        self.traffic.add(conn);
    }
    /// Adds a closing connection.
    pub(super) fn add(&mut self, conn: &Conn) {
        self.add_traffic(conn);
        let end = match conn.failure() {
            Some(Failure::Refused | Failure::Reset) => &mut self.lives.reset,
            Some(Failure::TimedOut | Failure::Unreachable) => &mut self.lives.vanished,
            Some(Failure::Defect) => &mut self.lives.aborted,
            None if conn.ended_in_order() || conn.tcp().state() == State::TimeWait => &mut self.lives.closed,
            None => &mut self.lives.aborted,
        };
        *end += 1;
    }
}

impl Host {
    /// Counts everything. It scans all connections, so call it only from time to time.
    #[must_use]
    pub fn census(&self) -> Census {
        let (mut states, mut traffic) = ([0; STATES.len()], self.past.traffic);
        let mut memory = MemoryUse::default();
        let mut count = |state: State, n: u64| {
            let of = STATES.iter().zip(&mut states).find(|((s, _), _)| *s == state);
            of.into_iter().for_each(|(_, count)| *count += n);
        };
        for conn in self.slots.iter().filter_map(|s| s.conn.as_deref()) {
            traffic.add(conn);
            let state = conn.tcp().state();
            count(state, 1);
            let held = conn.tcp().held();
            memory.payload += (held.all - held.beyond) as u64;
            memory.beyond_gaps += held.beyond as u64;
            memory.records += conn.memory_use() - held.all as u64;
        }
        let [half_open, time_wait] = self.table_bytes();
        (memory.half_open, memory.time_wait) = (half_open as u64, time_wait as u64);
        for (state, n) in [(State::SynReceived, self.half_open()), (State::TimeWait, self.time_waits())] {
            count(state, n as u64);
        }
        Census {
            states: STATES.iter().zip(states).map(|((_, name), n)| (*name, n)).collect(),
            lives: self.past.lives,
            traffic,
            memory,
            timers: self.timers() as u64,
        }
    }

    /// Entries in the timer lists.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.deadlines.len() + self.half_open.timers() + self.time_wait.timers()
    }
}
