//! Segments and datagrams in the network.
//!
//! Links move small handles by value. Most segments fit into one: data and plain acknowledgements travel whole,
//! including timestamps, so that neither a hop nor an arrival touches other memory. Rare extras (SACK blocks, SYN
//! options, the option of TCP-Real) are kept in a slab.

use skyhaul_apps::Datagram;
use skyhaul_base::slab::Slab;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::{Acknowledgement, PacketView};
use skyhaul_rate::{Data, REPORT_BYTES};
use skyhaul_relay::xtp;
use skyhaul_tcp::{Codepoint, Extras, Flags, Head, Segment, Seq};
use skyhaul_trace::{self as trace, Class};

/// The parts that do not fit into a parcel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    extras: Extras,
    /// Payload bytes, for observers of packets.
    len: u32,
}

/// Bodies of segments that do not fit into a parcel.
pub(crate) type Bodies = Slab<Body>;

/// The parcel has no body.
const NO_BODY: u32 = u32::MAX;
/// Flag in the key of a body without extras. Such a body exists for observers of packets, which need the payload length, or because
/// every SYN has a body.
const EMPTY_BODY: u32 = 1 << 31;

/// No data, no SYN, no FIN, no RST.
const BARE: u64 = 1 << 6;
/// Travels to the data sender. Among the TCP flags this is the bit of PSH, which is irrelevant to a receiver that
/// does not hold data back.
const BACKWARD: u64 = 1 << 11;
/// The bits of the lowest byte that belong to the head.
const HEAD_BITS: u64 = !BARE & 0xff;
/// The bits of the second byte that are TCP flags.
const FLAG_BITS: u64 = (0xff << FLAGS_SHIFT) & !BACKWARD;
/// Positions of the TCP flags and of the next hop.
const FLAGS_SHIFT: u32 = 8;
const HOP_SHIFT: u32 = 48;

/// The bits that identify an ordinary segment, and their values for data and for an acknowledgement.
const ORDINARY: u64 = FLAG_BITS | BARE | BACKWARD | Head::UNUSUAL_BITS as u64;
const PLAIN_DATA: u64 = (Flags::ACK.bits() as u64) << FLAGS_SHIFT;
const PLAIN_ACK: u64 = PLAIN_DATA | BARE | BACKWARD;

/// The class of a parcel by its lowest byte.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Data; 256];
    let mut bits = 0;
    while bits < 256 {
        if Head::bits_are_of_probe(bits as u8) {
            classes[bits] = Class::Probe;
        } else if bits & BARE as usize != 0 {
            classes[bits] = Class::Ack;
        }
        bits += 1;
    }
    classes
};

/// How links count a parcel, by its lowest byte: its class, and in the lowest bit low priority.
const KIND: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut bits = 0;
    while bits < 256 {
        kinds[bits] = kind(CLASSES[bits], Head::bits_are_low_priority(bits as u8));
        bits += 1;
    }
    kinds
};

/// How links count a packet of a class.
pub(crate) const fn kind(class: Class, low_priority: bool) -> u8 {
    2 * class as u8 + low_priority as u8
}

/// A packet that is not a TCP segment. In a parcel its numbers are where a segment has sequence and acknowledgement
/// number, window and timestamps, and a capture shows it as a segment with these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Packet {
    /// A datagram without rate control. Only the lower half of its number travels: it wraps.
    Datagram(Datagram),
    /// A datagram of a rate-controlled sender. Only the lower half of its number travels.
    Rated { data: Data, ecn: Codepoint },
    /// The receiver's report to a rate-controlled sender, [in words](skyhaul_rate::Report::words).
    Report([u32; 5]),
    /// Data of a rate-controlled leg.
    LegData(xtp::Data),
    /// A report of the receiver of a rate-controlled leg. The whole report stays with the leg, which finds it by its
    /// number.
    LegReport {
        /// Number of the report.
        number: u32,
        /// The cumulative acknowledgement of XTP, an offset in bytes.
        rseq: u64,
        /// Bytes beyond the header.
        len: u32,
    },
    /// A frame between two gateways that repair datagrams ([`skyhaul_repair::Frame`]).
    Frame {
        /// Kind of the frame.
        kind: u8,
        /// Number of the frame.
        number: u32,
        /// The fields of a frame of this kind.
        words: [u32; 2],
        /// Size of the packet, headers included.
        size: u32,
        /// Links may discard it first.
        low_priority: bool,
        /// The ECN field, that of the datagram in the frame.
        ecn: Codepoint,
    },
}

