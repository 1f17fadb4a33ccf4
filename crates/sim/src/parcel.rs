//! Segments on their way.
//!
//! Links move small handles by value. Most segments fit into one: data and plain acknowledgements travel whole,
//! so that neither a hop nor an arrival touches any other memory. Only what carries SACK blocks, timestamps, the
//! options of a SYN or the marks and reports of TCP-Real leaves its body in a slab.

use skyhaul_base::slab::Slab;
use skyhaul_path::PacketView;
use skyhaul_tcp::{Flags, Mark, SackBlocks, Segment, Seq, SynOptions};
use skyhaul_trace::{Class, Packet};

/// Bodies of segments that do not fit into a parcel.
pub(crate) type Bodies = Slab<Segment>;

/// The parcel has no body.
const NO_BODY: u32 = u32::MAX;

/// Discarded first at a congested router.
const LOW_PRIORITY: u8 = 1;
/// The channel spares it (per hop).
const SPARED: u8 = 1 << 1;
/// Travels to the data sender.
const BACKWARD: u8 = 1 << 2;
/// Carries a probe number.
const PROBE_ID: u8 = 1 << 3;
/// No data, no SYN, no FIN, no RST.
const PURE_ACK: u8 = 1 << 4;
/// Three bits of mark.
const MARK_SHIFT: u8 = 5;
/// The topmost field of the last word.
const HOP_SHIFT: u32 = 48;

/// The class of a parcel by its bits: two look-ups per hop.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Data; 256];
    let mut bits = 0;
    while bits < 256 {
        // Dummy and NIL are 1 and 2.
        if matches!(bits >> MARK_SHIFT, 1 | 2) {
            classes[bits] = Class::Probe;
        } else if bits & PURE_ACK as usize != 0 {
            classes[bits] = Class::Ack;
        }
        bits += 1;
    }
    classes
};

/// Where a segment comes from and where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    pub(crate) flow: u32,
    /// Which of the flow's connections, one after the other.
    pub(crate) generation: u16,
    /// Next entry of the route table.
    pub(crate) hop: u16,
    /// To the data sender.
    pub(crate) backward: bool,
}

/// A segment in the network: 32 bytes, in four words that are put together in registers. As separate fields they
/// would be written in small pieces and copied in large ones, for which processors wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    /// Flow, size on a link.
    flow_size: u64,
    /// Sequence number, acknowledgement number.
    seq_ack: u64,
    /// Window, key of the body.
    window_body: u64,
    /// Next hop, generation, probe number (16 bits each), TCP flags, bits (8 each).
    rest: u64,
}

/// Two halves of a word.
#[inline]
fn join(high: u32, low: u32) -> u64 {
    (u64::from(high) << 32) | u64::from(low)
}

impl Parcel {
    /// Packs a segment that is `header` bytes longer on a link than its payload. With `keep` it has a body in any case.
    #[inline]
    pub(crate) fn pack(
        segment: &Segment,
        header: u32,
        label: Label,
        bodies: &mut Bodies,
        keep: bool,
    ) -> Self {
        let s = segment;
        let control = Flags::SYN.with(Flags::FIN).with(Flags::RST).bits();
        let pure_ack = s.len == 0 && s.flags.bits() & control == 0;
        let mark = match s.mark {
            Mark::None => 0,
            Mark::Dummy => 1,
            Mark::Nil => 2,
            Mark::DummyAck => 3,
            Mark::NilAck => 4,
        };
        let waves = s.wave.is_some() | s.receiver_rate.is_some();
        let fits = s.ts.is_none() && s.sack.is_empty() && !s.flags.has(Flags::SYN) && !waves;
        let body = if fits && !keep { NO_BODY } else { bodies.insert(*s) };
        let bits = bit(s.low_priority, LOW_PRIORITY)
            | bit(label.backward, BACKWARD)
            | bit(s.probe_id.is_some(), PROBE_ID)
            | bit(pure_ack, PURE_ACK)
            | (mark << MARK_SHIFT);
        Self {
            flow_size: join(label.flow, s.len + header),
            seq_ack: join(s.seq.0, s.ack.0),
            window_body: join(s.window, body),
            rest: (u64::from(label.hop) << HOP_SHIFT)
                | (u64::from(label.generation) << 32)
                | (u64::from(s.probe_id.unwrap_or(0)) << 16)
                | (u64::from(s.flags.bits()) << 8)
                | u64::from(bits),
        }
    }

    /// The segment, which is forgotten.
    #[inline]
    pub(crate) fn unpack(self, header: u32, bodies: &mut Bodies) -> Segment {
        let body = self.window_body as u32;
        if body != NO_BODY {
            bodies.free(body);
            return *bodies.get(body);
        }
        Segment {
            seq: Seq((self.seq_ack >> 32) as u32),
            ack: Seq(self.seq_ack as u32),
            len: self.size() - header,
            window: (self.window_body >> 32) as u32,
            ts: None,
            sack: SackBlocks::EMPTY,
            syn: SynOptions::default(),
            flags: Flags::from_bits((self.rest >> 8) as u8),
            mark: match self.bits() >> MARK_SHIFT {
                1 => Mark::Dummy,
                2 => Mark::Nil,
                3 => Mark::DummyAck,
                4 => Mark::NilAck,
                _ => Mark::None,
            },
            probe_id: (self.bits() & PROBE_ID != 0).then_some((self.rest >> 16) as u16),
            low_priority: self.low_priority(),
            wave: None,
            receiver_rate: None,
        }
    }

