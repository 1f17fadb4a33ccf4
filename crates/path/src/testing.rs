//! What tests share: a packet with everything that a link may look at.

use crate::packet::{Acknowledgement, PacketView};

/// A packet of a test. The default is of high priority, without size, and cannot be marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pkt {
    /// Its number among the arrivals.
    pub id: u32,
    /// Bytes.
    pub size: u32,
    /// The number of its flow.
    pub flow: u32,
    /// Of low priority.
    pub low: bool,
    /// Its DSCP, unless it is of low priority.
    pub dscp: u8,
    /// ECN-capable.
    pub ect: bool,
    /// Of a scalable control: ECT(1).
    pub l4s: bool,
    /// Marked by a queue.
    pub ce: bool,
    /// Its content if it is a pure acknowledgement.
    pub ack: Option<Acknowledgement>,
}

impl PacketView for Pkt {
    fn size(&self) -> u32 {
        self.size
    }
    fn low_priority(&self) -> bool {
        self.low
    }
    fn flow(&self) -> u32 {
        self.flow
    }
    fn dscp(&self) -> u8 {
        if self.low { 1 } else { self.dscp }
    }
    fn is_ect(&self) -> bool {
        self.ect || self.l4s
    }
    fn is_l4s(&self) -> bool {
        self.l4s || self.ce
    }
    /// # Panics
    /// If its transport is not ECN-capable.
    fn mark_ce(&mut self) {
        assert!(self.is_ect(), "{self:?} is marked, and its transport knows nothing of marks");
        self.ce = true;
    }
    fn ack(&self) -> Option<Acknowledgement> {
        self.ack
    }
}
