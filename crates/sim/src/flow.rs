//! What the engine keeps per flow: what every arrival needs, and the rest.

use crate::agent::Agent;
use crate::oracle::Oracle;
use crate::parcel::Label;
use crate::samples::Samples;
use crate::truth::{Account, Verdicts};
use skyhaul_apps::App;
use skyhaul_base::{Duration, Instant};
use skyhaul_cc::{CongestionControl, PathState};
use skyhaul_tcp::{Bursts, Counted, Sender, Snapshot};

/// It heads no chain, as nearly all flows.
const NO_CHAIN: u32 = u32::MAX;

/// The part that every arrival touches.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Which of the flow's connections is current; segments of others are discarded.
    pub(crate) generation: u16,
    /// Route of data.
    pub(crate) forward: u16,
    /// Route of acknowledgements.
    pub(crate) reverse: u16,
    /// The workload may come to an end: look whether everything is acknowledged.
    pub(crate) finite: bool,
    /// The application wants to hear what arrives.
    pub(crate) watched: bool,
    /// Bytes that a packet is longer than its payload.
    pub(crate) header: u32,
    /// When the last acknowledgement arrived.
    pub(crate) last_ack: Option<Instant>,
    /// When its timer fires; perhaps too early.
    pub(crate) armed: Instant,
    /// The chain that it heads, or [`NO_CHAIN`].
    pub(crate) chain: u32,
    /// The two ends.
    pub(crate) agent: Agent,
}

/// The part that is touched when something begins or ends.
#[derive(Debug)]
pub(crate) struct Record {
    /// Index of the group.
    pub(crate) group: usize,
    /// Index within the group.
    pub(crate) index: u32,
    /// When it is to start.
    pub(crate) start: Instant,
    /// When the source stops to produce data; `Instant::MAX` if it does not.
    pub(crate) stop: Instant,
    pub(crate) started: Option<Instant>,
    pub(crate) finished: Option<Instant>,
    /// Its sender gave up on the peer, and the application was told.
    pub(crate) dead: bool,
    /// When the current page began.
    pub(crate) page_began: Instant,
    pub(crate) pages: Vec<Duration>,
    pub(crate) discarded: u64,
    pub(crate) rejected: u64,
    /// Sum and number of the samples of the smoothed RTT, in seconds.
    pub(crate) srtt: (f64, u64),
    /// What has happened, once something has.
    pub(crate) history: Option<Box<History>>,
    /// What events were last derived from.
    pub(crate) seen: Seen,
    /// What it has to send, from the time that it starts; flows of a fixed window and single transfers have none.
    pub(crate) app: Option<App>,
    /// The transfer that this connection carries for the flow it belongs to.
    pub(crate) transfer: Option<Box<Transfer>>,
}

/// What is kept of what is over.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Cuts of the window, by true cause.
    pub(crate) cuts: Account,
    /// What the sender made of its losses.
    pub(crate) verdicts: Verdicts,
    /// Of connections that are over.
    pub(crate) past: Totals,
    /// Tells the sender what became of its packets, if it asks.
    pub(crate) oracle: Option<Oracle>,
    /// The bandwidth that the sender estimated, over the samples.
    pub(crate) bwe: Samples,
    /// What the last connection has learnt of the path, if its congestion control asks.
    pub(crate) path_state: Option<PathState>,
}

/// One of the transfers of a flow whose transfers arrive at random.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// The flow that it belongs to.
    pub(crate) owner: u32,
    /// Its number, from 0.
    pub(crate) number: u64,
    pub(crate) bytes: u64,
}

/// Sums over the connections of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) bytes_acked: u64,
    pub(crate) segments_sent: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeout_retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) recoveries: u64,
    pub(crate) undone: u64,
    pub(crate) probes_sent: u64,
    pub(crate) probes_answered: u64,
    pub(crate) acks: u64,
    pub(crate) duplicate_acks: u64,
    pub(crate) bursts: Bursts,
    /// Packets whose compressed headers could not be read.
    pub(crate) unread: u64,
}

/// What a recorder was last told about a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
    pub(crate) timeouts: u64,
    pub(crate) recovering: bool,
    pub(crate) answered: u64,
}

impl Totals {
    /// Adds those of another connection.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.bytes_acked += other.bytes_acked;
        self.segments_sent += other.segments_sent;
        self.retransmissions += other.retransmissions;
        self.timeout_retransmissions += other.timeout_retransmissions;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
        self.undone += other.undone;
        self.probes_sent += other.probes_sent;
        self.probes_answered += other.probes_answered;
        self.acks += other.acks;
        self.duplicate_acks += other.duplicate_acks;
        self.bursts.merge(&other.bursts);
        self.unread += other.unread;
    }

    /// Adds what a sender has done.
    pub(crate) fn add(&mut self, sender: &Sender<Counted>) {
        let c = sender.counters();
        self.bursts.merge(&sender.bursts());
        self.bytes_acked += c.bytes_acked;
        self.segments_sent += c.segments_sent;
        self.retransmissions += c.retransmissions;
        self.timeout_retransmissions += sender.timeout_retransmissions();
        self.timeouts += c.timeouts;
        self.recoveries += c.recoveries;
        self.undone += c.undone;
        self.probes_sent += c.probes_sent;
        self.probes_answered += c.probes_answered;
        self.acks += c.acks;
        self.duplicate_acks += c.duplicate_acks;
    }
}

