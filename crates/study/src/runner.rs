//! The interface to whatever runs a cell: the simulator, or a fake in tests.

use crate::model::Raw;
use crate::observed::Observed;
use serde::{Deserialize, Serialize};
use skyhaul_scenario::Resolved;
use skyhaul_scenario::resolved::Series;
use skyhaul_sim::quantity::{Subject, sampled};
use skyhaul_sim::result::direction;
use std::path::Path;

/// A change to the base scenario and where in the study it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Path in the scenario.
    pub path: String,
    /// Its value.
    pub value: Raw,
    /// Key in the study, for messages.
    pub origin: String,
}

/// Why a scenario was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// Path in the scenario, if it is about one.
    pub path: Option<String>,
    /// One sentence.
    pub message: String,
    /// The accepted values.
    pub accepted: Vec<String>,
}

/// A resolved scenario, with the data that the study needs about it.
#[derive(Clone, Debug)]
pub struct Resolution {
    /// The scenario.
    pub scenario: Resolved,
    /// Canonical text without the seed: equal texts give equal results.
    pub text: String,
    /// Description of the scenario: (item, value).
    pub words: Vec<(String, String)>,
    /// Names of links.
    pub links: Vec<String>,
    /// Names of flow groups.
    pub groups: Vec<String>,
    /// Series that it records.
    pub series: Vec<String>,
}

impl Resolution {
    /// Why no curve of `series` is recorded, or none of `group`, with the names that there are; `None` if there is one.
    pub(crate) fn without_curve(&self, series: &str, group: Option<&str>) -> Option<(String, Vec<String>)> {
        if !self.series.iter().any(|s| s == series) {
            return Some((format!("series `{series}` is not recorded"), self.series.clone()));
        }
        let of_links = Series::ALL.iter().any(|s| s.name() == series && sampled(*s).of == Subject::Link);
        let known = if of_links {
            let both = |link: &String| [true, false].map(|forward| format!("{link}.{}", direction(forward)));
            self.links.iter().flat_map(both).collect()
        } else {
            self.groups.clone()
        };
        let group = group.filter(|group| !known.iter().any(|k| k == group))?;
        Some((format!("series `{series}` has no group `{group}`"), known))
    }
}

/// Names of quantities that every run yields.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    /// `flow.*`.
    pub flow: Vec<String>,
    /// `link.<name>.*`.
    pub link: Vec<String>,
    /// `run.*`.
    pub run: Vec<String>,
}

/// The version of a cell's code is unknown, so its result must not be cached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unversioned {
    /// Description.
    pub why: String,
}

/// Why a cell has no result.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// One sentence.
    pub message: String,
    /// More lines, such as a traceback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { message, detail: None }
    }
}

/// Resolves scenarios and runs cells. A run is a pure function of scenario and seed.
pub trait CellRunner: Sync {
    /// Changes whenever results may change; part of every cell's key.
    fn engine(&self) -> String;

    /// The quantities of a run.
    fn vocabulary(&self) -> Vocabulary;

    /// Applies settings to a base scenario (see [`crate::model::Study::scenario`]) and resolves it.
    ///
    /// # Errors
    /// If the scenario or a setting is refused.
    fn resolve(&self, base: &Raw, dir: &Path, settings: &[Setting]) -> Result<Resolution, Problem>;

    /// Parses [`Resolution::text`]: a cell may run on another machine.
    ///
    /// # Errors
    /// If the text is not a resolved scenario.
    fn reread(&self, text: &str) -> Result<Resolved, Problem>;

    /// What a result depends on besides engine, scenario and seed, as a text for the key of a cell: the versions of
    /// the code that it uses.
    ///
    /// # Errors
    /// If a version is unknown; then the cell is not cached.
    fn version(&self, scenario: &Resolved) -> Result<String, Unversioned> {
        let _ = scenario;
        Ok(String::new())
    }

    /// Runs one cell.
    ///
    /// # Errors
    /// Why it has no result. The other cells still run.
    fn run(&self, scenario: &Resolved, seed: u64) -> Result<Observed, Failure>;
}
