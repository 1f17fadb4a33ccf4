//! Whole packets for observers: captures of a run.

use skyhaul_base::Instant;
use skyhaul_tcp::Segment;
use skyhaul_trace::{Digest, LossCause, Memory, Null, Recorder};

/// Where a packet was seen. Directed links are numbered as in the run's result; those of access delays and tunnels
/// come after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It left its endpoint.
    Sent,
    /// It reached its endpoint.
    Arrived,
    /// It was offered to a link.
    Entered {
        /// The directed link.
        link: u32,
    },
    /// It left a link.
    Left {
        /// The directed link.
        link: u32,
    },
    /// A link is about to deliver it as a copy of another packet.
    Copied {
        /// The key of that packet.
        of: u32,
    },
    /// A link lost it.
    Lost {
        /// The directed link.
        link: u32,
        /// The cause.
        cause: LossCause,
    },
}

/// An observation of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// The flow.
    pub flow: u32,
    /// Number of the flow's connection.
    pub generation: u16,
    /// It travels to the data sender.
    pub backward: bool,
    /// Identifies the packet among all in the network; reused after it has arrived or was lost.
    pub key: u32,
    /// Where.
    pub place: Place,
    /// Its content.
    pub segment: &'a Segment,
}

/// A recorder that may need whole packets, not only events.
pub trait Tap: Recorder {
    /// Whether the recorder needs them: the simulator then keeps every packet whole. Nothing else changes.
    const PACKETS: bool = false;

    /// Records a packet. Times never decrease.
    fn packet(&mut self, _now: Instant, _seen: &Sighting<'_>) {}

    /// Records a connection opened for a transfer, before its first packet. Events and packets identify it by a
    /// number above those of the result's flows, which is reused by other transfers.
    fn transfer(&mut self, _opened: &Opened) {}
}

/// A connection for one of a flow's transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its number in packets and events.
    pub flow: u32,
    /// Identifies the connection, together with `flow`.
    pub generation: u16,
    /// The flow of the result that the transfer belongs to.
    pub owner: u32,
    /// Number of the transfer within that flow, from 0.
    pub number: u64,
}

impl Tap for Null {}
impl Tap for Digest {}
impl Tap for Memory {}

impl<A: Tap, B: Tap> Tap for (A, B) {
    const PACKETS: bool = A::PACKETS || B::PACKETS;

    fn packet(&mut self, now: Instant, seen: &Sighting<'_>) {
        self.0.packet(now, seen);
        self.1.packet(now, seen);
    }
    fn transfer(&mut self, opened: &Opened) {
        self.0.transfer(opened);
        self.1.transfer(opened);
    }
}

impl<R: Tap> Tap for &mut R {
    const PACKETS: bool = R::PACKETS;

    fn packet(&mut self, now: Instant, seen: &Sighting<'_>) {
        (**self).packet(now, seen);
    }
    fn transfer(&mut self, opened: &Opened) {
        (**self).transfer(opened);
    }
}
