//! What senders have to send.

use super::short::{Short, ShortForm};
use crate::error::ValueError;
use crate::quantity::{Count, Frequency, RateSpec, Size, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use skyhaul_base::dist::{Sizes, Times};

/// What a sender has to send. Short form: "bulk".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", deny_unknown_fields, rename_all = "kebab-case")]
pub enum AppSpec {
    /// Short transfers at random times (a Poisson process), each over a new connection.
    Arrivals {
        /// How many per time, on average.
        rate: Frequency,
        /// Bytes of a transfer.
        size: Short<Sizes>,
    },
    /// Data without end.
    Bulk {},
    /// Data at a constant rate.
    Cbr {
        /// Over UDP that of packets with their headers, over TCP that of the application's data.
        rate: RateSpec,
        /// Over UDP a packet with its headers, "1000 B" by default; over TCP what is written at a time, a full
        /// segment by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packet: Option<Size>,
    },
    /// Data at a constant rate with pauses.
    OnOff {
        /// Rate while on; see "cbr".
        rate: RateSpec,
        /// See "cbr".
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packet: Option<Size>,
        /// How long it is on; it begins so.
        on: Short<Times>,
        /// How long it pauses.
        off: Short<Times>,
    },
    /// Pages one after the other, each over a new connection.
    Pages {
        /// Full segments per page.
        segments: Count,
        /// How many pages; without end by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<Count>,
        /// Pause between the end of a page and the start of the next; none by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle: Option<Short<Times>>,
    },
}

impl ShortForm for AppSpec {
    const EXPECTING: &'static str = "\"bulk\", or a table such as { kind = \"pages\", segments = 50 }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "bulk" => Ok(Self::Bulk {}),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": "bulk" })
    }
}

impl ShortForm for Times {
    const EXPECTING: &'static str = "a time such as \"1 s\", or a table such as { exponential = \"1 s\" } or \
        { pareto = { mean = \"1 s\", shape = 1.5 } }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(Self::Constant(text.parse::<Time>()?.0))
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a time with a unit, such as \"{n} s\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Time>()
    }
}

impl ShortForm for Sizes {
    const EXPECTING: &'static str = "a size such as \"30 kB\", or a table such as { exponential = \"30 kB\" }, \
        { list = [\"10 kB\", \"1 MB\"] }, { lognormal = { median = \"10 kB\", sigma = 1.5 } } or \
        { pareto = { min = \"4 kB\", max = \"10 MB\", shape = 1.2 } }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(Self::Constant(text.parse::<Size>()?.0))
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a size with a unit, such as \"{n} kB\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Size>()
    }
}
