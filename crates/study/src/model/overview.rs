//! Lines of an overview over several studies.

use crate::model::{OneOrMany, Selector};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A line of the overview that `paper.toml` describes: a metric in several combinations side by side, the first of
/// them compared with each of the others, seed by seed.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OverviewLine {
    /// Section of the overview to which it belongs.
    pub id: String,
    /// What is measured; by default the title of the metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// The metric.
    pub metric: String,
    /// Values of axes at which it is measured.
    #[serde(default, skip_serializing_if = "Selector::is_empty")]
    pub at: Selector,
    /// Axes with a line for each of their values.
    #[serde(default)]
    pub for_each: OneOrMany,
    /// What is compared, in the order of the columns of the overview: values of axes, as for the sides of a claim.
    pub sides: Vec<Selector>,
    /// Whether more or less of it is better; without it, neither is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Preference>,
}

/// What is better.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preference {
    /// More.
    More,
    /// Less.
    Less,
}

impl Preference {
    /// One word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
        }
    }
}

/// An overview over the studies of a folder: its title, columns and sections.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OverviewPlan {
    /// Its title.
    pub title: String,
    /// A few sentences below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Headings of the columns: what each line compares, in its order.
    pub columns: Vec<String>,
    /// Its sections, in order.
    pub section: Vec<OverviewSection>,
    /// The numbers that a leaderboard of controls shows beside the verdicts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headline: Vec<Headline>,
}

/// A number of a leaderboard: the value in the first column of a line of the overview, at one of its places.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Headline {
    /// Its title, without the unit; no other has the same.
    pub says: String,
    /// The study.
    pub study: String,
    /// The metric of the line.
    pub metric: String,
    /// The place: the values of the axes of the line's `for_each`, separated by a comma and a space; empty if the line has
    /// one place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub at: String,
}

/// A section of an overview.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OverviewSection {
    /// The `id` of its lines.
    pub id: String,
    /// Its title.
    pub says: String,
    /// What of it is not measured, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
}
