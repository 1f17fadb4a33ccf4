//! Whole packets for those who want them: captures of a run.

use skyhaul_base::Instant;
use skyhaul_tcp::Segment;
use skyhaul_trace::{Digest, LossCause, Memory, Null, Recorder};

/// Where a packet was seen. Directed links are numbered as in the run's result; access delays come after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It left its end point.
    Sent,
    /// It reached the end point that it was sent to.
    Arrived,
    /// It was offered to a link.
    Entered {
        /// The directed link.
        link: u32,
    },
    /// It came out of a link.
    Left {
        /// The directed link.
        link: u32,
    },
    /// A link lost it.
    Lost {
        /// The directed link.
        link: u32,
        /// Why.
        cause: LossCause,
    },
}

/// A packet seen on its way.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// The flow.
    pub flow: u32,
    /// Which of the flow's connections, one after the other.
    pub generation: u16,
    /// To the data sender.
    pub backward: bool,
    /// Names the packet among all that are on their way; given to another one once it has arrived or was lost.
    pub key: u32,
    /// Where.
    pub place: Place,
    /// What it says.
    pub segment: &'a Segment,
}

/// A recorder that may want whole packets, not only events.
pub trait Tap: Recorder {
    /// True if it does: every segment then keeps its body on the way. Nothing else changes.
    const PACKETS: bool = false;

    /// Takes note of a packet. Times never decrease.
    fn packet(&mut self, _now: Instant, _seen: &Sighting<'_>) {}

    /// Takes note of a connection that is opened for a transfer, before its first packet. Events and packets name it
    /// by a number above those of the result's flows, which other transfers use before and after it.
    fn transfer(&mut self, _opened: &Opened) {}
}

/// A connection for one of a flow's transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// What its packets and events call it.
    pub flow: u32,
    /// With it, names the connection.
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
