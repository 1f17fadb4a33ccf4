//! State per flow: the part needed by every arrival, and the rest.

pub(crate) mod agent;
pub(crate) mod datagram;
pub(crate) mod ends;
pub(crate) mod life;
pub(crate) mod plain;
pub(crate) mod rated;
pub(crate) mod transfer;
pub(crate) mod user;
pub(crate) mod watch;

use crate::flow::agent::Agent;
use crate::observe::oracle::Oracle;
use crate::observe::samples::Samples;
use crate::observe::truth::{ReductionAccount, Verdicts};
use crate::packet::parcel::Label;
use crate::result::Page;
use skyhaul_apps::App;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::{CongestionControl, PathState};
use skyhaul_scenario::resolved::FlowGroup;
use skyhaul_tcp::{Bursts, Counted, Sender, Snapshot};

/// The flow starts no chain of connections; the usual case.
const NO_CHAIN: u32 = u32::MAX;

/// The part used by every arrival.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Number of the flow's current connection; segments of others are discarded.
    pub(crate) generation: u16,
    /// Route of data.
    pub(crate) forward: u16,
    /// Route of acknowledgements.
    pub(crate) reverse: u16,
    /// The workload may end: after each acknowledgement, check whether everything is acknowledged.
    pub(crate) finite: bool,
    /// The application is informed of arrivals.
    pub(crate) watched: bool,
    /// Header bytes of a packet.
    pub(crate) header: u32,
    /// DSCP of its packets, but for those of low priority.
    pub(crate) dscp: u8,
    /// Time of the last acknowledgement; `Instant::MAX` before the first one.
    pub(crate) last_ack: Instant,
    /// When its timer fires, possibly too early.
    pub(crate) armed: Instant,
    /// The chain of connections that it starts, or [`NO_CHAIN`].
    pub(crate) chain: u32,
    /// The two ends.
    pub(crate) agent: Agent,
}

/// The part used when something begins or ends, or is sampled.
#[derive(Debug)]
pub(crate) struct Record {
    /// Index of the group.
    pub(crate) group: usize,
    /// Index within the group.
    pub(crate) index: u32,
    /// Its start time.
    pub(crate) start: Instant,
    /// When the source stops producing data; `Instant::MAX` if it does not.
    pub(crate) stop: Instant,
    pub(crate) started: Option<Instant>,
    pub(crate) finished: Option<Instant>,
    /// Its sender gave up or was reset.
    pub(crate) dead: bool,
    /// When the current page began.
    pub(crate) page_began: Instant,
    pub(crate) pages: Vec<Page>,
    pub(crate) discarded: u64,
    pub(crate) rejected: u64,
    /// Sum and number of the samples of the smoothed RTT, in seconds.
    pub(crate) srtt: (f64, u64),
    /// Rarely needed records, once there are any.
    pub(crate) history: Option<Box<History>>,
    /// The state from which events were last derived.
    pub(crate) reported: Reported,
    /// Its application, from the start of the flow; flows with a fixed window and single transfers have none.
    pub(crate) app: Option<App>,
    /// The transfer that this connection carries for its flow.
    pub(crate) transfer: Option<Box<Transfer>>,
}

/// Records of the past.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Window reductions, by true cause.
    pub(crate) cuts: ReductionAccount,
    /// The sender's loss verdicts.
    pub(crate) verdicts: Verdicts,
    /// Totals of closed connections.
    pub(crate) past: Totals,
    /// Informs the sender of the fate of its packets, if its loss classifier is an oracle.
    pub(crate) oracle: Option<Oracle>,
    /// The sender's bandwidth estimate, over the samples.
    pub(crate) bwe: Samples,
    /// The path state learnt by the last connection, if its congestion control uses it.
    pub(crate) path_state: Option<PathState>,
    /// The flow of the last transfer that this connection has carried to its end: packets of that transfer may still be on their way,
    /// and count for that flow, even once the connection carries another transfer.
    pub(crate) last_owner: Option<u32>,
}

/// The random stream of one end (`end` is its name) of the connection of flow `index` of a group that carries the transfer with
/// this number.
pub(crate) fn stream(seed: u64, group: &FlowGroup, index: u32, end: &str, transfer: u64) -> Rng {
    let which = if transfer == 0 { String::new() } else { format!(".{transfer}") };
    Rng::stream(seed, &format!("flows.{}[{index}].{end}{which}", group.name))
}

/// A transfer of a flow with randomly arriving transfers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    /// The flow that it belongs to.
    pub(crate) owner: u32,
    /// Its number, from 0.
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    /// When it arrived: before its connection opened if it waited for one.
    pub(crate) arrived: Instant,
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

