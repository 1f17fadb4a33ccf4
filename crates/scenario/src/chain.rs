//! How connections are cut at gateways: words of files that mean the same when resolved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What stands between the two ends of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChainKind {
    /// Nothing: one connection over the whole path.
    #[default]
    E2e,
    /// The first gateway acknowledges in the receiver's name, within one connection, and sends again what is lost behind it.
    Spoof,
    /// The first gateway ends the sender's connection and opens one to the receiver.
    Split2,
    /// The first gateway ends the sender's connection, the second one opens that to the receiver.
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
    /// So many gateways it takes.
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
    /// Once the leg before is established.
    #[default]
    Sequential,
    /// As soon as the leg before is asked for.
    Early,
}

/// When a gateway acknowledges what it has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckMode {
    /// At once, in the name of the receiver.
    #[default]
    Early,
    /// Once the next leg has acknowledged it: the gateway answers for nothing, and only sends again.
    Late,
}

/// What a gateway does with connections for which it has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overload {
    /// Lets them pass uncut.
    #[default]
    Bypass,
    /// Resets them.
    Refuse,
}