/// The kind of a packet, where a segment has the number of its probe.
const DATAGRAM: u16 = 1;
const RATED: u16 = 2;
const REPORT: u16 = 3;
const LEG_DATA: u16 = 4;
const LEG_REPORT: u16 = 5;
/// The lower byte is the kind of the frame.
const FRAME: u16 = 1 << 8;
/// The TCP flags in whose place the bits WCLOSE, RCLOSE and END of a rate-controlled leg travel.
const CLOSE: [Flags; 3] = [Flags::FIN, Flags::ECE, Flags::RST];

/// What an end sends.
pub(crate) trait Content {
    /// Packs the content for the network. With `keep` the parcel always has a body.
    fn pack(&self, label: Label, bodies: &mut Bodies, keep: bool) -> Parcel;
}

impl Content for Packet {
    fn pack(&self, label: Label, bodies: &mut Bodies, keep: bool) -> Parcel {
        let header = label.header;
        // Reports count as acknowledgements: what they say belongs to the header.
        let (len, header) = match *self {
            Self::Datagram(datagram) => (datagram.len, header),
            Self::Rated { data, .. } => (data.size - header, header),
            Self::Report(_) => (0, header + REPORT_BYTES as u32),
            Self::LegData(data) => (data.len, header),
            Self::LegReport { len, .. } => (0, header + len),
            Self::Frame { size, .. } => (size - header, header),
        };
        let head = |seq, ack, window, flags| Head::new(Seq(seq), Seq(ack), len, window, flags);
        let timed = |number: u64, sent_at: Instant| {
            let sent_at = sent_at.as_nanos();
            head(low(number), low(sent_at), high(sent_at), Flags::NONE)
        };
        let head = match *self {
            Self::Datagram(d) => timed(d.number, d.sent_at).with_raw((0, 0), DATAGRAM, 0),
            Self::Rated { data, ecn } => {
                let rtt = data.rtt.map_or(0, Duration::as_nanos);
                let mut head = timed(data.number, data.sent_at).with_raw((high(rtt), low(rtt)), RATED, 0);
                head.set_ecn(ecn);
                head
            }
            Self::Report([a, b, c, d, e]) => head(a, b, c, Flags::NONE).with_raw((d, e), REPORT, 0),
            Self::LegData(data) => {
                let xtp::Close { wclose, rclose, end } = data.close;
                let set = [wclose, rclose, end].into_iter().zip(CLOSE).filter(|bit| bit.0);
                let flags = set.fold(Flags::NONE, |all, (_, flag)| all.with(flag));
                head(low(data.seq), high(data.seq), data.sync, flags).with_raw((0, 0), LEG_DATA, 0)
            }
            Self::LegReport { number, rseq, .. } => {
                head(low(rseq), high(rseq), number, Flags::NONE).with_raw((0, 0), LEG_REPORT, 0)
            }
            Self::Frame { kind, number, words: [a, b], low_priority, ecn, .. } => {
                let bits = Head::bits_of_priority(low_priority);
                let mut head =
                    head(a, b, number, Flags::NONE).with_raw((0, 0), FRAME | u16::from(kind), bits);
                head.set_ecn(ecn);
                head
            }
        };
        Parcel::pack(&head, None, Label { header, ..label }, bodies, keep)
    }
}

impl Content for Segment {
    /// The options of a SYN are always in its body.
    fn pack(&self, label: Label, bodies: &mut Bodies, keep: bool) -> Parcel {
        let (head, extras) = self.parts();
        Parcel::pack(&head, extras.as_ref(), label, bodies, keep)
    }
}

impl Content for (&Head, Option<&Extras>) {
    #[inline(always)]
    fn pack(&self, label: Label, bodies: &mut Bodies, keep: bool) -> Parcel {
        Parcel::pack(self.0, self.1, label, bodies, keep)
    }
}

/// Stores the body of a segment with `len` bytes of payload; returns its key.
fn store(bodies: &mut Bodies, extras: &Extras, len: u32) -> u32 {
    bodies.insert(Body { extras: *extras, len })
}

/// Origin and destination of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    pub(crate) flow: u32,
    /// Number of the flow's connection.
    pub(crate) generation: u16,
    /// Next entry of the route table.
    pub(crate) hop: u16,
    /// To the data sender.
    pub(crate) backward: bool,
    /// Bytes of its headers.
    pub(crate) header: u32,
    /// Its DSCP, unless it is of low priority.
    pub(crate) dscp: u8,
}

