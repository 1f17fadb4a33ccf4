//! The content of a TCP segment, without its encoding.

use core::fmt;
use core::num::{NonZeroU8, NonZeroU16, NonZeroU32};

/// A 32-bit sequence number with serial arithmetic (RFC 9293 §3.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// `self + n`, modulo 2^32.
    #[must_use]
    pub const fn add(self, n: u32) -> Self {
        Self(self.0.wrapping_add(n))
    }
    /// Signed distance from `origin` to `self`, correct while it is below 2^31.
    #[must_use]
    pub const fn diff(self, origin: Self) -> i32 {
        self.0.wrapping_sub(origin.0) as i32
    }
    /// The 64-bit stream offset of this number, given that `near` (with number `near_seq`) is less than 2^31 away;
    /// `None` if that offset would be negative.
    #[must_use]
    pub const fn unwrap(self, near: u64, near_seq: Self) -> Option<u64> {
        near.checked_add_signed(self.diff(near_seq) as i64)
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Control flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// FIN: no more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// SYN: synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// RST: reset the connection.
    pub const RST: Self = Self(0x04);
    /// PSH: push.
    pub const PSH: Self = Self(0x08);
    /// ACK: the acknowledgement field is valid.
    pub const ACK: Self = Self(0x10);
    /// ECE: ECN echo.
    pub const ECE: Self = Self(0x40);
    /// CWR: congestion window reduced.
    pub const CWR: Self = Self(0x80);
    /// AE: accurate ECN (RFC 9768), the last bit of byte 12 of a TCP header. Here it is in the place of URG, which this TCP
    /// ignores.
    pub const AE: Self = Self(0x20);
    /// The three flags of ECN.
    pub const ECN: Self = Self::AE.with(Self::CWR).with(Self::ECE);

    /// The flags from byte 13 of a TCP header, counted from 0, with AE in the place of URG.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
    /// The flags as byte 13 of a TCP header, counted from 0, with AE in the place of URG.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// The flags from bytes 12 and 13 of a TCP header.
    #[must_use]
    pub const fn from_header(bytes: [u8; 2]) -> Self {
        Self((bytes[1] & !Self::AE.0) | ((bytes[0] & 1) * Self::AE.0))
    }
    /// The flags as the last bit of byte 12 and byte 13 of a TCP header.
    #[must_use]
    pub const fn to_header(self) -> [u8; 2] {
        [(self.0 & Self::AE.0 != 0) as u8, self.0 & !Self::AE.0]
    }
    /// The flags AE, CWR and ECE as a number of three bits, ECE the lowest: the ACE field of RFC 9768 §3.2.2.
    #[must_use]
    pub const fn ace(self) -> u8 {
        (self.0 & Self::AE.0) >> 3 | self.0 >> 6
    }
    /// The flags that express this ACE field; bits beyond the third are ignored.
    #[must_use]
    pub const fn of_ace(ace: u8) -> Self {
        Self((ace & 4) << 3 | (ace & 3) << 6)
    }
    /// Both sets of flags.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// True if all of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether ACK is set, and no other flag except PSH.
    #[must_use]
    pub const fn only_acknowledges(self) -> bool {
        self.0 & !Self::PSH.0 == Self::ACK.0
    }
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Codepoint {
    /// Not-ECT: routers drop it when they would mark others.
    #[default]
    NotCapable,
    /// Routers may mark it: ECT(0).
    Capable,
    /// Routers may mark it, and it belongs to a scalable control: ECT(1) (RFC 9331 §4.1).
    Scalable,
    /// A router has marked it: CE.
    Marked,
}

/// Probe mark of a segment ([`Self::None`] on ordinary ones).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mark {
    /// An ordinary segment.
    #[default]
    None,
    /// A dummy: copied payload, to be discarded [Peach §III-A].
    Dummy,
    /// A NIL segment: unacknowledged payload, usable [Peach+].
    Nil,
    /// The answer to a dummy.
    DummyAck,
    /// The answer to a NIL segment.
    NilAck,
}

