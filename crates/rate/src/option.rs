//! Options common to both protocols.

use skyhaul_base::Rate;
use skyhaul_base::amount::RateSpec;

/// Largest packet.
pub(crate) const LARGEST: u64 = 65_535;

/// When a receiver reports.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// Once per round-trip time; with TFRC, also when the loss event rate rises (RFC 5348 §6.2).
    #[default]
    Rtt,
    /// For every packet.
    Packet,
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// The packet size is invalid.
    #[error("\"{size} B\": write a size from {least} B to {LARGEST} B")]
    Packet {
        /// The given value, bytes.
        size: u64,
        /// The minimum.
        least: u64,
    },
    /// The queue has no room.
    #[error("a sender needs room for at least one packet: write, say, queue = 64")]
    NoQueue,
    /// The rate is zero or too large, or the largest rate is below the smallest.
    #[error("{problem}")]
    Rate {
        /// The key.
        key: &'static str,
        /// What is wrong, and what to write instead.
        problem: &'static str,
    },
    /// The number is out of range.
    #[error("{value} is not accepted: write a number {range}")]
    Range {
        /// The key.
        key: &'static str,
        /// The given value.
        value: f64,
        /// The allowed range.
        range: &'static str,
    },
}

impl Invalid {
    /// The invalid key within the transport's table.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Packet { .. } => "packet",
            Self::NoQueue => "queue",
            Self::Rate { key, .. } | Self::Range { key, .. } => key,
        }
    }
}

/// The value of `key` in bit/s, whatever the unit in the file; a packet has `packet` bytes.
pub(crate) fn bits(key: &'static str, rate: RateSpec, packet: u64) -> Result<RateSpec, Invalid> {
    let refused = Invalid::Rate { key, problem: "not a rate to send at: write, say, \"1 Mbit/s\"" };
    match rate {
        RateSpec::Unlimited => Ok(RateSpec::Unlimited),
        RateSpec::Bits(r) if r.bits_per_sec() > 0 => Ok(RateSpec::Bits(r)),
        RateSpec::Packets(n) => match n.times(packet * 8) {
            Some(bits) if bits > 0 => Ok(RateSpec::Bits(Rate::from_bits_per_sec(bits))),
            _ => Err(refused),
        },
        RateSpec::Bits(_) => Err(refused),
    }
}

/// Bytes per second of a resolved rate.
pub(crate) fn bytes(rate: RateSpec) -> f64 {
    match rate {
        RateSpec::Bits(r) => r.bytes_per_sec(),
        RateSpec::Packets(_) | RateSpec::Unlimited => f64::INFINITY,
    }
}

/// An optional size in bytes, in files an amount with a unit. Where it is absent, `serde(default)` and `skip_serializing_if`
/// handle it.
pub(crate) mod optional_size {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use skyhaul_base::amount::Size;

    pub(crate) fn serialize<S: Serializer>(value: &Option<u64>, s: S) -> Result<S::Ok, S::Error> {
        value.map(Size).serialize(s)
    }
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
        Size::deserialize(d).map(|q| Some(q.0))
    }
}
