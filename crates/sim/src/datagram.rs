//! Both ends of a flow of datagrams.

use skyhaul_apps::{Datagram, Delays, Measured, Numbered};
use skyhaul_base::Instant;
use skyhaul_rate::{Config, Data, Receiver, Sender};

/// Both ends of a flow of datagrams that nothing slows down.
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

/// Both ends of a flow of datagrams that keep to a rate.
#[derive(Debug)]
pub(crate) struct Rated {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    delays: Delays,
    /// Queues may mark its packets.
    pub(crate) ecn: bool,
    /// Reports are TFRC's.
    pub(crate) tfrc: bool,
    /// From which packet on the number that a datagram was offered as is ahead of its packet's, and by how much: by those that
    /// found no room at the sender. An entry for each time that it changes.
    ahead: Vec<(u64, u64)>,
}

impl Rated {
    /// A flow that starts now.
    pub(crate) fn new(now: Instant, config: &Config) -> Self {
        Self {
            sender: Sender::new(now, config),
            receiver: Receiver::new(config),
            delays: Delays::default(),
            ecn: config.ecn(),
            tfrc: matches!(config, Config::Tfrc(_)),
            ahead: Vec::new(),
        }
    }
    /// The packet to be sent now; to be called until there is none.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Data> {
        let (data, offered) = self.sender.poll_numbered(now)?;
        let ahead = offered.map_or(0, |n| n.saturating_sub(data.number));
        if ahead != self.ahead.last().map_or(0, |(_, by)| *by) {
            self.ahead.push((data.number, ahead));
        }
        Some(data)
    }
    /// A packet arrived, marked by a queue or not, `header` bytes of which are headers. Returns the datagram as the application offered it: those that
    /// found no room at the sender have numbers there, and none on the link.
    pub(crate) fn receive(&mut self, now: Instant, (data, marked): (&Data, bool), header: u32) -> Datagram {
        let Data { number, sent_at, size, .. } = *data;
        let datagram = Datagram { number, sent_at, len: size - header };
        self.delays.arrived(now, &datagram);
        self.receiver.handle(now, data, marked);
        let changes = self.ahead.partition_point(|(from, _)| *from <= number);
        let ahead = changes.checked_sub(1).map_or(0, |last| self.ahead[last].1);
        Datagram { number: number + ahead, ..datagram }
    }
    /// Payload bytes delivered.
    pub(crate) fn bytes(&self) -> u64 {
        self.delays.bytes()
    }
    /// What the receiver measured.
    pub(crate) fn result(&self) -> Measured {
        self.delays.measured()
    }
    /// When one of the ends wants to be called.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Instant {
        self.sender.next_timeout().min(self.receiver.next_timeout())
    }
}
