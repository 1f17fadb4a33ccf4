//! Gateways, and chains of connections through them.

use super::cc::CcSpec;
use super::endpoint::EndpointSpec;
use super::short::{Short, ShortForm};
use crate::amount::{Count, RateSpec, Size, Time, Window};
use crate::chain::{AckMode, ChainKind, Open, Overload};
use crate::error::ValueError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use skyhaul_relay::Transport;
use skyhaul_relay::headers::{Compression, Sizes};
use std::collections::BTreeMap;

/// A gateway that can terminate connections and open others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GatewaySpec {
    /// Name of the link before the gateway, seen from the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// Buffer per connection and direction; by default twice the bandwidth-delay product of the slower adjacent leg, at
    /// least 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Size>,
    /// Forwarding delay; "0.1 ms" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Time>,
    /// Maximum number of connections split at a time; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<Count>,
    /// What the gateway does with further connections; "bypass" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overload: Option<Overload>,
}

/// The handover of a gateway's split connections to another gateway, to which the receiver has moved (Bakre and
/// Badrinath 1995).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GatewayHandoverSpec {
    /// Name of the old gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Name of the new gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Links of the leg that begins at the new gateway; by default those of the old leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<String>>,
    /// Duration of the signalling; "50 ms" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signalling: Option<Time>,
    /// Rate between the two gateways, for buffered data and for packets that still arrive at the old one; "100 Mbit/s"
    /// by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backhaul: Option<RateSpec>,
}

/// How the connections of a group are split at gateways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChainSpec {
    /// How the path is split; "e2e" by default: one connection, not split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ChainKind>,
    /// Names of the gateways in the order of the path; a kind that needs fewer gateways uses the first ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// When a gateway opens the next leg; "sequential" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
    /// When a gateway acknowledges; "early" by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_mode: Option<AckMode>,
    /// With "spoof": probability that an acknowledgement of the receiver bypasses the gateway; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asym: Option<f64>,
    /// Packets are encrypted (IPsec, for example), so that gateways can only forward them; false by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// Settings of the legs that begin at gateways, by the name of the gateway.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub legs: BTreeMap<String, LegSpec>,
}

/// A leg that begins at a gateway; keys that are not set are those of the group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LegSpec {
    /// Transport: "tcp", or between two gateways a table such as `{ kind = "xtp-like", rate = "9 Mbit/s" }`; "tcp" by
    /// default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Short<Transport>>,
    /// Congestion control of the sending gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<Short<CcSpec>>,
    /// Endpoint of both ends of the leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Short<EndpointSpec>>,
    /// Header compression: "scps", where each packet can be decompressed on its own, or "vj" (RFC 1144), where a loss
    /// affects later packets; none by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_compression: Option<Short<Compression>>,
    /// Receive buffer of the leg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd: Option<Window>,
    /// Send buffer of the sending gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<Window>,
}

impl ShortForm for Transport {
    const EXPECTING: &'static str =
        "\"tcp\", or a table such as { kind = \"xtp-like\", rate = \"9.5 Mbit/s\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "tcp" => Ok(Self::Tcp),
            "xtp-like" => Ok(Self::XtpLike(skyhaul_relay::xtp::Config::default())),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["tcp", "xtp-like"] })
    }
}

impl ShortForm for Compression {
    const EXPECTING: &'static str =
        "\"scps\", \"vj\", or a table such as { kind = \"scps\", data = \"20 B\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        match text {
            "scps" => Ok(Self::Scps(Sizes::default())),
            "vj" => Ok(Self::Vj(Sizes::default())),
            _ => Err(ValueError::NotAccepted { text: text.into(), expected: Self::EXPECTING }),
        }
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["scps", "vj"] })
    }
}
