//! Segments and datagrams in the network.
//!
//! Links move small handles by value. Most segments fit into one: data and plain acknowledgements travel whole,
//! including timestamps, so that neither a hop nor an arrival touches other memory. Rare extras (SACK blocks, SYN
//! options, the option of TCP-Real) are kept in a slab.

use skyhaul_apps::Datagram;
use skyhaul_base::slab::Slab;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::{Acknowledgement, PacketView};
use skyhaul_rate::{Data, REPORT_BYTES, Report};
use skyhaul_tcp::{Codepoint, Extras, Flags, Head, Segment, Seq};
use skyhaul_trace::{Class, Packet};

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
/// Flag in the key of a body that exists only for observers of packets and adds nothing to the parcel.
const FOR_SHOW: u32 = 1 << 31;

/// No data, no SYN, no FIN, no RST.
const PURE_ACK: u64 = 1 << 6;
/// Travels to the data sender. Among the TCP flags this is the bit of PSH, which is irrelevant to a receiver that
/// does not hold data back.
const BACKWARD: u64 = 1 << 11;
/// The bits of the lowest byte that belong to the head.
const HEAD_BITS: u64 = !PURE_ACK & 0xff;
/// The bits of the second byte that are TCP flags.
const FLAG_BITS: u64 = (0xff << FLAGS_SHIFT) & !BACKWARD;
/// Positions of the TCP flags and of the next hop.
const FLAGS_SHIFT: u32 = 8;
const HOP_SHIFT: u32 = 48;

/// The bits that identify an ordinary segment, and their values for data and for an acknowledgement.
const ORDINARY: u64 = FLAG_BITS | PURE_ACK | BACKWARD | Head::UNUSUAL_BITS as u64;
const PLAIN_DATA: u64 = (Flags::ACK.bits() as u64) << FLAGS_SHIFT;
const PLAIN_ACK: u64 = PLAIN_DATA | PURE_ACK | BACKWARD;

