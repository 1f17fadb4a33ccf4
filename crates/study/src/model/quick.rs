//! The quick profile.

use crate::model::{Selector, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The quick profile, which runs instead of the whole study to show in minutes whether everything still works. Its
/// numbers are those of another, smaller experiment.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quick {
    /// Number of seeds, at most that of the study.
    pub seeds: u32,
    /// Settings of the scenario for all cells, applied after those of axes and readings, e.g. a shorter duration.
    #[serde(skip_serializing_if = "Settings::is_empty")]
    pub set: Settings,
    /// The combinations that run; by default all. A claim that needs others is listed as not in the profile.
    #[serde(skip_serializing_if = "Selector::is_empty")]
    pub only: Selector,
    /// Run all readings, not only the default one.
    pub readings: bool,
}

impl Default for Quick {
    fn default() -> Self {
        Self { seeds: 3, set: Settings::default(), only: Selector::default(), readings: false }
    }
}

/// How much of a study runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// All of it.
    #[default]
    Full,
    /// The quick profile, see [`Quick`].
    Quick,
}

impl Profile {
    /// One word for tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Quick => "quick",
        }
    }
}
