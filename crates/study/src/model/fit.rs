//! The search over readings: what is free, and the printed numbers that decide.

use crate::model::{Axis, AxisValue, OneOrMany, Selector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A search over readings of the source (`skyhaul study fit`): the reading whose numbers are nearest to the printed
/// ones.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Largest number of cells of the search; those with fresh seeds are not counted.
    #[serde(default = "budget")]
    pub budget: u64,
    /// Number of readings that are run again with fresh seeds: for each paper, and for all papers together.
    #[serde(default = "finalists")]
    pub finalists: usize,
    /// Number of seeds of the search, from the first of the study on; by default as many as the study has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u32>,
    /// Number of fresh seeds, which follow those of the search.
    #[serde(default = "fresh")]
    pub fresh: u32,
    /// Seed of the random starts.
    #[serde(default = "one")]
    pub seed: u64,
    /// The free options: what the texts leave open.
    #[serde(default)]
    pub option: Vec<FreeOption>,
    /// The printed numbers.
    #[serde(default)]
    pub printed: Vec<Printed>,
    /// Printed numbers that no reading can meet, with the reason. They do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// Readings with a name: always run with fresh seeds, and starts of the search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<KnownReading>,
}

/// A free option: a point at which the texts allow several readings.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FreeOption {
    /// Name in tables.
    pub name: String,
    /// What is open, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Key of the scenario that a plain value sets; several keys get the same value.
    #[serde(default)]
    pub path: OneOrMany,
    /// The readings that the texts allow, in the form of the values of an axis; the search starts from the first.
    pub values: Vec<AxisValue>,
    /// Names of the values in tables; by default the values themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Combinations that the option applies to; by default all.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub only: Selector,
}

impl FreeOption {
    /// The option as an axis.
    #[must_use]
    pub fn axis(&self) -> Axis {
        Axis {
            name: self.name.clone(),
            title: None,
            unit: String::new(),
            path: self.path.clone(),
            values: self.values.clone(),
            labels: self.labels.clone(),
        }
    }
}

/// A printed number, and the metric that must meet it.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Printed {
    /// Name in tables.
    pub id: String,
    /// The paper that prints it: readings are fitted to one paper and tested on the others.
    pub paper: String,
    /// Place in the source, e.g. `Fig. 11`.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The metric.
    pub metric: String,
    /// Values of axes; axes not here must have one value.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub at: Selector,
    /// The printed value of the metric, above zero.
    pub value: f64,
    /// Weight of its squared error.
    #[serde(default = "unit")]
    pub weight: f64,
}

/// A printed number that no reading can meet.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Name in tables.
    pub id: String,
    /// The paper that prints it.
    pub paper: String,
    /// Place in the source.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What is printed.
    pub says: String,
    /// Why no reading can meet it.
    pub why: String,
}

/// A reading with a name.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KnownReading {
    /// Its name.
    pub label: String,
    /// Free option → label of its value; options not here have their first value.
    #[serde(default)]
    pub choice: BTreeMap<String, String>,
}

const fn budget() -> u64 {
    2000
}

const fn finalists() -> usize {
    5
}

const fn fresh() -> u32 {
    10
}

const fn one() -> u64 {
    1
}

const fn unit() -> f64 {
    1.0
}
