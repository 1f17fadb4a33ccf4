//! What a TCP segment means, without its bytes.

use core::fmt;
use core::num::{NonZeroU16, NonZeroU32};

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
    /// The 64-bit stream offset that this number stands for, given that `near` (with number `near_seq`) is less
    /// than 2^31 away; `None` if that offset would be negative.
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

    /// The flags of a TCP header's thirteenth byte.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
    /// As in a TCP header's thirteenth byte.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
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
}

/// What a probe mark says (none on ordinary segments).
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
    /// A dummy or NIL segment.
    #[must_use]
    pub const fn is_probe(self) -> bool {
        matches!(self, Self::Dummy | Self::Nil)
    }
    /// The answer to one.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::DummyAck | Self::NilAck)
    }
}

/// Up to four SACK blocks, first the most recent; inline, since the option space allows no more.
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
}

/// A TCP segment by meaning. The wire crate maps it to bytes; in the simulator this is all there is.
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
    /// Number of the wave that the data belongs to, where the peer measures them (TCP-Real). Any number on a SYN offers
    /// to measure and to report.
    pub wave: Option<NonZeroU16>,
    /// What the sender of the segment measured of the last complete wave that it received, bytes of payload per
    /// second (TCP-Real). It belongs to the acknowledgement.
    pub receiver_rate: Option<NonZeroU32>,
}

impl Segment {
    /// Sequence space used: payload plus SYN plus FIN.
    #[must_use]
    pub const fn span(&self) -> u32 {
        self.len + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
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
    fn a_fifth_sack_block_is_ignored() {
        let mut s = SackBlocks::EMPTY;
        (0..5).for_each(|i| s.push(Seq(i), Seq(i + 1)));
        assert_eq!(s.as_slice().len(), 4);
    }
}
