//! What receivers of datagrams measure, sender by sender.

use crate::host::Host;
use skyhaul_apps::{Datagram, Delays};
use skyhaul_base::Instant;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What receivers of datagrams measure, sender by sender. Both ends have one clock. Every sender is remembered: it is for
/// networks whose senders are known.
#[derive(Clone, Debug)]
pub struct Inbox {
    until: Instant,
    senders: BTreeMap<SocketAddr, Delays>,
}

impl Inbox {
    /// Counts what arrives until then; [`Instant::MAX`] for without end.
    #[must_use]
    pub fn new(until: Instant) -> Self {
        Self { until, senders: BTreeMap::new() }
    }
    /// A datagram arrived. One without header is nobody's: it cannot be measured.
    pub fn arrived(&mut self, now: Instant, from: SocketAddr, payload: &[u8]) {
        if let Some(datagram) = Datagram::read(payload).filter(|d| now <= self.until && d.sent_at <= now) {
            self.senders.entry(from).or_default().arrived(now, &datagram);
        }
    }
    /// Reads all that has arrived at a host.
    pub fn read(&mut self, host: &mut Host) {
        while let Some(d) = host.receive() {
            self.arrived(d.at, d.from, &d.payload);
        }
    }
    /// What arrived from this sender.
    #[must_use]
    pub fn of(&self, from: SocketAddr) -> Delays {
        self.senders.get(&from).cloned().unwrap_or_default()
    }
}
