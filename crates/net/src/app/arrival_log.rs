//! Arrivals at the receiving ends of flows that have a viewer, in the form in which the simulator reports them.
//!
//! A viewer belongs to a workload, which runs at the sender. The receivers therefore log arrivals with their times,
//! which are passed to the workload after the run.

use skyhaul_apps::{Arrival, Datagram};
use skyhaul_base::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Arrivals from each sender, in order of time. Both ends share one clock. Senders are never forgotten, so use it
/// only in networks whose senders are known.
#[derive(Clone, Debug, Default)]
pub struct ArrivalLog {
    ports: BTreeSet<u16>,
    senders: BTreeMap<SocketAddr, Vec<(Instant, Arrival)>>,
}

impl ArrivalLog {
    /// Logs arrivals at this port.
    pub fn expect(&mut self, port: u16) {
        self.ports.insert(port);
    }
    /// Whether any arrivals are logged.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.ports.is_empty()
    }
    /// Logs that the stream from this sender to this port is complete up to this many bytes.
    pub fn in_order(&mut self, now: Instant, from: SocketAddr, port: u16, bytes: u64) {
        if !self.ports.contains(&port) {
            return;
        }
        let all = self.senders.entry(from).or_default();
        if !matches!(all.last(), Some((_, Arrival::InOrder { bytes: before })) if *before >= bytes) {
            all.push((now, Arrival::InOrder { bytes }));
        }
    }
    /// Logs a datagram from this sender to this port. One without a header, or with a time in the future, is
    /// ignored.
    pub fn datagram(&mut self, now: Instant, from: SocketAddr, port: u16, payload: &[u8]) {
        if !self.ports.contains(&port) {
            return;
        }
        if let Some(datagram) = Datagram::read(payload).filter(|d| d.sent_at <= now) {
            self.senders.entry(from).or_default().push((now, Arrival::Datagram(datagram)));
        }
    }
    /// Arrivals from this sender.
    #[must_use]
    pub fn of(&self, from: SocketAddr) -> &[(Instant, Arrival)] {
        self.senders.get(&from).map_or(&[], Vec::as_slice)
    }
}
