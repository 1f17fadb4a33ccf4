//! Splitting of connections at gateways: values that mean the same in files and in the resolved scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the path between the two ends of a flow is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChainKind {
    /// Not at all: one connection over the whole path.
    #[default]
    E2e,
    /// One connection, for which the first gateway acknowledges on behalf of the receiver and retransmits what is lost
    /// behind it.
    Spoof,
    /// The first gateway terminates the sender's connection and opens one to the receiver.
    Split2,
    /// The first gateway terminates the sender's connection, and the second opens the one to the receiver.
    Split3,
}

impl ChainKind {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::E2e => "e2e",
            Self::Spoof => "spoof",
            Self::Split2 => "split2",
            Self::Split3 => "split3",
        }
    }
    /// The number of gateways it needs.
    #[must_use]
    pub const fn gateways(self) -> usize {
        match self {
            Self::E2e => 0,
            Self::Spoof | Self::Split2 => 1,
            Self::Split3 => 2,
        }
    }
}

/// When a gateway opens the next leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Open {
    /// Once the previous leg is established.
    #[default]
    Sequential,
    /// As soon as the SYN of the previous leg arrives.
    Early,
}

/// When a gateway acknowledges the data that it has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckMode {
    /// At once, on behalf of the receiver.
    #[default]
    Early,
    /// Once the next leg has acknowledged it: the gateway takes no responsibility for data and only retransmits
    /// locally.
    Late,
}

/// What a gateway does with connections beyond its capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overload {
    /// Forwards them without splitting.
    #[default]
    Bypass,
    /// Resets them.
    Refuse,
}
