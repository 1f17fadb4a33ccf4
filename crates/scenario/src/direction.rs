//! The direction of the data of a flow.

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
