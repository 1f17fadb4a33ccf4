//! Groups of flows.

use super::cc::CcSpec;
use super::chain::ChainSpec;
use super::endpoint::EndpointSpec;
use super::short::{Short, ShortForm};
use crate::amount::{Count, Dscp, Span, Time, Window};
use crate::direction::FlowDirection;
use crate::error::ValueError;
use crate::transport::Transport;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// A group of identical flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowSpec {
    /// Number of flows; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// Names of the links of the path, in order; by default the only link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
    /// Direction in which data crosses the links of the path; `"forward"` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<FlowDirection>,
    /// Access delay in each direction, in addition to the links; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_delay: Option<Time>,
    /// DSCP of the packets in both directions, but for those of low priority: a number, or a name such as "EF"; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
    /// Transport: "tcp", "udp", "tfrc" or "ssvp", or a table with `kind` and options; "tcp" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Short<Transport>>,
    /// Congestion control: a name, or a table with `name` and options; "sack" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<Short<CcSpec>>,
    /// Endpoint: a preset, or a table with `preset` and changes to it; "modern" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Short<EndpointSpec>>,
    /// Receive buffer, which limits the window; by default that of the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd: Option<Window>,
    /// Send buffer, which limits outstanding data; by default that of the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<Window>,
    /// The application of the senders; "bulk" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<Short<skyhaul_apps::Config>>,
    /// When flows start: a time, or `{ uniform = ["0 s", "1 RTT"] }`, the default for groups of several flows. A
    /// single flow starts at 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Short<StartSpec>>,
    /// When the applications stop; by default at the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// Connections open with a handshake; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake: Option<bool>,
    /// Connections close with a FIN in each direction, the receiver's after the sender's. By default they are over once
    /// all data is acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close: Option<bool>,
    /// The RTT known to a sender without handshake; by default the propagation RTT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_rtt: Option<Time>,
    /// How connections are split at gateways; by default they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainSpec>,
}

/// When flows start. Short form: one time for all flows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartSpec {
    /// All flows start at this time.
    At(Span),
    /// Each flow starts at a random time between these two.
    Uniform([Span; 2]),
}

impl ShortForm for StartSpec {
    const EXPECTING: &'static str =
        "a time such as \"0 s\", or a table such as { uniform = [\"0 s\", \"1 RTT\"] }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(text.parse().map(Self::At)?)
    }
    fn bare(n: &str) -> String {
        format!("{n} has no unit: write a time with a unit, such as \"{n} s\"")
    }
    fn text_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Span>()
    }
}

impl ShortForm for Transport {
    const EXPECTING: &'static str =
        "\"tcp\", \"udp\", \"tfrc\" or \"ssvp\", or a table such as { kind = \"tfrc\", packet = \"1000 B\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Self::named(text).ok_or(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING })
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["tcp", "udp", "tfrc", "ssvp"] })
    }
}

impl ShortForm for skyhaul_apps::Config {
    const EXPECTING: &'static str = "\"bulk\", or a table such as { kind = \"pages\", segments = 50 }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "bulk" => Ok(Self::BULK),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": "bulk" })
    }
}
