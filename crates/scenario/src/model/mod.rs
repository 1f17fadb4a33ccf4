//! The scenario file as types: what may be written, before defaults and references are filled in.
//!
//! These types are the only definition of the format; the parser and the JSON Schema follow from them. Even a key
//! without a sensible default is optional here, since a file may inherit it from the one it extends;
//! [`crate::Document::resolve`] requires it.

mod cc;
mod chain;
mod endpoint;
mod expand;
mod fade;
mod flow;
mod link;
mod loss_classifier;
mod names;
mod os;
mod queue;
mod repair;
mod segment;
mod short;
mod trace;

pub use cc::CcSpec;
pub(crate) use cc::default_cc;
pub(crate) use cc::expand_readings;
pub use chain::{ChainSpec, GatewayHandoverSpec, GatewaySpec, LegSpec};
pub use endpoint::{EndpointSpec, InitialSsthreshSpec, InitialWindowSpec, SackSpec};
pub(crate) use expand::{expand, expand_default, tags};
pub use fade::{FadeSpec, RateOrKind, SeriesSpec};
pub use flow::{FlowSpec, StartSpec};
pub(crate) use link::direction_keys;
pub use link::{DirectionSpec, LinkSpec};
pub use loss_classifier::LossClassifierSpec;
pub(crate) use names::holds_names;
pub use os::{OsBuffers, OsSpec};
pub use queue::{QueueSpec, Written};
pub use repair::{ArqSpec, FecSpec, FeedbackSpec, RepeatsSpec};
pub use segment::RepairSpec;
pub use short::Short;
pub use trace::{EndSpec, OrTrace, TraceSpec};
pub(crate) use trace::{fill, is_trace, names_file};

use crate::amount::{Size, Time};
use crate::series::Series;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A scenario file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Version of the format: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1))]
    pub schema: Option<u32>,
    /// File or preset that this file modifies: a path relative to this file, or "preset:NAME".
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
    /// Memory limit, by the simulator's own count; "4 GB" by default. A run whose estimate exceeds it is refused, and one that
    /// reaches it ends there, with the results so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<Size>,
    /// What to record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordSpec>,
    /// Links by name.
    pub links: BTreeMap<String, LinkSpec>,
    /// Gateways at which connections can be split, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gateways: BTreeMap<String, GatewaySpec>,
    /// Segments that two gateways repair, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub repair: BTreeMap<String, RepairSpec>,
    /// Groups of identical flows by name.
    pub flows: BTreeMap<String, FlowSpec>,
    /// Changes during the run, in any order; changes at the same time apply in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<EventSpec>,
}

/// A change of links during the run, or an event of a gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EventSpec {
    /// Time.
    pub at: Time,
    /// Keys of links and their new values, such as `"links.sat.rate" = "5 Mbit/s"`: rate, delay, error, up,
    /// queue.limit, of the link or of its `reverse`.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: toml::Table,
    /// Name of a gateway that crashes and restarts immediately: it loses its buffered data and the state of its
    /// connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<String>,
    /// Name of a gateway that the route leaves: packets of its connections bypass it and all other gateways, and later
    /// connections are not split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reroute: Option<String>,
    /// A gateway hands its split connections over to another.
    #[serde(alias = "hand-over", default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<GatewayHandoverSpec>,
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
    /// Measure the delay of every data packet: quantities `packet_delay_…` and `queueing_delay_…`. Off by default; a study
    /// turns it on for metrics that name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_delay: Option<bool>,
}
