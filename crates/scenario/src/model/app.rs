//! What senders have to send, and over what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What carries the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransportSpec {
    /// A connection with congestion control.
    #[default]
    Tcp,
    /// Datagrams: nothing is repeated, and nothing reacts to losses.
    Udp,
}