    /// Key of the body.
    pub(crate) fn key(self) -> u32 {
        self.window_body as u32
    }
    #[inline]
    fn bits(self) -> u8 {
        self.rest as u8
    }
    /// Which of the flow's connections it belongs to.
    #[inline]
    pub(crate) fn generation(self) -> u16 {
        (self.rest >> 32) as u16
    }
    /// The entry of the route table that says where it goes next.
    #[inline]
    pub(crate) fn hop(self) -> u16 {
        (self.rest >> HOP_SHIFT) as u16
    }
    /// Moves on to the next entry of the route table.
    #[inline]
    pub(crate) fn advance(&mut self) {
        // The topmost field, and the route table has at most 2^16 entries.
        self.rest += 1 << HOP_SHIFT;
    }

    /// Forgets the segment.
    pub(crate) fn discard(self, bodies: &mut Bodies) {
        let body = self.window_body as u32;
        if body != NO_BODY {
            bodies.free(body);
        }
    }

    /// True if it travels to the data sender.
    #[inline]
    pub(crate) fn backward(self) -> bool {
        self.bits() & BACKWARD != 0
    }

    /// What it is for.
    #[inline]
    pub(crate) fn class(self) -> Class {
        CLASSES[usize::from(self.bits())]
    }

    /// Whether the channel of the next link spares it.
    #[inline]
    pub(crate) fn set_spared(&mut self, spared: bool) {
        self.rest = (self.rest & !u64::from(SPARED)) | u64::from(bit(spared, SPARED));
    }

    /// What events say about it.
    pub(crate) fn packet(self) -> Packet {
        Packet {
            class: self.class(),
            seq: (self.seq_ack >> 32) as u32,
            ack: self.seq_ack as u32,
            size: self.size(),
            low_priority: self.low_priority(),
        }
    }
}

/// `mask` if `set`.
#[inline]
fn bit(set: bool, mask: u8) -> u8 {
    u8::from(set) * mask
}

impl PacketView for Parcel {
    #[inline]
    fn size(&self) -> u32 {
        self.flow_size as u32
    }
    #[inline]
    fn low_priority(&self) -> bool {
        self.bits() & LOW_PRIORITY != 0
    }
    #[inline]
    fn flow(&self) -> u32 {
        (self.flow_size >> 32) as u32
    }
    #[inline]
    fn spared(&self) -> bool {
        self.bits() & SPARED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label() -> Label {
        Label { flow: 7, generation: 3, hop: 2, backward: true }
    }

    #[test]
    fn a_parcel_is_small() {
        assert_eq!(core::mem::size_of::<Parcel>(), 32);
    }

    #[test]
    fn every_segment_comes_out_as_it_went_in() {
        let mut bodies = Bodies::default();
        let mut sack = SackBlocks::EMPTY;
        sack.push(Seq(5), Seq(9));
        let plain = Segment { seq: Seq(1), ack: Seq(2), len: 960, window: 3, ..Segment::default() };
        let plain = Segment { flags: Flags::ACK.with(Flags::PSH), ..plain };
        let ack = Segment { len: 0, flags: Flags::ACK, ..plain };
        let segments = [
            (plain, Class::Data, 0),
            (ack, Class::Ack, 0),
            (Segment { mark: Mark::Dummy, low_priority: true, ..plain }, Class::Probe, 0),
            (Segment { mark: Mark::Nil, probe_id: Some(65_535), ..plain }, Class::Probe, 0),
            (Segment { mark: Mark::DummyAck, probe_id: Some(0), low_priority: true, ..ack }, Class::Ack, 0),
            (Segment { mark: Mark::NilAck, ..ack }, Class::Ack, 0),
            (Segment { sack, ..ack }, Class::Ack, 1),
            (Segment { ts: Some((1, 2)), ..plain }, Class::Data, 1),
            (Segment { wave: core::num::NonZeroU16::new(1), ..plain }, Class::Data, 1),
            (Segment { receiver_rate: core::num::NonZeroU32::new(1), ..ack }, Class::Ack, 1),
            (
                Segment {
                    flags: Flags::SYN,
                    syn: SynOptions { mss: Some(960), ..SynOptions::default() },
                    len: 0,
                    ..plain
                },
                Class::Data,
                1,
            ),
            (Segment { flags: Flags::FIN.with(Flags::ACK), len: 0, ..plain }, Class::Data, 0),
        ];
        for (segment, class, stored) in segments {
            let parcel = Parcel::pack(&segment, 40, label(), &mut bodies, false);
            assert_eq!((parcel.class(), bodies.len()), (class, stored), "{segment:?}");
            assert_eq!(parcel.size(), segment.len + 40);
            assert_eq!(
                (parcel.flow(), parcel.generation(), parcel.hop(), parcel.backward()),
                (7, 3, 2, true)
            );
            assert_eq!(parcel.low_priority(), segment.low_priority);
            assert_eq!(parcel.unpack(40, &mut bodies), segment);
            assert!(bodies.is_empty());
        }
    }
}
