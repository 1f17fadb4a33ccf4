//! The tables.

use crate::model::{OneOrMany, Selector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A table of means with intervals: one row per value of some axes, one column per metric or per value of an axis.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Name of the file, without extension.
    pub file: String,
    /// Title above the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Sentence below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// Axis of the study whose values are the rows, or several.
    pub rows: OneOrMany,
    /// Axis of the study whose values are columns; without it, only the metrics are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
    /// Metric shown, or several.
    pub metric: OneOrMany,
    /// Values of axes to show; axes neither here nor in `rows` or `columns` must have one value.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub at: Selector,
}
