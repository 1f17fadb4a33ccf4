//! Segments that two gateways repair.

use crate::amount::{Count, Size, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two gateways at the ends of some links, which repair datagrams between them. Everything that crosses these links goes
/// through the queue of a gateway first, which has the lowest rate of the links and the queue of the first one. Connections
/// that gateways split, packets of low priority and the flows in `pass` are not repaired.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RepairSpec {
    /// Names of the links between the two gateways, in the order of the paths that cross them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Names of flows that are not repaired; none by default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<String>,
    /// Repair by an erasure code, whose rate follows the measured losses; true by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fec: Option<bool>,
    /// Largest number of repeats of a datagram that the code does not recover; 2 by default, 0 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Count>,
    /// Longest time that a datagram waits for earlier ones; "800 ms" by default, "0 s" to deliver in order of arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resequence: Option<Time>,
    /// Largest share of the rate for repair symbols and repeats together, from 0.001 to 0.5; 0.2 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Largest number of datagrams in a block of the code, at most 1024; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Count>,
    /// Longest time from the first datagram of a block to its repair symbols; "100 ms" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fill_time: Option<Time>,
    /// Accepted probability that a block has more losses than the code recovers; 1e-3 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residual: Option<f64>,
    /// Bytes around each frame between the gateways: outer headers and tag of the encryption; "44 B" by default, for IPv4,
    /// UDP and a tag of 16 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer: Option<Size>,
    /// Largest packet between the gateways, outer headers included; no limit by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Size>,
    /// Repair symbols have low priority: they leave when nothing else waits, and links may discard them first; false by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_priority: Option<bool>,
    /// Least time between two reports of a gateway to the other; "25 ms" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<Time>,
    /// Bytes of its own headers that each datagram loses between the gateways, at most half of its size; "0 B" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compress: Option<Size>,
}
