//! Link-layer repair: a code, and ARQ.

use super::short::{Short, ShortForm};
use crate::amount::{Count, QueueLimit, Size, Time};
use crate::error::ValueError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use skyhaul_path::fec;
use std::borrow::Cow;

/// The word for no repair, so that the reverse direction can switch off that of the forward direction.
const NONE: &str = "none";

/// A code, or none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FecSpec(pub Option<fec::Config>);

/// ARQ, or none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArqSpec(pub Option<RepeatsSpec>);

/// ARQ: the link retransmits packets that its receiver misses. An empty table takes all defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "ArqSpec")]
pub struct RepeatsSpec {
    /// Window: outstanding packets, or a multiple of this link's BDP; "1.5 BDP" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<QueueLimit>,
    /// Largest number of retransmissions of a packet; 3 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Count>,
    /// In-order delivery: packets wait for the retransmission of earlier ones; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_order: Option<bool>,
    /// Guard time after which an overdue acknowledgement counts as missing; "10 ms" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guard: Option<Time>,
    /// How the sender learns which packets have arrived; "ideal" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Short<FeedbackSpec>>,
}

/// How the sender learns which packets have arrived. Short forms: "ideal"; a time; the size of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum FeedbackSpec {
    /// Acknowledgements take the propagation delay of the other direction, and no transmission time.
    #[serde(deserialize_with = "skyhaul_base::amount::no_other_keys")]
    Ideal,
    /// Acknowledgements take this time.
    After {
        /// Time from the arrival of a packet until the sender knows of it.
        time: Time,
    },
    /// Acknowledgements take the propagation delay of the other direction plus their transmission time there; they do
    /// not compete with packets.
    Sized {
        /// Size of an acknowledgement, such as "12 B".
        size: Size,
    },
}

macro_rules! table_or_none {
    ($spec:ident, $table:ty, $example:literal, $bare:literal) => {
        impl<'de> Deserialize<'de> for $spec {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                <$table>::deserialize(d).map(|own| Self(Some(own)))
            }
        }
        impl Serialize for $spec {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                match &self.0 {
                    Some(own) => own.serialize(s),
                    None => s.serialize_str(NONE),
                }
            }
        }
        impl JsonSchema for $spec {
            fn schema_name() -> Cow<'static, str> {
                <$table>::schema_name()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$table>::json_schema(generator)
            }
        }
        impl ShortForm for $spec {
            const EXPECTING: &'static str = concat!("\"none\", or a table such as ", $example);
            fn from_text(text: &str) -> Result<Self, ValueError> {
                match text {
                    NONE => Ok(Self(None)),
                    _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
                }
            }
            fn bare(n: &str) -> String {
                format!($bare, n = n)
            }
            fn text_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "const": NONE })
            }
        }
    };
}

table_or_none!(
    FecSpec,
    fec::Config,
    "{ kind = \"block\", n = 20, k = 18 }",
    "{n} is ambiguous: write {{ kind = \"rate\", rate = {n} }} for the code rate of the modem"
);
table_or_none!(
    ArqSpec,
    RepeatsSpec,
    "{ retries = 3 }",
    "{n} is ambiguous: write {{ retries = {n} }} for the retransmission limit of a packet"
);

impl ShortForm for FeedbackSpec {
    const EXPECTING: &'static str =
        "\"ideal\", a time such as \"280 ms\", or the size of an acknowledgement such as \"12 B\"";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        if text == "ideal" {
            return Ok(Self::Ideal);
        }
        let time = text.parse().map(|time| Self::After { time });
        let size = || text.parse().map(|size| Self::Sized { size });
        time.or_else(|_| size())
            .map_err(|_| ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING })
    }
    fn bare(n: &str) -> String {
        format!(
            "{n} has no unit: write a time such as \"{n} ms\", or the size of an acknowledgement such as \"{n} B\""
        )
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        let (time, size) = (generator.subschema_for::<Time>(), generator.subschema_for::<Size>());
        json_schema!({ "anyOf": [{ "const": "ideal" }, time, size] })
    }
}
