//! What travels between two ends, and what an end hands out.

use skyhaul_base::Duration;

/// A frame: one packet in the segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<D, S> {
    /// Number of the frame, different for all frames of an end, repeats included.
    pub number: u64,
    /// Its content.
    pub kind: Kind<D, S>,
}

/// The content of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a frame is moved a few times, and a report needs no allocation"
)]
pub enum Kind<D, S> {
    /// A datagram: a source symbol of RFC 5052.
    Source {
        /// Number of the datagram.
        seq: u64,
        /// The sender sends nothing more about datagrams below this one; `None` if the other end knows that by its own reports.
        floor: Option<u64>,
        /// The datagram.
        datagram: D,
    },
    /// A repair symbol of a block.
    Repair {
        /// Number of the first datagram of the block.
        first: u64,
        /// Datagrams in the block.
        k: u16,
        /// Repair symbols of the block.
        parity: u8,
        /// Which of them this is, from 0.
        index: u8,
        /// The symbol.
        symbol: S,
    },
    /// What the sender of this frame has received.
    Report(Report),
}

/// Ranges of missing datagrams, lowest first, each a first number and a length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    len: u8,
    ranges: [(u64, u32); Self::MOST],
}

impl Ranges {
    /// The largest number of ranges.
    pub const MOST: usize = 24;
    /// Adds a range, unless there is no room.
    pub fn push(&mut self, first: u64, len: u32) -> bool {
        let Some(place) = self.ranges.get_mut(usize::from(self.len)) else { return false };
        *place = (first, len);
        self.len += 1;
        true
    }
    /// The ranges.
    #[must_use]
    pub fn as_slice(&self) -> &[(u64, u32)] {
        &self.ranges[..usize::from(self.len)]
    }
}

/// Datagrams that have installed references of compressed headers ([`crate::compress`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    len: u8,
    seqs: [u64; Self::MOST],
}

impl Installed {
    /// The largest number of datagrams.
    pub const MOST: usize = 7;
    /// Adds a datagram, unless there is no room.
    pub fn push(&mut self, seq: u64) -> bool {
        let Some(place) = self.seqs.get_mut(usize::from(self.len)) else { return false };
        *place = seq;
        self.len += 1;
        true
    }
    /// The datagrams.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        &self.seqs[..usize::from(self.len)]
    }
}

/// What a receiver knows. Every report has all of it, so that lost reports do no harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The largest number of a frame that has arrived.
    pub largest: u64,
    /// Time since that frame arrived; whole microseconds on the wire.
    pub delay: Duration,
    /// All datagrams below this one are settled: arrived or given up.
    pub base: u64,
    /// All datagrams from here on are unknown; those before are settled, unless they are missing.
    pub next: u64,
    /// Missing datagrams from `base` up to `next`.
    pub missing: Ranges,
    /// Frames that have arrived, in all; it wraps.
    pub received: u32,
    /// Frames that were lost, in all; it wraps.
    pub lost: u32,
    /// Runs of consecutive losses, in all; it wraps.
    pub bursts: u32,
    /// Datagrams that have installed references lately. A datagram is in several reports.
    pub installed: Installed,
}

/// What an end sends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a frame is moved a few times, and a report needs no allocation"
)]
pub enum Output<D, S> {
    /// A frame for the other end.
    Frame {
        /// The frame.
        frame: Frame<D, S>,
        /// Bytes to which its numbers are truncated ([`crate::wire`]).
        digits: u8,
        /// Its size in the segment, bytes.
        size: u32,
        /// It may be discarded first.
        low_priority: bool,
    },
    /// A datagram that passes without repair.
    Plain(D),
}

/// How an end treats a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// It is repaired.
    Repaired,
    /// It passes through the gateway's queue, and is then sent as it is.
    Passed,
}

/// A datagram at the far end of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<R> {
    /// Number of the datagram.
    pub seq: u64,
    /// The datagram.
    pub datagram: R,
    /// A node in the segment marked the frame that carried it: the mark belongs on the datagram (RFC 6040 §4.2).
    pub marked: bool,
    /// The receiver no longer waited for it: later ones may have been delivered.
    pub late: bool,
}

/// A datagram does not fit into a frame. The gateway has to say so: Packet Too Big (RFC 4443 §3.2), or Fragmentation
/// Needed (RFC 1191 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a datagram of {size} bytes does not fit: at most {largest}")]
pub struct TooBig {
    /// Its size.
    pub size: u32,
    /// The largest size that fits.
    pub largest: u32,
}