/// Where the DSCP is beside the number of the flow.
const DSCP_SHIFT: u32 = 26;
/// The number of the flow; its limit is in `skyhaul_scenario`.
const FLOW: u32 = (1 << DSCP_SHIFT) - 1;
/// Lower effort (RFC 8622).
const LE: u8 = 1;

/// A packet in the network, in five words.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parcel {
    /// DSCP (6 bits), flow (26 bits); the packet's own size where a link compresses its headers, otherwise 0; size on the current
    /// link (16 bits each).
    flow_size: u64,
    /// Sequence number, acknowledgement number.
    seq_ack: u64,
    /// Window, key of the body.
    window_body: u64,
    /// Timestamps.
    stamps: u64,
    /// Next hop, generation, probe number (16 bits each), TCP flags, bits of head and parcel (8 each).
    rest: u64,
}

/// Joins two halves of a word.
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

impl Parcel {
    /// Packs a segment. With `keep` the parcel always has a body.
    #[inline(always)]
    fn pack(head: &Head, extras: Option<&Extras>, label: Label, bodies: &mut Bodies, keep: bool) -> Self {
        let body = match extras {
            Some(extras) => store(bodies, extras, head.len),
            None if keep || head.flags.has(Flags::SYN) => store(bodies, &Extras::NONE, head.len) | EMPTY_BODY,
            None => NO_BODY,
        };
        const CONTROL: u8 = Flags::SYN.with(Flags::FIN).with(Flags::RST).bits();
        let bare = head.len == 0 && head.flags.bits() & CONTROL == 0;
        let (ts, probe, bits) = head.to_raw();
        debug_assert!(head.len + label.header <= 0xffff, "a packet of IP is at most 65535 bytes");
        Self {
            flow_size: join(u32::from(label.dscp) << DSCP_SHIFT | label.flow, head.len + label.header),
            seq_ack: join(head.seq.0, head.ack.0),
            window_body: join(head.window, body),
            stamps: join(ts.0, ts.1),
            rest: (u64::from(label.hop) << HOP_SHIFT)
                | (u64::from(label.generation) << 32)
                | (u64::from(probe) << 16)
                | ((u64::from(head.flags.bits()) << FLAGS_SHIFT) & FLAG_BITS)
                | bit(label.backward, BACKWARD)
                | bit(bare, BARE)
                | u64::from(bits),
        }
    }

    /// The TCP flags.
    #[inline]
    fn flags(self) -> Flags {
        Flags::from_bits(((self.rest & FLAG_BITS) >> FLAGS_SHIFT) as u8)
    }
    /// The head of the segment.
    #[inline]
    pub(crate) fn head(self, header: u32) -> Head {
        let (seq, ack) = (Seq(high(self.seq_ack)), Seq(low(self.seq_ack)));
        let flags = self.flags();
        let plain = Head::new(seq, ack, self.size() - header, high(self.window_body), flags);
        let ts = (high(self.stamps), low(self.stamps));
        plain.with_raw(ts, (self.rest >> 16) as u16, (self.rest & HEAD_BITS) as u8)
    }
    /// Payload of the stream without anything else: see [`Head::is_plain_data`].
    #[inline(always)]
    pub(crate) fn is_plain_data(self) -> bool {
        low(self.window_body) == NO_BODY && self.rest & ORDINARY == PLAIN_DATA
    }
    /// An acknowledgement without anything else: see [`Head::is_plain_ack`].
    #[inline(always)]
    pub(crate) fn is_plain_ack(self) -> bool {
        low(self.window_body) == NO_BODY && self.rest & ORDINARY == PLAIN_ACK
    }
    /// Sequence number, acknowledgement number, window in bytes.
    #[inline(always)]
    pub(crate) fn numbers(self) -> (Seq, Seq, u32) {
        (Seq(high(self.seq_ack)), Seq(low(self.seq_ack)), high(self.window_body))
    }
    /// Payload bytes of a packet with `header` bytes of headers.
    #[inline(always)]
    pub(crate) fn len(self, header: u32) -> u32 {
        self.size() - header
    }
    /// Timestamps, if there are any.
    #[inline(always)]
    pub(crate) fn ts(self) -> Option<(u32, u32)> {
        Head::bits_are_stamped(self.rest as u8).then(|| (high(self.stamps), low(self.stamps)))
    }
    /// The extras of the segment; they are removed.
    #[inline]
    pub(crate) fn take_extras(self, bodies: &mut Bodies) -> Option<Extras> {
        if low(self.window_body) == NO_BODY {
            return None;
        }
        let extras = bodies.get(self.key()).extras;
        bodies.free(self.key());
        Some(extras)
    }
    /// The segment of a parcel with a body.
    pub(crate) fn segment(self, bodies: &Bodies) -> Segment {
        let body = bodies.get(self.key());
        Segment::join(&self.head(self.size() - body.len), &body.extras)
    }

