//! Configuration of an end.

use crate::wire::{LONGEST_SOURCE_HEADER, REPAIR_HEADER};
use skyhaul_base::{Duration, Rate};
use skyhaul_path::{QueueConfig, Refusal};

/// Configuration of an end. Both ends of a segment have the same, except for rate and queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Rate at which the gateway sends into the segment, outer headers included. Above the rate of the segment, the
    /// queue of another node becomes the bottleneck, and its drops would be repaired.
    pub rate: Rate,
    /// The gateway's own queue, which drops or marks.
    pub queue: QueueConfig,
    /// Repair by a code.
    pub fec: bool,
    /// Maximum repeats of a datagram; 0 for no repeats.
    pub retries: u32,
    /// Maximum time that a datagram waits for earlier ones; 0 to deliver in order of arrival.
    pub resequence: Duration,
    /// Maximum share of the rate for repair symbols and repeats together.
    pub share: f64,
    /// Maximum number of datagrams in a block of the code.
    pub block: u16,
    /// Maximum time from the first datagram of a block to its repair symbols.
    pub fill_time: Duration,
    /// Accepted probability that a block has more losses than the code repairs.
    pub residual: f64,
    /// Bytes around a frame: headers of the outer protocols, tag of the AEAD.
    pub outer: u32,
    /// Largest packet in the segment, outer headers included; `None` for no limit.
    pub mtu: Option<u32>,
    /// Repair symbols have low priority: they leave when nothing else waits, and the segment may discard them first.
    pub low_priority: bool,
    /// Least time between two reports.
    pub report: Duration,
    /// Small datagrams that wait in the queue leave together, in one frame, if the code can join them.
    pub bundle: bool,
    /// Headers of datagrams are compressed, if the code reads them.
    pub compress: bool,
    /// Bytes of headers that each datagram loses, if the code only counts.
    pub elided: u32,
}

impl Config {
    /// Headers of IPv4 and UDP, and the tag of an AEAD of RFC 5116: 20 + 8 + 16.
    pub const OUTER: u32 = 44;
    /// Most datagrams in a block.
    pub const MAX_BLOCK: u16 = 1024;

    /// The defaults, for a gateway with this rate and queue.
    #[must_use]
    pub fn new(rate: Rate, queue: QueueConfig) -> Self {
        Self {
            rate,
            queue,
            fec: true,
            retries: 2,
            resequence: Duration::from_millis(800),
            share: 0.2,
            block: 100,
            fill_time: Duration::from_millis(100),
            residual: 1e-3,
            outer: Self::OUTER,
            mtu: None,
            low_priority: false,
            report: Duration::from_millis(25),
            bundle: false,
            compress: false,
            elided: 0,
        }
    }

    /// The largest datagram that fits: its own frame, and a repair symbol of its block.
    #[must_use]
    pub fn largest_datagram(&self) -> u32 {
        // The inverse of `code::symbol_size`.
        let most = u32::from(u16::MAX);
        let room = self.mtu.unwrap_or(most).min(most).saturating_sub(self.outer);
        if self.fec {
            (room.saturating_sub(REPAIR_HEADER) & !1).saturating_sub(2)
        } else {
            room.saturating_sub(LONGEST_SOURCE_HEADER)
        }
    }

    /// Refuses values outside their domain.
    ///
    /// # Errors
    /// The key, and a sentence that says what to write instead.
    pub fn validate(&self) -> Result<(), Invalid> {
        match () {
            () if !(0.001..=0.5).contains(&self.share) => Err(Invalid::Share(self.share)),
            () if self.block == 0 || self.block > Self::MAX_BLOCK => Err(Invalid::Block(self.block)),
            () if self.fill_time.is_zero() => Err(Invalid::FillTime),
            () if !(1e-9..=0.5).contains(&self.residual) => Err(Invalid::Residual(self.residual)),
            () if self.report.is_zero() => Err(Invalid::Report),
            () if self.retries > 16 => Err(Invalid::Retries(self.retries)),
            () if self.largest_datagram() == 0 => Err(Invalid::Mtu(self.mtu.unwrap_or(u16::MAX.into()))),
            () => Ok(()),
        }
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// The share.
    #[error("{0} is no possible share of the link: write a number from 0.001 to 0.5, such as 0.2")]
    Share(f64),
    /// The length of blocks.
    #[error("a block of {0} datagrams is impossible: write 1 to 1024, such as 100")]
    Block(u16),
    /// The fill time.
    #[error("no block can be filled in zero time: write a time above 0, such as \"100 ms\"")]
    FillTime,
    /// The residual probability.
    #[error("{0} is no possible target: write a probability from 1e-9 to 0.5, such as 1e-3")]
    Residual(f64),
    /// The interval between reports.
    #[error("reports need some time between them: write a time above 0, such as \"25 ms\"")]
    Report,
    /// Too many repeats.
    #[error("{0} repeats of a datagram are too many: write at most 16")]
    Retries(u32),
    /// No room for a datagram.
    #[error("packets of {0} bytes have no room for the headers: write a larger one, such as \"1500 B\"")]
    Mtu(u32),
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        match self {
            Self::Share(_) => "share",
            Self::Block(_) => "block",
            Self::FillTime => "fill-time",
            Self::Residual(_) => "residual",
            Self::Report => "report",
            Self::Retries(_) => "retries",
            Self::Mtu(_) => "mtu",
        }
    }
}
