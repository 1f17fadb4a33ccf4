//! What came to the receiving ends of flows that a viewer watches, as the simulator tells it.
//!
//! A viewer belongs to a workload, which is where the senders are. So the receivers write down what comes and when, and the
//! workload is told afterwards.

use skyhaul_apps::{Arrival, Datagram};
use skyhaul_base::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// What came from each sender, in the order of time. Both ends have one clock. Every sender is remembered: it is for networks
/// whose senders are known.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    ports: BTreeSet<u16>,
    senders: BTreeMap<SocketAddr, Vec<(Instant, Arrival)>>,
}

impl Watched {
    /// What comes to this port is of interest.
    pub fn expect(&mut self, port: u16) {
        self.ports.insert(port);
    }
    /// Something is of interest.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.ports.is_empty()
    }
    /// So many bytes of the stream from there to this port are there in order.
    pub fn in_order(&mut self, now: Instant, from: SocketAddr, port: u16, bytes: u64) {
        if !self.ports.contains(&port) {
            return;
        }
        let all = self.senders.entry(from).or_default();
        if !matches!(all.last(), Some((_, Arrival::InOrder { bytes: before })) if *before >= bytes) {
            all.push((now, Arrival::InOrder { bytes }));
        }
    }
    /// A datagram from there has arrived at this port. One without header, or of the future, is nobody's.
    pub fn datagram(&mut self, now: Instant, from: SocketAddr, port: u16, payload: &[u8]) {
        if !self.ports.contains(&port) {
            return;
        }
        if let Some(datagram) = Datagram::read(payload).filter(|d| d.sent_at <= now) {
            self.senders.entry(from).or_default().push((now, Arrival::Datagram(datagram)));
        }
    }
    /// What came from this sender.
    #[must_use]
    pub fn of(&self, from: SocketAddr) -> &[(Instant, Arrival)] {
        self.senders.get(&from).map_or(&[], Vec::as_slice)
    }
}
