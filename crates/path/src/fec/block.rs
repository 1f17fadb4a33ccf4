//! Packets of parity for blocks of packets. The code is maximum distance separable, as Reed-Solomon codes are (RFC 5510):
//! of n packets sent any k are enough.
//!
//! Parity is as long as the longest packet of its block, and it is sent behind the last one, before anything else. With
//! an interleaving depth of I the packets go to I blocks in turn, and the parity of all of them follows, in turn as
//! well: a burst of losses then hits each block a part only, and a repair takes I times as long.

use super::model::{Code, Model, Shape};
use crate::param::Refusal;
use alloc::format;
use alloc::string::String;
use skyhaul_base::Duration;
#[cfg(feature = "schema")]
use skyhaul_base::amount::{Count, Time};

/// The longest block, and the greatest depth: what 16 bits count.
pub(super) const MOST: u64 = 65_535;

/// Blocks of packets with parity behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Packets that are sent for a full block, those of parity included.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub n: u64,
    /// Packets of a full block without parity; as many of all are enough for the receiver.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub k: u64,
    /// How many blocks are filled in turn; 1 by default, which is no interleaving.
    #[cfg_attr(feature = "serde", serde(default = "one", with = "skyhaul_base::amount::plain::count"))]
    #[cfg_attr(feature = "schema", schemars(with = "Count"))]
    pub interleave: u64,
    /// A block is closed so long after its first packet, however few it has; "50 ms" by default.
    #[cfg_attr(feature = "serde", serde(default = "fill", with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub fill_time: Duration,
    /// Packets behind one that may still be repaired wait for it; true by default. Beside `arq` that decides.
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
    /// One packet without parity; what files need not say is as they have it by default.
    fn default() -> Self {
        Self { n: 1, k: 1, interleave: 1, fill_time: fill(), in_order: true }
    }
}

/// Blocks that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A block of no packets.
    #[error("a block needs at least one packet: write k = 1 or more")]
    Empty,
    /// Fewer are sent than the block has.
    #[error("{n} packets sent is less than the {k} of the block: write n = {k} or more")]
    Short {
        /// Packets sent.
        n: u64,
        /// Packets of the block.
        k: u64,
    },
    /// More than 16 bits count.
    #[error("{0} packets are too many for a block: write at most 65535")]
    Long(u64),
    /// Not even one block is filled.
    #[error("the interleaving depth is at least one block: write 1 for none, or a larger depth")]
    NoDepth,
    /// More than 16 bits count.
    #[error("a depth of {0} blocks is too large: write at most 65535")]
    Deep(u64),
    /// Blocks would be closed before anything is in them.
    #[error("no block can be filled in zero time: write a time above 0, such as \"50 ms\"")]
    NoTime,
}

impl Refusal for Invalid {
    fn key(&self) -> &'static str {
        match self {
            Self::Empty => "k",
            Self::Short { .. } | Self::Long(_) => "n",
            Self::NoDepth | Self::Deep(_) => "interleave",
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
            () if fill_time.is_zero() => Err(Invalid::NoTime),
            () => Ok(()),
        }
    }
    fn code(&self) -> Code {
        if self.n == self.k {
            // Nothing repairs, so nothing is worth waiting for.
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