    /// The packet in the parcel, with `header` bytes of headers; `None` for a segment.
    pub(crate) fn unpack(self, header: u32) -> Option<Packet> {
        let (first, second, third) = (high(self.seq_ack), low(self.seq_ack), high(self.window_body));
        let (sent_at, len) = (Instant::from_nanos(join(third, second)), self.size() - header);
        let head = self.head(header);
        Some(match head.to_raw().1 {
            DATAGRAM => Packet::Datagram(Datagram { number: first.into(), sent_at, len }),
            RATED => {
                let rtt = Some(Duration::from_nanos(self.stamps)).filter(|rtt| !rtt.is_zero());
                let data = Data { number: first.into(), sent_at, rtt, size: self.size() };
                Packet::Rated { data, ecn: head.ecn() }
            }
            REPORT => Packet::Report([first, second, third, high(self.stamps), low(self.stamps)]),
            LEG_DATA => {
                let [wclose, rclose, end] = CLOSE.map(|flag| head.flags.has(flag));
                let close = xtp::Close { wclose, rclose, end };
                Packet::LegData(xtp::Data { seq: join(second, first), len, sync: third, close })
            }
            LEG_REPORT => Packet::LegReport { number: third, rseq: join(second, first), len },
            kind if kind & !0xff == FRAME => Packet::Frame {
                kind: kind as u8,
                number: third,
                words: [first, second],
                size: self.size(),
                low_priority: head.low_priority(),
                ecn: head.ecn(),
            },
            _ => return None,
        })
    }
    /// Its ECN field.
    pub(crate) fn ecn(self) -> Codepoint {
        self.head(0).ecn()
    }
    /// Whether a queue has marked it.
    pub(crate) fn is_marked(self) -> bool {
        self.ecn() == Codepoint::Marked
    }

    /// Whether it has a body.
    #[inline]
    pub(crate) fn has_body(self) -> bool {
        low(self.window_body) != NO_BODY
    }
    /// Key of the body; meaningless without one.
    #[inline]
    pub(crate) fn key(self) -> u32 {
        low(self.window_body) & !EMPTY_BODY
    }
    /// Number of the flow's connection that the parcel belongs to.
    #[inline]
    pub(crate) fn generation(self) -> u16 {
        (self.rest >> 32) as u16
    }
    /// Its entry of the route table: the next hop.
    #[inline]
    pub(crate) fn hop(self) -> u16 {
        (self.rest >> HOP_SHIFT) as u16
    }
    /// Continues from another entry of the route table.
    pub(crate) fn set_hop(&mut self, hop: u16) {
        self.rest = self.rest & ((1 << HOP_SHIFT) - 1) | u64::from(hop) << HOP_SHIFT;
    }
    /// Moves on to the next entry of the route table.
    #[inline]
    pub(crate) fn advance(&mut self) {
        // The topmost field; the route table has at most 2^16 entries.
        self.rest += 1 << HOP_SHIFT;
    }

    /// Drops the packet: frees its body, if it has one.
    pub(crate) fn discard(self, bodies: &mut Bodies) {
        if low(self.window_body) != NO_BODY {
            bodies.free(self.key());
        }
    }

    /// Whether it travels to the data sender.
    #[inline]
    pub(crate) fn backward(self) -> bool {
        self.rest & BACKWARD != 0
    }

    /// Its class.
    #[inline]
    pub(crate) fn class(self) -> Class {
        CLASSES[usize::from(self.rest as u8)]
    }

