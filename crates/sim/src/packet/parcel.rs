//! Packets in the network.
//!
//! Links move parcels by value. A parcel carries its packet whole, except for the rare parts of a TCP segment (SACK
//! blocks, SYN options, the option of TCP-Real), which are kept in a slab.

use skyhaul_apps::Datagram;
use skyhaul_base::slab::Slab;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::{Acknowledgement, PacketView, Routed};
use skyhaul_rate::{Data, REPORT_BYTES};
use skyhaul_relay::xtp;
use skyhaul_tcp::{Codepoint, Extras, Flags, Head, Mark, Segment, Seq};
use skyhaul_trace::{self as trace, Class};

/// The rare parts of segments.
pub(crate) type Bodies = Slab<Extras>;

/// A packet of any protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Packet {
    /// A TCP segment, without its rare parts.
    Segment(Head),
    /// A datagram without rate control.
    Datagram(Datagram),
    /// A datagram of a rate-controlled sender.
    Rated {
        /// The lower half of its number.
        number: u32,
        /// Payload bytes.
        len: u32,
        sent_at: Instant,
        /// The sender's RTT estimate; zero before the first report.
        rtt: Duration,
        ecn: Codepoint,
    },
    /// The receiver's report to such a sender, [in words](skyhaul_rate::Report::words).
    Report([u32; 5]),
    /// Data of a rate-controlled leg.
    LegData(xtp::Data),
    /// A report on such a leg. The whole report stays with the leg, which finds it by its number.
    LegReport {
        /// Its number.
        number: u32,
        /// The cumulative acknowledgement.
        rseq: u64,
        /// Bytes beyond the header.
        len: u32,
    },
}

impl Packet {
    /// A datagram of a rate-controlled sender, with `header` bytes of headers; with `ecn` queues may mark it.
    pub(crate) fn rated(data: &Data, header: u32, ecn: bool) -> Self {
        Self::Rated {
            number: data.number as u32,
            len: data.size - header,
            sent_at: data.sent_at,
            rtt: data.rtt.unwrap_or(Duration::ZERO),
            ecn: if ecn { Codepoint::Capable } else { Codepoint::NotCapable },
        }
    }
    /// The datagram of a rate-controlled sender as its receiver sees it.
    pub(crate) fn as_rated(&self, header: u32) -> Option<Data> {
        let Self::Rated { number, len, sent_at, rtt, .. } = *self else { return None };
        let rtt = Some(rtt).filter(|rtt| !rtt.is_zero());
        Some(Data { number: number.into(), sent_at, rtt, size: len + header })
    }
    /// Bytes beyond the header.
    #[inline]
    fn len(&self) -> u32 {
        match self {
            Self::Segment(head) => head.len,
            Self::Datagram(datagram) => datagram.len,
            Self::Rated { len, .. } => *len,
            Self::Report(_) => REPORT_BYTES as u32,
            Self::LegData(data) => data.len,
            Self::LegReport { len, .. } => *len,
        }
    }
    /// Whether it carries no payload, and opens and closes nothing.
    #[inline]
    fn only_acknowledges(&self) -> bool {
        const CONTROL: u8 = Flags::SYN.with(Flags::FIN).with(Flags::RST).bits();
        match self {
            Self::Segment(head) => head.len == 0 && head.flags.bits() & CONTROL == 0,
            Self::LegData(data) => data.len == 0 && !data.close.wclose && !data.close.end,
            Self::Report(_) | Self::LegReport { .. } => true,
            Self::Datagram(_) | Self::Rated { .. } => false,
        }
    }
    #[inline]
    fn class(&self) -> Class {
        match self {
            Self::Segment(head) if head.mark().is_probe() => Class::Probe,
            _ if self.only_acknowledges() => Class::Ack,
            _ => Class::Data,
        }
    }
    #[inline]
    fn ecn(&self) -> Codepoint {
        match self {
            Self::Segment(head) => head.ecn(),
            Self::Rated { ecn, .. } => *ecn,
            _ => Codepoint::NotCapable,
        }
    }
    /// The numbers by which events and captures show it: for a segment, sequence number and acknowledgement number.
    fn numbers(&self) -> (u32, u32) {
        let halves = |number: u64| (number as u32, (number >> 32) as u32);
        match *self {
            Self::Segment(head) => (head.seq.0, head.ack.0),
            Self::Datagram(d) => (d.number as u32, d.sent_at.as_nanos() as u32),
            Self::Rated { number, sent_at, .. } => (number, sent_at.as_nanos() as u32),
            Self::Report([first, second, ..]) => (first, second),
            Self::LegData(data) => halves(data.seq),
            Self::LegReport { rseq, .. } => halves(rseq),
        }
    }
    /// The head of the TCP segment in which a capture shows it.
    fn shown(&self) -> Head {
        let (seq, ack) = self.numbers();
        let (window, flags) = match self {
            Self::Segment(head) => return *head,
            Self::LegData(data) => {
                let xtp::Close { wclose, rclose, end } = data.close;
                let bits = [(wclose, Flags::FIN), (rclose, Flags::ECE), (end, Flags::RST)];
                let flags = bits.into_iter().filter(|b| b.0).fold(Flags::NONE, |all, b| all.with(b.1));
                (data.sync, flags)
            }
            Self::LegReport { number, .. } => (*number, Flags::NONE),
            Self::Datagram(_) | Self::Rated { .. } | Self::Report(_) => (0, Flags::NONE),
        };
        let len = if self.only_acknowledges() { 0 } else { self.len() };
        let mut head = Head::new(Seq(seq), Seq(ack), len, window, flags);
        head.set_ecn(self.ecn());
        head
    }
}