impl Mark {
    /// Whether this is a dummy or NIL segment.
    #[must_use]
    pub const fn is_probe(self) -> bool {
        matches!(self, Self::Dummy | Self::Nil)
    }
    /// Whether this is the answer to a probe.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::DummyAck | Self::NilAck)
    }
}

/// Up to four SACK blocks, most recent first; stored inline, since the option space allows no more.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(Seq, Seq); 4],
    len: u8,
}

impl SackBlocks {
    /// No blocks.
    pub const EMPTY: Self = Self { blocks: [(Seq(0), Seq(0)); 4], len: 0 };

    /// Appends a block `[from, to)`; a fifth is ignored.
    pub fn push(&mut self, from: Seq, to: Seq) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = (from, to);
            self.len += 1;
        }
    }
    /// The blocks in order.
    #[must_use]
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        &self.blocks[..usize::from(self.len)]
    }
    /// True without blocks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// Options that only a SYN carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SynOptions {
    /// Maximum segment size the sender of the SYN accepts, bytes.
    pub mss: Option<u16>,
    /// Window scale shift (RFC 7323).
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// Probes are understood and answered.
    pub probes: bool,
    /// ACK congestion control is supported (RFC 5690 §4.1).
    pub ack_cc: bool,
    /// SNACK is supported (SCPS-TP); not on a real network.
    pub snack: bool,
}

/// The option of TCP-Real: it marks data, and reports the measured rate of marked data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Waves {
    /// Number of the data's wave, if the peer measures waves. Any number on a SYN is an offer to measure and
    /// report.
    pub number: Option<NonZeroU16>,
    /// Rate of the last complete wave that the sender of the segment received, bytes of payload per second. It
    /// belongs to the acknowledgement.
    pub rate: Option<NonZeroU32>,
}

impl Waves {
    /// No such option.
    pub const NONE: Self = Self { number: None, rate: None };

    /// True without the option.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.number.is_none() && self.rate.is_none()
    }
}

/// The AccECN option: the lowest 24 bits of the counters of payload bytes by the ECN field with which they arrived (RFC 9768
/// §3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcnBytes {
    /// With ECT(0).
    pub ect0: u32,
    /// With CE.
    pub ce: u32,
    /// With ECT(1).
    pub ect1: u32,
}

impl EcnBytes {
    /// The counters at the start of a connection (RFC 9768 §3.2.1).
    pub const INITIAL: Self = Self { ect0: 1, ce: 0, ect1: 1 };
    /// The bits of a field of the option.
    pub const MASK: u32 = 0xff_ffff;
}

/// Rare parts of a segment, which travel beside its [`Head`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Extras {
    /// SACK blocks.
    pub sack: SackBlocks,
    /// Options of a SYN.
    pub syn: SynOptions,
    /// The option of TCP-Real.
    pub waves: Waves,
    /// Requested ACK ratio (RFC 5690 §4.2).
    pub ack_ratio: Option<NonZeroU8>,
    /// A hole that the receiver names, from its first byte to its end (SCPS-TP's SNACK).
    pub snack: Option<(Seq, Seq)>,
    /// The AccECN option (RFC 9768 §3.2.3).
    pub ecn_bytes: Option<EcnBytes>,
}

impl Extras {
    /// No extras.
    pub const NONE: Self = Self {
        sack: SackBlocks::EMPTY,
        syn: SynOptions {
            mss: None,
            window_scale: None,
            sack_permitted: false,
            probes: false,
            ack_cc: false,
            snack: false,
        },
        waves: Waves::NONE,
        ack_ratio: None,
        snack: None,
        ecn_bytes: None,
    };

    /// Whether there are no extras besides the options of a SYN, which its flag indicates.
    #[inline]
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.sack.is_empty()
            && self.waves.is_none()
            && self.ack_ratio.is_none()
            && self.snack.is_none()
            && self.ecn_bytes.is_none()
    }
}

