//! The statistic that summarises the values of a metric over the seeds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The statistic that summarises the values of a metric over the seeds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Summary {
    /// The mean, with a Student-t interval.
    #[default]
    Mean,
    /// The median, with an interval of order statistics.
    Median,
}