/// A packet as its end hands it over, with the rare parts of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) packet: Packet,
    pub(crate) extras: Option<Extras>,
}

impl From<Packet> for Outgoing {
    fn from(packet: Packet) -> Self {
        Self { packet, extras: None }
    }
}
impl From<&Segment> for Outgoing {
    fn from(segment: &Segment) -> Self {
        let (head, extras) = segment.split();
        // The options of a SYN are always among them.
        let rare = !extras.is_none() || head.flags.has(Flags::SYN);
        Self { packet: Packet::Segment(head), extras: rare.then_some(extras) }
    }
}

/// Origin and destination of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label {
    pub(crate) flow: u32,
    /// Number of the flow's connection.
    pub(crate) generation: u16,
    /// Next entry of the route table.
    pub(crate) hop: u16,
    /// To the data sender.
    pub(crate) backward: bool,
    /// Header bytes.
    pub(crate) header: u32,
}

/// A packet in the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parcel {
    pub(crate) packet: Packet,
    flow: u32,
    /// Key of its body, or [`NO_BODY`].
    body: u32,
    /// The body has something to say to the receiver; other bodies only give the parcel a key for observers of packets.
    has_extras: bool,
    /// Its size where its links leave the headers alone, and on the current link, bytes.
    own_size: u16,
    size: u16,
    generation: u16,
    /// Next entry of the route table.
    hop: u16,
    class: Class,
    /// Travels to the data sender.
    backward: bool,
    /// On a leg that compresses headers: the number of the packet, and whether its headers are compressed.
    pub(crate) header_number: u32,
    pub(crate) header_compressed: bool,
}

/// The parcel has no body.
const NO_BODY: u32 = u32::MAX;

/// A free place of a queue.
impl Default for Parcel {
    fn default() -> Self {
        Self {
            packet: Packet::Segment(Head::ACK),
            flow: 0,
            body: NO_BODY,
            has_extras: false,
            own_size: 0,
            size: 0,
            generation: 0,
            hop: 0,
            class: Class::Ack,
            backward: false,
            header_number: 0,
            header_compressed: false,
        }
    }
}

impl Parcel {
    /// A packet on its way; with `keep` it has a body in any case.
    #[inline]
    pub(crate) fn new(outgoing: Outgoing, label: Label, bodies: &mut Bodies, keep: bool) -> Self {
        let Outgoing { packet, extras } = outgoing;
        let size = packet.len() + label.header;
        debug_assert!(size <= u16::MAX.into(), "a packet of IP is at most 65535 bytes");
        let body = if keep || extras.is_some() { bodies.insert(extras.unwrap_or_default()) } else { NO_BODY };
        Self {
            packet,
            flow: label.flow,
            body,
            has_extras: extras.is_some(),
            own_size: size as u16,
            size: size as u16,
            generation: label.generation,
            hop: label.hop,
            class: packet.class(),
            backward: label.backward,
            header_number: 0,
            header_compressed: false,
        }
    }

