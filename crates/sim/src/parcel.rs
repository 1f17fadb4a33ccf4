//! Segments and datagrams on their way.
//!
//! Links move small handles by value. Most segments fit into one: data and plain acknowledgements travel whole,
//! timestamps included, so that neither a hop nor an arrival touches any other memory. What few segments have besides
//! (SACK blocks, the options of a SYN, the option of TCP-Real) lies in a slab.

use skyhaul_apps::Datagram;
use skyhaul_base::Instant;
use skyhaul_base::slab::Slab;
use skyhaul_path::PacketView;
use skyhaul_tcp::{Extras, Flags, Head, Segment, Seq};
use skyhaul_trace::{Class, Packet};

/// What does not fit into a parcel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    extras: Extras,
    /// Payload bytes, for those who look at packets on their way.
    len: u32,
}

/// Bodies of segments that do not fit into a parcel.
pub(crate) type Bodies = Slab<Body>;

/// The parcel has no body.
const NO_BODY: u32 = u32::MAX;

/// Discarded first at a congested router.
const LOW_PRIORITY: u8 = 1;
/// The channel spares it (per hop).
const SPARED: u8 = 1 << 1;
/// Travels to the data sender.
const BACKWARD: u8 = 1 << 2;
/// No data, no SYN, no FIN, no RST.
const PURE_ACK: u8 = 1 << 3;
/// A probe.
const PROBE: u8 = 1 << 4;
/// The topmost field of a word.
const HOP_SHIFT: u32 = 48;