/// The fields of almost every segment; most segments have no others. A head is small enough for an event to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Head {
    /// Sequence number of the first byte.
    pub seq: Seq,
    /// Acknowledgement number, valid with the ACK flag.
    pub ack: Seq,
    /// Payload bytes.
    pub len: u32,
    /// Receive window, already unscaled, bytes.
    pub window: u32,
    pub(crate) ts: (u32, u32),
    pub(crate) probe: u16,
    /// Control flags.
    pub flags: Flags,
    pub(crate) bits: u8,
}

impl Head {
    /// A plain acknowledgement.
    pub const ACK: Self = Self {
        seq: Seq(0),
        ack: Seq(0),
        len: 0,
        window: 0,
        ts: (0, 0),
        probe: 0,
        flags: Flags::ACK,
        bits: 0,
    };
    /// A head without mark and timestamps.
    #[inline]
    #[must_use]
    pub const fn new(seq: Seq, ack: Seq, len: u32, window: u32, flags: Flags) -> Self {
        Self { seq, ack, len, window, flags, ..Self::ACK }
    }
    const MARK: u8 = 0x07;
    /// The value in the place of the mark of an ordinary segment with ECT(1).
    const SCALABLE: u8 = 5;
    const NUMBERED: u8 = 0x08;
    const LOW_PRIORITY: u8 = 0x10;
    const STAMPED: u8 = 0x20;
    const CAPABLE: u8 = 0x80;
    /// A router has marked the segment (CE). The bit is shared with `NUMBERED`: routers mark neither probes nor answers.
    const MARKED: u8 = Self::NUMBERED;
    /// The bits from [`Self::to_raw`] that distinguish probes, answers to probes, and ECN-marked segments from all
    /// others.
    pub const UNUSUAL_BITS: u8 = Self::MARK | Self::NUMBERED;