    /// The head of an ordinary segment: payload or an acknowledgement and nothing else, see [`Head::is_plain_data`] and
    /// [`Head::is_plain_ack`].
    #[inline]
    pub(crate) fn plain(&self) -> Option<&Head> {
        match &self.packet {
            Packet::Segment(head)
                if self.body == NO_BODY && (head.is_plain_data() || head.is_plain_ack()) =>
            {
                Some(head)
            }
            _ => None,
        }
    }
    /// The rare parts of the segment; they are removed.
    #[inline]
    pub(crate) fn take_extras(&self, bodies: &mut Bodies) -> Option<Extras> {
        self.discard(bodies);
        self.has_extras.then(|| *bodies.get(self.body))
    }
    /// Removes the body, if there is one.
    #[inline]
    pub(crate) fn discard(&self, bodies: &mut Bodies) {
        if self.body != NO_BODY {
            bodies.free(self.body);
        }
    }
    /// The segment in which a capture shows a parcel with a body.
    pub(crate) fn segment(&self, bodies: &Bodies) -> Segment {
        Segment::join(&self.packet.shown(), bodies.get(self.body))
    }

    /// Whether a queue has marked it.
    pub(crate) fn is_marked(&self) -> bool {
        self.packet.ecn() == Codepoint::Marked
    }
    /// Key of its body, if it has one.
    pub(crate) fn key(&self) -> u32 {
        self.body
    }
    /// Number of the flow's connection that it belongs to.
    pub(crate) fn generation(&self) -> u16 {
        self.generation
    }
    /// Continues from another entry of the route table.
    pub(crate) fn set_hop(&mut self, hop: u16) {
        self.hop = hop;
    }
    /// Whether it travels to the data sender.
    pub(crate) fn backward(&self) -> bool {
        self.backward
    }
    /// Its class.
    pub(crate) fn class(&self) -> Class {
        self.class
    }
    /// Whether it carries no payload, and opens and closes nothing.
    pub(crate) fn only_acknowledges(&self) -> bool {
        self.packet.only_acknowledges()
    }
    /// Becomes shorter by this many bytes, or longer again: the whole leg compresses headers.
    pub(crate) fn shorten(&mut self, bytes: u32) {
        self.own_size -= bytes as u16;
        self.size = self.own_size;
    }
    pub(crate) fn lengthen(&mut self, bytes: u32) {
        self.own_size += bytes as u16;
        self.size = self.own_size;
    }

    /// The same acknowledgement with another number.
    pub(crate) fn with_number(&self, number: u32, bodies: &mut Bodies) -> Self {
        let mut copy = *self;
        if let Packet::Segment(head) = &mut copy.packet {
            head.ack = Seq(number);
        }
        if self.body != NO_BODY {
            let extras = *bodies.get(self.body);
            copy.body = bodies.insert(extras);
        }
        copy
    }

    /// Its description in events.
    pub(crate) fn described(&self) -> trace::Packet {
        let (seq, ack) = self.packet.numbers();
        trace::Packet { class: self.class, seq, ack, size: self.size(), low_priority: self.low_priority() }
    }
}

/// How links count a packet of a class.
pub(crate) const fn kind(class: Class, low_priority: bool) -> u8 {
    2 * class as u8 + low_priority as u8
}