/// The class of a parcel by its bits: two look-ups per hop.
const CLASSES: [Class; 32] = {
    let mut classes = [Class::Data; 32];
    let mut bits = 0;
    while bits < 32 {
        if bits & PROBE as usize != 0 {
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

/// A packet in the network: 40 bytes, in five words that are put together in registers. As separate fields they
/// would be written in small pieces and copied in large ones, for which processors wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    /// Flow, size on a link.
    flow_size: u64,
    /// Sequence number, acknowledgement number.
    seq_ack: u64,
    /// Window, key of the body.
    window_body: u64,
    /// Timestamps.
    stamps: u64,
    /// Next hop, generation, probe number (16 bits each), TCP flags (5), bits of the head (6) and of the parcel (5).
    rest: u64,
}

/// Two halves of a word.
#[inline]
fn join(high: u32, low: u32) -> u64 {
    (u64::from(high) << 32) | u64::from(low)
}
#[inline]
fn high(word: u64) -> u32 {
    (word >> 32) as u32
}
#[inline]
fn low(word: u64) -> u32 {
    word as u32
}

/// Where the bits of the head and the flags of TCP stand in the last word, above the parcel's own.
const HEAD_SHIFT: u32 = 5;
const FLAGS_SHIFT: u32 = 11;

impl Parcel {
    /// Packs a segment that is `header` bytes longer on a link than its payload. With `keep` it has a body in any case.
    #[inline]
    pub(crate) fn pack(
        head: &Head,
        extras: &Extras,
        header: u32,
        label: Label,
        bodies: &mut Bodies,
        keep: bool,
    ) -> Self {
        let bare = extras.is_none() && !head.flags.has(Flags::SYN) && !keep;
        let body = if bare { NO_BODY } else { bodies.insert(Body { extras: *extras, len: head.len }) };
        let control = Flags::SYN.with(Flags::FIN).with(Flags::RST).bits();
        let pure_ack = head.len == 0 && head.flags.bits() & control == 0;
        let (ts, probe, bits) = head.to_raw();
        let own = bit(head.low_priority(), LOW_PRIORITY)
            | bit(label.backward, BACKWARD)
            | bit(pure_ack, PURE_ACK)
            | bit(head.mark().is_probe(), PROBE);
        Self {
            flow_size: join(label.flow, head.len + header),
            seq_ack: join(head.seq.0, head.ack.0),
            window_body: join(head.window, body),
            stamps: join(ts.0, ts.1),
            rest: (u64::from(label.hop) << HOP_SHIFT)
                | (u64::from(label.generation) << 32)
                | (u64::from(probe) << 16)
                | (u64::from(flags_to_bits(head.flags)) << FLAGS_SHIFT)
                | (u64::from(bits) << HEAD_SHIFT)
                | u64::from(own),
        }
    }

    /// The head of the segment.
    #[inline]
    pub(crate) fn head(self, header: u32) -> Head {
        let (seq, ack) = (Seq(high(self.seq_ack)), Seq(low(self.seq_ack)));
        let flags = bits_to_flags((self.rest >> FLAGS_SHIFT) as u8 & 0x1f);
        let plain = Head::new(seq, ack, self.size() - header, high(self.window_body), flags);
        let ts = (high(self.stamps), low(self.stamps));
        plain.with_raw(ts, (self.rest >> 16) as u16, (self.rest >> HEAD_SHIFT) as u8 & 0x3f)
    }
    /// What the segment has besides; it is forgotten.
    #[inline]
    pub(crate) fn take_extras(self, bodies: &mut Bodies) -> Option<Extras> {
        let body = self.key();
        if body == NO_BODY {
            return None;
        }
        bodies.free(body);
        Some(bodies.get(body).extras)
    }
    /// The segment of a parcel with a body.
    pub(crate) fn segment(self, bodies: &Bodies) -> Segment {
        let body = bodies.get(self.key());
        Segment::join(&self.head(self.size() - body.len), &body.extras)
    }

    /// A datagram. Of its number the lower half travels: it wraps.
    pub(crate) fn datagram(d: &Datagram, header: u32, label: Label, bodies: &mut Bodies, keep: bool) -> Self {
        let sent_at = d.sent_at.as_nanos();
        let head = Head::new(Seq(low(d.number)), Seq(low(sent_at)), d.len, high(sent_at), Flags::ACK);
        Self::pack(&head, &Extras::NONE, header, label, bodies, keep)
    }
    /// The datagram that it is, with `header` bytes of headers.
    pub(crate) fn as_datagram(self, header: u32) -> Datagram {
        Datagram {
            number: high(self.seq_ack).into(),
            sent_at: Instant::from_nanos(join(high(self.window_body), low(self.seq_ack))),
            len: self.size() - header,
        }
    }

    /// Key of the body.
    #[inline]
    pub(crate) fn key(self) -> u32 {
        low(self.window_body)
    }
    #[inline]
    fn bits(self) -> u8 {
        self.rest as u8 & 0x1f
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
        if self.key() != NO_BODY {
            bodies.free(self.key());
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
            seq: high(self.seq_ack),
            ack: low(self.seq_ack),
            size: self.size(),
            low_priority: self.low_priority(),
        }
    }
}

/// Five flags in five bits: FIN, SYN, RST, ACK and ECE. PSH and CWR say nothing to anybody in a simulation.
#[inline]
fn flags_to_bits(flags: Flags) -> u8 {
    let f = flags.bits();
    (f & 0x07) | (f >> 1 & 0x08) | (f >> 2 & 0x10)
}
#[inline]
fn bits_to_flags(bits: u8) -> Flags {
    Flags::from_bits((bits & 0x07) | (bits & 0x08) << 1 | (bits & 0x10) << 2)
}

/// `mask` if `set`.
#[inline]
fn bit(set: bool, mask: u8) -> u8 {
    u8::from(set) * mask
}

impl PacketView for Parcel {
    #[inline]
    fn size(&self) -> u32 {
        low(self.flow_size)
    }
    #[inline]
    fn low_priority(&self) -> bool {
        self.bits() & LOW_PRIORITY != 0
    }
    #[inline]
    fn flow(&self) -> u32 {
        high(self.flow_size)
    }
    #[inline]
    fn spared(&self) -> bool {
        self.bits() & SPARED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_tcp::{Mark, SackBlocks, SynOptions, Waves};

    fn label() -> Label {
        Label { flow: 7, generation: 3, hop: 2, backward: true }
    }

    #[test]
    fn a_parcel_is_small() {
        assert_eq!(core::mem::size_of::<Parcel>(), 40);
    }

    #[test]
    fn every_segment_comes_out_as_it_went_in() {
        let mut bodies = Bodies::default();
        let mut sack = SackBlocks::EMPTY;
        sack.push(Seq(5), Seq(9));
        let plain = Segment { seq: Seq(1), ack: Seq(2), len: 960, window: 3, ..Segment::default() };
        let plain = Segment { flags: Flags::ACK.with(Flags::ECE), ..plain };
        let ack = Segment { len: 0, flags: Flags::ACK, ..plain };
        let waves = |number, rate| Waves {
            number: core::num::NonZeroU16::new(number),
            rate: core::num::NonZeroU32::new(rate),
        };
        let segments = [
            (plain, Class::Data, 0),
            (ack, Class::Ack, 0),
            (Segment { mark: Mark::Dummy, low_priority: true, ..plain }, Class::Probe, 0),
            (Segment { mark: Mark::Nil, probe_id: Some(65_535), ..plain }, Class::Probe, 0),
            (Segment { mark: Mark::DummyAck, probe_id: Some(0), low_priority: true, ..ack }, Class::Ack, 0),
            (Segment { mark: Mark::NilAck, ..ack }, Class::Ack, 0),
            (Segment { sack, ..ack }, Class::Ack, 1),
            (Segment { ts: Some((1, 2)), ..plain }, Class::Data, 0),
            (Segment { ts: Some((0, 0)), sack, ..ack }, Class::Ack, 1),
            (Segment { waves: waves(1, 0), ..plain }, Class::Data, 1),
            (Segment { waves: waves(0, 1), ..ack }, Class::Ack, 1),
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
            (Segment { flags: Flags::RST.with(Flags::ACK), len: 0, ..plain }, Class::Data, 0),
        ];
        for (segment, class, stored) in segments {
            for keep in [false, true] {
                let (head, extras) = segment.split();
                let parcel = Parcel::pack(&head, &extras, 40, label(), &mut bodies, keep);
                assert_eq!(
                    (parcel.class(), bodies.len()),
                    (class, stored.max(usize::from(keep))),
                    "{segment:?}"
                );
                assert_eq!(parcel.size(), segment.len + 40);
                assert_eq!(
                    (parcel.flow(), parcel.generation(), parcel.hop(), parcel.backward()),
                    (7, 3, 2, true)
                );
                assert_eq!(parcel.low_priority(), segment.low_priority);
                if keep {
                    assert_eq!(parcel.segment(&bodies), segment);
                }
                let extras = parcel.take_extras(&mut bodies).unwrap_or_default();
                assert_eq!(Segment::join(&parcel.head(40), &extras), segment);
                assert!(bodies.is_empty());
            }
        }
    }

    #[test]
    fn a_datagram_knows_when_it_was_sent() {
        let sent = Instant::from_nanos((7 << 32) + 5);
        let datagram = Datagram { number: 9, sent_at: sent, len: 972 };
        let parcel = Parcel::datagram(&datagram, 28, label(), &mut Bodies::default(), false);
        assert_eq!(parcel.as_datagram(28), datagram);
        assert_eq!((parcel.size(), parcel.class()), (1000, Class::Data));
        assert_eq!(parcel.packet().seq, 9);
    }
}