impl Record {
    /// The `index`-th flow of group `group`, from `start` until `stop`.
    pub(crate) fn new(group: usize, index: u32, start: Instant, stop: Instant) -> Self {
        Self {
            group,
            index,
            start,
            stop,
            started: None,
            finished: None,
            dead: false,
            page_began: Instant::ZERO,
            pages: Vec::new(),
            discarded: 0,
            rejected: 0,
            srtt: (0.0, 0),
            history: None,
            seen: Seen::default(),
            app: None,
            transfer: None,
        }
    }
}

impl Record {
    /// What has happened, to be added to.
    pub(crate) fn history(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }
    /// Cuts of the window so far.
    pub(crate) fn cuts(&self) -> Account {
        self.history.as_ref().map_or_else(Account::default, |h| h.cuts)
    }
    /// What the sender made of its losses so far.
    pub(crate) fn verdicts(&self) -> Verdicts {
        self.history.as_ref().map_or_else(Verdicts::default, |h| h.verdicts)
    }
    /// What the last connection has learnt of the path.
    pub(crate) fn path_state(&self) -> Option<PathState> {
        self.history.as_ref().and_then(|h| h.path_state)
    }
    /// What a flow has done, over all of its connections.
    pub(crate) fn totals(&self, flow: &Flow, payload: u32) -> Totals {
        let past = self.history.as_ref().map_or_else(Totals::default, |h| h.past.clone());
        flow.totals(past, payload)
    }
}

impl Flow {
    /// A flow that has not started. `finite`: its workload may come to an end.
    pub(crate) fn new(forward: u16, reverse: u16, finite: bool, header: u32) -> Self {
        Self {
            generation: 0,
            forward,
            reverse,
            finite,
            watched: false,
            header,
            last_ack: None,
            armed: Instant::MAX,
            chain: NO_CHAIN,
            agent: Agent::Silent,
        }
    }

    /// The chain of connections that it heads.
    pub(crate) fn chain(&self) -> Option<u32> {
        Some(self.chain).filter(|&c| c != NO_CHAIN)
    }
    /// The smoothed RTT of a sender, if it has one.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        if let Agent::Leg(leg) = &self.agent {
            if let Some(rated) = &leg.rated {
                return rated.sender.srtt();
            }
        }
        match self.agent.rated() {
            Some(rated) => rated.sender.state().rtt,
            None => self.snapshot()?.srtt,
        }
    }
    /// The state of the TCP sender, if there is one.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        self.agent.sender().map(|s| s.snapshot())
    }

    /// The bandwidth that the sender estimates, bit/s of payload, if it does.
    pub(crate) fn bandwidth_estimate(&self) -> Option<f64> {
        let sender = self.agent.sender()?;
        let rate = sender.control().bandwidth_estimate(sender.segment_size())?;
        Some(rate.bits_per_sec() as f64)
    }

    /// What a segment of flow `index` is labelled with.
    #[inline]
    pub(crate) fn way(&self, index: u32, backward: bool) -> Label {
        let hop = if backward { self.reverse } else { self.forward };
        Label { flow: index, generation: self.generation, hop, backward }
    }

    /// The sums over past connections and the present one; `payload` is the size of a fixed window's packet.
    fn totals(&self, past: Totals, payload: u32) -> Totals {
        let mut all = past;
        match &self.agent {
            Agent::Silent => {}
            Agent::OneWay(_) | Agent::Connections(_) | Agent::Leg(_) => {
                if let Some(sender) = self.agent.sender() {
                    all.add(sender);
                }
                if let Agent::Leg(leg) = &self.agent {
                    all.unread += leg.headers.as_ref().map_or(0, |h| h.lost());
                    all.retransmissions += leg.spoof.as_ref().map_or(0, |s| s.repeats);
                    if let Some(rated) = &leg.rated {
                        let c = rated.sender.counters();
                        all.bytes_acked += rated.sender.acked();
                        all.segments_sent += c.sent;
                        all.retransmissions += c.repeats;
                        all.timeouts += c.timeouts;
                        all.acks += c.reports;
                    }
                }
            }
            Agent::Datagrams(d) => {
                let (sent, bytes) = d.counts();
                all.bytes_acked += bytes;
                all.segments_sent += sent;
            }
            Agent::Rated(rated) => {
                let counters = rated.sender.counters();
                all.bytes_acked += rated.bytes();
                all.segments_sent += counters.sent;
                all.acks += counters.reports;
            }
            Agent::FixedWindow(w) => {
                let (sent, acked) = w.counts();
                all.bytes_acked += acked * u64::from(payload);
                all.segments_sent += sent;
                all.acks += acked;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_without_holes_is_small() {
        // Besides, the congestion control (SACK: 72 bytes), a timer (32) and what is known of losses (8).
        let (flow, record) = (size_of::<Flow>(), size_of::<Record>());
        assert!(flow + record <= 1096, "{flow} + {record} bytes");
    }
}