impl PacketView for Parcel {
    #[inline]
    fn size(&self) -> u32 {
        self.size.into()
    }
    #[inline]
    fn low_priority(&self) -> bool {
        matches!(&self.packet, Packet::Segment(head) if head.low_priority())
    }
    #[inline]
    fn kind(&self) -> u8 {
        kind(self.class, self.low_priority())
    }
    #[inline]
    fn flow(&self) -> u32 {
        self.flow
    }
    #[inline]
    fn is_pure_ack(&self) -> bool {
        self.class == Class::Ack
    }
    #[inline]
    fn is_ect(&self) -> bool {
        self.packet.ecn() != Codepoint::NotCapable
    }
    fn mark_ce(&mut self) {
        match &mut self.packet {
            Packet::Segment(head) if head.ecn() != Codepoint::NotCapable => head.set_ecn(Codepoint::Marked),
            Packet::Rated { ecn, .. } if *ecn != Codepoint::NotCapable => *ecn = Codepoint::Marked,
            _ => {}
        }
    }
    fn ack(&self) -> Option<Acknowledgement> {
        const ECN: u8 = Flags::ECE.with(Flags::CWR).bits();
        let Packet::Segment(head) = &self.packet else { return None };
        (self.only_acknowledges() && head.flags.has(Flags::ACK)).then(|| Acknowledgement {
            connection: self.generation,
            number: head.ack.0,
            ecn: head.flags.bits() & ECN,
            stamp: head.ts().map(|ts| ts.0),
            // On a real network, the mark of an answer to a probe is an option.
            tells_more: self.has_extras || head.mark() != Mark::None || self.is_marked(),
        })
    }
}

impl Routed for Parcel {
    #[inline]
    fn hop(&self) -> u16 {
        self.hop
    }
    #[inline]
    fn advance(&mut self) {
        self.hop += 1;
    }
    fn compress(&mut self, size: u32) {
        if size < self.size() && self.ack().is_some() {
            self.size = size as u16;
        }
    }
    #[inline]
    fn decompress(&mut self) {
        self.size = self.own_size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_rate::{Report, Says};
    use skyhaul_tcp::{SackBlocks, SynOptions, Waves};

    fn label() -> Label {
        Label { flow: 7, generation: 3, hop: 2, backward: true, header: 40 }
    }

    #[test]
    fn a_parcel_is_small() {
        assert!(size_of::<Parcel>() <= 56);
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
                let parcel = Parcel::new((&segment).into(), label(), &mut bodies, keep);
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
                let Packet::Segment(head) = parcel.packet else { panic!("{parcel:?}") };
                assert_eq!(Segment::join(&head, &extras), segment);
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
            let mut parcel = Parcel::new((&segment).into(), label(), &mut bodies, false);
            let ordinary = segment.mark == Mark::None && segment.ecn != Codepoint::Marked;
            assert_eq!(parcel.plain().is_some(), ordinary, "{segment:?}");
            assert_eq!(parcel.is_ect(), segment.ecn != Codepoint::NotCapable);
            let kind = parcel.kind();
            parcel.mark_ce();
            assert_eq!(parcel.packet, Packet::Segment(Segment { ecn: becomes, ..segment }.split().0));
            assert_eq!(parcel.plain().is_some(), ordinary && !parcel.is_ect());
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
                let packet = Packet::rated(&data, 40, ecn);
                let mut parcel = Parcel::new(packet.into(), label(), &mut bodies, false);
                parcel.mark_ce();
                assert_eq!(
                    (parcel.packet.as_rated(40), parcel.class(), parcel.size()),
                    (Some(data), Class::Data, 1000)
                );
                assert_eq!((parcel.is_ect(), parcel.is_marked()), (ecn, ecn));
            }
        }
        let says =
            [(Says::Tfrc { received: 1e5, loss: 0.25 }, true), (Says::Ssvp { highest: 8, lost: 3 }, false)];
        for (says, tfrc) in says {
            let echo = Instant::from_nanos((9 << 32) + 1);
            let report = Report { echo, held: Duration::from_micros(1234), says };
            for keep in [false, true] {
                let packet = Packet::Report(report.words());
                let label = Label { header: 28, ..label() };
                let parcel = Parcel::new(packet.into(), label, &mut bodies, keep);
                let Packet::Report(words) = parcel.packet else { panic!("{parcel:?}") };
                assert_eq!((Report::from_words(words, tfrc), parcel.size()), (Some(report), 60));
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
            let mut parcel = Parcel::new((&segment).into(), label(), &mut bodies, false);
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
            let parcel = Parcel::new((&ack).into(), label(), &mut bodies, keep);
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