    /// Timestamps (TSval, TSecr), if there are any.
    #[inline]
    #[must_use]
    pub const fn ts(&self) -> Option<(u32, u32)> {
        if self.bits & Self::STAMPED != 0 { Some(self.ts) } else { None }
    }
    /// Sets timestamps.
    #[inline]
    pub const fn set_ts(&mut self, ts: (u32, u32)) {
        self.ts = ts;
        self.bits |= Self::STAMPED;
    }
    /// Probe mark.
    #[inline]
    #[must_use]
    pub const fn mark(&self) -> Mark {
        match self.bits & Self::MARK {
            1 => Mark::Dummy,
            2 => Mark::Nil,
            3 => Mark::DummyAck,
            4 => Mark::NilAck,
            _ => Mark::None,
        }
    }
    /// Number of the probe, if there is one.
    #[inline]
    #[must_use]
    pub const fn probe_id(&self) -> Option<u16> {
        let numbered = self.bits & Self::NUMBERED != 0 && !Self::bits_are_ordinary(self.bits);
        if numbered { Some(self.probe) } else { None }
    }
    /// Whether the segment is marked as low priority at the IP layer.
    #[inline]
    #[must_use]
    pub const fn low_priority(&self) -> bool {
        self.bits & Self::LOW_PRIORITY != 0
    }
    /// The ECN field.
    #[inline]
    #[must_use]
    pub const fn ecn(&self) -> Codepoint {
        if !Self::bits_are_capable(self.bits) {
            Codepoint::NotCapable
        } else if self.bits & Self::MARK == Self::SCALABLE {
            Codepoint::Scalable
        } else if self.bits & Self::UNUSUAL_BITS == Self::MARKED {
            Codepoint::Marked
        } else {
            Codepoint::Capable
        }
    }
    /// Sets the ECN field. To be called after [`Self::set_mark`]: CE and ECT(1) on a probe are not kept, only its
    /// capability.
    #[inline]
    pub const fn set_ecn(&mut self, ecn: Codepoint) {
        let ordinary = Self::bits_are_ordinary(self.bits);
        self.bits &= !(Self::CAPABLE | if ordinary { Self::MARK | Self::MARKED } else { 0 });
        self.bits |= match ecn {
            Codepoint::NotCapable => 0,
            Codepoint::Marked if ordinary => Self::CAPABLE | Self::MARKED,
            Codepoint::Scalable if ordinary => Self::CAPABLE | Self::SCALABLE,
            Codepoint::Capable | Codepoint::Scalable | Codepoint::Marked => Self::CAPABLE,
        };
    }
    /// Marks the segment as a probe, as the answer to one, or as neither, and sets its priority.
    #[inline]
    pub const fn set_mark(&mut self, mark: Mark, probe_id: Option<u16>, low_priority: bool) {
        self.bits = (self.bits & !(Self::UNUSUAL_BITS | Self::LOW_PRIORITY)) | mark as u8;
        if let (Some(id), true) = (probe_id, mark as u8 != Mark::None as u8) {
            self.probe = id;
            self.bits |= Self::NUMBERED;
        }
        if low_priority {
            self.bits |= Self::LOW_PRIORITY;
        }
    }
    /// Whether this is an acknowledgement without payload, mark or any flag but ACK.
    #[inline]
    #[must_use]
    pub const fn is_plain_ack(&self) -> bool {
        self.len == 0 && self.is_plain()
    }
    /// Whether this is a data segment without mark or any flag but ACK.
    #[inline]
    #[must_use]
    pub const fn is_plain_data(&self) -> bool {
        self.len > 0 && self.is_plain()
    }
    /// Whether the segment has neither probe mark nor CE mark nor ECT(1), and no flag but ACK; low priority and ECT(0) are
    /// allowed.
    #[inline]
    const fn is_plain(&self) -> bool {
        self.flags.bits() == Flags::ACK.bits() && self.bits & Self::UNUSUAL_BITS == 0
    }
    /// Whether these bits from [`Self::to_raw`] mean a probe.
    #[inline]
    #[must_use]
    pub const fn bits_are_of_probe(bits: u8) -> bool {
        matches!(bits & Self::MARK, 1 | 2)
    }
    /// Bits for [`Self::with_raw`] that mean this priority and nothing else.
    #[inline]
    #[must_use]
    pub const fn bits_of_priority(low_priority: bool) -> u8 {
        if low_priority { Self::LOW_PRIORITY } else { 0 }
    }
    /// Whether these bits from [`Self::to_raw`] mean low priority.
    #[inline]
    #[must_use]
    pub const fn bits_are_low_priority(bits: u8) -> bool {
        bits & Self::LOW_PRIORITY != 0
    }
    /// Whether these bits from [`Self::to_raw`] mean that routers may mark the segment (ECN), or have.
    #[inline]
    #[must_use]
    pub const fn bits_are_capable(bits: u8) -> bool {
        bits & Self::CAPABLE != 0
    }
    /// These bits from [`Self::to_raw`] with a CE mark, if the segment is ECN-capable and neither a probe nor an answer.
    #[inline]
    #[must_use]
    pub const fn bits_marked(bits: u8) -> u8 {
        let may = Self::bits_are_capable(bits) && Self::bits_are_ordinary(bits);
        if may { bits & !Self::MARK | Self::MARKED } else { bits }
    }
    /// Whether these bits from [`Self::to_raw`] mean ECT(1) or CE: packets that a queue treats as those of a scalable control
    /// (RFC 9331 §5.1).
    #[inline]
    #[must_use]
    pub const fn bits_are_l4s(bits: u8) -> bool {
        Self::bits_are_capable(bits)
            && (bits & Self::MARK == Self::SCALABLE || bits & Self::UNUSUAL_BITS == Self::MARKED)
    }
    /// Whether these bits mean neither a probe nor the answer to one.
    #[inline]
    const fn bits_are_ordinary(bits: u8) -> bool {
        matches!(bits & Self::MARK, 0 | Self::SCALABLE)
    }
    /// Whether these bits from [`Self::to_raw`] mean timestamps.
    #[inline]
    #[must_use]
    pub const fn bits_are_stamped(bits: u8) -> bool {
        bits & Self::STAMPED != 0
    }
    /// Packed form for transport: timestamps, number of the probe, and bits.
    #[inline]
    #[must_use]
    pub const fn to_raw(&self) -> ((u32, u32), u16, u8) {
        (self.ts, self.probe, self.bits)
    }
    /// Restores the packed fields.
    #[inline]
    #[must_use]
    pub const fn with_raw(self, ts: (u32, u32), probe: u16, bits: u8) -> Self {
        Self { ts, probe, bits, ..self }
    }
}