    /// Makes a pure acknowledgement `size` bytes long on the next link, which compresses headers.
    pub(crate) fn compress(&mut self, size: u32) {
        let own = self.size();
        if size < own && self.ack().is_some() {
            self.flow_size = join(high(self.flow_size), own << 16 | size);
        }
    }
    /// Becomes shorter by this many bytes on all links of a leg that compresses headers.
    pub(crate) fn shorten(&mut self, bytes: u32) {
        self.flow_size -= u64::from(bytes);
    }
    /// Becomes longer again by this many bytes, at the end of the leg.
    pub(crate) fn lengthen(&mut self, bytes: u32) {
        self.flow_size += u64::from(bytes);
    }
    /// Stores a number and a bit in the place of timestamps: the packet number and the form of differential header
    /// compression, which is not used with timestamps.
    pub(crate) fn set_note(&mut self, number: u32, bit: bool) {
        self.stamps = join(number, bit.into());
    }
    /// What [`Self::set_note`] has stored.
    pub(crate) fn note(self) -> (u32, bool) {
        (high(self.stamps), low(self.stamps) != 0)
    }
    /// No data, no SYN, no FIN, no RST, as in a pure acknowledgement.
    pub(crate) fn is_bare(self) -> bool {
        self.rest & BARE != 0
    }
    /// Whether it is a TCP segment other than a connection's first: only these have ACK.
    pub(crate) fn is_segment(self) -> bool {
        self.flags().has(Flags::ACK)
    }
    /// Whether it has SYN or RST.
    pub(crate) fn opens_or_resets(self) -> bool {
        let flags = self.flags();
        flags.has(Flags::SYN) || flags.has(Flags::RST)
    }
    /// Restores the size that the packet has without compression on a link.
    pub(crate) fn decompress(&mut self) {
        let own = low(self.flow_size) >> 16;
        if own != 0 {
            self.flow_size = join(high(self.flow_size), own);
        }
    }

    /// The same acknowledgement with another acknowledgement number, and a body of its own.
    pub(crate) fn with_number(mut self, number: u32, bodies: &mut Bodies) -> Self {
        self.seq_ack = join(high(self.seq_ack), number);
        if low(self.window_body) != NO_BODY {
            let kept = low(self.window_body) & EMPTY_BODY;
            let body = *bodies.get(self.key());
            self.window_body = join(high(self.window_body), bodies.insert(body) | kept);
        }
        self
    }

    /// Its description in events.
    pub(crate) fn packet(self) -> trace::Packet {
        trace::Packet {
            class: self.class(),
            seq: high(self.seq_ack),
            ack: low(self.seq_ack),
            size: self.size(),
            low_priority: self.low_priority(),
        }
    }
}

/// `mask` if `set`.
#[inline]
fn bit(set: bool, mask: u64) -> u64 {
    u64::from(set) * mask
}

