//! The scenario file as types: what may be written, before defaults and references are filled in.
//!
//! These types are the one definition of the format; the parser and the JSON Schema follow from them. Every
//! key that has no sensible default is optional here all the same, since a file may take it from the one it
//! extends; [`crate::Document::resolve`] demands it.

mod app;
mod endpoint;
mod os;
mod queue;
mod short;
mod trace;

pub use app::TransportSpec;
pub use endpoint::{
    EndpointSpec, InitialSsthreshSpec, InitialWindowSpec, ProbesSpec, RttSourceSpec, SackSpec,
};
pub use os::{OsBuffers, OsSpec};
pub use queue::QueueSpec;
pub use short::{CcSpec, Short};
pub(crate) use short::{default_cc, expand, expand_default, tags};
pub use trace::{EndSpec, OrTrace, TraceSpec};
pub(crate) use trace::{fill, is_trace};

use crate::quantity::{Count, RateSpec, Size, Span, Time, Window};
use crate::resolved::Series;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skyhaul_path::{Delay, error};
use std::collections::BTreeMap;

/// A scenario file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Version of the format: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1))]
    pub schema: Option<u32>,
    /// File or preset that this one changes: a path relative to this file, or "preset:NAME".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// One line for figures and reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How long the run lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// Seed of all random streams; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9_223_372_036_854_775_807_u64))]
    pub seed: Option<u64>,
    /// What to record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordSpec>,
    /// Links by name.
    pub links: BTreeMap<String, LinkSpec>,
    /// Groups of like flows by name.
    pub flows: BTreeMap<String, FlowSpec>,
    /// What changes during the run, in any order; changes at the same time in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<EventSpec>,
}

/// A change of links during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventSpec {
    /// When.
    pub at: Time,
    /// Keys of links and their new values, such as `"links.sat.rate" = "5 Mbit/s"`: rate, delay, error, up,
    /// queue.limit, of the link or of its `reverse`.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: toml::Table,
}

/// A duplex link. The keys describe the forward direction, which data takes; the reverse direction is the same
/// except for what `reverse` says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkSpec {
    /// Size of a packet, for a rate in packets per second and a queue in BDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
    /// Rate of the transmitter: a rate, or a table with a file that says how it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<OrTrace<RateSpec>>,
    /// Propagation delay, one way: a time, or a table for jitter or with a file that says how it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<OrTrace<Short<Delay>>>,
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
    /// The link is up; true by default. While it is down its queue keeps filling and nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// A link that goes down loses what is in flight; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_in_flight: Option<bool>,
    /// How the reverse direction, which acknowledgements take, differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<DirectionSpec>,
}

/// What the reverse direction of a link has of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DirectionSpec {
    /// Rate of the transmitter: a rate, or a table with a file that says how it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<OrTrace<RateSpec>>,
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
    /// The direction is up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// What is in flight is lost when it goes down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_in_flight: Option<bool>,
}

/// A group of like flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowSpec {
    /// How many; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// Names of the links that data crosses, in order. By default the only link there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
    /// Delay of the access, each way, on top of the links; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_delay: Option<Time>,
    /// What carries the data: "tcp" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportSpec>,
    /// Congestion control: a name, or a table with `name` and options; "sack" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<Short<CcSpec>>,
    /// Endpoint: a preset, or a table with `preset` and changes to it; "modern" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Short<EndpointSpec>>,
    /// The receiver's buffer, which limits the window; by default that of the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd: Option<Window>,
    /// The sender's buffer, which limits what is outstanding; by default that of the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<Window>,
    /// What the senders have to send; "bulk" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<Short<skyhaul_apps::Config>>,
    /// When flows start: a time, or `{ uniform = ["0 s", "1 RTT"] }`, which is the default of groups of
    /// several flows. A single flow starts at 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Short<StartSpec>>,
    /// When the sources stop; by default at the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// Connections open with a handshake; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake: Option<bool>,
    /// What a sender without handshake knows of the RTT; by default the propagation RTT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_rtt: Option<Time>,
}

/// When flows start. Short form: a time, for all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartSpec {
    /// All at this time.
    At(Span),
    /// Each at its own time between the two.
    Uniform([Span; 2]),
}

/// What to record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RecordSpec {
    /// Interval between samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<Time>,
    /// What to sample; by default acked, cwnd, queue and srtt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<Series>>,
}
