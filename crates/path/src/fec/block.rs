//! Parity packets for blocks of packets. The code is maximum distance separable, like Reed-Solomon codes (RFC
//! 5510): any k of n packets suffice.
//!
//! Parity packets are as long as the longest packet of their block, and are sent after its last packet, before any
//! other packet. With an interleaving depth of I, packets are assigned to I blocks in turn, and the parity of all I
//! blocks follows their last packet, also in turn: a loss burst is spread over the blocks, and a repair takes about I
//! times as long.

use super::model::{Code, Model, Shape};
use crate::param::Refusal;
use alloc::format;
use alloc::string::String;
use skyhaul_base::Duration;
#[cfg(feature = "schema")]
use skyhaul_base::amount::{Count, Time};

/// Maximum of n, which is that of Reed-Solomon codes with symbols of 16 bits (RFC 5510), and also (*our choice*) of the
/// depth, of the parity of all blocks filled in turn, and of repetitions.
pub(super) const MOST: u64 = 65_535;

/// Blocks of packets followed by parity packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Packets sent per full block, including parity.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub n: u64,
    /// Data packets per full block; the receiver needs any k of the n packets.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub k: u64,
    /// Interleaving depth: the number of blocks filled in turn; 1 by default (no interleaving).
    #[cfg_attr(feature = "serde", serde(default = "one", with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub interleave: u64,
    /// Time after its first packet at which a block that is not full is closed, with all blocks filled in turn with it;
    /// "50 ms" by default.
    #[cfg_attr(feature = "serde", serde(default = "fill", with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub fill_time: Duration,
    /// In-order delivery: packets wait for earlier ones that may still be repaired; true by default. With `arq`, its
    /// key `in-order` applies instead.
    #[cfg_attr(feature = "serde", serde(default = "yes"))]
    pub in_order: bool,
}

#[cfg(feature = "serde")]
fn one() -> u64 {
    1
}
#[cfg(feature = "serde")]
fn yes() -> bool {
    true
}
fn fill() -> Duration {
    Duration::from_millis(50)
}

impl Default for Config {
    /// A block of one packet without parity, and defaults for optional keys.
    fn default() -> Self {
        Self { n: 1, k: 1, interleave: 1, fill_time: fill(), in_order: true }
    }
}

/// Impossible blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A block without packets.
    #[error("a block needs at least one packet: write k = 1 or more")]
    Empty,
    /// Fewer packets are sent than the block has data packets.
    #[error("{n} packets sent are fewer than the {k} data packets of the block: write n = {k} or more")]
    Short {
        /// Packets sent.
        n: u64,
        /// Data packets of the block.
        k: u64,
    },
    /// More than 16 bits can count.
    #[error("{0} packets are too many for a block: write at most 65535")]
    Long(u64),
    /// The depth is zero.
    #[error("the interleaving depth is at least one block: write 1 for none, or a larger depth")]
    NoDepth,
    /// More than 16 bits can count.
    #[error("a depth of {0} blocks is too large: write at most 65535")]
    Deep(u64),
    /// More parity than 16 bits can count follows the blocks filled in turn.
    #[error(
        "{0} packets of parity follow the blocks filled in turn: write a smaller depth or n, for at most 65535"
    )]
    Parity(u64),
    /// Blocks would be closed with their first packet.
    #[error("no block can be filled in zero time: write a time above 0, such as \"50 ms\"")]
    NoTime,
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        match self {
            Self::Empty => "k",
            Self::Short { .. } | Self::Long(_) => "n",
            Self::NoDepth | Self::Deep(_) | Self::Parity(_) => "interleave",
            Self::NoTime => "fill-time",
        }
    }
}

impl Model for Config {
    type Invalid = Invalid;

    fn validate(&self) -> Result<(), Invalid> {
        let Self { n, k, interleave, fill_time, .. } = *self;
        match () {
            () if k == 0 => Err(Invalid::Empty),
            () if n < k => Err(Invalid::Short { n, k }),
            () if n > MOST => Err(Invalid::Long(n)),
            () if interleave == 0 => Err(Invalid::NoDepth),
            () if interleave > MOST => Err(Invalid::Deep(interleave)),
            () if (n - k) * interleave > MOST => Err(Invalid::Parity((n - k) * interleave)),
            () if fill_time.is_zero() => Err(Invalid::NoTime),
            () => Ok(()),
        }
    }
    fn code(&self) -> Code {
        if self.n == self.k {
            // Without repair, there is nothing to wait for.
            return Code::NONE;
        }
        let shape = Shape {
            k: self.k as u32,
            parity: (self.n - self.k) as u32,
            depth: self.interleave as u32,
            fill_time: self.fill_time,
            in_order: self.in_order,
        };
        Code { shape, ..Code::NONE }
    }
    fn words(&self, _: &dyn Fn(f64) -> String) -> String {
        let Self { n, k, .. } = self;
        let deep =
            if self.interleave > 1 { format!(", {} blocks in turn", self.interleave) } else { String::new() };
        format!("block code ({n}, {k}){deep}")
    }
}