impl PacketView for Parcel {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.flow_size as u16)
    }
    #[inline]
    fn low_priority(&self) -> bool {
        Head::bits_are_low_priority(self.rest as u8)
    }
    #[inline]
    fn kind(&self) -> u8 {
        KIND[usize::from(self.rest as u8)]
    }
    #[inline]
    fn flow(&self) -> u32 {
        high(self.flow_size) & FLOW
    }
    fn dscp(&self) -> u8 {
        if self.low_priority() { LE } else { (high(self.flow_size) >> DSCP_SHIFT) as u8 }
    }
    #[inline]
    fn is_pure_ack(&self) -> bool {
        self.class() == Class::Ack
    }
    #[inline]
    fn is_ect(&self) -> bool {
        Head::bits_are_capable(self.rest as u8)
    }
    #[inline]
    fn is_l4s(&self) -> bool {
        Head::bits_are_l4s(self.rest as u8)
    }
    #[inline]
    fn mark_ce(&mut self) {
        let bits = (self.rest & HEAD_BITS) as u8;
        self.rest = self.rest & !HEAD_BITS | u64::from(Head::bits_marked(bits));
    }
    fn ack(&self) -> Option<Acknowledgement> {
        const PURE: u64 = PLAIN_DATA | BARE;
        const ECN: u8 = Flags::ECN.bits();
        (self.rest & PURE == PURE).then(|| Acknowledgement {
            connection: self.generation(),
            number: low(self.seq_ack),
            ecn: (self.rest >> FLAGS_SHIFT) as u8 & ECN,
            stamp: self.ts().map(|ts| ts.0),
            // Without extras the bit `EMPTY_BODY` is set, in `NO_BODY` as well. The mark of an answer to a probe counts:
            // on a real network it is an option.
            tells_more: low(self.window_body) & EMPTY_BODY == 0
                || self.rest & u64::from(Head::UNUSUAL_BITS) != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_tcp::{Mark, SackBlocks, SynOptions, Waves};

    fn label() -> Label {
        Label { flow: 7, generation: 3, hop: 2, backward: true, header: 40, dscp: 46 }
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
            (Segment { ecn: Codepoint::Capable, ts: Some((3, 4)), ..plain }, Class::Data, 0),
            (Segment { ecn: Codepoint::Marked, low_priority: true, ..plain }, Class::Data, 0),
            (Segment { ecn: Codepoint::Scalable, ts: Some((3, 4)), ..plain }, Class::Data, 0),
            (Segment { flags: Flags::ACK.with(Flags::of_ace(7)), ..ack }, Class::Ack, 0),
            (Segment { ecn: Codepoint::Capable, ..ack }, Class::Ack, 0),
            (Segment { flags: Flags::ACK.with(Flags::CWR), ..plain }, Class::Data, 0),
            (Segment { flags: Flags::FIN.with(Flags::ACK), len: 0, ..plain }, Class::Data, 0),
            (Segment { flags: Flags::RST.with(Flags::ACK), len: 0, ..plain }, Class::Data, 0),
        ];
        for (segment, class, stored) in segments {
            for keep in [false, true] {
                let parcel = segment.pack(label(), &mut bodies, keep);
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
                assert_eq!(parcel.dscp(), if segment.low_priority { 1 } else { 46 });
                if keep {
                    assert_eq!(parcel.segment(&bodies), segment);
                }
                let pure = class == Class::Ack && segment.flags.has(Flags::ACK);
                let more = stored > 0 || segment.mark.is_answer();
                let said = Acknowledgement {
                    connection: 3,
                    number: segment.ack.0,
                    ecn: segment.flags.bits() & Flags::ECN.bits(),
                    stamp: segment.ts.map(|ts| ts.0),
                    tells_more: more,
                };
                assert_eq!(parcel.ack(), pure.then_some(said), "{segment:?}");
                let extras = parcel.take_extras(&mut bodies).unwrap_or_default();
                assert_eq!(Segment::join(&parcel.head(40), &extras), segment);
                assert!(bodies.is_empty());
            }
        }
    }

    #[test]
    fn queues_mark_only_ecn_capable_segments_and_a_marked_one_is_not_plain() {
        let mut bodies = Bodies::default();
        let plain = Segment { len: 960, flags: Flags::ACK, ..Segment::default() };
        let numbered = Segment { mark: Mark::Nil, probe_id: Some(9), ..plain };
        let cases = [
            (plain, Codepoint::NotCapable),
            (Segment { ecn: Codepoint::Capable, ..plain }, Codepoint::Marked),
            (Segment { ecn: Codepoint::Marked, ..plain }, Codepoint::Marked),
            // A probe is not marked: its mark would have no effect.
            (Segment { ecn: Codepoint::Capable, ..numbered }, Codepoint::Capable),
        ];
        for (segment, becomes) in cases {
            let (head, _) = segment.split();
            let mut parcel = (&head, None).pack(Label { backward: false, ..label() }, &mut bodies, false);
            let ordinary = segment.mark == Mark::None && segment.ecn != Codepoint::Marked;
            assert_eq!(parcel.is_plain_data(), ordinary, "{segment:?}");
            assert_eq!(parcel.is_ect(), segment.ecn != Codepoint::NotCapable);
            let kind = parcel.kind();
            parcel.mark_ce();
            assert_eq!(parcel.head(40), Segment { ecn: becomes, ..segment }.split().0);
            assert_eq!(parcel.is_plain_data(), ordinary && !parcel.is_ect());
            assert_eq!((parcel.kind(), parcel.hop(), parcel.generation()), (kind, 2, 3));
            parcel.discard(&mut bodies);
        }
    }

    #[test]
    fn every_other_packet_comes_out_as_it_went_in() {
        let sent_at = Instant::from_nanos((7 << 32) + 5);
        let data = Data { number: 9, sent_at, rtt: None, size: 1000 };
        let later = Data { rtt: Some(Duration::from_secs(7)), ..data };
        let close =
            |bits: u8| xtp::Close { wclose: bits & 1 != 0, rclose: bits & 2 != 0, end: bits & 4 != 0 };
        let frame = |kind, low_priority, ecn| Packet::Frame {
            kind,
            number: 7,
            words: [u32::MAX, 3],
            size: 1000,
            low_priority,
            ecn,
        };
        let leg = |len, bits| xtp::Data { seq: (3 << 32) + 1, len, sync: 5, close: close(bits) };
        let mut cases = vec![
            (Packet::Datagram(Datagram { number: 9, sent_at, len: 972 }), 1000, Class::Data),
            (Packet::Rated { data, ecn: Codepoint::NotCapable }, 1000, Class::Data),
            (Packet::Rated { data: later, ecn: Codepoint::Capable }, 1000, Class::Data),
            (Packet::Report([1, 2, 3, 4, 5]), 60, Class::Ack),
            (frame(0, false, Codepoint::Capable), 1000, Class::Data),
            (frame(0, false, Codepoint::Scalable), 1000, Class::Data),
            (frame(0, false, Codepoint::Marked), 1000, Class::Data),
            (frame(2, true, Codepoint::NotCapable), 1000, Class::Data),
            (Packet::LegReport { number: 4, rseq: (3 << 32) + 1, len: 16 }, 44, Class::Ack),
        ];
        for bits in 0..8 {
            // A packet that ends the stream counts as data.
            let class = if bits & 5 == 0 { Class::Ack } else { Class::Data };
            cases.push((Packet::LegData(leg(0, bits)), 28, class));
            cases.push((Packet::LegData(leg(972, bits)), 1000, Class::Data));
        }
        let mut bodies = Bodies::default();
        for (packet, size, class) in cases {
            for keep in [false, true] {
                let parcel = packet.pack(Label { header: 28, ..label() }, &mut bodies, keep);
                assert_eq!((parcel.unpack(28), parcel.size()), (Some(packet), size));
                assert_eq!((parcel.class(), parcel.ack()), (class, None), "{packet:?}");
                assert_eq!(bodies.len(), usize::from(keep));
                parcel.discard(&mut bodies);
            }
        }
    }

    #[test]
    fn a_queue_marks_ecn_capable_datagrams_of_a_rate_controlled_flow() {
        let data = Data { number: 9, sent_at: Instant::ZERO, rtt: None, size: 1000 };
        for (ecn, becomes) in
            [(Codepoint::NotCapable, Codepoint::NotCapable), (Codepoint::Capable, Codepoint::Marked)]
        {
            let label = Label { header: 28, ..label() };
            let mut parcel = Packet::Rated { data, ecn }.pack(label, &mut Bodies::default(), false);
            assert_eq!(parcel.is_ect(), ecn == Codepoint::Capable);
            parcel.mark_ce();
            assert_eq!(parcel.unpack(28), Some(Packet::Rated { data, ecn: becomes }));
            assert_eq!(parcel.is_marked(), becomes == Codepoint::Marked);
        }
    }

    #[test]
    fn only_pure_acknowledgements_are_compressed_and_all_regain_their_size() {
        let mut bodies = Bodies::default();
        let ack = Segment { ack: Seq(9), flags: Flags::ACK, ..Segment::default() };
        for (segment, on_link) in [(ack, 6), (Segment { len: 100, ..ack }, 140)] {
            let mut parcel = segment.pack(label(), &mut bodies, false);
            let own = parcel.size();
            parcel.compress(6);
            assert_eq!((parcel.size(), parcel.flow(), parcel.dscp()), (on_link, 7, 46));
            parcel.decompress();
            assert_eq!((parcel.size(), parcel.flow(), parcel.dscp()), (own, 7, 46));
            parcel.compress(41);
            assert_eq!(parcel.size(), own);
        }
    }

    #[test]
    fn a_copy_with_another_number_has_a_body_of_its_own() {
        let mut bodies = Bodies::default();
        let ack = Segment { ack: Seq(9), ts: Some((1, 2)), flags: Flags::ACK, ..Segment::default() };
        for keep in [false, true] {
            let parcel = ack.pack(label(), &mut bodies, keep);
            let copy = parcel.with_number(5, &mut bodies);
            let said = parcel.ack().expect("pure");
            assert_eq!(copy.ack(), Some(Acknowledgement { number: 5, ..said }));
            if keep {
                assert_eq!(copy.segment(&bodies), Segment { ack: Seq(5), ..ack });
            }
            parcel.discard(&mut bodies);
            copy.discard(&mut bodies);
            assert!(bodies.is_empty());
        }
    }
}