/// The state of a sender last reported to a recorder.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reported {
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

    /// Adds a sender's counters.
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
    /// The `index`-th flow of group `group`, active from `start` to `stop`.
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
            reported: Reported::default(),
            app: None,
            transfer: None,
        }
    }

    /// The current page or transfer of a flow of `group` at a time, complete or not.
    pub(crate) fn page_at(&self, now: Instant, group: &FlowGroup) -> Page {
        let (began, took) = (self.page_began, now - self.page_began);
        if let Some(Transfer { number, bytes, .. }) = self.transfer.as_deref().copied() {
            return Page { number, began, bytes, took };
        }
        let segments = group.app.page().map_or(0, |(segments, _)| segments);
        let bytes = segments.saturating_mul(group.endpoint.mss.into());
        Page { number: self.pages.len() as u64, began, bytes, took }
    }
    /// The records of the past, for adding to them.
    pub(crate) fn history(&mut self) -> &mut History {
        self.history.get_or_insert_default()
    }
    /// Window reductions so far.
    pub(crate) fn cuts(&self) -> ReductionAccount {
        self.history.as_ref().map_or_else(ReductionAccount::default, |h| h.cuts)
    }
    /// The sender's loss verdicts so far.
    pub(crate) fn verdicts(&self) -> Verdicts {
        self.history.as_ref().map_or_else(Verdicts::default, |h| h.verdicts)
    }
    /// The path state learnt by the last connection.
    pub(crate) fn path_state(&self) -> Option<PathState> {
        self.history.as_ref().and_then(|h| h.path_state)
    }
    /// Totals of a flow over all its connections.
    pub(crate) fn totals(&self, flow: &Flow, payload: u32) -> Totals {
        let past = self.history.as_ref().map_or_else(Totals::default, |h| h.past.clone());
        flow.totals(past, payload)
    }
}

impl Flow {
    /// A flow that has not started. `finite`: its workload may end.
    pub(crate) fn new(forward: u16, reverse: u16, finite: bool, (header, dscp): (u32, u8)) -> Self {
        Self {
            generation: 0,
            forward,
            reverse,
            finite,
            watched: false,
            header,
            dscp,
            last_ack: Instant::MAX,
            armed: Instant::MAX,
            chain: NO_CHAIN,
            agent: Agent::Silent,
        }
    }

    /// Time of the last acknowledgement, if there was one.
    pub(crate) fn last_ack(&self) -> Option<Instant> {
        Some(self.last_ack).filter(|at| *at != Instant::MAX)
    }
    /// The chain that it starts.
    pub(crate) fn chain(&self) -> Option<u32> {
        Some(self.chain).filter(|&c| c != NO_CHAIN)
    }
    /// The smoothed RTT of a sender, if it has one.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        if let Some(rated) = self.agent.leg().and_then(|leg| leg.rated()) {
            return rated.sender.srtt();
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

    /// The sender's bandwidth estimate, bit/s of payload, if it has one.
    pub(crate) fn bandwidth_estimate(&self) -> Option<f64> {
        let sender = self.agent.sender()?;
        let rate = sender.control().bandwidth_estimate(sender.segment_size())?;
        Some(rate.bits_per_sec() as f64)
    }

    /// The label of a segment of flow `index`.
    #[inline]
    pub(crate) fn label(&self, index: u32, backward: bool) -> Label {
        let hop = if backward { self.reverse } else { self.forward };
        Label {
            flow: index,
            generation: self.generation,
            hop,
            backward,
            header: self.header,
            dscp: self.dscp,
        }
    }

    /// Totals over past connections and the current one; `payload` is the packet payload of a fixed window.
    fn totals(&self, past: Totals, payload: u32) -> Totals {
        let mut all = past;
        match &self.agent {
            Agent::Silent | Agent::Segment(_) => {}
            Agent::OneWay(_) | Agent::Connections(_) | Agent::Leg(_) => {
                if let Some(sender) = self.agent.sender() {
                    all.add(sender);
                }
                if let Agent::Leg(leg) = &self.agent {
                    all.unread += leg.headers.as_ref().map_or(0, |h| h.lost());
                    all.retransmissions += leg.spoof().map_or(0, |s| s.repeats);
                    if let Some(rated) = leg.rated() {
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
        // Not counted: the congestion control (72 bytes with `cc = "sack"`), the timer (32), the entry in `Truth` (8).
        let (flow, record) = (size_of::<Flow>(), size_of::<Record>());
        assert!(flow + record <= 1152, "{flow} + {record} bytes");
    }
}
