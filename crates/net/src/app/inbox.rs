//! Measurements of datagram receivers, by sender.

use crate::host::Host;
use skyhaul_apps::{Datagram, Delays};
use skyhaul_base::Instant;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Measurements of datagram receivers, by sender. Both ends share one clock. Senders are never forgotten, so use it
/// only in networks whose senders are known.
#[derive(Clone, Debug)]
pub struct Inbox {
    until: Instant,
    senders: BTreeMap<SocketAddr, Delays>,
}

impl Inbox {
    /// Counts arrivals until this time; [`Instant::MAX`] means without end.
    #[must_use]
    pub fn new(until: Instant) -> Self {
        Self { until, senders: BTreeMap::new() }
    }
    /// Records a datagram. One without a header, or with a time in the future, cannot be measured and is ignored.
    pub fn arrived(&mut self, now: Instant, from: SocketAddr, payload: &[u8]) {
        if let Some(datagram) = Datagram::read(payload).filter(|d| now <= self.until && d.sent_at <= now) {
            self.senders.entry(from).or_default().arrived(now, &datagram);
        }
    }
    /// Reads and records every datagram that has arrived at a host.
    pub fn read(&mut self, host: &mut Host) {
        while let Some(d) = host.receive() {
            self.arrived(d.at, d.from, &d.payload);
        }
    }
    /// Measurements for this sender.
    #[must_use]
    pub fn of(&self, from: SocketAddr) -> Delays {
        self.senders.get(&from).cloned().unwrap_or_default()
    }
}
