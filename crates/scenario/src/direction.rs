//! Which way the data of a flow goes.

use crate::resolved::{Direction, FlowGroup, Link};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The direction in which data crosses the links of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowDirection {
    /// Data crosses the forward direction of each link, acknowledgements the reverse direction.
    #[default]
    Forward,
    /// The sender is at the end of the path: data crosses the reverse direction of each link, from the last link to the
    /// first, and acknowledgements the forward direction.
    Reverse,
}

impl FlowGroup {
    /// Whether its data crosses the forward direction of links.
    #[must_use]
    pub fn sends_forward(&self) -> bool {
        self.direction == FlowDirection::Forward
    }
    /// The direction of a link that its data crosses.
    #[must_use]
    pub fn data_way<'a>(&self, link: &'a Link) -> &'a Direction {
        if self.sends_forward() { &link.forward } else { &link.reverse }
    }
    /// The direction of a link that its acknowledgements cross.
    #[must_use]
    pub fn ack_way<'a>(&self, link: &'a Link) -> &'a Direction {
        if self.sends_forward() { &link.reverse } else { &link.forward }
    }
}
