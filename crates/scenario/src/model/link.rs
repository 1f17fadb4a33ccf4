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

/// A duplex link. The keys describe the forward direction, which data takes; the reverse direction is the same
/// except for what `reverse` says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkSpec {
    /// Size of a packet, for a rate in packets per second and a queue in BDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
    /// Rate of the transmitter: a rate, or a table with a file that says how it changes or with a kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<OrTrace<RateOrKind>>,
    /// Propagation delay, one way: a time, or a table for jitter or with a file that says how it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<OrTrace<Short<Delay>>>,
    /// Satellites between two stations, in the place of the delay of both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orbit: Option<Box<skyhaul_orbit::Config>>,
    /// Packets may overtake each other in flight; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_reorder: Option<bool>,
    /// The queue: a limit for drop-tail, or a table. By default one BDP, drop-tail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Short<QueueSpec>>,
    /// Losses of the channel; "none" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Short<error::Config>>,
    /// The channel's losses apply to pure acknowledgements too; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_errors: Option<bool>,
    /// Bytes that a pure acknowledgement of TCP takes where the link compresses headers, such as "6 B"; its own size by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_size: Option<Size>,
    /// Where acknowledgements are lost or thinned, they are made anew at the far side of the link: one for so many bytes, such
    /// as "1920 B"; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconstruct_acks: Option<Size>,
    /// The link is up; true by default. While it is down its queue keeps filling and nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// A link that goes down loses what is in flight; false by default, true where satellites hand over hard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_in_flight: Option<bool>,
    /// Rain, shadowing, or a file of attenuations: what they do to the carrier, and so to the rate and to losses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade: Option<FadeSpec>,
    /// Forward error correction: a table with its kind; "none" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec: Option<Short<FecSpec>>,
    /// Repeats on request of what the code, if any, leaves; "none" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arq: Option<Short<ArqSpec>>,
    /// How the reverse direction, which acknowledgements take, differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<DirectionSpec>,
}

/// What the reverse direction of a link has of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DirectionSpec {
    /// Rate of the transmitter: a rate, or a table with a file that says how it changes or with a kind.
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
    /// Losses of the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Short<error::Config>>,
    /// The channel's losses apply to pure acknowledgements too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_errors: Option<bool>,
    /// Bytes that a pure acknowledgement of TCP takes where headers are compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_size: Option<Size>,
    /// Acknowledgements are made anew at the far side, one for so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconstruct_acks: Option<Size>,
    /// The direction is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// What is in flight is lost when it goes down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_in_flight: Option<bool>,
    /// The fade of this direction; "none" for no fade.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fade: Option<FadeSpec>,
    /// Forward error correction: a table with its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec: Option<Short<FecSpec>>,
    /// Repeats on request of what the code, if any, leaves.
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
