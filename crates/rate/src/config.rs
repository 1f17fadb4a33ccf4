//! What files say of a protocol.

use crate::{ssvp, tfrc};
use skyhaul_base::Rate;
use skyhaul_base::amount::RateSpec;

/// Packet unless the application or the file says otherwise, bytes with headers.
pub const USUAL_PACKET: u64 = 1000;
/// Largest packet.
pub(crate) const LARGEST: u64 = 65_535;

/// A protocol, with its options.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Config {
    /// TFRC (RFC 5348).
    Tfrc(tfrc::Config),
    /// SSVP, as far as it is published.
    Ssvp(ssvp::Config),
}

/// When a receiver reports.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// Once per round-trip time; with TFRC besides when the loss event rate rises (RFC 5348 §6.2).
    #[default]
    Rtt,
    /// For every packet.
    Packet,
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// The size of a packet.
    #[error("\"{size} B\": write a size from {least} B to {LARGEST} B")]
    Packet {
        /// What stands there, bytes.
        size: u64,
        /// The smallest that there is.
        least: u64,
    },
    /// A queue without room.
    #[error("a sender needs room for at least one packet: write, say, queue = 64")]
    NoQueue,
    /// A rate that nothing can be sent at, or that is below another.
    #[error("{0}")]
    Rate(&'static str),
    /// A number out of its range.
    #[error("{value} is not accepted: write a number {range}")]
    Range {
        /// The key.
        key: &'static str,
        /// What stands there.
        value: f64,
        /// What may.
        range: &'static str,
    },
}

impl Invalid {
    /// The key within the transport's table that is wrong.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Packet { .. } => "packet",
            Self::NoQueue => "queue",
            Self::Rate(_) => "max-rate",
            Self::Range { key, .. } => key,
        }
    }
}

impl Config {
    /// What results call it. SSVP's rules are not published: what we have is called a reconstruction everywhere.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Tfrc(_) => "tfrc",
            Self::Ssvp(_) => "ssvp-reconstructed",
        }
    }
    /// A full packet with its headers, bytes, if the file says so.
    #[must_use]
    pub fn packet(&self) -> Option<u64> {
        match self {
            Self::Tfrc(c) => c.packet,
            Self::Ssvp(c) => c.packet,
        }
    }
    /// The same without defaults, for an application with packets of `usual` bytes that offers so many bit/s in the long
    /// run (`None`: as fast as it may). A packet has `header` bytes of headers.
    ///
    /// # Errors
    /// What is wrong, in a sentence that says what to write instead.
    pub fn resolve(&self, usual: Option<u64>, offered: Option<f64>, header: u32) -> Result<Self, Invalid> {
        let packet = self.packet().or(usual).unwrap_or(USUAL_PACKET);
        let least = u64::from(header) + crate::DATA_HEADER as u64;
        if !(least..=LARGEST).contains(&packet) {
            return Err(Invalid::Packet { size: packet, least });
        }
        match self {
            Self::Tfrc(c) => c.resolve(packet).map(Self::Tfrc),
            Self::Ssvp(c) => c.resolve(packet, offered).map(Self::Ssvp),
        }
    }
    /// How many datagrams may wait at the sender.
    pub(crate) fn queue(&self) -> usize {
        let queue = match self {
            Self::Tfrc(c) => c.queue,
            Self::Ssvp(c) => c.queue,
        };
        usize::try_from(queue).unwrap_or(usize::MAX)
    }
    /// A full packet with its headers, bytes, of a configuration that [`Self::resolve`] returned.
    #[must_use]
    pub fn segment(&self) -> u32 {
        self.packet().map_or(USUAL_PACKET as u32, |n| u32::try_from(n).unwrap_or(u32::MAX))
    }
    /// What the rate never exceeds, bytes per second.
    #[must_use]
    pub fn ceiling(&self) -> f64 {
        let most = match self {
            Self::Tfrc(c) => c.max_rate,
            Self::Ssvp(c) => c.max_rate,
        };
        most.map_or(f64::INFINITY, bytes)
    }
    /// Packets of unused time that a sender may make up for at once.
    pub(crate) fn burst(&self) -> u64 {
        match self {
            Self::Tfrc(c) => c.burst,
            Self::Ssvp(_) => 1,
        }
    }
}

/// In bit/s, whatever the file says.
pub(crate) fn bits(rate: RateSpec, packet: u64) -> Result<RateSpec, Invalid> {
    match rate {
        RateSpec::Unlimited => Ok(RateSpec::Unlimited),
        RateSpec::Bits(r) if r.bits_per_sec() > 0 => Ok(RateSpec::Bits(r)),
        RateSpec::Packets(n) => match n.times(packet * 8) {
            Some(bits) if bits > 0 => Ok(RateSpec::Bits(Rate::from_bits_per_sec(bits))),
            _ => Err(Invalid::Rate("no rate that can be sent: write, say, \"1 Mbit/s\"")),
        },
        RateSpec::Bits(_) => Err(Invalid::Rate("no rate that can be sent: write, say, \"1 Mbit/s\"")),
    }
}

/// Bytes per second of a resolved rate.
pub(crate) fn bytes(rate: RateSpec) -> f64 {
    match rate {
        RateSpec::Bits(r) => r.bytes_per_sec(),
        RateSpec::Packets(_) | RateSpec::Unlimited => f64::INFINITY,
    }
}

/// Rates that may be missing need no module of their own; sizes do: they are plain numbers with a unit in files.
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
