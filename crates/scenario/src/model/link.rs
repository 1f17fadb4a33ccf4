//! Links.
//!
//! The keys of a direction are a list of a macro, since three structs are made from them: the link itself, whose keys are those of its
//! forward direction; the differences of its reverse direction; and the resolved direction. The struct of a link cannot contain that of a
//! direction: serde cannot refuse unknown keys of a struct with a flattened field, and a flattened field loses the path of a key, which
//! errors name. They cannot be the same struct, either: a reverse direction has neither `packet` nor `orbit`, and the schema says so.

use super::fade::{FadeSpec, RateOrKind};
use super::queue::QueueSpec;
use super::repair::{ArqSpec, FecSpec};
use super::short::{Short, ShortForm};
use super::trace::OrTrace;
use crate::amount::{Probability, Size, Time};
use crate::error::ValueError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use skyhaul_path::{Delay, error};

/// The keys of one direction of a link, a line each: what is written => what it resolves to = its default. The order is that of the
/// canonical text, over which hashes are: there `orbit` stands between the two groups.
///
/// The link itself, its reverse direction, the merge of both and [`crate::resolved::Direction`] follow from this list.
/// `crate::resolve::direction` reads a key and writes it.
macro_rules! direction_keys {
    ($make:ident) => {
        $make! {
            {
                /// Rate of the transmitter: a rate, or a table with a trace file or a `kind`.
                rate: OrTrace<RateOrKind> => rate::Config,
                /// One-way propagation delay: a time, or a table for jitter or with a trace file.
                delay: OrTrace<Short<Delay>> => Delay,
            }
            {
                /// Packets may overtake each other in flight; false by default.
                allow_reorder: bool => bool = false,
                /// The queue: a limit for drop-tail, or a table. By default one BDP, drop-tail.
                queue: Short<QueueSpec> => QueueConfig = QueueConfig::default(),
                /// Channel losses; "none" by default.
                error: Short<error::Config> => error::Config = error::Config::NONE,
                /// Probability that a packet is delivered twice in direct succession, such as 1e-3; 0 by default.
                duplicate: Probability => f64 = 0.0,
                /// Channel losses also apply to pure acknowledgements; true by default.
                ack_errors: bool => bool = true,
                /// Size of a pure TCP acknowledgement on a link that compresses headers, such as "6 B"; uncompressed by
                /// default.
                ack_size: Size => Option<u32> = None,
                /// Regenerate lost or filtered acknowledgements at the far end of the link, one per this many bytes, such as
                /// "1920 B"; none by default.
                reconstruct_acks: Size => Option<u32> = None,
                /// The link is up; true by default. While it is down, it sends nothing and its queue fills.
                up: bool => bool = true,
                /// A link that goes down loses the packets in flight; false by default, true with hard satellite handovers.
                drop_in_flight: bool => bool = false,
                /// Fading of the carrier by rain or shadowing, or from a file of attenuations; it changes the rate and the
                /// losses. "none" by default.
                fade: FadeSpec => Option<Box<fade::Config>> = None,
                /// Forward error correction: a table with its kind; "none" by default.
                fec: Short<FecSpec> => Option<fec::Config> = None,
                /// ARQ: retransmission of packets that the code, if any, does not recover; "none" by default.
                arq: Short<ArqSpec> => Option<arq::Config> = None,
            }
        }
    };
}
pub(crate) use direction_keys;

macro_rules! specs {
    (
        { $($(#[$doc_a:meta])+ $a:ident: $type_a:ty => $to_a:ty,)+ }
        { $($(#[$doc_b:meta])+ $b:ident: $type_b:ty => $to_b:ty = $default:expr,)+ }
    ) => {
        /// A duplex link. The keys describe the forward direction (data); the reverse direction is the same except for the
        /// keys in `reverse`.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
        pub struct LinkSpec {
            /// Size of a packet, for a rate in packets per second and a queue in BDP.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub packet: Option<Size>,
            $($(#[$doc_a])+ #[serde(skip_serializing_if = "Option::is_none")] pub $a: Option<$type_a>,)+
            /// Satellites between two stations, which determine the delay of both directions.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub orbit: Option<Box<skyhaul_orbit::Config>>,
            $($(#[$doc_b])+ #[serde(skip_serializing_if = "Option::is_none")] pub $b: Option<$type_b>,)+
            /// Differences of the reverse direction (acknowledgements).
            #[serde(skip_serializing_if = "Option::is_none")]
            pub reverse: Option<DirectionSpec>,
        }

        /// The keys of the reverse direction of a link. A key that is left out has the value of the forward direction, not the
        /// default that its description names.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
        pub struct DirectionSpec {
            $($(#[$doc_a])+ #[serde(skip_serializing_if = "Option::is_none")] pub $a: Option<$type_a>,)+
            $($(#[$doc_b])+ #[serde(skip_serializing_if = "Option::is_none")] pub $b: Option<$type_b>,)+
        }

        impl LinkSpec {
            /// A link of two directions.
            pub(crate) fn of(
                orbit: Option<Box<skyhaul_orbit::Config>>,
                forward: DirectionSpec,
                reverse: DirectionSpec,
            ) -> Self {
                let DirectionSpec { $($a,)+ $($b),+ } = forward;
                Self { packet: None, $($a,)+ orbit, $($b,)+ reverse: Some(reverse) }
            }
            /// The forward direction.
            pub(crate) fn forward(&self) -> DirectionSpec {
                DirectionSpec { $($a: self.$a.clone(),)+ $($b: self.$b.clone()),+ }
            }
        }

        impl DirectionSpec {
            /// This direction, with what it leaves out as in `other`.
            pub(crate) fn or(self, other: &Self) -> Self {
                Self {
                    $($a: self.$a.or_else(|| other.$a.clone()),)+
                    $($b: self.$b.or_else(|| other.$b.clone()),)+
                }
            }
        }
    };
}
direction_keys!(specs);

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
