//! A segment on the links of a pair.

use super::side::Side;
use skyhaul_path::{PacketView, Routed};
use skyhaul_tcp::{Codepoint, Flags, Segment};

/// A segment on its way.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    /// Who sent it.
    pub from: Side,
    /// The segment.
    pub segment: Segment,
    /// Its payload, where payload is kept.
    pub payload: Vec<u8>,
    header: u32,
    hop: u16,
}

impl Packet {
    /// A segment with `header` bytes of headers, about to take the route that begins at `hop`.
    pub(super) fn new(from: Side, segment: Segment, payload: Vec<u8>, header: u32, hop: u16) -> Self {
        Self { from, segment, payload, header, hop }
    }
}

impl PacketView for Packet {
    fn size(&self) -> u32 {
        self.segment.len + self.header
    }
    fn low_priority(&self) -> bool {
        self.segment.low_priority
    }
    fn flow(&self) -> u32 {
        0
    }
    fn is_pure_ack(&self) -> bool {
        is_pure_ack(&self.segment)
    }
    fn is_ect(&self) -> bool {
        self.segment.ecn != Codepoint::NotCapable
    }
    fn is_l4s(&self) -> bool {
        matches!(self.segment.ecn, Codepoint::Scalable | Codepoint::Marked)
    }
    fn mark_ce(&mut self) {
        if self.is_ect() {
            self.segment.ecn = Codepoint::Marked;
        }
    }
}

impl Routed for Packet {
    fn hop(&self) -> u16 {
        self.hop
    }
    fn advance(&mut self) {
        self.hop += 1;
    }
}

/// True if the segment is a pure acknowledgement: no payload, SYN, FIN or RST, and no answer to a probe.
#[must_use]
pub fn is_pure_ack(s: &Segment) -> bool {
    let ecn = Flags::ECE.with(Flags::CWR).bits();
    s.len == 0 && s.flags.bits() & !ecn == Flags::ACK.bits() && !s.mark.is_answer()
}
