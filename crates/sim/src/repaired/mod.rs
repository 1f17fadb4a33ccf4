//! Segments that two gateways repair: the ends of [`skyhaul_repair`] between the links.
//!
//! The routes of all packets that cross a segment end at its gate, the gateway before it. A packet that is repaired stays
//! with the gateways while frames travel over the links of the segment, and then goes on from the other gateway. All other packets
//! go through the queue of the gateway and then over the links. Packets have no payload, so that the code counts its symbols.

mod run;
pub(crate) mod segment;
