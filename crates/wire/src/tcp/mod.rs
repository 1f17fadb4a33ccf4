//! TCP headers (RFC 9293).

mod options;

pub use options::{Options, ProbeOption};
pub(crate) use options::{Writer, aligned};

use crate::ip::{self, Header};
use crate::{Agreement, Refusal};
use core::num::NonZeroU8;
use skyhaul_tcp::{Codepoint, Flags, Mark, Segment, Seq, SynOptions, Waves};

/// Protocol number of TCP in the IP header.
pub const PROTOCOL: u8 = ip::TCP;
/// Length of the header without options, bytes.
pub const HEADER: usize = 20;
/// Room for options, bytes.
pub const OPTION_SPACE: usize = 40;
/// Length of the header with all options, bytes.
pub const MAX_HEADER: usize = HEADER + OPTION_SPACE;

/// Reserved bits that mark probes (in closed networks, or if negotiated): a probe, an answer to one, and NIL, a probe whose
/// payload is data.
pub(crate) const BIT_PROBE: u8 = 0x08;
pub(crate) const BIT_ANSWER: u8 = 0x04;
pub(crate) const BIT_NIL: u8 = 0x02;
const MARK_BITS: u8 = BIT_PROBE | BIT_ANSWER | BIT_NIL;

/// A segment parsed in place: well-formed, with a correct checksum. The meaning of its bytes depends on the agreement
/// of both ends: see [`Self::segment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// Source.
    pub src_port: u16,
    /// Destination.
    pub dst_port: u16,
    /// Sequence number of the first byte.
    pub seq: Seq,
    /// Acknowledgement number, valid with the ACK flag.
    pub ack: Seq,
    /// Control flags.
    pub flags: Flags,
    /// The four bits between data offset and flags: three reserved ones and AE (RFC 9768).
    pub reserved: u8,
    /// Window as written, not scaled.
    pub window: u16,
    /// All options.
    pub options: Options<'a>,
    /// The payload.
    pub payload: &'a [u8],
    dscp: u8,
    ecn: u8,
}

impl<'a> Tcp<'a> {
    /// Parses a segment; `verified`: the checksum was already verified.
    pub(crate) fn parse(ip: &Header, bytes: &'a [u8], verified: bool) -> Result<Self, Refusal> {
        let (head, rest) = bytes.split_first_chunk::<HEADER>().ok_or(Refusal::TcpTruncated)?;
        let options = (usize::from(head[12] >> 4) * 4).checked_sub(HEADER).ok_or(Refusal::DataOffset)?;
        let (options, payload) = rest.split_at_checked(options).ok_or(Refusal::DataOffset)?;
        if !verified && ip.pseudo(bytes.len()).bytes(bytes).finish() != 0 {
            return Err(Refusal::TcpChecksum);
        }
        let flags = Flags::from_header([head[12], head[13]]);
        Ok(Self {
            src_port: u16::from_be_bytes([head[0], head[1]]),
            dst_port: u16::from_be_bytes([head[2], head[3]]),
            seq: Seq(u32::from_be_bytes([head[4], head[5], head[6], head[7]])),
            ack: Seq(u32::from_be_bytes([head[8], head[9], head[10], head[11]])),
            flags,
            reserved: head[12] & 0x0f,
            window: u16::from_be_bytes([head[14], head[15]]),
            options: Options::parse(options, flags.has(Flags::SYN))?,
            payload,
            dscp: ip.dscp,
            ecn: ip.ecn,
        })
    }

    /// DSCP of the packet that carried the segment.
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.dscp
    }

    /// The decoded segment, given the agreement with its sender. The payload stays in place.
    #[must_use]
    pub fn segment(&self, agreed: &Agreement) -> Segment {
        let syn = self.flags.has(Flags::SYN);
        let o = &self.options;
        let shift = if syn { 0 } else { agreed.window_shift.min(14) };
        let (mark, probe_id) = self.mark(agreed);
        let capable = match o.probe(agreed.probe_exid) {
            Some(ProbeOption::Capability(c)) if agreed.profile.negotiates() => {
                c.has(crate::Capability::ANSWERS)
            }
            _ => false,
        };
        let (number, rate) = o.rate();
        let ack_ratio = o.ack_ratio();
        Segment {
            seq: self.seq,
            ack: self.ack,
            len: self.payload.len() as u32,
            window: u32::from(self.window) << shift,
            ts: o.timestamps,
            sack: o.sack(),
            syn: if syn {
                SynOptions {
                    mss: o.mss,
                    window_scale: o.window_scale,
                    sack_permitted: o.sack_permitted,
                    probes: capable,
                    ack_cc: ack_ratio.is_some(),
                    snack: false,
                }
            } else {
                SynOptions::default()
            },
            flags: self.flags,
            mark,
            probe_id,
            low_priority: agreed.plan.is_low(self.dscp),
            waves: Waves { number, rate },
            ack_ratio: ack_ratio.filter(|_| !syn).and_then(NonZeroU8::new),
            snack: None,
            // Low-priority packets are never sent as ECN-capable.
            ecn: match self.ecn {
                _ if agreed.plan.is_low(self.dscp) => Codepoint::NotCapable,
                0 => Codepoint::NotCapable,
                1 => Codepoint::Scalable,
                3 => Codepoint::Marked,
                _ => Codepoint::Capable,
            },
            ecn_bytes: o.ecn_bytes,
        }
    }

    /// The mark of a probe or an answer, and its number. A contradictory mark counts as none.
    fn mark(&self, agreed: &Agreement) -> (Mark, Option<u16>) {
        let empty = self.payload.is_empty();
        if !may_be_marked(self.flags) {
            return (Mark::None, None);
        }
        // A probe has a payload, and an answer has none.
        let consistent = |m: Mark| m.is_probe() != empty;
        if agreed.profile.negotiates() {
            if let Some(ProbeOption::Mark { mark, id }) = self.options.probe(agreed.probe_exid) {
                return if consistent(mark) { (mark, Some(id)) } else { (Mark::None, None) };
            }
        }
        if agreed.profile.bits() {
            let mark = match self.reserved & MARK_BITS {
                BIT_PROBE => Mark::Dummy,
                b if b == BIT_PROBE | BIT_NIL => Mark::Nil,
                BIT_ANSWER => Mark::DummyAck,
                b if b == BIT_ANSWER | BIT_NIL => Mark::NilAck,
                _ => Mark::None,
            };
            if mark != Mark::None && consistent(mark) {
                return (mark, None);
            }
        }
        (Mark::None, None)
    }
}

/// Marks are valid only on segments with ACK and without SYN, FIN and RST.
pub(crate) fn may_be_marked(flags: Flags) -> bool {
    let control = Flags::SYN.with(Flags::FIN).with(Flags::RST).bits();
    flags.has(Flags::ACK) && flags.bits() & control == 0
}