/// A TCP segment by content. The wire crate encodes it; the simulator needs nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segment {
    /// Sequence number of the first byte.
    pub seq: Seq,
    /// Acknowledgement number, valid with the ACK flag.
    pub ack: Seq,
    /// Payload bytes.
    pub len: u32,
    /// Receive window, already unscaled, bytes.
    pub window: u32,
    /// Timestamps (TSval, TSecr), if negotiated.
    pub ts: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// Options of a SYN.
    pub syn: SynOptions,
    /// Control flags.
    pub flags: Flags,
    /// Probe mark.
    pub mark: Mark,
    /// Number of the probe, where probes carry numbers.
    pub probe_id: Option<u16>,
    /// To be marked as low priority at the IP layer.
    pub low_priority: bool,
    /// The option of TCP-Real.
    pub waves: Waves,
    /// The ECN field.
    pub ecn: Codepoint,
    /// Requested ACK ratio (RFC 5690 §4.2).
    pub ack_ratio: Option<NonZeroU8>,
    /// A hole that the receiver names, from its first byte to its end (SCPS-TP's SNACK).
    pub snack: Option<(Seq, Seq)>,
    /// The AccECN option (RFC 9768 §3.2.3).
    pub ecn_bytes: Option<EcnBytes>,
}

impl Segment {
    /// Sequence space used: payload plus SYN plus FIN.
    #[must_use]
    pub const fn span(&self) -> u32 {
        self.len + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
    }

    /// Splits the segment into head and extras.
    #[must_use]
    pub fn split(&self) -> (Head, Extras) {
        let Self { seq, ack, len, window, flags, .. } = *self;
        let mut head = Head { seq, ack, len, window, flags, ..Head::default() };
        head.set_mark(self.mark, self.probe_id, self.low_priority);
        head.set_ecn(self.ecn);
        if let Some(ts) = self.ts {
            head.set_ts(ts);
        }
        let Self { sack, syn, waves, ack_ratio, snack, ecn_bytes, .. } = *self;
        (head, Extras { sack, syn, waves, ack_ratio, snack, ecn_bytes })
    }

    /// Splits the segment into head and extras; `None` instead of empty extras, except for a SYN.
    #[must_use]
    pub fn parts(&self) -> (Head, Option<Extras>) {
        let (head, extras) = self.split();
        let rare = !extras.is_none() || head.flags.has(Flags::SYN);
        (head, rare.then_some(extras))
    }