/// The class of a parcel by its lowest byte: two look-ups per hop.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Data; 256];
    let mut bits = 0;
    while bits < 256 {
        if Head::bits_are_of_probe(bits as u8) {
            classes[bits] = Class::Probe;
        } else if bits & PURE_ACK as usize != 0 {
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
}

/// A packet in the network: 40 bytes, in five words assembled in registers. Separate fields would be written in
/// small pieces and copied in large ones, which stalls processors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Parcel {
    /// Flow (32 bits); the packet's own size where a link compresses its headers, otherwise 0; size on the current
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
    /// Packs a segment with `header` bytes of headers. With `keep` it always has a body.
    #[inline]
    pub(crate) fn pack(
        head: &Head,
        extras: Option<Extras>,
        header: u32,
        label: Label,
        bodies: &mut Bodies,
        keep: bool,
    ) -> Self {
        let shown = u32::from(extras.is_none()) * FOR_SHOW;
        let body = match extras {
            None if !keep && !head.flags.has(Flags::SYN) => NO_BODY,
            _ => bodies.insert(Body { extras: extras.unwrap_or(Extras::NONE), len: head.len }) | shown,
        };
        Self::with_body(head, header, label, body)
    }

    /// Packs a segment that consists only of its head.
    #[inline(always)]
    pub(crate) fn plain(head: &Head, header: u32, label: Label) -> Self {
        Self::with_body(head, header, label, NO_BODY)
    }

    #[inline(always)]
    fn with_body(head: &Head, header: u32, label: Label, body: u32) -> Self {
        const CONTROL: u8 = Flags::SYN.with(Flags::FIN).with(Flags::RST).bits();
        let pure_ack = head.len == 0 && head.flags.bits() & CONTROL == 0;
        let (ts, probe, bits) = head.to_raw();
        debug_assert!(head.len + header <= 0xffff, "a packet of IP is at most 65535 bytes");
        Self {
            flow_size: join(label.flow, head.len + header),
            seq_ack: join(head.seq.0, head.ack.0),
            window_body: join(head.window, body),
            stamps: join(ts.0, ts.1),
            rest: (u64::from(label.hop) << HOP_SHIFT)
                | (u64::from(label.generation) << 32)
                | (u64::from(probe) << 16)
                | ((u64::from(head.flags.bits()) << FLAGS_SHIFT) & FLAG_BITS)
                | bit(label.backward, BACKWARD)
                | bit(pure_ack, PURE_ACK)
                | u64::from(bits),
        }
    }

    /// The head of the segment.
    #[inline]
    pub(crate) fn head(self, header: u32) -> Head {
        let (seq, ack) = (Seq(high(self.seq_ack)), Seq(low(self.seq_ack)));
        let flags = Flags::from_bits(((self.rest & FLAG_BITS) >> FLAGS_SHIFT) as u8);
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
        let body = self.key();
        bodies.free(body);
        Some(bodies.get(body).extras)
    }
    /// The segment of a parcel with a body.
    pub(crate) fn segment(self, bodies: &Bodies) -> Segment {
        let body = bodies.get(self.key());
        Segment::join(&self.head(self.size() - body.len), &body.extras)
    }

    /// Packs a datagram. Only the lower half of its number travels: it wraps.
    pub(crate) fn datagram(d: &Datagram, header: u32, label: Label, bodies: &mut Bodies, keep: bool) -> Self {
        let sent_at = d.sent_at.as_nanos();
        let head = Head::new(Seq(low(d.number)), Seq(low(sent_at)), d.len, high(sent_at), Flags::NONE);
        Self::pack(&head, None, header, label, bodies, keep)
    }
    /// Unpacks the datagram, with `header` bytes of headers.
    pub(crate) fn as_datagram(self, header: u32) -> Datagram {
        Datagram {
            number: high(self.seq_ack).into(),
            sent_at: Instant::from_nanos(join(high(self.window_body), low(self.seq_ack))),
            len: self.size() - header,
        }
    }

    /// Packs a datagram of a rate-controlled sender: its RTT travels in the place of timestamps, and only the lower
    /// half of its number travels. With `ecn` queues may mark it.
    pub(crate) fn data(
        (d, ecn): (&Data, bool),
        header: u32,
        label: Label,
        bodies: &mut Bodies,
        keep: bool,
    ) -> Self {
        let (sent_at, rtt) = (d.sent_at.as_nanos(), d.rtt.map_or(0, Duration::as_nanos));
        let head =
            Head::new(Seq(low(d.number)), Seq(low(sent_at)), d.size - header, high(sent_at), Flags::NONE);
        let mut head = head.with_raw((high(rtt), low(rtt)), 0, 0);
        if ecn {
            head.set_ecn(Codepoint::Capable);
        }
        Self::pack(&head, None, header, label, bodies, keep)
    }
    /// Whether a queue has marked it.
    pub(crate) fn is_marked(self) -> bool {
        self.head(0).ecn() == Codepoint::Marked
    }
    /// Unpacks the datagram.
    pub(crate) fn as_data(self) -> Data {
        Data {
            number: high(self.seq_ack).into(),
            sent_at: Instant::from_nanos(join(high(self.window_body), low(self.seq_ack))),
            rtt: Some(Duration::from_nanos(self.stamps)).filter(|r| !r.is_zero()),
            size: self.size(),
        }
    }
    /// Packs a report to such a sender, which counts as an acknowledgement. It is longer than its `header`.
    pub(crate) fn report(r: &Report, header: u32, label: Label, bodies: &mut Bodies, keep: bool) -> Self {
        let [echo_high, echo_low, held, a, b] = r.words();
        let head = Head::new(Seq(echo_high), Seq(echo_low), 0, held, Flags::NONE).with_raw((a, b), 0, 0);
        Self::pack(&head, None, header + REPORT_BYTES as u32, label, bodies, keep)
    }
    /// Unpacks the report, of TFRC or SSVP.
    pub(crate) fn as_report(self, tfrc: bool) -> Option<Report> {
        let (echo, held) = (self.seq_ack, high(self.window_body));
        Report::from_words([high(echo), low(echo), held, high(self.stamps), low(self.stamps)], tfrc)
    }

    /// Key of the body, if it has one.
    #[inline]
    pub(crate) fn key(self) -> u32 {
        low(self.window_body) & !FOR_SHOW
    }
    /// Number of the flow's connection that it belongs to.
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

    /// Drops the segment.
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

    /// Sets the size of its headers on the next link to `size` bytes, if it is a pure acknowledgement.
    pub(crate) fn compress(&mut self, size: u32) {
        let own = self.size();
        if size < own && self.ack().is_some() {
            self.flow_size = join(self.flow(), own << 16 | size);
        }
    }
    /// Becomes shorter by this many bytes, or longer again: the whole leg compresses headers.
    pub(crate) fn shorten(&mut self, bytes: u32) {
        self.flow_size -= u64::from(bytes);
    }
    pub(crate) fn lengthen(&mut self, bytes: u32) {
        self.flow_size += u64::from(bytes);
    }
    /// A number and a bit in the place of timestamps.
    pub(crate) fn set_note(&mut self, number: u32, bit: bool) {
        self.stamps = join(number, bit.into());
    }
    pub(crate) fn note(self) -> (u32, bool) {
        (high(self.stamps), low(self.stamps) != 0)
    }
    /// No data, no SYN, no FIN, no RST.
    pub(crate) fn is_pure_ack(self) -> bool {
        self.rest & PURE_ACK != 0
    }
    /// Whether it has SYN or RST.
    pub(crate) fn opens_or_resets(self) -> bool {
        let flags = Flags::from_bits(((self.rest & FLAG_BITS) >> FLAGS_SHIFT) as u8);
        flags.has(Flags::SYN) || flags.has(Flags::RST)
    }
    /// Restores its own size.
    pub(crate) fn decompress(&mut self) {
        let own = low(self.flow_size) >> 16;
        if own != 0 {
            self.flow_size = join(self.flow(), own);
        }
    }

    /// The same acknowledgement with another number.
    pub(crate) fn with_number(mut self, number: u32, bodies: &mut Bodies) -> Self {
        self.seq_ack = join(high(self.seq_ack), number);
        if low(self.window_body) != NO_BODY {
            let kept = low(self.window_body) & FOR_SHOW;
            let body = *bodies.get(self.key());
            self.window_body = join(high(self.window_body), bodies.insert(body) | kept);
        }
        self
    }

    /// Its description in events.
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
        high(self.flow_size)
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
    fn mark_ce(&mut self) {
        let bits = (self.rest & HEAD_BITS) as u8;
        self.rest |= u64::from(Head::bits_marked(bits));
    }
    fn ack(&self) -> Option<Acknowledgement> {
        const PURE: u64 = PLAIN_DATA | PURE_ACK;
        const ECN: u8 = Flags::ECE.with(Flags::CWR).bits();
        (self.rest & PURE == PURE).then(|| Acknowledgement {
            connection: self.generation(),
            number: low(self.seq_ack),
            ecn: (self.rest >> FLAGS_SHIFT) as u8 & ECN,
            stamp: self.ts().map(|ts| ts.0),
            // On a real network, the mark of an answer to a probe is an option.
            tells_more: low(self.window_body) & FOR_SHOW == 0
                || self.rest & u64::from(Head::UNUSUAL_BITS) != 0,
        })
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
            (Segment { ecn: Codepoint::Capable, ts: Some((3, 4)), ..plain }, Class::Data, 0),
            (Segment { ecn: Codepoint::Marked, low_priority: true, ..plain }, Class::Data, 0),
            (Segment { ecn: Codepoint::Capable, ..ack }, Class::Ack, 0),
            (Segment { flags: Flags::ACK.with(Flags::CWR), ..plain }, Class::Data, 0),
            (Segment { flags: Flags::FIN.with(Flags::ACK), len: 0, ..plain }, Class::Data, 0),
            (Segment { flags: Flags::RST.with(Flags::ACK), len: 0, ..plain }, Class::Data, 0),
        ];
        for (segment, class, stored) in segments {
            for keep in [false, true] {
                let (head, extras) = segment.split();
                let beside = (!extras.is_none()).then_some(extras);
                let beside = if head.flags.has(Flags::SYN) { Some(extras) } else { beside };
                let parcel = Parcel::pack(&head, beside, 40, label(), &mut bodies, keep);
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
                let pure = class == Class::Ack && segment.flags.has(Flags::ACK);
                let more = stored > 0 || segment.mark.is_answer();
                let said = Acknowledgement {
                    connection: 3,
                    number: segment.ack.0,
                    ecn: segment.flags.bits() & 0xc0,
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
    fn only_what_is_capable_of_it_is_marked_and_then_it_is_no_ordinary_segment() {
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
            let mut parcel = Parcel::plain(&head, 40, Label { backward: false, ..label() });
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
    fn data_and_reports_of_a_rate_travel_whole() {
        let mut bodies = Bodies::default();
        for rtt in [None, Some(Duration::from_secs(7))] {
            let data = Data { number: 9, sent_at: Instant::from_nanos((7 << 32) + 5), rtt, size: 1000 };
            for ecn in [false, true] {
                let mut parcel = Parcel::data((&data, ecn), 28, label(), &mut bodies, false);
                parcel.mark_ce();
                assert_eq!((parcel.as_data(), parcel.class()), (data, Class::Data));
                assert_eq!((parcel.is_ect(), parcel.is_marked()), (ecn, ecn));
            }
        }
        let says = [
            (skyhaul_rate::Says::Tfrc { received: 1e5, loss: 0.25 }, true),
            (skyhaul_rate::Says::Ssvp { highest: 8, lost: 3 }, false),
        ];
        for (says, tfrc) in says {
            let echo = Instant::from_nanos((9 << 32) + 1);
            let report = Report { echo, held: Duration::from_micros(1234), says };
            for keep in [false, true] {
                let parcel = Parcel::report(&report, 28, label(), &mut bodies, keep);
                assert_eq!((parcel.as_report(tfrc), parcel.size()), (Some(report), 60));
                assert_eq!((parcel.class(), parcel.ack()), (Class::Ack, None));
                parcel.discard(&mut bodies);
            }
        }
        assert!(bodies.is_empty());
    }

    #[test]
    fn only_pure_acknowledgements_are_compressed_and_none_for_good() {
        let mut bodies = Bodies::default();
        let ack = Segment { ack: Seq(9), flags: Flags::ACK, ..Segment::default() };
        for (segment, on_link) in [(ack, 6), (Segment { len: 100, ..ack }, 140)] {
            let mut parcel = Parcel::pack(&segment.split().0, None, 40, label(), &mut bodies, false);
            let own = parcel.size();
            parcel.compress(6);
            assert_eq!((parcel.size(), parcel.flow()), (on_link, 7));
            parcel.decompress();
            assert_eq!((parcel.size(), parcel.flow()), (own, 7));
            parcel.compress(41);
            assert_eq!(parcel.size(), own);
        }
    }

    #[test]
    fn a_copy_with_another_number_has_a_body_of_its_own() {
        let mut bodies = Bodies::default();
        let ack = Segment { ack: Seq(9), ts: Some((1, 2)), flags: Flags::ACK, ..Segment::default() };
        for keep in [false, true] {
            let parcel = Parcel::pack(&ack.split().0, None, 40, label(), &mut bodies, keep);
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
