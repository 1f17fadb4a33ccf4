//! Links.

use super::fade::{FadeSpec, RateOrKind};
use super::queue::QueueSpec;
use super::repair::{ArqSpec, FecSpec};
use super::short::{Short, ShortForm};
use super::trace::OrTrace;
use crate::amount::{Size, Time};
use crate::error::ValueError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use skyhaul_path::{Delay, error};

/// A duplex link. The keys describe the forward direction (data); the reverse direction is the same except for the
/// keys in `reverse`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkSpec {
    /// Size of a packet, for a rate in packets per second and a queue in BDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
    /// Rate of the transmitter: a rate, or a table with a trace file or a `kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<OrTrace<RateOrKind>>,
    /// One-way propagation delay: a time, or a table for jitter or with a trace file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<OrTrace<Short<Delay>>>,
    /// Satellites between two stations, which determine the delay of both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orbit: Option<Box<skyhaul_orbit::Config>>,
    /// Packets may overtake each other in flight; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_reorder: Option<bool>,
    /// The queue: a limit for drop-tail, or a table. By default one BDP, drop-tail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Short<QueueSpec>>,
    /// Channel losses; "none" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Short<error::Config>>,
    /// Channel losses also apply to pure acknowledgements; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_errors: Option<bool>,
    /// Size of a pure TCP acknowledgement on a link that compresses headers, such as "6 B"; uncompressed by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_size: Option<Size>,
    /// Regenerate lost or filtered acknowledgements at the far end of the link, one per this many bytes, such as
    /// "1920 B"; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconstruct_acks: Option<Size>,
    /// The link is up; true by default. While it is down, it sends nothing and its queue fills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// A link that goes down loses the packets in flight; false by default, true with hard satellite handovers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_in_flight: Option<bool>,
    /// Fading of the carrier by rain or shadowing, or from a file of attenuations; it changes the rate and the losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade: Option<FadeSpec>,
    /// Forward error correction: a table with its kind; "none" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec: Option<Short<FecSpec>>,
    /// ARQ: retransmission of packets that the code, if any, does not recover; "none" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arq: Option<Short<ArqSpec>>,
    /// Differences of the reverse direction (acknowledgements).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<DirectionSpec>,
}

/// The keys of the reverse direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DirectionSpec {
    /// Rate of the transmitter: a rate, or a table with a trace file or a `kind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<OrTrace<RateOrKind>>,
    /// Propagation delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<OrTrace<Short<Delay>>>,
    /// Packets may overtake each other in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_reorder: Option<bool>,
    /// The queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Short<QueueSpec>>,
    /// Channel losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Short<error::Config>>,
    /// Channel losses also apply to pure acknowledgements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_errors: Option<bool>,
    /// Size of a pure TCP acknowledgement with compressed headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_size: Option<Size>,
    /// Regenerate acknowledgements at the far end, one per this many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconstruct_acks: Option<Size>,
    /// The direction is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// Packets in flight are lost when the direction goes down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_in_flight: Option<bool>,
    /// The fade of this direction; "none" for no fade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade: Option<FadeSpec>,
    /// Forward error correction: a table with its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec: Option<Short<FecSpec>>,
    /// ARQ: retransmission of packets that the code, if any, does not recover.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arq: Option<Short<ArqSpec>>,
}

impl ShortForm for Delay {
    const EXPECTING: &'static str = "a time with a unit, such as \"275 ms\"";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(Self::fixed(text.parse::<Time>()?.0))
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a time with a unit, such as \"{n} ms\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Time>()
    }
}

impl ShortForm for error::Config {
    const EXPECTING: &'static str = "\"none\", or a table such as { kind = \"per\", p = 1e-3 }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "none" => Ok(Self::NONE),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn bare(n: &str) -> String {
        format!(
            "{n} is ambiguous: write {{ kind = \"per\", p = {n} }} for a packet loss rate, or \
             {{ kind = \"ber\", ber = {n} }} for a bit error rate"
        )
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": "none" })
    }
}