    /// Joins head and extras.
    #[must_use]
    pub fn join(head: &Head, extras: &Extras) -> Self {
        Self {
            seq: head.seq,
            ack: head.ack,
            len: head.len,
            window: head.window,
            ts: head.ts(),
            sack: extras.sack,
            syn: extras.syn,
            flags: head.flags,
            mark: head.mark(),
            probe_id: head.probe_id(),
            low_priority: head.low_priority(),
            waves: extras.waves,
            ecn: head.ecn(),
            ack_ratio: extras.ack_ratio,
            snack: extras.snack,
            ecn_bytes: extras.ecn_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_arithmetic_across_the_wrap() {
        let a = Seq(u32::MAX - 4);
        assert_eq!(a.add(10).diff(a), 10);
        assert_eq!(a.diff(a.add(10)), -10);
        assert_eq!(a.add(10).unwrap(1000, a), Some(1010));
        assert_eq!(a.unwrap(3, a.add(10)), None, "before the stream began");
    }

    #[test]
    fn a_segment_survives_being_taken_apart() {
        let mut sack = SackBlocks::EMPTY;
        sack.push(Seq(5), Seq(9));
        let plain =
            Segment { seq: Seq(1), ack: Seq(2), len: 3, window: 4, flags: Flags::ACK, ..Segment::default() };
        let waves = Waves { number: NonZeroU16::new(1), rate: NonZeroU32::new(2) };
        for s in [
            plain,
            Segment { ts: Some((0, 0)), sack, waves, ..plain },
            Segment { ack_ratio: NonZeroU8::new(3), ..plain },
            Segment { snack: Some((Seq(5), Seq(9))), ..plain },
            Segment { ecn: Codepoint::Capable, mark: Mark::Dummy, ..plain },
            Segment { ecn: Codepoint::Marked, ts: Some((1, 0)), ..plain },
            Segment { ecn: Codepoint::Scalable, low_priority: true, ts: Some((1, 0)), ..plain },
            Segment { ecn_bytes: Some(EcnBytes { ect0: 1, ce: 2, ect1: 3 }), ..plain },
            Segment { flags: Flags::ACK.with(Flags::of_ace(5)), ..plain },
            Segment { mark: Mark::Nil, probe_id: Some(0), low_priority: true, ts: Some((5, 6)), ..plain },
            Segment { mark: Mark::DummyAck, probe_id: Some(65_535), ..plain },
            Segment { mark: Mark::NilAck, ..plain },
            Segment { mark: Mark::Dummy, low_priority: true, ..plain },
        ] {
            let (head, extras) = s.split();
            assert_eq!(Segment::join(&head, &extras), s);
            let nothing = s.sack.is_empty() && s.waves.is_none() && s.ack_ratio.is_none();
            assert_eq!(extras.is_none(), nothing && s.snack.is_none() && s.ecn_bytes.is_none());
        }
        assert_eq!(size_of::<Head>(), 28);
    }

    #[test]
    fn the_flags_of_ecn_are_a_number_in_the_header() {
        for ace in 0..8 {
            let flags = Flags::ACK.with(Flags::of_ace(ace));
            assert_eq!((flags.ace(), Flags::from_header(flags.to_header())), (ace, flags));
        }
        // RFC 9768 §3.2.2, figure 3: AE is bit 7, CWR bit 8 and ECE bit 9 of the two bytes.
        assert_eq!(Flags::of_ace(0b110).with(Flags::ACK).to_header(), [1, 0x90]);
        // URG is ignored.
        assert_eq!(Flags::from_header([0x50, 0x30]), Flags::ACK);
    }

    #[test]
    fn a_router_marks_either_codepoint_and_nothing_else() {
        let of = |ecn, mark| {
            let segment = Segment { flags: Flags::ACK, len: 1, ecn, mark, ..Segment::default() };
            let mut head = segment.split().0;
            head.bits = Head::bits_marked(head.bits);
            (head.ecn(), head.mark())
        };
        assert_eq!(of(Codepoint::Capable, Mark::None), (Codepoint::Marked, Mark::None));
        assert_eq!(of(Codepoint::Scalable, Mark::None), (Codepoint::Marked, Mark::None));
        assert_eq!(of(Codepoint::NotCapable, Mark::None), (Codepoint::NotCapable, Mark::None));
        assert_eq!(of(Codepoint::Scalable, Mark::Nil), (Codepoint::Capable, Mark::Nil));
    }

    #[test]
    fn a_fifth_sack_block_is_ignored() {
        let mut s = SackBlocks::EMPTY;
        (0..5).for_each(|i| s.push(Seq(i), Seq(i + 1)));
        assert_eq!(s.as_slice().len(), 4);
    }
}
