//! What carries the data of flows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What carries the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "TransportSpec")]
pub enum Transport {
    /// A connection with congestion control.
    #[default]
    Tcp,
    /// Datagrams: nothing is repeated, and nothing reacts to losses.
    Udp,
}
