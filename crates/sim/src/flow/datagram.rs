//! Both ends of a flow of datagrams.

use skyhaul_apps::{Datagram, Delays, Measured, Numbered};
use skyhaul_base::Instant;
use skyhaul_rate::{Config, Data, Offered, Receiver, Sender};

/// Both ends of a flow of datagrams without rate control.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    sender: Numbered,
    receiver: Delays,
}

impl Datagrams {
    /// The next packet, with this much payload, bytes.
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
    /// Measurements of the receiver.
    pub(crate) fn result(&self) -> Measured {
        self.receiver.measured()
    }
}

/// Both ends of a flow of rate-controlled datagrams.
#[derive(Debug)]
pub(crate) struct Rated {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    delays: Delays,
    /// Queues may mark its packets.
    pub(crate) ecn: bool,
    /// The reports have the format of TFRC, not of SSVP.
    pub(crate) tfrc: bool,
    /// An oracle informs the receiver of channel losses.
    pub(crate) informed: bool,
    offered: Offered,
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
            informed: config.asks_an_oracle(),
            offered: Offered::default(),
        }
    }
    /// The packet to send now; to be called until there is none.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Data> {
        let (data, offered) = self.sender.poll_numbered(now)?;
        self.offered.left(data.number, offered);
        Some(data)
    }
    /// A packet arrived, possibly ECN-marked; `header` bytes of it are headers. Returns the datagram with the
    /// number under which the application offered it: datagrams refused by the sender have such a number, but none
    /// on the link.
    pub(crate) fn receive(&mut self, now: Instant, (data, marked): (&Data, bool), header: u32) -> Datagram {
        let Data { number, sent_at, size, .. } = *data;
        let datagram = Datagram { number, sent_at, len: size - header };
        self.delays.arrived(now, &datagram);
        self.receiver.handle(now, data, marked);
        Datagram { number: self.offered.in_packet(number), ..datagram }
    }
    /// Payload bytes delivered.
    pub(crate) fn bytes(&self) -> u64 {
        self.delays.bytes()
    }
    /// Measurements of the receiver.
    pub(crate) fn result(&self) -> Measured {
        self.delays.measured()
    }
    /// When one of the ends needs a call.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Instant {
        self.sender.next_timeout().min(self.receiver.next_timeout())
    }
}
