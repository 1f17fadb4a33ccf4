//! What a host holds now and has done since it began: connections by state, what they carried, how they ended.
//!
//! Connections count for themselves, which costs the host nothing. What is past is added when a connection goes; what is
//! present is added up when somebody asks.

use super::Host;
use super::conn::{Conn, Failure};
use skyhaul_tcp::State;

/// States of connections, by the names that counts use.
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

/// What connections have carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Payload acknowledged by peers, bytes.
    pub bytes_acked: u64,
    /// Payload received in order, bytes.
    pub bytes_received: u64,
    /// Data segments sent, retransmissions included, probes excluded.
    pub segments_sent: u64,
    /// Of these, retransmissions.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
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

/// How connections came to be and to their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lives {
    /// Connections that we opened.
    pub opened: u64,
    /// Incoming connections whose handshake was completed.
    pub accepted: u64,
    /// Connections that ended in order; TIME-WAIT is an end.
    pub closed: u64,
    /// Connections that a peer reset, or refused.
    pub reset: u64,
    /// Connections whose peer did not answer any more, or could not be reached.
    pub vanished: u64,
    /// Connections that we gave up with a RST.
    pub aborted: u64,
}

/// What memory is held for, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Payload in order, in both directions, with the room that is kept for it.
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

/// What a host holds now and has done since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Connections now, by the name of their state. Those that are half open or in TIME-WAIT are included.
    pub states: Vec<(&'static str, u64)>,
    /// How connections came and went.
    pub lives: Lives,
    /// What all connections have carried, those that are gone included.
    pub traffic: Traffic,
    /// What memory is held for.
    pub memory: MemoryUse,
    /// Entries in the timer lists; one that was put off may stand for itself twice.
    pub timers: u64,
}

/// What is past.
#[derive(Debug, Default)]
pub(super) struct Past {
    pub(super) lives: Lives,
    traffic: Traffic,
}

impl Past {
    /// A connection goes.
    pub(super) fn add(&mut self, conn: &Conn) {
        self.traffic.add(conn);
        let end = match conn.failure() {
            Some(Failure::Refused | Failure::Reset) => &mut self.lives.reset,
            Some(Failure::TimedOut | Failure::Unreachable) => &mut self.lives.vanished,
            None if conn.ended_in_order() || conn.tcp().state() == State::TimeWait => &mut self.lives.closed,
            None => &mut self.lives.aborted,
        };
        *end += 1;
    }
}

impl Host {
    /// Counts everything. It looks at each connection: for whoever asks from time to time.
    #[must_use]
    pub fn census(&self) -> Census {
        let (mut states, mut traffic) = ([0; STATES.len()], self.past.traffic);
        let mut memory = MemoryUse::default();
        for conn in self.slots.iter().filter_map(|s| s.conn.as_deref()) {
            traffic.add(conn);
            let state = conn.tcp().state();
            if let Some(at) = STATES.iter().position(|(s, _)| *s == state) {
                states[at] += 1;
            }
            let held = conn.tcp().held();
            memory.payload += (held.all - held.beyond) as u64;
            memory.beyond_gaps += held.beyond as u64;
            memory.records += conn.weight() - held.all as u64;
        }
        let [half_open, time_wait] = self.bytes_of_strangers();
        (memory.half_open, memory.time_wait) = (half_open as u64, time_wait as u64);
        for (state, n) in [(State::SynReceived, self.half_open()), (State::TimeWait, self.time_waits())] {
            if let Some(at) = STATES.iter().position(|(s, _)| *s == state) {
                states[at] += n as u64;
            }
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
        self.deadlines.len() + self.half_open.timers() + self.waiting.timers()
    }
}
