//! Both ends of a flow of datagrams.

use skyhaul_apps::{Datagram, Delays, Measured, Numbered};
use skyhaul_base::Instant;

/// Both ends of a flow of datagrams.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    sender: Numbered,
    receiver: Delays,
}

impl Datagrams {
    /// The next packet, with so many bytes of payload.
    pub(crate) fn send(&mut self, now: Instant, payload: u32) -> Datagram {
        self.sender.next(now, payload)
    }
    /// A packet arrived.
    pub(crate) fn receive(&mut self, now: Instant, packet: &Datagram) {
        self.receiver.arrived(now, packet);
    }
    /// Packets sent, and payload bytes delivered.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.sender.sent(), self.receiver.bytes())
    }
    /// What the receiver measured.
    pub(crate) fn result(&self) -> Measured {
        self.receiver.measured()
    }
}
